"""Conditioning a Gaussian on a coalition, with draws that are the same to the bit in any batch.

A row's draws must not depend on the rows beside it, and BLAS promises no such thing: the order of
its sums changes with the shape of the matrices. So the products here are of two kinds. Those of
noise are *exact*: both factors are rounded to so few binary digits that every partial sum is a
float64, hence the order does not matter. All others are sums in a fixed order.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg.blas import dger

from dsage._check import refusal
from dsage.samplers.base import Floats, Mask

TOLERANCE = 1e-10
"""Share of a variance below which a feature counts as determined by the features before it."""

_LANES = 64  # more than any vector unit has, so that sums never meet a loop's scalar tail
_BLOCK_CELLS = 32_768  # what a processor's cache holds, with the copies that the steps need
GRID = 2.0**-20
BOUND = 8.3  # of the normal scores of 2**-54 and 1 - 2**-54
# -ndtri(p) = P(s) / Q(s) with s = sqrt(-log p), 2**-54 <= p <= 1/2: fitted for the smallest maximal
# error, 9e-8, which is well below the grid. scipy's ndtri takes twice as long as all else here.
_NUMERATOR = (-3.16865711028, -10.0288656534, 6.71807514606, 10.5084485748, 1.65963356003)
_DENOMINATOR = (1.0, 7.22018044933, 7.46329544271, 1.17298637635)


def normal_scores(noise: Floats) -> Floats:
    """Turn uniforms in (0, 1) into standard normals, rounded to a grid of 2**-20.

    The error is below 6e-7, and no score is above 8.3 in size.

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
    scores = _polynomial([coefficient / GRID for coefficient in _NUMERATOR], s)
    scores /= _polynomial(_DENOMINATOR, s)
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
    if array.ndim != 3 or (array.shape[0], array.shape[2]) != (n_rows, n_features):
        shape = f"of shape ({n_rows}, n_draws, {n_features})"
        raise refusal("scores", shape, array.shape, "Use normal_scores(noise)")
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


def exact_factor(factor: Floats) -> Floats:
    """Round each row of a factor so that its products with grid scores have no rounding error.

    A row is rounded to b binary digits below the power of two above its norm, with b such that
    ``sqrt(n) 2**b`` times the largest score is below 2**53: about 1e-8 of the norm. Returned is the
    transpose, in steps of the grid.
    """
    n_noise = max(factor.shape[1], 1)
    digits = int(np.floor(52.9 - np.log2(BOUND / GRID) - np.log2(n_noise) / 2))
    norms = np.sqrt((factor**2).sum(axis=1))
    _, exponents = np.frexp(norms)
    step = np.ldexp(1.0, exponents - digits)[:, None]
    rounded: Floats = np.ascontiguousarray((np.rint(factor / step) * (step * GRID)).T)
    return rounded


def combine(weights: Floats, columns: Floats) -> Floats:
    """Return ``weights @ columns`` summed in the order of the columns of `weights`.

    Shapes (n_out, n_in) and (n_in, n_lanes) with n_lanes from `lanes`: what comes out of a lane
    depends on that lane only.
    """
    out = np.zeros((len(weights), columns.shape[1]))
    if columns.shape[0]:
        for row, target in zip(weights, out, strict=True):
            np.einsum("k,kn->n", row, columns, out=target)
    return out


