"""The true values, from which the race measures errors.

- Up to 11 features, marginal 13: all coalitions, each risk without bias from many draws (squared
  error), or from all training rows (the marginal law).
- A linear model with conditional draws: risks in closed form; orderings are sampled if there are
  many. A logistic regression of two classes: the same, by a one-dimensional integral.
- The marginal law otherwise: sampled orderings, each on all rows with all training rows.
- The rest: a long run of dsage, with a seed that the race does not use.

All but the last share no code with dsage.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from time import process_time
from typing import Any

import numpy as np

from benchmarks.race.ground import Floats, Mask, Normal, Problem, RiskGame
from benchmarks.race.orderings import (
    linear_scores,
    mixed_risks,
    normal_risks,
    predicted_risks,
    sample_values,
)
from benchmarks.race.peers.dsage import explained

_MOST_FEATURES, _MOST_MARGINAL = 11, 13
_MOST_PAIRS = 200_000
_FEWEST_SETS, _N_DRAWS = 4, 16
_SEED = 987_654
_LONG_TOLERANCE = 0.002
# Draws of a row for cross entropy, whose bias is then negligible.
_MANY_DRAWS = 256


@dataclass(frozen=True, eq=False)
class Truth:
    """Values, their standard errors, and how they were found."""

    values: Floats
    se: Floats
    source: str


def find_truth(problem: Problem, seconds: float) -> Truth:
    """Return the truth of a problem, in about `seconds` if it is not exact."""
    if problem.law == "conditional" and hasattr(problem.model, "coef_") and problem.loss == "mse":
        return _linear(problem)
    is_marginal = problem.law == "marginal"
    most = _MOST_MARGINAL if is_marginal else _MOST_FEATURES
    if problem.n_features <= most and (is_marginal or problem.loss == "mse"):
        return _all_coalitions(problem, seconds)
    scores = linear_scores(problem.model)
    if is_marginal:
        is_wide = scores is not None and scores[0].shape[1] > 1
        risks = mixed_risks(problem, *scores) if is_wide else predicted_risks(problem)
        return _sampled(problem, risks, seconds, "all training rows")
    if scores is not None and scores[0].shape[1] == 1:
        risks = normal_risks(problem, scores[0][:, 0], float(scores[1][0]))
        return _sampled(problem, risks, seconds, "integrals of normal scores")
    return _long_run(problem, seconds)


def _sampled(problem: Problem, risks: Any, seconds: float, how: str) -> Truth:  # noqa: ANN401
    values, se, n_pairs = sample_values(risks, problem.n_features, _SEED, seconds, _MOST_PAIRS)
    return Truth(values, se, f"{2 * n_pairs:,} orderings, {how}")


def shapley_values(risks: Floats, n_features: int) -> Floats:
    """Return the Shapley values of minus the risks of all coalitions, in binary order."""
    masks = _masks(n_features)
    sizes, powers = masks.sum(axis=1), 2 ** np.arange(n_features)[::-1]
    weights = np.array(
        [1.0 / (n_features * math.comb(n_features - 1, size)) for size in range(n_features)]
    )
    values = np.empty(n_features)
    for j in range(n_features):
        without = np.flatnonzero(~masks[:, j])
        values[j] = weights[sizes[without]] @ (risks[without] - risks[without + powers[j]])
    return values


def _all_coalitions(problem: Problem, seconds: float) -> Truth:
    n_features = problem.n_features
    masks = _masks(n_features)
    if problem.law == "marginal":
        game = RiskGame(problem, 0, _SEED)
        risks = np.array([game.risk(known) for known in masks])
        values = shapley_values(risks, n_features)
        return Truth(values, np.zeros(n_features), "all coalitions, all training rows")
    found: list[Floats] = []
    end = process_time() + seconds
    while len(found) < _FEWEST_SETS or process_time() < end:
        pair = [RiskGame(problem, _N_DRAWS, _SEED + 2 * len(found) + k) for k in range(2)]
        risks = np.empty(len(masks))
        for at, known in enumerate(masks):
            means = [game.mean_predictions(known) for game in pair]
            if not known.any():
                # All rows have the same mean.
                means = [each.mean() for each in means]
            first, second = (problem.y_test - each for each in means)
            risks[at] = float((first * second).mean())
        found.append(shapley_values(risks, n_features))
    values, n_sets = np.array(found), len(found)
    source = f"all coalitions, {2 * n_sets * _N_DRAWS} draws a row, without bias"
    return Truth(values.mean(axis=0), values.std(axis=0, ddof=1) / math.sqrt(n_sets), source)


def _linear(problem: Problem) -> Truth:
    """Return the truth of a linear model: all prefixes of an ordering from one factor."""
    law = Normal(problem.X_train)
    weights, intercept = np.ravel(problem.model.coef_), float(problem.model.intercept_)
    n_features = problem.n_features
    if n_features <= _MOST_FEATURES:
        risks = [_linear_risk(problem, law, np.array(known)) for known in _masks(n_features)]
        values = shapley_values(np.array(risks), n_features)
        return Truth(values, np.zeros(n_features), "closed-form risks, all coalitions")
    rng = np.random.default_rng(_SEED)
    n_orderings = 4_000 if n_features <= 100 else 400
    orders = [rng.permutation(n_features) for _ in range(n_orderings // 2)]
    found = np.empty((n_orderings, n_features))
    centred = problem.X_test - law.mean
    start = intercept + law.mean @ weights
    for number in range(n_orderings):
        # Pairs of an ordering and its reverse.
        order = orders[number // 2][:: 1 - 2 * (number % 2)]
        factor = np.linalg.cholesky(law.covariance[np.ix_(order, order)])
        steps = np.linalg.solve(factor, centred[:, order].T) * (factor.T @ weights[order])[:, None]
        predicted = start + np.vstack([np.zeros(len(centred)), np.cumsum(steps, axis=0)])
        risks = ((problem.y_test - predicted) ** 2).mean(axis=1)
        found[number, order] = risks[:-1] - risks[1:]
    pairs = (found[::2] + found[1::2]) / 2
    se = pairs.std(axis=0, ddof=1) / math.sqrt(len(pairs))
    return Truth(pairs.mean(axis=0), se, f"closed-form risks, {n_orderings} orderings")


def _linear_risk(problem: Problem, law: Normal, known: Mask) -> float:
    x = problem.X_test[:, None, :]
    free = np.broadcast_to(law.mean, x.shape)
    return float(problem.losses(problem.predict(law.given_one(x[:, 0], known, free)[:, 0])).mean())


def _masks(n_features: int) -> Mask:
    return np.array(list(itertools.product([False, True], repeat=n_features)))


def _long_run(problem: Problem, seconds: float) -> Truth:
    options: dict[str, Any] = {"tolerance": _LONG_TOLERANCE, "seconds": seconds, "graph": None}
    source = "a long run of dsage, another seed"
    if problem.loss == "cross entropy":
        options["n_draws"] = _MANY_DRAWS
        source += f", {_MANY_DRAWS} draws"
    estimate = explained(problem, _SEED, options).estimate
    return Truth(estimate.values, estimate.se, source)
