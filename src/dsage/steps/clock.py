"""Measure how long the phases of a run take, and report them."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from dsage.estimate.running.outlook import Outlook
from dsage.result.events import (
    CostExpected,
    EstimateProgressed,
    Event,
    Phase,
    PhaseFinished,
    PhaseStarted,
)

logger = logging.getLogger("dsage")


class Clock:
    """Measures how long each phase takes; logs its start and end, and reports them to `listen`."""

    def __init__(self, listen: Callable[[Event], None] | None = None) -> None:
        self._start = time.perf_counter()
        self._listen = listen
        self._phases: dict[str, float] = {}
        self._has_cost = False

    def follow(self, outlook: Outlook) -> None:
        """Report the progress of the estimation."""
        if not self._has_cost and outlook.seconds_left is not None:
            self._has_cost = True
            self._report(CostExpected(outlook))
        self._report(EstimateProgressed(outlook))

    @contextmanager
    def __call__(self, phase: Phase) -> Iterator[None]:
        """Measure a phase."""
        start = time.perf_counter()
        self._report(PhaseStarted(phase))
        yield
        self._phases[phase] = time.perf_counter() - start
        self._report(PhaseFinished(phase, self._phases[phase]))

    def _report(self, event: Event) -> None:
        logger.info("%s", event)
        if self._listen is not None:
            self._listen(event)

    @property
    def seconds(self) -> dict[str, float]:
        """The time of each finished phase, and in total."""
        return {**self._phases, "total": time.perf_counter() - self._start}
