"""The first level: the mean surplus of a cheap game over all orderings."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from dsage.estimate.exact import Enumeration
from dsage.estimate.walk import by_feature, prefixes, separated_steps
from dsage.games.base import Floats, Orders
from dsage.games.moment import MomentGame
from dsage.graphs.separation import Oracle
from dsage.orderings import Orderings

# Units of this level are keyed apart from those of the others.
_FIRST_UNIT = 1 << 41
_AT_ONCE = 64
MOST_COALITIONS = 1 << 16
"""So many risks of a cheap game are computed to average over all orderings."""
# Its orderings may be so many times those of the main level, plus a few to start with.
_MOST_TIMES = 256


class MeanWalk(Protocol):
    """A way to turn orderings into the mean surpluses of a cheap game over all rows."""

    def __call__(self, orders: Orders) -> Floats:
        """Return the mean surpluses along orderings, (n_orderings, n_features)."""
        ...


class MeanPrefixes:
    """Mean surpluses of the moment game at prefixes: see :class:`MeanWalk`."""

    def __init__(self, game: MomentGame, oracle: Oracle | None) -> None:
        self._game, self._oracle = game, oracle

    def __call__(self, orders: Orders) -> Floats:
        """Return the mean surpluses along orderings."""
        skipped = separated_steps(self._oracle, prefixes(orders), orders)
        steps = -np.diff(self._game.mean_path_risks(orders), axis=1)
        steps[skipped] = 0.0
        return by_feature(steps, orders)


class MeanBoundaries:
    """Mean surpluses of the moment game at boundaries: see :class:`MeanWalk`."""

    def __init__(self, game: MomentGame, oracle: Oracle) -> None:
        self._game, self._oracle = game, oracle

    def __call__(self, orders: Orders) -> Floats:
        """Return the mean surpluses along orderings."""
        known = prefixes(orders)
        boundaries = self._oracle.boundary(known.reshape(-1, known.shape[-1]))
        packed = np.packbits(boundaries, axis=1)
        keys = packed.view(np.dtype((np.void, packed.shape[1])))[:, 0]
        _, first, place = np.unique(keys, return_index=True, return_inverse=True)
        risks = self._game.mean_risks(boundaries[first])[place].reshape(known.shape[:2])
        return by_feature(risks[:, :-1] - risks[:, 1:], orders)


class Control:
    """The mean over orderings of the surpluses of a moment game, on all rows at once.

    Parameters
    ----------
    game : MomentGame
        The game.
    walk : MeanWalk
        Of the game on all rows at once.
    orderings : Orderings
        The orderings.
    enumeration : Enumeration, optional
        All orderings at once, where that is possible.
    """

    def __init__(
        self,
        game: MomentGame,
        walk: MeanWalk,
        orderings: Orderings,
        enumeration: Enumeration | None,
    ) -> None:
        n_features = len(game.feature_names)
        self._orderings = orderings
        self._walk = walk
        self.n_units = 0
        self.mean: Floats = np.zeros(n_features)
        self._spread: Floats = np.zeros(n_features)
        self.is_exact = enumeration is not None and enumeration.n_coalitions <= MOST_COALITIONS
        if enumeration is not None and self.is_exact:
            self.mean = enumeration.coefficients @ game.mean_risks(enumeration.coalitions)

    STATE = ("n_units", "mean", "_spread")
    """The attributes that change."""

    @property
    def n_orderings(self) -> int:
        """Number of orderings so far."""
        return self.n_units * self._orderings.unit_size

    @property
    def variance(self) -> Floats:
        """The variance of the mean."""
        if self.is_exact:
            return np.zeros_like(self.mean)
        if self.n_units < 2:
            return np.full_like(self.mean, np.inf)
        return self._spread / (self.n_units - 1) / self.n_units

    def refine(self, bound: float, n_main_units: int) -> None:
        """Add units until the variances sum to no more than `bound`, or there are very many."""
        most = _MOST_TIMES * (n_main_units + 4)
        while not self.is_exact and self.n_units < most and not self.variance.sum() <= bound:
            self._add(_AT_ONCE)

    def _add(self, n_units: int) -> None:
        first = _FIRST_UNIT + self.n_units
        orders = [self._orderings.block(first + unit) for unit in range(n_units)]
        values = self._walk(np.concatenate(orders))
        for unit in values.reshape(n_units, -1, values.shape[-1]).mean(axis=1):
            off = unit - self.mean
            self.n_units += 1
            self.mean = self.mean + off / self.n_units
            self._spread += off * (unit - self.mean)
