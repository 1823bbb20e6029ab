"""Choose the loss that suits a model."""

from __future__ import annotations

import contextlib
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.base import is_classifier, is_regressor

from dsage._check import Setting, Text, refusal
from dsage.data.targets import are_numbers, are_probabilities, values
from dsage.models.adapt import adapt
from dsage.models.boosters import BoosterOfNumbers
from dsage.models.calling import call, copy_rows, name_model, prediction_function
from dsage.models.fitted_loss import find_fitted_loss
from dsage.models.losses.base import Loss
from dsage.models.losses.find import as_loss
from dsage.models.origin import file_of, names_file
from dsage.models.torch_module import ends_in
from dsage.models.torch_tools import is_module

Array = npt.NDArray[Any]

_WRAP = "Wrap it in sklearn.calibration.CalibratedClassifierCV, or choose "
CALIBRATE = Text([_WRAP, Setting("loss", "zero_one")])
"""Advice for classifiers without probabilities."""

# Whole numbers that a function returns are labels if there are at most this many distinct ones.
_MOST_LABELS = 20


class LossReason(StrEnum):
    """Why a loss was chosen."""

    CLASSIFIER = "classifier"
    REGRESSOR = "regressor"
    OBJECTIVE = "objective"
    LAST_LAYER = "last layer"
    PROBABILITIES = "probabilities"
    LABELS = "labels"
    CLASSES = "classes"
    NUMBERS = "numbers"


class ChosenLoss(NamedTuple):
    """A loss, and why it was chosen."""

    loss: Loss
    reason: LossReason


@names_file
def gives_classes(model: object) -> bool:
    """Return whether a model is a classifier, by scikit-learn's tags or by its `predict_proba`.

    A native booster is a classifier if its objective is one of classes, and a result of statsmodels
    if it predicts probabilities. A PyTorch module never is: it is called like a function, whatever
    methods it has.
    """
    if is_module(model):
        return False
    model = adapt(model)
    kind = _estimator_kind(model)
    return kind == "classifier" if kind else hasattr(model, "predict_proba")


def choose_loss(model: object, y: Any = None, X: Any = None) -> Loss:  # noqa: ANN401
    """Return the loss that suits a model: cross entropy for classes, squared error for numbers.

    For a regressor that stores the loss that it was fitted with, such as
    ``HistGradientBoostingRegressor(loss="poisson")``, it is that loss.

    A model predicts classes if it is a classifier, a function and the target is not numeric, or a
    PyTorch module whose last layer is ``Softmax``, or ``Sigmoid`` with a target of two values. A
    regressor predicts numbers, whatever the target is.

    If `X` is passed, the output of a function decides: the loss is cross entropy for probabilities
    (rows that sum to one; or numbers in [0, 1] if the target is 0 or 1), and ``"zero_one"`` for
    labels (texts or booleans; or whole numbers, if the target has these labels).

    Parameters
    ----------
    model : estimator, callable, torch.nn.Module or booster
        The model.
    y : array of n_rows, optional
        The target.
    X : data frame or array of n_rows, optional
        Rows that a function predicts, to see what it returns.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression, LogisticRegression
    >>> choose_loss(LinearRegression()).name, choose_loss(LogisticRegression()).name
    ('squared_error', 'cross_entropy')
    >>> X, y = np.array([[0.1], [0.8]]), np.array([0, 1])
    >>> choose_loss(lambda X: X[:, 0], y, X).name, choose_loss(lambda X: X[:, 0] > 0.5, y, X).name
    ('cross_entropy', 'zero_one')
    """
    return decide_loss(model, y, X).loss


@names_file
def decide_loss(model: object, y: Any = None, X: Any = None) -> ChosenLoss:  # noqa: ANN401
    """Return the loss that suits a model, and why; see :func:`choose_loss`."""
    model = adapt(model)
    if gives_classes(model):
        if not hasattr(model, "predict_proba"):
            condition = "a classifier with predict_proba if no loss is given"
            raise refusal("model", condition, type(model).__name__, CALIBRATE, TypeError)
        return _find("cross_entropy", LossReason.CLASSIFIER)
    is_of_numbers = _estimator_kind(model) == "regressor"
    if is_of_numbers or isinstance(model, BoosterOfNumbers):
        fitted = find_fitted_loss(model)
        if fitted is not None and fitted.name is not None:
            return _find(fitted.name, LossReason.OBJECTIVE)
    if is_of_numbers:
        return _find("squared_error", LossReason.REGRESSOR)
    last = ends_in(model)
    is_binary = last == "Sigmoid" and y is not None and len(set(values(y).ravel().tolist())) == 2
    if last == "Softmax" or is_binary:
        return _find("cross_entropy", LossReason.LAST_LAYER)
    if y is not None and X is not None and not last:
        raw = call(prediction_function(model), name_model(model), copy_rows(X), file_of(model))
        return _by_output(as_column(np.asarray(raw)), values(y))
    return _by_target(None if y is None else values(y))


def _by_output(output: Array, target: Array) -> ChosenLoss:
    """Return the loss that suits the output of a function."""
    if output.dtype.kind in "USb" or (output.dtype.kind == "O" and not are_numbers(output)):
        return _find("zero_one", LossReason.LABELS)
    if target.ndim == 2 or output.size == 0 or output.ndim not in (1, 2):
        return _by_target(target)
    if output.ndim == 2:
        if are_probabilities(output.astype(np.float64)):
            return _find("cross_entropy", LossReason.PROBABILITIES)
        return _by_target(target)
    labels = pd.unique(pd.Series(target)).tolist()
    if set(labels) <= {0, 1} and ((output >= 0) & (output <= 1)).all():
        if np.isin(output, (0, 1)).all():
            return _find("zero_one", LossReason.LABELS)
        return _find("cross_entropy", LossReason.PROBABILITIES)
    are_whole = output.dtype.kind in "iu" and target.dtype.kind in "iu"
    if are_whole and len(labels) <= _MOST_LABELS and np.isin(output, labels).all():
        return _find("zero_one", LossReason.LABELS)
    return _by_target(target)


def _by_target(target: Array | None) -> ChosenLoss:
    if target is None or are_numbers(target):
        return _find("squared_error", LossReason.NUMBERS)
    return _find("cross_entropy", LossReason.CLASSES)


def _find(name: str, reason: LossReason) -> ChosenLoss:
    return ChosenLoss(as_loss(name), reason)


def as_column(output: Array) -> Array:
    """Return an output (n_rows, 1), as CatBoost predicts classes, as (n_rows,)."""
    return output[:, 0] if output.ndim == 2 and output.shape[1] == 1 else output


def _estimator_kind(model: object) -> str:
    """Return ``"classifier"`` or ``"regressor"`` from scikit-learn's tags, or an empty string."""
    kind: str = getattr(model, "_estimator_type", None) or ""
    if hasattr(model, "__sklearn_tags__"):
        # A mixin without scikit-learn's base class has no tags to extend.
        with contextlib.suppress(AttributeError):
            kind = "classifier" if is_classifier(model) else "regressor" * is_regressor(model)
    return kind
