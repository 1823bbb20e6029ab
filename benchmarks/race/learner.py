"""Learn a graph with one package, in the package's own environment.

Run: python -m benchmarks.race.learner PACKAGE FILE

The file is a CSV table; classes are text. The answer is a line of JSON for each way: directed
and undirected edges, and the processor time.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

Edges = tuple[list[tuple[str, str]], list[tuple[str, str]]]
Learn = Callable[[pd.DataFrame], Edges]


def as_numbers(data: pd.DataFrame) -> pd.DataFrame:
    """Return classes as the numbers of their levels, and all columns scaled."""
    columns = {
        name: column if column.dtype.kind in "fi" else column.astype("category").cat.codes
        for name, column in data.items()
    }
    frame = pd.DataFrame(columns).astype(float)
    return (frame - frame.mean()) / frame.std()


def _pgmpy(data: pd.DataFrame) -> Edges:
    from pgmpy.estimators import HillClimbSearch  # noqa: PLC0415

    is_mixed = any(column.dtype.kind not in "fi" for _, column in data.items())
    score = "bic-cg" if is_mixed else "bic-g"
    found = HillClimbSearch(data).estimate(scoring_method=score, show_progress=False)
    return list(found.edges()), []


def _of_marks(names: list[str], marks: Any) -> Edges:  # noqa: ANN401
    directed, undirected = [], []
    for i, tail in enumerate(names):
        for j, head in enumerate(names):
            if marks[j, i] == 1 and marks[i, j] == -1:
                directed.append((tail, head))
            elif i < j and marks[i, j] and marks[i, j] == marks[j, i]:
                undirected.append((tail, head))
    return directed, undirected


def _pc(data: pd.DataFrame) -> Edges:
    from causallearn.search.ConstraintBased.PC import pc  # noqa: PLC0415

    frame = as_numbers(data)
    found = pc(frame.to_numpy(), 0.05, "fisherz", node_names=list(frame), show_progress=False)
    return _of_marks(list(frame), found.G.graph)


def _ges(data: pd.DataFrame) -> Edges:
    from causallearn.search.ScoreBased.GES import ges  # noqa: PLC0415

    frame = as_numbers(data)
    found = ges(frame.to_numpy(), "local_score_BIC", node_names=list(frame))
    return _of_marks(list(frame), found["G"].graph)


def _dsage(data: pd.DataFrame) -> Edges:
    from dsage import learn_graph  # noqa: PLC0415

    return list(learn_graph(data, random_state=0).edges), []


WAYS: dict[str, dict[str, Learn]] = {
    "dsage": {"dsage": _dsage},
    "pgmpy": {"pgmpy, hill climbing": _pgmpy},
    "causallearn": {"causal-learn, PC, Fisher's z": _pc, "causal-learn, GES, BIC": _ges},
}


def main(package: str, path: str) -> None:
    """Print a line for every way."""
    warnings.simplefilter("ignore")
    data = pd.read_csv(path)
    for name, learn in WAYS[package].items():
        np.random.seed(0)  # noqa: NPY002 - causal-learn draws from the global generator
        nowhere = io.StringIO()
        with contextlib.redirect_stderr(nowhere), contextlib.redirect_stdout(nowhere):
            learn(data.iloc[:200, :3])  # imports, before the measurement
            start = time.process_time()
            directed, undirected = learn(data)
            taken = time.process_time() - start
        line = {"way": name, "directed": directed, "undirected": undirected, "cpu": taken}
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
