"""Conditioning a Gaussian on a coalition, with draws that are the same to the bit in any batch.

The draws of a row must not depend on the other rows. BLAS does not guarantee that: the order of its
sums changes with the shape of the matrices. So there are two kinds of products here. Products with
noise are *exact*: both factors are rounded to few enough binary digits that every partial sum is a
float64, and the order does not matter. All others are sums in a fixed order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg.blas import dger
from scipy.linalg.lapack import dpotrf, dpotrs

from dsage._check import check_shape, refusal
from dsage.samplers.checks import Floats, Ints, Mask
from dsage.samplers.recent import Recent

Result = npt.NDArray[np.floating[Any]]

TOLERANCE = 1e-10
"""Share of the variance below which the features before it determine a feature."""
# Number of features from which LAPACK factorizes, and the factor by which the remaining variance of
# each has to exceed the tolerance: column by column, a thousand features would take seconds.
_LARGE, CLEAR = 200, 100.0

_LANES = 64  # more than any vector unit has, so that no lane is in the scalar tail of a loop
_CHUNK_CELLS = 32_768  # fits into a processor's cache, with the copies that the steps need
GRID = 2.0**-20
BOUND = 8.3  # of the normal scores of 2**-54 and 1 - 2**-54
# -ndtri(p) = P(s) / Q(s) with s = sqrt(-log p), 2**-54 <= p <= 1/2: the minimax fit, with an error
# of 9e-8, well below the grid. scipy's ndtri would take twice as long as everything else here.
NUMERATOR = (-3.16865711028, -10.0288656534, 6.71807514606, 10.5084485748, 1.65963356003)
DENOMINATOR = (1.0, 7.22018044933, 7.46329544271, 1.17298637635)


def normal_scores(noise: Floats) -> Floats:
    """Turn uniforms in (0, 1) into standard normals, rounded to a grid of 2**-20.

    The error is below 6e-7, and no score exceeds 8.3 in absolute value.

    Examples
    --------
    >>> normal_scores(np.array([0.5, 0.975])).round(5)
    array([0.     , 1.95996])
    """
    return grid_scores(noise) * GRID


def grid_scores(noise: Floats) -> Floats:
    """Return normal scores as whole numbers of steps of the grid."""
    tail = 1.0 - noise
    np.minimum(tail, noise, out=tail)
    np.maximum(tail, 2.0**-54, out=tail)
    np.log(tail, out=tail)
    np.negative(tail, out=tail)
    s = np.sqrt(tail, out=tail)
    scores = _polynomial([coefficient / GRID for coefficient in NUMERATOR], s)
    scores /= _polynomial(DENOMINATOR, s)
    np.rint(scores, out=scores)
    np.subtract(noise, 0.5, out=tail)
    return np.copysign(scores, tail, out=scores)


def as_grid(scores: Floats) -> Floats:
    """Return normal scores as whole numbers of steps of the grid."""
    steps = scores / GRID
    return np.rint(steps, out=steps)


def check_scores(scores: npt.ArrayLike, n_rows: int, n_features: int) -> Floats:
    """Return normal scores as floats (n_rows, n_draws, n_features), all within their bound."""
    array = np.asarray(scores, dtype=np.float64)
    check_shape(array, (n_rows, "n_draws", n_features), "scores", "Use normal_scores(noise)")
    if array.size and not (array.min() >= -BOUND and array.max() <= BOUND):
        bad = array[~(np.abs(array) <= BOUND)][0]
        raise refusal("scores", f"within {BOUND} of 0", float(bad), "Use normal_scores(noise)")
    return array


def _polynomial(coefficients: Sequence[float], x: Floats) -> Floats:
    value = x * coefficients[-1]
    for coefficient in coefficients[-2:0:-1]:
        value += coefficient
        value *= x
    value += coefficients[0]
    return value


def exact_factor(factor: Floats, bound: float = BOUND) -> Floats:
    """Round each row of factors so that their products with grid scores have no rounding error.

    A row is rounded to b binary digits below the power of two above its norm, with b such that
    ``sqrt(n) 2**b`` times `bound`, the largest score, is below 2**53: about 1e-8 of the norm.
    Return the transposes, in steps of the grid. Shape (..., n_out, n_noise).
    """
    n_noise = max(factor.shape[-1], 1)
    digits = int(np.floor(52.9 - np.log2(bound / GRID) - np.log2(n_noise) / 2))
    norms = np.sqrt((factor**2).sum(axis=-1))
    _, exponents = np.frexp(norms)
    step = np.ldexp(1.0, exponents - digits)[..., None]
    rounded = np.rint(factor / step) * (step * GRID)
    return np.ascontiguousarray(np.swapaxes(rounded, -1, -2))


def combine(weights: Floats, columns: Floats) -> Floats:
    """Return ``weights @ columns`` summed in the order of the columns of `weights`.

    Shapes (n_out, n_in) and (n_in, n_lanes) with n_lanes from `lanes`. The result of a lane
    depends on that lane only.
    """
    out = np.zeros((len(weights), columns.shape[1]))
    for row, target in zip(weights, out, strict=True):
        np.einsum("k,kn->n", row, columns, out=target)
    return out


def lanes(X: Floats) -> Floats:
    """Transpose rows (n_rows, n_features) and pad with zeros to whole vectors of lanes."""
    n_rows, n_features = X.shape
    padded = np.zeros((n_features, -(-max(n_rows, 1) // _LANES) * _LANES))
    padded[:, :n_rows] = X.T
    return padded


def whiten(factor: Floats, centered: Floats) -> Floats:
    """Return ``z = L^-1 x`` of rows x (n_rows, n), (n, n_rows), with L a lower factor (n, n).

    It is 0 where the diagonal is: such a feature is determined by those before it.
    """
    rest = lanes(centered)
    z = np.zeros_like(rest)
    for at, pivot in enumerate(factor.diagonal().tolist()):
        if pivot > 0:
            known = combine(factor[at : at + 1, :at], z[:at])[0]
            z[at] = (rest[at] - known) / pivot
    return z[:, : len(centered)]


def sweep(matrix: Floats, known: Mask, tolerance: float = TOLERANCE) -> tuple[Floats, Floats]:
    """Regress the unknown features on the known ones: coefficients and residual covariance.

    `matrix` holds correlations, or covariances whose diagonal is at most about one; 0 for a
    constant. The known features are swept, the one with the largest residual variance first. Those
    with no more than `tolerance` left are determined by the others; their coefficients are zero.
    """
    swept = np.array(matrix, order="C")
    left = known.copy()
    while left.any():
        at = int(np.argmax(np.where(left, swept.diagonal(), -np.inf)))
        pivot = swept[at, at]
        if not pivot > tolerance:
            break
        column = swept[at].copy()
        row = column / pivot
        _subtract_outer(swept, column, row)
        swept[at] = swept[:, at] = row
        swept[at, at] = -1.0 / pivot
        left[at] = False
    swept[:, left] = 0.0
    return swept[np.ix_(~known, known)], swept[np.ix_(~known, ~known)]


def solve_known(matrix: Floats, right: Floats) -> Floats:
    """Return ``matrix^-1 right``, (n, n_outputs), as `sweep` regresses on n known features.

    If some features are determined by others, up to the tolerance, their coefficients are zero.
    """
    n_known = len(matrix)
    if not n_known:
        return right
    factor, failed = dpotrf(matrix, lower=1)
    if not failed and factor.diagonal().min() ** 2 > TOLERANCE:
        solved: Floats = dpotrs(factor, right, lower=1)[0]
        return solved
    whole = np.zeros((n_known + right.shape[1], n_known + right.shape[1]))
    whole[:n_known, :n_known] = matrix
    whole[:n_known, n_known:] = right
    whole[n_known:, :n_known] = right.T
    coefficients, _ = sweep(whole, np.arange(len(whole)) < n_known)
    return coefficients.T


def _subtract_outer(matrix: Floats, column: Floats, row: Floats) -> None:
    """Subtract ``column row'`` in place; nothing is summed, so there is no order to matter."""
    dger(-1.0, row, column, a=matrix.T, overwrite_a=1)


