"""The loss that suits a model."""

from __future__ import annotations

import contextlib
from typing import Any

from sklearn.base import is_classifier, is_regressor

from dsage._check import Setting, Text, refusal
from dsage.data.targets import are_numbers, values
from dsage.models.boosters import as_booster
from dsage.models.losses.base import Loss
from dsage.models.losses.find import as_loss
from dsage.models.torch_module import ends_in
from dsage.models.torch_tools import is_module

_WRAP = "Wrap it in sklearn.calibration.CalibratedClassifierCV, or choose "
CALIBRATE = Text([_WRAP, Setting("loss", "zero_one")])
"""Advice for classifiers without probabilities."""


def gives_classes(model: object) -> bool:
    """Return whether a model is a classifier, by scikit-learn's tags or by its `predict_proba`.

    A native booster is a classifier if its objective is one of classes. A PyTorch module never is:
    it is called like a function, whatever methods it has.
    """
    if is_module(model):
        return False
    model = as_booster(model)
    kind = _estimator_kind(model)
    return kind == "classifier" if kind else hasattr(model, "predict_proba")


def choose_loss(model: object, y: Any = None) -> Loss:  # noqa: ANN401
    """Return the loss that suits a model: cross entropy for classes, squared error for numbers.

    A model predicts classes if it is a classifier, a function and the target is not numeric, or a
    PyTorch module whose last layer is ``Softmax``, or ``Sigmoid`` with a target of two values. A
    regressor predicts numbers, whatever the target is.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression, LogisticRegression
    >>> choose_loss(LinearRegression()).name, choose_loss(LogisticRegression()).name
    ('squared_error', 'cross_entropy')
    """
    model = as_booster(model)
    if gives_classes(model):
        if not hasattr(model, "predict_proba"):
            condition = "a classifier with predict_proba if no loss is given"
            raise refusal("model", condition, type(model).__name__, CALIBRATE, TypeError)
        return as_loss("cross_entropy")
    if _estimator_kind(model) == "regressor":
        return as_loss("squared_error")
    last = ends_in(model)
    is_binary = last == "Sigmoid" and y is not None and len(set(values(y).ravel().tolist())) == 2
    if last == "Softmax" or is_binary or not (y is None or are_numbers(values(y))):
        return as_loss("cross_entropy")
    return as_loss("squared_error")


def _estimator_kind(model: object) -> str:
    """Return ``"classifier"`` or ``"regressor"`` from scikit-learn's tags, or an empty string."""
    kind: str = getattr(model, "_estimator_type", None) or ""
    if hasattr(model, "__sklearn_tags__"):
        # A mixin without scikit-learn's base class has no tags to extend.
        with contextlib.suppress(AttributeError):
            kind = "classifier" if is_classifier(model) else "regressor" * is_regressor(model)
    return kind
