"""Piecewise linear functions, quick to evaluate at many points."""

from __future__ import annotations

import numpy as np

from dsage.samplers.checks import Floats

_MAX_BINS = 2**14
_BINS_PER_KNOT = 8


class Curve:
    """A piecewise linear function, constant outside its knots.

    It equals ``numpy.interp(x, knots, values)``. Instead of searching the knots for each point, a
    table of bins of equal width tells where to begin.

    Parameters
    ----------
    knots : array of shape (n_knots,)
        Two or more, ascending and distinct.
    values : array of shape (n_knots,)

    Examples
    --------
    >>> Curve(np.array([0.0, 1.0, 3.0]), np.array([0.0, 2.0, 3.0]))(np.array([-1.0, 0.5, 2.0]))
    array([0. , 1. , 2.5])
    """

    def __init__(self, knots: Floats, values: Floats) -> None:
        self._knots, self._values = knots, values
        self._slopes = np.append(np.diff(values) / np.diff(knots), 0.0)
        self._next = np.append(knots[1:], np.inf)
        n_bins = min(_BINS_PER_KNOT * len(knots), _MAX_BINS)
        self._low, self._high = float(knots[0]), float(knots[-1])
        self._bins_per_unit = n_bins / (self._high - self._low)
        edges = self._low + np.arange(n_bins + 1) / self._bins_per_unit
        before = np.searchsorted(knots, edges, side="right") - 1
        # One knot earlier, since the bin of a point near an edge may be rounded.
        self._first = np.maximum(before - 1, 0).astype(np.int32)
        self._n_steps = int(np.diff(before, append=len(knots) - 1).max()) + 1

    def __call__(self, x: Floats) -> Floats:
        """Return the values at points, in an array of the same shape."""
        points = np.clip(x, self._low, self._high)
        place = points - self._low
        place *= self._bins_per_unit
        at = self._first.take(place.astype(np.int32), mode="clip")
        for _ in range(self._n_steps):
            at += points >= self._next.take(at)
        points -= self._knots.take(at)
        points *= self._slopes.take(at)
        points += self._values.take(at)
        return points
