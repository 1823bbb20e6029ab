"""Build a graph, ask it what a model's features can tell about the target, and draw it.

Run: python examples/separation.py [OUTPUT_FOLDER]
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import matplotlib as mpl
import numpy as np

import dsage
from dsage.datasets import paper_graph
from dsage.plots import draw_graph


def main(folder: Path) -> None:
    """Show what exists on one of the paper's graphs."""
    mpl.use("agg")
    model = paper_graph("dag_sm(2)")
    graph, target = model.graph, model.target
    print(f"dsage {dsage.__version__}: {graph}")
    print(f"Target {target}; its Markov blanket: {', '.join(graph.markov_blanket(target))}.\n")

    oracle = graph.oracle(target)
    d = len(oracle.feature_names)
    rng = np.random.default_rng(0)
    print("One ordering of the features. A feature that the graph separates from the target, given")
    print("those before it, adds nothing to an optimal model: d-SAGE skips its evaluation.\n")
    ordering = rng.permutation(d)
    prefixes = np.zeros((d, d), dtype=bool)
    for place, feature in enumerate(ordering[:-1]):
        prefixes[place + 1 :, feature] = True
    separated = oracle.separated(prefixes)
    boundary = oracle.boundary(prefixes)
    print(f"  {'feature':<8} {'skipped':<8} boundary of the coalition before it")
    for place, feature in enumerate(ordering):
        members = np.array(oracle.feature_names)[boundary[place]]
        skipped = "yes" if separated[place, feature] else "-"
        print(f"  {oracle.feature_names[feature]:<8} {skipped:<8} {{{', '.join(members)}}}")

    known = rng.random((1_000_000, d)) < 0.5
    start = time.perf_counter()
    separated = oracle.separated(known)
    seconds = time.perf_counter() - start
    print(f"\nA million random coalitions, all {d} features each: {seconds:.2f} s;")
    print(
        f"{separated.sum() / (~known).sum():.1%} of the features outside a coalition are separated"
    )
    print(f"(the paper prints {model.printed['share_d_separated']:.1%} for this graph).")
    n_boundaries = len(np.unique(np.packbits(oracle.boundary(known), axis=1), axis=0))
    n_coalitions = len(np.unique(np.packbits(known, axis=1), axis=0))
    print(f"The {n_coalitions:,} distinct coalitions among them have {n_boundaries} boundaries.\n")

    folder.mkdir(parents=True, exist_ok=True)
    draw_graph(graph, target).figure.savefig(folder / "graph.png", dpi=150)
    graph.save(folder / "graph.json")
    (folder / "graph.dot").write_text(graph.to_dot(target), encoding="utf-8")
    print(f"Written: {', '.join(str(path) for path in sorted(folder.iterdir()))}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo-output"))
