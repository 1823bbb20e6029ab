"""The one gate between data frames and arrays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Self

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pandas as pd

from dsage._check import check_members, check_names, refusal
from dsage.data.columns import Column, check_kinds, column_kind, missing, shown

Floats = npt.NDArray[np.float64]


def is_frame(data: object) -> bool:
    """Tell whether `data` is a data frame of a library that narwhals knows; refuse a lazy one."""
    if nw.dependencies.is_polars_lazyframe(data):
        raise refusal(
            "the data frame", "eager", type(data).__name__, "Call its collect() first", TypeError
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
        raise refusal(
            "the adjacency data frame",
            "square",
            frame.shape,
            "Give one row and one column a node, in the same order",
        )
    index = nw.maybe_get_index(frame)
    if index is not None and any(isinstance(label, str) for label in index):
        if set(index) != set(names):
            odd = sorted(set(map(str, index)) ^ set(names))
            raise refusal(
                "the index of the adjacency data frame",
                "the same as its columns",
                odd,
                "These names stand on one side only; reset the index or rename them",
            )
        data = data.loc[list(names)]
        frame = nw.from_native(data, eager_only=True)
    return np.asarray(frame.to_numpy()), names


def take_rows(data: Any, rows: npt.NDArray[np.intp]) -> Any:  # noqa: ANN401
    """Return some rows of a data frame or an array, by their numbers, as the same kind."""
    if is_frame(data):
        return nw.from_native(data, eager_only=True)[rows].to_native()
    return np.asarray(data)[rows]


def open_frame(data: Any) -> nw.DataFrame[Any]:  # noqa: ANN401
    """Return a data frame in narwhals' dress, or say which columns share a name."""
    try:
        frame: nw.DataFrame[Any] = nw.from_native(data, eager_only=True)
    except nw.exceptions.DuplicateError as error:
        raise refusal("the columns", "of distinct names", str(error), "Rename some") from None
    return frame


def as_matrix(data: Any, columns: str = "n_features") -> npt.NDArray[Any]:  # noqa: ANN401
    """Return an array of two dimensions and of one type, or say what is wrong with it."""
    if np.ma.isMaskedArray(data):
        raise refusal(
            "data", "without a mask", type(data).__name__, "Drop or fill what is masked", TypeError
        )
    array = np.asarray(data)
    if array.ndim != 2:
        raise refusal(
            "data",
            f"a data frame or an array of shape (n_rows, {columns})",
            type(data).__name__ if array.ndim == 0 else array.shape,
            "Give one row an observation and one column a variable",
        )
    if array.dtype.kind == "O" or _is_made_text(data, array):
        raise refusal(
            "data",
            "an array of numbers, booleans or strings",
            array.dtype,
            "Use a data frame for columns of different types",
            TypeError,
        )
    return array


def _is_made_text(data: Any, array: npt.NDArray[Any]) -> bool:  # noqa: ANN401
    """Tell whether NumPy made strings of numbers because strings stood beside them."""
    if array.dtype.kind not in "US" or hasattr(data, "dtype"):
        return False
    return not all(isinstance(value, (str, bytes)) for value in np.asarray(data, object).flat)


