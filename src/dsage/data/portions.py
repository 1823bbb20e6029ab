"""Large tables portion by portion, to save memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from dsage.data.frames import take_rows
from dsage.data.layout import Layout

MAX_BYTES = 2**23
"""Memory of a portion; what is made of it takes a few times as much."""


def row_slices(n_rows: int, n_bytes: int, max_bytes: int = MAX_BYTES) -> Iterator[slice]:
    """Yield slices of rows of `n_bytes` each; a table that is not large comes in one.

    Examples
    --------
    >>> list(row_slices(5, 8, max_bytes=16))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    size = max(1, max_bytes // max(n_bytes, 1))
    for start in range(0, n_rows, size):
        yield slice(start, min(start + size, n_rows))


def as_slice(places: npt.NDArray[np.intp]) -> npt.NDArray[np.intp] | slice:
    """Return consecutive, ascending places as a slice, which NumPy copies faster.

    Examples
    --------
    >>> as_slice(np.array([3, 4, 5])), as_slice(np.array([3, 5]))
    (slice(3, 6, None), array([3, 5]))
    """
    if len(places) and (np.diff(places) == 1).all():
        return slice(int(places[0]), int(places[-1]) + 1)
    return places


def encoded_portions(layout: Layout, X: Any, n_rows: int) -> Iterator[npt.NDArray[np.float64]]:  # noqa: ANN401
    """Yield the rows of a table as matrices, portion by portion; see `Layout.encode`."""
    slices = list(row_slices(n_rows, 8 * len(layout.names)))
    if len(slices) == 1:
        yield layout.encode(X)
        return
    for some in slices:
        yield layout.encode(take_rows(X, np.arange(some.start, some.stop)))
