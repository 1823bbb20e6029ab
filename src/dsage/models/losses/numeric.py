"""Losses of numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dsage._check import check_real
from dsage.models.losses.base import Array, Floats, Loss
from dsage.models.losses.registry import LOSSES, register


@register(
    "squared_error",
    "value",
    summary="the squared difference",
    title="squared error",
    unit="squared units of {target}",
    synonyms=(
        "mse",
        "mean_squared_error",
        "neg_mean_squared_error",
        "l2",
        "reg:squarederror",
        "rmse",
        "root_mean_squared_error",
        "neg_root_mean_squared_error",
        "r2",
        "explained_variance",
    ),
    notes={
        **dict.fromkeys(
            ("rmse", "root_mean_squared_error", "neg_root_mean_squared_error"),
            "the root of a mean is not a mean over rows, so its square is explained",
        ),
        **dict.fromkeys(
            ("r2", "explained_variance"),
            "divide the values by the variance of the target for shares of it",
        ),
    },
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
    synonyms=(
        "mae",
        "mean_absolute_error",
        "neg_mean_absolute_error",
        "l1",
        "regression_l1",
        "reg:absoluteerror",
        "d2_absolute_error_score",
    ),
    notes={
        "d2_absolute_error_score": "divide the values by the mean absolute difference of the"
        " target from its median for shares of it"
    },
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
    synonyms=("quantile", "mean_pinball_loss", "reg:quantileerror"),
    notes={},
    parameter="quantile",
    example=0.9,
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


@dataclass(frozen=True)
class _Huber:
    delta: float

    def __call__(self, y: Array, prediction: Floats) -> Floats:
        distance: Floats = np.abs(prediction - y)
        small = np.minimum(distance, self.delta)
        return small * (distance - small / 2)


@dataclass(frozen=True)
class _BendHuber:
    delta: float

    def __call__(self, y: Array, prediction: Floats) -> tuple[Floats, Floats]:
        difference: Floats = prediction - y
        is_small = np.abs(difference) <= self.delta
        return np.clip(difference, -self.delta, self.delta), is_small.astype(np.float64)


@LOSSES.register(
    "huber",
    summary="half the square of a small difference, as in huber(1.35), linear beyond",
    title="Huber loss",
    unit="half squared units of {target}",
    synonyms=("huber_loss",),
    notes={},
    parameter="delta",
    example=1.35,
)
def huber(delta: float) -> Loss:
    """Return the Huber loss: ``d ** 2 / 2`` up to a distance of delta, linear beyond.

    Its slope is continuous, so the bias of few draws is removed up to a small rest.

    Examples
    --------
    >>> huber(1.0)(np.zeros(2), np.array([1.0, 3.0]))
    array([0.5, 2.5])
    """
    checked = check_real(delta, "delta", above=0.0, high=np.finfo(np.float64).max)
    return Loss(
        f"huber({checked:g})",
        "value",
        _Huber(checked),
        curve="smooth",
        derivatives=_BendHuber(checked),
    )
