"""Models that are refitted without a feature, and the losses of their predictions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from dsage._check import Setting, Text, refusal
from dsage.data.frames import Frame
from dsage.data.inputs import Inputs
from dsage.games.base import Floats
from dsage.games.loss import LossGame
from dsage.models.model import as_model
from dsage.workflows.measures.averages import Average, Tally

Refit = Callable[[Any, Any], Any]
"""Fits a model to rows and targets, and returns it."""

_PASS = "Pass a function (X, y) -> fitted model with "


def as_refit(model: Any, refit: Any) -> Refit:  # noqa: ANN401
    """Return a function that fits the model again: the given one, or a clone of the model."""
    if refit is not None:
        if not callable(refit):
            advice = "Pass a function (X, y) -> fitted model"
            raise refusal("refit", "a function", refit, advice, TypeError)
        given: Refit = refit
        return given
    if not (hasattr(model, "fit") and hasattr(model, "get_params")):
        remedy = Text([_PASS, Setting("refit"), ", or leave 'loco' out of the measures"])
        condition, found = "an estimator that can be cloned, for LOCO", type(model).__name__
        raise refusal("model", condition, found, remedy, TypeError)
    return lambda X, y: clone(model).fit(X, y)


def leave_out(
    game: LossGame,
    inputs: Inputs,
    members: Mapping[str, Sequence[str]],
    refit: Refit,
    classes: Any = None,  # noqa: ANN401
) -> Average:
    """Return the increase of the loss of a model that is fitted without a player, for each player.

    The error is from the choice of the evaluation rows, for these fitted models.

    Parameters
    ----------
    game : LossGame
        The game of the model with all features.
    inputs : Inputs
        The rows.
    members : mapping of str to sequences of str
        The features of each player.
    refit : callable
        Fits a model to rows and targets.
    classes : sequence, optional
        The classes, for models that do not store them.
    """
    if len(members) < 2:
        advice = "A model without any feature cannot be fitted: leave 'loco' out of the measures"
        raise refusal("X_train", "of two features or groups for LOCO", list(members), advice)
    full = game.plain_losses(game.predictions[None], np.arange(game.n_rows))[0]
    lost = []
    for name, left_out in members.items():
        kept = [feature for feature in inputs.names if feature not in left_out]
        try:
            fitted = refit(Frame(inputs.X_train).select(kept), inputs.y_train)
            lost.append(_losses(game, fitted, Frame(inputs.X_test).select(kept), classes) - full)
        except Exception as error:
            error.add_note(
                f"This happened when fitting the model without {name!r}, for LOCO. If it needs all"
                " columns, pass refit=, a function (X, y) -> fitted model that can do without some."
            )
            raise
    return Tally(len(lost), game.n_rows).add(np.stack(lost)[:, :, None]).average(game.weights)


def _losses(game: LossGame, fitted: Any, X: Any, classes: Any) -> Floats:  # noqa: ANN401
    """Return the weighted losses of all rows for another model."""
    knows = hasattr(fitted, "classes_") or not game.loss.is_of_classes
    model = as_model(fitted, game.loss, classes=None if knows else classes)
    predicted = model.predict(X)
    losses: Floats = game.plain_losses(predicted[None], np.arange(game.n_rows))[0]
    return losses
