"""Compare the separations that other learners find on non-linear and mixed tables.

It needs causal-learn, lingam and pgmpy, which are not dependencies of dsage: install them together
with dsage into a separate environment. Run: python -m benchmarks.structure_learners [--limit
SECONDS]
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import signal
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from itertools import islice
from multiprocessing.connection import Connection
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
from tqdm.auto import tqdm

from benchmarks.structure_problems import (
    Case,
    choose_target,
    fresh_models,
    mixed,
    non_linear,
)
from benchmarks.table import markdown, publish
from dsage import learn_graph
from dsage.graphs import Graph, compare_graphs, random_dag

N_ROWS = 500
N_NODES = 10
N_QUERIES = 200_000
_MEGABYTE = 1024  # of the kilobytes in which Linux counts

Learner = Callable[[pd.DataFrame, str], Graph]


def tanh_cases() -> Iterator[Case]:
    """Yield three graphs of ten nodes, average degrees 2 to 4, with tanh effects."""
    for number, (model, target) in enumerate(fresh_models()):
        if number in (0, 3, 6):
            data = non_linear(model, N_ROWS, 3000 + number)
            yield f"tanh {number}", model.graph, target, data


def small(draw: Callable[[Graph, int, int], pd.DataFrame]) -> Iterator[Case]:
    """Yield three graphs of ten nodes, average degrees 2 to 4, with data."""
    for number, degree in enumerate((2, 3, 4)):
        graph = random_dag(N_NODES, degree, random_state=5000 + number)
        data = draw(graph, N_ROWS, 7000 + number)
        yield f"small {number}", graph, choose_target(graph, number), data


KINDS: dict[str, Callable[[], Iterable[Case]]] = {
    "tanh": tanh_cases,
    "mixed numbers and classes": lambda: small(mixed),
}


def as_numbers(data: pd.DataFrame) -> pd.DataFrame:
    """Replace classes by the numbers of their levels, and scale every column."""
    columns = {
        name: column if column.dtype.kind in "fi" else column.astype("category").cat.codes
        for name, column in data.items()
    }
    frame = pd.DataFrame(columns).astype(float)
    return (frame - frame.mean()) / frame.std()


def ours(**options: Any) -> Learner:  # noqa: ANN401
    """Return a learner with options of `learn_graph`; True as the target stands for its name."""

    def learn(data: pd.DataFrame, target: str) -> Graph:
        given = {**options, "target": target} if options.get("target") else options
        return learn_graph(data, **given)

    return learn


def _linear(data: pd.DataFrame, target: str) -> Graph:
    """Use the scores of linear regressions: the extended BIC, conditional Gaussian if mixed."""
    del target
    is_mixed = any(column.dtype.kind not in "fi" for _, column in data.items())
    return learn_graph(data, score="bic" if is_mixed else "ebic")


def pc(test: str) -> Learner:
    """Return the PC algorithm with a test of conditional independence."""

    def learn(data: pd.DataFrame, target: str) -> Graph:
        from causallearn.search.ConstraintBased.PC import pc as search  # noqa: PLC0415

        del target
        frame = as_numbers(data)
        found = search(
            frame.to_numpy(), 0.05, test, node_names=list(frame.columns), show_progress=False
        )
        return nearest_dag(list(frame.columns), found.G.graph)

    return learn


def ges(score: str) -> Learner:
    """Return greedy equivalence search with a score of causal-learn."""

    def learn(data: pd.DataFrame, target: str) -> Graph:
        from causallearn.search.ScoreBased.GES import ges as search  # noqa: PLC0415

        del target
        frame = as_numbers(data)
        found = search(frame.to_numpy(), score, node_names=list(frame.columns))
        return nearest_dag(list(frame.columns), found["G"].graph)

    return learn


def nearest_dag(names: list[str], marks: Any) -> Graph:  # noqa: ANN401
    """Return a DAG with the adjacencies of causal-learn's marks, and as many arrows as possible.

    The pattern that PC finds need not be the class of any DAG. Arrows come first, each turned if it
    would close a cycle; then edges without direction, in the order of the columns.
    """
    size = len(names)
    pairs = [(i, j) for i in range(size) for j in range(i + 1, size) if marks[i, j] or marks[j, i]]
    arrows = [(i, j) for i, j in pairs if marks[j, i] == 1 and marks[i, j] == -1]
    arrows += [(j, i) for i, j in pairs if marks[i, j] == 1 and marks[j, i] == -1]
    rest = [pair for pair in pairs if pair not in arrows and pair[::-1] not in arrows]
    try:
        return extend(names, arrows, rest)
    except ValueError:
        pass
    graph = nx.DiGraph()
    graph.add_nodes_from(names)
    for i, j in [*arrows, *rest]:
        tail, head = names[i], names[j]
        if nx.has_path(graph, head, tail):
            tail, head = head, tail
        graph.add_edge(tail, head)
    return Graph(names, list(graph.edges))


def extend(names: list[str], arrows: list[tuple[int, int]], rest: list[tuple[int, int]]) -> Graph:
    """Return a DAG of the pattern without new colliders (Dor & Tarsi, 1992), or raise."""
    edges = set(arrows)
    into = {node: {i for i, j in arrows if j == node} for node in range(len(names))}
    out = {node: {j for i, j in arrows if i == node} for node in range(len(names))}
    free = {
        node: {j for i, j in rest if i == node} | {i for i, j in rest if j == node} for node in into
    }
    left = set(into)

    def near(node: int) -> set[int]:
        return into[node] | out[node] | free[node]

    while left:
        for node in sorted(left):
            is_sink = not out[node] & left
            around = near(node) & left
            if is_sink and all(around - {each} <= near(each) for each in free[node] & left):
                edges |= {(each, node) for each in free[node] & left}
                left.remove(node)
                break
        else:
            raise ValueError("no DAG has this pattern")
    return Graph(names, [(names[i], names[j]) for i, j in sorted(edges)])


def _direct_lingam(data: pd.DataFrame, target: str) -> Graph:
    from lingam import DirectLiNGAM  # noqa: PLC0415

    del target
    return from_matrix(list(data.columns), DirectLiNGAM(random_state=0).fit(data).adjacency_matrix_)


def _resit(data: pd.DataFrame, target: str) -> Graph:
    from lingam import RESIT  # noqa: PLC0415
    from sklearn.ensemble import RandomForestRegressor  # noqa: PLC0415

    del target
    forest = RandomForestRegressor(max_depth=4, random_state=0)
    found = RESIT(regressor=forest, random_state=0).fit(data)
    return from_matrix(list(data.columns), found.adjacency_matrix_)


def _cam_uv(data: pd.DataFrame, target: str) -> Graph:
    from lingam import CAMUV  # noqa: PLC0415

    del target
    return from_matrix(list(data.columns), CAMUV().fit(data.to_numpy()).adjacency_matrix_)


def _pgmpy(data: pd.DataFrame, target: str) -> Graph:
    """Climb with the conditional Gaussian BIC of pgmpy, which takes classes as they are."""
    from pgmpy.estimators import HillClimbSearch  # noqa: PLC0415

    del target
    found = HillClimbSearch(data).estimate(scoring_method="bic-cg", show_progress=False)
    return Graph(list(data.columns), list(found.edges))


def from_matrix(names: list[str], matrix: Any) -> Graph:  # noqa: ANN401
    """Read lingam's matrix: entry (i, j) is the effect of j on i, or NaN for a hidden cause."""
    found = [(i, j) for i in range(len(names)) for j in range(len(names)) if matrix[i, j] != 0]
    hidden = {(min(i, j), max(i, j)) for i, j in found if np.isnan(matrix[i, j])}
    edges = [(names[j], names[i]) for i, j in found if not np.isnan(matrix[i, j])]
    return Graph(names, edges, [(names[i], names[j]) for i, j in sorted(hidden)])


