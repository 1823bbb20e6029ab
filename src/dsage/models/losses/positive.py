"""Losses of counts and of positive numbers: deviances, and the squared error of logarithms."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import xlogy

from dsage._check import Setting, Text, check_real, refusal
from dsage.models.losses.base import Array, Floats, Loss
from dsage.models.losses.bounds import Bound
from dsage.models.losses.registry import LOSSES, register

_POSITIVE, _NOT_NEGATIVE = Bound(0.0), Bound(0.0, is_included=True)
_LOGARITHM = Bound(-1.0)


def _bend_poisson(y: Array, prediction: Floats) -> tuple[Floats, Floats]:
    ratio: Floats = y / prediction
    return 2 * (1 - ratio), 2 * ratio / prediction


@register(
    "poisson",
    "value",
    summary="the Poisson deviance, of counts",
    title="Poisson deviance",
    unit="units of the Poisson deviance of {target}",
    synonyms=(
        "poisson_deviance",
        "mean_poisson_deviance",
        "neg_mean_poisson_deviance",
        "count:poisson",
    ),
    curve="smooth",
    derivatives=_bend_poisson,
    target_bound=_NOT_NEGATIVE,
    prediction_bound=_POSITIVE,
)
def poisson(y: Array, prediction: Floats) -> Floats:
    """Return ``2 (y log(y / p) - y + p)``."""
    losses: Floats = 2 * (xlogy(y, y / prediction) - y + prediction)
    return losses


def _bend_gamma(y: Array, prediction: Floats) -> tuple[Floats, Floats]:
    inverse: Floats = 1 / prediction
    ratio = y * inverse
    return 2 * inverse * (1 - ratio), 2 * inverse * inverse * (2 * ratio - 1)


@register(
    "gamma",
    "value",
    summary="the gamma deviance, of positive numbers",
    title="gamma deviance",
    unit="units of the gamma deviance of {target}",
    synonyms=("gamma_deviance", "mean_gamma_deviance", "neg_mean_gamma_deviance", "reg:gamma"),
    curve="smooth",
    derivatives=_bend_gamma,
    target_bound=_POSITIVE,
    prediction_bound=_POSITIVE,
)
def gamma(y: Array, prediction: Floats) -> Floats:
    """Return ``2 (log(p / y) + y / p - 1)``."""
    ratio: Floats = y / prediction
    return 2 * (ratio - 1 - np.log(ratio))


@dataclass(frozen=True)
class _Tweedie:
    power: float

    def __call__(self, y: Array, prediction: Floats) -> Floats:
        one, two = 1 - self.power, 2 - self.power
        # A target of zero has no own term below a power of two; above, targets are positive.
        own = np.power(y, two) / (one * two)
        losses: Floats = 2 * (own - y * prediction**one / one + prediction**two / two)
        return losses


@dataclass(frozen=True)
class _BendTweedie:
    power: float

    def __call__(self, y: Array, prediction: Floats) -> tuple[Floats, Floats]:
        steep: Floats = prediction**-self.power
        second = steep * (self.power * y / prediction + 1 - self.power)
        return 2 * steep * (prediction - y), 2 * second


@LOSSES.register(
    "tweedie",
    summary="the Tweedie deviance of a power, as in tweedie(1.5)",
    title="Tweedie deviance",
    unit="units of the Tweedie deviance of {target}",
    synonyms=("tweedie_deviance", "mean_tweedie_deviance", "reg:tweedie"),
    notes={},
    parameter="power",
    example=1.5,
)
def tweedie(power: float) -> Loss:
    """Return the Tweedie deviance, of numbers whose variance grows as this power of the mean.

    Powers from 1 are taken. 1 is the Poisson and 2 the gamma deviance; between them, targets may
    be zero; from 2 on they must be positive.

    Examples
    --------
    >>> tweedie(1.5)(np.array([0.0, 4.0]), np.array([1.0, 1.0]))
    array([4., 4.])
    """
    if power == 0:
        advice = Text(
            ["A power of 0 is that of a normal: choose ", Setting("loss", "squared_error")]
        )
        raise refusal("power", "at least 1", power, advice)
    checked = check_real(power, "power", low=1.0, high=np.finfo(np.float64).max)
    kernels = {1.0: (poisson, _bend_poisson), 2.0: (gamma, _bend_gamma)}
    kernel, bend = kernels.get(checked, (_Tweedie(checked), _BendTweedie(checked)))
    return Loss(
        f"tweedie({checked:g})",
        "value",
        kernel,
        curve="smooth",
        derivatives=bend,
        target_bound=_NOT_NEGATIVE if checked < 2 else _POSITIVE,
        prediction_bound=_POSITIVE,
    )


def _bend_log(y: Array, prediction: Floats) -> tuple[Floats, Floats]:
    inverse = 1 / (1 + prediction)
    difference: Floats = np.log1p(prediction) - np.log1p(y)
    return 2 * difference * inverse, 2 * (1 - difference) * inverse * inverse


@register(
    "squared_log_error",
    "value",
    summary="the squared difference of log(1 + number)",
    title="squared logarithmic error",
    unit="squared logarithms of 1 + {target}",
    synonyms=(
        "msle",
        "mean_squared_log_error",
        "neg_mean_squared_log_error",
        "rmsle",
        "root_mean_squared_log_error",
        "neg_root_mean_squared_log_error",
        "reg:squaredlogerror",
    ),
    notes=dict.fromkeys(
        ("rmsle", "root_mean_squared_log_error", "neg_root_mean_squared_log_error"),
        "the root of a mean is not a mean over rows, so its square is explained",
    ),
    curve="smooth",
    derivatives=_bend_log,
    target_bound=_LOGARITHM,
    prediction_bound=_LOGARITHM,
)
def squared_log_error(y: Array, prediction: Floats) -> Floats:
    """Return ``(log(1 + p) - log(1 + y)) ** 2``."""
    difference: Floats = np.log1p(prediction) - np.log1p(y)
    return difference * difference
