"""Bayesian scores of discrete families, from counts: BDeu and K2."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln

from dsage._check import check_real
from dsage.structure.counts import Codes, Counts
from dsage.structure.scores.base import SCORES, Floats, Score
from dsage.structure.scores.cached import CachedScore
from dsage.structure.scores.discrete import DiscreteScore, Integers, Lookup, sum_tables


class K2(DiscreteScore):
    """Marginal likelihood under uniform Dirichlet priors (Cooper & Herskovits, 1992).

    ``sum_j [lgamma(r) - lgamma(n_j + r) + sum_k lgamma(n_jk + 1)]``.
    """

    def __init__(self, counts: Counts) -> None:
        super().__init__(counts)
        self._log_factorial = Lookup(lambda n: gammaln(n + 1.0), self._n_rows)
        self._rising: dict[int, Lookup] = {}

    def _tables(self, joint: Integers, starts: Codes, n_configurations: Floats) -> Floats:  # noqa: ARG002
        r = joint.shape[1]
        if r not in self._rising:
            self._rising[r] = Lookup(lambda n: gammaln(n + float(r)) - gammaln(r), self._n_rows)
        fit = self._log_factorial(joint).sum(axis=(0, 1))
        return sum_tables(fit - self._rising[r](joint.sum(axis=1)).sum(axis=0), starts)


class BDeu(DiscreteScore):
    """Marginal likelihood under equivalent uniform Dirichlet priors (Heckerman et al., 1995).

    ``sum_j [lgamma(a_j) - lgamma(a_j + n_j) + sum_k lgamma(a_jk + n_jk) - lgamma(a_jk)]`` with
    ``a_jk = iss / (r q)`` and ``a_j = iss / q``. Markov equivalent graphs have equal scores.
    """

    def __init__(self, counts: Counts, *, iss: float = 1.0) -> None:
        super().__init__(counts)
        self._iss = check_real(iss, "iss", above=0.0, high=np.finfo(np.float64).max)

    def _tables(self, joint: Integers, starts: Codes, n_configurations: Floats) -> Floats:
        widths = np.diff(starts, append=joint.shape[2])
        prior = np.repeat(self._iss / n_configurations, widths)
        cells = _rising_sums(joint.reshape(-1, joint.shape[2]), prior / joint.shape[1])
        return sum_tables(cells - _rising_sums(joint.sum(axis=1), prior), starts)


@SCORES.register("bde", summary="bnlearn's name of bdeu", fits=("discrete",), options=("iss",))
@SCORES.register(
    "bdeu",
    summary="Bayesian Dirichlet equivalent uniform: marginal likelihood",
    fits=("discrete",),
    options=("iss",),
)
def _bdeu(data: Counts, *, iss: float = 1.0) -> Score:
    return CachedScore(BDeu(data, iss=iss))


@SCORES.register(
    "k2",
    summary="marginal likelihood under uniform Dirichlet priors",
    fits=("discrete",),
    options=(),
)
def _k2(data: Counts) -> Score:
    return CachedScore(K2(data))


def _rising_sums(counts: Integers, prior: Floats) -> Floats:
    """Return, for each column, ``sum lgamma(prior + count) - lgamma(prior)``, skipping zeros."""
    _, column = occupied = np.nonzero(counts)
    values = gammaln(prior[column] + counts[occupied]) - gammaln(prior)[column]
    sums = np.bincount(column, values, minlength=counts.shape[1])
    return sums.astype(np.float64, copy=False)
