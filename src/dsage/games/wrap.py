"""A game played at Markov boundaries."""

from __future__ import annotations

from dsage._check import message
from dsage.games.base import Floats, Game, Mask, Rows
from dsage.graphs.separation import Oracle


def require_same_features(oracle: Oracle, game: Game) -> None:
    """Refuse an oracle about other features than the game's, or in another order."""
    if tuple(oracle.feature_names) != tuple(game.feature_names):
        raise ValueError(
            message(
                "oracle",
                f"about the features of the game in their order, {tuple(game.feature_names)}",
                tuple(oracle.feature_names),
                "Make it with graph.oracle(target, features=...)",
            )
        )


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
        self.n_groups = game.n_groups

    def risks(self, known: Mask, rows: Rows, epoch: int = 0) -> Floats:
        """Return the risks of the boundaries of the coalitions; see :class:`Game`."""
        return self.game.risks(self.oracle.boundary(known), rows, epoch)
