"""Learn a graph from data, ask it what a model's features can tell about the target, and draw it.

Run: python examples/graphs.py [OUTPUT_FOLDER]
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import matplotlib as mpl
import numpy as np

import dsage
from dsage.datasets import paper_graph
from dsage.graphs import Graph, compare
from dsage.plots import draw_graph

MODEL = paper_graph("dag_sm(3)")


def learned() -> Graph:
    """Learn the graph of 10,000 simulated rows and tell how right its separations are."""
    data = MODEL.sample(10_000, random_state=0)
    start = time.perf_counter()
    graph = dsage.learn_graph(data)
    seconds = time.perf_counter() - start
    result = compare(MODEL.graph, graph, MODEL.target, random_state=0)
    print(f"dsage {dsage.__version__}")
    print(
        f"Data: {data.shape[0]:,} rows of the paper's model {MODEL.name}, {data.shape[1]} columns."
    )
    print(f"Learned in {seconds:.2f} s: {graph}")
    print(
        f"Its separations of the target, against the true graph's: F1 {result.f1:.3f}, "
        f"false discovery rate {result.false_discovery_rate:.4f}."
    )
    blanket = ", ".join(graph.markov_blanket(MODEL.target))
    print(f"Target {MODEL.target}; its Markov blanket: {blanket}.\n")
    return graph


def one_ordering(graph: Graph, rng: np.random.Generator) -> None:
    """Walk along one ordering of the features and tell which evaluations can be skipped."""
    oracle = graph.oracle(MODEL.target)
    d = len(oracle.feature_names)
    ordering = rng.permutation(d)
    prefixes = np.zeros((d, d), dtype=bool)
    for place, feature in enumerate(ordering[:-1]):
        prefixes[place + 1 :, feature] = True
    separated, boundary = oracle.separated(prefixes), oracle.boundary(prefixes)
    print("One ordering of the features. A feature that the graph separates from the target, given")
    print("those before it, adds nothing to an optimal model: d-SAGE skips its evaluation.\n")
    print(f"  {'feature':<8} {'skipped':<8} boundary of the coalition before it")
    for place, feature in enumerate(ordering):
        members = np.array(oracle.feature_names)[boundary[place]]
        skipped = "yes" if separated[place, feature] else "-"
        print(f"  {oracle.feature_names[feature]:<8} {skipped:<8} {{{', '.join(members)}}}")


def many_coalitions(graph: Graph, rng: np.random.Generator) -> None:
    """Ask about a million random coalitions."""
    oracle = graph.oracle(MODEL.target)
    known = rng.random((1_000_000, len(oracle.feature_names))) < 0.5
    start = time.perf_counter()
    separated = oracle.separated(known)
    seconds = time.perf_counter() - start
    print(f"\nA million random coalitions, all {known.shape[1]} features each: {seconds:.2f} s;")
    print(
        f"{separated.sum() / (~known).sum():.1%} of the features outside a coalition are separated"
    )
    print(f"(the paper prints {MODEL.printed['share_d_separated']:.1%} for the true graph).\n")


def main(folder: Path) -> None:
    """Show what exists on one of the paper's models."""
    mpl.use("agg")
    rng = np.random.default_rng(0)
    graph = learned()
    one_ordering(graph, rng)
    many_coalitions(graph, rng)
    folder.mkdir(parents=True, exist_ok=True)
    draw_graph(graph, MODEL.target).figure.savefig(folder / "graph.png", dpi=150)
    graph.save(folder / "graph.json")
    (folder / "graph.dot").write_text(graph.to_dot(MODEL.target), encoding="utf-8")
    print(f"Written: {', '.join(str(path) for path in sorted(folder.iterdir()))}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo-output"))