LEARNERS: dict[str, tuple[Learner, bool]] = {
    "dsage, basis": (ours(score="basis"), True),
    "dsage, auto, target": (ours(target=True), True),
    "dsage, linear": (_linear, True),
    "PC, Fisher's z": (pc("fisherz"), True),
    "PC, RCIT": (pc("rcit"), True),
    "GES, BIC": (ges("local_score_BIC"), True),
    "pgmpy, conditional Gaussian": (_pgmpy, True),
    "DirectLiNGAM": (_direct_lingam, False),
    "RESIT, forests": (_resit, False),
    "CAM-UV": (_cam_uv, False),
    "PC, KCI": (pc("kci"), False),
    "GES, kernel score": (ges("local_score_marginal_general"), False),
}
"""Learners, and whether to give them classes, if only as codes."""

SLOW = ("PC, KCI", "GES, kernel score")
"""Learners that see only the first graph with tanh effects."""


def _work(label: str, data: pd.DataFrame, target: str, limit: int, pipe: Connection) -> None:
    """Learn in this process; send the graph, CPU seconds and the growth of memory."""
    warnings.simplefilter("ignore")
    learner, _ = LEARNERS[label]
    learner(data.iloc[:60, :3], data.columns[0])  # imports, before the measurement
    np.random.seed(0)  # noqa: NPY002 - causal-learn draws from the global generator
    used = int(time.process_time()) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (used + limit, used + limit + 5))
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    graph = learner(data, target)
    took = time.process_time() - start
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    pipe.send((graph.names, graph.edges, graph.bidirected, took, (after - before) / _MEGABYTE))


