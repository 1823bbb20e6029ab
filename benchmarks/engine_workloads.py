"""Measure what an error of 5, 2 and 1 % of the range costs on tables of all kinds.

Run: python -m benchmarks.engine_workloads [--seconds N] [--only NAME ...] [--way NAME ...]

Every way to estimate has the sampler that `explain` chooses, its loss and its numbers of draws.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from time import process_time
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from benchmarks.table import markdown, publish
from benchmarks.workloads import NAMES, Workload, make
from dsage import learn_graph
from dsage.estimate import Estimation
from dsage.games import LossGame
from dsage.samplers import choose_sampler

ERRORS = (0.05, 0.02, 0.01)
WAYS: dict[str, dict[str, Any]] = {
    "graph=None": {"graph": False},
    "no first level": {"graph": False, "first_level": "none"},
    "graph": {"graph": True, "audit": False},
    "graph and audit": {"graph": True},
    "sage": {"graph": True, "estimand": "sage"},
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


def measure(
    game: LossGame, seconds: float, options: dict[str, Any]
) -> tuple[dict[float, Cost], float]:
    """Run to the smallest error, or for some processor time; return costs and seconds taken."""
    first_rows, start = game.n_predicted, process_time()
    looks: list[tuple[float, float, int]] = []
    for estimate in Estimation(game, random_state=0, **options).steps():
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
    return costs, looks[-1][1]


def prepare(workload: Workload) -> tuple[Any, Any, float]:
    """Return the sampler, the separations of the learned graph and their time."""
    data = workload.X_train.assign(**{"the target": workload.y_train})
    sampler = choose_sampler(
        workload.X_train, predict=getattr(workload.model, "predict_proba", workload.model.predict)
    ).sampler
    start = process_time()
    is_class = hasattr(workload.model, "classes_")
    graph = learn_graph(
        data, target="the target", discrete=["the target"] if is_class else (), random_state=0
    )
    oracle = graph.oracle("the target", features=list(workload.X_train.columns))
    return sampler, oracle, process_time() - start


def rows_of(name: str, ways: Sequence[str], seconds: float) -> Iterator[list[str]]:
    """Yield the lines of the table for a workload."""
    workload = make(name)
    sampler, oracle, took = prepare(workload)
    for way in ways:
        options = dict(WAYS[way])
        if options.pop("graph"):
            options["oracle"] = oracle
        game = LossGame(workload.model, sampler, workload.X_test, workload.y_test, random_state=0)
        costs, _ = measure(game, seconds, options)
        line = [name, type(sampler).__name__, way, *map(str, costs.values())]
        print(" | ".join(line), f"(graph {took:.1f} s)", flush=True)
        yield line


def main() -> None:
    """Measure and publish."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--only", nargs="*", choices=NAMES, default=NAMES)
    parser.add_argument("--way", nargs="*", choices=tuple(WAYS), default=tuple(WAYS))
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        table = [line for name in args.only for line in rows_of(name, args.way, args.seconds)]
    if len(args.only) < len(NAMES) or len(args.way) < len(WAYS):
        return
    header = ["table and model", "sampler", "way", "5 %", "2 %", "1 %"]
    text = "Processor time and rows predicted until the largest standard error is 5, 2 and 1 %."
    publish("engine_workloads", "The engine", [(text, markdown(header, table))], ["dsage"])


if __name__ == "__main__":
    main()
