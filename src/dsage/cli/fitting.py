"""Models that the command line fits by itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from dsage._check import check_member, refusal

FITS = {
    "lm": "a linear regression",
    "rf": "a random forest",
    "hgb": "boosted trees",
    "logistic": "a logistic regression",
}
"""The models by name."""

# Leaves of single rows make for probabilities of 0 and 1, which cross entropy punishes without end.
_FEWEST_IN_LEAF = 5


def make_model(fit: str, classes: Sequence[str], *, is_of_classes: bool, seed: int) -> Any:  # noqa: ANN401
    """Return a model to be fitted: encoders of the classes, scalers of the numbers, an estimator.

    Parameters
    ----------
    fit : {"lm", "rf", "hgb", "logistic"}
        Which.
    classes : sequence of str
        The columns that are classes.
    is_of_classes : bool
        Whether the target is.
    seed : int
        Of the model.

    Examples
    --------
    >>> make_model("lm", [], is_of_classes=False, seed=0).steps[0][0]
    'standardscaler'
    """
    check_member(fit, tuple(FITS), "--fit", "the models")
    if fit == "lm" and is_of_classes:
        advice = "Choose --fit logistic, rf or hgb"
        raise refusal("--fit", "a model of classes for such a target", fit, advice)
    columns = list(classes)
    one_hot = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    if fit in ("lm", "logistic"):
        linear = LinearRegression() if fit == "lm" else LogisticRegression(max_iter=1000)
        # Without classes the scaler alone, which is known to be affine: no draws are needed then.
        first = (
            make_column_transformer((one_hot, columns), remainder=StandardScaler())
            if columns
            else StandardScaler()
        )
        return make_pipeline(first, linear)
    if fit == "rf":
        kind = RandomForestClassifier if is_of_classes else RandomForestRegressor
        forest = kind(100, min_samples_leaf=_FEWEST_IN_LEAF, random_state=seed)
        if not columns:
            return forest
        return make_pipeline(
            make_column_transformer((one_hot, columns), remainder="passthrough"), forest
        )
    boosted = HistGradientBoostingClassifier if is_of_classes else HistGradientBoostingRegressor
    if not columns:
        return boosted(random_state=seed)
    codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    return make_pipeline(
        make_column_transformer((codes, columns), remainder="passthrough"),
        boosted(categorical_features=list(range(len(columns))), random_state=seed),
    )


def aligned(model: Any, X: pd.DataFrame) -> pd.DataFrame:  # noqa: ANN401
    """Return the columns in the order that a model of scikit-learn was fitted with, if it tells.

    Examples
    --------
    >>> X = pd.DataFrame({"a": [0.0, 1.0], "b": [1.0, 1.0]})
    >>> aligned(LinearRegression().fit(X, [1.0, 2.0]), X[["b", "a"]]).columns.tolist()
    ['a', 'b']
    """
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        n_wanted = getattr(model, "n_features_in_", None)
        if isinstance(n_wanted, int) and n_wanted != X.shape[1]:
            advice = "Leave columns out with --drop, or give the data that the model was fitted to"
            raise refusal("the features", f"{n_wanted}, as the model has", X.shape[1], advice)
        return X
    absent = [str(name) for name in names if name not in X.columns]
    spare = [str(name) for name in X.columns if name not in set(names)]
    if absent or spare:
        advice = f"These are missing: {', '.join(map(repr, absent))}"
        if not absent:
            leave_out = " ".join(f"--drop {name!r}" for name in spare)
            advice = f"Leave out what it does not know: {leave_out}"
        raise refusal("the features", "those that the model was fitted to", list(X.columns), advice)
    return X[list(names)]
