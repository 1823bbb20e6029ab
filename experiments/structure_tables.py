"""Learn graphs from simulated data and compare their separations with the true ones."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from threadpoolctl import threadpool_limits

from dsage.datasets import PAPER_GRAPHS, PaperGraph, paper_graph
from dsage.graphs import compare_graphs, cpdag, structural_hamming_distance
from dsage.structure import Moments, search_graph
from experiments.simulate import simulate_moments, warm_up
from experiments.store import Line, Store, seed_of

TABLE = "structure"

METHODS: Mapping[str, Mapping[str, Any]] = {
    "hc": {"method": "hc", "score": "bic"},
    "tabu": {"method": "tabu", "score": "bic"},
    "default": {},
}
"""The paper's two searches with its score, and the default of ``learn_graph``."""


@dataclass(frozen=True)
class Sizes:
    """Sizes of the experiment.

    Attributes
    ----------
    graphs : sequence of str
        The graphs.
    n_rows : sequence of int
        Numbers of rows of the data sets.
    n_runs : int
        Number of data sets of each size.
    n_queries : int
        Number of random queries by Algorithm 2; all queries are asked if there are no more.
    """

    graphs: Sequence[str] = PAPER_GRAPHS
    n_rows: Sequence[int] = (1_000, 10_000, 100_000, 1_000_000)
    n_runs: int = 5
    n_queries: int = 1_000_000


def run(store: Store, sizes: Sizes) -> None:
    """Compute the table, with one line per graph, number of rows, run and method."""
    warm_up()
    for name in sizes.graphs:
        for n_rows in sizes.n_rows:
            for number in range(sizes.n_runs):
                seed = seed_of(TABLE, name, n_rows, number)
                key = {"graph": name, "n_rows": n_rows, "run": number}
                work = partial(_lines, name, n_rows, seed, sizes.n_queries)
                store.unit(TABLE, key, work, seed=seed)


def _lines(name: str, n_rows: int, seed: int, n_queries: int) -> list[Line]:
    model = paper_graph(name)
    moments, took = simulate_moments(model, n_rows, seed)
    return [
        {
            "n_nodes": len(model.graph),
            "average_degree": average_degree(name),
            "method": method,
            "seconds_moments": took,
            **_learn(model, moments, options, n_queries, seed),
        }
        for method, options in METHODS.items()
    ]


def _learn(
    model: PaperGraph, moments: Moments, options: Mapping[str, Any], n_queries: int, seed: int
) -> Line:
    """Learn the graph on one thread and compare its separations with the true ones."""
    with threadpool_limits(1):
        began = time.perf_counter()
        graph = search_graph(moments, **options).graph
        took = time.perf_counter() - began
    # All methods get the same random queries.
    result = compare_graphs(model.graph, graph, model.target, n_queries, random_state=seed)
    return {
        "seconds_search": took,
        "n_edges": len(graph.edges),
        "hamming": structural_hamming_distance(cpdag(model.graph), cpdag(graph)),
        "n_queries": result.n_queries,
        "is_exhaustive": result.is_exhaustive,
        "tp": result.tp,
        "tn": result.tn,
        "fp": result.fp,
        "fn": result.fn,
        "share": result.share,
        "precision": result.precision,
        "recall": result.recall,
        "f1": result.f1,
        "false_discovery_rate": result.false_discovery_rate,
    }


def average_degree(name: str) -> int:
    """Return the average degree of a graph of the paper from its name.

    Examples
    --------
    >>> average_degree("dag_sm(3)")
    3
    """
    return int(name.partition("(")[2].rstrip(")"))
