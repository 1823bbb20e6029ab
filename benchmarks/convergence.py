"""How fast the errors of a forest's values fall: plain orderings, the paper's algorithm, dsage.

Run: python -m benchmarks.convergence
"""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from benchmarks.engine_forest import PLAIN, TINY, Problem, Sizes, draws, measured, problem
from benchmarks.table import RESULTS, markdown, publish
from dsage.estimate import AnyOf, Estimate, TimeBudget, Tolerance
from dsage.estimate.inference import MIN_UNITS
from dsage.games.base import Floats

_LEVELS = (0.05, 0.02, 0.01)
# Colours of Okabe and Ito: told apart by everyone.
_COLOURS = ("#7f7f7f", "#e69f00", "#0072b2", "#009e73")


def ways(at: Problem, sizes: Sizes) -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    """Return the options of the game and of the plan of each way."""
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
    """Return seconds, and the largest standard error as a share of the range, at each look.

    Standard errors are trusted from 30 units on, as the rules do; a run that has fewer is taken at
    its word.
    """
    history = result.history
    share = history.se.max(axis=1) / np.ptp(result.values)
    is_trusted = history.n_units >= min(MIN_UNITS, history.n_units[-1])
    return history.seconds[is_trusted], share[is_trusted]


def needed(result: Estimate, level: float) -> tuple[float, bool]:
    """Return the seconds to an error, and whether they are extrapolated by the root of time."""
    taken, error = errors(result)
    reached = np.flatnonzero(error <= level)
    if len(reached):
        return float(taken[reached[0]]), False
    return float(taken[-1] * (error[-1] / level) ** 2), True


def picture(found: dict[str, Estimate], path: str) -> None:
    """Draw the errors by time."""
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    ax = figure.subplots()
    for (way, result), colour in zip(found.items(), _COLOURS, strict=True):
        taken, error = errors(result)
        ax.plot(taken, error, color=colour, linewidth=2, marker="o", markersize=3)
        ax.annotate(
            way,
            (taken[-1], error[-1]),
            xytext=(5, 0),
            textcoords="offset points",
            color=colour,
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
    """Run each way for some time, or to a thousandth, and publish times and the picture."""
    at = problem(name, sizes)
    rule = AnyOf([Tolerance(0.001), TimeBudget(seconds)])
    found = {
        way: measured(at, way, rule, game, options).result
        for way, (game, options) in ways(at, sizes).items()
    }
    RESULTS.mkdir(exist_ok=True)
    picture(found, "convergence.svg")
    best = {level: needed(found["dsage: d-SAGE"], level)[0] for level in _LEVELS}
    rows = []
    for way, result in found.items():
        times = [needed(result, level) for level in _LEVELS]
        cells = [f"{took:,.1f}{' *' if guessed else ''}" for took, guessed in times]
        ratio = times[-1][0] / best[_LEVELS[-1]]
        rows.append([way, *cells, f"{ratio:,.{0 if math.isclose(ratio, 1.0) else 1}f}"])
    header = ["way", *(f"seconds to {100 * level:g} %" for level in _LEVELS), "ratio at 1 %"]
    text = (
        f"A forest of {sizes.n_trees} trees on the paper's {name}: {at.X.shape[1]} features, "
        f"{sizes.n_rows:,} evaluation rows, {sizes.n_draws} draws for the first two ways and the "
        "defaults for the others, one core. The time until the largest standard error of a value "
        "is a share of the range of the values; learning the graph took "
        f"{at.seconds_learned:.2f} s more. The first two ways evaluate an ordering on all rows, "
        "as other packages do; all four are runs of our own loop, ended after "
        f"{seconds:g} s or at 0.1 %. Errors count from 30 units of orderings on; the first two "
        "ways have fewer, and theirs are rough. * is extrapolated with the root of the time from "
        "the end of the run.\n\n![Errors by time](convergence.svg)"
    )
    title = "Errors by time"
    publish("convergence", title, [(text, markdown(header, rows))], ["dsage", "scikit-learn"])


if __name__ == "__main__":
    if "--tiny" in sys.argv:
        main(TINY, "dag_s(2)", 3.0)
    else:
        main(Sizes(), "dag_sm(2)", 120.0)
