"""Explain rows of a Parquet file that is several times larger than the memory allowed.

Run: python -m benchmarks.larger [--rows N] [--folder PATH]

Every run has its own process. The operating system limits the memory that it may allocate after the
imports (`RLIMIT_AS`).
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.ensemble import HistGradientBoostingRegressor

import dsage
from benchmarks.measured import answer, ask, measured
from benchmarks.table import markdown, publish
from dsage.data import sample_rows
from dsage.graphs import Graph

N_FEATURES, CHUNK, ALLOWED = 12, 250_000, 400 * 2**20
NAMES = [f"x{number}" for number in range(N_FEATURES)]


def write(path: Path, n_rows: int, seed: int) -> None:
    """Write rows of a linear structural model with a curved target, chunk by chunk."""
    rng = np.random.default_rng(seed)
    schema = pa.schema([(name, pa.float64()) for name in (*NAMES, "y")])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, n_rows, CHUNK):
            size = min(CHUNK, n_rows - start)
            X = rng.normal(size=(size, N_FEATURES))
            for at in range(1, N_FEATURES):
                X[:, at] += 0.6 * X[:, at - 1] * (at % 4 > 0)
            y = X[:, 0] + 0.5 * X[:, 5] ** 2 + X[:, 9] * X[:, 10] + rng.normal(size=size)
            columns = [pa.array(column) for column in (*X.T, y)]
            writer.write_table(pa.Table.from_arrays(columns, schema=schema))


def fit_model(folder: Path) -> Any:  # noqa: ANN401
    """Return a model that is fitted to some of the rows."""
    rows = sample_rows(folder / "train.parquet", 20_000, random_state=1)
    model = HistGradientBoostingRegressor(max_iter=50, random_state=0)
    return model.fit(rows[NAMES], rows["y"])


def run_case(case: str, folder: Path) -> None:
    """Explain in this process, and answer what it took."""
    warnings.simplefilter("ignore")
    model = fit_model(folder)
    options: dict[str, Any] = {"sampler": "gaussian", "tolerance": 0.02}
    options |= {"random_state": 0, "progress": False, "loss": "squared_error"}
    paths = folder / "train.parquet", folder / "test.parquet"
    if case == "on disk":
        limit = _size() + ALLOWED
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        with measured() as found:
            result = dsage.explain(model, paths[0], "y", paths[1], graph="learn", **options)
        if result.graph is None:
            raise RuntimeError("no graph was learned")
        result.graph.save(folder / "graph.json")
    else:
        train, test = (sample_rows(path) for path in paths)
        graph = Graph.load(folder / "graph.json")
        rows = train[NAMES], train["y"], test[NAMES], test["y"]
        with measured() as found:
            result = dsage.explain(model, *rows, graph=graph, **options)
    numbers = {"values": result.estimate.values.tolist(), "se": result.estimate.se.tolist()}
    answer({"more": found.more, "wall": found.wall, **numbers})


def _size() -> int:
    """Return the address space of this process."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    return pages * os.sysconf("SC_PAGE_SIZE")


def main(n_rows: int, folder: Path) -> None:
    """Write the files, explain them, and publish the table."""
    write(folder / "train.parquet", n_rows, 0)
    write(folder / "test.parquet", n_rows // 2, 1)
    found = {
        case: ask("benchmarks.larger", "--case", case, "--folder", str(folder))
        for case in ("on disk", "in memory")
    }
    same = all(found["on disk"][name] == found["in memory"][name] for name in ("values", "se"))
    n_bytes = 8 * (N_FEATURES + 1) * (n_rows + n_rows // 2)
    cells = [
        [
            f"{n_rows:,} and {n_rows // 2:,}",
            f"{n_bytes / 1e6:,.0f}",
            f"{ALLOWED / 1e6:,.0f}",
            f"{n_bytes / ALLOWED:.1f}",
            f"{found['on disk']['more'] / 1e6:,.0f}",
            f"{found['on disk']['wall']:.1f}",
            f"{found['in memory']['wall']:.1f}",
            "yes" if same else "NO",
        ]
    ]
    head = ["rows", "MB as floats", "MB allowed", "times", "peak, MB", "seconds"]
    head += ["seconds, same rows in memory", "same values"]
    text = (
        '`explain(model, "train.parquet", "y", "test.parquet", graph="learn", tolerance=0.02)` of '
        f"training and evaluation files with {N_FEATURES} features and a boosted model: the size "
        "of the rows, the memory that the operating system allowed beyond that after the imports, "
        "the memory at the peak, and the time, of which the graph of all training rows is a part. "
        "The limit is one of address space, of which the imports reserve more than they use: so "
        "the memory at the peak can be above it. "
        "The run in memory has the rows that were drawn, and the graph; *same values*: to the bit, "
        "with their standard errors."
    )
    packages = ["dsage", "numpy", "pyarrow", "scikit-learn"]
    publish("larger", "More rows than memory", [(text, markdown(head, cells))], packages)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rows", type=int, default=8_000_000)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--case", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.case is not None:
        run_case(given.case, given.folder)
    elif given.folder is not None:
        main(given.rows, given.folder)
    else:
        with tempfile.TemporaryDirectory() as made:
            main(given.rows, Path(made))
