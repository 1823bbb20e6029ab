"""Losses of classes, computed from their probabilities."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dsage.models.losses.base import Array, Floats
from dsage.models.losses.registry import register

EPSILON = float(np.finfo(np.float64).eps)
"""Cross entropy replaces smaller probabilities by this, 2.2e-16: no loss exceeds 36.04."""


def _bend_cross_entropy(y: Array, prediction: Floats) -> tuple[Floats, Floats]:
    """Return the derivatives of minus the log; zero where it is cut off."""
    weights: Floats = y if y.ndim == 2 else np.eye(prediction.shape[-1])[y]
    is_used = (prediction >= EPSILON) & (weights > 0)
    inverse = np.divide(1.0, prediction, out=np.zeros_like(prediction), where=is_used)
    return -weights * inverse, weights * inverse * inverse


@register(
    "cross_entropy",
    "probability",
    summary="minus the log of the probability of the class",
    title="cross entropy",
    unit="nats, the unit of natural logarithms",
    synonyms=(
        "log_loss",
        "logloss",
        "cross entropy",
        "neg_log_loss",
        "nll",
        "binary:logistic",
        "d2_log_loss_score",
    ),
    notes={
        "d2_log_loss_score": "divide the values by the cross entropy of the shares of the classes"
        " for shares of it"
    },
    accepts_soft=True,
    curve="smooth",
    derivatives=_bend_cross_entropy,
    lowest=EPSILON,
)
def cross_entropy(y: Array, prediction: Floats) -> Floats:
    """Return minus the log of the probabilities of the classes."""
    if y.ndim == 1:
        chosen: Floats = np.clip(prediction[..., np.arange(len(y)), y], EPSILON, 1.0)
        return -np.log(chosen)
    entropies: Floats = -(y * np.log(np.clip(prediction, EPSILON, 1.0))).sum(axis=-1)
    return entropies


@register(
    "zero_one",
    "probability",
    summary="1 if the most probable class is wrong",
    title="share of wrong classes",
    unit="shares of the rows",
    synonyms=("accuracy", "error_rate", "misclassification", "zero_one_loss", "zero one"),
    accepts_votes=True,
    curve="jump",
)
def zero_one(y: Array, prediction: Floats) -> Floats:
    """Return 1 where the most probable class, the first of equals, is wrong."""
    wrong: npt.NDArray[np.bool_] = prediction.argmax(axis=-1) != y
    return wrong.astype(np.float64)


@register(
    "linear",
    "probability",
    summary="1 minus the probability of the class",
    title="probability of a wrong class",
    unit="probabilities of a wrong class",
    synonyms=("expected_zero_one",),
    accepts_votes=True,
    accepts_soft=True,
    curve="linear",
)
def linear(y: Array, prediction: Floats) -> Floats:
    """Return one minus the probabilities of the classes."""
    if y.ndim == 1:
        chosen: Floats = 1.0 - prediction[..., np.arange(len(y)), y]
        return chosen
    missed: Floats = 1.0 - np.einsum("...k,...k->...", y, prediction)
    return missed


@register(
    "brier",
    "probability",
    summary="the squared distance of probabilities and class",
    title="Brier score",
    unit="squared differences of probabilities",
    synonyms=("brier_score", "brier_score_loss", "neg_brier_score", "d2_brier_score"),
    notes={
        "d2_brier_score": "divide the values by the Brier score of the shares of the classes for"
        " shares of it"
    },
    accepts_soft=True,
    curve="quadratic",
)
def brier(y: Array, prediction: Floats) -> Floats:
    """Return squared distances of probabilities and classes, halved for two classes."""
    n_classes = prediction.shape[-1]
    certain = y if y.ndim == 2 else y[:, None] == np.arange(n_classes)
    difference = prediction - certain
    sums: Floats = np.einsum("...k,...k->...", difference, difference)
    return sums / 2 if n_classes == 2 else sums
