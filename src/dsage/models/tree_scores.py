"""Scores that are sums over trees, from the leaves that both rows of a pair allow."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from dsage.models.link_scores import Floats, Mask, Rows, Scores, apply_link
from dsage.models.trees import Ensemble, boxes

Bins = npt.NDArray[np.intp]

MOST_LEAVES = 64
"""Trees with more leaves take longer than predictions."""
# Sums of fewer bits than a double has are exact.
_BITS = 52


class TreeScores(Scores):
    """Scores that are sums over trees.

    A leaf is reached by a pair of rows if x meets its conditions on known features and b those on
    unknown ones: what x allows and what b allows are found separately. So a newly known feature
    changes the scores of all pairs by a product of two matrices, over the leaves with a condition
    on it. Values of leaves are rounded to multiples of a tiny number, so that sums are exact: they
    do not depend on the order of the leaves, nor on other rows.

    Parameters
    ----------
    ensemble : Ensemble
        The trees.
    n_features : int
        The number of features.
    """

    def __init__(self, ensemble: Ensemble, n_features: int) -> None:
        self.link, self.n_scores = ensemble.link, ensemble.n_scores
        self._is_single = ensemble.is_single
        # The leaves of a score are next to each other.
        found = [
            (score, tree, box, float(value[0]))
            for score in range(self.n_scores)
            for tree in range(score, len(ensemble.trees), self.n_scores)
            for box, value in boxes(ensemble.trees[tree])
        ]
        values = np.array([value for *_, value in found])
        n_bits = _BITS - math.ceil(math.log2(len(values) + 1))
        exponent = np.frexp(np.abs(values).max())[1]
        self._unit = float(np.ldexp(1.0, max(int(exponent) - n_bits, -1000)))
        self._values: Floats = np.rint(values / self._unit)
        scores = np.array([score for score, *_ in found])
        self._of_score = _slices(scores, self.n_scores)
        self.intercept = np.zeros(self.n_scores)
        # For each feature the leaves with a condition on it, their part for each score, the edges
        # of its intervals, and whether values in these intervals, and missing ones, meet it.
        self._leaves: list[Rows] = []
        self._parts: list[list[slice]] = []
        self._edges: list[Floats] = []
        self._tables: list[Mask] = []
        n_trees = 0
        for feature in range(n_features):
            leaves = [at for at, (_, _, box, _) in enumerate(found) if feature in box]
            intervals = [found[at][2][feature] for at in leaves]
            n_trees += len({found[at][1] for at in leaves})
            places = np.array(leaves, dtype=np.intp)
            edges, table = _tabulate(intervals)
            self._leaves.append(places)
            self._parts.append(_slices(scores[places], self.n_scores))
            self._edges.append(edges)
            self._tables.append(table)
        self._n_steps = n_trees / n_features

    @property
    def n_steps(self) -> float:
        """Trees of a feature, on average."""
        return self._n_steps

    def encode(self, X: Floats) -> Bins:
        """Return the interval of each value, (n_features, n_rows)."""
        rows = X.astype(np.float32).astype(np.float64) if self._is_single else X
        found = np.empty(X.T.shape, dtype=np.intp)
        for out, x, edges in zip(found, rows.T, self._edges, strict=True):
            out[:] = np.where(np.isnan(x), len(edges) + 1, np.searchsorted(edges, x))
        return found

    def means(self, known: Mask, x: Bins, b: Bins) -> Floats:
        """Return the means of a coalition."""
        return self._means_of(self.at(known, x, b))

    def path_means(self, order: Rows, x: Bins, b: Bins) -> Floats:
        """Return the means of all proper prefixes."""
        return np.stack([self._means_of(scores) for scores in self._along(order, x, b)])

    def _means_of(self, scores: Floats) -> Floats:
        """Return the means (n_x, n_outputs) of scores, which are overwritten."""
        return self._pick_output(apply_link(self.link, scores).mean(axis=2).T)

    def at(self, known: Mask, x: Bins, b: Bins) -> Floats:
        """Return the scores (n_scores, n_x, n_b) with known features from x."""
        own, other = (np.ones((len(self._values), each.shape[1]), np.bool_) for each in (x, b))
        for feature in range(len(known)):
            side, rows = (own, x) if known[feature] else (other, b)
            side[self._leaves[feature]] &= self._tables[feature].take(rows[feature], axis=1)
        sums = [
            own[some].T.astype(np.float64) @ (self._values[some, None] * other[some])
            for some in self._of_score
        ]
        return self._scale(np.stack(sums))

    def _along(self, order: Rows, x: Bins, b: Bins) -> Iterator[Floats]:
        """Yield the scores of all proper prefixes, each from the one before."""
        n_x, n_b = x.shape[1], b.shape[1]
        other = np.ones((len(self._values), n_b), dtype=np.bool_)
        # What b allows the leaves of each feature, before and after it becomes known.
        changes: list[Floats] = []
        for feature in order[::-1]:
            leaves = self._leaves[feature]
            after = other[leaves]
            before = after & self._tables[feature].take(b[feature], axis=1)
            other[leaves] = before
            signs = np.concatenate([self._values[leaves], -self._values[leaves]])
            changes.append(signs[:, None] * np.concatenate([after, before]))
        own = np.ones((len(self._values), n_x), dtype=np.bool_)
        starts = [self._values[some] @ other[some] for some in self._of_score]
        sums = np.repeat(np.stack(starts)[:, None], n_x, axis=1)
        yield self._scale(sums)
        for feature in order[:-1]:
            leaves, change = self._leaves[feature], changes.pop()
            before = own[leaves]
            after = before & self._tables[feature].take(x[feature], axis=1)
            own[leaves] = after
            n, mine = len(leaves), np.concatenate([after, before]).astype(np.float64)
            for score, some in enumerate(self._parts[feature]):
                if some.start < some.stop:
                    both = np.r_[some, some.start + n : some.stop + n]
                    sums[score] += mine[both].T @ change[both]
            yield self._scale(sums)

    def _scale(self, sums: Floats) -> Floats:
        """Return sums of values, in units, as scores."""
        scores: Floats = sums * self._unit
        scores += self.intercept[:, None, None]
        return scores


def _slices(scores: npt.NDArray[np.intp], n_scores: int) -> list[slice]:
    """Return the parts of sorted numbers of scores that belong to each."""
    ends = np.searchsorted(scores, np.arange(n_scores + 1)).tolist()
    return [slice(start, stop) for start, stop in pairwise(ends)]


def _tabulate(intervals: list[tuple[float, float, Any]]) -> tuple[Floats, Mask]:
    """Return the edges of intervals, and which of them each value between edges is in.

    The table has shape (n_intervals, n_edges + 2); the last column is that of missing values.
    """
    low, high, takes_missing = np.array(intervals, dtype=np.float64).reshape(-1, 3).T
    edges = np.unique(np.concatenate([low, high]))
    edges = edges[np.isfinite(edges)]
    # The largest number of each interval represents it.
    largest = np.append(edges, np.inf)
    is_in = (low[:, None] < largest) & (largest <= high[:, None])
    return edges, np.column_stack([is_in, takes_missing > 0.0])
