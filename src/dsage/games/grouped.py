"""A game whose players are groups of features."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from dsage.data.groups import Groups
from dsage.games.base import Floats, Game, Mask, Orders, Rows, Wrapped
from dsage.graphs.interventions import GroupedInterventions


class Grouped(Wrapped):
    """A game of groups: a group is known when all its members are.

    The risk of a set of groups is the risk of the union of their members, so the values are the
    Shapley values of the groups, ``phi_g = mean over orderings of groups of L(U) - L(U + g)``,
    where U are the members of the groups before g. They are not the sums of the members'
    values: see the guide.

    Parameters
    ----------
    game : Game
        The game of the features.
    groups : mapping of str to iterables of str
        The members of each group, by name. A feature in no group remains a separate player; the
        groups come first, in the order given.

    Attributes
    ----------
    feature_names : tuple of str
        The players.

    Examples
    --------
    Three nearly identical columns share their worth equally; grouped into one player, two of them
    get half of it, not two thirds.

    >>> from sklearn.linear_model import LinearRegression
    >>> from dsage.estimate import run
    >>> from dsage.games import LossGame
    >>> from dsage.samplers import Gaussian
    >>> generator = np.random.default_rng(0)
    >>> y = generator.normal(size=500)
    >>> y /= y.std()
    >>> X = y[:, None] + 0.001 * generator.normal(size=(500, 3))
    >>> game = LossGame(LinearRegression().fit(X, y), Gaussian().fit(X), X, y)
    >>> run(game).values.round(2)
    array([0.33, 0.33, 0.33])
    >>> pair = Grouped(game, {"pair": ["X1", "X2"]})
    >>> pair.feature_names, run(pair).values.round(2)
    (('pair', 'X3'), array([0.5, 0.5]))
    """

    def __init__(self, game: Game, groups: Mapping[str, Iterable[str]]) -> None:
        super().__init__(game)
        self._players = Groups(groups, self.game.feature_names)
        self.feature_names = self._players.names
        self.has_paths = self.game.has_paths
        if self.game.interventions is not None:
            self.interventions = GroupedInterventions(self.game.interventions, self._players)

    @property
    def members(self) -> dict[str, tuple[str, ...]]:
        """The members of each group that was given."""
        return self._players.members

    def risks(self, known: Mask, rows: Rows, epoch: int = 0) -> Floats:
        """Return the risks of coalitions of groups; see :class:`Game`."""
        return self.game.risks(self._expanded(known), rows, epoch)

    def _expanded(self, known: Mask) -> Mask:
        """Return coalitions of features; what is set and what the model receives side by side."""
        n_players = len(self.feature_names)
        sides = [known[:, at : at + n_players] for at in range(0, known.shape[1], n_players)]
        return np.concatenate([self._players.expanded(side) for side in sides], axis=1)

    def path_risks(self, orders: Orders, rows: Rows, epoch: int, needed: Mask) -> Floats:
        """Return the risks of prefixes; the game is evaluated only where a group ends."""
        features, ends = self._players.orders(orders)
        at = np.zeros((len(orders), features.shape[1] + 1), dtype=np.bool_)
        np.put_along_axis(at, ends, needed, axis=1)
        risks = self.game.path_risks(features, rows, epoch, at)
        return np.take_along_axis(risks, ends[:, :, None, None], axis=1)

    def first_level(self) -> Game | None:
        """Return the first level of the game, with the same groups."""
        cheap = self.game.first_level()
        return None if cheap is None else Grouped(cheap, self.members)

    def apart(self) -> Game | None:
        """Return the game with the risks of its outputs apart, with the same groups."""
        apart = self.game.apart()
        return None if apart is None else Grouped(apart, self.members)

    def draw_bias(self) -> Game | None:
        """Return the game of the bias that few draws leave, with the same groups."""
        bias = self.game.draw_bias()
        return None if bias is None else Grouped(bias, self.members)

    def known_total(self) -> tuple[float, float] | None:
        """Return what all features together lower the risk by, and its error."""
        return self.game.known_total()

    def first_levels(self) -> tuple[Game, ...]:
        """Return the first levels of the outputs, with the same groups."""
        return tuple(Grouped(level, self.members) for level in self.game.first_levels())

    def mean_risks(self, known: Mask) -> Floats:
        """Return the means over all rows of the risks of coalitions, (n_coalitions,)."""
        return self.game.mean_risks(self._expanded(known))

    def mean_path_risks(self, orders: Orders) -> Floats:
        """Return the `mean_risks` of all prefixes of orderings, (n_orderings, n_players + 1)."""
        features, ends = self._players.orders(orders)
        return np.take_along_axis(self.game.mean_path_risks(features), ends, axis=1)
