"""What a run is doing, as events for progress displays."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


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


Event = PhaseStarted | PhaseFinished
