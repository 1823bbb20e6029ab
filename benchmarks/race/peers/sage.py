"""sage-importance: its permutation and kernel estimators.

It has no conditional imputer. It gets one here, vectorized over the rows of a batch, each with
its own coalition: one batched solve (`Normal.given`).
"""

from __future__ import annotations

import functools

import numpy as np
import sage  # type: ignore[import-not-found]

from benchmarks.race.ground import Floats, Mask, Normal, Problem, predict_means
from benchmarks.race.peers import Answer, Way, Ways

_BATCH = 512


class GaussianImputer:
    """Means of predictions over draws from the conditional normal law."""

    def __init__(self, problem: Problem, n_draws: int, seed: int) -> None:
        self._problem, self._n_draws = problem, n_draws
        self._law, self._rng = Normal(problem.X_train), np.random.default_rng(seed)
        self.num_groups = problem.n_features

    def __call__(self, x: Floats, S: Mask) -> Floats:
        """Return mean predictions of rows, given what is known of each."""
        if S.all():
            return self._problem.predict(x)
        free = self._law.free(self._rng, len(x), self._n_draws)
        return predict_means(self._problem.predict, self._law.given(x, S.astype(bool), free))


def _imputer(problem: Problem, n_draws: int, seed: int) -> object:
    if problem.law == "conditional":
        return GaussianImputer(problem, n_draws, seed)
    return sage.MarginalImputer(problem.predict, problem.X_train)


def _permutations(problem: Problem, n: int, seed: int, *, n_draws: int) -> Answer:
    imputer = _imputer(problem, n_draws, seed)
    estimator = sage.PermutationEstimator(imputer, problem.loss, random_state=seed)
    found = estimator(
        problem.X_test,
        problem.y_test,
        batch_size=min(_BATCH, n),
        n_permutations=n,
        detect_convergence=False,
        bar=False,
    )
    return Answer(np.asarray(found.values), np.asarray(found.std))


def _kernel(problem: Problem, n: int, seed: int, *, n_draws: int) -> Answer:
    imputer = _imputer(problem, n_draws, seed)
    estimator = sage.KernelEstimator(imputer, problem.loss, random_state=seed)
    found = estimator(
        problem.X_test,
        problem.y_test,
        batch_size=min(_BATCH, n),
        n_samples=n,
        detect_convergence=False,
        bar=False,
    )
    return Answer(np.asarray(found.values), np.asarray(found.std))


def _is_conditional(problem: Problem) -> bool:
    return problem.law == "conditional"


def _is_marginal(problem: Problem) -> bool:
    return problem.law == "marginal"


WAYS: Ways = {
    "sage, 32 draws": Way(
        functools.partial(_permutations, n_draws=32),
        64,
        _is_conditional,
        "PermutationEstimator with our vectorized conditional imputer",
    ),
    "sage, 128 draws": Way(functools.partial(_permutations, n_draws=128), 64, _is_conditional),
    "sage": Way(
        functools.partial(_permutations, n_draws=0),
        32,
        _is_marginal,
        "PermutationEstimator with its MarginalImputer of all background rows",
    ),
    "sage, kernel": Way(
        functools.partial(_kernel, n_draws=64), 256, note="KernelEstimator, the same imputers"
    ),
}
