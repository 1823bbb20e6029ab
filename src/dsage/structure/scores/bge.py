"""The Bayesian Gaussian equivalent score, from moments."""

from __future__ import annotations

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.special import gammaln

from dsage._check import check_real
from dsage.structure.moments import Moments
from dsage.structure.scores.base import SCORES, Floats, Parents, Score
from dsage.structure.scores.cached import CachedScore

_SHRINKAGE = 1e-12


class BGe(Score):
    """Marginal likelihood under normal-Wishart priors; Markov equivalent graphs score equally.

    Geiger & Heckerman (2002), with the corrections of Kuipers, Moffa & Heckerman (2014). The
    prior has mean ``mu`` equal to the means of the data, with the weight of `iss_mu` rows, and
    scale matrix ``T = t I`` with ``t = iss_mu (iss_w - n_nodes - 1) / (iss_mu + 1)``. With
    ``R = T + scatter``, ``a = iss_w - n_nodes``, p parents P of node j, and v the residual of
    ``R[j, j]`` after P, a family scores

        log(iss_mu / (n + iss_mu)) / 2 - n log(pi) / 2
        + lgamma((n + a + p + 1) / 2) - lgamma((a + p + 1) / 2) + (a + 2p + 1) log(t) / 2
        - log det R[P, P] / 2 - (n + a + p + 1) log(v) / 2.

    R is always positive definite. To keep it so in floating point, where T vanishes next to columns
    of a large scale, its off-diagonal entries are reduced by a factor of 1 - 1e-12. By default
    ``iss_w = n_nodes + 2``, as in bnlearn.
    """

    def __init__(
        self, moments: Moments, *, iss_mu: float = 1.0, iss_w: float | None = None
    ) -> None:
        n_nodes, n = len(moments), moments.n_rows
        self.names = moments.names
        iss_mu = check_real(iss_mu, "iss_mu", above=0.0, high=np.finfo(np.float64).max)
        iss_w = n_nodes + 2.0 if iss_w is None else iss_w
        check_real(iss_w, "iss_w", above=n_nodes + 1.0, high=np.finfo(np.float64).max)
        t = iss_mu * (iss_w - n_nodes - 1) / (iss_mu + 1)
        self._posterior: Floats = moments.scatter * (1 - _SHRINKAGE)
        np.fill_diagonal(self._posterior, moments.scatter.diagonal() + t)
        p = np.arange(n_nodes + 1)
        a = iss_w - n_nodes
        self._exponent: Floats = (n + a + p + 1) / 2
        self._constant: Floats = (
            0.5 * np.log(iss_mu / (n + iss_mu))
            - 0.5 * n * np.log(np.pi)
            + gammaln(self._exponent)
            - gammaln((a + p + 1) / 2)
            + 0.5 * (a + 2 * p + 1) * np.log(t)
        )

    def family(self, node: int, parents: Parents) -> float:
        """Return the score of `node` with exactly these parents."""
        factor = self._factor(parents)
        row = _solve(factor, self._posterior[list(parents), node])
        residual = self._posterior[node, node] - row @ row
        return float(self._value(len(parents), _log_det(factor), residual))

    def additions(self, node: int, parents: Parents) -> Floats:
        """Return, for every variable, the score of `node` with it as one more parent.

        One more parent i multiplies the determinant by the residual of ``R[i, i]`` after P, and
        reduces v by ``R[i, j | P]^2 / R[i, i | P]``.
        """
        R = self._posterior
        factor = self._factor(parents)
        rows = _solve(factor, R[list(parents)])
        remaining = R.diagonal() - np.einsum("pi,pi->i", rows, rows)
        partial = R[node] - rows[:, node] @ rows
        taken = [node, *parents]
        remaining[taken] = np.inf
        residual = R[node, node] - rows[:, node] @ rows[:, node] - partial**2 / remaining
        scores = np.full(len(self.names), -np.inf)
        free = np.isfinite(remaining)
        scores[free] = self._value(
            len(parents) + 1, _log_det(factor) + np.log(remaining[free]), residual[free]
        )
        return scores

    def removals(self, node: int, parents: Parents) -> Floats:
        """Return, for every parent, the score of `node` without it; -inf for other variables.

        With ``K = R[P, P]^-1`` and the coefficients ``b = K R[P, j]``, leaving out p multiplies
        the determinant by ``K[p, p]`` and adds ``b_p^2 / K[p, p]`` to v.
        """
        scores = np.full(len(self.names), -np.inf)
        if not parents:
            return scores
        at = list(parents)
        factor = self._factor(parents)
        inverse_factor = _solve(factor, np.eye(len(parents)))
        row = _solve(factor, self._posterior[at, node])
        diagonal = np.einsum("ij,ij->j", inverse_factor, inverse_factor)
        coefficients = row @ inverse_factor
        residual = self._posterior[node, node] - row @ row + coefficients**2 / diagonal
        log_det = _log_det(factor) + np.log(diagonal)
        scores[at] = self._value(len(parents) - 1, log_det, residual)
        return scores

    def _factor(self, parents: Parents) -> Floats:
        at = list(parents)
        if not at:
            return np.empty((0, 0))
        factor: Floats = cholesky(self._posterior[np.ix_(at, at)], lower=True, check_finite=False)
        return factor

    def _value(self, n_parents: int, log_det: Floats | float, residual: Floats) -> Floats:
        weight = self._exponent[n_parents]
        scores: Floats = self._constant[n_parents] - 0.5 * log_det - weight * np.log(residual)
        return scores


@SCORES.register(
    "bge",
    summary="Bayesian Gaussian equivalent: marginal likelihood under normal-Wishart priors",
    fits=("continuous",),
    options=("iss",),
)
def _bge(data: Moments, *, iss: float = 1.0) -> Score:
    check_real(iss, "iss", above=0.0, high=np.finfo(np.float64).max)
    return CachedScore(BGe(data, iss_mu=iss))


def _solve(factor: Floats, right: Floats) -> Floats:
    if not len(factor):
        return right
    solved: Floats = solve_triangular(factor, right, lower=True, check_finite=False)
    return solved


def _log_det(factor: Floats) -> float:
    return 2.0 * float(np.log(factor.diagonal()).sum())
