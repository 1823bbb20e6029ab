"""Measure the cost of draws: each sampler, the Gaussian one against fippy's, growth, and memory.

Run: python -m benchmarks.samplers

fippy is not a dependency of dsage. Install it with ``pip install fippy==0.2.0`` for the comparison,
which takes a few minutes; without it, the comparison is left out, with a note.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise
from time import process_time

import numpy as np
import numpy.typing as npt
import pandas as pd
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from benchmarks.table import markdown, publish, seconds
from dsage.datasets import paper_graph
from dsage.samplers.checks import Floats, Mask
from dsage.samplers.conditioning import normal_scores
from dsage.samplers.copula import GaussianCopula
from dsage.samplers.gaussian import Gaussian
from dsage.samplers.mixture import GaussianMixture
from dsage.samplers.registry import SAMPLERS

N_ROWS = 2_000
N_DRAWS = 10
N_TRAIN, N_DRAWN, N_COST_DRAWS = 10_000, 256, 8
SIZES = (0, 10, 25, 50, 75, 90)

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


def elapsed(call: Callable[[], object]) -> float:
    """Return the processor time of one call, on which what else runs has little influence."""
    start = process_time()
    call()
    return process_time() - start


def fippy_times(X: pd.DataFrame, order: Order) -> Iterator[float]:
    """Time fippy on each prefix as a coalition that it has not seen before, its fit included."""
    sampler = import_module("fippy.samplers").GaussianSampler(X)
    for length in range(len(order)):
        known = prefix(order, length)
        unknown, given = list(X.columns[~known]), list(X.columns[known])
        yield elapsed(lambda j=unknown, s=given: sampler.sample(X, j, s, n_samples=N_DRAWS))  # type: ignore[misc]


def draw_times(X: pd.DataFrame, order: Order, noise: Floats, method: str) -> Iterator[float]:
    """Time a method of a sampler on each prefix as a coalition not met before."""
    rows, draw = X.to_numpy(), getattr(Gaussian().fit(X), method)
    for length in range(len(order)):
        known = prefix(order, length)
        yield elapsed(lambda k=known: draw(rows, k, noise))  # type: ignore[misc]


def prefix_times(X: pd.DataFrame, order: Order, scores: Floats, *, copy: bool) -> Iterator[float]:
    """Time the steps along the ordering, what the ordering itself needs in the first one."""
    rows, sampler = X.to_numpy(), Gaussian().fit(X)
    start = process_time()
    for _, draws in sampler.ordering(order).prefixes(rows, scores, range(len(order))):
        if copy:
            np.ascontiguousarray(draws)
        yield process_time() - start
        start = process_time()


def against_fippy() -> list[tuple[str, str]]:
    """Compare along a whole ordering, all prefixes but the one that leaves nothing to draw."""
    X = features(N_ROWS)
    order = np.random.default_rng(0).permutation(X.shape[1])
    noise = noise_of(N_ROWS, N_DRAWS, X.shape[1])
    once = seconds(lambda: normal_scores(noise))
    scores = normal_scores(noise)
    ways = {
        "fippy": fippy_times(X, order),
        "draw": draw_times(X, order, noise, "draw"),
        "draw_scores": draw_times(X, order, scores, "draw_scores"),
        "prefixes": prefix_times(X, order, scores, copy=False),
        "prefixes, copied": prefix_times(X, order, scores, copy=True),
    }
    # The ways take turns at each prefix, so that what else the machine does falls on all of them.
    times = np.array(list(zip(*ways.values(), strict=True)))
    bands = [range(low, high) for low, high in pairwise((*SIZES, len(order)))]
    means = {f"{band[0]} to {band[-1]}": times[band].mean(axis=0) for band in bands}
    means[f"all, 0 to {len(order) - 1}"] = times.mean(axis=0)
    text = (
        f"Milliseconds a coalition, {N_ROWS:,} rows x {N_DRAWS} draws x 99 features: the features "
        "of the paper's `dag_l(3)`, and as coalitions the prefixes of a random ordering, each not "
        "met before (conditioning included), each timed once; processor time on one thread, means "
        "by the number of known features. fippy returns the unknown ones only, dsage complete "
        "rows. `draw` starts from uniform noise; the others from its normal scores, made once for "
        f"all coalitions and orderings in {once * 1e3:.0f} ms. `Ordering.prefixes` yields a view "
        "of one array that it carries along, in which a feature's values are contiguous; the "
        "ordering's preparation is in its first step. *Copied* adds a copy into contiguous rows."
    )
    milliseconds = [[name, *(f"{1e3 * t:,.1f}" for t in row)] for name, row in means.items()]
    gains = [[name, *(f"{row[0] / t:,.0f} x" for t in row[1:])] for name, row in means.items()]
    header = ["known features", *ways]
    return [
        (text, markdown(header, milliseconds)),
        ("How many times as fast as fippy that is.", markdown(header[:1] + header[2:], gains)),
    ]


def mixed_table(n_rows: int, n_features: int = 50, *, classes: bool = True) -> pd.DataFrame:
    """Return rows of numbers, every second one cut into classes, that depend on each other."""
    rng = np.random.default_rng(0)
    factors = rng.standard_normal((n_features, 5)) / 2
    values = rng.standard_normal((n_rows, 5)) @ factors.T + rng.standard_normal(
        (n_rows, n_features)
    )
    frame = pd.DataFrame(values, columns=[f"x{j}" for j in range(n_features)])
    for j in range(1, n_features if classes else 0, 2):
        cuts = np.linspace(-1.5, 1.5, 1 + j % 4)
        frame[f"x{j}"] = np.array(list("abcde"))[np.digitize(values[:, j], cuts)]
    return frame


def cost_of(name: str, data: str) -> list[str]:
    """Time the draws of a sampler for prefixes of an ordering, each not met before."""
    train, rows = (mixed_table(n, classes=data == "mixed") for n in (N_TRAIN, N_DRAWN))
    sampler = SAMPLERS[name]()
    if "random_state" in sampler.get_params():
        sampler.set_params(random_state=0)
    fit = elapsed(lambda: sampler.fit(train))
    X = sampler.layout_.encode(rows)
    order = np.random.default_rng(1).permutation(X.shape[1])
    noise = noise_of(len(X), N_COST_DRAWS, X.shape[1])
    lengths = range(0, len(order), 5)

    def draw() -> None:
        for length in lengths:
            sampler.draw(X, prefix(order, length), noise)

    def along() -> None:
        for _, draws in sampler.ordering(order).prefixes(X, sampler.prepare(noise)):
            np.ascontiguousarray(draws)

    per_row = 1e6 / (len(X) * N_COST_DRAWS)
    cost = elapsed(draw) / len(lengths) * per_row
    steps = elapsed(along) / (len(order) + 1) * per_row if sampler.has_orderings else None
    shown = "" if steps is None else f"{steps:.2f}"
    return [sampler.name, data, f"{fit:.2f}", f"{cost:.1f}", shown]


def costs() -> str:
    """Compare the samplers that can be asked for by name."""
    cases = [
        (name, data)
        for data in ("numbers", "mixed")
        for name in SAMPLERS
        if data in SAMPLERS.traits(name)["fits"]
    ]
    header = ["sampler", "data", "fit, s", "draw, us", "along an ordering, us"]
    return markdown(header, [cost_of(*case) for case in cases])


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
        "least about 2 MiB, of chunks made for the cache."
    )
    cost = (
        f"Microseconds a drawn row of 50 features: {N_TRAIN:,} training rows, numbers or every "
        f"second feature a class of 2 to 5 categories, {N_DRAWN} rows x {N_COST_DRAWS} draws. "
        "`draw` for every fifth prefix of a random ordering, each not met before; along the "
        "ordering for all of them, preparations included, each copied into contiguous rows. "
        "Processor time on one thread."
    )
    sections += [
        (cost, costs()),
        ("Growth of `draw` with rows and draws, 50 of 99 features known.", growth()),
        (remembered, memory()),
    ]
    publish("samplers", "Samplers", sections, packages)


if __name__ == "__main__":
    # Two threads that wait for each other on a busy machine slow fippy, and dsage, down ten times.
    with threadpool_limits(1):
        main()
