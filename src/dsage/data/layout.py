"""The columns of a data set, to turn data frames into matrices and back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Self

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pandas as pd

from dsage._check import check_members, check_shape, refusal, shown
from dsage.data.columns import Column
from dsage.data.frames import Frame
from dsage.data.missing import check_finite

Floats = npt.NDArray[np.float64]


class Layout:
    """The columns of a data set, to turn data frames into matrices and back.

    Numbers become floats: whole numbers beyond 2**53 are rounded, with a warning. Strings,
    booleans, categories and other objects, and the columns named in `discrete`, become codes
    0 .. n_categories - 1: declared categories in their order (all of them, seen or not), ``False``
    before ``True``, other values sorted. `n_categories` is 0 for continuous columns; those that
    hold whole numbers, to which `decode` rounds, are marked in `is_whole`.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"age": [31, 54], "sex": pd.Categorical(["m", "f"], ["m", "f", "x"])})
    >>> layout = Layout.of(frame)
    >>> layout.n_categories
    array([0, 3])
    >>> matrix = layout.encode(frame)
    >>> matrix
    array([[31.,  0.],
           [54.,  1.]])
    >>> layout.decode(matrix).equals(frame)
    True
    """

    def __init__(self, kind: str, columns: Sequence[Column]) -> None:
        self.kind = kind
        self.names = tuple(column.name for column in columns)
        counts = [len(column.categories or ()) for column in columns]
        self.n_categories: npt.NDArray[np.intp] = np.array(counts, np.intp)
        is_whole = [column.limits is not None for column in columns]
        self.is_whole: npt.NDArray[np.bool_] = np.array(is_whole, bool)
        self._columns = tuple(columns)

    @classmethod
    def of(cls, data: Any, *, discrete: str | Iterable[str] = ()) -> Self:  # noqa: ANN401
        """Learn the layout of a data frame (pandas, polars, pyarrow) or of an array.

        The categories of the columns of numbers in `discrete` are the values that occur.
        """
        frame = Frame(data)
        if frame.library not in ("pandas", "polars", "pyarrow", "numpy"):
            condition, advice = "of pandas, polars or pyarrow", "Convert it to one of them"
            raise refusal("the data frame", condition, frame.library, advice, TypeError)
        names = tuple(frame.kinds)
        classes = check_members(discrete, names, "discrete", "the columns of the data")
        columns = [Column.of(name, frame.column(name), discrete=name in classes) for name in names]
        return cls(frame.library, columns)

    def __repr__(self) -> str:
        counts = self.n_categories.tolist()
        return f"Layout(kind={self.kind!r}, names={self.names}, n_categories={counts})"

    def encode(self, data: Any, known: npt.NDArray[np.bool_] | None = None) -> Floats:  # noqa: ANN401
        """Return data as a matrix (n_rows, n_features), classes as codes.

        Columns of a data frame are found by name, in any order; further columns are ignored. If
        the layout is that of a data frame, an array is taken for an encoded matrix. If `known` is
        given, the other columns are not read, and are 0.
        """
        frame = Frame(data, self.names)
        is_encoded = frame.is_array and self.kind != "numpy"
        encoded = np.zeros((frame.n_rows, len(self.names)), order="F")
        for position in range(len(self.names)) if known is None else np.flatnonzero(known):
            column = self._columns[position]
            encode = column.check_encoded if is_encoded else column.encode
            encoded[:, position] = encode(frame.column(column.name))
        check_finite(encoded, self.names)
        return np.ascontiguousarray(encoded)

    def decode(self, matrix: npt.NDArray[np.floating[Any]]) -> Any:  # noqa: ANN401
        """Return a matrix (n_rows, n_features) in the container of the training data.

        Names, dtypes and categories are those of the training data. Columns of integers are
        rounded, half to even, and clipped to the range of their type. Rows are numbered from 0.
        Memory may be shared with `matrix`.
        """
        matrix = np.asarray(matrix)
        advice = f"The columns are {shown(self.names)}; reshape draws to rows first"
        check_shape(matrix, ("n_rows", len(self.names)), "the matrix", advice)
        if self.kind == "numpy":
            return self._decode_array(matrix)
        if self.kind == "pandas" and self._is_plain(matrix.dtype):
            return pd.DataFrame(matrix, columns=list(self.names), copy=False)
        by_column = np.asfortranarray(matrix)
        columns = {
            column.name: column.decode(by_column[:, position], self.kind)
            for position, column in enumerate(self._columns)
        }
        if self.kind == "pandas":
            return pd.DataFrame(columns, index=range(len(matrix)), copy=False)
        # narwhals itself would drop the dictionaries of pyarrow when it makes a table.
        library = nw.Implementation.from_backend(self.kind).to_native_namespace()  # type: ignore[arg-type]
        return (library.table if self.kind == "pyarrow" else library.DataFrame)(columns)

    def _decode_array(self, matrix: npt.NDArray[Any]) -> npt.NDArray[Any]:
        if self._is_plain(matrix.dtype):
            return matrix
        decoded = np.empty(matrix.shape, self._columns[0].dtype)
        for position, column in enumerate(self._columns):
            decoded[:, position] = column.decode(matrix[:, position], "numpy")
        return decoded

    def _is_plain(self, dtype: np.dtype[Any]) -> bool:
        """Return whether all columns are floats of this type, so that nothing is converted."""
        return all(column.categories is None and column.dtype == dtype for column in self._columns)
