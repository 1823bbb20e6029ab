"""The Gaussian sampler against fippy's, growth with rows and draws, and memory.

Run: python -m benchmarks.samplers

fippy is no dependency of dsage: ``pip install fippy==0.2.0`` beside it for the comparison, which is
left out, and says so, without it.
"""

from __future__ import annotations

import tracemalloc
from importlib import import_module
from importlib.util import find_spec

import numpy as np
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


def features(n_rows: int) -> pd.DataFrame:
    """Return rows of the 99 features of the paper's largest graph."""
    model = paper_graph("dag_l(3)")
    return model.sample(n_rows, random_state=0).drop(columns=model.target)


def coalition(size: int, n_features: int) -> Mask:
    """Return a random coalition of the size."""
    known = np.zeros(n_features, bool)
    known[np.random.default_rng(size).permutation(n_features)[:size]] = True
    return known


def noise_of(n_rows: int, n_draws: int, n_features: int) -> Floats:
    """Return uniforms."""
    return np.random.default_rng(0).random((n_rows, n_draws, n_features))


def dsage_seconds(X: pd.DataFrame, known: Mask, noise: Floats) -> tuple[float, float]:
    """Time a coalition that has not been seen before: from noise, and from normal scores."""
    rows = X.to_numpy()
    scores = normal_scores(noise)
    samplers = iter([Gaussian().fit(X) for _ in range(30)])
    from_noise = seconds(lambda: next(samplers).draw(rows, known, noise), repeats=15)
    from_scores = seconds(lambda: next(samplers).draw_scores(rows, known, scores), repeats=15)
    return from_noise, from_scores


def fippy_seconds(X: pd.DataFrame, known: Mask) -> float:
    """Time fippy on a coalition that it has not seen before, its fit included."""
    make = import_module("fippy.samplers").GaussianSampler
    unknown, given = list(X.columns[~known]), list(X.columns[known])
    samplers = iter([make(X) for _ in range(3)])

    def draw() -> None:
        next(samplers).sample(X, unknown, given, n_samples=N_DRAWS)

    return seconds(draw, repeats=3)


def against_fippy() -> str:
    """Compare per coalition, by the size of the coalition, and over all sizes."""
    X = features(N_ROWS)
    noise = noise_of(N_ROWS, N_DRAWS, X.shape[1])
    table, total = [], np.zeros(3)
    # A prefix of a random ordering has every size equally often: weigh by the trapezium rule.
    edges = np.array([*SIZES, X.shape[1]], dtype=float)
    for at, size in enumerate(SIZES):
        known = coalition(size, X.shape[1])
        times = np.array([fippy_seconds(X, known), *dsage_seconds(X, known, noise)])
        table.append(_row(str(size), times))
        before = edges[at] - edges[at - 1] if at else 0.0
        total += times * (before + edges[at + 1] - edges[at]) / 2
    table.append(_row("all, weighted", total / X.shape[1]))
    header = [
        "known features",
        "fippy, ms",
        "dsage, ms",
        "dsage from scores, ms",
        "gain",
        "gain from scores",
    ]
    return markdown(header, table)


def _row(name: str, times: Floats) -> list[str]:
    return [
        name,
        *(f"{time * 1e3:,.1f}" for time in times),
        *(f"{times[0] / time:.0f} x" for time in times[1:]),
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
    sections = []
    if find_spec("fippy") is None:
        print("fippy is not installed: no comparison. Install it with: pip install fippy==0.2.0\n")
    else:
        packages.append("fippy")
        text = (
            f"One coalition, {N_ROWS:,} rows x {N_DRAWS} draws x 99 features: the features of the "
            "paper's `dag_l(3)`, a coalition not met before (conditioning included). fippy returns "
            "the unknown features, dsage complete rows. *From scores*: `draw_scores`, for noise "
            "that serves many coalitions and is turned into normal scores once. *All*: the mean "
            "over sizes, as along an ordering."
        )
        sections.append((text, against_fippy()))
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
