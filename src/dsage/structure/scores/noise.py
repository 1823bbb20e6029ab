"""The gain in likelihood of residuals from a flexible density instead of the normal one."""

from __future__ import annotations

import functools
import math

import numpy as np
import numpy.typing as npt
from scipy.linalg.lapack import dposv
from scipy.special import eval_legendre, ndtr, ndtri

Floats = npt.NDArray[np.float64]

_N_BINS = 64
_SIZES = (2, 6)
_MIDDLES = (np.arange(_N_BINS) + 0.5) / _N_BINS
# Legendre polynomials, orthonormal over (0, 1), at the middles of the bins.
_TILTS = np.stack(
    [math.sqrt(2 * k + 1) * eval_legendre(k, 2 * _MIDDLES - 1) for k in range(1, _SIZES[-1] + 1)],
    axis=1,
)
# The first of them, and their products, for means of both.
_FIRST = {size: np.ascontiguousarray(_TILTS[:, :size]) for size in _SIZES}
_BOTH = {
    size: np.hstack([first, (first[:, :, None] * first[:, None, :]).reshape(_N_BINS, -1)])
    for size, first in _FIRST.items()
}
_RIDGES = {size: 1e-6 * np.eye(size) for size in _SIZES}
_MAX_STEPS = 20


def shape_gain(residuals: Floats, *, sharp: bool = False) -> float:
    """Return by how much a flexible density raises the log-likelihood above the normal one.

    A tilted normal density tests whether residuals are normal: they are standardised, and u are
    the probabilities that a normal variable is below them. The density of u, 1 if the residuals are
    normal, is the exponential of a polynomial of degree 2 or 6, fitted to 64 bins; a coefficient
    costs log(n) / 2. The gain is at least 0: normal residuals stay normal.

    A polynomial does not follow sharp edges. With `sharp`, the entropy by spacings counts where
    residuals are not normal, up to twice the gain of the tilt; it is nearly as good as the true
    density.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> shape_gain(rng.normal(size=1000)), shape_gain(rng.exponential(size=1000)) > 100
    (0.0, True)
    """
    n_rows = len(residuals)
    centered = residuals - residuals.mean()
    deviation = math.sqrt(float(centered @ centered) / n_rows)
    if not deviation > 1e-6:
        return 0.0
    centered /= deviation
    tilted = _tilt_gain(centered)
    if not sharp or tilted == 0.0:
        return tilted
    return max(tilted, min(n_rows * _negentropy(centered), 2 * tilted))


def density_slopes(residuals: Floats) -> Floats:
    """Return minus the derivatives of the log density of residuals by location and scale.

    Shape (2, n_rows), up to constants: for normal residuals the standardised ones and their
    squares. The density is the tilted one of :func:`shape_gain`, whose tests of a shift are more
    powerful than tests of least squares if residuals are skewed or have long tails.
    """
    n_rows = len(residuals)
    centered = residuals - residuals.mean()
    deviation = float(centered.std())
    if not deviation > 1e-6:
        return np.zeros((2, n_rows))
    standard = centered / deviation
    below = ndtr(standard)
    bins = np.minimum((below * _N_BINS).astype(np.intp), _N_BINS - 1)
    moments = _TILTS.T @ (np.bincount(bins, minlength=_N_BINS) / n_rows)
    best, weights, kept = 0.0, np.zeros(_SIZES[-1]), np.zeros(_SIZES[-1])
    for size in _SIZES:
        gain, weights = _fit(size, moments, weights, 0.01 / n_rows)
        worth = n_rows * gain - size * 0.5 * math.log(n_rows)
        if worth > best:
            best, kept = worth, weights
    bend = np.interp(below, _MIDDLES, np.gradient(_TILTS @ kept, 1.0 / _N_BINS))
    slope = standard - bend * np.exp(-0.5 * standard**2) / math.sqrt(2 * math.pi)
    return np.stack([slope, standard * slope])


def _tilt_gain(standard: Floats) -> float:
    """Return by how much a tilted normal density raises the log-likelihood, less its penalty."""
    n_rows = len(standard)
    below = ndtr(standard)
    bins = np.minimum((below * _N_BINS).astype(np.intp), _N_BINS - 1)
    moments = _TILTS.T @ (np.bincount(bins, minlength=_N_BINS) / n_rows)
    # Twice the gain is about the sum of squares: normal residuals need no fit.
    best, price = 0.0, 0.5 * math.log(n_rows)
    if n_rows * float(moments @ moments) < 2 * price:
        return best
    weights = np.zeros(_SIZES[-1])
    for size, after in zip(_SIZES, (*_SIZES[1:], None), strict=True):
        gain, weights = _fit(size, moments, weights, 0.01 / n_rows)
        best = max(best, n_rows * gain - size * price)
        if after and n_rows * _promise(after, moments, weights) < (after - size) * price:
            break
    return best


def _negentropy(standard: Floats) -> float:
    """Return how much lower the entropy is than a normal variable's; 0 with equal values."""
    step, normal = _normal_spacings(len(standard))
    ordered = np.sort(standard)
    spacings = ordered[step:] - ordered[:-step]
    if not len(spacings) or float(spacings.min()) <= 0.0:
        return 0.0
    return normal - float(np.log(spacings).mean())


@functools.lru_cache(maxsize=64)
def _normal_spacings(n_rows: int) -> tuple[int, float]:
    """Return the number of ranks of a spacing, and the mean logarithm of normal spacings."""
    step = 2 * max(1, round(math.sqrt(n_rows)))
    scores = ndtri((np.arange(n_rows) + 0.5) / n_rows)
    scores /= max(float(scores.std()), 1e-12)
    spacings = scores[step:] - scores[:-step]
    return step, float(np.log(spacings).mean()) if len(spacings) else 0.0


def _fit(size: int, moments: Floats, start: Floats, accuracy: float) -> tuple[float, Floats]:
    """Return the largest mean log density with `size` tilts, and the weights of all."""
    best, at_best, weights = -math.inf, start, start
    logs = _FIRST[size] @ start[:size]
    for _ in range(_MAX_STEPS):
        value, slope, step = _newton(size, moments, weights, logs)
        if value <= best:
            break
        best, at_best = value, weights
        gain = 0.5 * float(slope @ step)
        if gain < accuracy:
            best += gain
            break
        change = _FIRST[size] @ step
        scale = min(1.0, 4.0 / max(float(change.max()), -float(change.min()), 1e-12))
        logs = logs + scale * change
        weights = weights.copy()
        weights[:size] += scale * step
    return best, at_best


def _promise(size: int, moments: Floats, weights: Floats) -> float:
    """Return about twice the possible gain from `size` tilts: a score test with a margin."""
    _, slope, step = _newton(size, moments, weights, _FIRST[size] @ weights[:size])
    return float(slope @ step)


def _newton(
    size: int, moments: Floats, weights: Floats, logs: Floats
) -> tuple[float, Floats, Floats]:
    """Return the mean log density, its derivatives, and Newton's step.

    The log density in the bins is the logarithm of the weights, up to a constant.
    """
    top = float(logs.max())
    density = np.exp(logs - top)
    total = float(density.sum())
    value = float(moments[:size] @ weights[:size]) - math.log(total / _N_BINS) - top
    means = density @ _BOTH[size]
    means /= total
    mean = means[:size]
    slope = moments[:size] - mean
    curvature = means[size:].reshape(size, size)
    curvature -= mean[:, None] * mean
    curvature += _RIDGES[size]
    _, step, failed = dposv(curvature, slope, lower=1)
    return value, slope, np.zeros(size) if failed else step
