"""Data frames and arrays behind one interface: names, columns, rows and dtypes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse

from dsage._check import check_names, check_shape, refusal, shown
from dsage.data.columns import check_kinds, column_kind, dtype_kind
from dsage.data.natives import take

Array = npt.NDArray[Any]

_COLUMNS = "the columns of the data frame"


class Frame:
    """A data frame or a two-dimensional array, opened once; nothing is copied.

    `names` are the columns of an array, ``X1, X2, ...`` by default; for a data frame, the columns
    to use, in this order. The `library` of an array is ``"numpy"``.
    """

    def __init__(self, data: Any, names: Iterable[str] | None = None) -> None:  # noqa: ANN401
        check_dense(data, "data")
        self._data, self.is_array = data, not is_frame(data)
        if not self.is_array:
            # Most frames are pandas', of which columns and rows are known without narwhals.
            self._is_pandas = type(data) is pd.DataFrame and data.columns.is_unique
            opened = data if self._is_pandas else self._opened
            self.library = "pandas" if self._is_pandas else _library(opened)
            columns = check_names(opened.columns, _COLUMNS)
            self.names = columns if names is None else check_names(names)
            check_columns(columns, self.names, _COLUMNS)
            self.n_rows = len(opened)
            return
        self.library = "numpy"
        self._array = as_matrix(data)
        self.n_rows, width = self._array.shape
        if names is None:
            self.names = tuple(f"X{number + 1}" for number in range(width))
        else:
            self.names = check_names(names)
            advice = f"Pass one column for each of {shown(self.names)}"
            check_shape(self._array, ("n_rows", len(self.names)), "data", advice)
        self._position = {name: column for column, name in enumerate(self.names)}

    @cached_property
    def _opened(self) -> nw.DataFrame[Any]:
        """The data frame as one of narwhals."""
        return open_frame(self._data)

    @property
    def dtypes(self) -> dict[str, Any]:
        """The dtype of each column: narwhals' for a data frame, NumPy's for an array."""
        if self.is_array:
            return dict.fromkeys(self.names, self._array.dtype)
        schema = self._opened.schema
        return {name: schema[name] for name in self.names}

    @property
    def kinds(self) -> dict[str, str]:
        """What each column holds: ``"number"``, ``"class"`` or ``"time"``; others are refused."""
        if not self.is_array and self._is_pandas:
            kinds = {name: column_kind(self.column(name)) for name in self.names}
        else:
            kinds = {name: dtype_kind(dtype) for name, dtype in self.dtypes.items()}
            # narwhals does not know all dtypes.
            unclear = [name for name, kind in kinds.items() if kind == "other"]
            kinds |= {name: column_kind(self.column(name)) for name in unclear}
        check_kinds(kinds.keys(), kinds.values())
        return kinds

    def column(self, name: str) -> Any:  # noqa: ANN401
        """Return a column as a series of its own library, or as a view of the array."""
        if self.is_array:
            return self._array[:, self._position[name]]
        return self._data[name] if self._is_pandas else self._opened[name].to_native()

    def select(self, names: Sequence[str]) -> Any:  # noqa: ANN401
        """Return some columns, in this order, in the container of the data."""
        if self.is_array:
            return self.matrix(names)
        return self._opened.select(*names).to_native()

    def matrix(
        self, names: Sequence[str] | None = None, rows: slice | npt.NDArray[np.intp] | None = None
    ) -> Array:
        """Return some columns and rows as an array of NumPy; by default all of them."""
        chosen = self.names if names is None else names
        if self.is_array:
            selected: Array = self._array if rows is None else self._array[rows]
            positions = [self._position[name] for name in chosen]
            is_whole = positions == list(range(selected.shape[1]))
            return selected if is_whole else selected[:, positions]
        frame = self._opened.select(*chosen)
        return np.asarray((frame if rows is None else frame[rows]).to_numpy())

    def with_column(self, name: str, values: Array) -> Any:  # noqa: ANN401
        """Return the data with one more column, as a data frame."""
        if self.is_array:
            return pd.DataFrame(self._array, columns=list(self.names)).assign(**{name: values})
        series = nw.new_series(name, values, backend=self._opened.implementation)
        return self._opened.with_columns(series).to_native()


def is_frame(data: object) -> bool:
    """Report whether narwhals knows `data` as a data frame; refuse a lazy one."""
    if isinstance(data, (np.ndarray, pd.DataFrame)):
        return isinstance(data, pd.DataFrame)
    if nw.dependencies.is_polars_lazyframe(data):
        advice = "Call its collect() first"
        raise refusal("the data frame", "eager", type(data).__name__, advice, TypeError)
    return nw.dependencies.is_into_dataframe(data)


def _library(frame: nw.DataFrame[Any]) -> str:
    return str(frame.implementation.name).lower()


def open_frame(data: Any) -> nw.DataFrame[Any]:  # noqa: ANN401
    """Return a data frame as a narwhals frame; its columns must have distinct names."""
    try:
        frame: nw.DataFrame[Any] = nw.from_native(data, eager_only=True)
    except nw.exceptions.DuplicateError as error:
        raise refusal("the columns", "of distinct names", str(error), "Rename some") from None
    return frame


def take_rows(data: Any, rows: npt.NDArray[np.intp]) -> Any:  # noqa: ANN401
    """Return some rows of a data frame or an array, by position, in the same container."""
    if not is_frame(data):
        return np.asarray(data)[rows]
    if type(data) is pd.DataFrame:
        return data.iloc[rows]
    try:
        return nw.from_native(data, eager_only=True)[rows].to_native()
    except NotImplementedError:
        # pyarrow cannot take rows of all types.
        columns = {name: take(data[name], rows) for name in data.column_names}
        return type(data).from_pydict(columns)


def square_matrix(data: Any) -> tuple[Array, tuple[str, ...]]:  # noqa: ANN401
    """Return the values and the names of a square data frame with a row for each column.

    String labels of the rows must be the column names; rows are put into the order of the columns.
    """
    frame = open_frame(data)
    names = check_names(frame.columns, _COLUMNS)
    if len(frame) != len(names):
        advice = "Pass one row and one column per node, in the same order"
        raise refusal("the adjacency data frame", "square", frame.shape, advice)
    index = nw.maybe_get_index(frame)
    if index is not None and any(isinstance(label, str) for label in index):
        if odd := set(index) ^ set(names):
            name, condition = "the index of the adjacency data frame", "the same as its columns"
            advice = "These names are in only one of them; reset the index or rename them"
            raise refusal(name, condition, sorted(map(str, odd)), advice)
        frame = open_frame(data.loc[list(names)])
    return np.asarray(frame.to_numpy()), names


def as_matrix(data: Any) -> Array:  # noqa: ANN401
    """Return `data` as a two-dimensional array of numbers, booleans or strings."""
    if np.ma.isMaskedArray(data):
        advice = "Drop or fill the masked values"
        raise refusal("data", "without a mask", type(data).__name__, advice, TypeError)
    array = np.asarray(data)
    if array.ndim != 2:
        found = array.shape if array.ndim else type(data).__name__
        condition = "a data frame or an array of shape (n_rows, n_columns)"
        advice = "Pass one row per observation and one column per variable"
        raise refusal("data", condition, found, advice)
    if array.dtype.kind == "O" or _was_converted_to_text(data, array):
        condition = "an array of numbers, booleans or strings"
        advice = "Use a data frame for columns of different types"
        raise refusal("data", condition, array.dtype, advice, TypeError)
    return array


def check_dense(data: Any, parameter: str) -> None:  # noqa: ANN401
    """Refuse sparse data, and objects that hold no rows."""
    if sparse.issparse(data):
        advice = f"Convert it with {parameter}.toarray(), and fit the model to the result"
        raise refusal(parameter, "dense", type(data).__name__, advice, TypeError)
    if isinstance(data, pd.DataFrame):
        dtypes = zip(data.columns, data.dtypes, strict=True)
        if thin := [str(name) for name, dtype in dtypes if isinstance(dtype, pd.SparseDtype)]:
            advice = f"Convert them with {parameter}.sparse.to_dense()"
            raise refusal(parameter, "of dense columns", thin, advice, TypeError)
    if data is None or isinstance(data, (str, bytes)):
        advice = "Read the data first, for example with pandas"
        raise refusal(parameter, "a data frame or an array", data, advice, TypeError)


def check_columns(
    columns: Sequence[str], names: Sequence[str], parameter: str, *, only: bool = False
) -> None:
    """Refuse columns without all of `names`; with `only`, also refuse further columns."""
    present, wanted = set(columns), set(names)
    absent = [name for name in names if name not in present]
    spare = [name for name in columns if name not in wanted] if only else []
    if absent or spare:
        condition = f"{'exactly' if only else 'at least'} {shown(names)}"
        advice = f"These are missing: {shown(absent)}" if absent else f"Drop {shown(spare)}"
        raise refusal(parameter, condition, list(columns), advice)


def _was_converted_to_text(data: Any, array: Array) -> bool:  # noqa: ANN401
    """Report whether NumPy converted numbers to strings because there are strings in the array."""
    if array.dtype.kind not in "US" or hasattr(data, "dtype"):
        return False
    return not all(isinstance(value, (str, bytes)) for value in np.asarray(data, object).flat)
