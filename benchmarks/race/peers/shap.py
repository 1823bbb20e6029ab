"""shap: its kernel and permutation explainers of the global game, a function of the coalition."""

from __future__ import annotations

import numpy as np
import shap  # type: ignore[import-untyped]

from benchmarks.race.ground import Problem, RiskGame
from benchmarks.race.peers import Answer, Way, Ways

_N_DRAWS = 64


def _kernel(problem: Problem, n: int, seed: int) -> Answer:
    game = RiskGame(problem, _N_DRAWS, seed)
    np.random.seed(seed)  # noqa: NPY002
    explainer = shap.KernelExplainer(game.values, np.zeros((1, problem.n_features)))
    found = explainer.shap_values(
        np.ones((1, problem.n_features)), nsamples=n, l1_reg=False, silent=True
    )
    return Answer(np.ravel(found))


def _permutation(problem: Problem, n: int, seed: int) -> Answer:
    game = RiskGame(problem, _N_DRAWS, seed)
    explainer = shap.PermutationExplainer(game.values, np.zeros((1, problem.n_features)), seed=seed)
    least = 2 * problem.n_features + 1
    found = explainer(np.ones((1, problem.n_features)), max_evals=max(n, least), silent=True)
    return Answer(np.ravel(found.values))


_NOTE = "of the game with 64 draws a row, all rows, common noise"
WAYS: Ways = {
    "shap, kernel": Way(_kernel, 64, note=_NOTE),
    "shap, permutations": Way(_permutation, 64, note=_NOTE),
}
