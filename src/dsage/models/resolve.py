"""The model and its loss, resolved once before anything is learned."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dsage._check import Setting, Text, shown, warn
from dsage.data.categories import sort_labels
from dsage.data.inputs import Inputs, name_argument
from dsage.data.targets import Array, Floats, are_numbers, codes
from dsage.models.adapt import adapt
from dsage.models.calling import N_ASKED, check_predicts, name_model
from dsage.models.fitted_loss import find_fitted_loss, note_of
from dsage.models.losses import Loss, as_loss
from dsage.models.losses.choose import LossReason, decide_loss
from dsage.models.model import Model, as_model

Label = str | int | float | bool

# Rows that are predicted before anything is learned, and the largest difference of two predictions
# of the same rows, as a share of the largest: devices round differently.
_N_ROWS = 16
_SAME = 1e-4


class LossSource(StrEnum):
    """How the loss of a run was chosen."""

    GIVEN = "given"
    CHOSEN = "chosen"


@dataclass(frozen=True)
class ModelInfo:
    """The model of a run, for its record.

    Attributes
    ----------
    name : str
        The class of the model, or the name of the function.
    type_name : str
        The type of the object that the user passed, with its module.
    steps : tuple of str
        The classes of the steps of a pipeline; empty for other models.
    classes : tuple or None
        The class labels; None for models of numbers.
    packages : tuple of str
        The packages that define the model and its steps.
    """

    name: str
    type_name: str
    steps: tuple[str, ...]
    classes: tuple[Label, ...] | None
    packages: tuple[str, ...]


class ResolvedModel(NamedTuple):
    """A loss, how it was chosen, a model that predicts what it needs, and a record of the model."""

    loss: Loss
    loss_source: LossSource
    model: Model
    info: ModelInfo
    loss_reason: LossReason | None = None


def find_model(
    model: Any,  # noqa: ANN401
    loss: str | Callable[..., Any] | Loss,
    classes: Sequence[Any] | Array | None,
    inputs: Inputs,
) -> ResolvedModel:
    """Return the loss and the model, after predicting some rows and checking all targets.

    `classes` of a model that does not know them are by default the sorted labels of all rows.
    """
    if not isinstance(model, Model):
        check_predicts(adapt(model))
    resolved, source, reason = _find_loss(model, loss, classes, inputs)
    if inputs.y_train.ndim == 1:
        resolved = resolved.fitted_to(inputs.y_train)
    checked = as_model(model, resolved, classes=classes)
    has_labels = resolved.is_of_classes and inputs.y_train.ndim == 1
    are_assumed = has_labels and checked.classes is None and not isinstance(model, Model)
    if are_assumed:
        labels = sort_labels(_labels(inputs).unique().tolist())
        checked = as_model(model, resolved, classes=labels)
    if has_labels and checked.classes is not None:
        for name, y in (("y_train", inputs.y_train), (inputs.named[1], inputs.y_test)):
            with name_argument(name):
                codes(y, checked.classes, None)
    predicted = _predict_again(checked, inputs)
    if are_assumed and not checked.has_voted:
        _warn_of_order(checked)
    resolved.target_for(predicted, inputs.y_test[: len(predicted)], checked.classes)
    info = _describe_model(model, checked)
    return ResolvedModel(resolved, source, checked, info, reason)


def _warn_of_order(model: Model) -> None:
    """Warn of the assumed order of classes, unless they are numbers or booleans."""
    if model.classes is None or model.classes.dtype.kind == "b" or are_numbers(model.classes):
        return
    text = (
        f"{model.name} does not store its classes: the columns of its probabilities are "
        f"assumed to be {shown(model.classes.tolist())}, in this order. "
        "If they are not, name them with "
    )
    warn(Text([text, Setting("classes"), "."]))


def _labels(inputs: Inputs) -> pd.Series[Any]:
    """Return the targets of all rows."""
    return pd.concat([pd.Series(inputs.y_train), pd.Series(inputs.y_test)])


def _find_loss(
    model: Any,  # noqa: ANN401
    loss: str | Callable[..., Any] | Loss,
    classes: Sequence[Any] | Array | None,
    inputs: Inputs,
) -> tuple[Loss, LossSource, LossReason | None]:
    """Return the loss, and how and why it was chosen."""
    if not (isinstance(loss, str) and loss == "auto"):
        return as_loss(loss), LossSource.GIVEN, None
    if isinstance(model, Model):
        return model.loss, LossSource.GIVEN, None
    y = _labels(inputs).to_numpy() if inputs.y_train.ndim == 1 else inputs.y_test
    found, reason = decide_loss(model, y, inputs.some_rows(N_ASKED))
    if classes is not None and reason is LossReason.NUMBERS:
        found, reason = as_loss("cross_entropy"), LossReason.CLASSES
    name = name_model(adapt(model))
    if reason is LossReason.LABELS:
        text = (
            f"{name} returns classes, not their probabilities, so the error rate is "
            "explained, with "
        )
        ending = ". If these are numbers, choose another loss; for cross entropy, return"
        warn(Text([text, Setting("loss", found.name), ending, " probabilities."]))
    fitted = find_fitted_loss(adapt(model)) if reason is LossReason.REGRESSOR else None
    if fitted is not None:
        warn(note_of(name, fitted))
    return found, LossSource.CHOSEN, reason


def _predict_again(model: Model, inputs: Inputs) -> Floats:
    """Return the predictions of the first rows; warn if the model does not repeat them.

    Half of the rows are predicted again, on their own: the predictions must be the same.
    """
    rows, half = (inputs.first_rows(n_rows) for n_rows in (_N_ROWS, _N_ROWS // 2))
    predicted, again = model.predict(rows), model.predict(half)
    first = predicted[: len(again)]
    if again.shape != first.shape:
        return predicted
    change = float(np.abs(again - first).max())
    if change <= _SAME * max(float(np.abs(predicted).max()), np.finfo(np.float64).tiny):
        return predicted
    is_random = not np.array_equal(model.predict(rows), predicted)
    reason, remedy = (
        ("predicts at random", "Fix its random state, or average its predictions")
        if is_random
        else ("depends on the other rows", "Do not compute means or scales of the rows it receives")
    )
    warn(
        f"{model.name} {reason}: its predictions of the same rows differ by up to {change:.3g}. The"
        f" values are meaningless unless this difference is small, and runs are not"
        f" reproducible. {remedy}."
    )
    return predicted


def _describe_model(given: object, model: Model) -> ModelInfo:
    steps = getattr(given, "steps", None)
    parts = [step for _, step in steps] if isinstance(steps, list) else []
    kind = type(given)
    packages = dict.fromkeys(type(part).__module__.partition(".")[0] for part in (given, *parts))
    return ModelInfo(
        name=model.name,
        type_name=f"{kind.__module__}.{kind.__qualname__}",
        steps=tuple(type(part).__name__ for part in parts),
        classes=None if model.classes is None else tuple(map(_to_label, model.classes.tolist())),
        packages=tuple(packages),
    )


def _to_label(label: object) -> Label:
    return label if isinstance(label, (str, int, float, bool)) else str(label)
