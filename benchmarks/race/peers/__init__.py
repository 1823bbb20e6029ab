"""One module a package: its ways, each a function of a problem, an effort and a seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.race.ground import Floats, Problem


@dataclass(frozen=True)
class Answer:
    """Values of the features, and their standard errors where a package has some."""

    values: Floats
    se: Floats | None = None


@dataclass(frozen=True)
class Way:
    """A way of a package: what it is called, its least effort, and whether it fits a problem.

    An effort is what the package counts: orderings, rows with an ordering each, or coalitions.
    """

    estimate: Callable[[Problem, int, int], Answer]
    least: int
    fits: Callable[[Problem], bool] = lambda _: True
    note: str = ""


Ways = dict[str, Way]
__all__ = ["Answer", "Way", "Ways"]
