"""Penalized likelihoods by name, for data of every kind."""

from __future__ import annotations

from math import log, log10

import numpy as np

from dsage._check import check_real, refusal
from dsage.data.table import Table
from dsage.structure.counts import Counts
from dsage.structure.moments import Moments
from dsage.structure.scores.base import SCORES, Score
from dsage.structure.scores.cached import CachedScore
from dsage.structure.scores.conditional_gaussian import ConditionalGaussian
from dsage.structure.scores.discrete import DiscreteLikelihood
from dsage.structure.scores.gaussian import GaussianScore
from dsage.structure.source import Data

_ALL_KINDS = ("continuous", "discrete", "mixed")


def default_gamma(n_rows: int) -> float:
    """Return gamma of the extended BIC: 1/2 up to 1,000 rows, 1 from 10,000, log-linear between.

    A larger penalty finds more separations. With few rows some of them are false if effects
    are weak; with many rows weak effects are found in spite of the penalty.

    >>> [round(default_gamma(n_rows), 2) for n_rows in (500, 1_000, 3_000, 10_000, 1_000_000)]
    [0.5, 0.5, 0.74, 1.0, 1.0]
    """
    return min(max(log10(n_rows) / 2 - 1, 0.5), 1.0)


@SCORES.register(
    "bic",
    summary="log-likelihood minus log(n_rows) / 2 per parameter",
    fits=_ALL_KINDS,
    options=("penalty",),
)
def _bic(data: Data, *, penalty: float = 1.0) -> Score:
    return _penalize(data, penalty, log(data.n_rows) / 2)


@SCORES.register(
    "aic", summary="log-likelihood minus 1 per parameter", fits=_ALL_KINDS, options=("penalty",)
)
def _aic(data: Data, *, penalty: float = 1.0) -> Score:
    return _penalize(data, penalty, 1.0)


@SCORES.register(
    "ebic",
    summary="extended BIC: a penalty that grows with the number of variables too",
    fits=("continuous",),
    options=("penalty", "gamma"),
)
def _ebic(data: Data, *, penalty: float = 1.0, gamma: float | None = None) -> Score:
    """Charge ``(log(n_rows) + 2 gamma log(n_nodes)) / 2`` per parameter (Foygel & Drton, 2010)."""
    n_rows = data.n_rows
    gamma = default_gamma(n_rows) if gamma is None else gamma
    check_real(gamma, "gamma", low=0.0, high=1.0)
    return _penalize(data, penalty, (log(n_rows) + 2 * gamma * log(len(data.names))) / 2)


@SCORES.register(
    "loglik",
    summary="log-likelihood without a penalty: to compare graphs, not to search",
    fits=_ALL_KINDS,
    options=(),
)
def _loglik(data: Data) -> Score:
    return _penalize(data, 1.0, 0.0)


def _penalize(data: Data, factor: float, price: float) -> Score:
    check_real(factor, "penalty", low=0.0, high=np.finfo(np.float64).max)
    penalty = factor * price
    if isinstance(data, Moments):
        return GaussianScore(data, penalty=penalty)
    if isinstance(data, Counts):
        return CachedScore(DiscreteLikelihood(data, penalty=penalty))
    if not isinstance(data, Table):
        advice = (
            "Conditional Gaussian scores need the rows in memory: use 'basis', or read the file"
        )
        raise refusal("data", "a data frame or an array", "a file", advice, TypeError)
    return CachedScore(ConditionalGaussian(data, penalty=penalty))
