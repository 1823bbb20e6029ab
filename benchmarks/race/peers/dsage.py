"""dsage: `explain` with the law of the race as its sampler, with and without a graph."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Mapping
from typing import Any
from unittest import mock

from benchmarks.race.ground import Floats, Problem
from benchmarks.race.peers import Answer, Way, Ways
from dsage import explain
from dsage.models.model import Model


def explained(problem: Problem, seed: int, options: Mapping[str, Any]) -> Any:  # noqa: ANN401
    """Return the explanation of a problem, with its own law as the sampler."""
    predict = Model.predict

    @functools.wraps(predict)
    def counted(self: Model, X: Any, **more: Any) -> Floats:  # noqa: ANN401
        problem.n_predicted += len(X)
        return predict(self, X, **more)

    with warnings.catch_warnings(), mock.patch.object(Model, "predict", counted):
        warnings.simplefilter("ignore")
        return explain(
            problem.model,
            problem.X_train,
            problem.y_train,
            problem.X_test,
            problem.y_test,
            sampler="gaussian" if problem.law == "conditional" else "marginal",
            loss="squared_error" if problem.loss == "mse" else "cross_entropy",
            sampler_check=False,
            n_jobs=1,
            progress=False,
            random_state=seed,
            **options,
        )


def _estimate(problem: Problem, n_orderings: int, seed: int, **options: Any) -> Answer:  # noqa: ANN401
    found = explained(problem, seed, {"n_orderings": n_orderings, **options})
    return Answer(found.estimate.values, found.estimate.se)


WAYS: Ways = {
    "dsage": Way(
        functools.partial(_estimate, graph=None), 8, note="`explain(graph=None)`, by orderings"
    ),
    "dsage, graph": Way(
        _estimate,
        8,
        lambda problem: problem.law == "conditional",
        "`explain()`: learns a graph, its time included, and uses it where that saves work",
    ),
}
