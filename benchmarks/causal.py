"""Measure causal values: coverage, the first level under interventions, and what they cost.

Run: python -m benchmarks.causal [--runs N] [--tiny]
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

import dsage
from benchmarks.causal_coverage import settings, simulate, simulate_flows
from benchmarks.table import markdown, publish
from dsage import Graph
from dsage._check import DsageWarning
from dsage.estimate import run
from dsage.estimate.running.stopping import NOrderings
from dsage.games import LossGame
from dsage.games.base import Floats
from dsage.samplers import Gaussian, Interventional
from dsage.samplers.base import Sampler

TOLERANCES = (0.05, 0.02, 0.01)
N_FEATURES, N_TRAIN, N_TEST = 8, 600, 200


@dataclass(frozen=True, eq=False)
class Problem:
    """Rows, a fitted forest, and a graph of causes; the model counts the rows that it predicts."""

    name: str
    rows: tuple[Any, Any, Any, Any]
    model: RandomForestRegressor
    graph: Graph
    n_predicted: list[int]

    def predict(self, X: Any) -> Floats:  # noqa: ANN401
        """Predict, and count."""
        self.n_predicted[0] += len(X)
        return np.asarray(self.model.predict(X), dtype=np.float64)


def make_problem(name: str, table: pd.DataFrame, graph: Graph, n_train: int) -> Problem:
    """Fit a forest to the first rows of a table with the target `y`."""
    X, y = table.drop(columns="y"), table["y"]
    rows = X[:n_train], y[:n_train], X[n_train:], y[n_train:]
    forest = RandomForestRegressor(15, min_samples_leaf=5, random_state=0).fit(*rows[:2])
    return Problem(name, rows, forest, graph, [0])


def simulated(name: str, *, is_curved: bool) -> Problem:
    """Return a problem with a random graph; curved effects have heavy-tailed noise."""
    rng = np.random.default_rng(0)
    names = [f"x{at}" for at in range(1, N_FEATURES + 1)]
    columns: dict[str, Floats] = {}
    edges = []
    for at, node in enumerate([*names, "y"]):
        most = min(at, 4 if node == "y" else 2)
        parents = sorted(rng.choice(at, most, replace=False).tolist())
        noise = rng.standard_t(3, N_TRAIN + N_TEST) if is_curved else rng.normal(size=800)
        columns[node] = noise
        for number, parent in enumerate(parents):
            value = columns[names[parent]]
            effect = np.sin(2 * value) + np.abs(value) if is_curved and number % 2 else value
            columns[node] = columns[node] + (0.8 if number % 2 else -0.7) * effect
            edges.append((names[parent], node))
    return make_problem(name, pd.DataFrame(columns), Graph([*names, "y"], edges), N_TRAIN)


def diabetes() -> Problem:
    """Return the diabetes table with a graph that was learned; age and sex come first."""
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    table = X.assign(y=y).sample(frac=1, random_state=0).reset_index(drop=True)
    tiers = [["age", "sex"], [name for name in X.columns if name not in ("age", "sex")], ["y"]]
    found = dsage.learn_graph(table[:300], tiers=tiers)
    return make_problem("diabetes", table, found, 300)


def sampler_of(problem: Problem, *, is_causal: bool) -> Sampler:
    """Return the Gaussian sampler of a problem, of features that are set or seen."""
    X, y = problem.rows[:2]
    if not is_causal:
        return Gaussian().fit(X)
    sampler = Interventional(sampler=Gaussian(), graph=problem.graph, target="y")
    return sampler.fit(X, y)


def first_levels(problem: Problem, n_seeds: int) -> list[list[str]]:
    """Return the variance from orderings that the first level leaves, of values and parts."""
    lines = []
    for kind, is_causal in (("causal", True), ("conditional", False)):
        sampler = sampler_of(problem, is_causal=is_causal)
        left: dict[str, list[Floats]] = {"auto": [], "none": []}
        for level, found in left.items():
            for seed in range(n_seeds):
                X, y = problem.rows[2:]
                own = {"loss": "squared_error", "n_draws": 8, "random_state": seed}
                game = LossGame(problem.model, sampler, X, y, **own)
                options = {"exact": "never", "audit": False, "random_state": seed}
                each = run(
                    game, first_level=level, stopping=NOrderings(48), rows_per_ordering=25,
                    **options,
                )  # fmt: skip
                parts = [] if each.parts is None else list(each.parts.se_orderings)
                found.append(np.stack([each.se_orderings, *parts]) ** 2)
        mean = {level: np.mean(found, axis=(0, 2)) for level, found in left.items()}
        shares = [f"{100 * each:.0f}" for each in mean["auto"] / np.maximum(mean["none"], 1e-300)]
        lines.append([problem.name, kind, *shares, *["-"] * (3 - len(shares))])
    return lines


def spent(problem: Problem, call: Callable[[], dsage.Explanation]) -> tuple[float, int, Any]:
    """Return the CPU seconds of a call, the rows that were predicted, and the result."""
    problem.n_predicted[0] = 0
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DsageWarning)
        found = call()
    return time.process_time() - start, problem.n_predicted[0], found


def explain(problem: Problem, **options: Any) -> dsage.Explanation:  # noqa: ANN401
    """Explain the forest of a problem by squared error and a Gaussian sampler."""
    common: dict[str, Any] = {"loss": "squared_error", "sampler": "gaussian", "progress": False}
    common |= {"sampler_check": False, "random_state": 0, "n_jobs": 1}
    return dsage.explain(problem.predict, *problem.rows, **(common | options))


def costs(problem: Problem, tolerances: tuple[float, ...]) -> list[list[str]]:
    """Return what causal and conditional values cost to several tolerances."""
    ways = {
        "causal": {"estimand": "causal", "graph": problem.graph},
        "conditional": {"estimand": "sage", "graph": None},
    }
    lines = []
    for name, way in ways.items():
        cells = []
        for tolerance in tolerances:
            cpu, n_rows, _ = spent(
                problem, lambda way=way, at=tolerance: explain(problem, tolerance=at, **way)
            )
            cells.append(f"{n_rows:,} / {cpu:.1f}")
        lines.append([problem.name, name, *cells])
    return lines


def ranges(problem: Problem) -> list[str]:
    """Return what the range over the graphs of an equivalence class costs beyond one graph."""
    options = {"estimand": "causal"}
    one = spent(problem, lambda: explain(problem, graph=problem.graph, **options))
    equivalent = dsage.graphs.cpdag(problem.graph)
    every = spent(problem, lambda: explain(problem, graph=equivalent, **options))
    found = every[2].range_graph
    n_members = 1 if found is None else found.n_members
    n_graphs = 0 if found is None else len(found.graphs)
    width, worst = 0.0, 0.0
    if found is not None:
        size = float(np.ptp(found.values))
        width = float((found.highest - found.lowest).max()) / size
        worst = float(found.se.max()) / size
    return [
        problem.name,
        f"{n_members:,}",
        str(n_graphs),
        f"{one[1]:,} / {one[0]:.1f}",
        f"{every[1]:,} / {every[0]:.1f}",
        f"{100 * width:.0f}",
        f"{100 * worst:.1f}",
    ]


def coverage_sections(n_runs: int) -> list[tuple[str, str]]:
    """Return the tables of coverage."""
    of_rows, of_all = settings()
    last = ["runs", "coverage, %", "error / spread", "bias"]
    head = ["law", "rows", "orderings", "what", *last]
    rows = [line for at in of_rows for line in simulate(at, n_runs, has_new_rows=False)]
    whole = [line for at in of_all for line in simulate(at, n_runs, has_new_rows=True)]
    lines = [
        line
        for sources, n_rows in (("noise", 60), ("do", 60), ("do", 200))
        for line in simulate_flows(sources, n_rows, n_runs)
    ]
    common = (
        "Three features. *Coverage* is the share of runs and features whose 95 % interval contains "
        "the exact value, -+ its standard error over runs. *Error / spread* is the root mean "
        "squared standard error divided by the standard deviation of the estimates, smallest and "
        "largest over features; ideally 1. *Bias* is the largest mean error of a feature, in "
        "standard errors of that mean. Exact values: structural equations, or all interventional "
        "distributions of the discrete network. Parts that are exactly zero by a rule are not "
        "counted."
    )
    return [
        (
            (
                f"**Causal values of fixed rows, and their parts.** {common} Models are "
                "evaluated on draws; 66 sampled orderings on shards of 16 rows, or all "
                "orderings."
            ),
            markdown(head, rows),
        ),
        (
            (
                "**Causal values of the population.** Each run has new rows. Orderings are "
                "sampled (64, on shards of 50 rows), or all of them are taken."
            ),
            markdown(head, whole),
        ),
        (
            (
                "**Flows along edges.** A linear graph of three features, linear mechanisms "
                "that were fitted once, 24 orderings. Exact flows: all orderings, for the "
                "rows of each run; for the population, those of 200,000 rows."
            ),
            markdown(["sources", "rows", "for", *last], lines),
        ),
    ]


def cost_sections(problems: list[Problem], n_seeds: int) -> list[tuple[str, str]]:
    """Return the tables of the first level, of the costs and of the range over graphs."""
    levels = [line for each in problems for line in first_levels(each, n_seeds)]
    table = [line for each in problems for line in costs(each, TOLERANCES)]
    over = [ranges(each) for each in problems]
    heads = [f"{100 * each:.0f} %" for each in TOLERANCES]
    forests = "A forest of 15 trees, Gaussian sampler"
    return [
        (
            (
                f"**The first level.** {forests}. Percent of the variance from orderings that "
                "is left with the first level (of linear structural equations for causal "
                "values), relative to runs without it; 48 orderings on 25 rows each. "
                "*Curved*: half of the effects are sines and absolute values, and the noise "
                "has Student's distribution with 3 degrees of freedom."
            ),
            markdown(["data", "values", "left", "direct", "indirect"], levels),
        ),
        (
            (
                f"**Costs.** {forests}. Rows that the model predicted / CPU seconds, until the "
                "largest standard error is 5, 2 and 1 % of the range of the values. The run "
                "includes fitting the sampler, not learning the graph."
            ),
            markdown(["data", "values", *heads], table),
        ),
        (
            (
                "**The range over graphs**, with the default stopping rule: predicted rows / "
                "CPU seconds with one graph, and with the range over its equivalence class. "
                "*Width* is the largest range of a feature over graphs, and *error* the "
                "largest standard error of a difference between two graphs, both in percent "
                "of the range of the values."
            ),
            markdown(
                ["data", "members", "compared", "one graph", "with range", "width", "error"], over
            ),
        ),
    ]


def main(n_runs: int, n_seeds: int, *, is_tiny: bool) -> None:
    """Measure everything and publish the tables."""
    start = time.process_time()
    problems = [
        simulated("linear, 8", is_curved=False),
        simulated("curved, 8", is_curved=True),
        diabetes(),
    ]
    sections = cost_sections(problems, n_seeds) + coverage_sections(n_runs)
    if is_tiny:
        print("\n\n".join(f"{text}\n\n{table}" for text, table in sections))
    else:
        packages = ["dsage", "numpy", "scikit-learn"]
        publish("causal", "Causal values: coverage and costs", sections, packages)
    print(f"{time.process_time() - start:.0f} CPU seconds")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--runs", type=int, default=200, help="runs per line of coverage")
    parser.add_argument("--tiny", action="store_true", help="few runs, for a trial")
    given = parser.parse_args()
    with threadpool_limits(1):
        main(4 if given.tiny else given.runs, 1 if given.tiny else 4, is_tiny=given.tiny)
