"""The Gaussian sampler against fippy's, growth with rows and draws, and memory.

Run: python -m benchmarks.samplers

fippy is no dependency of dsage: ``pip install fippy==0.2.0`` beside it for the comparison, which
takes four minutes; it is left out, and says so, without it.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from time import perf_counter

import numpy as np
import numpy.typing as npt
import pandas as pd

from benchmarks.table import markdown, publish, seconds
from dsage.datasets import paper_graph
from dsage.samplers.base import Floats, Mask
from dsage.samplers.conditioning import normal_scores
from dsage.samplers.copula import GaussianCopula
from dsage.samplers.gaussian import Gaussian
from dsage.samplers.mixture import GaussianMixture

N_ROWS = 2_000
N_DRAWS = 10
SIZES = (0, 10, 25, 50, 75, 90)
N_ROUNDS = 2

Order = npt.NDArray[np.intp]


def features(n_rows: int) -> pd.DataFrame:
    """Return rows of the 99 features of the paper's largest graph."""
    model = paper_graph("dag_l(3)")
    return model.sample(n_rows, random_state=0).drop(columns=model.target)


def coalition(size: int, n_features: int) -> Mask:
    """Return a random coalition of the size."""
    known = np.zeros(n_features, bool)
    known[np.random.default_rng(size).permutation(n_features)[:size]] = True
    return known


def prefix(order: Order, length: int) -> Mask:
    """Return the coalition of the first features of an ordering."""
    known = np.zeros(len(order), bool)
    known[order[:length]] = True
    return known


def noise_of(n_rows: int, n_draws: int, n_features: int) -> Floats:
    """Return uniforms."""
    return np.random.default_rng(0).random((n_rows, n_draws, n_features))


def time_fippy(X: pd.DataFrame, order: Order) -> Floats:
    """Time fippy on each prefix as a coalition that it has not seen before, its fit included."""
    sampler = import_module("fippy.samplers").GaussianSampler(X)
    times = np.empty(len(order))
    for length in range(len(order)):
        known = prefix(order, length)
        unknown, given = list(X.columns[~known]), list(X.columns[known])
        start = perf_counter()
        sampler.sample(X, unknown, given, n_samples=N_DRAWS)
        times[length] = perf_counter() - start
    return times


def time_draw(X: pd.DataFrame, order: Order, noise: Floats, method: str) -> Floats:
    """Time a method of a sampler on each prefix as a coalition not met before."""
    rows, sampler = X.to_numpy(), Gaussian().fit(X)
    draw = getattr(sampler, method)
    times = np.empty(len(order))
    for length in range(len(order)):
        known = prefix(order, length)
        start = perf_counter()
        draw(rows, known, noise)
        times[length] = perf_counter() - start
    return times


def time_prefixes(X: pd.DataFrame, order: Order, scores: Floats, *, copy: bool) -> Floats:
    """Time the steps along the ordering, what the ordering itself needs in the first one."""
    rows, sampler = X.to_numpy(), Gaussian().fit(X)
    times = np.empty(len(order))
    start = perf_counter()
    steps = sampler.ordering(order).prefixes(rows, scores, range(len(order)))
    for length, draws in steps:
        if copy:
            np.ascontiguousarray(draws)
        times[length] = perf_counter() - start
        start = perf_counter()
    return times


