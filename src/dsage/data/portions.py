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


def encoded_portions(layout: Layout, X: Any, n_rows: int) -> Iterator[npt.NDArray[np.float64]]:  # noqa: ANN401
    """Yield the rows of a table as matrices, portion by portion; see `Layout.encode`."""
    slices = list(row_slices(n_rows, 8 * len(layout.names)))
    if len(slices) == 1:
        yield layout.encode(X)
        return
    for some in slices:
        yield layout.encode(take_rows(X, np.arange(some.start, some.stop)))
