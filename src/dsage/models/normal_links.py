"""Expected predictions of scores that are normal, behind a link."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

Floats = npt.NDArray[np.float64]

# Deviations beyond which a normal distribution is cut off, and the logarithm of the error that
# steps between points leave: 1e-11.
_REACH, _DIGITS = 6.9, 25.3
# From this deviation of a score on, a step function and what the sigmoid differs from it.
_WIDE = 4.0
# Numbers of steps on either side, the smallest that is enough is taken; pairs of a score and a step
# that are treated at a time.
_N_STEPS, _PAIRS_AT_ONCE = (9, 12, 16, 20, 24, 30, 37), 1 << 16
# Scores beyond this are as good as infinite, and their exponentials are numbers.
_FARTHEST = 350.0
# Nodes s and weights of the integral of g(s) / (1 + exp(s)) over s > 0, for odd functions g: the
# rule of Gauss for s^2. Its error is below 1e-10 for normal densities of deviations above `_WIDE`.
# fmt: off
_NODES = (
    1.4513698544208797, 3.881249172342093, 6.913245847009198, 10.520145040988925,
    14.719947718103784, 19.58013999842783, 25.224566322832803, 31.871809382393547,
    39.95123497680576, 50.57597628066675,
)
_WEIGHTS = (
    0.4022787639587099, 0.05530904071893225, 0.0032995026037968326, 0.00010514105065491626,
    1.827411772718445e-06, 1.639090321916994e-08, 6.765406020720444e-11, 1.0455717781208454e-13,
    4.037855585569457e-17, 1.3893280351662302e-21,
)
# fmt: on


def expected_sigmoid(center: Floats, deviation: Floats) -> tuple[Floats, Floats]:
    """Return the means of ``1 / (1 + exp(-s))`` and of one minus that, for normal scores s.

    Both have at least nine digits, however small they are. With s of mean m and deviation d,

        E[sigmoid(s)] = exp(m + d^2 / 2) E[sigmoid(-(m + d^2) + d z)],

    so that m may be taken as above ``-d^2 / 2``, where means are not too small for their errors.

    Parameters
    ----------
    center : array of shape (n_laws, n_rows)
        The means of the scores.
    deviation : array of shape (n_laws,)
        Their standard deviations.

    Examples
    --------
    >>> mean, rest = expected_sigmoid(np.array([[0.0, 2.0, -40.0]]), np.array([1.0]))
    >>> mean[0, :2].round(3), float(mean[0, 2] / np.exp(-39.5))
    (array([0.5  , 0.845]), 1.0)
    """
    low = -np.abs(center)
    variance = (deviation * deviation)[:, None]
    is_far = low < -variance / 2.0
    moved = np.where(is_far, -(low + variance), low)
    smaller = _middle(moved, deviation)
    with np.errstate(under="ignore"):
        smaller *= np.exp(np.where(is_far, low + variance / 2.0, 0.0))
    larger = 1.0 - smaller
    is_high = center > 0.0
    return np.where(is_high, larger, smaller), np.where(is_high, smaller, larger)


def _middle(center: Floats, deviation: Floats) -> Floats:
    """Return means of the sigmoid of scores, whose centers are not far below zero."""
    means = np.empty(center.shape)
    is_wide = deviation > _WIDE
    means[is_wide] = _wide(center[is_wide], deviation[is_wide, None])
    # The exponential of a sum is a product, so that pairs need none of their own.
    factors = np.exp(-np.clip(center, -_FARTHEST, _FARTHEST))
    enough = np.searchsorted(_N_STEPS, _count_steps(deviation))
    for number, n_steps in enumerate(_N_STEPS):
        at = np.flatnonzero((enough == number) & ~is_wide)
        z: Floats = np.linspace(-_REACH, _REACH, 2 * n_steps + 1)
        weights: Floats = np.exp(-z * z / 2.0)
        weights /= weights.sum()
        size = max(1, _PAIRS_AT_ONCE // (max(1, center.shape[1]) * len(z)))
        for first in range(0, len(at), size):
            some = at[first : first + size]
            pairs = factors[some, :, None] * np.exp(-deviation[some, None] * z)[:, None]
            pairs += 1.0
            np.divide(weights, pairs, out=pairs)
            # NumPy is slow to sum along an axis of a few entries.
            means[some] = np.einsum("lnk->ln", pairs)
    return means


def _count_steps(deviation: Floats) -> Floats:
    """Return the steps on either side that the trapezoidal rule needs for normal scores.

    The error of steps h is ``exp(-2 pi^2 / h^2)`` for the normal density, and, as the sigmoid has
    poles at a distance of pi, ``exp(-2 pi^2 / (h d) + (pi / d)^2 / 2)``, d the deviation.
    """
    pole = math.pi / np.maximum(deviation, 0.5)
    near = 2.0 * math.pi * pole / (_DIGITS + pole * pole / 2.0)
    step: Floats = np.minimum(math.pi * math.sqrt(2.0 / _DIGITS), near)
    return np.minimum(_REACH / step, _N_STEPS[-1])


def _wide(center: Floats, deviation: Floats) -> Floats:
    """Return the same for large deviations: the probability that s > 0, and a correction.

    The sigmoid is the step function, plus ``1 / (1 + exp(-s))`` below zero and minus
    ``1 / (1 + exp(s))`` above it; against these the normal density is nearly a polynomial.
    """
    means: Floats = ndtr(center / deviation)
    scale = deviation * math.sqrt(2.0 * math.pi)
    for node, weight in zip(_NODES, _WEIGHTS, strict=True):
        below = np.exp(-0.5 * ((node + center) / deviation) ** 2)
        below -= np.exp(-0.5 * ((node - center) / deviation) ** 2)
        means += weight / scale * below
    return means


def expected_outputs(link: str, centers: Floats, variances: Floats) -> Floats:
    """Return the expected predictions (n_laws, n_rows, n_outputs) of normal scores behind a link.

    Parameters
    ----------
    link : {"logistic", "exp"}
        The link; the expectations of several classes have no such form.
    centers : array of shape (n_laws, n_rows)
        The means of the score.
    variances : array of shape (n_laws,)
        Its variances.
    """
    if link == "exp":
        with np.errstate(over="ignore"):
            means: Floats = np.exp(centers + variances[:, None] / 2.0)
        return means[:, :, None]
    second, first = expected_sigmoid(centers, np.sqrt(np.maximum(variances, 0.0)))
    return np.stack([first, second], axis=2)
