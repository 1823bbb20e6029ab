"""The workloads of the engine's benchmarks: simulated and real tables with common models."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pandas as pd
from lightgbm import LGBMRegressor
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from benchmarks.drawing_share import mixed_rows
from benchmarks.structure_problems import additive, choose_target
from dsage.datasets import paper_graph
from dsage.graphs import random_dag

Rows = tuple[pd.DataFrame, Any]


@dataclass(frozen=True, eq=False)
class Workload:
    """A fitted model, its training rows and the rows on which it is evaluated."""

    name: str
    model: Any
    X_train: pd.DataFrame
    y_train: Any
    X_test: pd.DataFrame
    y_test: Any


def linear_gaussian(graph: str = "dag_sm(2)", n_rows: int = 6_000) -> Rows:
    """Return rows of one of the paper's graphs."""
    model = paper_graph(graph)
    data = model.sample(n_rows, random_state=0)
    return data.drop(columns=model.target), data[model.target]


def non_linear(n_features: int, n_rows: int = 5_000) -> Rows:
    """Return rows of a random graph whose effects are additive and not monotone."""
    graph = random_dag(n_features + 1, 3, random_state=n_features)
    target = choose_target(graph, n_features)
    data = additive(graph, n_rows, n_features)
    return data.drop(columns=target), data[target]


def _forest_of_numbers() -> RandomForestRegressor:
    return RandomForestRegressor(100, min_samples_leaf=5, random_state=0)


def _forest() -> RandomForestClassifier:
    return RandomForestClassifier(100, min_samples_leaf=5, random_state=0)


def _light() -> LGBMRegressor:
    return LGBMRegressor(n_estimators=100, verbose=-1, n_jobs=1, random_state=0)


def _boosting() -> HistGradientBoostingClassifier:
    return HistGradientBoostingClassifier(max_iter=50, random_state=0)


def _network_of_numbers() -> Any:  # noqa: ANN401
    network = MLPRegressor(hidden_layer_sizes=(32,), max_iter=2_000, alpha=1.0, random_state=0)
    return make_pipeline(StandardScaler(), network)


def _network() -> Any:  # noqa: ANN401
    return make_pipeline(StandardScaler(), MLPClassifier(max_iter=1_000, random_state=0))


def _logistic() -> Any:  # noqa: ANN401
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1_000))


def _one_hot_logistic() -> Any:  # noqa: ANN401
    classes = (OneHotEncoder(), make_column_selector(dtype_include="category"))
    encoded = make_column_transformer(classes, remainder=StandardScaler())
    return make_pipeline(encoded, LogisticRegression(max_iter=1_000))


def _of(load: Callable[..., Any]) -> Callable[[], Rows]:
    return functools.partial(load, return_X_y=True, as_frame=True)


_MADE: dict[str, tuple[Callable[[], Rows], Callable[[], Any]]] = {
    "linear-Gaussian 19, forest": (linear_gaussian, _forest_of_numbers),
    "linear-Gaussian 49, forest": (
        functools.partial(linear_gaussian, "dag_m(3)"),
        _forest_of_numbers,
    ),
    "non-linear 10, LightGBM": (functools.partial(non_linear, 10), _light),
    "non-linear 20, LightGBM": (functools.partial(non_linear, 20), _light),
    "non-linear 50, LightGBM": (functools.partial(non_linear, 50), _light),
    "diabetes, forest": (_of(load_diabetes), _forest_of_numbers),
    "diabetes, network": (_of(load_diabetes), _network_of_numbers),
    "wine, network": (_of(load_wine), _network),
    "wine, boosting": (_of(load_wine), _boosting),
    "breast cancer, forest": (_of(load_breast_cancer), _forest),
    "breast cancer, boosting": (_of(load_breast_cancer), _boosting),
    "mixed one-hot, logistic": (mixed_rows, _one_hot_logistic),
    "digits, logistic": (_of(load_digits), _logistic),
}
NAMES = tuple(_MADE)
"""The names of the workloads."""


def make(name: str) -> Workload:
    """Return a workload: 60 % of the rows train the model, the others evaluate it."""
    load, create = _MADE[name]
    X, y = load()
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.4, random_state=0)
    return Workload(name, create().fit(X_train, y_train), X_train, y_train, X_test, y_test)
