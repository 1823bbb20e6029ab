"""Measure the accuracy of the separations learned from samples of bnlearn's networks.

The networks are files of the repository of bnlearn, in the formats in which pgmpy's wheel packs
them (``pgmpy/utils/example_models``): discrete ones as ``.bif.gz`` or ``.bif``, Gaussian ones as
``.json``. They do not come with dsage; pgmpy itself is not needed. With ``--only``, the published
results of the other networks are not changed. Run: python -m benchmarks.structure_networks FOLDER
[--limit SECONDS] [--only NETWORK ...]
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import signal
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from tqdm.auto import tqdm

from benchmarks.table import cells, markdown, publish, published
from dsage import learn_graph
from dsage.graphs import Graph, LinearGaussian, compare_graphs

Floats = npt.NDArray[np.float64]

DISCRETE = (
    *("asia", "sachs", "child", "insurance", "water", "mildew", "alarm", "barley"),
    *("hailfinder", "hepar2", "win95pts"),
)
GAUSSIAN = ("magic-niab", "ecoli70", "magic-irri", "arth150")
N_ROWS = (1_000, 10_000)
N_TARGETS = 5
N_QUERIES = 50_000
METHODS: Mapping[bool, Mapping[str, Mapping[str, Any]]] = {
    True: {name: {"score": name} for name in ("bic", "bdeu", "basis")},
    False: {name: {"score": name} for name in ("ebic", "basis", "auto")},
}
"""Options of `learn_graph` by whether the network is discrete, and by label."""


@dataclass(frozen=True)
class DiscreteNetwork:
    """Classes whose probabilities depend on the classes of their parents."""

    graph: Graph
    levels: Mapping[str, Sequence[str]]
    parents: Mapping[str, Sequence[str]]  # in the order of the axes of the tables
    tables: Mapping[str, Floats]  # one axis for each parent, and the last for the node

    def sample(self, n_rows: int, random_state: int) -> pd.DataFrame:
        """Draw rows, parents first."""
        rng = np.random.default_rng(random_state)
        codes: dict[str, npt.NDArray[np.intp]] = {}
        for name in self.graph.topological_order():
            chances = self.tables[name][tuple(codes[parent] for parent in self.parents[name])]
            sums = np.broadcast_to(chances, (n_rows, chances.shape[-1])).cumsum(axis=1)
            uniform = rng.random((n_rows, 1)) * sums[:, -1:]
            codes[name] = (uniform >= sums).sum(axis=1)
        return pd.DataFrame(
            {name: np.array(self.levels[name])[codes[name]] for name in self.graph.names}
        )


def read_bif(text: str) -> DiscreteNetwork:
    """Read a network in the Bayesian interchange format, as bnlearn writes it."""
    levels: dict[str, list[str]] = {}
    for name, states in re.findall(r"variable\s+(\S+)\s*\{[^{]*\{([^}]*)\}", text):
        levels[name] = [state.strip() for state in states.split(",")]
    parents: dict[str, list[str]] = {}
    tables: dict[str, Floats] = {}
    for head, body in re.findall(r"probability\s*\(([^{]*)\)\s*\{([^}]*)\}", text):
        name, _, given = (part.strip() for part in head.partition("|"))
        parents[name] = [parent.strip() for parent in given.split(",") if parent.strip()]
        places = [{state: at for at, state in enumerate(levels[each])} for each in parents[name]]
        table = np.full([*(len(place) for place in places), len(levels[name])], np.nan)
        for line in body.split(";"):
            if not line.strip():
                continue
            if found := re.match(r"\s*\((.*)\)\s*([^()]*)$", line, re.DOTALL):
                states = [state.strip() for state in found[1].split(",")]
                at = tuple(place[state] for place, state in zip(places, states, strict=True))
                table[at] = [float(number) for number in found[2].split(",")]
            else:
                table[...] = [float(x) for x in line.replace("table", "").split(",")]
        if np.isnan(table).any():
            raise ValueError(f"probabilities of {name} are missing")
        tables[name] = table
    edges = [(parent, name) for name in levels for parent in parents[name]]
    return DiscreteNetwork(Graph(list(levels), edges), levels, parents, tables)


def read_gaussian(text: str) -> LinearGaussian:
    """Read a Gaussian network in pgmpy's JSON format; its intercepts do not matter here."""
    content = json.loads(text)
    graph = Graph(content["nodes"], [(tail, head) for tail, head in content["arcs"]])
    nodes = content["cpds"]
    weights = {
        (parent, name): float(nodes[name]["coefficients"][parent][0])
        for name in graph.names
        for parent in graph.parents(name)
    }
    variances = {name: float(nodes[name]["variance"][0]) for name in graph.names}
    return LinearGaussian(graph, weights, variances)


def read(folder: Path, name: str) -> DiscreteNetwork | LinearGaussian | None:
    """Return the network of this name; None if the folder does not have it."""
    if (place := folder / f"{name}.bif.gz").is_file():
        return read_bif(gzip.decompress(place.read_bytes()).decode("utf-8"))
    if (place := folder / f"{name}.bif").is_file():
        return read_bif(place.read_text(encoding="utf-8"))
    if (place := folder / f"{name}.json").is_file():
        return read_gaussian(place.read_text(encoding="utf-8"))
    return None


