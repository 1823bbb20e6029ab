"""The engine: against fippy, against plain orderings and the paper's algorithm, overhead, memory.

Run: python -m benchmarks.engine [--part PART ...] [--tiny]

Parts are fippy, sage, dsage, exact and memory; with some of them, or tiny, nothing is written.
fippy is no dependency of dsage: ``pip install fippy==0.2.0`` beside it for its part, which is left
out, and says so, without it.
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


# --- a linear model against fippy


def against_fippy(sizes: Sizes) -> list[Section]:
    """Compare the time of an ordering, and the surpluses along the same orderings."""
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
        f"A linear model of the paper's `{sizes.fippy_graph}`, {X.shape[1]} features, {len(X):,} "
        "rows, Gaussian sampler: processor seconds an ordering, on one thread. fippy's conditional "
        f"SAGE with {sizes.n_draws} draws, {sizes.fippy_orderings} ordering(s) of all rows; plain "
        f"SAGE without draws, {done.n_orderings} uniform orderings of all rows, no graph, no "
        f"levels, the whole loop included; the game is made once before, in {1e3 * made:.0f} ms. "
        "The surpluses of both along fippy's orderings are compared: fippy's less ours, less the "
        "bias that the variance of a mean of draws brings, in standard errors of the draws. Were "
        f"they equal, the root of the mean square of these {z.size} would be about 1."
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
    """Return how far fippy's surpluses of an ordering are from ours, in standard errors.

    Its risk is that of a mean of m draws, too large by the variance of f given the prefix over m.
    """
    n_rows = len(theirs)
    ours = Prefixes(game)(order[None], np.arange(n_rows), 0).values[0, :, 0]
    bias = np.empty(len(order))
    bias[order] = (sampler.ordering(order).factor.T @ weights[order]) ** 2 / sizes.n_draws
    difference = theirs - ours
    se = difference.std(axis=0, ddof=1) / np.sqrt(n_rows)
    deviation: Floats = (difference.mean(axis=0) - bias) / se
    return deviation


# --- exactly, and memory


def exactly(sizes: Sizes) -> list[Section]:
    """Time the average over all orderings of a linear model."""
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
        f"All orderings of the {X.shape[1]} features of `dag_s(2)` exactly: a linear model, "
        f"{len(X):,} rows, processor seconds from model and rows to the values."
    )
    return [(text, markdown(["values", "s", "orderings", "exact", "largest error"], table))]


def peak(way: str, max_bytes: int, n_rows: int) -> float:
    """Return the most that was allocated, the game included, from rows to values."""
    model = paper_graph("dag_sm(3)")
    data = model.sample(n_rows, random_state=0)
    X, y = data.drop(columns=model.target), data[model.target]
    weights = np.random.default_rng(0).normal(size=X.shape[1])
    sampler = Gaussian().fit(X)
    options: dict[str, Any] = {"rows_per_ordering": n_rows, "cache_bytes": max_bytes}
    if way == "d-SAGE":
        options |= {"oracle": model.graph.oracle(model.target, features=X.columns), "audit": False}
    tracemalloc.start()
    # A plain function is not known to be affine, so that draws are made.
    game = LossGame(lambda Z: Z.to_numpy() @ weights, sampler, X, y, max_bytes=max_bytes)
    run(game, stopping=NOrderings(2), exact="never", random_state=0, **options)
    _, most = tracemalloc.get_traced_memory()
    return float(most)


def memory(sizes: Sizes) -> list[Section]:
    """Compare the peak of memory with the budget."""
    table = []
    for way in ("SAGE", "d-SAGE"):
        for n_rows in (sizes.memory_rows // 4, sizes.memory_rows):
            for max_bytes in sizes.memory_budgets:
                # A process of its own for each run, so that nothing is left of the one before.
                with multiprocessing.get_context("spawn").Pool(1) as pool:
                    most = pool.apply(peak, (way, max_bytes, n_rows))
                beside = most - max_bytes
                line = [way, f"{n_rows:,}"]
                line += [f"{size / MIB:.1f}" for size in (max_bytes, most, beside)]
                table.append([*line, f"{beside / (8 * 19 * n_rows):.0f}"])
    text = (
        "Memory: rows of the 19 features of `dag_sm(3)`, all of them for each ordering, 8 draws, "
        "a function as the model, one unit of two orderings; the most that was allocated at a "
        "time, by `tracemalloc`, from the rows to the values. The budget is `max_bytes` of the "
        "game; the cache of d-SAGE may have as much again (`cache_bytes`). What goes beyond it "
        "also in multiples of the rows as a matrix; it is negative where the budget is not needed."
    )
    header = ["values", "rows", "budget, MiB", "peak, MiB", "beyond it, MiB", "in matrices"]
    return [(text, markdown(header, table))]


def main(parts: Sequence[str], sizes: Sizes, *, is_kept: bool) -> None:
    """Measure everything and publish the tables."""
    packages = ["dsage", "numpy", "scipy", "scikit-learn"]
    measures: dict[str, Callable[[Sizes], list[Section]]] = {
        "fippy": against_fippy,
        "sage": sage,
        "dsage": dsage,
        "exact": exactly,
        "memory": memory,
    }
    sections: list[Section] = []
    for part in parts:
        if part == "fippy" and find_spec("fippy") is None:
            print("fippy is not installed: no comparison. Install it: pip install fippy==0.2.0\n")
            continue
        packages += ["fippy"] * (part == "fippy")
        sections += measures[part](sizes)
        if part in ("sage", "dsage") and part == [p for p in parts if p in ("sage", "dsage")][-1]:
            sections += overhead()
    if is_kept:
        publish("engine", "The engine: speed and memory", sections, packages)
    else:
        print("\n\n".join(f"{text}\n\n{table}" for text, table in sections))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--part", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--tiny", action="store_true", help="small sizes, to try it")
    given = parser.parse_args()
    # Two threads that wait for each other on a busy machine slow everything down ten times.
    with threadpool_limits(1):
        main(
            given.part,
            TINY if given.tiny else Sizes(),
            is_kept=not given.tiny and tuple(given.part) == PARTS,
        )
