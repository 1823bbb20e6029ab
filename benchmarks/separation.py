"""Compare separation with networkx and with the paper, and measure its memory.

Run: python -m benchmarks.separation
"""

from __future__ import annotations

import math
import tracemalloc

import networkx as nx
import numpy as np

from benchmarks.table import markdown, publish, seconds
from dsage.datasets import PAPER_GRAPHS, PaperGraph, paper_graph
from dsage.graphs import compare_graphs

N_COALITIONS = 65_536
N_REFERENCE = 300
N_QUERIES = 1_000_000


def compare_networkx(model: PaperGraph) -> list[str]:
    """Time all queries about random coalitions, and networkx on some of them."""
    rng = np.random.default_rng(0)
    oracle = model.graph.oracle(model.target)
    names = np.array(oracle.feature_names)
    known = rng.random((N_COALITIONS, len(names))) < 0.5
    ours = seconds(lambda: oracle.separated(known), repeats=9)

    reference = model.graph.to_networkx()
    rows = rng.choice(N_COALITIONS, N_REFERENCE, replace=False)
    features = [int(rng.choice(np.flatnonzero(~known[row]))) for row in rows]
    questions = [
        (str(names[feature]), set(names[known[row]].tolist()))
        for row, feature in zip(rows, features, strict=True)
    ]
    theirs: list[bool] = []

    def ask() -> None:
        theirs[:] = [nx.is_d_separator(reference, x, model.target, z) for x, z in questions]

    one_call = seconds(ask, repeats=3) / N_REFERENCE
    same = (oracle.separated(known[rows])[np.arange(N_REFERENCE), features] == theirs).all()
    n_answers = int((~known).sum())
    alone = seconds(
        lambda: [model.graph.is_separated(x, model.target, z) for x, z in questions], repeats=3
    )
    return [
        model.name,
        f"{one_call * 1e6:.0f}",
        f"{ours / N_COALITIONS * 1e6:.3f}",
        f"{ours / n_answers * 1e9:.1f}",
        f"{one_call / (ours / n_answers):,.0f} x",
        f"{one_call / (ours / N_COALITIONS):,.0f} x",
        f"{one_call / (alone / N_REFERENCE):.1f} x",
        "all" if same else "NOT ALL",
    ]


def share_of_separations(name: str) -> list[str]:
    """Compare the share of separations with the paper."""
    model = paper_graph(name)
    results = []
    took = seconds(
        lambda: results.append(
            compare_graphs(model.graph, model.graph, model.target, N_QUERIES, random_state=0)
        ),
        repeats=1,
    )
    (result,) = results
    printed = model.printed["share_d_separated"]
    # Both shares have the error of a million queries, and the paper's is rounded.
    error = math.sqrt(2 * result.share * (1 - result.share) / N_QUERIES)
    bound = 0.0005 if result.is_exhaustive else 4 * error + 0.0005
    return [
        name,
        f"{printed:.3f}",
        f"{result.share:.4f}",
        "all pairs" if result.is_exhaustive else f"{result.n_queries:,} random",
        f"{result.share - printed:+.4f}",
        f"{bound:.4f}",
        "yes" if abs(result.share - printed) <= bound else "NO",
        f"{took:.2f}",
    ]


def memory(name: str) -> list[str]:
    """Measure the peak memory of a million queries."""
    model = paper_graph(name)
    tracemalloc.start()
    compare_graphs(model.graph, model.graph, model.target, N_QUERIES, random_state=0)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return [name, f"{peak / 1e6:.0f}"]


def main() -> None:
    """Measure everything and publish the tables."""
    speed = markdown(
        [
            "graph",
            "networkx, µs per call",
            "dsage, µs per coalition",
            "ns per answer",
            "gain per answer",
            "gain per coalition",
            "gain of is_separated",
            "agree",
        ],
        [compare_networkx(paper_graph(name)) for name in ("dag_l(2)", "dag_l(4)")],
    )
    shares = markdown(
        ["graph", "paper", "dsage", "queries", "difference", "allowed", "within", "seconds"],
        [share_of_separations(name) for name in PAPER_GRAPHS],
    )
    peaks = markdown(
        ["graph", "peak, MB"],
        [memory(name) for name in ("dag_l(2)", "dag_l(4)")],
    )
    about = (
        f"{N_COALITIONS:,} random coalitions in graphs of 100 nodes; dsage answers for all "
        "features outside each coalition (one answer per feature), networkx's `is_d_separator` "
        f"for {N_REFERENCE} of the same questions."
    )
    sections = [
        (about, speed),
        ("Share of separations according to the paper's Algorithm 2.", shares),
        (f"Peak memory of {N_QUERIES:,} queries (`dsage.graphs.compare_graphs`).", peaks),
    ]
    publish("separation", "Separation", sections, ["dsage", "networkx", "numpy"])


if __name__ == "__main__":
    main()
