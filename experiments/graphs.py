"""Reproduce the paper's table of graphs: degree of the target and share of separations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from dsage.datasets import PAPER_GRAPHS, paper_graph
from dsage.graphs import compare_graphs
from experiments.drawing import BLUE, ORANGE, RED, draw_svg
from experiments.part import Part
from experiments.prose import join_words, markdown
from experiments.simulate import Questions
from experiments.store import Line, Store, seed_of

TABLE = "graphs"

# Number of random queries in the paper, for graphs that are too large for all queries.
PAPER_QUERIES = 1_000_000


@dataclass(frozen=True)
class Sizes:
    """Sizes of the experiment.

    Attributes
    ----------
    graphs : sequence of str
        The graphs.
    most_queries : int
        All queries are asked if there are at most this many.
    n_queries : int
        Otherwise, the number of random queries.
    n_orderings : int
        Number of random orderings for the share along orderings.
    """

    graphs: Sequence[str] = PAPER_GRAPHS
    most_queries: int = 5_000_000
    n_queries: int = PAPER_QUERIES
    n_orderings: int = 1_000


def run(store: Store, sizes: Sizes) -> None:
    """Compute the table."""
    for name in sizes.graphs:
        seed = seed_of(TABLE, name)
        store.unit(TABLE, {"graph": name}, partial(_lines, name, sizes, seed), seed=seed)


def _lines(name: str, sizes: Sizes, seed: int) -> list[Line]:
    model = paper_graph(name)
    graph, target = model.graph, model.target
    n_features = len(graph) - 1
    n_all = n_features * 2 ** (n_features - 1)
    n_queries = n_all if n_all <= sizes.most_queries else sizes.n_queries
    result = compare_graphs(graph, graph, target, n_queries, random_state=seed)
    questions = Questions.draw(n_features, sizes.n_orderings, seed)
    along = questions.answers(graph.oracle(target))
    line = {
        "n_nodes": len(graph),
        "n_edges": len(graph.edges),
        "target": target,
        "target_degree": len(graph.parents(target)) + len(graph.children(target)),
        "blanket": len(graph.markov_blanket(target)),
        "n_queries": result.n_queries,
        "is_exhaustive": result.is_exhaustive,
        "share": result.share,
        "se": 0.0 if result.is_exhaustive else _se(result.share, result.n_queries),
        "n_orderings": sizes.n_orderings,
        "share_along": along.mean(),
        "se_along": along.mean(axis=1).std(ddof=1) / np.sqrt(sizes.n_orderings),
    }
    return [line]


def _se(share: float, n_queries: int) -> float:
    return float(np.sqrt(share * (1 - share) / n_queries))


def beside(store: Store) -> pd.DataFrame:
    """Return the table with the paper's numbers, and whether they agree."""
    table = store.read(TABLE)
    printed = [paper_graph(name).printed for name in table["graph"]]
    table["paper_degree"] = [int(line["target_degree"]) for line in printed]
    table["paper_share"] = [line["share_d_separated"] for line in printed]
    # Allow for three standard errors of both estimates and for the rounding of the paper, which
    # asks all queries only of graphs with 10 nodes.
    theirs = np.where(table["n_nodes"] == 10, 0.0, _ses(table["share"]))
    allowed = 0.0005 + 3 * np.hypot(table["se"], theirs)
    table["agrees"] = (table["share"] - table["paper_share"]).abs() <= allowed
    return table


def _ses(shares: pd.Series) -> np.ndarray:
    return np.array([_se(share, PAPER_QUERIES) for share in shares])


