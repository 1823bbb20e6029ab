"""The record of a run: all choices, and the cost of the run."""

from __future__ import annotations

from dsage.data.inputs import Inputs
from dsage.models.resolve import ResolvedModel
from dsage.result.run_info import (
    DataInfo,
    EstimateInfo,
    EvaluationInfo,
    LossInfo,
    RunInfo,
    SecondsInfo,
    SessionInfo,
    find_versions,
)
from dsage.samplers.info import SamplerInfo
from dsage.steps.clock import Clock
from dsage.steps.settings import Settings
from dsage.structure.info import GraphInfo


def record_run(
    resolved: ResolvedModel,
    inputs: Inputs,
    settings: Settings,
    clock: Clock,
    *,
    graph: GraphInfo,
    sampler: SamplerInfo,
    estimate: EstimateInfo,
    evaluations: EvaluationInfo,
) -> RunInfo:
    """Return the record of a run that has just ended."""
    kept = settings.checkpoint
    return RunInfo(
        model=resolved.info,
        data=DataInfo.of(inputs, settings.groups),
        graph=graph,
        sampler=sampler,
        loss=LossInfo(resolved.loss.name, resolved.loss_source, resolved.loss_reason),
        estimate=estimate,
        evaluations=evaluations,
        seconds=SecondsInfo(**clock.seconds),
        versions=find_versions(resolved.info.packages),
        run=SessionInfo(
            str(settings.seed), settings.plan.n_jobs, None if kept is None else str(kept.path)
        ),
    )