def lower_factor(matrix: Floats, tolerance: float = TOLERANCE) -> Floats:
    """Return the Cholesky factor, with a column of zeros if at most `tolerance` is left."""
    if len(matrix) >= _LARGE:
        quick, failed = dpotrf(matrix, lower=1, clean=1)
        if not failed and quick.diagonal().min() ** 2 > CLEAR * tolerance:
            return np.ascontiguousarray(quick)
    rest = np.array(matrix, order="C")
    factor = np.zeros_like(rest)
    for at in range(len(rest)):
        pivot = rest[at, at]
        if pivot > tolerance:
            factor[at:, at] = rest[at:, at] / np.sqrt(pivot)
            column = np.ascontiguousarray(factor[:, at])
            _subtract_outer(rest, column, column)
    return factor


@dataclass(frozen=True, eq=False, slots=True)
class Conditional:
    """The unknown features given the known ones: ``N(mean + B (x - mean_known), L L')``.

    `factor` is the exact, transposed L of shape (n_unknown, n_unknown).
    """

    known: Mask
    mean_known: Floats
    mean_unknown: Floats
    coefficients: Floats
    factor: Floats

    def mean(self, x_known: Floats) -> Floats:
        """Return the conditional means, (n_rows, n_unknown), of rows (n_rows, n_known)."""
        shift = combine(self.coefficients, lanes(x_known - self.mean_known))
        return self.mean_unknown + shift[:, : len(x_known)].T

    def draw(self, x_known: Floats, noise: Floats) -> Floats:
        """Return draws (n_rows, n_draws, n_unknown) from noise (n_rows, n_draws, n_features)."""
        draws = np.empty((*noise.shape[:2], len(self.factor)))
        unknown = np.flatnonzero(~self.known)
        _draw_into(draws, self.mean(x_known), self.factor, noise, unknown, grid_scores)
        return draws

    def fill(
        self, out: Result, X: Floats, noise: Floats, to_grid: Callable[[Floats], Floats]
    ) -> None:
        """Write draws of all features into `out` (n_rows, n_draws, n_features), known ones as in X.

        Multiplying by a factor with columns of zeros for the known features is faster than writing
        the draws between them. `to_grid` turns noise into grid scores.
        """
        mean = X.copy()
        mean[:, ~self.known] = self.mean(X[:, self.known])
        wide = np.zeros((len(self.factor), len(self.known)))
        wide[:, ~self.known] = self.factor
        _draw_into(out, mean, wide, noise, np.flatnonzero(~self.known), to_grid)


