"""Means over units and shards of rows, and their variances over orderings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dsage._files import Arrays
from dsage.games.base import Floats, Mask, Rows

# Degrees of freedom needed before the variance within shards is trusted.
_ENOUGH = 10
# Standard deviations of a control below this share of the means are due to rounding, as where the
# surpluses of the first level do not depend on the ordering: a slope on it would be noise.
_ROUNDING = 1e-10
_STATE = (
    "sums",
    "visits",
    "epoch_visits",
    "epoch_sums",
    "all_mean",
    "within",
    "freedom",
    "between",
)


class Tally:
    """The mean of a term over units, with a control variate.

    A unit is evaluated on one shard; each pass visits every shard once. The estimate is the mean
    over shards, weighted by their rows, of the means over their units. The variance between units
    of one shard and epoch estimates the error from orderings. Until there are enough of these, the
    variance between all units takes its place; it includes the variance between rows, so it is too
    large rather than too small.

    With a control c of known mean m, the estimate is ``mean of x - beta (mean of c - m)``, and
    beta is the slope of x on c over units, shared by all features.

    A unit may have some of the features only: each feature has its own number of units.
    """

    def __init__(self, shards: Sequence[Rows], n_features: int) -> None:
        sizes = np.array([len(shard) for shard in shards], dtype=np.float64)
        self._shares = sizes / sizes.sum()
        n_shards = len(shards)
        self.counts: npt.NDArray[np.intp] = np.zeros(n_shards, dtype=np.intp)
        # First axis: the quantity and its control.
        self._sums = np.zeros((2, n_shards, n_features))
        # Units that had the feature, in all and in the open epoch.
        self._visits = np.zeros((n_shards, n_features), dtype=np.intp)
        self._epoch_visits = np.zeros((n_shards, n_features), dtype=np.intp)
        self._epoch_sums = np.zeros((2, n_shards, n_features))
        self._all_mean = np.zeros((2, n_features))
        # Centered sums of products xx, xc and cc: within shards and epochs, and of all units.
        self._within = np.zeros((3, n_features))
        self._freedom = np.zeros(n_features, dtype=np.int64)
        self._between = np.zeros((3, n_features))

    def state(self) -> Arrays:
        """Return the sums by name, without copying."""
        return {"counts": self.counts} | {name: vars(self)[f"_{name}"] for name in _STATE}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Return to the sums that `state` returned."""
        for name, own in self.state().items():
            own[...] = state[name]

    @property
    def n_units(self) -> int:
        """Number of units so far."""
        return int(self.counts.sum())

    def add(self, shard: int, value: Floats, control: Floats, wanted: Mask | None = None) -> None:
        """Add the mean surpluses of a unit and of its control, (n_features,) each.

        With `wanted`, only these features are added.
        """
        at = slice(None) if wanted is None else np.flatnonzero(wanted)
        pair = np.stack([value, control])[:, at]
        n = self._epoch_visits[shard, at]
        off = pair - self._epoch_sums[:, shard, at] / np.maximum(n, 1)
        self._within[:, at] += _products(off) * (n / (n + 1))
        self._freedom[at] += n > 0
        total = self._visits[:, at].sum(axis=0)
        off = pair - self._all_mean[:, at]
        self._between[:, at] += _products(off) * (total / (total + 1))
        self._all_mean[:, at] += off / (total + 1)
        self.counts[shard] += 1
        self._visits[shard, at] += 1
        self._epoch_visits[shard, at] += 1
        self._sums[:, shard, at] += pair
        self._epoch_sums[:, shard, at] += pair

    def next_epoch(self) -> None:
        """Treat the noise from now on as independent of the noise before."""
        self._epoch_visits[:] = 0
        self._epoch_sums[:] = 0.0

    @property
    def slope(self) -> float:
        """The slope on the control: 0 if it varies only by rounding, or with too few units."""
        spread = np.where(self._is_within, self._within, self._between)
        rounding = self.n_units * _ROUNDING**2 * (self._all_mean**2).sum()
        if self.n_units < 3 or not spread[2].sum() > rounding:
            return 0.0
        freedoms = self.freedoms
        if (freedoms != freedoms[0]).any():
            # The variances of units count, not how many units a feature has.
            spread = spread / freedoms
        return float(spread[1].sum() / spread[2].sum())

    @property
    def visits(self) -> npt.NDArray[np.intp]:
        """Number of units that had each feature, by shard."""
        return self._visits

    def mean(self) -> tuple[Floats, Floats]:
        """Return the means of the quantity and of its control."""
        is_visited = self._visits.all(axis=0)
        if not is_visited.any():
            # With very many shards, the means of each of them take a lot of memory.
            value, control = self._all_mean.copy()
            return value, control
        by_shard = np.einsum("s,qsf->qf", self._shares, self._sums / np.maximum(self._visits, 1))
        value, control = np.where(is_visited, by_shard, self._all_mean)
        return value, control

    def variance(
        self,
        slope: float = 0.0,
        gap: Floats | None = None,
        drawn: Floats | None = None,
        *,
        is_exact: bool = False,
    ) -> Floats:
        """Return the variance of ``mean of x - slope * mean of c`` over orderings.

        `gap` is the mean of the control minus its exact mean, which multiplies an error of the
        slope. `drawn` is the variance of the mean from draws: units on different rows also differ
        by their draws, so it is subtracted from the variance between them. With `is_exact`, units
        vary only by their rows, and the variance is zero once every shard was visited. It is inf
        for a single unit.
        """
        n_units, n_features = self.n_units, self._between.shape[1]
        if is_exact and self.counts.all():
            return np.zeros(n_features)
        if n_units < 2:
            return np.full(n_features, np.inf)
        # All features share the one degree of freedom that the slope takes.
        freedom = self.freedoms - (slope != 0.0) / n_features
        is_within = self._is_within
        spread = np.where(is_within, self._within, self._between)
        residual = _combine(spread, slope) / freedom
        between = residual / np.maximum(self._visits.sum(axis=0), 1)
        if drawn is not None:
            between = np.maximum(between - drawn, 0.0)
        if is_exact:
            between *= 1.0 - n_units / len(self.counts)
        variance: Floats = between
        if is_within.any():
            # Along contiguous rows, where a sum does not depend on the number of features.
            shares = self._shares[:, None] ** 2 / np.maximum(self._visits, 1)
            within = residual * np.ascontiguousarray(shares.T).sum(axis=1)
            variance = np.where(is_within, within, between)
        if slope and gap is not None:
            # The ratio first: the squares of large values would overflow.
            variance += gap**2 * (residual.sum() / spread[2].sum())
        return variance

    @property
    def df(self) -> int:
        """Degrees of freedom of the variance: the fewest of any feature."""
        return int(self.freedoms.min())

    @property
    def freedoms(self) -> npt.NDArray[np.int64]:
        """Degrees of freedom of the variance of each feature."""
        between = np.maximum(self._visits.sum(axis=0) - 1, 1)
        return np.where(self._is_within, self._freedom, between)

    @property
    def _is_within(self) -> Mask:
        """Whether the variance of each feature is that within shards and epochs."""
        is_enough: Mask = self._freedom >= max(_ENOUGH, len(self.counts) // 4)
        is_enough &= self._visits.all(axis=0)
        return is_enough


def _products(off: Floats) -> Floats:
    return np.stack([off[0] * off[0], off[0] * off[1], off[1] * off[1]])


def _combine(products: Floats, slope: float) -> Floats:
    combined: Floats = products[0] - 2.0 * slope * products[1] + slope**2 * products[2]
    return np.maximum(combined, 0.0)
