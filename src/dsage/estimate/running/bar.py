"""A progress display: the expected cost of a run, its error and goal, and the time left."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Self

from dsage._check import make_bar
from dsage.estimate.running.outlook import Outlook

# Seconds between two updates of the time that is left.
_SECONDS_A_TICK = 0.5
SHORTEST = 1.0
"""Seconds left from which the expected cost of a run is shown."""

Listener = Callable[[Outlook], None]
"""Receives the outlook of a run at each look."""


class Bar:
    """Show the progress of a run in one line, and its expected cost in a line before."""

    def __init__(self, *, is_shown: bool) -> None:
        self._bar = make_bar(
            desc="estimating",
            total=1.0,
            disable=not is_shown,
            bar_format="{desc} |{bar}|",
        )
        self._last: Outlook | None = None
        self._looked_at = perf_counter()
        self._has_told = False

    def show(self, outlook: Outlook) -> None:
        """Show the outlook of the run."""
        if self._bar.disable:
            return
        self._last, self._looked_at = outlook, perf_counter()
        if not self._has_told and outlook.seconds_left is not None:
            self._has_told = True
            if outlook.seconds_left > SHORTEST:
                self._bar.write(describe_cost(outlook), file=self._bar.fp)
        self._draw(outlook)

    def tick(self) -> None:
        """Count down the time that is left, between two looks."""
        passed = perf_counter() - self._looked_at
        if self._bar.disable or self._last is None or passed < _SECONDS_A_TICK:
            return
        left = self._last.seconds_left
        if left is not None:
            self._last = self._last._replace(seconds_left=max(left - passed, 0.0))
        self._looked_at = perf_counter()
        self._draw(self._last)

    def _draw(self, outlook: Outlook) -> None:
        self._bar.n = min(outlook.share or 0.0, 1.0)
        self._bar.set_description_str(f"estimating: {describe(outlook)}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._last is not None:
            self._draw(self._last._replace(seconds_left=None))
        self._bar.close()


def describe(outlook: Outlook) -> str:
    """Return the state of a run, in words.

    Examples
    --------
    >>> describe(Outlook(0.032, 0.01, 40, 10_000, 100_000, 4.0, 40.0))
    'error 3.2 % -> 1.0 %, about 40 s left'
    >>> describe(Outlook(0.032, 0.01, 40, 10_000, 100_000, 4.0, 40.0, n_helpers=1))
    'error 3.2 % -> 1.0 %, about 40 s left, 2 processes'
    """
    parts = []
    if outlook.error is not None:
        goal = "" if outlook.goal is None else f" -> {_percent(outlook.goal)}"
        parts.append(f"error {_percent(outlook.error)}{goal}")
    if outlook.seconds_left is not None:
        parts.append(f"about {_duration(outlook.seconds_left)} left")
    if outlook.n_helpers:
        parts.append(f"{1 + outlook.n_helpers} processes")
    return ", ".join(parts) or f"{outlook.n_evaluated:,} evaluations"


def describe_cost(outlook: Outlook) -> str:
    """Return a sentence about the cost of a run, and what the forecast is based on.

    Examples
    --------
    >>> describe_cost(Outlook(0.032, 0.01, 8, 10_000, 100_000, 4.0, 40.0))
    'The estimate will take about 44 s and 100,000 evaluations (from the first 10,000)'
    """
    seconds = outlook.seconds + (outlook.seconds_left or 0.0)
    many = "" if outlook.n_expected is None else f" and {_round(outlook.n_expected):,} evaluations"
    first = f" (from the first {_round(outlook.n_evaluated):,})"
    return f"The estimate will take about {_duration(seconds)}{many}{first}"


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %" if share < 0.001 else f"{100 * share:.1f} %"


def _round(number: int) -> int:
    """Return a number with two significant digits, since a forecast is not more precise."""
    digits = max(len(str(number)) - 2, 0)
    return round(number, -digits)


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s" if seconds >= 1 else f"{seconds:.1f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"
