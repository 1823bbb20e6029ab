"""The one gate between data frames and arrays."""

from __future__ import annotations

from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt

from dsage._check import check_names, message


def is_frame(data: object) -> bool:
    """Tell whether `data` is a data frame of a library that narwhals knows; refuse a lazy one."""
    if nw.dependencies.is_polars_lazyframe(data):
        raise TypeError(
            message("the data frame", "eager", type(data).__name__, "Call its collect() first")
        )
    return nw.dependencies.is_into_dataframe(data)


def square_matrix(data: Any) -> tuple[npt.NDArray[Any], tuple[str, ...]]:  # noqa: ANN401
    """Return the values and the names of a square data frame whose rows are its columns.

    Row labels, where the frame has any that are strings, must be the column names; they are
    brought into the order of the columns.
    """
    frame = nw.from_native(data, eager_only=True)
    names = check_names(frame.columns, "the columns of the data frame")
    if len(frame) != len(names):
        raise ValueError(
            message(
                "the adjacency data frame",
                "square",
                frame.shape,
                "Give one row and one column a node, in the same order",
            )
        )
    index = nw.maybe_get_index(frame)
    if index is not None and any(isinstance(label, str) for label in index):
        if set(index) != set(names):
            odd = sorted(set(map(str, index)) ^ set(names))
            raise ValueError(
                message(
                    "the index of the adjacency data frame",
                    "the same as its columns",
                    odd,
                    "These names stand on one side only; reset the index or rename them",
                )
            )
        data = data.loc[list(names)]
        frame = nw.from_native(data, eager_only=True)
    return np.asarray(frame.to_numpy()), names


def take_rows(data: Any, rows: npt.NDArray[np.intp]) -> Any:  # noqa: ANN401
    """Return some rows of a data frame or an array, by their numbers, as the same kind."""
    if is_frame(data):
        return nw.from_native(data, eager_only=True)[rows].to_native()
    return np.asarray(data)[rows]