def lanes(X: Floats) -> Floats:
    """Transpose rows (n_rows, n_features) and fill up with zeros to whole vectors of lanes."""
    n_rows, n_features = X.shape
    padded = np.zeros((n_features, -(-max(n_rows, 1) // _LANES) * _LANES))
    padded[:, :n_rows] = X.T
    return padded


def sweep(matrix: Floats, known: Mask, tolerance: float = TOLERANCE) -> tuple[Floats, Floats]:
    """Regress the unknown features on the known ones: coefficients and residual covariance.

    The known features are swept, the one with the largest residual variance first. Those with no
    more than `tolerance` left follow from the others and get coefficients of zero.

    Parameters
    ----------
    matrix : array of shape (n_features, n_features)
        Correlations, or covariances whose diagonal is at most about one; 0 for a constant.
    known : bool array of shape (n_features,)
        The coalition.

    Returns
    -------
    coefficients, residual : arrays (n_unknown, n_known), (n_unknown, n_unknown)
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


def _subtract_outer(matrix: Floats, column: Floats, row: Floats) -> None:
    """Subtract ``column row'`` in place; nothing is summed, so no order of sums matters."""
    dger(-1.0, row, column, a=matrix.T, overwrite_a=1)


def lower_factor(matrix: Floats, tolerance: float = TOLERANCE) -> Floats:
    """Return the Cholesky factor, with a column of zeros where no more than `tolerance` is left."""
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

    `factor` is the exact, transposed L, (n_unknown, n_unknown).
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
        self,
        out: npt.NDArray[np.floating[Any]],
        X: Floats,
        noise: Floats,
        to_grid: Callable[[Floats], Floats],
    ) -> None:
        """Write draws of all features into `out` (n_rows, n_draws, n_features), known ones as in X.

        To multiply by a factor with columns of zeros for the known features is faster than to put
        the draws of the unknown ones between these. `to_grid` makes grid scores of noise.
        """
        mean = X.copy()
        mean[:, ~self.known] = self.mean(X[:, self.known])
        wide = np.zeros((len(self.factor), len(self.known)))
        wide[:, ~self.known] = self.factor
        _draw_into(out, mean, wide, noise, np.flatnonzero(~self.known), to_grid)


def _draw_into(
    out: npt.NDArray[np.floating[Any]],
    mean: Floats,
    factor: Floats,
    noise: Floats,
    features: npt.NDArray[np.intp],
    to_grid: Callable[[Floats], Floats],
) -> None:
    """Write ``mean + L scores`` into `out` (n_rows, n_draws, :), by blocks that fit a cache."""
    n_rows, n_draws, n_features = noise.shape
    size = max(_BLOCK_CELLS // (n_draws * factor.shape[1]), 1)
    for start in range(0, n_rows, size):
        block = slice(start, start + size)
        flat = noise[block].reshape(-1, n_features)
        some = flat if len(features) == n_features else np.take(flat, features, axis=1)
        scores = to_grid(some)
        part = (scores @ factor).reshape(-1, n_draws, factor.shape[1])
        np.add(part, mean[block, None, :], out=out[block], casting="same_kind")


class Normal:
    """A multivariate normal that can be conditioned on any coalition. Immutable; thread-safe.

    What belongs to a coalition is kept for the last coalitions, in at most 32 MiB or one of them.

    Examples
    --------
    >>> normal = Normal(np.zeros(2), np.array([[1.0, 0.6], [0.6, 1.0]]))
    >>> given = normal.given(np.array([True, False]))
    >>> given.mean(np.array([[2.0]]))
    array([[1.2]])
    """

    def __init__(self, mean: Floats, covariance: Floats) -> None:
        self.mean = mean
        self.scale = np.sqrt(covariance.diagonal())
        divisor = np.where(self.scale > 0, self.scale, 1.0)
        self.correlation: Floats = covariance / divisor[:, None] / divisor
        # The division leaves 1 - 1e-16 on some of the diagonal, and a copy should be a copy.
        np.fill_diagonal(self.correlation, self.scale > 0)
        self._n_kept = max(1, 2**25 // (8 * max(len(mean), 1) ** 2))
        self._kept: OrderedDict[bytes, Conditional] = OrderedDict()
        self._lock = Lock()

    def __getstate__(self) -> dict[str, object]:
        state = self.__dict__.copy()
        del state["_lock"]
        state["_kept"] = OrderedDict()
        return state

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        self._lock = Lock()

    def determined(self) -> Mask:
        """Tell which features follow from those before them (constants follow from nothing)."""
        flags: Mask = lower_factor(self.correlation).diagonal() == 0
        return flags

    def given(self, known: Mask) -> Conditional:
        """Return the distribution of the unknown features given the known ones."""
        key = known.tobytes()
        with self._lock:
            kept = self._kept.get(key)
            if kept is not None:
                self._kept.move_to_end(key)
                return kept
        made = self._condition(known)
        with self._lock:
            self._kept[key] = made
            while len(self._kept) > self._n_kept:
                self._kept.popitem(last=False)
        return made

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