def draw(store: Store, folder: Path) -> None:
    """Draw our shares, the paper's, and those along orderings."""
    table = beside(store)
    at = np.arange(len(table))
    with draw_svg(folder / "graphs_share.svg", height=2.9) as figure:
        ax = figure.subplots()
        ax.plot(at, table["share_along"], "s", color=BLUE, label="ours, along orderings")
        ax.plot(at, table["share"], "o", color=ORANGE, label="ours, Algorithm 2")
        ax.plot(at, table["paper_share"], "x", color=RED, label="the paper")
        ax.set_xticks(at, table["graph"], rotation=45, ha="right")
        ax.set_ylabel("share of separations")
        ax.set_ylim(0, 1)
        figure.legend(loc="outside upper center", ncols=3)


def describe(store: Store) -> str:
    """Return the section."""
    table = beside(store)
    rows = [
        [
            line.graph,
            f"{line.target_degree}",
            f"{line.paper_degree}",
            f"{line.share:.3f}" + ("" if line.is_exhaustive else f" ± {2 * line.se:.3f}"),
            f"{line.paper_share:.3f}",
            f"{line.share_along:.3f}",
        ]
        for line in table.itertuples()
    ]
    header = [
        "graph",
        "target's degree",
        "paper",
        "share of separations",
        "paper",
        "share along orderings",
    ]
    about = (
        "The share of separations is the probability that a random set of features separates a "
        "random other feature from the target, both drawn uniformly (the paper's Algorithm 2). "
        f"{_describe_queries(table)} ± is two standard errors of random queries."
    )
    return "\n\n".join(
        [
            about,
            markdown(header, rows),
            "![Shares of separations](figures/graphs_share.svg)",
            _verdict(table),
            _along(table),
        ]
    )


def _describe_queries(table: pd.DataFrame) -> str:
    every = table[table["is_exhaustive"]]
    others = table[~table["is_exhaustive"]]
    parts = []
    if len(every):
        sizes = join_words(str(size) for size in sorted(every["n_nodes"].unique()))
        parts.append(f"For graphs with {sizes} nodes, we ask all queries.")
    if len(others):
        parts.append(f"For the others, we ask {others['n_queries'].max():,} random queries.")
    return " ".join(parts)


def _verdict(table: pd.DataFrame) -> str:
    wrong = table[table["target_degree"] != table["paper_degree"]]
    degrees = (
        f"The degrees of the targets agree with the paper in all {len(table)} graphs."
        if wrong.empty
        else f"The degree of the target differs from the paper in {join_words(wrong['graph'])}."
    )
    odd = table[~table["agrees"]]
    difference = (table["share"] - table["paper_share"]).abs().max()
    shares = (
        f"So do the shares, up to rounding and chance: the largest difference is {difference:.4f}."
        if odd.empty
        else f"The shares differ by more than rounding and chance in {join_words(odd['graph'])}, "
        f"by at most {difference:.4f}."
    )
    return f"{degrees} {shares}"


def _along(table: pd.DataFrame) -> str:
    """Compare the share that d-SAGE can skip with the share of Algorithm 2."""
    gap = table["share_along"] - table["share"]
    clear = gap.abs() > 3 * np.hypot(table["se"], table["se_along"])
    widest = table.loc[gap.idxmax()]
    begin = (
        "The share that d-SAGE can skip is the share along random orderings, where all sizes of "
        "the coalition are equally likely. Algorithm 2 mostly asks about coalitions of about half "
        "of the features. "
    )
    if not clear.any():
        return begin + "Here the two do not differ by more than chance."
    more = int((clear & (gap > 0)).sum())
    return begin + (
        f"The two differ clearly in {int(clear.sum())} of {len(table)} graphs. In {more} of these, "
        "d-SAGE can skip more than Algorithm 2 suggests; the difference is largest in "
        f"{widest['graph']}, {widest['share_along']:.3f} against {widest['share']:.3f}. The "
        "paper's share describes the graph, not the saving."
    )


GRAPHS = Part(
    name="graphs",
    title="The graphs: degrees and shares of separations (table of graphs)",
    run=run,
    quick=Sizes(n_queries=200_000, n_orderings=200),
    full=Sizes(),
    draw=draw,
    describe=describe,
)
