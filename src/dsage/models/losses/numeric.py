"""Losses of numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dsage._check import check_real
from dsage.models.losses.base import LOSSES, Array, Floats, Loss, register


@register(
    "squared_error",
    "value",
    summary="the squared difference",
    title="squared error",
    unit="squared units of {target}",
    synonyms=("mse", "mean_squared_error", "l2"),
    curve="quadratic",
)
def squared_error(y: Array, prediction: Floats) -> Floats:
    """Return squared differences."""
    difference: Floats = prediction - y
    return difference * difference


@register(
    "absolute_error",
    "value",
    summary="the absolute difference",
    title="absolute error",
    unit="units of {target}",
    synonyms=("mae", "mean_absolute_error", "l1"),
    curve="kinked",
)
def absolute_error(y: Array, prediction: Floats) -> Floats:
    """Return absolute differences."""
    distances: Floats = np.abs(prediction - y)
    return distances


@dataclass(frozen=True)
class _Pinball:
    quantile: float

    def __call__(self, y: Array, prediction: Floats) -> Floats:
        difference = y - prediction
        losses: Floats = np.maximum(self.quantile * difference, (self.quantile - 1) * difference)
        return losses


@LOSSES.register(
    "pinball",
    summary="of a quantile, as in pinball(0.9)",
    title="pinball loss",
    unit="units of {target}",
    synonyms=("quantile",),
    parameter="quantile",
)
def pinball(quantile: float) -> Loss:
    """Return the pinball loss, whose best prediction is a quantile.

    Examples
    --------
    >>> pinball(0.9)(np.array([1.0, 1.0]), np.array([0.0, 2.0]))
    array([0.9, 0.1])
    """
    checked = check_real(quantile, "quantile", above=0.0, high=np.nextafter(1.0, 0.0))
    return Loss(f"pinball({checked:g})", "value", _Pinball(checked), curve="kinked")
