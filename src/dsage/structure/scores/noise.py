"""How much better a flexible density fits residuals than the normal one."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy.special import eval_legendre, ndtr

Floats = npt.NDArray[np.float64]

_N_BINS = 64
_SIZES = (2, 6)
_MIDDLES = (np.arange(_N_BINS) + 0.5) / _N_BINS
# Legendre polynomials, orthonormal over (0, 1), at the middles of the bins.
_TILTS = np.stack(
    [math.sqrt(2 * k + 1) * eval_legendre(k, 2 * _MIDDLES - 1) for k in range(1, _SIZES[-1] + 1)],
    axis=1,
)
_MAX_STEPS = 20


def shape_gain(residuals: Floats) -> float:
    """Return by how much a tilted normal density raises the log-likelihood, less its penalty.

    Residuals are standardised, and u are the probabilities that a normal variable is below them.
    The density of u, 1 if the residuals are normal, is the exponential of a polynomial of degree
    2 or 6, fitted to 64 bins; a coefficient costs log(n) / 2. The gain is at least 0: normal
    residuals stay normal.

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
    below = ndtr(centered)
    bins = np.minimum((below * _N_BINS).astype(np.intp), _N_BINS - 1)
    moments = _TILTS.T @ (np.bincount(bins, minlength=_N_BINS) / n_rows)
    best, weights = 0.0, np.zeros(0)
    # Twice the gain is about the sum of squares: normal residuals need no fit.
    if n_rows * float(moments @ moments) < math.log(n_rows):
        return best
    for size in _SIZES:
        weights = np.append(weights, np.zeros(size - len(weights)))
        gain, weights = _fit(_TILTS[:, :size], moments[:size], weights)
        best = max(best, n_rows * gain - 0.5 * size * math.log(n_rows))
    return best


def _fit(tilts: Floats, moments: Floats, weights: Floats) -> tuple[float, Floats]:
    """Return the largest mean log density of an exponential family, and its weights."""
    best, at_best = -math.inf, weights
    for _ in range(_MAX_STEPS):
        logs = tilts @ weights
        top = float(logs.max())
        density = np.exp(logs - top)
        total = float(density.sum())
        value = float(moments @ weights) - math.log(total / _N_BINS) - top
        if value <= best + 1e-7:
            break
        best, at_best = value, weights
        density /= total
        mean = tilts.T @ density
        curvature = (tilts * density[:, None]).T @ tilts - np.outer(mean, mean)
        step = np.linalg.solve(curvature + 1e-6 * np.eye(len(mean)), moments - mean)
        longest = float(np.abs(tilts @ step).max())
        weights = weights + step * min(1.0, 4.0 / max(longest, 1e-12))
    return best, at_best
