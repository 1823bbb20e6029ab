"""Measure the speedup by helper processes, which long runs start automatically.

Run: python -m benchmarks.helpers [--orderings N] [--tiny]

The results must be identical. Run it with idle processors and without ``OMP_NUM_THREADS``;
otherwise no helpers are started.
"""

from __future__ import annotations

import argparse
import os
import warnings
from time import perf_counter
from typing import Any

import joblib
import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.neural_network import MLPRegressor
from threadpoolctl import threadpool_limits

from benchmarks.table import markdown, publish
from dsage.datasets import paper_graph
from dsage.estimate import Estimate, NOrderings, run
from dsage.estimate.running.outlook import Outlook
from dsage.games import LossGame
from dsage.samplers import Gaussian

GRAPH, N_TRAIN, N_ROWS = "dag_sm(3)", 4_000, 2_000


def make_game(model: Any) -> LossGame:  # noqa: ANN401
    """Return the game of a model that is fitted here."""
    law = paper_graph(GRAPH)
    data = law.sample(N_TRAIN + N_ROWS, random_state=0)
    features = [column for column in data.columns if column != law.target]
    train, test = data[:N_TRAIN], data[N_TRAIN:]
    model.fit(train[features], train[law.target])
    sampler = Gaussian().fit(train[features])
    return LossGame(model, sampler, test[features], test[law.target], random_state=0)


def time_run(game: LossGame, n_jobs: int | None, n_orderings: int) -> tuple[float, Estimate, int]:
    """Return the seconds and the result of a run, and the most helpers that it had."""
    most = [0]

    def look(outlook: Outlook) -> None:
        most.append(outlook.n_helpers)

    start = perf_counter()
    rule = NOrderings(n_orderings)
    result = run(game, n_jobs=n_jobs, stopping=rule, exact="never", random_state=0, progress=look)
    return perf_counter() - start, result, max(most)


def row_of(name: str, model: Any, n_orderings: int) -> list[str]:  # noqa: ANN401
    """Return the row of a model: one processor, threads of the model, helpers."""
    game = make_game(model)
    with threadpool_limits(1):
        one, expected, _ = time_run(game, 1, n_orderings)
    threads, by_threads, _ = time_run(game, 1, n_orderings)
    helped, by_helpers, n_helpers = time_run(game, None, n_orderings)
    same = all(
        np.array_equal(each.values, expected.values) and np.array_equal(each.se, expected.se)
        for each in (by_threads, by_helpers)
    )
    cells = [name, f"{one:.1f} s", f"{threads:.1f} s", f"{helped:.1f} s", f"{n_helpers}"]
    return [*cells, f"{one / helped:.2f}", f"{threads / helped:.2f}", "yes" if same else "NO"]


def main(n_orderings: int, *, is_tiny: bool) -> None:
    """Measure and publish the table."""
    if "OMP_NUM_THREADS" in os.environ:
        raise SystemExit("OMP_NUM_THREADS must not be set: otherwise no helpers are started.")
    warnings.simplefilter("ignore")
    size = 5 if is_tiny else 100
    models = {
        "random forest": RandomForestRegressor(size, min_samples_leaf=5, random_state=0),
        "boosting": HistGradientBoostingRegressor(max_iter=3 * size, random_state=0),
        "MLP": MLPRegressor(hidden_layer_sizes=(size,), max_iter=200, random_state=0),
    }
    rows = [row_of(name, model, n_orderings) for name, model in models.items()]
    head = ["model", "one processor", "threads", "helpers", "started", "gain", "beyond threads"]
    table = markdown([*head, "identical"], rows)
    if is_tiny:
        print(table)
        return
    text = (
        f"Models of the paper's `{GRAPH}` with 19 features, {N_ROWS:,} rows, {n_orderings} "
        f"orderings, on {joblib.cpu_count()} processors: a run on one of them (`n_jobs=1`, one "
        "thread), a run with the model's own threads (`n_jobs=1`), and the default, which starts "
        "helper processes (*started*) after four seconds. *gain* is the time on one processor "
        "divided by the time with helpers."
    )
    packages = ["dsage", "joblib", "numpy", "scikit-learn"]
    publish("helpers", "Helper processes", [(text, table)], packages)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--orderings", type=int, default=320)
    parser.add_argument("--tiny", action="store_true", help="small sizes, for a trial")
    given = parser.parse_args()
    main(16 if given.tiny else given.orderings, is_tiny=given.tiny)
