"""Compare how fast errors fall for a forest: plain SAGE, the paper's algorithm and dsage.

Run: python -m benchmarks.convergence
"""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from benchmarks.engine_forest import PLAIN, TINY, Problem, Sizes, draws, measure, problem
from benchmarks.table import RESULTS, markdown, publish
from dsage.estimate import AnyOf, Estimate, TimeBudget, Tolerance
from dsage.estimate.inference import MIN_UNITS
from dsage.games.base import Floats

_GOALS = (0.05, 0.02, 0.01)
# The palette of Okabe and Ito, which is safe for color-blind readers.
_COLORS = ("#7f7f7f", "#e69f00", "#0072b2", "#009e73")


def ways(at: Problem, sizes: Sizes) -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    """Return the options of the game and of the run, for each way."""
    everything = {**PLAIN, "rows_per_ordering": sizes.n_rows}
    return {
        "plain SAGE": (draws(sizes), everything),
        "d-SAGE, the paper's Algorithm 1": (
            draws(sizes),
            {**everything, "oracle": at.oracle, "semantics": "skip"},
        ),
        "dsage: SAGE": ({}, {"oracle": at.oracle, "estimand": "sage"}),
        "dsage: d-SAGE": ({}, {"oracle": at.oracle, "audit": False}),
    }


def errors(result: Estimate) -> tuple[Floats, Floats]:
    """Return the seconds and the largest standard error, as a share of the range, at each look.

    Like the stopping rules, ignore standard errors from fewer than 30 units, unless the run has
    no more.
    """
    history = result.history
    share = history.se.max(axis=1) / np.ptp(result.values)
    is_trusted = history.n_units >= min(MIN_UNITS, history.n_units[-1])
    return history.seconds[is_trusted], share[is_trusted]


def seconds_to(result: Estimate, goal: float) -> tuple[float, bool]:
    """Return the seconds to reach an error, and whether they are extrapolated."""
    taken, error = errors(result)
    reached = np.flatnonzero(error <= goal)
    if len(reached):
        return float(taken[reached[0]]), False
    return float(taken[-1] * (error[-1] / goal) ** 2), True


def draw(found: dict[str, Estimate], path: str) -> None:
    """Draw the errors by time."""
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    ax = figure.subplots()
    for (way, result), color in zip(found.items(), _COLORS, strict=True):
        taken, error = errors(result)
        ax.plot(taken, error, color=color, linewidth=2, marker="o", markersize=3)
        ax.annotate(
            way,
            (taken[-1], error[-1]),
            xytext=(5, 0),
            textcoords="offset points",
            color=color,
            va="center",
            fontsize=9,
        )
    ax.set(xscale="log", yscale="log", xlabel="seconds, one core")
    ax.set_ylabel("largest standard error,\nshare of the range of the values")
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:g} %"))
    ax.set_xlim(right=ax.get_xlim()[1] * 12)
    ax.grid(visible=True, which="major", alpha=0.3)
    ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(RESULTS / path, metadata={"Date": None})


def main(sizes: Sizes, name: str, seconds: float) -> None:
    """Run each way for some time, or to an error of 0.1 %, and publish times and figure."""
    at = problem(name, sizes)
    rule = AnyOf([Tolerance(0.001), TimeBudget(seconds)])
    found = {
        way: measure(at, way, rule, game, options).result
        for way, (game, options) in ways(at, sizes).items()
    }
    RESULTS.mkdir(exist_ok=True)
    draw(found, "convergence.svg")
    best = {goal: seconds_to(found["dsage: d-SAGE"], goal)[0] for goal in _GOALS}
    rows = []
    for way, result in found.items():
        times = [seconds_to(result, goal) for goal in _GOALS]
        cells = [f"{took:,.1f}{' *' if is_guess else ''}" for took, is_guess in times]
        ratio = times[-1][0] / best[_GOALS[-1]]
        rows.append([way, *cells, f"{ratio:,.{0 if math.isclose(ratio, 1.0) else 1}f}"])
    header = ["way", *(f"seconds to {100 * goal:g} %" for goal in _GOALS), "ratio at 1 %"]
    text = (
        f"A forest of {sizes.n_trees} trees on the paper's {name} with {at.X.shape[1]} features "
        f"and {sizes.n_rows:,} evaluation rows, on one core. The first two ways have "
        f"{sizes.n_draws} draws, the others the defaults. The table shows the time until the "
        "largest standard error is a given share of the range of the values; learning the graph "
        f"takes another {at.seconds_learned:.2f} s. The first two ways evaluate each ordering on "
        "all rows, as other packages do. All four ways run in our own loop, until "
        f"{seconds:g} s or an error of 0.1 %. Errors are used from 30 units on; the first two "
        "ways have fewer units, so their errors are rough. * is extrapolated from the end of the "
        "run, assuming that errors fall with the square root of the time."
        "\n\n![Errors by time](convergence.svg)"
    )
    title = "Errors by time"
    publish("convergence", title, [(text, markdown(header, rows))], ["dsage", "scikit-learn"])


if __name__ == "__main__":
    if "--tiny" in sys.argv:
        main(TINY, "dag_s(2)", 3.0)
    else:
        main(Sizes(), "dag_sm(2)", 120.0)