class Layout:
    """What the columns of a data set are, to turn frames into matrices and back.

    Numbers stay as they are, but become floats: whole numbers beyond 2**53 are rounded, with a
    warning. Strings, booleans, categories and other objects, and the columns
    named in `discrete`, become codes 0 .. n_categories - 1: declared categories in their order (all
    of them, seen or not), ``False`` before ``True``, other values sorted.

    Attributes
    ----------
    kind : {"pandas", "polars", "pyarrow", "numpy"}
        The container.
    names : tuple of str
        The columns; ``X1, X2, ...`` for an array.
    n_categories : int array of shape (n_features,)
        Number of levels of each column, 0 where it is continuous.
    is_whole : bool array of shape (n_features,)
        Which continuous columns hold whole numbers, to which `decode` rounds.

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
        self.n_categories: npt.NDArray[np.intp] = np.array(
            [0 if column.levels is None else len(column.levels) for column in columns], np.intp
        )
        self.is_whole: npt.NDArray[np.bool_] = np.array(
            [column.limits is not None for column in columns], bool
        )
        self._columns = tuple(columns)

    @classmethod
    def of(cls, data: Any, *, discrete: str | Iterable[str] = ()) -> Self:  # noqa: ANN401
        """Learn the layout of a data frame (pandas, polars, pyarrow) or of an array.

        Parameters
        ----------
        data : data frame or array of shape (n_rows, n_features)
            The training data.
        discrete : str or iterable of str, default=()
            Columns of numbers that are classes; their levels are the values that occur.
        """
        if is_frame(data):
            frame = open_frame(data)
            kind = _container(frame)
            names = check_names(frame.columns, "the columns of the data frame")
            natives: list[Any] = [frame[name].to_native() for name in names]
        else:
            kind = "numpy"
            natives = list(as_matrix(data).T)
            names = tuple(f"X{number + 1}" for number in range(len(natives)))
        check_kinds(names, [column_kind(native) for native in natives])
        classes = check_members(discrete, names, "discrete", "the columns of the data")
        columns = [
            Column.of(name, native, discrete=name in classes)
            for name, native in zip(names, natives, strict=True)
        ]
        return cls(kind, columns)

    def __repr__(self) -> str:
        counts = self.n_categories.tolist()
        return f"Layout(kind={self.kind!r}, names={self.names}, n_categories={counts})"

    def encode(self, data: Any, known: npt.NDArray[np.bool_] | None = None) -> Floats:  # noqa: ANN401
        """Return data as a matrix (n_rows, n_features), classes as codes.

        Columns of a frame are found by name: their order is free, and further columns are
        ignored. Where a frame was learned, an array is taken for a matrix that is encoded
        already. Where `known` is given, the other columns are not looked at, and are 0.

        Raises
        ------
        ValueError
            Where columns are absent, or have missing or infinite values, or levels that were
            not learned: each error names them.
        TypeError
            Where a column of numbers was learned and one of classes is given, or the reverse.
        """
        looked = range(len(self.names)) if known is None else np.flatnonzero(known)
        if is_frame(data):
            frame = open_frame(data)
            self._check_present(check_names(frame.columns, "the columns of the data frame"))
            encoded = np.zeros((len(frame), len(self.names)), order="F")
            for position in looked:
                column = self._columns[position]
                encoded[:, position] = column.encode(frame[column.name].to_native())
        else:
            array = as_matrix(data)
            self._check_width(array)
            encoded = np.zeros(array.shape, order="F")
            for position in looked:
                column, values = self._columns[position], array[:, position]
                raw = self.kind == "numpy"
                encoded[:, position] = column.encode(values) if raw else column.encoded(values)
        finite = np.isfinite(encoded)
        if not finite.all():
            bad = np.flatnonzero((~finite).any(axis=0))
            raise missing([self.names[position] for position in bad])
        return np.ascontiguousarray(encoded)

    def decode(self, matrix: npt.NDArray[np.floating[Any]]) -> Any:  # noqa: ANN401
        """Return a matrix (n_rows, n_features) as a container like the one that was learned.

        Names, dtypes and categories are those that were learned. Columns of integers are rounded
        to whole numbers, half to even, and held to the range of their type. Rows are numbered
        from 0. Memory may be shared with `matrix`.
        """
        matrix = np.asarray(matrix)
        if matrix.ndim != 2:
            raise refusal(
                "the matrix",
                f"of shape (n_rows, {len(self.names)})",
                matrix.shape,
                "Reshape draws to rows first: draws.reshape(-1, draws.shape[-1])",
            )
        self._check_width(matrix)
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
        """Tell whether all columns are floats of this very type, so that nothing is converted."""
        return all(column.levels is None and column.dtype == dtype for column in self._columns)

    def _check_present(self, present: Sequence[str]) -> None:
        if absent := [name for name in self.names if name not in set(present)]:
            raise refusal(
                "the columns of the data frame",
                f"those of the training data, {shown(self.names)}",
                list(present),
                f"These are missing: {shown(absent)}",
            )

    def _check_width(self, array: npt.NDArray[Any]) -> None:
        if array.shape[1] != len(self.names):
            raise refusal(
                "the array",
                f"of {len(self.names)} columns",
                array.shape[1],
                f"The columns of the training data are {shown(self.names)}",
            )


def _container(frame: nw.DataFrame[Any]) -> str:
    name = str(frame.implementation.name).lower()
    if name not in ("pandas", "polars", "pyarrow"):
        raise refusal(
            "the data frame",
            "of pandas, polars or pyarrow",
            name,
            "Convert it to one of them",
            TypeError,
        )
    return name
