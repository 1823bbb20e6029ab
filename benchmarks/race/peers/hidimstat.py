"""hidimstat: `SAGE`. It averages losses, not predictions, and breaks up the rows that it draws."""

from __future__ import annotations

import numpy as np
from hidimstat import SAGE  # type: ignore[import-not-found]
from sklearn.base import BaseEstimator

from benchmarks.race.ground import Floats, Problem
from benchmarks.race.peers import Answer, Way, Ways

_N_DRAWS = 50


class _Counted(BaseEstimator):  # type: ignore[misc]
    """The model of a problem, fitted, which counts what it predicts."""

    def __init__(self, problem: Problem | None = None) -> None:
        self.problem = problem
        self.is_fitted_ = True

    def fit(self, X: Floats, y: Floats) -> _Counted:  # noqa: ARG002
        """Leave the model as it is."""
        return self

    def predict(self, X: Floats) -> Floats:
        """Return predictions, or probabilities."""
        if self.problem is None:
            raise ValueError("A model without a problem cannot predict.")
        return self.problem.predict(np.asarray(X))


def _estimate(problem: Problem, n: int, seed: int) -> Answer:
    def loss(y: Floats, predicted: Floats) -> float:  # noqa: ARG001
        return float(problem.losses(predicted).mean())

    explainer = SAGE(
        _Counted(problem), loss=loss, n_subsets=n, n_permutations=_N_DRAWS, random_state=seed
    )
    explainer.fit(problem.X_test, problem.y_test)
    return Answer(np.asarray(explainer.importance(problem.X_test, problem.y_test)))


def _fits(problem: Problem) -> bool:
    return problem.law == "marginal"


WAYS: Ways = {
    "hidimstat": Way(
        _estimate,
        2,
        _fits,
        "`SAGE`, 50 draws: another estimand, the mean loss over draws of single columns",
    ),
}
