"""Compare two models, samplers or graphs with common orderings, rows and noise, or in two runs.

Run: python -m benchmarks.comparison [--seeds N] [--tiny]
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from benchmarks.table import markdown, publish
from dsage import learn_graph
from dsage.datasets import paper_graph
from dsage.estimate import compare_games, run
from dsage.games import LossGame
from dsage.games.base import Floats
from dsage.graphs.separation import Oracle
from dsage.samplers import Gaussian, GaussianCopula, Sampler

GRAPH = "dag_sm(3)"
OTHER_NOISE = 1_000_000


@dataclass(frozen=True)
class Sizes:
    """Sizes of the benchmark."""

    n_train: int = 4_000
    n_rows: int = 512
    n_trees: int = 30
    n_predictions: int = 200_000


TINY = Sizes(n_train=300, n_rows=64, n_trees=3, n_predictions=4_000)


@dataclass(frozen=True, eq=False)
class Problem:
    """Models, samplers and graphs to compare, all from the same training rows."""

    models: dict[str, Any]
    samplers: dict[str, Sampler]
    graphs: dict[str, Oracle]
    X: pd.DataFrame
    y: pd.Series


@dataclass(frozen=True)
class Side:
    """One side of a comparison."""

    model: str = "boosting"
    sampler: str = "Gaussian"
    graph: str | None = None


@dataclass(frozen=True, eq=False)
class Spent:
    """Stop after a number of predictions in all games; see `Stopping`."""

    games: Sequence[LossGame]
    n_predictions: int

    def reason(self, progress: object) -> str | None:  # noqa: ARG002
        """Return why to stop, or None to continue."""
        spent = sum(game.n_predicted for game in self.games)
        return "the predictions are used up" if spent >= self.n_predictions else None


PAIRS = {
    "forest or boosting": (Side(model="forest"), Side()),
    "forest or boosting, one graph": (
        Side(model="forest", graph="learned"),
        Side(graph="learned"),
    ),
    "two forests, other seeds": (Side(model="forest"), Side(model="other forest")),
    "Gaussian or copula sampler": (Side(), Side(sampler="copula")),
    "graph from all or from 200 rows": (Side(graph="learned"), Side(graph="of few rows")),
    "learned graph or none": (Side(graph="learned"), Side()),
}


@cache
def problem(sizes: Sizes) -> Problem:
    """Fit models and samplers, and learn a graph."""
    law = paper_graph(GRAPH)
    data = law.sample(sizes.n_train + sizes.n_rows, random_state=0)
    train, test = data.iloc[: sizes.n_train], data.iloc[sizes.n_train :]
    X_train, y_train = train.drop(columns=law.target), train[law.target]
    X = test.drop(columns=law.target)
    forest = {"n_estimators": sizes.n_trees, "min_samples_leaf": 5}
    models = {
        "boosting": HistGradientBoostingRegressor(max_iter=sizes.n_trees, random_state=0),
        "forest": RandomForestRegressor(random_state=0, **forest),
        "other forest": RandomForestRegressor(random_state=1, **forest),
    }
    for model in models.values():
        model.fit(X_train, y_train)
    graphs = {"learned": learn_graph(train), "of few rows": learn_graph(train.iloc[:200])}
    return Problem(
        models,
        {"Gaussian": Gaussian().fit(X_train), "copula": GaussianCopula().fit(X_train)},
        {name: graph.oracle(law.target, features=X.columns) for name, graph in graphs.items()},
        X,
        test[law.target],
    )


def game(sizes: Sizes, side: Side, seed: int) -> LossGame:
    """Return the game of one side with its own noise."""
    at = problem(sizes)
    return LossGame(at.models[side.model], at.samplers[side.sampler], at.X, at.y, random_state=seed)


def once(sizes: Sizes, pair: tuple[Side, Side], seed: int) -> tuple[Floats, Floats, Floats, Floats]:
    """Return the differences and their claimed variances, paired and from two runs."""
    oracles = [None if s.graph is None else problem(sizes).graphs[s.graph] for s in pair]
    one = oracles[0] if oracles[0] is oracles[1] else None
    options: dict[str, Any] = {"exact": "never", "audit": False}
    a, b = (game(sizes, side, seed) for side in pair)
    paired = compare_games(
        a,
        b,
        oracle=one if one is not None or oracles == [None, None] else (oracles[0], oracles[1]),
        stopping=Spent([a, b], sizes.n_predictions),
        random_state=seed,
        **options,
    ).difference
    runs = []
    for number, (side, oracle) in enumerate(zip(pair, oracles, strict=True)):
        own = seed + number * OTHER_NOISE
        alone = game(sizes, side, own)
        enough = Spent([alone], sizes.n_predictions // 2)
        runs.append(run(alone, oracle=oracle, stopping=enough, random_state=own, **options))
    first, second = runs
    separate, variance = first.values - second.values, first.se**2 + second.se**2
    return paired.values, paired.se**2, separate, variance


def measure(sizes: Sizes, name: str, n_seeds: int) -> list[str]:
    """Measure one comparison and return its row."""
    runs = [once(sizes, PAIRS[name], seed) for seed in range(n_seeds)]
    paired, own, separate, other = (np.array(part) for part in zip(*runs, strict=True))
    spread = [values.var(axis=0, ddof=1).sum() for values in (paired, separate)]
    claimed = [variances.sum(axis=1).mean() for variances in (own, other)]
    largest = np.abs(paired.mean(axis=0)).max()
    return [
        name,
        f"{spread[1] / spread[0]:.1f}",
        f"{claimed[1] / claimed[0]:.1f}",
        f"{np.sqrt(claimed[1] / claimed[0]):.1f}",
        f"{np.sqrt(claimed[0] / spread[0]):.2f}",
        f"{np.sqrt(claimed[1] / spread[1]):.2f}",
        f"{largest:.3g}",
        f"{np.sqrt(own.mean(axis=0).max()):.2g}",
        f"{np.sqrt(other.mean(axis=0).max()):.2g}",
    ]


def section(sizes: Sizes, n_seeds: int) -> tuple[str, str]:
    """Measure all comparisons."""
    text = (
        f"The paper's `{GRAPH}` with 19 features and {sizes.n_rows} evaluation rows; "
        f"`HistGradientBoostingRegressor` and random forests with {sizes.n_trees} trees each; "
        f"sampled orderings and about {sizes.n_predictions:,} predictions in total for each "
        "difference. *Compared*: `compare_games` with common orderings, rows and noise. *Two "
        "runs*: each has half of the predictions, and its own orderings and noise. Variances are "
        f"sums over features. *Over seeds* uses the empirical variances over {n_seeds} seeds, so "
        f"this ratio is accurate to about {100 * np.sqrt(1 / (n_seeds - 1)):.0f} %; *claimed* uses "
        "the squared standard errors. *Error / spread* is 1 if the standard errors are correct. "
        "The last columns show the largest difference of any feature, and the largest standard "
        "errors."
    )
    header = [
        *("comparison", "variance of two runs / compared, over seeds", "claimed"),
        *("intervals wider by", "error / spread, compared", "two runs"),
        *("largest difference", "se, compared", "se, two runs"),
    ]
    return text, markdown(header, [measure(sizes, name, n_seeds) for name in PAIRS])


def main(n_seeds: int, *, is_tiny: bool) -> None:
    """Measure everything and publish the table."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        text, table = section(TINY if is_tiny else Sizes(), n_seeds)
    if is_tiny:
        print(f"{text}\n\n{table}")
        return
    packages = ["dsage", "numpy", "scipy", "scikit-learn"]
    publish("comparison", "Comparing models, samplers and graphs", [(text, table)], packages)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--tiny", action="store_true", help="small sizes, for a trial")
    given = parser.parse_args()
    with threadpool_limits(1):
        main(2 if given.tiny else given.seeds, is_tiny=given.tiny)
