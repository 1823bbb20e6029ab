"""A game evaluated at Markov boundaries."""

from __future__ import annotations

import numpy as np

from dsage._check import refusal
from dsage.games.base import Floats, Game, Mask, Rows, Wrapped
from dsage.graphs.grouped import GroupedOracle
from dsage.graphs.separation import Oracle


def require_same_features(oracle: Oracle, game: Game) -> None:
    """Refuse an oracle whose features, or their order, are not those of the game."""
    if tuple(oracle.feature_names) != tuple(game.feature_names):
        raise refusal(
            "oracle",
            f"about the features of the game in their order, {tuple(game.feature_names)}",
            tuple(oracle.feature_names),
            "Make it with graph.oracle(target, features=...)",
        )
    theirs = oracle.members if isinstance(oracle, GroupedOracle) else None
    if game.members is not None and theirs is not None and game.members != theirs:
        condition = f"of the groups of the game, {game.members}"
        raise refusal("oracle", condition, theirs, "Give both the same groups")


class Boundary(Wrapped):
    """A game evaluated at Markov boundaries: the risk of S is that of M(S).

    For an optimal model and a correct graph this changes nothing: given M(S), the target does not
    depend on the rest of S. But many coalitions share a boundary.

    Parameters
    ----------
    game : Game
        The game.
    oracle : Oracle
        Knows the boundaries; about the same features in the same order.
    """

    def __init__(self, game: Game, oracle: Oracle) -> None:
        super().__init__(game)
        require_same_features(oracle, self.game)
        self.oracle = oracle

    def risks(self, known: Mask, rows: Rows, epoch: int = 0) -> Floats:
        """Return the risks of the boundaries of coalitions, each evaluated once per call."""
        distinct, place = distinct_boundaries(self.oracle, known)
        return self.game.risks(distinct, rows, epoch)[place]

    def mean_risks(self, known: Mask) -> Floats:
        """Return the means over all rows of the risks of boundaries, (n_coalitions,)."""
        distinct, place = distinct_boundaries(self.oracle, known)
        return self.game.mean_risks(distinct)[place]

    def first_level(self) -> Game | None:
        """Return the first level of the game, at the same boundaries."""
        cheap = self.game.first_level()
        return None if cheap is None else Boundary(cheap, self.oracle)


def distinct_boundaries(oracle: Oracle, known: Mask) -> tuple[Mask, Rows]:
    """Return the distinct boundaries of coalitions, and the position of each coalition's.

    Parameters
    ----------
    oracle : Oracle
        Knows the boundaries.
    known : bool array of shape (..., n_features)
        The coalitions.

    Returns
    -------
    boundaries : bool array of shape (n_boundaries, n_features)
    place : int array of shape (...)
        Which of them belongs to each coalition.

    Examples
    --------
    >>> from dsage import Graph
    >>> oracle = Graph(["a", "b", "y"], [("a", "b"), ("b", "y")]).oracle("y")
    >>> distinct_boundaries(oracle, np.array([[True, True], [False, True], [True, False]]))
    (array([[False,  True],
           [ True, False]]), array([0, 0, 1]))
    """
    boundaries = oracle.boundary(known.reshape(-1, known.shape[-1]))
    packed = np.packbits(boundaries, axis=1)
    keys = packed.view(np.dtype((np.void, packed.shape[1])))[:, 0]
    _, first, place = np.unique(keys, return_index=True, return_inverse=True)
    return boundaries[first], place.reshape(known.shape[:-1])
