"""fippy: `Explainer.sage`, with its Gaussian sampler, or with joint draws of training rows."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pandas as pd
from fippy import Explainer  # type: ignore[import-not-found]
from fippy.samplers import GaussianSampler  # type: ignore[import-not-found]

from benchmarks.race.ground import Floats, Problem
from benchmarks.race.peers import Answer, Way, Ways


class JointSampler:
    """Training rows, whatever is known: fippy's own marginal sampler breaks them up."""

    def __init__(self, X_train: pd.DataFrame) -> None:
        self._X = X_train

    def sample(self, X: pd.DataFrame, J: list[str], S: list[str], n_samples: int = 1) -> Floats:  # noqa: ARG002
        """Return draws (n_rows, n_draws, n_unknown)."""
        picked = np.random.randint(0, len(self._X), size=(len(X), n_samples))  # noqa: NPY002
        return self._X[J].to_numpy()[picked]


def _estimate(problem: Problem, n: int, seed: int, *, n_draws: int) -> Answer:
    np.random.seed(seed)  # noqa: NPY002
    names = [f"x{j}" for j in range(problem.n_features)]
    X_train = pd.DataFrame(problem.X_train, columns=names)
    X_test = pd.DataFrame(problem.X_test, columns=names)
    sampler: Any = GaussianSampler if problem.law == "conditional" else JointSampler
    explainer = Explainer(
        functools.partial(_predict, problem), X_train, _loss(problem), sampler=sampler(X_train)
    )
    found = explainer.sage(
        X_test,
        problem.y_test,
        distribution="conditional",
        n_samples=n_draws,
        n_permutations=n,
        convergence_threshold=None,
    )
    return Answer(found.scores[0, 0].mean(axis=0))


def _predict(problem: Problem, X: pd.DataFrame) -> Floats:
    predicted = problem.predict(X.to_numpy())
    return predicted if problem.loss == "mse" else predicted[:, 1]


def _loss(problem: Problem) -> Any:  # noqa: ANN401
    if problem.loss == "mse":
        return lambda y, predicted: (y - predicted) ** 2

    def binary(y: Floats, p: Floats) -> Floats:
        return -np.log(np.clip(np.where(y == 1, p, 1.0 - p), 1e-12, 1.0))

    return binary


def _fits(problem: Problem) -> bool:
    # One number a prediction.
    return problem.loss == "mse" or len(np.unique(problem.y_test)) == 2


WAYS: Ways = {
    "fippy": Way(
        functools.partial(_estimate, n_draws=32), 2, _fits, "`Explainer.sage`, 32 draws, all rows"
    ),
}
