"""Losses of classes, computed from their scores."""

from __future__ import annotations

import numpy as np

from dsage.models.losses.base import Array, Floats
from dsage.models.losses.registry import register


@register(
    "hinge",
    "score",
    summary="how far the score of the class falls short of one above the others",
    title="hinge loss",
    unit="units of the classifier's scores",
    synonyms=("hinge_loss", "binary:hinge"),
    curve="kinked",
)
def hinge(y: Array, prediction: Floats) -> Floats:
    """Return ``max(0, 1 - (score of the class - largest score of another class))``."""
    is_own = np.arange(prediction.shape[-1]) == y[:, None]
    own = prediction[..., np.arange(len(y)), y]
    other = np.where(is_own, -np.inf, prediction).max(axis=-1)
    losses: Floats = np.maximum(0.0, 1.0 - (own - other))
    return losses
