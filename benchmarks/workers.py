"""Measure how much of a run the main process computes itself, with workers of joblib and of Dask.

Run: python -m benchmarks.workers [--orderings N] [--trees N]

Processor time is measured, which other programs on the machine hardly affect. It predicts the time
on an idle machine: the time of the main process while workers wait, plus the rest divided by the
number of processors.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from unittest.mock import patch

import cloudpickle
import joblib
import numpy as np
from distributed import Client, LocalCluster
from sklearn.ensemble import RandomForestRegressor

from benchmarks.table import markdown, publish
from dsage.datasets import paper_graph
from dsage.estimate import Estimate, NOrderings, run
from dsage.estimate.parallel.jobs import Jobs
from dsage.games import LossGame
from dsage.games.base import Floats, Game, Request
from dsage.samplers import Gaussian

GRAPH, N_TRAIN, N_ROWS = "dag_sm(3)", 4_000, 2_000


def make_game(n_trees: int) -> LossGame:
    """Return the game of a forest."""
    law = paper_graph(GRAPH)
    data = law.sample(N_TRAIN + N_ROWS, random_state=0)
    features = [column for column in data.columns if column != law.target]
    train, test = data[:N_TRAIN], data[N_TRAIN:]
    forest = RandomForestRegressor(n_trees, min_samples_leaf=5, random_state=0)
    forest.fit(train[features], train[law.target])
    sampler = Gaussian().fit(train[features])
    return LossGame(forest, sampler, test[features], test[law.target], random_state=0)


@contextmanager
def on(place: str) -> Iterator[None]:
    """Evaluate with one job, two of joblib, or two worker processes of Dask."""
    if place != "Dask":
        with joblib.parallel_config(n_jobs=1 if place == "one job" else 2):
            yield
        return
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True}
    with (
        LocalCluster(dashboard_address=None, **options) as cluster,
        Client(cluster),
        joblib.parallel_config(backend="dask"),
    ):
        yield


@contextmanager
def count_beside() -> Iterator[list[float]]:
    """Collect the processor seconds of this process while workers evaluate."""
    found: list[float] = []
    evaluate = Jobs.__call__

    def timed(self: Jobs, game: Game, requests: Sequence[Request]) -> list[Floats]:
        start = time.process_time()
        try:
            return evaluate(self, game, requests)
        finally:
            found.append(time.process_time() - start)

    with patch.object(Jobs, "__call__", timed):
        yield found


def measure(game: LossGame, place: str, n_orderings: int) -> tuple[float, float, Estimate]:
    """Return processor seconds of this process, those beside workers, and the estimate.

    The workers have started.
    """
    options = {"exact": "never", "random_state": 0}
    with on(place), count_beside() as beside:
        run(game, stopping=NOrderings(8), **options)
        beside.clear()
        cpu = time.process_time()
        result = run(game, stopping=NOrderings(n_orderings), **options)
        return time.process_time() - cpu, sum(beside), result


def main(n_orderings: int, n_trees: int) -> None:
    """Measure and publish the table."""
    warnings.simplefilter("ignore")
    game = make_game(n_trees)
    n_bytes = len(cloudpickle.dumps(game))
    found = {place: measure(game, place, n_orderings) for place in ("one job", "joblib", "Dask")}
    whole, _, expected = found["one job"]
    rows = []
    for place, (cpu, beside, result) in found.items():
        same = np.array_equal(result.values, expected.values)
        cells = [place, f"{cpu:.2f}"]
        if place != "one job":
            # What the main process does beside the work, it does with one job, too; what it sends
            # and receives, only here.
            alone = cpu - beside
            work = max(whole - cpu, 0.0) + beside
            two, eight = (whole / (alone + work / n_workers) for n_workers in (2, 8))
            cells += [f"{beside:.2f}", f"{two:.2f}", f"{eight:.1f}", f"{whole / alone:.0f}"]
        else:
            cells += ["", "", "", ""]
        rows.append([*cells, "yes" if same else "NO"])
    head = ["workers", "main process, CPU s", "beside workers", "2 processors", "8 processors"]
    head += ["at most", "identical"]
    text = (
        f"A random forest of {n_trees} trees on the paper's `{GRAPH}` with 19 features, "
        f"{N_ROWS:,} rows and {n_orderings} orderings: processor seconds of the main process, with "
        "all work in it (one job), or with two worker processes of joblib or Dask, which had "
        "already started. The model, sampler and data that are sent to each worker once are "
        f"{n_bytes / 1e6:.1f} MB. *beside workers*: the part of the main process while workers "
        "evaluate, in which it computes the first level ahead. *2 processors*, *8 processors* and "
        "*at most*: how many times as fast a free machine is by the cost model, the rest of the "
        "main process plus all other work divided by the processors."
    )
    packages = ["dsage", "distributed", "joblib", "numpy", "scikit-learn"]
    publish("workers", "Workers and the main process", [(text, markdown(head, rows))], packages)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--orderings", type=int, default=160)
    parser.add_argument("--trees", type=int, default=100)
    given = parser.parse_args()
    main(given.orderings, given.trees)
