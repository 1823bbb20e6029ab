"""Time structure learning against pgmpy and bnlearn, and its growth with the number of nodes.

Run: python -m benchmarks.structure_speed
"""

from __future__ import annotations

import multiprocessing
import time
import warnings
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

from benchmarks.table import RESULTS, markdown, publish, seconds
from dsage import learn_graph, score_graph
from dsage.datasets import PAPER_GRAPHS, paper_graph
from dsage.graphs import Graph, compare_graphs, random_dag, random_linear_gaussian
from dsage.structure import Moments, search_graph

N_GRAPHS = 5

# bnlearn 5.2.1 (R 4.2.2), tabu with BIC, best of three, on the paper's own data of 10,000 rows.
BNLEARN_TABU = {
    "dag_s(2)": 0.11,
    "dag_s(3)": 0.28,
    "dag_s(4)": 0.13,
    "dag_sm(2)": 0.36,
    "dag_sm(3)": 1.23,
    "dag_sm(4)": 2.11,
    "dag_m(2)": 1.66,
    "dag_m(3)": 3.69,
    "dag_m(4)": 10.01,
    "dag_l(2)": 24.74,
    "dag_l(3)": 33.23,
    "dag_l(4)": 78.72,
}


def against_bnlearn(name: str) -> list[str]:
    """Time tabu with BIC on simulated data, moments included, and auto from the moments."""
    data = paper_graph(name).sample(10_000, random_state=0)
    whole = seconds(lambda: learn_graph(data, method="tabu", score="bic"), repeats=5)
    moments = Moments.from_frame(data)
    search = seconds(lambda: learn_graph(moments, method="tabu", score="bic"), repeats=5)
    auto = seconds(lambda: learn_graph(moments), repeats=3)
    known = BNLEARN_TABU[name]
    return [
        name,
        f"{known:.2f}",
        f"{whole:.3f}",
        f"{search:.3f}",
        f"{known / whole:,.0f} x",
        f"{auto:.2f}",
    ]


def independence_of_rows(n_rows: int) -> list[str]:
    """Time tabu from moments, for one graph and increasing numbers of rows."""
    moments = Moments.from_frame(paper_graph("dag_l(4)").sample(n_rows, random_state=0))
    took = seconds(lambda: learn_graph(moments, method="tabu", score="bic"), repeats=5)
    return [f"{n_rows:,}", f"{took:.3f}"]


def discrete_data(n_nodes: int, n_rows: int, seed: int) -> pd.DataFrame:
    """Draw from a random network of classes: two to four categories, Dirichlet(1/2) tables."""
    rng = np.random.default_rng(seed)
    graph = random_dag(n_nodes, 2 * 46 / 37, random_state=seed)
    n_categories = {name: int(rng.integers(2, 5)) for name in graph.names}
    values: dict[str, np.ndarray] = {}
    for name in graph.topological_order():
        cell = np.zeros(n_rows, dtype=np.int64)
        for parent in graph.parents(name):
            cell = cell * n_categories[parent] + values[parent]
        chances = rng.dirichlet(np.full(n_categories[name], 0.5), size=int(cell.max()) + 1)
        draws = rng.random(n_rows)[:, None] > chances.cumsum(axis=1)[cell]
        values[name] = np.minimum(draws.sum(axis=1), n_categories[name] - 1)
    return pd.DataFrame(values)[list(graph.names)].astype("category")


