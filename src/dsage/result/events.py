"""Events of a run, for progress displays."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from dsage.estimate.running.outlook import Outlook


class Phase(StrEnum):
    """A phase of a run."""

    GRAPH = "graph"
    SAMPLER = "sampler"
    ESTIMATE = "estimate"
    CHECK = "check"


class PhaseStarted(NamedTuple):
    """A phase starts."""

    phase: Phase


class PhaseFinished(NamedTuple):
    """A phase has finished."""

    phase: Phase
    seconds: float


class CostExpected(NamedTuple):
    """The expected cost of the estimation, in evaluations and seconds, based on its first units.

    Reported once in a run, as soon as it is known.
    """

    outlook: Outlook


class EstimateProgressed(NamedTuple):
    """More units of the estimation have finished.

    `outlook` has the error now and the goal, as shares of the range of the values, the seconds
    left, and the evaluations so far and at the end.
    """

    outlook: Outlook


Event = PhaseStarted | PhaseFinished | CostExpected | EstimateProgressed
