"""Scores of mixed data: a linear regression for each configuration of the discrete parents."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from math import prod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dsage._check import check_real, refusal
from dsage.data.table import Table
from dsage.structure.counts import Codes, Counts, configurations
from dsage.structure.scores.base import Floats, Parents, Score
from dsage.structure.scores.discrete import DiscreteLikelihood

# Residual variances below this share of the variance over all rows count as zero.
_TOLERANCE = 1e-10
# Memory for the cross-products of the configurations in use.
_CACHE_BYTES = 128 * 2**20


class _Groups(NamedTuple):
    """Cross-products of continuous variables within each configuration of discrete ones."""

    n_rows: npt.NDArray[np.int64]  # (n_groups,)
    squares: Floats  # (n_groups, n_variables): sums of squares around the mean over all rows
    scatter: Floats  # (n_groups, n_variables, n_variables), around the means of the groups


class ConditionalGaussian(Score):
    """Log-likelihood minus a penalty per parameter, for continuous and discrete variables.

    A continuous node with discrete parents D and k continuous parents C has a separate linear
    regression on C for each configuration of D. As in bnlearn, its variance, from n_g rows, is
    ``s^2 = rss / (n_g - 1 - k)``, so that

        family = sum over g of [-n_g/2 log(2 pi s^2) - (n_g - 1 - k)/2] - penalty q (k + 2)

    where q is the number of configurations that D can take. A discrete node is scored by
    :class:`DiscreteLikelihood` and cannot have continuous parents.

    If a regression cannot be fitted, these rules keep every score below infinity and not nan.
    A configuration with at most ``k + 1`` rows keeps the marginal distribution of the node, which
    neither rewards nor forbids the parents. A parent that is constant within a configuration, or
    a linear function of the others there, is left out of its regression. A residual variance is
    at least 1e-10 of the node's variance.
    """

    def __init__(self, table: Table, *, penalty: float) -> None:
        self.names = table.names
        self._penalty = check_real(penalty, "penalty", low=0.0, high=np.finfo(np.float64).max)
        self._is_discrete = [name in set(table.discrete) for name in self.names]
        # The position of each variable among the variables of its kind.
        self._place = [
            self._is_discrete[:node].count(kind) for node, kind in enumerate(self._is_discrete)
        ]
        self._X = _center_columns(table)
        self._variance = (self._X**2).sum(axis=0) / max(1, table.n_rows - 1)
        if not self._variance.all():
            constant = [table.continuous[place] for place in np.flatnonzero(self._variance == 0)]
            raise refusal("the columns", "of variables that vary", constant, "Drop these columns")
        columns = [table.codes(name) for name in table.discrete]
        self._codes = [codes for codes, _ in columns]
        self._n_categories = [len(categories) for _, categories in columns]
        self._discrete: DiscreteLikelihood | None = None
        if columns:
            rows = np.column_stack(self._codes)
            counts = Counts(table.discrete, [categories for _, categories in columns], rows)
            self._discrete = DiscreteLikelihood(counts, penalty=penalty)
        self._known: OrderedDict[Parents, _Groups] = OrderedDict()
        self._bytes = 0

    def family(self, node: int, parents: Parents) -> float:
        """Return the score of `node` with exactly these parents."""
        discrete, continuous = self._split(parents)
        if self._is_discrete[node]:
            if continuous or self._discrete is None:
                return -np.inf
            return self._discrete.family(self._place[node], discrete)
        columns = [self._place[node], *continuous]
        groups = self._some(discrete, columns)
        floors = self._floors(groups, columns)
        rows = _orthogonalize(groups.scatter, range(1, len(columns)), floors)
        rss = groups.scatter[:, 0, 0] - (rows[:, :, 0] ** 2).sum(axis=1)
        wide = groups._replace(squares=groups.squares[:, :1])
        return float(self._value(columns[0], wide, rss[:, None], discrete, len(continuous))[0])

    def additions(self, node: int, parents: Parents) -> Floats:
        """Return, for every variable, the score of `node` with it as one more parent."""
        discrete, continuous = self._split(parents)
        scores = np.full(len(self.names), -np.inf)
        if self._is_discrete[node]:
            if not continuous and self._discrete is not None:
                scores[self._is_discrete] = self._discrete.additions(self._place[node], discrete)
            return scores
        free = [other for other in range(len(scores)) if other != node and other not in parents]
        for other in free:
            if self._is_discrete[other]:
                scores[other] = self.family(node, tuple(sorted((*parents, other))))
        numbers = [other for other in free if not self._is_discrete[other]]
        groups = self._all(discrete)
        if groups is None:
            for other in numbers:
                scores[other] = self.family(node, tuple(sorted((*parents, other))))
        elif numbers:
            places = [self._place[other] for other in numbers]
            scores[numbers] = self._more(self._place[node], discrete, continuous, groups)[places]
        return scores

    def _more(self, node: int, discrete: Parents, continuous: Parents, groups: _Groups) -> Floats:
        """Return the scores with each continuous variable as one more parent.

        ``rss(C + i) = rss(C) - cov(i, node | C)^2 / var(i | C)`` within each group.
        """
        floors = self._floors(groups, range(self._X.shape[1]))
        rows = _orthogonalize(groups.scatter, continuous, floors)
        left = np.einsum("gii->gi", groups.scatter) - (rows**2).sum(axis=1)
        covariance = groups.scatter[:, node] - np.einsum("gk,gki->gi", rows[:, :, node], rows)
        gain = np.zeros_like(left)
        np.divide(covariance**2, left, out=gain, where=left > floors)
        rss = left[:, [node]] - gain
        wide = groups._replace(squares=groups.squares[:, [node]])
        return self._value(node, wide, rss, discrete, len(continuous) + 1)

    def _value(
        self, node: int, groups: _Groups, rss: Floats, discrete: Parents, n_parents: int
    ) -> Floats:
        """Return the scores for residual sums of squares (n_groups, n_families)."""
        n = groups.n_rows[:, None]
        degrees = n - 1 - n_parents
        # Groups too small for a regression keep the distribution of the node over all rows.
        fitted = degrees > 0
        estimate = np.where(fitted, rss / np.maximum(degrees, 1), self._variance[node])
        np.maximum(estimate, _TOLERANCE * self._variance[node], out=estimate)
        rss = np.where(fitted, np.maximum(rss, 0.0), groups.squares)
        fit = -0.5 * n * np.log(2 * np.pi * estimate) - 0.5 * rss / estimate
        n_parameters = prod(self._n_categories[place] for place in discrete) * (n_parents + 2)
        scores: Floats = fit.sum(axis=0) - self._penalty * n_parameters
        return scores

    # Cross-products

    def _split(self, parents: Parents) -> tuple[Parents, Parents]:
        """Return the discrete and the continuous parents, by position among their own kind."""
        discrete = [self._place[parent] for parent in parents if self._is_discrete[parent]]
        continuous = [self._place[parent] for parent in parents if not self._is_discrete[parent]]
        return tuple(discrete), tuple(continuous)

    def _configurations(self, discrete: Parents) -> tuple[Codes, int]:
        columns = [self._codes[place] for place in discrete]
        return configurations(
            columns, [self._n_categories[place] for place in discrete], len(self._X)
        )

    def _floors(self, groups: _Groups, columns: Sequence[int]) -> Floats:
        """Return the smallest sums of squares that count as nonzero, (n_groups, n_columns)."""
        floors: Floats = _TOLERANCE * groups.n_rows[:, None] * self._variance[list(columns)]
        return floors

    def _some(self, discrete: Parents, columns: list[int]) -> _Groups:
        """Return the groups restricted to these columns."""
        known = self._known.get(discrete)
        if known is None:
            return _group_rows(self._X[:, columns], *self._configurations(discrete))
        square = np.ix_(range(len(known.n_rows)), columns, columns)
        return _Groups(known.n_rows, known.squares[:, columns], known.scatter[square])

    def _all(self, discrete: Parents) -> _Groups | None:
        """Return the groups with all columns, which are cached; None if they are too large."""
        known = self._known.get(discrete)
        if known is not None:
            self._known.move_to_end(discrete)
            return known
        codes, n_groups = self._configurations(discrete)
        if 8 * n_groups * self._X.shape[1] ** 2 > _CACHE_BYTES // 4:
            return None
        self._known[discrete] = made = _group_rows(self._X, codes, n_groups)
        self._bytes += made.scatter.nbytes
        while self._bytes > _CACHE_BYTES:
            self._bytes -= self._known.popitem(last=False)[1].scatter.nbytes
        return made


def _center_columns(table: Table) -> Floats:
    X = np.concatenate([np.empty((0, len(table.continuous))), *table.chunks()])
    # Around its first value a constant is exactly zero.
    X -= X[:1].copy()
    X -= X.mean(axis=0)
    return X


def _group_rows(X: Floats, codes: Codes, n_groups: int) -> _Groups:
    """Return the cross-products within each group; the columns of X have mean 0."""
    n_rows = np.bincount(codes, minlength=n_groups)
    # Codes of at most 16 bits are sorted by their digits, without comparisons.
    order = np.argsort(codes.astype(np.min_scalar_type(n_groups)), kind="stable")
    starts = np.cumsum(n_rows) - n_rows
    rows = X[order]
    means = np.add.reduceat(rows, starts, axis=0) / n_rows[:, None]
    rows -= np.repeat(means, n_rows, axis=0)
    parts = np.split(rows, starts[1:])
    scatter = np.stack([part.T @ part for part in parts])
    squares = np.einsum("gii->gi", scatter) + n_rows[:, None] * means**2
    return _Groups(n_rows, squares, scatter)


def _orthogonalize(scatter: Floats, parents: Sequence[int], floors: Floats) -> Floats:
    """Return the rows of the Cholesky factors of the parents, (n_groups, n_parents, n_columns).

    The variance of column i that the parents explain is the sum of the squares of its entries. A
    parent whose residual is at most its floor, given those before it, gets a row of zeros.
    """
    rows = np.zeros((len(scatter), len(parents), scatter.shape[2]))
    for at, parent in enumerate(parents):
        before = rows[:, :at]
        row = scatter[:, parent] - np.einsum("gk,gki->gi", before[:, :, parent], before)
        left = row[:, parent].copy()
        regular = left > floors[:, parent]
        rows[regular, at] = row[regular] / np.sqrt(left[regular])[:, None]
    return rows
