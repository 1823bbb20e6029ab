"""A game whose players are groups of features."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from dsage.data.groups import Groups
from dsage.games.base import Floats, Game, Mask, Orders, Paths, Rows
from dsage.games.moment import CheapGame
from dsage.games.wrap import require_game


class Grouped:
    """A game of groups: a group is known when all its members are.

    The risk of a set of groups is that of the union of their members, so the values are the
    Shapley values of the groups, ``phi_g = mean over orderings of groups of L(U) - L(U + g)``, with
    U the members of the groups before g. That is not the sum of the members' own values: see the
    guide.

    Parameters
    ----------
    game : Game
        The game of the features.
    groups : mapping of str to iterables of str
        The members of each group, by name. A feature in no group stays a player of its own, under
        its own name; the groups come first, in the order given.

    Attributes
    ----------
    feature_names : tuple of str
        The players.

    Examples
    --------
    Three columns that say nearly the same share what they are worth; two of them as one player
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
        require_game(game)
        self.game = game
        self._players = Groups(groups, game.feature_names)
        self.feature_names = self._players.names
        self.n_rows = game.n_rows
        self.n_replicates = game.n_replicates
        self.is_drawn: bool = getattr(game, "is_drawn", game.n_replicates > 1)
        self.weights: Floats | None = getattr(game, "weights", None)
        if isinstance(game, Paths):
            self._paths = game.path_risks
            self.path_risks = self._path_risks

    @property
    def members(self) -> dict[str, tuple[str, ...]]:
        """The members of each group that was given."""
        return self._players.members

    @property
    def n_predicted(self) -> int:
        """Rows that the model was asked for; 0 for a game without a model."""
        return int(getattr(self.game, "n_predicted", 0))

    def risks(self, known: Mask, rows: Rows, epoch: int = 0) -> Floats:
        """Return the risks of coalitions of groups; see :class:`Game`."""
        return self.game.risks(self._players.expanded(known), rows, epoch)

    def _path_risks(self, orders: Orders, rows: Rows, epoch: int, needed: Mask) -> Floats:
        """Return the risks of prefixes, asking only where a group ends; see :class:`Paths`."""
        features, ends = self._players.orders(orders)
        at = np.zeros((len(orders), features.shape[1] + 1), dtype=np.bool_)
        np.put_along_axis(at, ends, needed, axis=1)
        risks = self._paths(features, rows, epoch, at)
        return np.take_along_axis(risks, ends[:, :, None, None], axis=1)

    def moment_game(self) -> CheapGame | None:
        """Return the cheap game of the groups; None where there is none of the features."""
        make = getattr(self.game, "moment_game", None)
        cheap = None if make is None else make()
        return None if cheap is None else _GroupedMoments(cheap, self._players.members)


class _GroupedMoments(Grouped):
    """The cheap game of groups; see :class:`CheapGame`."""

    game: CheapGame

    def mean_risks(self, known: Mask) -> Floats:
        """Return the means over all rows of the risks of coalitions, (n_coalitions,)."""
        return self.game.mean_risks(self._players.expanded(known))

    def mean_path_risks(self, orders: Orders) -> Floats:
        """Return the `mean_risks` of all prefixes of orderings, (n_orderings, n_players + 1)."""
        features, ends = self._players.orders(orders)
        return np.take_along_axis(self.game.mean_path_risks(features), ends, axis=1)
