"""Learn the graph and the sampler of a run from the training rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dsage.data.groups import Groups
from dsage.data.inputs import Inputs
from dsage.estimate.inference import MIN_UNITS
from dsage.games import GameOptions
from dsage.result.events import Phase
from dsage.samplers.resolve import SamplerFound, ScoringOptions, find_sampler, parse_sampler
from dsage.samplers.scorer import Predict
from dsage.steps.causal import find_interventional
from dsage.steps.clock import Clock
from dsage.steps.separations import GraphSaver
from dsage.steps.settings import Settings
from dsage.structure.causes import find_causes
from dsage.structure.knowledge import Knowledge
from dsage.structure.resolve import GraphFound, find_graph

# A batch of orderings is evaluated on at least this many rows, if there are as many.
_ROWS = 64


@dataclass(frozen=True, eq=False)
class Learned:
    """The separations and the sampler that were learned from the training rows."""

    graph: GraphFound
    sampler: SamplerFound


def learn_parts(
    inputs: Inputs,
    settings: Settings,
    clock: Clock,
    *,
    graph: Any,  # noqa: ANN401
    sampler: Any,  # noqa: ANN401
    is_of_classes: bool,
    predict: Predict | None,
    n_resamples: int | None,
    min_share: float | None,
    knowledge: Knowledge | None = None,
    n_predicted: int | None = None,
) -> Learned:
    """Learn graph and sampler from the training rows, or use those that are given.

    `is_of_classes` is whether the target is a class. `predict` is the model, whose predictions are
    used to compare samplers; without a model, only the energy score decides. `knowledge`
    constrains a learned graph. `n_predicted` is the minimum number of rows that the model will
    predict; by default, the number for a run with a tolerance.
    """
    if predict is None:
        n_predicted = 0
    elif n_predicted is None:
        n_predicted = _least_predicted(inputs, settings.groups, settings.game)
    scoring = ScoringOptions(
        predict,
        settings.groups,
        n_predicted,
        settings.seconds,
        settings.sampler_check,
    )
    running: dict[str, Any] = {"seed": settings.seed, "progress": settings.progress}
    how: dict[str, Any] = {
        "is_of_classes": is_of_classes,
        "n_resamples": n_resamples,
        "min_share": min_share,
        "n_jobs": settings.plan.n_jobs,
        **running,
    }
    if settings.plan.estimand == "causal":
        with clock(Phase.GRAPH):
            causes = find_causes(graph, inputs, knowledge=knowledge or Knowledge(), **how)
        with clock(Phase.SAMPLER):
            drawn = find_interventional(
                sampler, causes, inputs, scoring, is_of_classes=is_of_classes, **running
            )
        return Learned(causes, drawn)
    request = parse_sampler(sampler, inputs, seed=settings.seed)
    with clock(Phase.GRAPH):
        found = find_graph(
            graph,
            inputs,
            is_marginal=request.is_marginal,
            is_plain=settings.plan.estimand == "sage",
            why_spare=GraphSaver(settings.plan, settings.groups),
            knowledge=knowledge,
            **how,
        )
    with clock(Phase.SAMPLER):
        fitted = find_sampler(request, inputs, scoring, **running)
    return Learned(found, fitted)


def _least_predicted(inputs: Inputs, groups: Groups | None, options: GameOptions) -> int:
    """Return the minimum number of rows that the model predicts in a run with a tolerance."""
    n_players = len(inputs.names if groups is None else groups.names)
    n_rows = min(len(inputs.y_test), _ROWS)
    return 2 * MIN_UNITS * n_players * n_rows * options.n_replicates * options.n_draws_each
