"""Affine models: known types, and the map itself, found and verified by a probe.

For ``f(x) = a + w'x`` the mean of predictions is the prediction at the mean, so no draws are
needed. Predictions alone never prove that a model is affine: its type must be known to be affine,
or the user must declare it, and then the predictions have to agree.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dsage._check import refusal
from dsage._random import Streams
from dsage.data.layout import Layout
from dsage.models.calling import sklearn_name
from dsage.models.statsmodels_results import ResultsOfNumbers

Floats = npt.NDArray[np.float64]

# Classes of scikit-learn by name, so that none has to be imported.
# fmt: off
_REGRESSORS = frozenset((
    "ARDRegression", "BayesianRidge", "DummyRegressor", "ElasticNet", "ElasticNetCV",
    "HuberRegressor", "Lars", "LarsCV", "Lasso", "LassoCV", "LassoLars", "LassoLarsCV",
    "LassoLarsIC", "LinearRegression", "LinearSVR", "MultiTaskElasticNet",
    "MultiTaskElasticNetCV", "MultiTaskLasso", "MultiTaskLassoCV", "OrthogonalMatchingPursuit",
    "OrthogonalMatchingPursuitCV", "PassiveAggressiveRegressor", "PLSRegression",
    "QuantileRegressor", "Ridge", "RidgeCV", "SGDRegressor", "TheilSenRegressor",
))
_TRANSFORMERS = frozenset((
    "MaxAbsScaler", "MinMaxScaler", "PCA", "RFE", "RFECV", "RobustScaler", "SelectFdr",
    "SelectFpr", "SelectFromModel", "SelectFwe", "SelectKBest", "SelectPercentile",
    "StandardScaler", "TruncatedSVD", "VarianceThreshold",
))
# fmt: on
# These predict with the model in this attribute.
_DELEGATES = {
    "GridSearchCV": "best_estimator_",
    "HalvingGridSearchCV": "best_estimator_",
    "HalvingRandomSearchCV": "best_estimator_",
    "RandomizedSearchCV": "best_estimator_",
    "RANSACRegressor": "estimator_",
}

_N_CHECKED = 64


@dataclass(frozen=True)
class Affine:
    """The map ``intercept + matrix @ weights`` on the encoded matrix of a layout."""

    intercept: Floats  # (n_outputs,)
    weights: Floats  # (n_features, n_outputs)

    def predict(self, matrix: Floats) -> Floats:
        """Return predictions (n_rows,), or (n_rows, n_outputs) if there are several outputs."""
        # In a matrix product, the rounding of a row would depend on the other rows.
        rows = np.ascontiguousarray(matrix)
        predicted: Floats = self.intercept + np.einsum("nf,fk->nk", rows, self.weights)
        return predicted[:, 0] if predicted.shape[1] == 1 else predicted


def best_of(model: Any) -> Any:  # noqa: ANN401
    """Return the model with which a search predicts; any other model unchanged."""
    name = sklearn_name(model)
    return getattr(model, _DELEGATES[name], None) if name in _DELEGATES else model


def is_affine_type(model: object) -> bool:
    """Return whether a fitted model is of a type that predicts an affine function of its columns.

    These are linear regressions of scikit-learn, and its pipelines of scalers, projections and
    selections of columns that end in one. Types are compared exactly: a subclass may predict
    differently, and so may an object whose `predict` was replaced. Linear models of statsmodels are
    affine, too, unless their formula has functions or classes in it.
    """
    if isinstance(model, ResultsOfNumbers):
        return model.is_affine
    name = sklearn_name(model)
    if name in _REGRESSORS:
        return True
    if name in ("SVR", "NuSVR"):
        return bool(vars(model).get("kernel") == "linear")
    if name in _DELEGATES:
        return is_affine_type(best_of(model))
    if name == "Pipeline":
        steps = [step for _, step in model.steps]  # type: ignore[attr-defined]
        return all(map(is_affine_transformer, steps[:-1])) and is_affine_type(steps[-1])
    return False


def is_affine_transformer(transformer: Any) -> bool:  # noqa: ANN401
    """Return whether a step of a pipeline is affine in its columns."""
    if transformer is None or isinstance(transformer, str):
        return transformer in (None, "passthrough", "drop")
    name = sklearn_name(transformer)
    if name in _TRANSFORMERS:
        return not getattr(transformer, "clip", False)
    if name == "FunctionTransformer":
        return transformer.func is None
    if name == "SimpleImputer":  # affine where nothing is missing, as in the probe
        value = transformer.missing_values
        return isinstance(value, float) and np.isnan(value)
    if name == "ColumnTransformer":
        parts = getattr(transformer, "transformers_", [(None, "unfitted", None)])
        return all(is_affine_transformer(part) for _, part, _ in parts)
    if name == "FeatureUnion":
        return all(is_affine_transformer(part) for _, part in transformer.transformer_list)
    if name == "Pipeline":
        return all(is_affine_transformer(step) for _, step in transformer.steps)
    return False


def column_precision(layout: Layout) -> npt.NDArray[np.intp]:
    """Return the precision of each column: 2 for double, 1 for single, 0 for anything else.

    No model is affine in a column of precision 0: classes are codes, and draws of integers are
    rounded before the model sees them.
    """
    probes = np.where(layout.n_categories == 0, 1.0 + 2.0 ** np.array([[-20], [-50]]), 0.0)
    is_kept = (_round_trip(layout, probes) == probes) & (layout.n_categories == 0)
    precision: npt.NDArray[np.intp] = is_kept.sum(axis=0)
    return precision


def _round_trip(layout: Layout, matrix: Floats) -> Floats:
    """Return a matrix in the precision of the columns, as the model sees it."""
    return layout.encode(layout.decode(matrix))


def probe(
    predict: Callable[[Any], Floats],
    layout: Layout,
    X: Any,  # noqa: ANN401
    *,
    single: bool = False,
) -> tuple[Affine, float]:
    """Find the affine map of a model from d + 1 predictions, and compare it with further ones.

    The map is determined by the predictions at the mean of the rows and at one standard deviation
    from it in each feature. It is compared at 64 rows, at 64 rows that mix features of different
    rows, and at 64 points ten standard deviations away.

    The error returned with the map is the largest distance of a prediction from it, relative to
    the tolerance: rounding, and 1e-8 of the largest change of the prediction. With `single`, some
    columns are in single precision: points are rounded as for the model, and 1e-8 becomes 1e-5.
    """
    matrix = layout.encode(X)
    n_rows, n_features = matrix.shape
    if not n_rows:
        raise refusal("X", "of at least one row", matrix.shape, "The probe starts from its rows")
    center = matrix.mean(axis=0)
    spread = matrix.std(axis=0)
    # The mean of equal numbers is rounded, so a constant column may have a tiny deviation.
    varies = spread > (1e-5 if single else 1e-12) * np.abs(center)
    step = np.where(varies, spread, np.maximum(1.0, np.abs(center)))
    points = np.vstack((center, center + np.diag(step)))
    points = _round_trip(layout, points) if single else points
    predicted = _columns(predict(layout.decode(points)))
    weights = np.linalg.solve(points[1:] - points[0], predicted[1:] - predicted[0])
    affine = Affine(predicted[0] - points[0] @ weights, weights)

    random = Streams(0)("affine probe")
    rows = matrix[random.integers(n_rows, size=_N_CHECKED)]
    mixed = matrix[random.integers(n_rows, size=(_N_CHECKED, n_features)), np.arange(n_features)]
    far = center + step * random.normal(scale=10.0, size=(_N_CHECKED, n_features))
    checked = np.vstack((rows, mixed, far))
    checked = _round_trip(layout, checked) if single else checked
    found = _columns(predict(layout.decode(checked)))

    share, epsilon = (1e-5, 2.0**-23) if single else (1e-8, 2.0**-52)
    size = (np.abs(checked) @ np.abs(weights)).max(axis=0) + np.abs(found).max(axis=0)
    moved = np.abs(found - predicted[0]).max(axis=0)
    allowed = share * moved + 64 * epsilon * size + np.finfo(np.float64).tiny
    missed = np.abs(found - (affine.intercept + checked @ weights)).max(axis=0)
    return affine, float((missed / allowed).max())


def _columns(predicted: Floats) -> Floats:
    return predicted[:, None] if predicted.ndim == 1 else predicted
