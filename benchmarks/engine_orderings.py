"""Which orderings reach a given error with the fewest evaluations, with levels and boundaries.

Run: python -m benchmarks.engine_orderings [--seeds N] [--tiny]
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import product

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from benchmarks.engine_design import Section, Sizes, problem
from benchmarks.table import markdown, publish
from dsage._random import Streams
from dsage.estimate import estimate
from dsage.games import LossGame
from dsage.games.base import Floats
from dsage.orderings import KINDS, Herded, Orderings, Orthogonal, as_orderings

Make = Callable[[Streams], Orderings]

# The error to reach, as a share of the range of the values.
TARGET = 0.01
# Seeds of references are not those of runs.
_REFERENCE_SEED = 1_000
_MARK = "*"


@dataclass(frozen=True)
class Case:
    """A graph of the paper, and how much is measured on it.

    graph : str
        Its name.
    n_predictions : int
        A run ends at the first look after so many.
    n_seeds : int
        Runs of each combination.
    most_orderings : int
        Kinds with larger units are left out: one pass over the rows would take too long.
    """

    graph: str
    n_predictions: int
    n_seeds: int
    most_orderings: int = 64


CASES = (
    Case("dag_s(3)", 150_000, 2),
    Case("dag_sm(3)", 300_000, 2),
    Case("dag_m(3)", 400_000, 2, most_orderings=4),
)
COLUMNS = tuple(product(("d-SAGE", "SAGE"), ("auto", "none")))


def kinds(n_features: int, most_orderings: int) -> dict[str, Make]:
    """Return the kinds by name, as they are by default, and with larger units where they can."""
    names = [str(at) for at in range(n_features)]
    made: dict[str, Make] = {kind: partial(_of_kind, kind, names) for kind in KINDS}
    made["orthogonal, 8 vectors"] = partial(_orthogonal, n_features)
    made["herding, 16 orderings"] = partial(_herded, n_features)
    return {
        name: make for name, make in made.items() if make(Streams(0)).batch_size <= most_orderings
    }


def _of_kind(kind: str, names: list[str], streams: Streams) -> Orderings:
    return as_orderings(kind, names, streams)


def _orthogonal(n_features: int, streams: Streams) -> Orderings:
    return Orthogonal(n_features, streams, n_vectors=8)


def _herded(n_features: int, streams: Streams) -> Orderings:
    return Herded(n_features, streams, n_orderings=16)


def looks(
    sizes: Sizes,
    case: Case,
    column: tuple[str, str],
    make: Make,
    seed: int,
    n_predictions: float,
) -> tuple[Floats, Floats]:
    """Run; return predictions (n_looks,) and values (n_looks, n_features)."""
    at = problem(sizes, case.graph)
    estimand, levels = column
    game = LossGame(at.model, at.sampler, at.X, at.y, random_state=seed)
    options = {"oracle": at.oracle} if estimand == "d-SAGE" else {}
    costs, values = [], []
    for known in estimate(
        game,
        orderings=make(Streams(seed)),
        first_level=levels,
        exact="never",
        audit=False,
        random_state=seed,
        **options,
    ):
        costs.append(game.n_predicted)
        values.append(known.values)
        if costs[-1] >= n_predictions:
            return np.array(costs, dtype=np.float64), np.array(values)
    raise RuntimeError("sampled orderings have no end")


def reference(sizes: Sizes, case: Case, estimand: str) -> Floats:
    """Return values that are far better known: from four long runs, with levels."""
    most = 4 * sizes.share * case.n_predictions
    make = kinds(problem(sizes, case.graph).X.shape[1], case.most_orderings)["antithetic"]
    ends = [
        looks(sizes, case, (estimand, "auto"), make, _REFERENCE_SEED + run, most)[1][-1]
        for run in range(4)
    ]
    return np.mean(ends, axis=0)


def measured(sizes: Sizes, case: Case, n_seeds: int) -> tuple[list[list[str]], list[float]]:
    """Return the lines of a table, and the relative errors of its figures."""
    made = kinds(problem(sizes, case.graph).X.shape[1], case.most_orderings)
    truth = {estimand: reference(sizes, case, estimand) for estimand in ("d-SAGE", "SAGE")}
    most = sizes.share * case.n_predictions
    table, spreads = [], []
    for name, make in made.items():
        line = [name, str(make(Streams(0)).batch_size)]
        for column in COLUMNS:
            value = truth[column[0]]
            runs = [looks(sizes, case, column, make, seed, most) for seed in range(n_seeds)]
            off = [(values[-1] - value) / np.ptp(value) for _, values in runs]
            # The squared error falls as one over the predictions.
            counts = [
                cost[-1] * (error**2).mean() / TARGET**2
                for (cost, _), error in zip(runs, off, strict=True)
            ]
            first = float(np.mean([cost[0] for cost, _ in runs]))
            spreads.append(float(np.std(counts, ddof=1) / np.mean(counts) / np.sqrt(n_seeds)))
            line.append(f"{np.mean(counts) / 1e3:,.0f}{_MARK if np.mean(counts) < first else ''}")
        table.append(line)
    return table, spreads


def sections_of(sizes: Sizes, seeds: float) -> list[Section]:
    """Measure everything."""
    sections, spreads = [], []
    for case in CASES:
        n_seeds = max(round(seeds * case.n_seeds), 2)
        n_features = problem(sizes, case.graph).X.shape[1]
        table, spread = measured(sizes, case, n_seeds)
        spreads += spread
        header = ["orderings", "in a unit"]
        header += [f"{estimand}, levels {levels!r}" for estimand, levels in COLUMNS]
        text = f"**{n_features} features** (`{case.graph}`), {n_seeds} runs each."
        sections.append((text, markdown(header, table)))
    text = (
        f"`HistGradientBoostingRegressor` ({sizes.n_trees} trees) on the paper's graphs, "
        f"{sizes.n_rows} evaluation rows, sampled orderings, a learned graph for d-SAGE: thousands "
        f"of predictions for an error, root mean square over features and runs, of "
        f"{100 * TARGET:g} % of the range of the values. Errors are differences to references from "
        "sixteen times as many predictions; the figures are the predictions of a run times its "
        "squared error, over the squared error that is wanted. `levels='auto'` has the linear game "
        f"as a first level. The figures are known to about {100 * np.median(spreads):.0f} %. "
        f"Where there is a `{_MARK}`, less than one pass over the rows would do, but that is the "
        "least that is evaluated."
    )
    sections[0] = (f"{text}\n\n{sections[0][0]}", sections[0][1])
    return sections


def main(seeds: float, *, is_tiny: bool) -> None:
    """Measure everything and publish the tables."""
    tiny = Sizes(n_train=200, n_rows=64, n_trees=3, share=0.02)
    sizes = tiny if is_tiny else Sizes(n_rows=256)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sections = sections_of(sizes, seeds)
    if is_tiny:
        print("\n\n".join(f"{text}\n\n{table}" for text, table in sections))
        return
    packages = ["dsage", "numpy", "scipy", "scikit-learn"]
    publish("engine_orderings", "The engine: kinds of orderings", sections, packages)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--seeds", type=float, default=1.0, help="times as many runs")
    parser.add_argument("--tiny", action="store_true", help="small sizes, to try it")
    given = parser.parse_args()
    with threadpool_limits(1):
        main(0.1 if given.tiny else given.seeds, is_tiny=given.tiny)
