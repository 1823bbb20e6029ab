"""Find the numbers of rows and draws with the smallest error for their cost.

Run: python -m benchmarks.engine_design [--seeds N] [--tiny]
"""

from __future__ import annotations

import argparse
import warnings
from dataclasses import dataclass, replace
from functools import cache
from time import process_time
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from benchmarks.table import markdown, publish
from dsage import learn_graph
from dsage.datasets import paper_graph
from dsage.estimate import estimate
from dsage.games import LossGame
from dsage.games.base import Floats
from dsage.graphs.separation import Oracle
from dsage.samplers import Gaussian

Section = tuple[str, str]

GRAPH = "dag_sm(3)"
N_TRAIN, N_ROWS, N_TREES = 4_000, 512, 50
# A run ends at the first look after this many predictions, about two or three passes over the
# rows. d-SAGE needs fewer because it shares most evaluations.
N_PREDICTIONS = {"d-SAGE": 100_000, "SAGE": 300_000}
WHOLE = 1 << 20


@dataclass(frozen=True)
class Design:
    """The parameters that are varied, with their defaults."""

    rows_per_ordering: int = 64
    n_draws: int = 8
    n_replicates: int = 2


@dataclass(frozen=True)
class Sizes:
    """Sizes of the benchmark."""

    n_train: int = N_TRAIN
    n_rows: int = N_ROWS
    n_trees: int = N_TREES
    share: float = 1.0


@dataclass(frozen=True, eq=False)
class Problem:
    """A model, rows to evaluate it on, a sampler, and a learned graph."""

    model: HistGradientBoostingRegressor
    X: pd.DataFrame
    y: pd.Series
    sampler: Gaussian
    oracle: Oracle


ROWS = [replace(Design(), rows_per_ordering=rows) for rows in (8, 16, 32, 64, 256, WHOLE)]
DRAWS = [
    replace(Design(), n_draws=replicates * draws, n_replicates=replicates)
    for replicates, draws in ((2, 2), (2, 4), (2, 8), (4, 2), (4, 4))
]


@cache
def problem(sizes: Sizes, graph: str = GRAPH) -> Problem:
    """Fit a model and learn a graph, both from the training rows."""
    law = paper_graph(graph)
    data = law.sample(sizes.n_train + sizes.n_rows, random_state=0)
    train, test = data.iloc[: sizes.n_train], data.iloc[sizes.n_train :]
    X_train, X = train.drop(columns=law.target), test.drop(columns=law.target)
    model = HistGradientBoostingRegressor(max_iter=sizes.n_trees, random_state=0)
    model.fit(X_train, train[law.target])
    oracle = learn_graph(train).oracle(law.target, features=X.columns)
    return Problem(model, X, test[law.target], Gaussian().fit(X_train), oracle)


def once(sizes: Sizes, design: Design, estimand: str, seed: int) -> tuple[Floats, Floats, Floats]:
    """Run a design; return values, claimed variances, and predictions and seconds."""
    at = problem(sizes)
    options: dict[str, Any] = {"audit": False, "exact": "never"}
    if estimand == "d-SAGE":
        options |= {"oracle": at.oracle}
    start = process_time()
    game = LossGame(
        at.model,
        at.sampler,
        at.X,
        at.y,
        n_draws=design.n_draws,
        n_replicates=design.n_replicates,
        random_state=seed,
    )
    options |= {"rows_per_ordering": design.rows_per_ordering}
    enough = sizes.share * N_PREDICTIONS[estimand]
    looks = estimate(game, random_state=seed, **options)
    result = next(look for look in looks if game.n_predicted >= enough)
    cost = np.array([game.n_predicted, process_time() - start])
    return result.values, result.se**2, cost


