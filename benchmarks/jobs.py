"""Measure how much faster two jobs are than one, with identical results, for random forests.

Run: python -m benchmarks.jobs [--orderings N] [--tiny]
"""

from __future__ import annotations

import argparse
import warnings
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestRegressor

from benchmarks.table import markdown, publish
from dsage.datasets import paper_graph
from dsage.estimate import Estimate, NOrderings, run
from dsage.games import LossGame
from dsage.samplers import Gaussian

GRAPH = "dag_sm(3)"
N_TRAIN, N_ROWS, N_TREES, N_TIMES = 4_000, 2_000, (100, 300), 3


def time_run(game: LossGame, n_jobs: int, **options: Any) -> tuple[float, Estimate]:  # noqa: ANN401
    """Return the seconds and the result of a run."""
    start = perf_counter()
    result = run(game, n_jobs=n_jobs, exact="never", random_state=0, **options)
    return perf_counter() - start, result


def rows_of(n_trees: int, n_orderings: int) -> list[list[str]]:
    """Return the table rows of a forest: SAGE, d-SAGE and corrected d-SAGE."""
    law = paper_graph(GRAPH)
    data = law.sample(N_TRAIN + N_ROWS, random_state=0)
    features = [column for column in data.columns if column != law.target]
    train, test = data[:N_TRAIN], data[N_TRAIN:]
    forest = RandomForestRegressor(n_trees, min_samples_leaf=5, random_state=0)
    forest.fit(train[features], train[law.target])
    sampler = Gaussian().fit(train[features])
    game = LossGame(forest, sampler, test[features], test[law.target], random_state=0)
    oracle = law.graph.oracle(law.target, features=features)
    ways: dict[str, dict[str, Any]] = {
        "SAGE": {},
        "d-SAGE": {"oracle": oracle, "audit": False},
        "d-SAGE and its difference to SAGE": {"oracle": oracle, "estimand": "sage"},
    }
    rows = []
    for way, options in ways.items():
        options["stopping"] = NOrderings(n_orderings)
        time_run(game, 2, **{**options, "stopping": NOrderings(8)})  # starts the worker processes
        seconds: dict[int, list[float]] = {1: [], 2: []}
        results: dict[int, Estimate] = {}
        for _ in range(N_TIMES):
            for n_jobs, taken in seconds.items():
                took, results[n_jobs] = time_run(game, n_jobs, **options)
                taken.append(took)
        one, two = (min(taken) for taken in seconds.values())
        same = np.array_equal(results[1].values, results[2].values) and np.array_equal(
            results[1].se, results[2].se
        )
        cells = [f"{n_trees}", way, f"{one:.1f} s", f"{two:.1f} s"]
        rows.append([*cells, f"{one / two:.2f}", "yes" if same else "NO"])
    return rows


def main(n_orderings: int, *, is_tiny: bool) -> None:
    """Measure and publish the table."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Skipping by separation")
        sizes = (5,) if is_tiny else N_TREES
        rows = [row for n_trees in sizes for row in rows_of(n_trees, n_orderings)]
    head = ["trees", "estimate", "1 job", "2 jobs", "times faster", "identical"]
    text = (
        f"Random forests on the paper's `{GRAPH}` with 19 features, {N_ROWS:,} rows and "
        f"{n_orderings} orderings; the shortest of {N_TIMES} alternating runs each, on two "
        "processor cores."
    )
    table = markdown(head, rows)
    if is_tiny:
        print(table)
        return
    packages = ["dsage", "joblib", "numpy", "scikit-learn"]
    publish("jobs", "Two jobs against one", [(text, table)], packages)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--orderings", type=int, default=160)
    parser.add_argument("--tiny", action="store_true", help="small sizes, for a trial")
    given = parser.parse_args()
    main(16 if given.tiny else given.orderings, is_tiny=given.tiny)
