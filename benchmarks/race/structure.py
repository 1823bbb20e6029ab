"""The race of graph learners: the separations of the target, and the time.

Run: python -m benchmarks.race.structure [--seconds S]
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np
import pandas as pd

from benchmarks.race.environments import PACKAGES
from benchmarks.race.processes import FOLDER, run_module
from benchmarks.structure_learners import extend
from benchmarks.structure_problems import (
    Case,
    additive,
    choose_target,
    linear,
    mixed,
    post_non_linear,
)
from benchmarks.table import markdown, publish
from dsage.graphs import Graph, compare_graphs, random_dag, random_linear_gaussian

_N_ROWS, _N_QUERIES = 2_000, 200_000
_SIZES = ((10, 2), (20, 3), (20, 4))
_PACKAGES = ("dsage", "pgmpy", "causallearn")


def cases() -> Iterator[tuple[str, Case]]:
    """Yield the kinds of data, each with three graphs."""
    kinds = {"additive, not monotone": additive, "post-non-linear": post_non_linear, "mixed": mixed}
    for number, (n_nodes, degree) in enumerate(_SIZES):
        graph = random_dag(n_nodes, degree, random_state=8_000 + number)
        target = choose_target(graph, number)
        model = random_linear_gaussian(graph, random_state=number)
        yield "linear-Gaussian", ("", graph, target, linear(model, _N_ROWS, number))
        for kind, draw in kinds.items():
            yield kind, ("", graph, target, draw(graph, _N_ROWS, 9_000 + number))


def as_dag(
    names: list[str], directed: list[tuple[str, str]], undirected: list[tuple[str, str]]
) -> Graph | None:
    """Return a member of the class that was found, or None if there is none."""
    at = {name: number for number, name in enumerate(names)}
    arrows, rest = ([(at[a], at[b]) for a, b in edges] for edges in (directed, undirected))
    try:
        return extend(names, arrows, rest)
    except ValueError:
        return None


def _means(scores: list[tuple[float, float]]) -> list[str]:
    """Return the means of F1 and false discovery rate, if any graph was found."""
    return [f"{each:.3f}" for each in np.mean(scores, axis=0)] if scores else ["-", "-"]


def main(seconds: float) -> None:
    """Run all learners and publish the table."""
    found: dict[tuple[str, str], list[tuple[float, float, float]]] = {}
    path = FOLDER / "table.csv"
    FOLDER.mkdir(exist_ok=True)
    for kind, (_, graph, target, data) in cases():
        pd.DataFrame(data).to_csv(path, index=False)
        for package in _PACKAGES:
            for answer in run_module(package, "learner", [str(path)], seconds):
                dag = as_dag(list(data), answer["directed"], answer["undirected"])
                if dag is None:
                    score = (np.nan, np.nan, answer["cpu"])
                else:
                    same = compare_graphs(graph, dag, target, _N_QUERIES, random_state=0)
                    score = (same.f1, same.false_discovery_rate, answer["cpu"])
                found.setdefault((kind, answer["way"]), []).append(score)
                print(kind, answer["way"], *(f"{each:.3f}" for each in score), flush=True)
    lines = [
        [
            kind,
            way,
            f"{int(np.isfinite(np.array(scores)[:, 0]).sum())} of {len(_SIZES)}",
            *_means([score[:2] for score in scores if np.isfinite(score[0])]),
            f"{np.mean([each[2] for each in scores]):.2f}",
        ]
        for (kind, way), scores in sorted(found.items())
    ]
    entrants = ", ".join(PACKAGES[name] for name in _PACKAGES if name != "dsage")
    text = (
        f"`learn_graph` with its defaults against {entrants}, each in an environment of its own; "
        f"{_N_ROWS:,} rows, graphs of 10, 20 and 20 nodes with average degrees 2, 3 and 4. F1 and "
        "false discovery rate are those of the separations of the target. A pattern that belongs "
        f"to no DAG, and a run of more than {seconds:g} s, are not counted: *graphs* is how many "
        "are. PC and GES see classes as numbers."
    )
    header = ["data", "learner", "graphs", "F1", "FDR", "CPU s"]
    sections = [(text, markdown(header, lines))]
    publish("race.structure", "The race of graph learners", sections, ["dsage", "numpy"])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--seconds", type=float, default=120.0, help="of a package and a table")
    main(parser.parse_args().seconds)
