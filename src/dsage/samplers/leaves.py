"""A mixture of boxes within which features are independent, such as the leaves of a forest.

Density, conditional weights and draws are in closed form for any coalition.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri

from dsage.samplers.checks import Floats, Ints, Mask

# Continuous features are standardized. The deviation of a feature that hardly varies in a leaf is
# at least this for densities, so that none is infinite.
SMALLEST_SCALE = 0.01

# Leaves x rows of one chunk of weights: a few arrays of this many numbers stay in the cache.
_CHUNK = 2**18
_SHRINK = 0.5  # steps of the moment matching change a scale by a factor of 2 at most
_REACH = 5.0  # how far matching may move a center or a scale, in deviations of the leaf's rows
_STEPS = 20
_ALMOST_ONE = 1.0 - 2.0**-53
_TINY = 2.0**-1022


class Boxes(NamedTuple):
    """The bounds of the leaves, and their rows."""

    low: Floats  # (n_leaves, n_features), exclusive
    high: Floats  # (n_leaves, n_features), inclusive
    leaf_of: Ints  # (n_trees, n_rows): the leaf of each row, numbered over all trees


class Posterior(NamedTuple):
    """Weights of leaves given known features; leaves without weight are left out."""

    start: Ints  # (n_rows + 1,): row i has the pairs from start[i] to start[i + 1]
    leaf: Ints  # (n_pairs,)
    weight: Floats  # (n_pairs,): up to a factor per row


class Leaves:
    """Weights and within-leaf distributions of a mixture of boxes.

    ``p(x) = sum_l weight_l prod_j p_lj(x_j)``, where ``p_lj`` is a normal truncated to the box or a
    table of probabilities. Arrays are (n_features, n_leaves), so that one feature is contiguous.
    """

    def __init__(self, X: Floats, n_categories: Ints, boxes: Boxes, smoothing: float) -> None:
        n_trees, n_rows = boxes.leaf_of.shape
        n_leaves, n_features = boxes.low.shape
        flat = boxes.leaf_of.ravel()
        order = np.argsort(flat, kind="stable")
        count = np.bincount(flat, minlength=n_leaves)
        starts = np.concatenate([[0], np.cumsum(count)[:-1]])
        self.n_categories = n_categories
        self.log_weight = np.log(count / (n_trees * n_rows))
        self.low = np.ascontiguousarray(boxes.low.T)
        self.high = np.ascontiguousarray(boxes.high.T)
        self.center = np.zeros((n_features, n_leaves))
        self.scale = np.ones((n_features, n_leaves))
        self.log_norm = np.zeros((n_features, n_leaves))
        self.mean = np.zeros((n_features, n_leaves))
        self.is_constant = np.zeros((n_features, n_leaves), dtype=bool)
        self.probability: list[Floats | None] = [None] * n_features
        for feature in range(n_features):
            values = np.tile(X[:, feature], n_trees)[order]
            if n_categories[feature]:
                self._fit_table(feature, values, flat[order], count, smoothing)
            else:
                self._fit_normal(feature, values, starts, count)
        self._arrange()
        self._tabulate()

    def _fit_normal(self, feature: int, values: Floats, starts: Ints, count: Ints) -> None:
        smallest = np.minimum.reduceat(values, starts)
        constant = smallest == np.maximum.reduceat(values, starts)
        mean = np.where(constant, smallest, np.add.reduceat(values, starts) / count)
        squares = (values - np.repeat(mean, count)) ** 2
        deviation = np.sqrt(np.add.reduceat(squares, starts) / np.maximum(count - 1, 1))
        deviation = np.maximum(deviation, SMALLEST_SCALE)
        low, high = self.low[feature], self.high[feature]
        center, scale = match_moments(mean, deviation, low, high)
        self.center[feature], self.scale[feature] = center, scale
        self.log_norm[feature] = -np.log(scale) - log_mass(center, scale, low, high)
        self.log_norm[feature] -= 0.5 * np.log(2 * np.pi)
        self.is_constant[feature] = constant
        inside = truncated_moments(center, scale, low, high)[0]
        self.mean[feature] = np.where(constant, smallest, inside)

    def _fit_table(
        self, feature: int, values: Floats, leaf: Ints, count: Ints, smoothing: float
    ) -> None:
        """Count categories; add ``smoothing`` rows with the overall shares of the categories."""
        categories = np.arange(self.n_categories[feature])[:, None]
        codes = values.astype(np.intp)
        counts = np.zeros((len(categories), len(count)))
        np.add.at(counts, (codes, leaf), 1.0)
        # Half a row per category, so that a category without rows is possible where allowed.
        overall = np.bincount(codes, minlength=len(categories)) + 0.5
        allowed = (categories > self.low[feature]) & (categories <= self.high[feature])
        prior = np.where(allowed, overall[:, None], 0.0)
        counts += smoothing * prior / prior.sum(axis=0)
        probability = counts / counts.sum(axis=0)
        self.probability[feature] = probability
        self.mean[feature] = (categories * probability).sum(axis=0)

    def _arrange(self) -> None:
        """Order the leaves as a balanced tree of halves, split by the feature that differs most.

        Leaves low..high - 1 of a node are split at the middle, which is not the middle of any other
        node; `split_on` there is the feature whose means are lower in the first half.
        """
        weight = np.exp(self.log_weight)
        spread = self.mean - (self.mean * weight).sum(axis=1, keepdims=True)
        size = np.sqrt((spread**2 * weight).sum(axis=1, keepdims=True))
        spread /= np.where(size > 0, size, 1.0)
        order = np.arange(len(weight))
        self.split_on = np.zeros(len(weight), dtype=np.intp)
        nodes = [(0, len(weight))]
        while nodes:
            low, high = nodes.pop()
            if high - low < 2:
                continue
            middle = (low + high) // 2
            within = spread[:, order[low:high]]
            feature = int(within.var(axis=1).argmax())
            self.split_on[middle] = feature
            order[low:high] = order[low:high][np.argsort(within[feature], kind="stable")]
            nodes += [(low, middle), (middle, high)]
        self.log_weight = self.log_weight[order]
        for name in ("low", "high", "center", "scale", "log_norm", "mean", "is_constant"):
            setattr(self, name, np.ascontiguousarray(getattr(self, name)[:, order]))
        self.probability = [
            None if table is None else np.ascontiguousarray(table[:, order])
            for table in self.probability
        ]

    def _tabulate(self) -> None:
        """Compute what every call needs."""
        self._slope = 1.0 / (self.scale * np.sqrt(2.0))
        self._bounded = [
            np.flatnonzero(np.isfinite(low) | np.isfinite(high))
            for low, high in zip(self.low, self.high, strict=True)
        ]
        tables = self.probability
        with np.errstate(divide="ignore"):
            self._log_probability = [None if table is None else np.log(table) for table in tables]
        self._cumulative = [None if table is None else _cumulate(table) for table in tables]
        lower, upper = (self.low - self.center) / self.scale, (self.high - self.center) / self.scale
        self._below, self._upto = ndtr(lower), ndtr(upper)

    def __len__(self) -> int:
        return len(self.log_weight)

    @property
    def chunk_size(self) -> int:
        """The number of rows to pass to `posterior` at a time."""
        return max(1, _CHUNK // len(self))

    def posterior(self, X: Floats, known: Mask) -> tuple[Posterior, Mask]:
        """Return the weights of the leaves given the known features, up to a factor per row.

        ``weight_l prod_j p_lj(x_j)`` over the known j; the largest of a row is 1. The second array
        (n_rows,) marks rows that no leaf allows; they get the weights of the empty coalition.
        """
        features = np.flatnonzero(known)
        inside = self._inside(X, features)
        # Row by row: flatnonzero is several times faster than nonzero of two dimensions.
        leaves = [np.flatnonzero(of_row) for of_row in inside]
        row = np.repeat(np.arange(len(X)), [len(of_row) for of_row in leaves])
        leaf = np.concatenate(leaves)
        logs = self._logs(X, features, row, leaf)
        start = np.searchsorted(row, np.arange(len(X) + 1))
        # A row without leaves has no maximum.
        impossible = start[1:] == start[:-1]
        top = np.full(len(X), -np.inf)
        if len(logs):
            top[~impossible] = np.maximum.reduceat(logs, start[:-1][~impossible])
        impossible = ~np.isfinite(top)
        if impossible.any():
            some = ~impossible[row]
            row, leaf, logs = row[some], leaf[some], logs[some]
            alone = np.repeat(np.flatnonzero(impossible), len(self))
            row = np.concatenate([row, alone])
            leaf = np.concatenate([leaf, np.tile(np.arange(len(self)), impossible.sum())])
            logs = np.concatenate([logs, np.tile(self.log_weight, impossible.sum())])
            order = np.argsort(row, kind="stable")
            row, leaf, logs = row[order], leaf[order], logs[order]
            start = np.searchsorted(row, np.arange(len(X) + 1))
            top[impossible] = self.log_weight.max()
        logs -= top[row]
        return Posterior(start, leaf, np.exp(logs)), impossible

    def _inside(self, X: Floats, features: Ints) -> Mask:
        """Return which leaves (n_rows, n_leaves) have these features of a row in their bounds."""
        inside = np.ones((len(X), len(self)), dtype=bool)
        holds = np.empty_like(inside)
        for feature in features:
            low, high = self.low[feature], self.high[feature]
            at, x = self._bounded[feature], X[:, feature, None]
            if 6 * len(at) < len(self):
                inside[:, at] &= (x > low[at]) & (x <= high[at])
            else:
                inside &= np.greater(x, low, out=holds)
                inside &= np.less_equal(x, high, out=holds)
        return inside

    def _logs(self, X: Floats, features: Ints, row: Ints, leaf: Ints) -> Floats:
        """Return the log of weight times densities of these features, for pairs of row and leaf."""
        base = self.log_weight.copy()
        for feature in features:
            base += self.log_norm[feature]
        logs: Floats = base[leaf]
        with np.errstate(over="ignore"):
            for feature in features:
                x = X[row, feature]
                table = self._log_probability[feature]
                if table is not None:
                    logs += table[x.astype(np.intp), leaf]
                    continue
                x -= self.center[feature, leaf]
                x *= self._slope[feature, leaf]
                x *= x
                logs -= x
        return logs

    def draw(self, leaf: Ints, feature: int, noise: Floats) -> Floats:
        """Draw one feature within the given leaves, by inverting its distribution there."""
        cumulative = self._cumulative[feature]
        if cumulative is not None:
            codes = np.zeros(leaf.shape)
            for share in cumulative[:-1]:
                codes += noise > share[leaf]
            return codes
        below, upto = self._below[feature, leaf], self._upto[feature, leaf]
        uniform = np.clip(below + noise * (upto - below), _TINY, _ALMOST_ONE)
        values = self.center[feature, leaf] + self.scale[feature, leaf] * ndtri(uniform)
        values = np.clip(values, self.low[feature, leaf], self.high[feature, leaf])
        constant = self.is_constant[feature, leaf]
        drawn: Floats = np.where(constant, self.mean[feature, leaf], values)
        return drawn

    def mean_given(self, posterior: Posterior, features: Sequence[int]) -> Floats:
        """Return the means (n_rows, len(features)) of the mixture with these weights."""
        start, leaf, weight = posterior
        total = np.add.reduceat(weight, start[:-1])
        sums = [np.add.reduceat(weight * self.mean[at, leaf], start[:-1]) for at in features]
        return np.stack(sums, axis=1) / total[:, None]


def _cumulate(table: Floats) -> Floats:
    """Sum probabilities (n_categories, n_leaves) over categories."""
    cumulative = np.cumsum(table, axis=0)
    # Exactly 1 from the last possible category on: rounding must not reach a later one.
    later = np.cumsum(table[::-1], axis=0)[::-1]
    cumulative[:-1][later[1:] == 0] = 1.0
    return cumulative


def choose_leaves(posterior: Posterior, split_on: Ints, noise: Floats) -> tuple[Ints, Floats]:
    """Choose a leaf for every draw (n_rows, n_draws), by halves; also return the remaining noise.

    Each step goes to the lower or the upper half of the leaves, by the uniform of the feature in
    which the halves differ. The position of the uniform within its half's share is uniform in
    (0, 1) again, independent of the half, and replaces it. So a feature's own uniform decides
    whether it is low or high, and equal noise gives similar draws for different coalitions.

    Some weights of each row are positive. Those of a single row are used for all rows of noise.
    """
    n_leaves, n_rows = len(split_on), len(posterior.start) - 1
    summed = np.zeros((n_rows, n_leaves + 1))
    row = np.repeat(np.arange(n_rows), np.diff(posterior.start))
    summed[row, posterior.leaf + 1] = posterior.weight
    np.cumsum(summed, axis=1, out=summed)
    at = np.arange(n_rows)[:, None] * (n_leaves + 1)
    rest = noise.copy()
    low = np.zeros(noise.shape[:2], dtype=np.intp)
    high = np.full(noise.shape[:2], n_leaves)
    while (going := high - low > 1).any():
        middle = (low + high) // 2
        split = split_on[np.minimum(middle, n_leaves - 1)][:, :, None]
        uniform = np.take_along_axis(rest, split, axis=2)[:, :, 0]
        between = summed.take(at + middle)
        lower, upper = between - summed.take(at + low), summed.take(at + high) - between
        target = uniform * (lower + upper)
        # Never to a half without weight, however the products round.
        is_lower = (upper <= 0) | ((target < lower) & (lower > 0))
        # The quotient of the other half is not used.
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            left = np.where(is_lower, target / lower, (target - lower) / upper)
        left = np.where(going, np.clip(left, _TINY, _ALMOST_ONE), uniform)
        np.put_along_axis(rest, split, left[:, :, None], axis=2)
        low = np.where(going & ~is_lower, middle, low)
        high = np.where(going & is_lower, middle, high)
    return low, rest


def log_mass(center: Floats, scale: Floats, low: Floats, high: Floats) -> Floats:
    """Return the log of the normal's mass between `low` and `high`."""
    a, b = (low - center) / scale, (high - center) / scale
    # In the upper tail the complement is precise.
    flip = a > 0
    a, b = np.where(flip, -b, a), np.where(flip, -a, b)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs: Floats = log_ndtr(b) + np.log1p(-np.exp(log_ndtr(a) - log_ndtr(b)))
    return logs


