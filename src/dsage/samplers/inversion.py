"""Positions drawn with given weights, by inverting distribution functions."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dsage.samplers.checks import Floats, Ints

CELLS = 1 << 15
"""Weights at a time: with their temporary arrays they fit into a processor's cache."""

# Binary digits of a sum of integers, and of the number of weights at a time.
_DIGITS, _CELL_DIGITS = 62, 16


def rows_at_once(n_columns: int) -> int:
    """Return how many rows of weights to work on at a time."""
    return max(1, CELLS // n_columns)


def draw_positions(weights: Floats, u: Floats) -> Ints:
    """Return positions drawn with probabilities proportional to weights.

    Position i of a row is where its distribution function passes the uniform. Weights are cut to
    few enough binary digits that their sums are exact, as integers: one cumulative sum and one
    search then serve many rows, and the result of a row does not depend on the others.

    Parameters
    ----------
    weights : array of shape (n_rows, n_columns)
        Weights from 0 to 1, and at least one of each row is 1. Those below 2**-46, or below
        ``n_columns / 2**61`` if there are more than 2**15 columns, count as 0.
    u : array of shape (n_rows, n_draws)
        Uniforms in (0, 1).

    Examples
    --------
    >>> draw_positions(np.array([[0.5, 1.0, 0.5]]), np.array([[0.2, 0.3, 0.7, 0.8]]))
    array([[0, 1, 1, 2]])
    """
    n_columns = weights.shape[1]
    size = rows_at_once(n_columns)
    scale = 2.0 ** (_DIGITS - max(n_columns.bit_length(), _CELL_DIGITS))
    found = np.empty(u.shape, np.intp)
    for start in range(0, len(weights), size):
        some = slice(start, start + size)
        found[some] = _invert(weights[some], u[some], scale)
    return found


def _invert(weights: Floats, u: Floats, scale: float) -> Ints:
    n_rows, n_columns = weights.shape
    steps = np.empty(weights.shape, np.int64)
    np.multiply(weights, scale, out=steps, casting="unsafe")
    sums: npt.NDArray[np.int64] = np.cumsum(steps)
    ends = sums[n_columns - 1 :: n_columns, None]
    starts = np.zeros_like(ends)
    starts[1:] = ends[:-1]
    total = ends - starts
    # A product may be rounded to the total itself.
    offset = np.minimum((u * total).astype(np.int64), total - 1)
    found: Ints = np.searchsorted(sums, starts + offset, side="right")
    found -= n_columns * np.arange(n_rows)[:, None]
    return found
