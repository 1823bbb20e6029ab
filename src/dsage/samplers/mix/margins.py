"""Margins of numbers: unchanged, in standard units, or as normal scores."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Self

import numpy as np
from scipy.special import ndtri

from dsage.samplers.checks import Floats

# Between the knots the scores are linear. More knots follow the noise of the margins.
_MAX_KNOTS = 200
# Cells of equal width in which the pieces are found.
_MAX_CELLS = 1 << 13


class Scale(StrEnum):
    """The transformation of numbers for a mixture."""

    STANDARD = "standard units"
    SCORES = "normal scores"


@dataclass(frozen=True, eq=False)
class Margins:
    """Monotone, piecewise linear maps of columns to the scale of the mixture, and back.

    The first and the last piece extend beyond the knots. `knots` and `scores` have one array per
    column; in standard units there are two knots, one standard deviation apart.
    """

    knots: tuple[Floats, ...]
    scores: tuple[Floats, ...]

    @classmethod
    def of(cls, X: Floats, scale: Scale) -> Self:
        """Learn the maps of columns (n_rows, n_numbers); NaN entries are left out."""
        pairs = [_learn(column[~np.isnan(column)], scale) for column in X.T]
        return cls(tuple(knots for knots, _ in pairs), tuple(scores for _, scores in pairs))

    def to_scores(self, X: Floats) -> Floats:
        """Return columns (n_rows, n_numbers) on the scale of the mixture."""
        out = np.empty(X.shape)
        for at in range(X.shape[1]):
            out[:, at] = _interpolate(X[:, at], self.knots[at], self.scores[at])
        return out

    def to_values(self, scores: Floats, at: int) -> Floats:
        """Return values of one column from scores of any shape."""
        line = self._lines[at]
        return (
            _interpolate(scores, self.scores[at], self.knots[at]) if line is None else line(scores)
        )

    @cached_property
    def _lines(self) -> tuple[_Line | None, ...]:
        """The maps from scores to values; None where they are not worth a table of cells."""
        return tuple(map(_Line.of, self.scores, self.knots))

    def log_slopes(self, X: Floats) -> Floats:
        """Return the logarithm of the product of the slopes at each row; NaN entries count 0."""
        total = np.zeros(len(X))
        for at in range(X.shape[1]):
            knots, scores = self.knots[at], self.scores[at]
            piece = _pieces(X[:, at], knots)
            slope = (scores[piece + 1] - scores[piece]) / (knots[piece + 1] - knots[piece])
            total += np.where(np.isnan(X[:, at]), 0.0, np.log(slope))
        return total


class _Line:
    """A piecewise linear function, whose pieces are found by cells of equal width.

    No cell has two knots, so the piece is that of the start of the cell or the next one. This takes
    a fifth of the time of a binary search.
    """

    def __init__(self, knots: Floats, values: Floats, n_cells: int) -> None:
        self._knots, self._values = knots, values
        self._slopes = np.diff(values) / np.diff(knots)
        self._last, self._rate = n_cells - 1.0, n_cells / (knots[-1] - knots[0])
        self._starts = _pieces(knots[0] + np.arange(n_cells) / self._rate, knots)
        self._ends = np.append(knots[1:-1], np.inf)

    @classmethod
    def of(cls, knots: Floats, values: Floats) -> Self | None:
        """Return the function; None if it has a single piece or needs too many cells."""
        if len(knots) == 2:
            return None
        n_cells = 1 + np.ceil((knots[-1] - knots[0]) / np.diff(knots).min())
        return cls(knots, values, int(n_cells)) if n_cells <= _MAX_CELLS else None

    def __call__(self, x: Floats) -> Floats:
        """Return the values at places of any shape."""
        cells = (x - self._knots[0]) * self._rate
        # Also where x is not a number.
        np.fmin(np.fmax(cells, 0.0, out=cells), self._last, out=cells)
        piece = self._starts.take(cells.astype(np.intp))
        piece += x > self._ends.take(piece)
        found: Floats = x - self._knots.take(piece)
        found *= self._slopes.take(piece)
        found += self._values.take(piece)
        return found


def _learn(values: Floats, scale: Scale) -> tuple[Floats, Floats]:
    center = float(values.mean()) if len(values) else 0.0
    spread = float(values.std()) if len(values) else 1.0
    spread = spread if spread > 0.0 else 1.0
    standard = np.array([center, center + spread]), np.array([0.0, 1.0])
    if scale is Scale.STANDARD or len(values) < 2:
        return standard
    ordered = np.sort(values)
    n = len(ordered)
    chosen = np.unique(np.linspace(0, n - 1, min(n, _MAX_KNOTS)).astype(np.intp))
    knots, first = np.unique(ordered[chosen], return_index=True)
    if len(knots) < 2:
        return standard
    scores = ndtri((chosen + 0.5) / n)
    # Equal values share the mean of their scores.
    sums = np.add.reduceat(scores, first)
    counts = np.diff(np.append(first, len(scores)))
    return knots, sums / counts


def _pieces(x: Floats, knots: Floats) -> np.ndarray[tuple[int, ...], np.dtype[np.intp]]:
    return np.clip(np.searchsorted(knots, x) - 1, 0, len(knots) - 2)


def _interpolate(x: Floats, knots: Floats, values: Floats) -> Floats:
    if len(knots) == 2:
        slope = (values[1] - values[0]) / (knots[1] - knots[0])
        line: Floats = values[0] + (x - knots[0]) * slope
        return line
    piece = _pieces(x, knots)
    low = knots[piece]
    slopes = np.diff(values) / np.diff(knots)
    broken: Floats = values[piece] + (x - low) * slopes[piece]
    return broken
