"""The time of an estimation and its limit."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# The largest share of the limit between two looks at the clock, and the share of it by which a unit
# that has begun may exceed it.
_SHARE, _TOO_LATE = 0.05, 0.05
# The share of the limit in which two units should end. If they take longer, units of fewer rows use
# the same time better.
_AMPLE = 0.95
# The share of the first unit from which its time is trusted.
_TRUSTED = 0.1


class TimeUpError(Exception):
    """The time limit of an estimation is reached."""


class Clock:
    """Measures an estimation without breaks; the limit ends it between two pieces of a unit.

    Decisions about what to evaluate must not depend on time, but how many units are evaluated
    before the next look at the clock may: it changes nothing else.

    Attributes
    ----------
    seconds : float
        The time spent until the last break.
    limit : float or None
        The time after which only the minimum for an estimate is evaluated.
    gives_up : bool
        Whether to end an estimation at once if its first units would take longer than the limit.
    is_cut : bool
        Whether the limit has ended the estimation.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self.limit: float | None = None
        self.gives_up = True
        self.is_cut = False
        self._since: float | None = None
        # Seconds of a unit of each term.
        self._paces: dict[int, float] = {}

    def start(self) -> None:
        """End a break."""
        self._since, self.is_cut = time.perf_counter(), False

    def stop(self) -> None:
        """Begin a break."""
        self.seconds, self._since = self.now(), None

    def now(self) -> float:
        """Return the time spent."""
        return self.seconds + (0.0 if self._since is None else time.perf_counter() - self._since)

    def is_over(self) -> bool:
        """Return whether the limit is reached."""
        return self.is_cut or (self.limit is not None and self.now() >= self.limit)

    def pace(self, term: int) -> float | None:
        """Return the seconds of a unit of a term; None if there was none."""
        return self._paces.get(term)

    def n_in_time(self, term: int, n_needed: int) -> int:
        """Return the number of units of a term to evaluate before the next look at the clock.

        It raises TimeUpError if none is needed, and there is no time for another one.
        """
        if self.limit is None:
            return 1 << 40
        pace = self._paces.get(term)
        if not n_needed and self.limit - self.now() <= 0.5 * (pace or 0.0):
            raise TimeUpError
        return 1 if pace is None else max(1, int(_SHARE * self.limit / max(pace, 1e-9)))

    @contextmanager
    def measure(
        self, term: int, n_units: int, n_needed: int
    ) -> Iterator[Callable[[int, int], None]]:
        """Measure the evaluation of some units; yield a function to call between its pieces.

        Between pieces, it raises TimeUpError if the evaluation would exceed the limit by too much.
        Units that are needed continue; but the first two end if the time is too short for them.
        """
        start, began_at = time.perf_counter(), self.now()

        def watch(n_done: int, n_pieces: int) -> None:
            if self.limit is None or not n_done:
                return
            passed = time.perf_counter() - start
            piece, most = passed / n_done, (1 + _TOO_LATE) * self.limit
            pace = piece * n_pieces / n_units
            is_late = not n_needed and self.now() + piece / 2 > most
            if n_needed > 1 and self.gives_up:
                is_known = n_done >= _TRUSTED * n_pieces or passed > _TRUSTED * self.limit
                is_late = is_known and began_at + n_needed * pace > _AMPLE * self.limit
            elif n_needed and term == 0 and self.gives_up:
                is_late = began_at + pace > most
            if is_late:
                self._paces[term] = pace
                raise TimeUpError

        yield watch
        self._paces[term] = (time.perf_counter() - start) / n_units