def against_pgmpy() -> list[str]:
    """Learn an alarm-sized discrete network with pgmpy's hill climbing and with our tabu."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pgmpy.estimators import HillClimbSearch  # noqa: PLC0415

    data = discrete_data(37, 5_000, seed=0)
    ours = seconds(lambda: learn_graph(data, method="tabu", score="bic"), repeats=3)
    graph = learn_graph(data, method="tabu", score="bic")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.perf_counter()
        found = HillClimbSearch(data).estimate(scoring_method="bic-d", show_progress=False)
        theirs = time.perf_counter() - start
    other = Graph(data.columns, found.edges())
    return [
        f"{theirs:.1f}",
        f"{ours:.3f}",
        f"{theirs / ours:,.0f} x",
        f"{score_graph(other, data, 'bic'):.1f}",
        f"{score_graph(graph, data, 'bic'):.1f}",
    ]


def growth(n_nodes: int, seed: int) -> dict[str, float]:
    """Time tabu and auto from moments; report the peak memory of this process."""
    model = random_linear_gaussian(random_dag(n_nodes, 4, random_state=seed), random_state=seed)
    moments = Moments.from_frame(model.sample(10_000, random_state=seed))
    local = search_graph(moments, method="tabu").seconds
    result = search_graph(moments)
    target = max(model.graph.names, key=lambda name: len(model.graph.markov_blanket(name)))
    f1 = compare_graphs(model.graph, result.graph, target, 100_000, random_state=0).f1
    return {
        "nodes": n_nodes,
        "tabu": local,
        "auto": result.seconds,
        "f1": f1,
        "megabytes": peak_memory(),
    }


def peak_memory() -> float:
    """Return the peak resident memory of this process in megabytes (Linux only)."""
    status = Path("/proc/self/status")
    if not status.exists():
        return float("nan")
    (line,) = (line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def plot_growth(runs: pd.DataFrame) -> None:
    """Draw the seconds against the number of nodes: every run, and a line through the medians."""
    figure, ax = plt.subplots(figsize=(4.5, 3.2), layout="constrained")
    medians = runs.groupby("nodes").median()
    nodes = medians.index.tolist()
    for phase, marker, color in (("auto", "o", "#D55E00"), ("tabu", "s", "#0072B2")):
        ax.loglog(runs["nodes"], runs[phase], marker, color=color, markersize=4, alpha=0.6)
        ax.loglog(nodes, medians[phase], color=color, marker=marker, markersize=0, label=phase)
    ax.set_xticks(nodes, [f"{number:g}" for number in nodes], minor=False)
    ax.xaxis.set_minor_formatter(plt.NullFormatter())
    ax.set_xlabel("nodes (average degree 4, n = 10,000)")
    ax.set_ylabel("seconds")
    ax.grid(which="both", alpha=0.25)
    ax.legend(frameon=False)
    RESULTS.mkdir(exist_ok=True)
    figure.savefig(RESULTS / "structure_growth.svg")


def main() -> None:
    """Measure everything and publish the tables."""
    reference = markdown(
        ["graph", "bnlearn tabu, s", "dsage tabu, s", "from moments, s", "ratio", "auto, s"],
        [against_bnlearn(name) for name in PAPER_GRAPHS],
    )
    rows = markdown(
        ["rows", "tabu from moments, s"],
        [independence_of_rows(n_rows) for n_rows in (1_000, 10_000, 100_000, 1_000_000)],
    )
    discrete = markdown(
        ["pgmpy, s", "dsage, s", "ratio", "BIC of pgmpy's graph", "BIC of ours"], [against_pgmpy()]
    )
    # One process per run, so that each measures its own peak memory.
    sizes = []
    for n_nodes, seed in product((100, 200, 500, 1_000), range(N_GRAPHS)):
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            sizes.append(pool.apply(growth, (n_nodes, seed)))
    runs = pd.DataFrame(sizes)
    plot_growth(runs)
    larger = markdown(
        ["nodes", "tabu, s", "auto, s: median", "longest", "F1: median", "lowest", "most MB"],
        [
            [
                f"{n_nodes:,}",
                f"{group['tabu'].median():.2f}",
                f"{group['auto'].median():.1f}",
                f"{group['auto'].max():.1f}",
                f"{group['f1'].median():.3f}",
                f"{group['f1'].min():.3f}",
                f"{group['megabytes'].max():,.0f}",
            ]
            for n_nodes, group in runs.groupby("nodes")
        ],
    )
    about_bnlearn = (
        "Tabu with BIC on 10,000 rows. bnlearn's times are from another run (5.2.1, R 4.2.2, best "
        "of three, one core), on other data from the same models; ours include the moments."
    )
    about_pgmpy = (
        "Discrete data of the size of alarm (37 nodes, 5,000 rows): pgmpy's `HillClimbSearch` and "
        "our tabu, both with BIC, in one run."
    )
    about_growth = (
        f"{N_GRAPHS} random graphs of average degree 4 for each size, n = 10,000, extended BIC; "
        "the target is the node with the largest Markov blanket."
        "\n\n![Seconds by nodes](structure_growth.svg)"
    )
    sections = [
        (about_bnlearn, reference),
        ("The graph dag_l(4): the search does not read the rows.", rows),
        (about_pgmpy, discrete),
        (about_growth, larger),
    ]
    packages = ["dsage", "pgmpy", "numpy", "scipy"]
    publish("structure_speed", "Structure learning: speed", sections, packages)


if __name__ == "__main__":
    main()
