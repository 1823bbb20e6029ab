"""Compare the engine with fippy, plain SAGE and the paper's algorithm; measure its memory.

Run: python -m benchmarks.engine [--part PART ...] [--tiny]

Parts are fippy, sage, dsage, exact and memory. Results are written only if all parts run at full
size. fippy is not a dependency of dsage: its part is skipped unless you install it with
``pip install fippy==0.2.0``.
"""

from __future__ import annotations

import argparse
import multiprocessing
import tracemalloc
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from time import process_time
from typing import Any

import numpy as np
from sklearn.linear_model import LinearRegression
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from benchmarks.engine_forest import PLAIN, TINY, Section, Sizes, dsage, overhead, sage, split
from benchmarks.table import markdown, publish
from dsage import learn_graph
from dsage.datasets import paper_graph
from dsage.estimate import NOrderings, run
from dsage.estimate.walk import Prefixes
from dsage.games import LossGame
from dsage.games.base import Floats
from dsage.samplers import Gaussian

PARTS = ("fippy", "sage", "dsage", "exact", "memory")
MIB = 2**20


def compare_fippy(sizes: Sizes) -> list[Section]:
    """Compare the time per ordering of a linear model, and the surpluses, with fippy."""
    X_train, y_train, X, y = split(sizes.fippy_graph, sizes)
    model, sampler = LinearRegression().fit(X_train, y_train), Gaussian().fit(X_train)
    start = process_time()
    game = LossGame(model, sampler, X, y)
    made = process_time() - start
    options = PLAIN | {"rows_per_ordering": len(X), "random_state": 0}
    start = process_time()
    done = run(game, stopping=NOrderings(sizes.linear_orderings), **options)
    ours = (process_time() - start) / done.n_orderings
    explainer = import_module("fippy").Explainer(
        model.predict,
        X_train,
        import_module("fippy.losses").squared_error,
        sampler=import_module("fippy.samplers").GaussianSampler(X_train),
    )
    theirs, off = [], []
    for seed in range(sizes.fippy_orderings):
        np.random.seed(seed)  # noqa: NPY002 - fippy draws from the global generator
        start = process_time()
        explained = explainer.sage(
            X, y, distribution="conditional", n_samples=sizes.n_draws, n_permutations=1
        )
        theirs.append(process_time() - start)
        order = np.random.RandomState(seed).permutation(X.shape[1])
        off.append(deviations(game, sampler, model.coef_, order, explained.scores[0, 0], sizes))
    took, z = float(np.mean(theirs)), np.concatenate(off)
    text = (
        f"A linear model on the paper's `{sizes.fippy_graph}` with {X.shape[1]} features and "
        f"{len(X):,} rows, with the Gaussian sampler: processor time per ordering on one thread. "
        f"fippy's conditional SAGE has {sizes.n_draws} draws and {sizes.fippy_orderings} "
        "ordering(s) of all rows. dsage runs plain SAGE without draws, graph and first level, "
        f"with {done.n_orderings} uniform orderings of all rows; its time includes the whole loop, "
        f"but not the {1e3 * made:.0f} ms to construct the game. The deviation is the difference "
        "between fippy's and our surpluses along the same orderings, minus the bias due to the "
        "variance of a mean of draws, in standard errors of the draws. If both estimate the same, "
        f"the root mean square of these {z.size} deviations is about 1."
    )
    row = [f"{took:.2f}", f"{1e3 * ours:.2f}", f"{took / ours:,.0f} x"]
    row += [f"{np.sqrt(np.mean(z**2)):.2f}", f"{np.abs(z).max():.1f}"]
    header = ["fippy, s", "dsage, ms", "ratio", "deviation: root mean square", "largest"]
    return [(text, markdown(header, [row]))]


def deviations(
    game: LossGame,
    sampler: Gaussian,
    weights: Floats,
    order: np.ndarray,
    theirs: Floats,
    sizes: Sizes,
) -> Floats:
    """Return the deviations of fippy's surpluses from ours along an ordering.

    They are in standard errors. fippy's risk is that of a mean of m draws, which is too large by
    the variance of f given the prefix, divided by m.
    """
    n_rows = len(theirs)
    ours = Prefixes(game)(order[None], np.arange(n_rows), 0).values[0, :, 0]
    bias = np.empty(len(order))
    bias[order] = (sampler.ordering(order).factor.T @ weights[order]) ** 2 / sizes.n_draws
    difference = theirs - ours
    se = difference.std(axis=0, ddof=1) / np.sqrt(n_rows)
    deviation: Floats = (difference.mean(axis=0) - bias) / se
    return deviation


