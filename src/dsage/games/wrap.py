"""A game played at Markov boundaries."""

from __future__ import annotations

import numpy as np

from dsage._check import refusal
from dsage.games.base import Floats, Game, Mask, Orders, Rows
from dsage.games.moment import CheapGame
from dsage.graphs.separation import Oracle


def require_game(game: object, parameter: str = "game") -> None:
    """Refuse what is no game: a model is the usual mistake."""
    if not (hasattr(game, "risks") and hasattr(game, "feature_names")):
        advice = "Make one with LossGame(model, sampler, X, y)"
        raise refusal(parameter, "a game", type(game).__name__, advice, TypeError)


def require_same_features(oracle: Oracle, game: Game) -> None:
    """Refuse an oracle about other features than the game's, or in another order."""
    if tuple(oracle.feature_names) != tuple(game.feature_names):
        raise refusal(
            "oracle",
            f"about the features of the game in their order, {tuple(game.feature_names)}",
            tuple(oracle.feature_names),
            "Make it with graph.oracle(target, features=...)",
        )
    ours, theirs = members_of(game), getattr(oracle, "members", None)
    if ours is not None and theirs is not None and ours != theirs:
        raise refusal("oracle", f"of the groups of the game, {ours}", theirs, "Give both the same")


def members_of(game: object) -> dict[str, tuple[str, ...]] | None:
    """Return the members of the groups that are the players of a game; None for other games."""
    while not hasattr(game, "members"):
        if not hasattr(game, "game"):
            return None
        game = game.game
    members: dict[str, tuple[str, ...]] = game.members
    return members


class Boundary:
    """A game played at Markov boundaries: the risk of S is that of M(S).

    For an optimal model, and a graph that tells the truth, nothing changes: given M(S) the target
    does not depend on the rest of S. But many coalitions share a boundary.

    Parameters
    ----------
    game : Game
        The game.
    oracle : Oracle
        Knows the boundaries; of the same features in the same order.
    """

    def __init__(self, game: Game, oracle: Oracle) -> None:
        require_same_features(oracle, game)
        self.game = game
        self.oracle = oracle
        self.feature_names = game.feature_names
        self.n_rows = game.n_rows
        self.n_replicates = game.n_replicates
        self.is_drawn: bool = getattr(game, "is_drawn", game.n_replicates > 1)
        self.weights: Floats | None = getattr(game, "weights", None)

    @property
    def n_predicted(self) -> int:
        """Rows that the model was asked for; 0 for a game without a model."""
        return int(getattr(self.game, "n_predicted", 0))

    def risks(self, known: Mask, rows: Rows, epoch: int = 0) -> Floats:
        """Return the risks of the boundaries of the coalitions, each evaluated once a call."""
        distinct, place = distinct_boundaries(self.oracle, known)
        return self.game.risks(distinct, rows, epoch)[place]

    def moment_game(self) -> CheapGame | None:
        """Return the cheap game at the same boundaries; None where there is none."""
        make = getattr(self.game, "moment_game", None)
        cheap = None if make is None else make()
        return None if cheap is None else _BoundaryOfMoments(cheap, self.oracle)


class _BoundaryOfMoments(Boundary):
    """A cheap game at boundaries; see :class:`CheapGame`."""

    game: CheapGame

    def mean_risks(self, known: Mask) -> Floats:
        """Return the means over all rows of the risks of boundaries, (n_coalitions,)."""
        distinct, place = distinct_boundaries(self.oracle, known)
        return self.game.mean_risks(distinct)[place]

    def mean_path_risks(self, orders: Orders) -> Floats:
        """Return the `mean_risks` of all prefixes of orderings, (n_orderings, n_features + 1)."""
        position = np.argsort(orders, axis=1)
        known = position[:, None, :] < np.arange(orders.shape[1] + 1)[:, None]
        return self.mean_risks(known.reshape(-1, orders.shape[1])).reshape(known.shape[:2])


def distinct_boundaries(oracle: Oracle, known: Mask) -> tuple[Mask, Rows]:
    """Return the distinct boundaries of coalitions, and the place of each coalition's among them.

    Examples
    --------
    >>> from dsage import Graph
    >>> oracle = Graph(["a", "b", "y"], [("a", "b"), ("b", "y")]).oracle("y")
    >>> distinct_boundaries(oracle, np.array([[True, True], [False, True], [True, False]]))
    (array([[False,  True],
           [ True, False]]), array([0, 0, 1]))
    """
    boundaries = oracle.boundary(known)
    packed = np.packbits(boundaries, axis=1)
    keys = packed.view(np.dtype((np.void, packed.shape[1])))[:, 0]
    _, first, place = np.unique(keys, return_index=True, return_inverse=True)
    return boundaries[first], place
