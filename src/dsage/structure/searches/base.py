"""The registry of searches, and the trace that each keeps of its moves."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

from dsage.data.registry import Registry
from dsage.structure.constraints import graph_of
from dsage.structure.result import SearchResult, Step
from dsage.structure.scores.base import Parents, Score

Callback = Callable[[Step], object]


METHODS: Registry[Callable[..., SearchResult]] = Registry(
    "method", "the methods", package="dsage.structure.searches"
)
"""The searches by name: functions from a score and constraints to a :class:`SearchResult`.

A search also receives `callback`, to call with each step, and its own options. It is registered
with ``options``, their names; if registered with ``is_random=True``, it receives `random_state`.
"""


class Trace:
    """The moves of a search. The clock starts when the trace is made."""

    def __init__(self, method: str, score: Score, callback: Callback | None) -> None:
        self._method, self._score, self._callback = method, score, callback
        self._steps: list[Step] = []
        self._began = time.perf_counter()

    def add(self, kind: str, tail: int, head: int, delta: float, total: float) -> None:
        """Add a move of or between two variables; -1 means no variable."""
        one, other = (self._score.names[node] if node >= 0 else "" for node in (tail, head))
        seconds = time.perf_counter() - self._began
        self._steps.append(Step(kind, one, other, delta, total, seconds))
        if self._callback is not None:
            self._callback(self._steps[-1])

    def result(
        self, run: Callable[[], object], read: Callable[[], tuple[Sequence[Parents], int]]
    ) -> SearchResult:
        """Run to the end, or to an interrupt, and return the best graph.

        `read` returns the parents of every node in the best graph, and the number of families
        that were scored.
        """
        interrupted = False
        try:
            run()
        except KeyboardInterrupt:
            interrupted = True
        best, n_scored = read()
        return SearchResult(
            graph=graph_of(self._score.names, best),
            score=math.fsum(self._score.family(*family) for family in enumerate(best)),
            trace=tuple(self._steps),
            n_scored=n_scored,
            seconds=time.perf_counter() - self._began,
            interrupted=interrupted,
            method=self._method,
        )
