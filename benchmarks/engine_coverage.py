"""Simulate the coverage of 95 % intervals for exact values.

Run: python -m benchmarks.engine_coverage [--runs N] [--tiny]

The distributions and exact values come from the folder of the tests.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from benchmarks.table import markdown, publish
from dsage.estimate import Estimate, estimate, intervals
from dsage.games import LossGame
from dsage.games.base import Floats

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))
small = import_module("small_games")

Rows = tuple[Any, Any]

STOPS = (20, 64, 200)
PLAIN: dict[str, Any] = {}
SINGLE_LEVEL: dict[str, Any] = {"first_level": "none"}
BOUNDARY: dict[str, Any] = {"oracle": small.ORACLE, "audit": False}
SKIP: dict[str, Any] = BOUNDARY | {"semantics": "skip"}
CORRECTED: dict[str, Any] = BOUNDARY | {"estimand": "sage"}
NAMES = {
    "SAGE, no levels": SINGLE_LEVEL,
    "SAGE": PLAIN,
    "d-SAGE": BOUNDARY,
    "d-SAGE, skip": SKIP,
    "SAGE, corrected": CORRECTED,
}


@dataclass(frozen=True, eq=False)
class Law:
    """A distribution with a suboptimal model: rows, games and exact values."""

    name: str
    sample: Callable[[int, np.random.Generator], Rows]
    game: Callable[..., LossGame]
    values: Callable[..., Floats]


@dataclass(frozen=True, eq=False)
class Setting:
    """What to estimate, the number of rows, when to stop, and the relative number of runs."""

    law: Law
    what: str
    n_rows: int
    stops: tuple[int, ...]
    runs: float = 1.0
    options: dict[str, Any] = field(default_factory=dict)


def laws() -> dict[str, Law]:
    """Return a linear-Gaussian law, without and with draws, and one with binary features."""
    linear = small.suboptimal_gaussian_case()
    table, _, binary = small.binary_case_of_rows(400)

    def affine_game(X: Any, y: Any, seed: int) -> LossGame:  # noqa: ANN401
        return small.gaussian_game(linear, X, y, random_state=seed)

    def drawn_game(X: Any, y: Any, seed: int) -> LossGame:  # noqa: ANN401
        return small.gaussian_game(linear, X, y, is_drawn=True, random_state=seed)

    def binary_rows(n_rows: int, rng: np.random.Generator) -> Rows:
        X, y = binary.sample(n_rows, rng)
        return type(table)(X, columns=table.columns), y

    def binary_game(X: Any, y: Any, seed: int) -> LossGame:  # noqa: ANN401
        return small.binary_game(binary, table, X, y, random_state=seed)

    return {
        "linear": Law("linear", linear.sample, affine_game, linear.values),
        "drawn": Law("linear, drawn", linear.sample, drawn_game, linear.values),
        "binary": Law("binary, drawn", binary_rows, binary_game, binary.values),
    }


def truth(at: Setting, data: Rows | None) -> Floats:
    """Return the exact values of a setting, for rows or for the population."""
    options = NAMES[at.what]
    oracle = None if options.get("estimand") == "sage" else options.get("oracle")
    return at.law.values(oracle, options.get("semantics", "boundary"), data)


def looks(at: Setting, data: Rows, seed: int) -> list[Estimate]:
    """Return the estimate at each stop of one run."""
    found: list[Estimate] = []
    game = at.law.game(*data, seed)
    options = NAMES[at.what] | at.options
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for current in estimate(game, random_state=seed, **options):
            while len(found) < len(at.stops) and (
                current.n_units >= at.stops[len(found)] or current.is_exact
            ):
                found.append(current)
            if len(found) == len(at.stops):
                break
        # An exact estimate is final.
        found += [current] * (len(at.stops) - len(found))
    return found


def tabulate(at: Setting, label: Sequence[str], off: Floats, se: Floats, half: Floats) -> list[str]:
    """Summarize errors, standard errors and half-widths, each (n_runs, n_features)."""
    n_runs = len(off)
    # Allow for rounding, because the intervals of exact values have no width.
    covered = (np.abs(off) <= half + 1e-9).mean(axis=1)
    error = covered.std(ddof=1) / np.sqrt(n_runs)
    spread = off.std(axis=0, ddof=1)
    varies = spread > 1e-9
    ratio = np.sqrt((se**2).mean(axis=0))[varies] / spread[varies]
    bias = off.mean(axis=0)[varies] / spread[varies]
    largest = np.abs(bias).max() if varies.any() else 0.0
    return [
        *(at.law.name, at.what, *label, str(n_runs)),
        f"{100 * covered.mean():.1f} -+ {100 * error:.1f}",
        f"{ratio.min():.2f} to {ratio.max():.2f}" if varies.any() else "-",
        f"{largest * np.sqrt(n_runs):.1f}",
    ]


def simulate_rows(settings: Sequence[Setting], n_runs: int) -> list[list[str]]:
    """Simulate intervals for the values of fixed rows."""
    table = []
    for at in settings:
        data = at.law.sample(at.n_rows, np.random.default_rng(at.n_rows))
        exact = truth(at, data)
        runs = [looks(at, data, seed) for seed in range(max(2, round(at.runs * n_runs)))]
        for place, stop in enumerate(at.stops):
            results = [run[place] for run in runs]
            ends = [intervals(each.values, each.se, df=each.df) for each in results]
            half = np.array([(high - low) / 2 for low, high in ends])
            off = np.array([each.values for each in results]) - exact
            n_shards = -(-at.n_rows // at.options.get("rows_per_ordering", at.n_rows))
            label = [f"{at.n_rows} / {n_shards}", str(stop)]
            table.append(tabulate(at, label, off, np.array([each.se for each in results]), half))
            print("|", " | ".join(table[-1]), "|", flush=True)
    return table


def simulate_population(settings: Sequence[Setting], n_runs: int) -> list[list[str]]:
    """Simulate intervals for the values of the population, with new rows in each run."""
    table = []
    for at in settings:
        exact = truth(at, None)
        off, se, half = [], [], []
        for seed in range(n_runs):
            data = at.law.sample(at.n_rows, np.random.default_rng([seed, 1]))
            result = looks(at, data, seed)[-1]
            low, high = intervals(result.values, result.se_total)
            off.append(result.values - exact)
            se.append(result.se_total)
            half.append((high - low) / 2)
        kind = "sampled" if at.options.get("exact") == "never" else "all orderings"
        label = [str(at.n_rows), kind]
        table.append(tabulate(at, label, np.array(off), np.array(se), np.array(half)))
        print("|", " | ".join(table[-1]), "|", flush=True)
    return table


def settings_of_rows() -> list[Setting]:
    """Return the settings for the values of fixed rows."""
    known_laws = laws()
    linear, drawn, binary = known_laws["linear"], known_laws["drawn"], known_laws["binary"]
    never = {"exact": "never"}
    found = [
        Setting(linear, what, 64, STOPS if what.startswith("SAGE") else STOPS[:2], options=never)
        for what in NAMES
    ]
    shards = never | {"rows_per_ordering": 16}
    found += [Setting(drawn, what, 64, STOPS[:2], options=shards) for what in NAMES]
    many = never | {"rows_per_ordering": 4}
    found += [
        # At first fewer units than shards, then enough units for the errors within shards.
        Setting(drawn, "SAGE", 128, STOPS, 0.5, many),
        Setting(drawn, "d-SAGE", 128, STOPS, 0.5, many),
        Setting(drawn, "d-SAGE", 64, (1,), options={"rows_per_ordering": 16}),
    ]
    found += [
        Setting(binary, what, 64, STOPS[:2], 0.75, shards)
        for what in ("SAGE", "d-SAGE", "SAGE, corrected")
    ]
    return found


def settings_of_population() -> list[Setting]:
    """Return the settings for the values of the population."""
    known_laws = laws()
    linear, drawn, binary = known_laws["linear"], known_laws["drawn"], known_laws["binary"]
    never = {"exact": "never"}
    wide = {"rows_per_ordering": 50}
    return [
        Setting(linear, "SAGE", 400, (1,)),
        Setting(linear, "d-SAGE", 400, (1,)),
        Setting(linear, "SAGE, corrected", 400, (32,), options=never),
        Setting(drawn, "SAGE", 200, (16,), options=never | wide),
        Setting(drawn, "d-SAGE", 200, (1,), options=wide),
        Setting(drawn, "SAGE, corrected", 200, (16,), options=never | wide),
        Setting(binary, "d-SAGE", 200, (1,), options=wide),
        Setting(binary, "SAGE, corrected", 200, (16,), options=never | wide),
    ]


def main(n_runs: int, *, is_tiny: bool) -> None:
    """Simulate everything and publish the tables."""
    of_rows, of_all = settings_of_rows(), settings_of_population()
    common = (
        "Four features and suboptimal models. *Coverage* is the share of runs and features whose "
        "interval contains the exact value, -+ its standard error over runs; the target is 93 to "
        "97 %. *Error / spread* is the root mean squared standard error divided by the standard "
        "deviation of the estimates, smallest and largest over features; ideally it is 1. *Bias* "
        "is the largest mean error of a feature, in standard errors of that mean."
    )
    rows_text = (
        f"**Values of fixed rows.** {common} These intervals account for orderings and draws. The "
        "rows are fixed; each run has new orderings and draws and is evaluated after the given "
        "number of units (antithetic pairs on one shard of the rows). 1 unit stands for all "
        "orderings at once on all rows."
    )
    all_text = (
        "**Values of the population**, with `se_total`: each run has new rows, orderings and "
        "draws. Either *all orderings* at once, or orderings sampled for a few units."
    )
    last = ["runs", "coverage, %", "error / spread", "bias"]
    of_rows_header = ["law", "values", "rows / shards", "units", *last]
    of_all_header = ["law", "values", "rows", "orderings", *last]
    sections = [
        (rows_text, markdown(of_rows_header, simulate_rows(of_rows, n_runs))),
        (all_text, markdown(of_all_header, simulate_population(of_all, 2 * n_runs))),
    ]
    if is_tiny:
        print("\n\n".join(f"{text}\n\n{table}" for text, table in sections))
        return
    packages = ["dsage", "numpy", "scipy"]
    publish("engine_coverage", "The engine: coverage of intervals", sections, packages)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--runs", type=int, default=100, help="runs per setting")
    parser.add_argument("--tiny", action="store_true", help="few runs, for a trial")
    given = parser.parse_args()
    with threadpool_limits(1):
        main(4 if given.tiny else given.runs, is_tiny=given.tiny)
