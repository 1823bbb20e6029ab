"""dsage: `explain` with the law of the race as its sampler, with and without a graph, and `run`.

`run` gets what other packages get, the law and nothing to check: `explain` also reads the columns
and scores the sampler.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from unittest import mock

from benchmarks.race.ground import Floats, Normal, Problem
from benchmarks.race.peers import Answer, Way, Ways
from dsage import explain
from dsage.estimate import as_stopping, run
from dsage.games import LossGame
from dsage.models.model import Model
from dsage.models.pipelines import EncodedPipeline
from dsage.models.tree_masks import TreeMasks
from dsage.samplers import Gaussian, Marginal


def explained(problem: Problem, seed: int, options: Mapping[str, Any]) -> Any:  # noqa: ANN401
    """Return the explanation of a problem, with its own law as the sampler."""
    with _counted(problem):
        return explain(
            problem.model,
            problem.X_train,
            problem.y_train,
            problem.X_test,
            problem.y_test,
            sampler=_law(problem) if problem.law == "conditional" else "marginal",
            loss=_loss(problem),
            sampler_check=False,
            n_jobs=1,
            progress=False,
            random_state=seed,
            **options,
        )


@contextmanager
def _counted(problem: Problem) -> Iterator[None]:
    """Count the predicted rows, by the model or by what is read from it, and show no warnings."""
    predict, by_masks, by_codes = Model.predict, TreeMasks.predict, EncodedPipeline.predict

    @functools.wraps(predict)
    def counted(self: Model, X: Any, **more: Any) -> Floats:  # noqa: ANN401
        problem.n_predicted += len(X)
        return predict(self, X, **more)

    @functools.wraps(by_masks)
    def counted_by_masks(self: TreeMasks, draws: Floats, *more: Any) -> Floats:  # noqa: ANN401
        problem.n_predicted += math.prod(draws.shape[:3])
        return by_masks(self, draws, *more)

    @functools.wraps(by_codes)
    def counted_by_codes(self: EncodedPipeline, X: Floats) -> Any:  # noqa: ANN401
        before = problem.n_predicted
        found = by_codes(self, X)
        # Its last step may be trees, which have counted them.
        problem.n_predicted = before + len(X)
        return found

    with (
        warnings.catch_warnings(),
        mock.patch.object(EncodedPipeline, "predict", counted_by_codes),
        mock.patch.object(Model, "predict", counted),
        mock.patch.object(TreeMasks, "predict", counted_by_masks),
    ):
        warnings.simplefilter("ignore")
        yield


def _loss(problem: Problem) -> str:
    return "squared_error" if problem.loss == "mse" else "cross_entropy"


def _law(problem: Problem) -> Gaussian:
    """Return the law of all packages: `Gaussian().fit` would only draw values that can occur."""
    law = Normal(problem.X_train)
    return Gaussian.from_moments(law.mean, law.covariance)


def _run(problem: Problem, n_orderings: int, seed: int) -> Answer:
    rows = problem.X_test, problem.y_test
    with _counted(problem):
        is_conditional = problem.law == "conditional"
        sampler = _law(problem) if is_conditional else Marginal().fit(problem.X_train)
        game = LossGame(problem.model, sampler, *rows, loss=_loss(problem), random_state=seed)
        stopping = as_stopping(n_orderings=n_orderings)
        found = run(game, stopping=stopping, n_jobs=1, random_state=seed)
    return Answer(found.values, found.se)


def _estimate(problem: Problem, n_orderings: int, seed: int, **options: Any) -> Answer:  # noqa: ANN401
    found = explained(problem, seed, {"n_orderings": n_orderings, **options})
    return Answer(found.estimate.values, found.estimate.se)


WAYS: Ways = {
    "dsage": Way(
        functools.partial(_estimate, graph=None), 2, note="`explain(graph=None)`, by orderings"
    ),
    "dsage, run": Way(_run, 2, note="`run(LossGame(...))` with the fitted law, as other packages"),
    "dsage, graph": Way(
        _estimate,
        2,
        lambda problem: problem.law == "conditional",
        "`explain()`: learns a graph, its time included, and uses it where that saves work",
    ),
}
