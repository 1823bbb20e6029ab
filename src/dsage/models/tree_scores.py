"""Scores that are sums over trees, from masks of leaves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from dsage.models.link_scores import Floats, Mask, Rows, Scores, apply_link
from dsage.models.trees import Ensemble, boxes

Masks = npt.NDArray[np.uint64]
Bins = npt.NDArray[np.intp]

MOST_LEAVES = 64
"""Leaves of a tree are the bits of an integer."""
_ALL = np.uint64(2**64 - 1)


class TreeScores(Scores):
    """Scores that are sums over trees.

    The leaves of a tree are bits of an integer. For each value of a feature there is a mask of the
    leaves that it allows; a row reaches the leaf that all its features allow. Masks of known
    features, from x, and of unknown ones, from b, are combined separately, so that a pair of rows
    needs one conjunction for each tree, and a newly known feature changes only its own trees.

    Parameters
    ----------
    ensemble : Ensemble
        The trees, of at most 64 leaves each.
    n_features : int
        The number of features.
    """

    def __init__(self, ensemble: Ensemble, n_features: int) -> None:
        self.link, self.n_scores = ensemble.link, ensemble.n_scores
        self._is_single = ensemble.is_single
        leaves = [list(boxes(tree)) for tree in ensemble.trees]
        self._values = np.zeros((len(leaves), max(map(len, leaves))))
        for values, own in zip(self._values, leaves, strict=True):
            values[: len(own)] = [value[0] for _, value in own]
        self.intercept = np.zeros(self.n_scores)
        self._trees, self._edges, self._tables = [], [], []
        for feature in range(n_features):
            trees, edges, table = _tabulate(leaves, feature)
            self._trees.append(trees)
            self._edges.append(edges)
            self._tables.append(table)

    @property
    def n_bytes(self) -> int:
        """Memory of the tables."""
        return sum(table.nbytes for table in self._tables)

    @property
    def n_steps(self) -> float:
        """Trees of a feature, on average."""
        return float(np.mean([len(trees) for trees in self._trees]))

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
        found = self._along(order, x, b)
        return np.stack([self._means_of(scores.copy()) for scores in found])

    def _means_of(self, scores: Floats) -> Floats:
        """Return the means (n_x, n_outputs) of scores, which are overwritten."""
        return self._pick_output(apply_link(self.link, scores).mean(axis=2).T)

    def at(self, known: Mask, x: Bins, b: Bins) -> Floats:
        """Return the scores (n_scores, n_x, n_b) with known features from x."""
        own, other = (np.full((len(self._values), each.shape[1]), _ALL) for each in (x, b))
        for feature in range(len(known)):
            side, rows = (own, x) if known[feature] else (other, b)
            side[self._trees[feature]] &= self._tables[feature][:, rows[feature]]
        scores = np.zeros((self.n_scores, x.shape[1], b.shape[1])) + self.intercept[:, None, None]
        for tree, values in enumerate(self._values):
            scores[tree % self.n_scores] += _look_up(values, own[tree], other[tree])
        return scores

    def _along(self, order: Rows, x: Bins, b: Bins) -> Iterator[Floats]:
        """Yield the scores of all proper prefixes, each from the one before."""
        n_trees, n_x, n_b = len(self._values), x.shape[1], b.shape[1]
        other = np.full((n_trees, n_b), _ALL)
        # The leaves that unknown features allow after each feature has become known, for its trees.
        later: list[Masks] = []
        for feature in order[::-1]:
            trees = self._trees[feature]
            later.append(other[trees])
            other[trees] &= self._tables[feature][:, b[feature]]
        own = np.full((n_trees, n_x), _ALL)
        reached = np.empty((n_trees, n_x, n_b))
        scores = np.zeros((self.n_scores, n_x, n_b)) + self.intercept[:, None, None]
        for tree, values in enumerate(self._values):
            reached[tree] = _look_up(values, own[tree, :1], other[tree])
            scores[tree % self.n_scores] += reached[tree]
        yield scores
        for feature in order[:-1]:
            trees, rest = self._trees[feature], later.pop()
            own[trees] &= self._tables[feature][:, x[feature]]
            for tree, allowed in zip(trees, rest, strict=True):
                now = _look_up(self._values[tree], own[tree], allowed)
                score = scores[tree % self.n_scores]
                score -= reached[tree]
                score += now
                reached[tree] = now
            yield scores


def _look_up(values: Floats, own: Masks, other: Masks) -> Floats:
    """Return the values of the leaves that both allow, (n_own, n_other): one leaf each."""
    both = own[:, None] & other
    both -= np.uint64(1)
    # The number of bits below the only one.
    found: Floats = values.take(np.bitwise_count(both))
    return found


def _tabulate(
    leaves: list[list[tuple[Any, Floats]]], feature: int
) -> tuple[npt.NDArray[np.intp], Floats, Masks]:
    """Return the trees of a feature, the edges of its intervals, and masks by tree and interval.

    The last interval is that of missing values.
    """
    own = [(tree, each) for tree, each in enumerate(leaves) if any(feature in b for b, _ in each)]
    ends = {box[feature][k] for _, each in own for box, _ in each if feature in box for k in (0, 1)}
    edges = np.array(sorted(ends - {np.inf, -np.inf}))
    # The largest number of each interval represents it.
    largest = np.append(edges, np.inf)
    table = np.zeros((len(own), len(largest) + 1), dtype=np.uint64)
    for masks, (_, each) in zip(table, own, strict=True):
        for number, (box, _) in enumerate(each):
            low, high, takes_missing = box.get(feature, (-np.inf, np.inf, True))
            is_in = np.append((low < largest) & (largest <= high), takes_missing)
            masks[is_in] |= np.uint64(1) << np.uint64(number)
    return np.array([tree for tree, _ in own], dtype=np.intp), edges, table
