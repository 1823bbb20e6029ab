"""Estimation: the average surplus of every feature over orderings, its errors, when to stop."""

from dsage.estimate.accumulate.history import History
from dsage.estimate.comparison import GameComparison, compare_games
from dsage.estimate.exact import Enumeration, enumerate_boundaries
from dsage.estimate.exact_order import enumerate_extensions
from dsage.estimate.inference import (
    effective_df,
    holm,
    intervals,
    p_values,
    simultaneous_intervals,
)
from dsage.estimate.local.result import LocalEstimate
from dsage.estimate.local.running import run_local
from dsage.estimate.loop import Estimation
from dsage.estimate.options import PlanOptions
from dsage.estimate.plan import Plan
from dsage.estimate.reasons import StopKind, StopReason
from dsage.estimate.result import Estimate, OutputEstimate, TermEstimate, TermKind
from dsage.estimate.running.checkpoint import Checkpoint, as_checkpoint
from dsage.estimate.running.run import estimate, refine, run
from dsage.estimate.running.stopping import (
    AbsoluteTolerance,
    AnyOf,
    DataTolerance,
    NOrderings,
    Stopping,
    TimeBudget,
    Tolerance,
    TopK,
    as_stopping,
)
from dsage.estimate.sampler_check import SamplerCheck

__all__ = [
    "AbsoluteTolerance",
    "AnyOf",
    "Checkpoint",
    "DataTolerance",
    "Enumeration",
    "Estimate",
    "Estimation",
    "GameComparison",
    "History",
    "LocalEstimate",
    "NOrderings",
    "OutputEstimate",
    "Plan",
    "PlanOptions",
    "SamplerCheck",
    "StopKind",
    "StopReason",
    "Stopping",
    "TermEstimate",
    "TermKind",
    "TimeBudget",
    "Tolerance",
    "TopK",
    "as_checkpoint",
    "as_stopping",
    "compare_games",
    "effective_df",
    "enumerate_boundaries",
    "enumerate_extensions",
    "estimate",
    "holm",
    "intervals",
    "p_values",
    "refine",
    "run",
    "run_local",
    "simultaneous_intervals",
]
