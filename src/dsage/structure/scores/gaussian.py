"""Gaussian scores from moments: the likelihood of linear regressions, minus a penalty."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dpotrf, dtrtri

from dsage._check import check_count, check_names, check_real, refusal
from dsage.structure.moments import Moments
from dsage.structure.scores.base import Floats, Parents, Score

# Residual variances below this share of the variance are rounding errors: they are differences of
# numbers around one, which are known to about 1e-15.
_FLOOR = 1e-10


class _Given(NamedTuple):
    """Statistics of the variables given some parents, on the correlation scale."""

    rows: Floats  # (n_parents, n_nodes): L^-1 R[parents, :], where L L' = R[parents, parents]
    variance: Floats  # (n_nodes,): of each variable given the parents
    precision: Floats  # (n_nodes,): its inverse; 0 where the variable may not come next
    refused: npt.NDArray[np.intp]  # variables that may not come next
    is_regular: bool  # whether no parent is a linear function of the others

    @classmethod
    def of(cls, rows: Floats, variance: Floats, *, is_regular: bool) -> _Given:
        refused = (variance <= _FLOOR).nonzero()[0]
        precision = 1.0 / np.maximum(variance, _FLOOR)
        precision[refused] = 0.0
        return cls(rows, variance, precision, refused, is_regular)

    @property
    def n_bytes(self) -> int:
        return self.rows.nbytes + 3 * self.variance.nbytes


class _Ceilings:
    """Upper bounds of the scores of variables with any parents before some place in an order.

    Nothing explains more of a variable than all variables before it, and nothing costs less than
    no parents. With the correlations ``R = L L'`` in this order, the residual variance of the
    variable at rank h is ``1 - sum_(i<r) L[h, i]^2`` given the first r <= h, and
    ``1 / sum_(h<=i<r) (L^-1)[i, h]^2`` given the others of the first r > h.
    """

    def __init__(self, factor: Floats, inverse: Floats, shared: Floats, half_rows: float) -> None:
        self._factor, self._inverse = factor, inverse
        self._shared, self._half_rows = shared, half_rows

    def of(self, rank: int) -> Floats:
        """Return the bounds of the variable at `rank` for all places 0 .. n_nodes."""
        left = np.ones(len(self._shared) + 1)
        left[1 : rank + 1] -= (self._factor[rank, :rank] ** 2).cumsum()
        left[rank + 1 :] = 1.0 / (self._inverse[rank:, rank] ** 2).cumsum()
        bounds: Floats = self._shared[rank] - self._half_rows * np.log(np.maximum(left, _FLOOR))
        return bounds


class GaussianScore(Score):
    """Score of a linear-Gaussian model: log-likelihood minus `penalty` per parameter.

    For node j with k parents P, from n rows,

        sigma2 = rss(j, P) / (n - 1 - k)
        family = -n/2 log(2 pi sigma2) - (n - 1 - k) / 2 - penalty (k + 2)

    which is bnlearn's scale. The rows of the data are never needed: with
    ``var(j | P) = rss(j, P) / (n - 1)``,

        rss(P + i) / (n - 1) = var(j | P) - cov(i, j | P)^2 / var(i | P)
        rss(P - p) / (n - 1) = var(j | P) + b_p^2 / (K_PP^-1)_pp

    Statistics that depend on the parents alone are cached for other nodes with these parents, and
    for sets with one parent more. The least recently used are dropped beyond `cache_bytes`.

    A variable whose residual variance given the parents is below 1e-10 of its variance (a copy or
    a sum of them) is refused as one more parent; if it already is one, it explains nothing but
    is still penalized. The residual variance of a node is at least this share. More than
    ``n - 2`` parents score -inf. So no score is nan or +inf. No variable may be constant.
    """

    def __init__(self, moments: Moments, *, penalty: float, cache_bytes: int = 1 << 28) -> None:
        self.names = check_names(moments.names)
        self.n_rows = check_count(moments.n_rows, "n_rows", minimum=2)
        self.penalty = check_real(penalty, "penalty", low=0.0, high=np.finfo(np.float64).max)
        self._cache_bytes = check_count(cache_bytes, "cache_bytes", minimum=0)
        covariance = np.asarray(moments.covariance, dtype=np.float64)
        variance = covariance.diagonal()
        if constant := [self.names[node] for node in np.flatnonzero(moments.is_constant)]:
            raise refusal("moments", "of variables that vary", constant, "Drop these columns")
        scale = 1.0 / np.sqrt(variance)
        self._correlation = np.ascontiguousarray(covariance * scale[:, None] * scale)
        np.fill_diagonal(self._correlation, 1.0)
        self._half_rows = 0.5 * self.n_rows
        self._marginal = -self._half_rows * np.log(variance)
        self._constant = self._constants()
        nothing = np.empty((0, len(variance)))
        self._start = _Given.of(nothing, np.ones(len(variance)), is_regular=True)
        self._states: OrderedDict[Parents, _Given] = OrderedDict()
        self._bytes = 0

    def _constants(self) -> list[float]:
        """Return the part of the score that depends on the number of parents alone."""
        n_parents = np.arange(len(self.names))
        degrees = self.n_rows - 1 - n_parents
        inside = np.maximum(degrees, 1)
        shared = (
            -self._half_rows * np.log(2 * np.pi * (self.n_rows - 1) / inside)
            - 0.5 * degrees
            - self.penalty * (n_parents + 2)
        )
        # -inf: no row is left to estimate a variance. One more entry for additions to all others.
        return [*np.where(degrees > 0, shared, -np.inf).tolist(), -np.inf]

    def family(self, node: int, parents: Parents) -> float:
        """Return the score of `node` with exactly these parents."""
        left = max(float(self._given(parents).variance[node]), _FLOOR)
        shared = self._constant[len(parents)] + float(self._marginal[node])
        return shared - self._half_rows * math.log(left)

    def additions(self, node: int, parents: Parents) -> Floats:
        """Return, for every variable, the score of `node` with it as one more parent."""
        given = self._given(parents)
        shared = self._constant[len(parents) + 1] + float(self._marginal[node])
        if shared == -np.inf:
            return np.full(len(self.names), -np.inf)
        left: Floats = self._correlation[node] - given.rows[:, node] @ given.rows
        left *= left
        left *= given.precision
        np.subtract(given.variance[node], left, out=left)
        np.maximum(left, _FLOOR, out=left)
        np.log(left, out=left)
        left *= -self._half_rows
        left += shared
        left[given.refused] = -np.inf
        left[node] = -np.inf
        return left

    def removals(self, node: int, parents: Parents) -> Floats:
        """Return, for every parent, the score of `node` without it; -inf for other variables."""
        scores = np.full(len(self.names), -np.inf)
        if not parents:
            return scores
        left = self._left_without(node, list(parents))
        if left is None:
            return super().removals(node, parents)
        shared = self._constant[len(parents) - 1] + self._marginal[node]
        scores[list(parents)] = shared - self._half_rows * np.log(np.maximum(left, _FLOOR))
        return scores

    def ceilings(self, order: Sequence[int]) -> _Ceilings | None:
        """Return upper bounds of scores in an order; None if the correlations are singular."""
        correlation = self._correlation[np.ix_(order, order)]
        factor = _factor(correlation)
        if factor is None:
            return None
        inverse, _ = dtrtri(factor, lower=1)
        # The bound with no parents holds for all: the shared part falls with their number.
        shared = self._constant[0] + self._marginal[list(order)]
        return _Ceilings(factor, inverse, shared, self._half_rows)

    def _left_without(self, node: int, parents: list[int]) -> Floats | None:
        """Return the variance of the node without each parent; None if some are collinear.

        Only the correlations of these variables are used: searches call this for sets that are
        not in the cache and not needed again.
        """
        factor = _factor(self._correlation[parents][:, parents])
        if factor is None:
            return None
        # With R_PP = LL' and w = L^-1 R[P, j]: b = L'^-1 w, R_PP^-1 = L'^-1 L^-1.
        inverse, _ = dtrtri(factor, lower=1)
        effects = inverse @ self._correlation[parents, node]
        slopes = effects @ inverse
        left: Floats = 1.0 - effects @ effects + slopes**2 / np.einsum("ij,ij->j", inverse, inverse)
        return left

    def _given(self, parents: Parents) -> _Given:
        found = self._states.get(parents)
        if found is not None:
            self._states.move_to_end(parents)
            return found
        if not parents:
            return self._start
        made = self._build(parents)
        self._states[parents] = made
        self._bytes += made.n_bytes
        while self._bytes > self._cache_bytes:
            self._bytes -= self._states.popitem(last=False)[1].n_bytes
        return made

    def _build(self, parents: Parents) -> _Given:
        """Add one parent to a cached set, or solve for all of them."""
        for place in range(len(parents) - 1, -1, -1):
            known = self._states.get(parents[:place] + parents[place + 1 :])
            if known is not None and known.is_regular:
                left = float(known.variance[parents[place]])
                if left > _FLOOR:
                    return self._with(known, parents, parents[place], left)
                break
        rows = self._correlation[list(parents)]
        factor = _factor(rows[:, list(parents)])
        if factor is None:
            return self._one_by_one(parents)
        # L X = rows, solved as X' L' = rows', which has LAPACK's memory order.
        rows = dtrsm(1.0, factor, rows.T, side=1, lower=1, trans_a=1, overwrite_b=1).T
        variance = 1.0 - np.einsum("ij,ij->j", rows, rows)
        variance[list(parents)] = 0.0
        return _Given.of(rows, variance, is_regular=True)

    def _with(self, given: _Given, parents: Parents, parent: int, left: float) -> _Given:
        """Append a row for one more parent, which has the variance `left` given the others."""
        row = self._correlation[parent] - given.rows[:, parent] @ given.rows
        row *= left**-0.5
        variance = given.variance - row * row
        variance[list(parents)] = 0.0
        return _Given.of(np.concatenate((given.rows, row[None])), variance, is_regular=True)

    def _one_by_one(self, parents: Parents) -> _Given:
        """Add one parent after the other, skipping linear functions of earlier ones."""
        rows = np.zeros((len(parents), len(self.names)))
        variance = np.ones(len(self.names))
        for place, parent in enumerate(parents):
            left = float(variance[parent])
            if left > _FLOOR:
                row = self._correlation[parent] - rows[:place, parent] @ rows[:place]
                rows[place] = row * left**-0.5
                variance -= rows[place] ** 2
            variance[list(parents[: place + 1])] = 0.0
        return _Given.of(rows, variance, is_regular=False)


def _factor(correlation: Floats) -> Floats | None:
    """Return the Cholesky factor; None if a variable is a linear function of the others."""
    factor, failed = dpotrf(correlation, lower=1)
    if failed or not (factor.diagonal() ** 2 > _FLOOR).all():
        return None
    return np.asarray(factor)
