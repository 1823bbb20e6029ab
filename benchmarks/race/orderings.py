"""True values from sampled orderings, by code that shares nothing with dsage.

Every ordering and its reverse are evaluated on all rows; the error is the spread of these pairs.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy.special import expit

from benchmarks.race.ground import Floats, Mask, Normal, Problem, RiskGame

Risks = Callable[[Any], Floats]
"""Maps an ordering to the risks of its prefixes, (n_features + 1,)."""

_FEWEST_PAIRS = 8
# Nodes of the integral over a normal score: their range and largest distance, in standard
# deviations, and their largest distance on the scale of the score, where the logistic function
# bends.
_REACH, _STEP, _STEP_OF_SCORE = 8.0, 0.25, 0.8


def sample_values(
    risks_along: Risks, n_features: int, seed: int, seconds: float, most_pairs: int
) -> tuple[Floats, Floats, int]:
    """Return values, their standard errors, and the number of pairs of orderings.

    Pairs are evaluated for some seconds of the processor.
    """
    rng = np.random.default_rng(seed)
    start, found = time.process_time(), []
    for number in itertools.count():
        is_enough = number >= _FEWEST_PAIRS and time.process_time() - start > seconds
        if is_enough or number == most_pairs:
            break
        order = rng.permutation(n_features)
        pair = np.empty((2, n_features))
        for values, each in zip(pair, (order, order[::-1]), strict=True):
            risks = risks_along(each)
            values[each] = risks[:-1] - risks[1:]
        found.append(pair.mean(axis=0))
    means = np.array(found)
    se: Floats = means.std(axis=0, ddof=1) / math.sqrt(len(means))
    return means.mean(axis=0), se, len(means)


def predicted_risks(problem: Problem) -> Risks:
    """Return the risks of a marginal problem, from predictions for all training rows."""
    game = RiskGame(problem, 0, 0)
    return lambda order: np.array([game.risk(known) for known in _prefixes(order)])


def linear_scores(model: Any) -> tuple[Floats, Floats] | None:  # noqa: ANN401
    """Return weights (n_features, n_scores) and intercepts of a logistic regression of scaled rows.

    None for other models.
    """
    steps = [each for _, each in getattr(model, "steps", ())]
    if len(steps) != 2 or not (hasattr(steps[0], "scale_") and hasattr(steps[1], "coef_")):
        return None
    scaler, logistic = steps
    weights = logistic.coef_.T / scaler.scale_[:, None]
    return weights, logistic.intercept_ - scaler.mean_ @ weights


def normal_risks(problem: Problem, weights: Floats, intercept: float) -> Risks:
    """Return the risks of a logistic regression of two classes with normal features.

    Its score given a prefix is normal; the mean probability is a one-dimensional integral, which
    the trapezoidal rule finds to many digits.
    """
    law = Normal(problem.X_train)
    sign = np.where(problem.y_test == 1, 1.0, -1.0)
    covariance = law.covariance + 1e-10 * np.diag(np.diag(law.covariance))
    centered, start = problem.X_test - law.mean, intercept + law.mean @ weights

    def risks_along(order: Any) -> Floats:  # noqa: ANN401
        factor = np.linalg.cholesky(covariance[np.ix_(order, order)])
        effects = factor.T @ weights[order]
        steps = np.linalg.solve(factor, centered[:, order].T) * effects[:, None]
        means = start + np.vstack([np.zeros(len(centered)), np.cumsum(steps, axis=0)])
        spreads = np.sqrt(np.append(np.cumsum(effects[::-1] ** 2)[::-1], 0.0))
        likely = [
            _mean_expit(sign * mean, spread) for mean, spread in zip(means, spreads, strict=True)
        ]
        return -np.log(likely).mean(axis=1)

    return risks_along


def _mean_expit(means: Floats, spread: float) -> Floats:
    """Return the mean of the logistic function of normal scores."""
    step = min(_STEP, _STEP_OF_SCORE / max(spread, 1e-300))
    z = np.arange(-_REACH, _REACH + step, step)
    density = np.exp(-(z**2) / 2)
    mean: Floats = expit(means[:, None] + spread * z) @ (density / density.sum())
    return mean


def mixed_risks(problem: Problem, weights: Floats, intercepts: Floats) -> Risks:
    """Return the risks of a logistic regression of several classes, a marginal problem.

    Scores are sums of a part of each of two rows, so that exponentials are products.
    """
    rows = np.arange(len(problem.X_test))

    def risks_along(order: Any) -> Floats:  # noqa: ANN401
        found = []
        for known in _prefixes(order):
            own = problem.X_test[:, known] @ weights[known] + intercepts
            other = problem.X_train[:, ~known] @ weights[~known]
            own, other = (np.exp(each - each.max(axis=1, keepdims=True)) for each in (own, other))
            # The probability of a row's class for each training row.
            chosen = own[rows, problem.y_test, None] * other[:, problem.y_test].T
            found.append(-np.log((chosen / (own @ other.T)).mean(axis=1)).mean())
        return np.array(found)

    return risks_along


def _prefixes(order: Any) -> Iterator[Mask]:  # noqa: ANN401
    known = np.zeros(len(order), dtype=bool)
    yield known.copy()
    for feature in order:
        known[feature] = True
        yield known.copy()
