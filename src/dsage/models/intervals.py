"""The intervals in which numbers of many columns are, found for all columns at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.intp]

# Cells of equal width for each edge of the column with the most edges, and for each column.
_CELLS_PER_EDGE, _FEWEST_CELLS, _MOST_CELLS = 16, 1024, 4096
# Cells begin earlier and end later by this share of their width: rounding may move a number.
_MARGIN = 1e-3
# Cells that are narrower, or wider than its inverse, are not made.
_LEAST_WIDTH = 1e-290
# With more edges in a cell, it is faster to search the edges of the column.
_MOST_STEPS = 3


class Intervals:
    """The intervals between the edges of columns, and one for missing values, all numbered.

    Instead of searching the edges for each number, a table of cells of equal width gives the first
    interval that is possible.

    Parameters
    ----------
    edges : sequence of arrays of shape (n_edges,)
        The ascending, distinct, finite edges of each column. Intervals include the upper edge.

    Attributes
    ----------
    starts : int array of shape (n_columns,)
        The number of the first interval of each column. The last one is that of missing values.

    Examples
    --------
    >>> intervals = Intervals([np.array([0.0, 2.0]), np.array([5.0])])
    >>> intervals.starts
    array([0, 4])
    >>> intervals.find(np.array([[0.0, 1.0, np.nan], [5.0, 6.0, np.nan]]), np.arange(2))
    array([[0, 1, 3],
           [4, 5, 6]])
    """

    def __init__(self, edges: Sequence[Floats]) -> None:
        self._edges = list(edges)
        sizes = np.array([len(each) + 2 for each in edges], dtype=np.intp)
        self.starts: Places = np.cumsum(sizes) - sizes
        self._missing = self.starts + sizes - 1
        most = max(map(len, edges), default=0)
        self._n_cells = min(max(_CELLS_PER_EDGE * most, _FEWEST_CELLS), _MOST_CELLS)
        # After the last edge there is no next one.
        end = np.full(2, np.inf)
        self._upper = np.concatenate([end[:0], *(np.append(each, end) for each in edges)])
        self._low, self._scale = np.zeros(len(sizes)), np.ones(len(sizes))
        self._first = np.zeros((len(sizes), self._n_cells + 1), dtype=np.intp)
        n_steps = np.array([self._fill(column) for column in range(len(sizes))], dtype=np.intp)
        self._is_searched = n_steps > _MOST_STEPS
        self._n_steps: Places = np.where(self._is_searched, 0, n_steps)

    def _fill(self, column: int) -> int:
        """Make the cells of a column, and return the most edges that one of them has."""
        edges, first = self._edges[column], self._first[column]
        first[:] = self.starts[column]
        low = edges[0] if len(edges) else 0.0
        width = edges[-1] / self._n_cells - low / self._n_cells if len(edges) else 0.0
        if not _LEAST_WIDTH < width < 1.0 / _LEAST_WIDTH:
            # A single cell.
            return len(edges)
        self._low[column], self._scale[column] = low, 1.0 / width
        places = np.arange(self._n_cells + 1.0)
        left = low + (places - _MARGIN) * width
        right = low + (places + 1.0 + _MARGIN) * width
        # The outer cells also have all numbers below and above.
        left[0], right[-1] = -np.inf, np.inf
        before = np.searchsorted(edges, left)
        first += before
        return int((np.searchsorted(edges, right) - before).max())

    def find(self, x: Floats, columns: Places) -> Places:
        """Return the numbers of the intervals of values (n_chosen, n_points) of chosen columns."""
        is_missing = np.isnan(x)
        has_missing = bool(is_missing.any())
        points = np.where(is_missing, 0.0, x) if has_missing else x
        with np.errstate(over="ignore"):
            place = points - self._low[columns, None]
            place *= self._scale[columns, None]
        np.maximum(place, 0.0, out=place)
        np.minimum(place, self._n_cells, out=place)
        cells = place.astype(np.intp)
        cells += columns[:, None] * (self._n_cells + 1)
        found: Places = self._first.take(cells)
        n_steps = self._n_steps[columns]
        for step in range(int(n_steps.max(initial=0))):
            at = np.flatnonzero(n_steps > step)
            if 2 * len(at) > len(columns):
                found += points > self._upper.take(found)
            else:
                some = found[at]
                found[at] = some + (points[at] > self._upper.take(some))
        for number in np.flatnonzero(self._is_searched[columns]).tolist():
            column = columns[number]
            places = np.searchsorted(self._edges[column], points[number])
            found[number] = self.starts[column] + places
        if has_missing:
            np.copyto(found, self._missing[columns, None], where=is_missing)
        return found
