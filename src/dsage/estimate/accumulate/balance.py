"""Values that add up although features have different numbers of units.

Along each ordering the surpluses add up, so their sum, the total, does not depend on the orderings.
It is known from the losses with no feature known and with all of them, or measured by units of all
features. If some features have further units, the sum of the values differs from this total T by a
remainder r, which has mean zero. With w'z = r, where z has the values and T, and with their
covariances M,

    z - M w r / (w' M w)

are the estimates of smallest variance that add up (generalized least squares): features with the
most units hardly change, and others gain from what these tell about the orderings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dsage._files import Arrays, arrays_under, nest_arrays
from dsage.estimate.accumulate.tally import Tally
from dsage.games.base import Floats, Mask, Rows

MOST_FEATURES = 1 << 10
"""Features up to which the matrices of their covariances are kept."""
_MAX_BYTES = 2**24
# Variances of a remainder below this share of those of the values are rounding errors.
_ROUNDING = 1e-20
# Largest share of a variance that a known total may explain.
_MOST_EXPLAINED = 0.9
_STATE = (
    "whole_visits",
    "whole_sums",
    "whole_mean",
    "within_pairs",
    "between_pairs",
    "whole_counts",
    "pair_counts",
)


def divide(remainder: Floats, covariances: Floats, variance: Floats) -> Floats:
    """Return what each of several estimates gets of a remainder, by generalized least squares.

    Parameters
    ----------
    remainder : array of shape (...)
        What the sum of the estimates misses.
    covariances : array of shape (..., n)
        The covariances of the estimates with their sum.
    variance : array of shape (...)
        The variance of the sum; if it is zero or unknown, nothing is divided.

    Examples
    --------
    >>> divide(np.array(0.4), np.array([3.0, 1.0, 0.0]), np.array(4.0))
    array([0.3, 0.1, 0. ])
    """
    covariances, variance = np.asarray(covariances), np.asarray(variance)[..., None]
    is_known = np.isfinite(variance) & (variance > 0)
    shares = np.divide(covariances, variance, out=np.zeros_like(covariances), where=is_known)
    divided: Floats = shares * np.asarray(remainder)[..., None]
    return divided


class PairTally(Tally):
    """A tally with the covariances of its columns, from the units that had all of them."""

    def __init__(self, shards: Sequence[Rows], n_columns: int) -> None:
        super().__init__(shards, n_columns)
        n_shards = len(shards)
        # Of units with all columns: their numbers and sums in the open epoch, and their means.
        self._whole_visits = np.zeros(n_shards, dtype=np.intp)
        self._whole_sums = np.zeros((2, n_shards, n_columns))
        self._whole_mean = np.zeros((2, n_columns))
        # Centered sums of products of two columns, as in `Tally`: xx, xc and cc.
        self._within_pairs = np.zeros((3, n_columns, n_columns))
        self._between_pairs = np.zeros((3, n_columns, n_columns))
        # Terms of these sums: within shards and epochs, and all.
        self._whole_counts = np.zeros(2, dtype=np.intp)
        # Units that had both of two columns.
        self._pair_counts = np.zeros((n_columns, n_columns))

    def state(self) -> Arrays:
        """Return the sums by name, without copying."""
        return super().state() | {name: vars(self)[f"_{name}"] for name in _STATE}

    def add(self, shard: int, value: Floats, control: Floats, wanted: Mask | None = None) -> None:
        """Add the mean surpluses of a unit and of its control; see :class:`Tally`."""
        super().add(shard, value, control, wanted)
        if wanted is not None and not wanted.all():
            at = np.flatnonzero(wanted)
            self._pair_counts[np.ix_(at, at)] += 1
            return
        self._pair_counts += 1
        pair, n, total = np.stack([value, control]), self._whole_visits[shard], self.n_whole
        off = pair - self._whole_sums[:, shard] / max(n, 1)
        self._within_pairs += _outer_products(off) * (n / (n + 1))
        off = pair - self._whole_mean
        self._between_pairs += _outer_products(off) * (total / (total + 1))
        self._whole_mean += off / (total + 1)
        self._whole_counts += (n > 0, 1)
        self._whole_visits[shard] += 1
        self._whole_sums[:, shard] += pair

    def next_epoch(self) -> None:
        """Treat the noise from now on as independent of the noise before."""
        super().next_epoch()
        self._whole_visits[:] = 0
        self._whole_sums[:] = 0.0

    @property
    def n_whole(self) -> int:
        """Number of units that had all columns."""
        return int(self._whole_counts[1])

    @property
    def counts_of_columns(self) -> npt.NDArray[np.intp]:
        """Number of units that had each column."""
        counts: npt.NDArray[np.intp] = self.visits.sum(axis=0)
        return counts

    def covariances(self, slope: float, drawn: Floats) -> tuple[Floats, int] | None:
        """Return the covariances of ``mean of x - slope * mean of c``, and their freedom.

        `drawn` are those from draws, which the variance within shards and epochs lacks, and the
        variance between shards has. None if some columns have visited all rows, and others have
        not, or too few units.
        """
        counts = np.maximum(self.counts_of_columns, 1)
        # Means of n and m units, k of them common, have the covariance k C / (n m).
        together = self._pair_counts / np.outer(counts, counts)
        n_within, n_whole = self._whole_counts.tolist()
        if self._is_within.all():
            shares = self._shares[:, None] ** 2 / np.maximum(self._visits, 1)
            uneven = np.sqrt(shares.sum(axis=0) * counts)
            within = _combine_pairs(self._within_pairs, slope) / n_within
            return within * together * np.outer(uneven, uneven) + drawn, n_within
        if n_whole < 2 or self._visits.all(axis=0).any():
            return None
        return _combine_pairs(self._between_pairs, slope) / (n_whole - 1) * together, n_whole - 1


class Adjustment(NamedTuple):
    """What makes values add up.

    What to add to each value, (n_features,), and the factor of its standard error.
    """

    shift: Floats
    factor: Floats


class Balance:
    """The covariances of values and of their total, from which values that add up are computed.

    Parameters
    ----------
    shards : sequence of int arrays
        The rows of each shard.
    n_features : int
        Number of features.
    n_replicates : int
        Number of pseudo-values per risk.
    max_bytes : int, default=2**24
        Memory for sums by row. Beyond it, only every k-th shard is tracked and represents all.
    """

    def __init__(
        self,
        shards: Sequence[Rows],
        n_features: int,
        n_replicates: int,
        max_bytes: int = _MAX_BYTES,
    ) -> None:
        n_columns = n_features + 1
        self._tally = PairTally(shards, n_columns)
        self._n_rows = sum(map(len, shards))
        n_bytes = 8 * self._n_rows * n_replicates * n_columns
        step = -(-n_bytes // max_bytes)
        tracked = range(0, len(shards), step)
        stops = np.cumsum([len(shards[shard]) for shard in tracked])
        self._at = {
            shard: slice(int(stop) - len(shards[shard]), int(stop))
            for shard, stop in zip(tracked, stops, strict=True)
        }
        self._shards = np.repeat(tracked, [len(shards[shard]) for shard in tracked])
        # Replicates of different epochs are independent: their sums vary as much as all together.
        self._replicates = np.zeros((int(stops[-1]), n_replicates, n_columns))

    def state(self) -> Arrays:
        """Return the sums by name, without copying."""
        return nest_arrays({"tally": self._tally.state(), "rows": {"replicates": self._replicates}})

    def restore(self, state: Mapping[str, Any]) -> None:
        """Return to the sums that `state` returned."""
        self._tally.restore(arrays_under(state, "tally"))
        self._replicates[...] = arrays_under(state, "rows")["replicates"]

    def add(self, shard: int, surplus: Floats, control: Floats, wanted: Mask | None) -> None:
        """Add the surpluses of a unit, (n_rows, n_replicates, n_features), and of its control.

        With `wanted`, only for these features; the total needs all of them.
        """
        if wanted is not None:
            wanted = np.append(wanted, wanted.all())
            surplus = np.where(wanted[:-1], surplus, 0.0)
        with_total = np.concatenate([surplus, surplus.sum(axis=2, keepdims=True)], axis=2)
        value, cheap = with_total.mean(axis=(0, 1)), np.append(control, control.sum())
        self._tally.add(shard, value, cheap, wanted)
        rows = self._at.get(shard)
        if rows is not None:
            at = slice(None) if wanted is None else np.flatnonzero(wanted)
            self._replicates[rows][..., at] += with_total[..., at]

    def next_epoch(self) -> None:
        """Treat the noise from now on as independent of the noise before."""
        self._tally.next_epoch()

    def adjust(
        self,
        slope: float,
        own: Floats,
        drawn: Floats,
        cheap: float = 0.0,
        find_total: Callable[[], tuple[float, float] | None] = lambda: None,
    ) -> Adjustment | None:
        """Return what makes the values add up; None if all features have the same units.

        Parameters
        ----------
        slope : float
            The slope on the first level.
        own, drawn : arrays of shape (n_features,)
            The variances of the values: in all, and from draws.
        cheap : float, default=0.0
            What the first level adds to the sum of the values.
        find_total : callable, optional
            Returns the sum of the values of all rows and its error, if it is known better than from
            the units of all features.
        """
        counts = self._tally.counts_of_columns
        if not counts[-1] or (counts == counts[-1]).all():
            return None
        value, control = self._tally.mean()
        z = value - slope * control
        found, total = self._tally.covariances(slope, self._drawn(drawn)), find_total()
        if total is not None:
            z[-1] = total[0] - cheap
        remainder = z[-1] - z[:-1].sum()
        if found is not None:
            covariances, freedom = found
            # Even a perfect correlation leaves the error of the features with the most units.
            most = 1.0 - counts[:-1] / counts.max()
            if total is not None:
                covariances[-1] = covariances[:, -1] = 0.0
                most = np.full_like(own, _MOST_EXPLAINED)
            se_total = 0.0 if total is None else total[1]
            adjusted = _adjust(remainder, covariances, freedom, most, se_total)
            if adjusted is not None:
                return adjusted
        # Without covariances, by variances, as far as others have more units.
        further = np.maximum(own, 0.0) * (1.0 - counts[:-1] / counts.max())
        shift = divide(remainder, further, further.sum())
        return Adjustment(shift, np.ones_like(shift))

    def _drawn(self, drawn: Floats) -> Floats:
        """Return the covariances from draws of values and total, given the variances of values.

        Draws affect some orderings more than others, which is part of the error from orderings:
        the covariances between replicates are scaled down to the given variances.
        """
        n_replicates = self._replicates.shape[1]
        visits = self._tally.visits[self._shards]
        if n_replicates == 1:
            return np.zeros((len(drawn) + 1, len(drawn) + 1))
        means = self._replicates / np.maximum(visits, 1)[:, None]
        off = (means - means.mean(axis=1, keepdims=True)).reshape(-1, len(drawn) + 1)
        n_used = np.maximum((visits > 0).mean(axis=0) * self._n_rows, 1.0)
        off = off / n_used
        scale = self._n_rows / len(self._shards) / (n_replicates * (n_replicates - 1))
        found: Floats = scale * (off.T @ off)
        raw = found.diagonal()[:-1]
        ratios = np.divide(drawn, raw, out=np.zeros_like(raw), where=raw > 0)
        of_total = drawn.sum() / raw.sum() if raw.sum() > 0 else 0.0
        factors = np.sqrt(np.clip(np.append(ratios, of_total), 0.0, 1.0))
        return found * np.outer(factors, factors)


def _adjust(
    remainder: float, covariances: Floats, freedom: int, most: Floats, se_total: float
) -> Adjustment | None:
    """Return what makes values add up, by generalized least squares; None for rounding errors.

    The total is the last column of the covariances. At most `most` of the variances is explained.
    `se_total` is an error of the total that the covariances lack.
    """
    signs = np.append(-np.ones(len(most)), 1.0)
    with_remainder = covariances @ signs
    variance = float(signs @ with_remainder)
    own = covariances.diagonal()[:-1]
    if not variance > _ROUNDING * own.sum():
        return None
    shift = divide(np.array(remainder), -with_remainder[:-1], np.array(variance))
    squares = with_remainder[:-1] ** 2
    explained = np.divide(squares, own * variance, out=np.zeros_like(own), where=own > 0)
    explained = np.minimum(explained, most)
    # An estimated slope takes a degree of freedom.
    more = np.where(explained > 0.0, 1.0 / max(freedom - 2, 1), 0.0)
    left = (1.0 - explained) * (1.0 + more) + explained * se_total**2 / variance
    return Adjustment(shift, np.sqrt(left))


def _outer_products(off: Floats) -> Floats:
    x, c = off
    return np.stack([np.outer(x, x), np.outer(x, c), np.outer(c, c)])


def _combine_pairs(products: Floats, slope: float) -> Floats:
    xx, xc, cc = products
    combined: Floats = xx - slope * (xc + xc.T) + slope**2 * cc
    return combined
