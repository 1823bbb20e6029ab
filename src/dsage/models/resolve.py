"""The model and its loss, asked once before anything is learned."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import pandas as pd

from dsage._check import warn
from dsage.data.columns import shown, sorted_positions
from dsage.data.inputs import Inputs
from dsage.data.targets import Array, are_numbers, codes
from dsage.models.losses import Loss, as_loss, choose_loss
from dsage.models.model import Model, as_model


class LossSource(StrEnum):
    """How the loss was chosen."""

    GIVEN = "given"
    CHOSEN = "chosen"


@dataclass(frozen=True)
class ModelInfo:
    """The model of a run."""

    name: str
    type_name: str
    steps: tuple[str, ...]
    classes: tuple[str | int | float | bool, ...] | None
    packages: tuple[str, ...]


def find_model(
    model: Any,  # noqa: ANN401
    loss: str | Callable[..., Any] | Loss,
    classes: Sequence[Any] | Array | None,
    inputs: Inputs,
) -> tuple[Loss, Model]:
    """Return the loss and the model, once it was asked for some rows, and knows all targets.

    Parameters
    ----------
    model : estimator, callable or Model
        The model.
    loss : str, callable or Loss
        The loss, or ``"auto"``.
    classes : sequence or None
        The classes of a model that does not know them; by default the labels of all rows, sorted.
    inputs : Inputs
        The rows.
    """
    chosen = choose_loss(model, inputs.y_test) if loss == "auto" else as_loss(loss)
    checked = as_model(model, chosen, classes=classes)
    is_labelled = chosen.output == "probability" and inputs.y_train.ndim == 1
    if is_labelled and checked.classes is None and not isinstance(model, Model):
        labels = _labels(inputs)
        checked = as_model(model, chosen, classes=labels)
        if not are_numbers(np.asarray(labels)):
            warn(
                f"{checked.name} does not tell its classes: the columns of its probabilities are "
                f"taken to be {shown(labels)}, in this order. Name them with classes=."
            )
    if is_labelled and checked.classes is not None:
        for name, y in (("y_train", inputs.y_train), ("y_test", inputs.y_test)):
            _check_labels(name, y, checked)
    predicted = checked.predict(inputs.first_rows())
    chosen.target_for(predicted, inputs.y_test[: len(predicted)], checked.classes)
    return chosen, checked


def _labels(inputs: Inputs) -> list[Any]:
    """Return the labels of all rows, sorted."""
    found = list(pd.unique(pd.concat([pd.Series(inputs.y_train), pd.Series(inputs.y_test)])))
    return [found[position] for position in sorted_positions(found)]


def _check_labels(name: str, y: Array, model: Model) -> None:
    """Say in which argument there is a label that the model does not know."""
    try:
        codes(y, model.classes, None)
    except ValueError as error:
        error.add_note(f"This is about {name}.")
        raise
