"""Piecewise linear functions and step functions, quick to evaluate at many points."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from dsage.samplers.checks import Floats, Ints

_MAX_BINS = 2**15
_BINS_PER_KNOT = 16
# Points at a time: with their temporary arrays they fit into a processor's cache.
_CELLS = 2**14
# Bins begin earlier by this share of their width: rounding may move a point to the bin above.
_MARGIN = 1e-3


class Knots:
    """Ascending, distinct numbers, and the last of them that is not above a point.

    Instead of searching the knots for each point, a table of bins of equal width gives the starting
    point.

    Parameters
    ----------
    knots : array of shape (n_knots,)
        Two or more.

    Examples
    --------
    >>> Knots(np.array([0.0, 1.0, 3.0])).find(np.array([0.5, 1.0, 2.0, 3.0])).tolist()
    [0, 1, 1, 2]
    """

    def __init__(self, knots: Floats) -> None:
        self.low, self.high = float(knots[0]), float(knots[-1])
        self._next = np.append(knots[1:], np.inf)
        n_bins = min(_BINS_PER_KNOT * len(knots), _MAX_BINS)
        self._bins_per_unit = n_bins / (self.high - self.low)
        edges = self.low + (np.arange(n_bins + 1) - _MARGIN) / self._bins_per_unit
        before = np.searchsorted(knots, edges, side="right") - 1
        self._first = np.maximum(before, 0).astype(np.int32)
        ends = np.append(edges[1:] + 2 * _MARGIN / self._bins_per_unit, np.inf)
        last = np.searchsorted(knots, ends, side="right") - 1
        self._n_steps = int((last - self._first).max())

    def find(self, points: Floats) -> npt.NDArray[np.int32]:
        """Return the positions of the knots, for points from `low` to `high`."""
        place = points - self.low
        place *= self._bins_per_unit
        at: npt.NDArray[np.int32] = self._first.take(place.astype(np.int32), mode="clip")
        for _ in range(self._n_steps):
            at += points >= self._next.take(at)
        return at


class Curves:
    """Piecewise linear functions of the same knots, constant outside of them.

    Each equals ``numpy.interp(x, knots, values)``.

    Parameters
    ----------
    knots : array of shape (n_knots,)
        Two or more, ascending and distinct.
    values : array of shape (n_curves, n_knots)

    Attributes
    ----------
    slopes : array of shape (n_curves, n_knots)
        The slope after each knot.

    Examples
    --------
    >>> curves = Curves(np.array([0.0, 1.0, 3.0]), np.array([[0.0, 2.0, 3.0], [0.0, 1.0, 0.0]]))
    >>> curves(np.array([[-1.0, 0.5, 2.0], [0.5, 2.0, 9.0]]), np.array([0, 1]))
    array([[0. , 1. , 2.5],
           [0.5, 0.5, 0. ]])
    """

    def __init__(self, knots: Floats, values: Floats) -> None:
        self.knots, self.values = knots, np.ascontiguousarray(values)
        self._places = Knots(knots)
        slopes = np.diff(values, axis=1) / np.diff(knots)
        self.slopes: Floats = np.append(slopes, np.zeros((len(values), 1)), axis=1)

    def __call__(self, x: Floats, chosen: Ints) -> Floats:
        """Return the values of chosen curves at points (n_chosen, ...), in the same shape."""
        points = np.clip(x, self._places.low, self._places.high)
        at = self._places.find(points)
        points -= self.knots.take(at)
        first = chosen * len(self.knots)
        at = at + first.reshape(-1, *[1] * (points.ndim - 1))
        points *= self.slopes.take(at)
        points += self.values.take(at)
        return points

    def write(self, out: Floats, x: Floats, places: Ints, chosen: Ints) -> None:
        """Write the values of chosen curves at ``x[places]`` into ``out[places]``."""
        _write(self, out, x, places, chosen)


class Steps:
    """Step functions of one variable, each with its own places of the steps.

    Parameters
    ----------
    places : sequence of arrays of shape (n_steps,)
        The ascending places at which each function takes its next level.
    levels : sequence of arrays of shape (n_steps + 1,)
        Its levels.
    low, high : float
        The ends of the places.

    Examples
    --------
    >>> steps = Steps([np.array([0.0, 0.5]), np.empty(0)], [np.arange(3.0), np.ones(1)], -1.0, 1.0)
    >>> steps(np.array([[-2.0, 0.0, 0.5], [0.0, 0.0, 0.0]]), np.array([0, 1]))
    array([[0., 1., 2.],
           [1., 1., 1.]])
    """

    def __init__(
        self, places: Sequence[Floats], levels: Sequence[Floats], low: float, high: float
    ) -> None:
        n_bins = _MAX_BINS >> 3
        self._low, self._bins_per_unit, self._n_bins = low, n_bins / (high - low), n_bins
        # After the last step of a function there is no next one.
        self._next = np.concatenate([np.append(each, np.inf) for each in places])
        self._levels = np.concatenate(levels)
        starts = np.cumsum([0, *map(len, levels)])[:-1]
        edges = low + (np.arange(n_bins + 1) - _MARGIN) / self._bins_per_unit
        # The lowest bin also has all points below.
        edges[0] = -np.inf
        ends = np.append(edges[1:] + 2 * _MARGIN / self._bins_per_unit, np.inf)
        first = [np.searchsorted(each, edges, side="right") for each in places]
        last = [np.searchsorted(each, ends, side="right") for each in places]
        self._n_steps = int((np.array(last) - np.array(first)).max(initial=0))
        self._first = (np.array(first) + starts[:, None]).astype(np.int32).ravel()

    def __call__(self, x: Floats, chosen: Ints) -> Floats:
        """Return the levels of chosen functions at points (n_chosen, ...), in the same shape."""
        place = x - self._low
        place *= self._bins_per_unit
        np.maximum(place, 0.0, out=place)
        np.minimum(place, self._n_bins, out=place)
        bins = place.astype(np.int32)
        bins += (chosen * (self._n_bins + 1)).astype(np.int32).reshape(-1, *[1] * (x.ndim - 1))
        at = self._first.take(bins)
        for _ in range(self._n_steps):
            at += x >= self._next.take(at)
        found: Floats = self._levels.take(at)
        return found

    def write(self, out: Floats, x: Floats, places: Ints, chosen: Ints) -> None:
        """Write the levels of chosen functions at ``x[places]`` into ``out[places]``."""
        _write(self, out, x, places, chosen)


def _write(
    functions: Callable[[Floats, Ints], Floats], out: Floats, x: Floats, places: Ints, chosen: Ints
) -> None:
    step = max(1, _CELLS // max(x[0].size, 1))
    for start in range(0, len(places), step):
        some = places[start : start + step]
        out[some] = functions(x[some], chosen[start : start + step])
