"""What a run is doing, as events for progress displays."""

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
    """The first units tell what the estimation will take: evaluations and seconds.

    Once in a run, as soon as that is known.
    """

    outlook: Outlook


class EstimateProgressed(NamedTuple):
    """Some more units of the estimation are done.

    `outlook` has the error now and the goal, as shares of the range of the values, the seconds
    left, and the evaluations so far and at the end.
    """

    outlook: Outlook


Event = PhaseStarted | PhaseFinished | CostExpected | EstimateProgressed
