"""Keep the record of a search: its moves, its time, and whether it came to its end."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from dsage.structure.constraints import graph_of
from dsage.structure.result import SearchResult, Step
from dsage.structure.scores.base import Parents, Score

Callback = Callable[[Step], object]


class Search(Protocol):
    """What a record needs to know of the search at its end."""

    @property
    def best(self) -> Sequence[Parents]:
        """The parents of every node in the best graph so far."""
        ...

    @property
    def n_scored(self) -> int:
        """How many families were scored."""
        ...


class Record:
    """The trace of a search. The clock starts when it is made.

    Parameters
    ----------
    method : str
        The name of the search.
    score : Score
        What it makes as large as possible.
    callback : callable, optional
        Called with each step. It may raise ``KeyboardInterrupt`` to end the search.
    """

    def __init__(self, method: str, score: Score, callback: Callback | None) -> None:
        self._method, self._score, self._callback = method, score, callback
        self._trace: list[Step] = []
        self._began = time.perf_counter()

    def note(self, kind: str, tail: int, head: int, delta: float, total: float) -> None:
        """Take note of a move of or between two variables; -1 stands for none."""
        one, other = (self._score.names[node] if node >= 0 else "" for node in (tail, head))
        seconds = time.perf_counter() - self._began
        self._trace.append(Step(kind, one, other, delta, total, seconds))
        if self._callback is not None:
            self._callback(self._trace[-1])

    def result(self, run: Callable[[], object], search: Search) -> SearchResult:
        """Run to the end, or to an interrupt, and return the best graph."""
        interrupted = False
        try:
            run()
        except KeyboardInterrupt:
            interrupted = True
        return SearchResult(
            graph=graph_of(self._score.names, search.best),
            score=math.fsum(self._score.family(*family) for family in enumerate(search.best)),
            trace=tuple(self._trace),
            n_scored=search.n_scored,
            seconds=time.perf_counter() - self._began,
            interrupted=interrupted,
            method=self._method,
        )