@contextmanager
def limit(seconds: int) -> Iterator[None]:
    """Raise TimeoutError when the CPU time is over, on systems that have such alarms."""

    def stop(*_: object) -> None:
        raise TimeoutError

    if not hasattr(signal, "SIGPROF"):
        yield
        return
    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def choose_targets(graph: Graph, seed: int) -> list[str]:
    """Return random nodes that have neighbours."""
    joined = [name for name in graph.names if graph.markov_blanket(name)]
    order = np.random.default_rng(seed).permutation(len(joined))
    return [joined[at] for at in order[:N_TARGETS]]


def measure(
    true: Graph, data: pd.DataFrame, options: Mapping[str, Any], seconds: int
) -> tuple[float, float, float] | None:
    """Learn a graph; return its mean F1 and FDR, and CPU seconds; None if the time is over."""
    start = time.process_time()
    try:
        with limit(seconds), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of columns that are constant in the sample
            graph = learn_graph(data, **options)
    except TimeoutError:
        return None
    took = time.process_time() - start
    results = [
        compare_graphs(true, graph, target, N_QUERIES, random_state=0)
        for target in choose_targets(true, len(true.names))
    ]
    f1 = float(np.nanmean([result.f1 for result in results]))
    return f1, float(np.mean([result.false_discovery_rate for result in results])), took


def summarize(frame: pd.DataFrame) -> str:
    """Return the means of the methods over the networks that all of them finished."""
    rows = []
    for n_rows, part in frame.groupby("n", sort=False):
        finished = part.groupby("network")["f1"].transform(lambda f1: f1.notna().all())
        for method, same in part[finished].groupby("method", sort=False):
            rows.append(
                [
                    str(n_rows),
                    str(method),
                    str(len(same)),
                    f"{same['f1'].mean():.3f}",
                    f"{same['fdr'].mean():.4f}",
                    f"{same['seconds'].sum():.1f}",
                ]
            )
    header = ["n", "method", "networks", "mean F1", "mean FDR", "CPU s in all"]
    return markdown(header, rows)


def main() -> None:
    """Measure everything and publish the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--limit", type=int, default=120, help="CPU seconds a run may take")
    parser.add_argument("--only", action="append", help="measure this network")
    arguments = parser.parse_args()
    if arguments.folder is None or not arguments.folder.is_dir():
        print(
            "skipped: pass the folder of bnlearn's networks (.bif.gz, .bif and .json), such as "
            "pgmpy/utils/example_models of an unpacked wheel of pgmpy 1.1"
        )
        return
    sections = []
    old = published("structure_networks") if arguments.only else []
    for is_discrete, names in ((True, DISCRETE), (False, GAUSSIAN)):
        lines: list[list[str]] = []
        for name in tqdm(names, desc="discrete" if is_discrete else "Gaussian"):
            if arguments.only and name not in arguments.only:
                before = cells(old[1 if is_discrete else 3][1])
                lines += [line for line in before if line[0] == name]
                continue
            model = read(arguments.folder, name)
            if model is None:
                print(f"skipped: {name} is not in the folder")
                continue
            late: set[str] = set()
            for number, n_rows in enumerate(N_ROWS):
                data = model.sample(n_rows, random_state=number)
                for label, options in METHODS[is_discrete].items():
                    result = None
                    if label not in late:
                        result = measure(model.graph, data, options, arguments.limit)
                    shape = [name, str(len(model.graph.names)), f"{n_rows:,}", label]
                    if result is None:
                        late.add(label)
                        lines.append([*shape, "-", "-", f"over {arguments.limit}"])
                    else:
                        f1, fdr, took = result
                        lines.append([*shape, f"{f1:.3f}", f"{fdr:.4f}", f"{took:.2f}"])
                    print(*lines[-1], flush=True)
        columns = ["network", "nodes", "n", "method", "f1", "fdr", "seconds"]
        frame = pd.DataFrame(lines, columns=columns)
        numbers = ["f1", "fdr", "seconds"]
        frame[numbers] = frame[numbers].apply(pd.to_numeric, errors="coerce")
        kind = "Discrete" if is_discrete else "Gaussian"
        about = f"{kind} networks: means over the networks that every method finished."
        sections.append((about, summarize(frame)))
        about = (
            f"{kind} networks one by one; means over {N_TARGETS} random targets that have "
            f"neighbours. A run may take {arguments.limit} CPU s; what took longer with "
            "fewer rows is not tried with more."
        )
        header = ["network", "nodes", "n", "method", "mean F1", "mean FDR", "CPU s"]
        sections.append((about, markdown(header, lines)))
    title = "Structure learning: bnlearn's networks"
    publish("structure_networks", title, sections, ["dsage", "numpy"])


if __name__ == "__main__":
    main()
