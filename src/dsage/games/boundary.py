"""A game evaluated at Markov boundaries."""

from __future__ import annotations

from dsage._check import refusal
from dsage.games.base import Floats, Game, Mask, Rows, Wrapped
from dsage.graphs.separation import Oracle, as_oracle


def check_oracle(oracle: object, game: Game) -> Oracle:
    """Return an oracle about the features of a game, in their order; refuse any other."""
    checked, names = as_oracle(oracle), tuple(game.feature_names)
    if tuple(checked.feature_names) != names:
        condition = f"about the features of the game in their order, {names}"
        advice = "Make it with graph.oracle(target, features=...)"
        raise refusal("oracle", condition, tuple(checked.feature_names), advice)
    if None not in (game.members, checked.members) and game.members != checked.members:
        condition = f"of the groups of the game, {game.members}"
        raise refusal("oracle", condition, checked.members, "Give both the same groups")
    return checked


class Boundary(Wrapped):
    """A game evaluated at Markov boundaries: the risk of S is the risk of M(S).

    For an optimal model and a correct graph this changes nothing: given M(S), the target does not
    depend on the rest of S. But many coalitions share a boundary.

    Parameters
    ----------
    game : Game
        The game.
    oracle : Oracle
        The oracle of the boundaries, for the same features in the same order.
    """

    def __init__(self, game: Game, oracle: Oracle) -> None:
        super().__init__(game)
        self.oracle = check_oracle(oracle, self.game)

    def risks(self, known: Mask, rows: Rows, epoch: int = 0) -> Floats:
        """Return the risks of the boundaries of coalitions, each evaluated once per call."""
        distinct, place = self.oracle.distinct_boundaries(known)
        return self.game.risks(distinct, rows, epoch)[place]

    def mean_risks(self, known: Mask) -> Floats:
        """Return the means over all rows of the risks of boundaries, (n_coalitions,)."""
        distinct, place = self.oracle.distinct_boundaries(known)
        return self.game.mean_risks(distinct)[place]

    def draw_bias(self) -> Game | None:
        """Return the game of the bias that few draws leave, at boundaries."""
        bias = self.game.draw_bias()
        return None if bias is None else Boundary(bias, self.oracle)

    def first_level(self) -> Game | None:
        """Return the first level of the game, at the same boundaries."""
        cheap = self.game.first_level()
        return None if cheap is None else Boundary(cheap, self.oracle)