@cache
def measure(sizes: Sizes, design: Design, estimand: str, n_seeds: int) -> Floats:
    """Return empirical and claimed variance, predictions and seconds, averaged over seeds."""
    runs = [once(sizes, design, estimand, seed) for seed in range(n_seeds)]
    values, claimed, costs = (np.array(part) for part in zip(*runs, strict=True))
    # The estimator also allocates its work by the sum over features.
    empirical = values.var(axis=0, ddof=1).sum()
    return np.array([empirical, claimed.sum(axis=1).mean(), *costs.mean(axis=0)])


def compare_designs(
    sizes: Sizes, designs: dict[str, Design], n_seeds: int, default: str
) -> list[list[str]]:
    """Return variance times cost relative to the default."""
    table = []
    for estimand in ("d-SAGE", "SAGE"):
        found = {name: measure(sizes, each, estimand, n_seeds) for name, each in designs.items()}
        ours = found[default]
        for name, (empirical, claimed, predictions, seconds) in found.items():
            own = [empirical * predictions, empirical * seconds, claimed * seconds]
            base = [ours[0] * ours[2], ours[0] * ours[3], ours[1] * ours[3]]
            shares = [f"{one / other:.2f}" for one, other in zip(own, base, strict=True)]
            line = [estimand, name, *shares, f"{np.sqrt(claimed / empirical):.2f}"]
            line += [f"{predictions / 1e3:,.0f}", f"{seconds:.2f}"]
            table.append(line)
    return table


def sections_of(sizes: Sizes, n_seeds: int) -> list[Section]:
    """Measure everything and return the sections."""
    text = (
        f"`HistGradientBoostingRegressor` ({sizes.n_trees} trees) on the paper's `{GRAPH}` with 19 "
        f"features and {sizes.n_rows} evaluation rows, sampled orderings, and a learned graph for "
        f"d-SAGE. The tables show the variance of the values over {n_seeds} seeds, summed over "
        "features, times the cost of a run, relative to the default (less is better). Runs stop at "
        f"the first look after {N_PREDICTIONS['d-SAGE']:,} (d-SAGE) or "
        f"{N_PREDICTIONS['SAGE']:,} (SAGE) predictions. The variance is accurate to about "
        f"{100 * np.sqrt(2 / (n_seeds - 1)) / 2:.0f} %. *Claimed* uses the squared standard errors "
        "instead, which is less noisy if they are correct, that is, if *error / spread* is 1. "
        "Times are processor seconds on one thread."
    )
    header = [
        *("values", "", "variance x predictions", "variance x seconds", "claimed x seconds"),
        *("error / spread", "thousand predictions", "s"),
    ]
    rows = {
        "all" if each.rows_per_ordering == WHOLE else str(each.rows_per_ordering): each
        for each in ROWS
    }
    draws = {f"{each.n_replicates} x {each.n_draws // each.n_replicates}": each for each in DRAWS}
    return [
        (
            f"{text}\n\n{title}".strip(),
            markdown(
                [*header[:1], name, *header[2:]], compare_designs(sizes, designs, n_seeds, default)
            ),
        )
        for text, title, name, designs, default in (
            (text, "**Rows per ordering.**", "rows", rows, "64"),
            ("", "**Draws**: replicates x draws in each.", "draws", draws, "2 x 4"),
        )
    ]


def main(n_seeds: int, *, is_tiny: bool) -> None:
    """Measure everything and publish the tables."""
    tiny = Sizes(n_train=200, n_rows=64, n_trees=3, share=0.02)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sections = sections_of(tiny if is_tiny else Sizes(), n_seeds)
    if is_tiny:
        print("\n\n".join(f"{text}\n\n{table}" for text, table in sections))
        return
    packages = ["dsage", "numpy", "scipy", "scikit-learn"]
    publish("engine_design", "The engine: rows and draws", sections, packages)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--tiny", action="store_true", help="small sizes, for a trial")
    given = parser.parse_args()
    with threadpool_limits(1):
        main(2 if given.tiny else given.seeds, is_tiny=given.tiny)
