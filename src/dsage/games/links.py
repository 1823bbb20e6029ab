"""Links: the scales on which a model's output is nearly additive."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from scipy.special import ndtr, ndtri

from dsage.games.base import Floats
from dsage.models.losses import Loss

# Probabilities nearer to 0 or 1 count as so near, and positive numbers below this share of their
# mean as this share of it: a scale without an end would follow the most extreme outputs.
_SMALLEST, _SMALLEST_SHARE = 0.005, 0.01
# Coefficients of a logistic function that is nearly the normal distribution function.
_LINEAR, _CUBIC = 1.5976, 0.070566


class Link(Protocol):
    """A scale, and the way back from normal distributions on it.

    `is_of_numbers` says whether outputs are numbers, not probabilities.
    """

    is_of_numbers: bool

    def apply(self, output: Floats) -> Floats:
        """Return the outputs (n_rows, ...) of a model on the scale, (n_rows, n_scaled)."""

    def mean(self, center: Floats, variance: Floats) -> Floats:
        """Return the mean outputs for normal distributions on the scale, (..., n_scaled)."""


class Probit:
    """Probabilities on the scale of the normal distribution.

    With η normal, the mean of Φ(η) is ``Φ(m / sqrt(1 + v))``. Probabilities of two classes are one
    number; with more classes they are scaled one by one, and divided by their sum on the way back.

    Examples
    --------
    >>> Probit().mean(np.array([1.0]), np.array([0.0])).round(3)
    array([0.159, 0.841])
    """

    is_of_numbers = False

    def apply(self, output: Floats) -> Floats:
        """Return probabilities on the scale."""
        if output.ndim == 2 and output.shape[1] == 2:
            output = output[:, 1]
        scaled: Floats = ndtri(np.clip(output.reshape(len(output), -1), _SMALLEST, 1 - _SMALLEST))
        return scaled

    def mean(self, center: Floats, variance: Floats) -> Floats:
        """Return the mean probabilities of all classes."""
        scaled = center / np.sqrt(1.0 + variance)
        found: Floats
        if scaled.shape[-1] == 1:
            found = ndtr(scaled)
            return np.concatenate([1.0 - found, found], axis=-1)
        found = _rough_ndtr(scaled)
        # NumPy is slow to sum along an axis of a few entries.
        found /= np.maximum(np.einsum("...k->...", found), _SMALLEST)[..., None]
        return found


def _rough_ndtr(points: Floats) -> Floats:
    """Return the normal distribution function, up to 2e-4, in a third of the time.

    It is ``1 / (1 + exp(-a x - b x^3))``.
    """
    found: Floats = points * points
    found *= -_CUBIC
    found -= _LINEAR
    found *= points
    with np.errstate(over="ignore"):
        np.exp(found, out=found)
    found += 1.0
    return np.divide(1.0, found, out=found)


class Log:
    """Positive numbers on the scale of their logarithm: with η normal, the mean of exp(η)."""

    is_of_numbers = True

    def apply(self, output: Floats) -> Floats:
        """Return the logarithms."""
        smallest = max(_SMALLEST_SHARE * float(output.mean()), np.finfo(np.float64).tiny)
        return np.log(np.maximum(output, smallest))[:, None]

    def mean(self, center: Floats, variance: Floats) -> Floats:
        """Return the mean numbers."""
        found: Floats = np.exp(center + variance / 2.0)[..., 0]
        return found


def find_link(loss: Loss) -> Link | None:
    """Return the scale that suits the outputs of models with a loss; None for all numbers.

    Losses that jump or have kinks do not change smoothly with what is expected of an output: they
    have none.

    Examples
    --------
    >>> from dsage.models import as_loss
    >>> find_link(as_loss("squared_error")) is None
    True
    """
    if loss.curve in ("kinked", "jump"):
        return None
    if loss.output == "probability":
        return Probit()
    bound = loss.prediction_bound
    return Log() if loss.output == "value" and bound is not None and bound.low == 0.0 else None
