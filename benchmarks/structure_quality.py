"""Measure the accuracy of the separations of learned graphs.

The paper's twelve graphs, fresh random graphs, and data that violate the assumptions.
Run: python -m benchmarks.structure_quality
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from tqdm.auto import tqdm

from benchmarks.table import markdown, publish
from dsage import learn_graph
from dsage.datasets import PAPER_GRAPHS, paper_graph
from dsage.graphs import Graph, LinearGaussian, compare_graphs, random_dag, random_linear_gaussian

N_SEEDS = 5
N_QUERIES = 200_000

METHODS: Mapping[str, Mapping[str, Any]] = {
    "hc, BIC": {"method": "hc", "score": "bic"},
    "tabu, BIC": {"method": "tabu", "score": "bic"},
    "auto, strict (BIC)": {"strict": True},
    "auto, gamma 0.5": {"gamma": 0.5},
    "auto, gamma 1": {"gamma": 1.0},
    "auto": {},
}

Case = tuple[str, Graph, str, pd.DataFrame]


def measure(cases: Iterable[Case], options: Mapping[str, Any]) -> pd.DataFrame:
    """Learn a graph for each case; return F1, false discovery rate and seconds."""
    rows = []
    for name, true, target, data in cases:
        start = time.perf_counter()
        graph = learn_graph(data, **options)
        took = time.perf_counter() - start
        result = compare_graphs(true, graph, target, N_QUERIES, random_state=0)
        rows.append((name, result.f1, result.false_discovery_rate, took))
    return pd.DataFrame(rows, columns=["graph", "f1", "fdr", "seconds"])


def paper_cases(n_rows: int) -> Iterable[Case]:
    """Yield the paper's graphs with data from several seeds."""
    for name in PAPER_GRAPHS:
        model = paper_graph(name)
        for seed in range(N_SEEDS):
            yield name, model.graph, model.target, model.sample(n_rows, random_state=seed)


def fresh_models(**options: Any) -> Iterable[tuple[LinearGaussian, str]]:  # noqa: ANN401
    """Yield 36 random models: three for each of the paper's sizes and degrees."""
    number = 0
    for n_nodes in (10, 20, 50, 100):
        for degree in (2, 3, 4):
            for _ in range(3):
                graph = random_dag(n_nodes, degree, random_state=1000 + number)
                model = random_linear_gaussian(graph, random_state=2000 + number, **options)
                joined = [name for name in graph.names if graph.markov_blanket(name)]
                target = joined[int(np.random.default_rng(number).integers(len(joined)))]
                number += 1
                yield model, target


def linear(model: LinearGaussian, n_rows: int, seed: int) -> pd.DataFrame:
    """Draw from the model itself."""
    return model.sample(n_rows, random_state=seed)


def skewed(model: LinearGaussian, n_rows: int, seed: int) -> pd.DataFrame:
    """Transform every variable by a monotone map after drawing: lognormal margins."""
    return np.exp(model.sample(n_rows, random_state=seed))


def non_linear(model: LinearGaussian, n_rows: int, seed: int) -> pd.DataFrame:
    """Let every cause act through a tanh, twice as steep as the linear effect."""
    rng = np.random.default_rng(seed)
    graph = model.graph
    values: dict[str, np.ndarray] = {}
    for name in graph.topological_order():
        noise = rng.standard_normal(n_rows) * np.sqrt(model.error_variances[name])
        effects = (
            model.weights[parent, name] * np.tanh(2 * values[parent])
            for parent in graph.parents(name)
        )
        values[name] = noise + sum(effects)
    return pd.DataFrame(values)[list(graph.names)]


def fresh_cases(
    draw: Callable[[LinearGaussian, int, int], pd.DataFrame],
    n_rows: int,
    **options: Any,  # noqa: ANN401
) -> Iterable[Case]:
    """Yield fresh random models with data."""
    for number, (model, target) in enumerate(fresh_models(**options)):
        yield f"fresh {number}", model.graph, target, draw(model, n_rows, 3000 + number)


def summarize(frame: pd.DataFrame) -> list[str]:
    """Return F1 (mean, worst graph, worst run), FDR (mean, worst run), and the longest time."""
    by_graph = frame.groupby("graph", sort=False)["f1"].mean()
    return [
        f"{frame['f1'].mean():.3f}",
        f"{by_graph.min():.3f}",
        f"{frame['f1'].min():.3f}",
        f"{frame['fdr'].mean():.4f}",
        f"{frame['fdr'].max():.4f}",
        f"{frame['seconds'].max():.2f}",
    ]


HEADER = ["F1", "of the worst graph", "of the worst run", "FDR", "of the worst run", "longest, s"]


def main() -> None:
    """Measure everything and publish the tables."""
    sections = []
    detail = pd.DataFrame()
    for n_rows in (10_000, 1_000):
        rows = []
        for label, options in tqdm(METHODS.items(), desc=f"paper's graphs, n = {n_rows:,}"):
            frame = measure(paper_cases(n_rows), options)
            rows.append([label, *summarize(frame)])
            if not options and n_rows == 10_000:
                detail = frame
        about = f"The paper's twelve graphs, n = {n_rows:,}, {N_SEEDS} seeds; the paper's targets."
        sections.append((about, markdown(["method", *HEADER], rows)))
    by_graph = detail.groupby("graph", sort=False).agg(
        {"f1": "mean", "fdr": "max", "seconds": "max"}
    )
    rows = [
        [str(name), f"{row['f1']:.4f}", f"{row['fdr']:.4f}", f"{row['seconds']:.2f}"]
        for name, row in by_graph.iterrows()
    ]
    table = markdown(["graph", "mean F1", "worst FDR", "longest, s"], rows)
    sections.append(("`auto` graph by graph, n = 10,000.", table))
    rank = {"transform": "rank"}
    kinds: list[tuple[str, Iterable[Case], Mapping[str, Any]]] = []
    for label, options in METHODS.items():
        kinds += [
            (f"n = 10,000: {label}", fresh_cases(linear, 10_000), options),
            (f"n = 1,000: {label}", fresh_cases(linear, 1_000), options),
            *(
                (
                    f"weak edges (from 0.05), n = {n_rows:,}: {label}",
                    fresh_cases(linear, n_rows, weight_range=(0.05, 2.0)),
                    options,
                )
                for n_rows in (1_000, 3_000, 10_000)
            ),
            (
                f"skewed, normal scores, n = 10,000: {label}",
                fresh_cases(skewed, 10_000),
                {**options, **rank},
            ),
            (f"non-linear, n = 10,000: {label}", fresh_cases(non_linear, 10_000), options),
        ]
    kinds.append(("skewed, as it is, n = 10,000: auto", fresh_cases(skewed, 10_000), {}))
    kinds.sort(key=lambda kind: kind[0].split(":")[0])
    rows = [
        [label, *summarize(measure(cases, options))]
        for label, cases, options in tqdm(kinds, desc="fresh graphs")
    ]
    table = markdown(["data and method", *HEADER], rows)
    sections.append(("36 fresh random graphs of the same sizes and degrees.", table))
    publish("structure_quality", "Structure learning: quality", sections, ["dsage", "numpy"])


if __name__ == "__main__":
    main()
