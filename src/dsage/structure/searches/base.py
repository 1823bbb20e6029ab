"""The registry of searches, and the trace that each keeps of its moves."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from dsage.data.registry import Registry
from dsage.structure.constraints import Constraints, graph_of
from dsage.structure.result import SearchResult, Step
from dsage.structure.scores.base import Parents, Score

Callback = Callable[[Step], object]


class Search(Protocol):
    """A search for the graph with the highest score."""

    def __call__(
        self,
        score: Score,
        constraints: Constraints,
        /,
        *,
        callback: Callback | None = None,
        **options: Any,  # noqa: ANN401
    ) -> SearchResult:
        """Return the best graph that satisfies the constraints; call `callback` at each step."""
        ...


METHODS: Registry[Callable[..., SearchResult]] = Registry(
    "method", "the methods", package="dsage.structure.searches"
)
"""The searches by name: each is a :class:`Search`.

A search is registered with ``options``, the names of its options; if registered with
``is_random=True``, it also receives `random_state`.
"""


class Searching(Protocol):
    """What a trace reads from a search when it ends."""

    @property
    def best(self) -> Sequence[Parents]:
        """The parents of every node in the best graph so far."""
        ...

    @property
    def n_scored(self) -> int:
        """The number of families that were scored."""
        ...


class Trace:
    """The moves of a search. The clock starts when the trace is made.

    Parameters
    ----------
    method : str
        The name of the search.
    score : Score
        The score that it maximizes.
    callback : callable, optional
        Called with each step. It may raise ``KeyboardInterrupt`` to end the search.
    """

    def __init__(self, method: str, score: Score, callback: Callback | None) -> None:
        self._method, self._score, self._callback = method, score, callback
        self._steps: list[Step] = []
        self._began = time.perf_counter()

    def add(self, kind: str, tail: int, head: int, delta: float, total: float) -> None:
        """Add a move of or between two variables; -1 stands for no variable."""
        one, other = (self._score.names[node] if node >= 0 else "" for node in (tail, head))
        seconds = time.perf_counter() - self._began
        self._steps.append(Step(kind, one, other, delta, total, seconds))
        if self._callback is not None:
            self._callback(self._steps[-1])

    def result(self, run: Callable[[], object], search: Searching) -> SearchResult:
        """Run to the end, or to an interrupt, and return the best graph."""
        interrupted = False
        try:
            run()
        except KeyboardInterrupt:
            interrupted = True
        return SearchResult(
            graph=graph_of(self._score.names, search.best),
            score=math.fsum(self._score.family(*family) for family in enumerate(search.best)),
            trace=tuple(self._steps),
            n_scored=search.n_scored,
            seconds=time.perf_counter() - self._began,
            interrupted=interrupted,
            method=self._method,
        )
