"""The problems of the race: tables and models, conditional and marginal."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from lightgbm import LGBMRegressor
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.race.ground import Floats, Problem
from benchmarks.structure_problems import additive, choose_target
from dsage.datasets import load_penguins, paper_graph
from dsage.graphs import random_dag, random_linear_gaussian

Rows = tuple[Floats, Any]

# Rows on which models are evaluated, and rows of the marginal law.
_N_TEST, _N_BACKGROUND = 300, 128


def linear_gaussian(graph: str, n_rows: int = 4_000) -> Rows:
    """Return rows of one of the paper's graphs."""
    law = paper_graph(graph)
    data = law.sample(n_rows, random_state=0)
    return data.drop(columns=law.target).to_numpy(), data[law.target].to_numpy()


def wide(n_features: int) -> Rows:
    """Return rows of a random linear-Gaussian graph."""
    graph = random_dag(n_features + 1, 3, random_state=n_features)
    target = choose_target(graph, n_features)
    data = random_linear_gaussian(graph, random_state=0).sample(4_000, random_state=0)
    return data.drop(columns=target).to_numpy(), data[target].to_numpy()


def non_linear(n_features: int) -> Rows:
    """Return rows of a random graph whose effects are additive and not monotone."""
    graph = random_dag(n_features + 1, 3, random_state=n_features)
    target = choose_target(graph, n_features)
    data = additive(graph, 4_000, n_features)
    return data.drop(columns=target).to_numpy(), data[target].to_numpy()


def penguins() -> Rows:
    """Return the penguins: numbers with missing values, and classes as codes."""
    data = load_penguins().dropna(subset=["body_mass_g"])
    X = data.drop(columns="body_mass_g")
    coded = X.apply(
        lambda c: c if pd.api.types.is_numeric_dtype(c) else c.astype("category").cat.codes
    )
    matrix = coded.to_numpy(dtype=np.float64)
    classes = [not pd.api.types.is_numeric_dtype(X[name]) for name in X]
    matrix[:, classes] = np.where(matrix[:, classes] < 0, np.nan, matrix[:, classes])
    return matrix, data["body_mass_g"].to_numpy(dtype=np.float64)


def _of(load: Callable[..., Any]) -> Callable[[], Rows]:
    return functools.partial(load, return_X_y=True)


def _forest() -> Any:  # noqa: ANN401
    return RandomForestRegressor(100, min_samples_leaf=5, random_state=0)


def _forest_of_classes() -> Any:  # noqa: ANN401
    return RandomForestClassifier(100, min_samples_leaf=5, random_state=0)


def _light() -> Any:  # noqa: ANN401
    return LGBMRegressor(n_estimators=100, verbose=-1, n_jobs=1, random_state=0)


def _boosting() -> Any:  # noqa: ANN401
    return HistGradientBoostingRegressor(max_iter=50, random_state=0)


def _boosting_of_classes() -> Any:  # noqa: ANN401
    return HistGradientBoostingClassifier(max_iter=50, random_state=0)


def _network() -> Any:  # noqa: ANN401
    network = MLPRegressor(hidden_layer_sizes=(32,), max_iter=2_000, alpha=1.0, random_state=0)
    return make_pipeline(StandardScaler(), network)


def _logistic() -> Any:  # noqa: ANN401
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1_000))


@dataclass(frozen=True)
class Recipe:
    """How a problem is made, and how many times longer than others it is raced."""

    law: str
    load: Callable[[], Rows]
    model: Callable[[], Any]
    loss: str = "mse"
    n_test: int = _N_TEST
    patience: float = 1.0


_CE = "cross entropy"
_SMALL = functools.partial(linear_gaussian, "dag_s(2)")
RECIPES: dict[str, Recipe] = {
    "linear-Gaussian 9, linear": Recipe("conditional", _SMALL, LinearRegression),
    "linear-Gaussian 9, forest": Recipe("conditional", _SMALL, _forest),
    "linear-Gaussian 19, forest": Recipe(
        "conditional", functools.partial(linear_gaussian, "dag_sm(2)"), _forest
    ),
    "non-linear 10, LightGBM": Recipe("conditional", functools.partial(non_linear, 10), _light),
    "non-linear 20, LightGBM": Recipe("conditional", functools.partial(non_linear, 20), _light),
    "diabetes, forest": Recipe("conditional", _of(load_diabetes), _forest),
    "diabetes, network": Recipe("conditional", _of(load_diabetes), _network),
    "wine, boosting": Recipe(
        "conditional", _of(load_wine), _boosting_of_classes, _CE, patience=12.0
    ),
    "breast cancer, logistic": Recipe("conditional", _of(load_breast_cancer), _logistic, _CE),
    "breast cancer, forest": Recipe(
        "conditional", _of(load_breast_cancer), _forest_of_classes, _CE
    ),
    "digits, logistic": Recipe("conditional", _of(load_digits), _logistic, _CE),
    "diabetes, forest, marginal": Recipe("marginal", _of(load_diabetes), _forest),
    "diabetes, network, marginal": Recipe("marginal", _of(load_diabetes), _network),
    "non-linear 20, LightGBM, marginal": Recipe(
        "marginal", functools.partial(non_linear, 20), _light
    ),
    "penguins, boosting, missing values, marginal": Recipe("marginal", penguins, _boosting),
    "wine, boosting, marginal": Recipe("marginal", _of(load_wine), _boosting_of_classes, _CE),
    "breast cancer, boosting, marginal": Recipe(
        "marginal", _of(load_breast_cancer), _boosting_of_classes, _CE
    ),
    "breast cancer, forest, marginal": Recipe(
        "marginal", _of(load_breast_cancer), _forest_of_classes, _CE
    ),
    "digits, logistic, marginal": Recipe("marginal", _of(load_digits), _logistic, _CE),
}
"""The problems by name."""

GROWTH: dict[str, Recipe] = {
    f"growth, {n} features": Recipe("conditional", functools.partial(wide, n), LinearRegression)
    for n in (10, 30, 100, 300, 1_000)
} | {
    f"growth, {n:,} rows": Recipe(
        "conditional",
        functools.partial(linear_gaussian, "dag_s(2)", 2 * n),
        LinearRegression,
        n_test=n,
    )
    for n in (1_000, 10_000, 100_000, 1_000_000)
}
"""Linear models of more and more features, and on more and more evaluation rows."""


def make(name: str) -> Problem:
    """Return a problem: its model is fitted to half of the rows, and evaluated on others."""
    recipe = {**RECIPES, **GROWTH}[name]
    X, y = recipe.load()
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
    model = recipe.model().fit(X_train, y_train)
    if recipe.law == "marginal":
        X_train, y_train = X_train[:_N_BACKGROUND], y_train[:_N_BACKGROUND]
    X_test, y_test = X_test[: recipe.n_test], y_test[: recipe.n_test]
    return Problem(name, recipe.law, recipe.loss, X_train, X_test, y_test, model, y_train)
