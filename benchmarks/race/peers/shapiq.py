"""shapiq: approximators of Shapley values of the global game, which it gets from the race."""

from __future__ import annotations

import functools

import numpy as np
import shapiq  # type: ignore[import-untyped]

from benchmarks.race.ground import Problem, RiskGame
from benchmarks.race.peers import Answer, Way, Ways

_N_DRAWS = 64


def _estimate(problem: Problem, n: int, seed: int, *, kind: str) -> Answer:
    game = RiskGame(problem, _N_DRAWS, seed)
    make = {
        "kADD-SHAP": functools.partial(shapiq.kADDSHAP, max_order=2),
        "KernelSHAP": shapiq.KernelSHAP,
        "permutations": shapiq.PermutationSamplingSV,
    }[kind]
    approximator = make(problem.n_features, random_state=seed)
    found = approximator.approximate(budget=n, game=game.values)
    return Answer(np.array([found[(j,)] for j in range(problem.n_features)]))


def _has_few_pairs(problem: Problem) -> bool:
    # A regression on all pairs.
    return problem.n_features <= 30


_NOTE = "of the game with 64 draws a row, all rows, common noise"
WAYS: Ways = {
    "shapiq, kADD-SHAP": Way(
        functools.partial(_estimate, kind="kADD-SHAP"), 64, _has_few_pairs, _NOTE
    ),
    "shapiq, KernelSHAP": Way(functools.partial(_estimate, kind="KernelSHAP"), 32, note=_NOTE),
    "shapiq, permutations": Way(functools.partial(_estimate, kind="permutations"), 32, note=_NOTE),
}
