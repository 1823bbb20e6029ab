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
from dsage.data.targets import Array, are_numbers, codes
from dsage.models.losses import Loss, as_loss, choose_loss
from dsage.models.model import Model, as_model

Label = str | int | float | bool


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


def find_model(
    model: Any,  # noqa: ANN401
    loss: str | Callable[..., Any] | Loss,
    classes: Sequence[Any] | Array | None,
    inputs: Inputs,
) -> ResolvedModel:
    """Return the loss and the model, after predicting some rows and checking all targets.

    `classes` of a model that does not know them are by default the sorted labels of all rows.
    """
    is_chosen = isinstance(loss, str) and loss == "auto"
    resolved = choose_loss(model, inputs.y_test) if is_chosen else as_loss(loss)
    checked = as_model(model, resolved, classes=classes)
    has_labels = resolved.output == "probability" and inputs.y_train.ndim == 1
    if has_labels and checked.classes is None and not isinstance(model, Model):
        both = pd.concat([pd.Series(inputs.y_train), pd.Series(inputs.y_test)])
        labels = sort_labels(list(pd.unique(both)))
        checked = as_model(model, resolved, classes=labels)
        if not are_numbers(np.asarray(labels)):
            text = (
                f"{checked.name} does not store its classes: the columns of its probabilities are "
                f"taken to be {shown(labels)}, in this order. Otherwise name them with "
            )
            warn(Text([text, Setting("classes"), "."]))
    if has_labels and checked.classes is not None:
        for name, y in (("y_train", inputs.y_train), ("y_test", inputs.y_test)):
            with name_argument(name):
                codes(y, checked.classes, None)
    predicted = checked.predict(inputs.first_rows())
    resolved.target_for(predicted, inputs.y_test[: len(predicted)], checked.classes)
    source = LossSource.CHOSEN if is_chosen else LossSource.GIVEN
    return ResolvedModel(resolved, source, checked, _describe_model(model, checked))


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