def time_exact(sizes: Sizes) -> list[Section]:
    """Time the average over all orderings for a linear model."""
    X_train, y_train, X, y = split("dag_s(2)", sizes)
    model, sampler = LinearRegression().fit(X_train, y_train), Gaussian().fit(X_train)
    graph = learn_graph(X_train.assign(**{str(y_train.name): y_train}))
    oracle = graph.oracle(str(y_train.name), features=X.columns)
    ways: dict[str, dict[str, Any]] = {
        "SAGE, no graph": {},
        "d-SAGE": {"oracle": oracle, "audit": False},
        "d-SAGE, skip": {"oracle": oracle, "audit": False, "semantics": "skip"},
    }
    table = []
    for way, options in ways.items():
        start = process_time()
        result = run(LossGame(model, sampler, X, y), exact="always", random_state=0, **options)
        took = process_time() - start
        table.append(
            [
                *(way, f"{took:.3f}", f"{result.n_orderings:,}"),
                *(str(result.is_exact), f"{result.se.max():.1g}"),
            ]
        )
    text = (
        f"Exact average over all orderings of the {X.shape[1]} features of `dag_s(2)`: a linear "
        f"model and {len(X):,} rows; processor time from model and rows to values."
    )
    return [(text, markdown(["values", "s", "orderings", "exact", "largest error"], table))]


def peak(way: str, max_bytes: int, n_rows: int) -> float:
    """Return the peak of allocated memory from rows to values, including the game."""
    model = paper_graph("dag_sm(3)")
    data = model.sample(n_rows, random_state=0)
    X, y = data.drop(columns=model.target), data[model.target]
    weights = np.random.default_rng(0).normal(size=X.shape[1])
    sampler = Gaussian().fit(X)
    options: dict[str, Any] = {"rows_per_ordering": n_rows, "cache_bytes": max_bytes}
    if way == "d-SAGE":
        options |= {"oracle": model.graph.oracle(model.target, features=X.columns), "audit": False}
    tracemalloc.start()
    # A plain function is not recognized as affine, so draws are needed.
    game = LossGame(lambda Z: Z.to_numpy() @ weights, sampler, X, y, max_bytes=max_bytes)
    run(game, stopping=NOrderings(2), exact="never", random_state=0, **options)
    _, most = tracemalloc.get_traced_memory()
    return float(most)


def memory(sizes: Sizes) -> list[Section]:
    """Compare the peak memory with the budget."""
    table = []
    for way in ("SAGE", "d-SAGE"):
        for n_rows in (sizes.memory_rows // 4, sizes.memory_rows):
            for max_bytes in sizes.memory_budgets:
                # A new process for each run, so that nothing remains allocated.
                with multiprocessing.get_context("spawn").Pool(1) as pool:
                    most = pool.apply(peak, (way, max_bytes, n_rows))
                beside = most - max_bytes
                line = [way, f"{n_rows:,}"]
                line += [f"{size / MIB:.1f}" for size in (max_bytes, most, beside)]
                table.append([*line, f"{beside / (8 * 19 * n_rows):.0f}"])
    text = (
        "Memory: peak allocation from rows to values according to `tracemalloc`, for the 19 "
        "features of `dag_sm(3)`, all rows per ordering, 8 draws, a function as the model, and one "
        "unit of two orderings. The budget is `max_bytes` of the game; the cache of d-SAGE may use "
        "the same amount again (`cache_bytes`). The excess is also given in multiples of the size "
        "of the rows; it is negative if the budget is not used up."
    )
    header = ["values", "rows", "budget, MiB", "peak, MiB", "excess, MiB", "multiples of rows"]
    return [(text, markdown(header, table))]


def main(parts: Sequence[str], sizes: Sizes, *, is_published: bool) -> None:
    """Measure everything and publish the tables."""
    packages = ["dsage", "numpy", "scipy", "scikit-learn"]
    measures: dict[str, Callable[[Sizes], list[Section]]] = {
        "fippy": compare_fippy,
        "sage": sage,
        "dsage": dsage,
        "exact": time_exact,
        "memory": memory,
    }
    sections: list[Section] = []
    for part in parts:
        if part == "fippy" and find_spec("fippy") is None:
            print("Skip fippy, which is not installed. Install it: pip install fippy==0.2.0\n")
            continue
        packages += ["fippy"] * (part == "fippy")
        sections += measures[part](sizes)
        if part in ("sage", "dsage") and part == [p for p in parts if p in ("sage", "dsage")][-1]:
            sections += overhead()
    if is_published:
        publish("engine", "The engine: speed and memory", sections, packages)
    else:
        print("\n\n".join(f"{text}\n\n{table}" for text, table in sections))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--part", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--tiny", action="store_true", help="small sizes, for a trial")
    given = parser.parse_args()
    # On a busy machine, threads that wait for each other can slow everything down tenfold.
    with threadpool_limits(1):
        main(
            given.part,
            TINY if given.tiny else Sizes(),
            is_published=not given.tiny and tuple(given.part) == PARTS,
        )
