"""Values of normal scores, moved to possible ones."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dsage.data.possible import Codes, Possible, Range
from dsage.samplers.checks import Floats, Mask
from dsage.samplers.curve import Curves, Steps

# Columns of at most this many possible values become step functions.
_MOST_LEVELS = 256


class PossibleSteps:
    """The curves that turn normal scores into values, followed by moving these to possible ones.

    If a column has few possible values, both together are one step function of the score, which
    takes less time than either of them.

    Parameters
    ----------
    curves : Curves
        The values of each column.
    possible : Possible
        The possible values.
    """

    def __init__(self, curves: Curves, possible: Possible) -> None:
        self._curves = curves
        few = {at: each for at, each in possible.columns.items() if _count(each) <= _MOST_LEVELS}
        self._is_stepped: Mask = np.isin(np.arange(len(curves.values)), list(few))
        # The number of each column among those with steps.
        self._numbers = np.cumsum(self._is_stepped) - 1
        self._steps = find_steps(curves, few) if few else None
        rest = {at: each for at, each in possible.columns.items() if at not in few}
        self._rest = Possible(rest, possible.exclusive)

    def write(self, out: Floats, scores: Floats, known: Mask) -> None:
        """Write the values of unknown features at scores, (n_features, n_rows, n_draws) each.

        `out` already has the values of the known ones.
        """
        smooth = np.flatnonzero(~known & ~self._is_stepped)
        self._curves.write(out, scores, smooth, smooth)
        if self._steps is not None:
            stepped = np.flatnonzero(~known & self._is_stepped)
            self._steps.write(out, scores, stepped, self._numbers[stepped])
        self._rest.snap(out.transpose(1, 2, 0), known)


def _count(possible: Codes | Range) -> float:
    """Return the number of possible values."""
    if isinstance(possible, Codes):
        return len(possible.values) or np.inf
    return possible.high - possible.low + 1.0


def find_steps(curves: Curves, possible: dict[int, Codes | Range]) -> Steps:
    """Return ascending curves with their values moved to possible ones, as step functions.

    A step is at the smallest number at which the curve is moved to the next level: bisection finds
    it exactly.

    Examples
    --------
    >>> curves = Curves(np.array([0.0, 1.0]), np.array([[0.0, 2.0]]))
    >>> find_steps(curves, {0: Range(0.0, 2.0)})(np.array([[0.2, 0.3, 0.8]]), np.array([0]))
    array([[0., 1., 2.]])
    """
    levels = [_levels(each) for each in possible.values()]
    columns = np.repeat(list(possible), [len(each) - 1 for each in levels])
    above = np.concatenate([each[1:] for each in levels])
    middles = np.concatenate([each[:-1] / 2 + each[1:] / 2 for each in levels])
    is_whole = np.array([isinstance(possible[column], Range) for column in columns.tolist()], bool)

    def is_past(values: Floats) -> npt.NDArray[np.bool_]:
        # Whole numbers are rounded, and codes end in the middle between two of them.
        past: npt.NDArray[np.bool_] = np.where(is_whole, np.rint(values) >= above, values > middles)
        return past

    knots = curves.knots
    # The first knot at which each step is past: the step is between it and the one before. Where
    # the curve stays at the middle between two levels, it depends on how that is rounded.
    sides = np.where(is_past(middles), "left", "right")
    last = np.array(
        [
            np.searchsorted(curves.values[column], middle, side=side)
            for column, middle, side in zip(columns, middles, sides, strict=True)
        ],
        dtype=np.intp,
    )
    between = np.clip(last, 1, len(knots) - 1)
    low, high = knots[between - 1].copy(), knots[between].copy()
    while True:
        middle = low / 2 + high / 2
        is_open = (middle > low) & (middle < high)
        if not is_open.any():
            break
        past = is_past(curves(middle, columns))
        np.copyto(high, middle, where=is_open & past)
        np.copyto(low, middle, where=is_open & ~past)
    # Curves are constant before the first knot and after the last one.
    high[last == 0], high[last == len(knots)] = -np.inf, np.inf
    ends = np.cumsum([len(each) - 1 for each in levels])[:-1]
    return Steps(np.split(high, ends), levels, float(knots[0]), float(knots[-1]))


def _levels(possible: Codes | Range) -> Floats:
    """Return the possible values, ascending."""
    if isinstance(possible, Codes):
        return possible.values
    return np.arange(possible.low, possible.high + 1.0)
