"""Steps that the calls of the package share: the clock, the seed, the rule, the use of a graph."""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from dsage._random import RandomState, Streams
from dsage.data.groups import Groups
from dsage.estimate import Checkpoint, PlanOptions, Stopping, as_stopping
from dsage.estimate.graph_use import measure_use
from dsage.estimate.running.outlook import Outlook
from dsage.graphs import GroupedOracle, Oracle
from dsage.result.events import (
    CostExpected,
    EstimateProgressed,
    Event,
    Phase,
    PhaseFinished,
    PhaseStarted,
)
from dsage.structure.info import GraphInfo

logger = logging.getLogger("dsage")

# A seed that can be read and typed.
_SEED_BITS = 32
# A graph is not learned if linear regressions leave this share of the coalitions to be evaluated.
_HARDLY_SEPARATED = 0.9


class Clock:
    """Measures how long each phase takes; logs its start and end, and reports them to `listen`."""

    def __init__(self, listen: Callable[[Event], None] | None = None) -> None:
        self._start = time.perf_counter()
        self._listen = listen
        self._phases: dict[str, float] = {}
        self._has_cost = False

    def follow(self, outlook: Outlook) -> None:
        """Report where the estimation stands."""
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


def make_rule(**limits: float | None) -> Stopping | None:
    """Return the stopping rule of the limits; None without limits."""
    given: dict[str, Any] = {name: each for name, each in limits.items() if each is not None}
    return as_stopping(**given) if given else None


def make_seed(random_state: RandomState, checkpoint: Checkpoint | None) -> int:
    """Return the given seed, that of the run to resume, or a new one."""
    if random_state is not None:
        return Streams(random_state).entropy
    entropy = None if checkpoint is None else checkpoint.entropy()
    return secrets.randbits(_SEED_BITS) if entropy is None else entropy


class GraphSaver:
    """Tells why no graph need be learned, from rough separations of the features."""

    def __init__(self, options: PlanOptions, groups: Groups | None) -> None:
        self._options, self._groups = options, groups

    def __call__(self, oracle: Oracle) -> str | None:
        """Return the reason, or None if a graph might pay."""
        if self._groups is not None:
            oracle = GroupedOracle(oracle, self._groups.members)
        share = measure_use(oracle, self._options).share_evaluated
        if share < _HARDLY_SEPARATED:
            return None
        return (
            f"not learned: even linear regressions, which miss dependences, leave {share:.0%} of "
            "the coalitions to be evaluated"
        )


def use_graph(
    oracle: Oracle | None, info: GraphInfo, options: PlanOptions, *, is_asked: bool
) -> tuple[Oracle | None, GraphInfo]:
    """Return the separations to use, and the record of the graph.

    A graph that the user did not ask for is used where that makes the estimate cheaper.
    """
    if oracle is None:
        return None, info
    use = measure_use(oracle, options)
    is_used = is_asked or (use.pays and options.estimand != "sage")
    why = None
    if not is_used:
        why = (
            f"learned, not used: {use.share_skipped:.0%} of the surpluses could be skipped, and "
            f"{use.share_evaluated:.0%} of the coalitions would have to be evaluated"
        )
    found = replace(
        info,
        is_used=is_used,
        share_skippable=use.share_skipped,
        share_evaluated=use.share_evaluated,
        why=why,
    )
    return oracle if is_used else None, found
