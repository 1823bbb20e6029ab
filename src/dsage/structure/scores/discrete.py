"""Scores of discrete families, from counts: the base class and the penalized likelihood."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from math import prod

import numpy as np
import numpy.typing as npt
from scipy.special import xlogy

from dsage._check import check_real
from dsage.structure.counts import Codes, Counts, configurations
from dsage.structure.scores.base import Floats, Parents, Score

Integers = npt.NDArray[np.int64]

# Memory for the keys and for the tables that are counted at a time.
_KEY_BYTES = 16 * 2**20
_TABLE_BYTES = 32 * 2**20
# Functions of a count are tabulated for at most this many rows.
_MOST_TABULATED = 2**20


class DiscreteScore(Score):
    """Base of the discrete scores: counts the tables of a family and of all its additions."""

    def __init__(self, counts: Counts) -> None:
        self.names = counts.names
        self._n_rows = counts.n_rows
        self._n_categories = np.array(counts.n_categories)
        # Category k of a variable is column `start + k` of all tables side by side.
        self._starts: Codes = np.cumsum(self._n_categories) - self._n_categories
        width = int(self._n_categories.sum())
        rows, weights = counts.rows, counts.multiplicity
        self._weights: Floats | None = weights.astype(np.float64)
        if 3 * len(rows) > self._n_rows:
            # Counting without weights is faster, so rows that hardly repeat are written out.
            rows, self._weights = np.repeat(rows, weights, axis=0), None
        columns = rows.T + self._starts[:, None].astype(np.min_scalar_type(width))
        self._columns = np.ascontiguousarray(columns)

    def family(self, node: int, parents: Parents) -> float:
        """Return the score of `node` with exactly these parents."""
        base, n_observed = self._base(node, parents)
        r = int(self._n_categories[node])
        joint = self._count(base, n_observed * r).reshape(n_observed, r, 1)
        n_configurations = np.array([self._n_configurations(parents)])
        return float(self._tables(joint, np.array([0]), n_configurations)[0])

    def additions(self, node: int, parents: Parents) -> Floats:
        """Return, for every variable, the score of `node` with it as one more parent.

        One pass counts the tables of many candidates: entry [j, k, l] is the number of rows with
        the observed configuration j of the parents, category k of the node, and the category of
        a candidate that column l represents.
        """
        scores = np.empty(len(self.names))
        base, n_observed = self._base(node, parents)
        r = int(self._n_categories[node])
        n_configurations = self._n_configurations(parents)
        for chunk in self._chunks(n_observed * r):
            n_categories, starts = self._n_categories[chunk], self._starts[chunk]
            width = int(n_categories.sum())
            keys = self._columns[chunk] + (base * width - starts[0])
            joint = self._count(keys, n_observed * r * width).reshape(n_observed, r, width)
            scores[chunk] = self._tables(joint, starts - starts[0], n_configurations * n_categories)
        scores[[node, *parents]] = -np.inf
        return scores

    @abstractmethod
    def _tables(self, joint: Integers, starts: Codes, n_configurations: Floats) -> Floats:
        """Return the scores of the tables that stand side by side in `joint`.

        `joint` has shape (n_observed, n_categories of the node, width), where each table is a range
        of the last axis, from its entry of `starts`. Configurations of the parents that do not
        occur may be left out: they contribute nothing. `n_configurations` are all that can occur.
        """

    def _n_configurations(self, parents: Parents) -> float:
        return float(prod(int(self._n_categories[parent]) for parent in parents))

    def _base(self, node: int, parents: Parents) -> tuple[Codes, int]:
        """Return the rows' codes for (observed configuration of parents, category of node)."""
        n_categories = [int(self._n_categories[parent]) for parent in parents]
        columns = [self._columns[parent] - self._starts[parent] for parent in parents]
        observed, n_observed = configurations(columns, n_categories, self._columns.shape[1])
        return (
            observed * self._n_categories[node] + (self._columns[node] - self._starts[node]),
            n_observed,
        )

    def _count(self, keys: Codes, size: int) -> Integers:
        if self._weights is None:
            return np.bincount(keys.ravel(), minlength=size)
        weights = np.broadcast_to(self._weights, keys.shape).ravel()
        return np.bincount(keys.ravel(), weights, minlength=size).astype(np.int64)

    def _chunks(self, height: int) -> Iterator[slice]:
        """Split the variables into ranges whose keys and tables fit into memory."""
        n_keys = max(1, _KEY_BYTES // (8 * self._columns.shape[1]))
        n_cells = _TABLE_BYTES // 8
        start = 0
        while start < len(self._n_categories):
            cells = np.cumsum(self._n_categories[start : start + n_keys]) * height
            stop = start + max(1, int(np.searchsorted(cells, n_cells, side="right")))
            yield slice(start, stop)
            start = stop


class DiscreteLikelihood(DiscreteScore):
    """Log-likelihood minus a penalty per parameter: discrete BIC and AIC.

    ``sum_jk n_jk log(n_jk / n_j) - penalty (r - 1) q`` for a node with r categories whose parents
    can take q configurations; n_jk counts the rows with configuration j and category k.
    """

    def __init__(self, counts: Counts, *, penalty: float) -> None:
        super().__init__(counts)
        self._penalty = check_real(penalty, "penalty", low=0.0, high=np.finfo(np.float64).max)
        self._n_log_n = Lookup(lambda n: xlogy(n, n), self._n_rows)

    def _tables(self, joint: Integers, starts: Codes, n_configurations: Floats) -> Floats:
        fit = self._n_log_n(joint).sum(axis=(0, 1)) - self._n_log_n(joint.sum(axis=1)).sum(axis=0)
        n_parameters = (joint.shape[1] - 1) * n_configurations
        scores: Floats = sum_tables(fit, starts) - self._penalty * n_parameters
        return scores


class Lookup:
    """A function of a count, tabulated if the table is small."""

    def __init__(self, function: Callable[[Integers], Floats], n_rows: int) -> None:
        self._function = function
        self._values = function(np.arange(n_rows + 1)) if n_rows <= _MOST_TABULATED else None

    def __call__(self, counts: Integers) -> Floats:
        """Return the values at these counts."""
        return self._function(counts) if self._values is None else self._values[counts]


def sum_tables(columns: Floats, starts: Codes) -> Floats:
    """Return the sum of the columns of each table."""
    sums: Floats = np.add.reduceat(columns, starts)
    return sums
