"""Explained rows: numbers, classes, dates, missing values; fast."""

from functools import cache

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

import dsage

N_ROWS = 160
QUIET = {"random_state": 0, "progress": False}
# One batch of orderings after the other, without waiting for errors.
FEW = {**QUIET, "n_orderings": 8, "n_draws": 4}


def frame(seed=0):
    """Return rows with a number that is sometimes missing, a class, a date and a flag."""
    random = np.random.default_rng(seed)
    size = random.normal(size=N_ROWS)
    size[random.random(N_ROWS) < 0.1] = np.nan
    kind = random.choice(["oak", "elm", "fir"], size=N_ROWS)
    days = pd.to_datetime("2024-01-01") + pd.to_timedelta(random.integers(0, 300, N_ROWS), "D")
    return pd.DataFrame(
        {
            "size": size,
            "kind": pd.Categorical(kind),
            "day": days,
            "flag": random.random(N_ROWS) < 0.5,
        }
    )


def target(X):
    """Return numbers that depend on all columns but the flag."""
    random = np.random.default_rng(1)
    day = (X["day"] - X["day"].min()).dt.days / 300
    return pd.Series(
        X["size"].fillna(1.0) + (X["kind"] == "oak") + day + 0.1 * random.normal(size=len(X)),
        name="height",
    )


class Numbers:
    """A model that turns dates into numbers before it predicts."""

    def __init__(self, model):
        self.model = model

    def prepare(self, X):
        """Return the columns as the inner model takes them."""
        return X.assign(day=X["day"].astype("datetime64[s]").astype("int64") / 1e9)

    def fit(self, X, y):
        """Fit the inner model."""
        self.model.fit(self.prepare(X), y)
        return self

    def __call__(self, X):
        """Return predictions."""
        return self.model.predict(self.prepare(X))


@cache
def tables():
    """Return training rows and rows to explain, with their targets."""
    X = frame()
    y = target(X)
    rows = X.iloc[100:112].set_axis([f"tree {at}" for at in range(12)], axis=0)
    return X[:100], y[:100], rows, y[100:112].set_axis(rows.index)


@cache
def regression():
    """Return a fitted regression of the table."""
    X, y, *_ = tables()
    boosted = HistGradientBoostingRegressor(
        max_iter=15, categorical_features="from_dtype", random_state=0
    )
    return Numbers(boosted).fit(X, y)


@cache
def explained():
    """Return the explanation of twelve rows of numbers, classes, dates and missing values."""
    X, y, rows, _ = tables()
    return dsage.explain_rows(regression(), X, y, rows, graph=None, sampler="mix", **FEW)


@cache
def classified():
    """Return the explanation of the three classes of a classifier."""
    X, _, rows, _ = tables()
    kept = ["size", "flag"]
    y = X["kind"].astype(str)
    model = HistGradientBoostingClassifier(max_iter=8, random_state=0).fit(X[kept], y)
    return dsage.explain_rows(
        model, X[kept], y, rows[kept], graph=None, sampler="mix", target="kind", **FEW
    )
