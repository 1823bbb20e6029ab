"""Scores of discrete families, from counts: penalised likelihood, BDeu, K2."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from math import prod

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln, xlogy

from dsage._check import check_real
from dsage.structure.counts import Codes, Counts, configurations
from dsage.structure.scores.base import Parents

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

# Bytes of the keys, and of the tables, that are counted at a time.
_KEY_BYTES = 16 * 2**20
_TABLE_BYTES = 32 * 2**20
# Functions of a count are looked up when there are no more rows than this.
_LOOKED_UP = 2**20


class DiscreteScore(ABC):
    """What the discrete scores share: counting the tables of a family and of all its additions.

    Parameters
    ----------
    counts : Counts
        The data.
    """

    def __init__(self, counts: Counts) -> None:
        self._names = counts.names
        self._n_rows = counts.n_rows
        self._levels = np.array(counts.n_categories)
        # Level k of a variable is column `start + k` of all tables side by side.
        self._starts: Codes = np.cumsum(self._levels) - self._levels
        width = int(self._levels.sum())
        rows, weights = counts.rows, counts.multiplicity
        self._weights: Floats | None = weights.astype(np.float64)
        if 3 * len(rows) > self._n_rows:
            # Counting without weights is faster, so rows that hardly repeat are written out.
            rows, self._weights = np.repeat(rows, weights, axis=0), None
        columns = rows.T + self._starts[:, None].astype(np.min_scalar_type(width))
        self._columns = np.ascontiguousarray(columns)

    @property
    def names(self) -> tuple[str, ...]:
        """The variables."""
        return self._names

    def family(self, node: int, parents: Parents) -> float:
        """Return the score of `node` with exactly these parents."""
        base, n_observed = self._base(node, parents)
        r = int(self._levels[node])
        joint = self._count(base, n_observed * r).reshape(n_observed, r, 1)
        n_configurations = np.array([self._n_configurations(parents)])
        return float(self._tables(joint, np.array([0]), n_configurations)[0])

    def additions(self, node: int, parents: Parents) -> Floats:
        """Return for every variable the score of `node` with it as one more parent.

        One pass counts the tables of many candidates: entry [j, k, l] is how often the parents
        are in their observed configuration j, the node in level k and the candidate in the level
        that column l stands for.
        """
        scores = np.empty(len(self._names))
        base, n_observed = self._base(node, parents)
        r = int(self._levels[node])
        n_configurations = self._n_configurations(parents)
        for chunk in self._chunks(n_observed * r):
            levels, starts = self._levels[chunk], self._starts[chunk]
            width = int(levels.sum())
            keys = self._columns[chunk] + (base * width - starts[0])
            joint = self._count(keys, n_observed * r * width).reshape(n_observed, r, width)
            scores[chunk] = self._tables(joint, starts - starts[0], n_configurations * levels)
        scores[[node, *parents]] = -np.inf
        return scores

    def removals(self, node: int, parents: Parents) -> Floats:
        """Return for every parent the score of `node` without it; -inf for all others."""
        scores = np.full(len(self._names), -np.inf)
        for at, parent in enumerate(parents):
            scores[parent] = self.family(node, parents[:at] + parents[at + 1 :])
        return scores

    @abstractmethod
    def _tables(self, joint: Integers, starts: Codes, n_configurations: Floats) -> Floats:
        """Return the scores of the tables that stand side by side in `joint`.

        Parameters
        ----------
        joint : array of shape (n_observed, n_categories of the node, width)
            Each table is a range of the last axis. Configurations of the parents that do not
            occur need not be there: they contribute nothing to any of the scores.
        starts : array of shape (n_tables,)
            Where each table starts.
        n_configurations : array of shape (n_tables,)
            How many configurations the parents can take.
        """

    def _n_configurations(self, parents: Parents) -> float:
        return float(prod(int(self._levels[parent]) for parent in parents))

    def _base(self, node: int, parents: Parents) -> tuple[Codes, int]:
        """Return the rows' codes for (observed configuration of the parents, level of the node)."""
        levels = [int(self._levels[parent]) for parent in parents]
        columns = [self._columns[parent] - self._starts[parent] for parent in parents]
        observed, n_observed = configurations(columns, levels, self._columns.shape[1])
        return (
            observed * self._levels[node] + (self._columns[node] - self._starts[node]),
            n_observed,
        )

    def _count(self, keys: Codes, size: int) -> Integers:
        if self._weights is None:
            return np.bincount(keys.ravel(), minlength=size)
        weights = np.broadcast_to(self._weights, keys.shape).ravel()
        return np.bincount(keys.ravel(), weights, minlength=size).astype(np.int64)

    def _chunks(self, height: int) -> Iterator[slice]:
        """Split the variables into ranges whose keys and tables fit into the memory for them."""
        n_keys = max(1, _KEY_BYTES // (8 * self._columns.shape[1]))
        n_cells = _TABLE_BYTES // 8
        start = 0
        while start < len(self._levels):
            cells = np.cumsum(self._levels[start : start + n_keys]) * height
            stop = start + max(1, int(np.searchsorted(cells, n_cells, side="right")))
            yield slice(start, stop)
            start = stop


class DiscreteLikelihood(DiscreteScore):
    """Log-likelihood minus a penalty for each parameter: discrete BIC and AIC.

    ``sum_jk n_jk log(n_jk / n_j) - penalty (r - 1) q`` for a node with r levels whose parents
    can take q configurations; n_jk counts the rows with configuration j and level k.

    Parameters
    ----------
    counts : Counts
        The data.
    penalty : float
        In units of the log-likelihood, for each parameter: ``log(n_rows) / 2`` is BIC, 1 is AIC.

    Examples
    --------
    >>> counts = Counts(["a", "b"], [(0, 1)] * 2, [[0, 0], [1, 1]], [3, 5])
    >>> score = DiscreteLikelihood(counts, penalty=1.0)
    >>> round(score.family(0, ()), 4), score.family(0, (1,))
    (-6.2925, -2.0)
    """

    def __init__(self, counts: Counts, *, penalty: float) -> None:
        super().__init__(counts)
        self._penalty = check_real(penalty, "penalty", low=0.0, high=np.finfo(np.float64).max)
        self._n_log_n = _Lookup(lambda n: xlogy(n, n), self._n_rows)

    def _tables(self, joint: Integers, starts: Codes, n_configurations: Floats) -> Floats:
        fit = self._n_log_n(joint).sum(axis=(0, 1)) - self._n_log_n(joint.sum(axis=1)).sum(axis=0)
        n_parameters = (joint.shape[1] - 1) * n_configurations
        scores: Floats = _per_table(fit, starts) - self._penalty * n_parameters
        return scores


class K2(DiscreteScore):
    """The marginal likelihood under uniform Dirichlet priors (Cooper & Herskovits, 1992).

    ``sum_j [lgamma(r) - lgamma(n_j + r) + sum_k lgamma(n_jk + 1)]``.

    Parameters
    ----------
    counts : Counts
        The data.

    Examples
    --------
    >>> counts = Counts(["a"], [(0, 1)], [[0], [1]], [1, 1])
    >>> round(float(np.exp(K2(counts).family(0, ()))), 4)
    0.1667
    """

    def __init__(self, counts: Counts) -> None:
        super().__init__(counts)
        self._log_factorial = _Lookup(lambda n: gammaln(n + 1.0), self._n_rows)
        self._rising: dict[int, _Lookup] = {}

    def _tables(self, joint: Integers, starts: Codes, n_configurations: Floats) -> Floats:  # noqa: ARG002
        r = joint.shape[1]
        if r not in self._rising:
            self._rising[r] = _Lookup(lambda n: gammaln(n + float(r)) - gammaln(r), self._n_rows)
        fit = self._log_factorial(joint).sum(axis=(0, 1))
        return _per_table(fit - self._rising[r](joint.sum(axis=1)).sum(axis=0), starts)


class BDeu(DiscreteScore):
    """The marginal likelihood under equivalent uniform Dirichlet priors (Heckerman et al., 1995).

    ``sum_j [lgamma(a_j) - lgamma(a_j + n_j) + sum_k lgamma(a_jk + n_jk) - lgamma(a_jk)]`` with
    ``a_jk = iss / (r q)`` and ``a_j = iss / q``. Markov equivalent graphs have equal scores.

    Parameters
    ----------
    counts : Counts
        The data.
    iss : float, default=1.0
        The imaginary sample size.

    Examples
    --------
    >>> counts = Counts(["a", "b"], [(0, 1)] * 2, [[0, 0], [1, 1]], [3, 5])
    >>> score = BDeu(counts)
    >>> one, other = score.family(0, ()) + score.family(1, (0,)), score.family(1, ())
    >>> bool(np.isclose(one, other + score.family(0, (1,))))
    True
    """

    def __init__(self, counts: Counts, *, iss: float = 1.0) -> None:
        super().__init__(counts)
        self._iss = check_real(iss, "iss", above=0.0, high=np.finfo(np.float64).max)

    def _tables(self, joint: Integers, starts: Codes, n_configurations: Floats) -> Floats:
        widths = np.diff(starts, append=joint.shape[2])
        prior = np.repeat(self._iss / n_configurations, widths)
        cells = _rising_sums(joint.reshape(-1, joint.shape[2]), prior / joint.shape[1])
        return _per_table(cells - _rising_sums(joint.sum(axis=1), prior), starts)


class _Lookup:
    """A function of a count, tabulated where the table is small."""

    def __init__(self, function: Callable[[Integers], Floats], n_rows: int) -> None:
        self._function = function
        self._values = function(np.arange(n_rows + 1)) if n_rows <= _LOOKED_UP else None

    def __call__(self, counts: Integers) -> Floats:
        return self._function(counts) if self._values is None else self._values[counts]


def _per_table(columns: Floats, starts: Codes) -> Floats:
    sums: Floats = np.add.reduceat(columns, starts)
    return sums


def _rising_sums(counts: Integers, prior: Floats) -> Floats:
    """Return for each column ``sum lgamma(prior + count) - lgamma(prior)``, skipping zeros."""
    _, column = occupied = np.nonzero(counts)
    values = gammaln(prior[column] + counts[occupied]) - gammaln(prior)[column]
    sums = np.bincount(column, values, minlength=counts.shape[1])
    return sums.astype(np.float64, copy=False)
