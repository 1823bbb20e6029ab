"""Write the page and draw the picture of the race from its runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt

from benchmarks.race.problems import RECIPES
from benchmarks.race.truth import Truth
from benchmarks.table import RESULTS, markdown
from benchmarks.table import publish as write_page

ERRORS = (0.05, 0.02, 0.01)
# Errors beyond so many times the range are not those of an estimate that gets better.
_SENSELESS = 100.0
# Values are stored with six digits.
_ROUNDING = 1e-5
_OWN = ("dsage", "dsage, run", "dsage, graph")


@dataclass(frozen=True)
class Cost:
    """What an error costs a way: processor seconds, predicted rows; whether it was reached."""

    cpu: float
    rows: float
    is_reached: bool

    def __str__(self) -> str:
        if not np.isfinite(self.cpu):
            return "diverges"
        mark = "" if self.is_reached else "≈"
        return f"{mark}{_seconds(self.cpu)} s, {mark}{_count(self.rows)}"


def relative_error(values: Sequence[Sequence[float]], truth: Truth) -> float:
    """Return the root mean square over features and seeds, as a share of the range.

    The variance of the truth itself is subtracted.
    """
    errors = np.asarray(values) - truth.values
    square = float((errors**2).mean() - (truth.se**2).mean())
    return float(np.sqrt(max(square, 0.0)) / np.ptp(truth.values))


def costs(runs: Sequence[dict[str, Any]], truth: Truth) -> dict[float, Cost]:
    """Return what each error costs a way on a problem, from its runs with all efforts and seeds.

    An error that no effort reached is extrapolated from the largest one by the square of the
    error.
    """
    looks = []
    for effort in sorted({run["effort"] for run in runs}):
        same = [run for run in runs if run["effort"] == effort]
        looks.append(
            (
                relative_error([run["values"] for run in same], truth),
                float(np.mean([run["cpu"] for run in same])),
                float(np.mean([run["rows"] for run in same])),
            )
        )
    found = {}
    for wanted in ERRORS:
        met = next((look for look in looks if look[0] <= wanted), None)
        error, cpu, rows = looks[-1] if met is None else met
        times = 1.0 if met is not None else (error / wanted) ** 2
        times = times if error < _SENSELESS else np.inf
        found[wanted] = Cost(cpu * times, rows * times, met is not None)
    return found


def coverage(runs: Sequence[dict[str, Any]], truth: Truth) -> str:
    """Return the share of 95 % intervals, of the largest effort, that hold the truth."""
    largest = max(run["effort"] for run in runs)
    hits = []
    for run in runs:
        if run["effort"] == largest and run["se"] is not None:
            width = 1.96 * np.hypot(run["se"], truth.se) + _ROUNDING * np.ptp(truth.values)
            hits.append(np.abs(np.asarray(run["values"]) - truth.values) <= width)
    return "-" if not hits else f"{100 * np.mean(hits):.0f} %"


def table(
    runs: Sequence[dict[str, Any]], truths: Mapping[str, Truth], problems: Sequence[str]
) -> tuple[list[list[str]], dict[str, dict[str, dict[float, Cost]]]]:
    """Return the lines of the table, in the order of problems, and the costs of each way."""
    lines, found = [], {}
    raced = {run["problem"] for run in runs}
    for name in (name for name in problems if name in raced):
        truth = truths[name]
        raced_here = dict.fromkeys(run["way"] for run in runs if run["problem"] == name)
        ways = sorted(raced_here, key=lambda way: way not in _OWN)
        mine = {way: _of(runs, name, way) for way in ways}
        faults = {way: some[0]["fault"] for way, some in mine.items() if some[0]["fault"]}
        mine = {way: some for way, some in mine.items() if way not in faults}
        found[name] = {way: costs(some, truth) for way, some in mine.items()}
        own = min(found[name][way][0.01].cpu for way in _OWN if way in found[name])
        for way, some in mine.items():
            here = found[name][way]
            factor = here[0.01].cpu / own
            lines.append(
                [
                    name,
                    way,
                    *[str(here[error]) for error in ERRORS],
                    "" if way in _OWN or not np.isfinite(factor) else f"{factor:,.1f} x",
                    coverage(some, truth),
                    f"{max(run['peak'] for run in some) / 1e6:,.0f}",
                ]
            )
        lines += [[name, way, *[fault] * len(ERRORS), "", "-", ""] for way, fault in faults.items()]
    return lines, found


def publish(
    runs: Sequence[dict[str, Any]],
    truths: Mapping[str, Truth],
    packages: Mapping[str, str],
    seconds: float,
    problems: Sequence[str],
) -> None:
    """Write the page and the picture; `problems` are the names of all, raced or not."""
    lines, found = table(runs, truths, problems)
    entrants = ", ".join(packages[name] for name in dict.fromkeys(packages) if name in _raced(runs))
    n_seeds = len({run["seed"] for run in runs})
    text = (
        f"dsage against {entrants}, each in its own environment, with one thread. Processor time "
        "and rows predicted by the model until the error is 5, 2 and 1 % of the range of the "
        "values. The error is the root mean square over features and "
        f"{n_seeds} seeds of the difference from the true values. ≈ marks precisions that no run "
        f"reached within {seconds:g} s{_longer(seconds)}; they are extrapolated from the longest "
        "run by the square of the error, which is too optimistic for biased methods. *Slower* "
        "compares the time to 1 % with the fastest of our ways. `dsage` is `explain(graph=None)`, "
        "which also reads the columns and scores the sampler; `dsage, run` gets the law and "
        "nothing else, as the other packages do; `dsage, graph` also learns a graph. *Coverage*: "
        "the share of 95 % intervals of the longest runs that contain the true value; those of "
        "`dsage, graph` are for d-SAGE values, which differ from SAGE where a model is not "
        "optimal: on a linear model they are exact, so that no interval covers the difference. "
        "Unknown features are normal with the moments of the training rows (*conditional*), or 128 "
        "training rows (*marginal*), for all packages alike; there are at most 300 evaluation "
        "rows, except where their number grows. `sage` "
        "has no conditional imputer and gets a vectorized one; shapiq and shap get the risk of a "
        "coalition as a game; `hidimstat` averages losses and not predictions, which is another "
        "estimand, so that its error does not vanish. Other work ran on the other processor at the "
        "same time."
    )
    missing = [name for name in problems if name not in found]
    if missing:
        text += f" Not raced here: {'; '.join(missing)}."
    header = ["problem", "way", "5 %", "2 %", "1 %", "slower", "coverage", "peak, MB"]
    sources = markdown(
        ["problem", "truth", "its own error, %"],
        [
            [name, each.source, f"{100 * np.sqrt((each.se**2).mean()) / np.ptp(each.values):.2f}"]
            for name, each in truths.items()
        ],
    )
    sections = [
        (text, markdown(header, lines)),
        ("What errors are measured against:", sources),
    ]
    write_page("race", "The race", sections, ["dsage", "numpy", "scikit-learn", "lightgbm"])
    draw(found)


def _longer(seconds: float) -> str:
    """Return which problems are raced longer than others, and how long."""
    longer = {name: each.patience for name, each in RECIPES.items() if each.patience > 1.0}
    return "".join(f" ({name}: {times * seconds:g} s)" for name, times in longer.items())


def draw(found: Mapping[str, Mapping[str, Mapping[float, Cost]]]) -> None:
    """Draw the time to 1 % of each package's best way on each problem."""
    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "race"
    names = [name for name in found if not name.startswith("growth")][::-1]
    colors = {
        "dsage": "#c0392b",
        "sage": "#2c6fbb",
        "fippy": "#7a5195",
        "shapiq": "#3a923a",
        "shap": "#e1812c",
    }
    figure, axes = plt.subplots(figsize=(8.0, 0.34 * len(names) + 1.4), layout="constrained")
    for number, name in enumerate(names):
        for package, color in colors.items():
            mine = [
                each[0.01].cpu for way, each in found[name].items() if way.split(",")[0] == package
            ]
            if mine and np.isfinite(min(mine)):
                label = package if number == len(names) - 1 else None
                size = 60 if package == "dsage" else 32
                axes.scatter(min(mine), number, color=color, s=size, label=label, zorder=3)
    axes.set_yticks(range(len(names)), names)
    axes.set_xscale("log")
    axes.set_xlabel("processor seconds to an error of 1 % of the range")
    axes.grid(axis="x", color="#dddddd", zorder=0)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.legend(loc="upper center", bbox_to_anchor=(0.3, 1.1), ncol=len(colors), frameon=False)
    figure.savefig(RESULTS / "race.svg", metadata={"Date": None})
    plt.close(figure)


def _of(runs: Sequence[dict[str, Any]], name: str, way: str) -> list[dict[str, Any]]:
    return [run for run in runs if run["problem"] == name and run["way"] == way]


def _raced(runs: Sequence[dict[str, Any]]) -> set[str]:
    return {run["package"] for run in runs}


def _seconds(number: float) -> str:
    return f"{number:.2g}" if number < 10 else f"{number:,.0f}"


def _count(number: float) -> str:
    for size, sign in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.3g}{sign}"
    return f"{number:.0f}"