def truncated_moments(
    center: Floats, scale: Floats, low: Floats, high: Floats
) -> tuple[Floats, Floats]:
    """Return mean and variance of normals truncated to (low, high]."""
    a, b = (low - center) / scale, (high - center) / scale
    mass = np.exp(log_mass(center, scale, low, high))
    at_a, at_b = (np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi) for z in (a, b))
    shift = (at_a - at_b) / mass
    ends = np.where(np.isfinite(a), a, 0.0) * at_a - np.where(np.isfinite(b), b, 0.0) * at_b
    mean = np.clip(center + scale * shift, low, high)
    return mean, scale**2 * np.maximum(1.0 + ends / mass - shift**2, 0.0)


def match_moments(
    mean: Floats, deviation: Floats, low: Floats, high: Floats
) -> tuple[Floats, Floats]:
    """Return centers and scales of truncated normals with approximately these moments.

    Truncation moves the mean inwards and reduces the deviation; a fixed-point iteration compensates
    for it. Moments that no truncated normal has (more spread than a uniform) are approximated.
    """
    center, scale = mean.copy(), deviation.copy()
    best = center.copy(), scale.copy(), np.full(mean.shape, np.inf)
    bounded = np.isfinite(low) | np.isfinite(high)
    for _ in range(_STEPS if bounded.any() else 1):
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            got, variance = truncated_moments(center, scale, low, high)
            ratio = deviation / np.sqrt(variance)
            error = np.abs(got - mean) / deviation + np.abs(np.log(ratio))
        better = error < best[2]
        for kept, new in zip(best, (center, scale, error), strict=True):
            kept[better] = new[better]
        step = np.nan_to_num(np.clip(ratio, _SHRINK, 1 / _SHRINK), nan=1.0)
        reach = _REACH * deviation
        center = np.clip(center + np.nan_to_num(mean - got), mean - reach, mean + reach)
        scale = np.clip(scale * step, SMALLEST_SCALE, reach)
    return best[0], best[1]