def against_fippy() -> tuple[tuple[str, str], tuple[str, str]]:
    """Compare along a whole ordering, all prefixes but the one that leaves nothing to draw."""
    X = features(N_ROWS)
    order = np.random.default_rng(0).permutation(X.shape[1])
    noise = noise_of(N_ROWS, N_DRAWS, X.shape[1])
    once = seconds(lambda: normal_scores(noise))
    scores = normal_scores(noise)
    ways: dict[str, Callable[[], Floats]] = {
        "fippy": lambda: time_fippy(X, order),
        "draw": lambda: time_draw(X, order, noise, "draw"),
        "draw_scores": lambda: time_draw(X, order, scores, "draw_scores"),
        "prefixes": lambda: time_prefixes(X, order, scores, copy=False),
        "prefixes, copied": lambda: time_prefixes(X, order, scores, copy=True),
    }
    # The ways take turns, so that what else the machine does falls on all of them.
    rounds = [{name: way() for name, way in ways.items()} for _ in range(N_ROUNDS)]
    times = {name: np.min([each[name] for each in rounds], axis=0) for name in ways}
    table = [_row(str(size), [taken[size] for taken in times.values()]) for size in SIZES]
    table.append(_row("mean of all 99", [float(taken.mean()) for taken in times.values()]))
    milliseconds = [row[: len(ways) + 1] for row in table]
    gains = [[row[0], *row[len(ways) + 1 :]] for row in table]
    text = (
        f"Milliseconds a coalition, {N_ROWS:,} rows x {N_DRAWS} draws x 99 features: the features "
        "of the paper's `dag_l(3)`, and as coalitions the prefixes of a random ordering, each not "
        "met before (conditioning included); the shorter of "
        f"{N_ROUNDS} rounds. fippy returns the unknown features only, dsage complete rows. `draw` "
        "starts from uniform noise; the others from its normal scores, made once for all "
        f"coalitions and orderings in {once * 1e3:.0f} ms. `Ordering.prefixes` yields a view of "
        "one array that it carries along, in which a feature's values are contiguous, and has the "
        "ordering's preparation in its first step; *copied* adds a copy into contiguous rows."
    )
    return (
        (text, markdown(["known features", *ways], milliseconds)),
        (
            "How many times as fast as fippy that is.",
            markdown(["known features", *list(ways)[1:]], gains),
        ),
    )


def _row(name: str, times: Sequence[float]) -> list[str]:
    return [
        name,
        *(f"{time * 1e3:,.1f}" for time in times),
        *(f"{times[0] / time:,.0f} x" for time in times[1:]),
    ]


def growth() -> str:
    """Time draws of half the features with more rows, and with more draws."""
    table = []
    for n_rows, n_draws in ((500, 10), (2_000, 10), (8_000, 10), (2_000, 2), (2_000, 40)):
        X = features(n_rows)
        sampler = Gaussian().fit(features(N_ROWS))
        known = coalition(50, X.shape[1])
        noise = noise_of(n_rows, n_draws, X.shape[1])
        rows = X.to_numpy()
        took = seconds(lambda s=sampler, r=rows, k=known, u=noise: s.draw(r, k, u))  # type: ignore[misc]
        table.append(
            [f"{n_rows:,}", str(n_draws), f"{took * 1e3:.1f}", f"{took / noise.size * 1e9:.1f}"]
        )
    return markdown(["rows", "draws", "ms", "ns a value of the result"], table)


def memory() -> str:
    """Measure the most memory that a draw allocates beside its result, for small budgets."""
    X = features(4_000)
    known = coalition(50, X.shape[1])
    noise = noise_of(len(X), N_DRAWS, X.shape[1])
    rows = X.to_numpy()
    table = []
    for max_bytes in (2**20, 2**23, 2**28):
        for made in (
            Gaussian(max_bytes=max_bytes),
            GaussianCopula(max_bytes=max_bytes),
            GaussianMixture(n_components=2, max_bytes=max_bytes),
        ):
            sampler = made.fit(X)
            sampler.draw(rows, known, noise)
            tracemalloc.start()
            result = sampler.draw(rows, known, noise)
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            beside = peak - result.nbytes
            table.append(
                [
                    type(made).__name__,
                    f"{max_bytes / 2**20:.0f}",
                    f"{result.nbytes / 2**20:.1f}",
                    f"{beside / 2**20:.1f}",
                ]
            )
    return markdown(["sampler", "budget, MiB", "result, MiB", "beside it at the peak, MiB"], table)


def main() -> None:
    """Measure everything and publish the tables."""
    packages = ["dsage", "numpy", "scipy"]
    sections: list[tuple[str, str]] = []
    if find_spec("fippy") is None:
        print("fippy is not installed: no comparison. Install it with: pip install fippy==0.2.0\n")
    else:
        packages.append("fippy")
        sections.extend(against_fippy())
    remembered = (
        f"Memory: 4,000 rows x {N_DRAWS} draws x 99 features, 50 known. Beside the result there is "
        "X as a matrix, 3.0 MiB, and the working memory that the budget bounds; the latter has at "
        "least about 2 MiB, of blocks made for the cache."
    )
    sections += [
        ("Growth with rows and draws, 50 of 99 features known.", growth()),
        (remembered, memory()),
    ]
    publish("samplers", "Samplers", sections, packages)


if __name__ == "__main__":
    main()
