"""Compare ways to test the separations of a graph from the target after the search.

The ways are: no test; a test on the rows of the search; the same with cross-fitted regressions,
which predict each row from other folds; and a search on 80 % of the rows with a test on the others.
These graphs were not used to choose any setting. With ``--only``, the other table is not changed.
Run: python -m benchmarks.structure_last_check [--only PART]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd

from benchmarks.structure_problems import KINDS, Case, fresh_models, non_linear, small_cases
from benchmarks.table import markdown, publish, published
from dsage.data.table import Table
from dsage.graphs import Graph, compare_graphs
from dsage.structure import search_graph
from dsage.structure.blocks import Blocks
from dsage.structure.last_check import Known, add_edges, covariance_test, reject_claims

FIRST = 500
"""The number of the first of the seven graphs of each kind."""

N_FOLDS = 5
N_QUERIES = 50_000
N_TESTS = 1_500
LEVEL = 0.01
MODES = ("no check", "all rows", f"{N_FOLDS} folds", "80 % + 20 %")


def tanh_cases(n_rows: int) -> Iterable[Case]:
    """Yield models of 10 and 20 nodes with steep bends, with rows of other seeds."""
    for number, (model, target) in enumerate(fresh_models()):
        if len(model.graph) <= 20 and number % 3 == 0:
            data = non_linear(model, n_rows, FIRST + number)
            yield f"tanh {number}", model.graph, target, data


def checked(graph: Graph, frame: pd.DataFrame, target: str, n_folds: int) -> Graph:
    """Return the graph with the edges that these rows demand."""
    blocks = Blocks.from_table(Table(frame), correlate=False)
    return add_edges(graph, reject_claims(graph, blocks, target, n_folds=n_folds))


def learned(frame: pd.DataFrame) -> tuple[Graph, float]:
    """Return a graph, and how long the search takes."""
    start = time.process_time()
    return search_graph(frame).graph, time.process_time() - start


def measure(cases: Iterable[Case]) -> Mapping[str, pd.DataFrame]:
    """Return F1, FDR, edges put back and processor seconds of each way."""
    rows: dict[str, list[tuple[float, ...]]] = {mode: [] for mode in MODES}
    for _, true, target, data in cases:
        frame = data.sample(frac=1.0, random_state=0).reset_index(drop=True)
        n_search = round(0.8 * len(frame))
        whole, part = learned(frame), learned(frame[:n_search])
        # The search, the rows of the check, and its folds.
        ways = (
            (whole, None, 0),
            (whole, frame, 0),
            (whole, frame, N_FOLDS),
            (part, frame[n_search:], 0),
        )
        for mode, ((before, took), tested, n_folds) in zip(MODES, ways, strict=True):
            start = time.process_time()
            graph = before if tested is None else checked(before, tested, target, n_folds)
            spent = took + time.process_time() - start
            result = compare_graphs(true, graph, target, N_QUERIES, random_state=0)
            added = len(graph.edges) - len(before.edges)
            rows[mode].append((result.f1, result.false_discovery_rate, added, spent))
    names = ["f1", "fdr", "added", "seconds"]
    return {mode: pd.DataFrame(each, columns=names) for mode, each in rows.items()}


def summary(frame: pd.DataFrame) -> list[str]:
    """Return means, the standard error of the FDR, and the number of edges put back."""
    error = float(frame["fdr"].std(ddof=1)) / np.sqrt(len(frame))
    return [
        f"{frame['f1'].mean():.3f}",
        f"{frame['fdr'].mean():.4f}",
        f"{error:.4f}",
        f"{frame['added'].sum():.0f}",
        f"{frame['seconds'].mean():.2f}",
    ]


def of_graphs() -> tuple[str, str]:
    """Return the table of the ways to check graphs."""
    lines = []
    every: dict[tuple[int, str], list[pd.DataFrame]] = {}
    for n_rows in (1_000, 10_000):
        sources = {name: list(small_cases(draw, n_rows, FIRST)) for name, draw in KINDS.items()}
        sources["non-linear (tanh)"] = list(tanh_cases(n_rows))
        for name, cases in sources.items():
            for mode, frame in measure(cases).items():
                every.setdefault((n_rows, mode), []).append(frame)
                lines.append([f"{name}, n = {n_rows:,}", mode, *summary(frame)])
                print(lines[-1], flush=True)
    for (n_rows, mode), frames in every.items():
        lines.append([f"all, n = {n_rows:,}", mode, *summary(pd.concat(frames))])
    header = ["data", "check", "F1", "FDR", "standard error", "edges put back", "mean s"]
    about = (
        "Seven graphs of each kind (six with tanh) that chose no setting. Checks: none; on the "
        f"rows of the search; on them, with regressions on {N_FOLDS} folds; on 20 % of the rows "
        "after a search on the others. Edges put back are counts over all graphs, seconds are "
        "processor seconds of search and check."
    )
    return about, markdown(header, lines)


def of_test() -> tuple[str, str]:
    """Return the table of how often the test rejects independence, by the columns known."""
    rng = np.random.default_rng(0)
    lines = []
    for n_rows, n_known in ((1_000, 10), (1_000, 50), (1_000, 100), (200, 20)):
        p_values: dict[int, list[float]] = {0: [], N_FOLDS: []}
        for _ in range(N_TESTS):
            design = np.column_stack([np.ones(n_rows), rng.normal(size=(n_rows, n_known - 1))])
            basis = np.linalg.qr(design)[0]
            one, other = rng.normal(size=(n_rows, 1)), rng.normal(size=(n_rows, 8))
            for n_folds, found in p_values.items():
                known = Known(basis, n_folds)
                left = known.residuals(one), known.residuals(other)
                found.append(covariance_test(*left, known.share_left))
        for n_folds, found in p_values.items():
            label = f"{n_folds} folds" if n_folds else "all rows"
            share = float(np.mean(np.array(found) < LEVEL))
            lines.append([f"{n_rows:,}", str(n_known), label, f"{100 * share:.1f} %"])
            print(lines[-1], flush=True)
    about = (
        "The test itself: how often it rejects, at 1 %, that a variable is independent of 8 "
        f"functions, which it is, given known columns; {N_TESTS:,} draws of independent normal "
        "variables, so that the standard error is about 0.3 %. The check uses one known column "
        "for every ten rows at most."
    )
    header = ["rows", "known columns", "regressions", "rejected"]
    return about, markdown(header, lines)


PARTS = {"graphs": of_graphs, "test": of_test}
"""What is measured, in the order of the tables."""


def main() -> None:
    """Measure everything, or one part, and publish the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=PARTS, help="measure this part")
    only = parser.parse_args().only
    sections = [
        published("structure_last_check")[place] if only and part != only else measured()
        for place, (part, measured) in enumerate(PARTS.items())
    ]
    title = "Structure learning: the last check"
    publish("structure_last_check", title, sections, ["dsage", "numpy"])


if __name__ == "__main__":
    main()