def _draw_into(
    out: Result,
    mean: Floats,
    factor: Floats,
    noise: Floats,
    features: Ints,
    to_grid: Callable[[Floats], Floats],
) -> None:
    """Write ``mean + L scores`` into `out` (n_rows, n_draws, :), in chunks that fit a cache."""
    n_rows, n_draws, n_features = noise.shape
    size = max(_CHUNK_CELLS // (n_draws * factor.shape[1]), 1)
    for start in range(0, n_rows, size):
        chunk = slice(start, start + size)
        flat = noise[chunk].reshape(-1, n_features)
        some = flat if len(features) == n_features else np.take(flat, features, axis=1)
        part = (to_grid(some) @ factor).reshape(-1, n_draws, factor.shape[1])
        np.add(part, mean[chunk, None, :], out=out[chunk], casting="same_kind")


class Normal:
    """A multivariate normal that can be conditioned on any coalition. Immutable; thread-safe.

    The conditionals of the last coalitions are kept, in at most 32 MiB (or one of them).
    """

    def __init__(self, mean: Floats, covariance: Floats) -> None:
        self.mean = mean
        self.scale = np.sqrt(covariance.diagonal())
        divisor = np.where(self.scale > 0, self.scale, 1.0)
        self.correlation: Floats = covariance / divisor[:, None] / divisor
        # Division may leave 1 - 1e-16 on the diagonal, and then copies would not be copies.
        np.fill_diagonal(self.correlation, self.scale > 0)
        self._recent: Recent[Conditional] = Recent(max(1, 2**25 // (8 * max(len(mean), 1) ** 2)))

    def determined(self) -> Mask:
        """Return which features are determined by those before them; constants always are."""
        flags: Mask = lower_factor(self.correlation).diagonal() == 0
        return flags

    def given(self, known: Mask) -> Conditional:
        """Return the distribution of the unknown features given the known ones."""
        return self._recent.get(known.tobytes(), lambda: self._condition(known))

    def regress(self, known: Mask, weights: Floats) -> tuple[Floats, Floats]:
        """Return ``E[weights' X | x_S]`` as an intercept and weights of the known features.

        The sum over the unknown features comes first, so that as few numbers as there are outputs
        are regressed on the known features; see :meth:`dsage.samplers.Sampler.mean_effects`.
        """
        intercept, effects, _ = self.regress_sums(known, weights)
        return intercept, effects

    def regress_sums(self, known: Mask, weights: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the result of `regress`, and the covariance of ``weights' X`` given the known."""
        within = self.correlation[np.ix_(known, known)]
        scaled = np.where(known[:, None], 0.0, self.scale[:, None] * weights)
        crossed = self.correlation[known] @ scaled
        coefficients = solve_known(within, crossed)
        slopes = coefficients / np.where(self.scale[known] > 0, self.scale[known], 1.0)[:, None]
        effects = np.zeros(weights.shape)
        effects[known] = weights[known] + slopes
        intercept = self.mean[~known] @ weights[~known] - self.mean[known] @ slopes
        covariance = scaled.T @ self.correlation @ scaled - crossed.T @ coefficients
        return intercept, effects, (covariance + covariance.T) / 2.0

    def _condition(self, known: Mask) -> Conditional:
        coefficients, residual = sweep(self.correlation, known)
        scale_known = np.where(self.scale[known] > 0, self.scale[known], 1.0)
        scale = self.scale[~known, None]
        return Conditional(
            known=known.copy(),
            mean_known=self.mean[known],
            mean_unknown=self.mean[~known],
            coefficients=coefficients * (scale / scale_known),
            factor=exact_factor(lower_factor(residual) * scale),
        )