def measure(label: str, case: Case, limit: int) -> tuple[float, float, float, float] | str:
    """Return F1, FDR, CPU seconds and megabytes; or why there are none."""
    _, true, target, data = case
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(label, data, target, limit, there))
    process.start()
    there.close()
    try:
        names, edges, bidirected, took, memory = here.recv()
    except EOFError:
        process.join()
        return f"over {limit}" if process.exitcode == -signal.SIGXCPU else "failed"
    process.join()
    graph = Graph(names, edges, bidirected)
    result = compare_graphs(true, graph, target, N_QUERIES, random_state=0)
    return result.f1, result.false_discovery_rate, took, memory


def main() -> None:
    """Measure everything and publish the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limit", type=int, default=60, help="CPU seconds a run may take")
    limit = parser.parse_args().limit
    missing = [name for name in ("causallearn", "lingam", "pgmpy") if find_spec(name) is None]
    if missing:
        print(f"skipped: {', '.join(missing)} cannot be imported; pip install them")
        return
    sections = []
    for kind, cases in KINDS.items():
        rows = []
        for label, (_, takes_classes) in tqdm(LEARNERS.items(), desc=kind):
            is_slow = label in SLOW
            if (kind.startswith("mixed") and not takes_classes) or (is_slow and kind != "tanh"):
                continue
            results = []
            for case in islice(cases(), 1 if is_slow else None):
                result = measure(label, case, limit)
                if isinstance(result, str):
                    rows.append([label, str(len(results)), "-", "-", "-", result, "-"])
                    break
                results.append(result)
            else:
                f1, fdr, took, memory = np.array(results).T
                rows.append(
                    [
                        label,
                        str(len(results)),
                        f"{np.nanmean(f1):.3f}",
                        f"{fdr.mean():.3f}",
                        f"{fdr.max():.3f}",
                        f"{took.mean():.2f}",
                        f"{memory.max():.0f}",
                    ]
                )
            print(kind, *rows[-1], flush=True)
        about = (
            f"{kind[0].upper()}{kind[1:]}: n = {N_ROWS}, d = {N_NODES}, means over three graphs "
            "(average degrees 2, 3 and 4)."
        )
        if kind.startswith("mixed"):
            about += (
                " The other learners, but pgmpy, see the classes as numbers; DirectLiNGAM, RESIT "
                "and CAM-UV are for numbers alone and left out. `linear` is the conditional "
                "Gaussian BIC."
            )
        header = [
            "learner",
            "graphs",
            "mean F1",
            "mean FDR",
            "worst FDR",
            "CPU s",
            "MB more, at most",
        ]
        sections.append((about, markdown(header, rows)))
    notes = (
        "Settings are the defaults of each library (PC: level 0.05; RESIT with forests of depth 4; "
        "GES with the generalised kernel score of causal-learn, by marginal likelihood). A run may "
        f"take {limit} CPU s. The two slowest, PC with KCI and GES with the kernel score, see only "
        "the first graph with tanh effects: compare them with care. "
        "A pattern of PC that belongs to no DAG is read as a DAG with the same adjacencies and as "
        "many of its arrows as possible; pairs with a hidden cause, in CAM-UV's answer, become "
        "bidirected edges. MB more: the most that the peak memory of the process grew by."
    )
    sections[0] = (f"{notes}\n\n{sections[0][0]}", sections[0][1])
    packages = ["dsage", "causal-learn", "lingam", "pgmpy", "numpy"]
    publish("structure_learners", "Structure learning: other learners", sections, packages)


if __name__ == "__main__":
    main()
