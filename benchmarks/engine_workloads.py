"""Measure the cost of reaching an error of 5, 2 and 1 % of the range, on tables of all kinds.

Run: python -m benchmarks.engine_workloads [--seconds N] [--only NAME ...] [--way NAME ...]
     [--save FILE] [--lines FILE ...] [--before FILE]

All ways to estimate use the sampler, the loss and the number of draws that `explain` chooses; with
`--sampler gaussian`, a Gaussian sampler. `--save` stores the lines, and `--lines` publishes stored
ones, the latest of each workload and way. `--before` shows the lines of another version next to the
present ones: copy this file and workloads.py into its benchmarks to measure them.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from benchmarks.table import markdown, publish
from benchmarks.workloads import NAMES, Workload, make
from dsage import learn_graph
from dsage.estimate import Estimation
from dsage.games import LossGame
from dsage.samplers import Gaussian, choose_sampler

try:
    from dsage.estimate.graph_use import measure_use
    from dsage.estimate.options import PlanOptions
except ImportError:  # Versions before the rule used every graph.
    measure_use = None  # type: ignore[assignment]

ERRORS = (0.05, 0.02, 0.01)
WAYS: dict[str, dict[str, Any]] = {
    "default": {"graph": "auto"},
    "graph=None": {"graph": "none"},
    "no first level": {"graph": "none", "first_level": "none"},
    "graph used": {"graph": "always"},
}
"""The options of the ways that are compared."""


@dataclass(frozen=True)
class Cost:
    """Processor time and model rows to an error; extrapolated where the run ended before it."""

    seconds: float
    rows: float
    is_measured: bool

    def __str__(self) -> str:
        sign = "" if self.is_measured else "≈"
        return f"{sign}{self.seconds:.3g} s, {sign}{self.rows / 1e3:,.0f}k"


def measure(game: LossGame, seconds: float, options: dict[str, Any]) -> dict[float, Cost]:
    """Return what each error costs, from a run to the smallest one, or for some processor time."""
    first_rows, start = game.n_predicted, process_time()
    looks: list[tuple[float, float, int]] = []
    for estimate in Estimation(game, random_state=0, n_jobs=1, **options).steps():
        took = process_time() - start
        if estimate.n_units < 30 and not estimate.is_exact and took < seconds:
            continue
        error = float(estimate.se.max() / np.ptp(estimate.values))
        looks.append((error, took, game.n_predicted - first_rows))
        if error <= min(ERRORS) or took > seconds:
            break
    costs = {}
    for wanted in ERRORS:
        met = next((look for look in looks if look[0] <= wanted), None)
        error, took, rows = looks[-1] if met is None else met
        # Errors fall with the square root of the work.
        times = (error / wanted) ** 2 if met is None else 1.0
        costs[wanted] = Cost(took * times, rows * times, met is not None)
    return costs


def prepare(workload: Workload, sampler: str, *, learns: bool) -> tuple[Any, Any]:
    """Return the sampler, and the separations of the learned graph, if one is needed."""
    found: Any = Gaussian().fit(workload.X_train) if sampler == "gaussian" else None
    if found is None:
        predict = getattr(workload.model, "predict_proba", workload.model.predict)
        found = choose_sampler(workload.X_train, predict=predict).sampler
    if not learns:
        return found, None
    data = workload.X_train.assign(**{"the target": workload.y_train})
    is_class = hasattr(workload.model, "classes_")
    graph = learn_graph(
        data, target="the target", discrete=["the target"] if is_class else (), random_state=0
    )
    return found, graph.oracle("the target", features=list(workload.X_train.columns))


def uses(oracle: Any, graph: str) -> bool:  # noqa: ANN401
    """Return whether a way uses the separations of the learned graph."""
    if graph == "auto" and measure_use is not None:
        return measure_use(oracle, PlanOptions(random_state=0)).pays
    return graph != "none"


def measure_ways(
    name: str, ways: Sequence[str], seconds: float, sampler: str
) -> Iterator[list[str]]:
    """Yield the lines of the table for a workload."""
    workload = make(name)
    learns = any(WAYS[way]["graph"] != "none" for way in ways)
    fitted, oracle = prepare(workload, sampler, learns=learns)
    for way in ways:
        options = dict(WAYS[way])
        note = ""
        if uses(oracle, options.pop("graph")):
            options["oracle"], note = oracle, " (with the graph)"
        elif way == "default":
            note = " (without the graph)"
        game = LossGame(workload.model, fitted, workload.X_test, workload.y_test, random_state=0)
        costs = measure(game, seconds, options)
        line = [name, type(fitted).__name__, way + note, *map(str, costs.values())]
        print(" | ".join(line), flush=True)
        yield line


def set_beside(table: Sequence[Sequence[str]], before: Sequence[Sequence[str]]) -> list[list[str]]:
    """Return the lines with the costs of the same way of another version after them."""
    old = {(line[0], _way(line[2])): line for line in before}
    empty = ["", "", "", *["-"] * len(ERRORS)]
    return [[*line, *old.get((line[0], _way(line[2])), empty)[3:]] for line in table]


def _kept(files: Sequence[Path]) -> list[list[str]]:
    """Return the lines of files, of several for a workload and way the last one."""
    lines = [line for file in files for line in json.loads(file.read_text())]
    return list({(line[0], _way(line[2])): line for line in lines}.values())


def _way(text: str) -> str:
    return text.split(" (", maxsplit=1)[0]


def main() -> None:
    """Measure and publish."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--only", nargs="*", choices=NAMES, default=NAMES)
    parser.add_argument("--way", nargs="*", choices=tuple(WAYS), default=tuple(WAYS))
    parser.add_argument("--sampler", choices=("auto", "gaussian"), default="auto")
    parser.add_argument("--save", type=Path)
    parser.add_argument("--lines", nargs="*", type=Path, default=[])
    parser.add_argument("--before", type=Path)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    table = _kept(args.lines)
    with threadpool_limits(1):
        for name in [] if args.lines else args.only:
            table += measure_ways(name, args.way, args.seconds, args.sampler)
            if args.save is not None:
                args.save.write_text(json.dumps(table))
    if args.save is not None:
        return
    header = ["table and model", "sampler", "way", *[f"{100 * error:g} %" for error in ERRORS]]
    if args.before is not None:
        header += [f"before: {100 * error:g} %" for error in ERRORS]
        table = set_beside(table, json.loads(args.before.read_text()))
    publish_table(header, table, args.seconds)


def publish_table(header: list[str], table: list[list[str]], seconds: float) -> None:
    """Write the published page."""
    text = (
        "Processor time and rows predicted until the largest standard error is 5, 2 and 1 % of the "
        f"range of the values; ≈ marks figures that are extrapolated from a run of {seconds:g} s "
        "by the square of the error, which overestimates them if the first units are the worst. "
        "The time to learn the graph and to choose the sampler is not included. *Before* is "
        "the version that used every graph, had a linear first level, and 8 draws for each risk "
        "whatever the loss: fewer than cross entropy needs to be unbiased (16), so its rows are "
        "not comparable for classifiers."
    )
    publish("engine_workloads", "The engine", [(text, markdown(header, table))], ["dsage"])


if __name__ == "__main__":
    main()
