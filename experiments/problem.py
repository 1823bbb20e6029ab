"""Share the data, models, sampler and graph of each problem between experiments."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression
from threadpoolctl import threadpool_limits

from dsage.datasets import paper_graph
from dsage.estimate import Estimate, run
from dsage.games import Game, LossGame
from dsage.graphs import Graph, Oracle
from dsage.samplers import Gaussian
from dsage.structure import search_graph
from experiments.store import seed_of

MODELS = {"lm": "linear model", "rf": "random forest"}

# The paper's Algorithm 1; plain SAGE if there is no oracle.
ALGORITHM_1 = {"semantics": "skip", "first_level": "none", "exact": "never"}


@dataclass(frozen=True)
class Data:
    """Size of the data and of the forest.

    Attributes
    ----------
    n_train, n_test : int
        Rows to train models, sampler and graph on, and rows to test the models on.
    n_trees : int
        Number of trees of the forest, which otherwise has scikit-learn's defaults.
    """

    n_train: int = 8_000
    n_test: int = 2_000
    n_trees: int = 100


FULL_DATA = Data()
"""The sizes of the paper."""

QUICK_DATA = Data(n_train=2_000, n_test=500, n_trees=20)
"""Reduced sizes."""


class Search(NamedTuple):
    """A learned graph and the seconds it took to learn it from the rows."""

    graph: Graph
    seconds: float


def time_search(rows: pd.DataFrame) -> Search:
    """Learn a graph by TABU with BIC on one thread, and return the shortest of three times."""
    times = []
    with threadpool_limits(1):
        for _ in range(3):
            start = time.perf_counter()
            graph = search_graph(rows, method="tabu", score="bic").graph
            times.append(time.perf_counter() - start)
    return Search(graph, min(times))


@dataclass(frozen=True, eq=False)
class Problem:
    """A graph of the paper with data, fitted models, a sampler and a learned graph."""

    name: str
    target: str
    X_train: pd.DataFrame
    y_train: pd.Series
    X: pd.DataFrame
    y: pd.Series
    lm: LinearRegression
    rf: RandomForestRegressor
    sampler: Gaussian
    search: Search

    @property
    def oracle(self) -> Oracle:
        """Separation from the target in TABU's graph of the training rows."""
        return self.search.graph.oracle(self.target, features=list(self.X.columns))

    @property
    def true_oracle(self) -> Oracle:
        """Separation from the target in the true graph."""
        return paper_graph(self.name).graph.oracle(self.target, features=list(self.X.columns))

    def game(
        self, model: str, *, n_rows: int, seed: int, draws: int | None = None, n_jobs: int = 1
    ) -> LossGame:
        """Return the game of a model on the first test rows.

        Parameters
        ----------
        model : str
            One of `MODELS`.
        n_rows : int
            Number of test rows.
        seed : int
            Seed of the noise.
        draws : int, optional
            Number of independent draws per row and coalition, as in the paper. By default the
            library chooses: none for the linear model, eight quasi-random ones for the forest.
        n_jobs : int, default=1
            Number of threads of the forest's predictions.
        """
        self.rf.set_params(n_jobs=n_jobs)
        fitted: Any = {"lm": self.lm, "rf": self.rf}[model]
        options: dict[str, Any] = {"random_state": seed, "loss": "squared_error"}
        if draws is not None:
            options |= {"n_draws": draws, "noise": "independent", "draw_control": "none"}
            # A plain function is not recognized as affine, so draws are needed.
            fitted = fitted.predict
        return LossGame(fitted, self.sampler, self.X[:n_rows], self.y[:n_rows], **options)


@lru_cache(maxsize=12)
def problem(name: str, data: Data) -> Problem:
    """Return the problem of a graph, which is the same in all experiments.

    Problems are cached although twelve forests take about a gigabyte, because refitting them
    takes longer than most experiments.
    """
    graph = paper_graph(name)
    seed = seed_of("problem", name, data.n_train, data.n_test)
    rows = graph.sample(data.n_train + data.n_test, random_state=seed)
    train, test = rows[: data.n_train], rows[data.n_train :]
    X, y = train.drop(columns=graph.target), train[graph.target]
    forest = RandomForestRegressor(data.n_trees, random_state=seed % 2**31, n_jobs=2)
    with threadpool_limits(1):
        return Problem(
            name,
            graph.target,
            X,
            y,
            test.drop(columns=graph.target),
            test[graph.target],
            LinearRegression().fit(X, y),
            forest.fit(X, y),
            Gaussian().fit(X),
            time_search(train),
        )


def uniform_orderings(n_features: int, n_orderings: int, seed: int) -> list[list[int]]:
    """Draw uniform orderings.

    Examples
    --------
    >>> [sorted(ordering) for ordering in uniform_orderings(3, 2, seed=0)]
    [[0, 1, 2], [0, 1, 2]]
    """
    generator = np.random.default_rng(seed)
    return [generator.permutation(n_features).tolist() for _ in range(n_orderings)]


def run_quietly(game: Game, **options: Any) -> Estimate:  # noqa: ANN401
    """Run an estimate with one thread of linear algebra and without warnings.

    Warnings report that separation changes a value, which is what the experiments measure.
    """
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return run(game, **options)


def round_digits(value: float, digits: int = 5) -> float:
    """Round to a few significant digits to keep tables small.

    Examples
    --------
    >>> round_digits(0.123456789)
    0.12346
    """
    return float(f"{value:.{digits}g}")
