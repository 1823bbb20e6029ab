"""The one gate between data frames and arrays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pandas as pd

from dsage._check import check_members, check_names, message

Floats = npt.NDArray[np.float64]


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


ARRAY_KINDS = {
    "b": "class",
    "U": "class",
    "S": "class",
    "i": "number",
    "u": "number",
    "f": "number",
}


def column_kind(dtype: Any) -> str:  # noqa: ANN401
    """Tell whether a column of a narwhals dtype holds a ``"number"``, a ``"class"`` or neither."""
    if dtype.is_numeric():
        return "number"
    if isinstance(dtype, (nw.String, nw.Boolean, nw.Categorical, nw.Enum, nw.Object)):
        return "class"
    return "other"


def as_matrix(data: Any) -> npt.NDArray[Any]:  # noqa: ANN401
    """Return an array of two dimensions and of one type, or say what is wrong with it."""
    array = np.asarray(data)
    if array.ndim != 2:
        raise ValueError(
            message(
                "data",
                "a data frame or an array with rows and columns",
                type(data).__name__ if array.ndim == 0 else array.shape,
                "Give one row an observation and one column a variable",
            )
        )
    if array.dtype.kind == "O":
        raise TypeError(
            message(
                "data",
                "an array of numbers, booleans or strings",
                array.dtype,
                "Use a data frame for columns of different types",
            )
        )
    return array


def missing(names: Sequence[str]) -> ValueError:
    """Return the error for columns with missing or infinite values."""
    return ValueError(
        message(
            "the data",
            "finite and without missing values",
            list(names),
            "Fill or drop the missing values of these columns",
        )
    )


def check_kinds(names: Sequence[str], kinds: Sequence[str]) -> None:
    """Refuse columns that are neither numbers nor classes, by name."""
    if odd := [name for name, kind in zip(names, kinds, strict=True) if kind == "other"]:
        raise TypeError(
            message(
                "the columns",
                "numbers, strings, booleans or categories",
                odd,
                "Convert these columns, or leave them out",
            )
        )


def sorted_positions(values: Sequence[Any]) -> list[int]:
    """Return the positions of the values in sorted order; by their text where they do not compare.

    Examples
    --------
    >>> sorted_positions(["b", "a"]), sorted_positions([2, "b"])
    ([1, 0], [1, 0])
    """
    positions = range(len(values))
    try:
        return sorted(positions, key=values.__getitem__)
    except TypeError:
        return sorted(positions, key=lambda position: repr(values[position]))


@dataclass(frozen=True)
class _Column:
    """One column: its dtype in its own library, and its levels there if it holds classes."""

    name: str
    kind: str
    dtype: Any
    # The range of an integer type, as floats that convert back without overflow.
    limits: tuple[float, float] | None = None
    levels: Any = None
    labels: pd.Index[Any] | None = None


class Layout:
    """What the columns of a data set are, to turn frames into matrices and back.

    Numbers stay as they are. Strings, booleans, categories and other objects, and the columns
    named in `discrete`, become codes 0 .. n_levels - 1: declared categories in their order (all
    of them, seen or not), ``False`` before ``True``, other values sorted.

    Attributes
    ----------
    kind : {"pandas", "polars", "pyarrow", "numpy"}
        The container.
    names : tuple of str
        The columns; ``X1, X2, ...`` for an array.
    n_levels : int array of shape (n_features,)
        Number of levels of each column, 0 where it is continuous.

    Examples
    --------
    >>> frame = pd.DataFrame({"age": [31, 54], "sex": pd.Categorical(["m", "f"], ["m", "f", "x"])})
    >>> layout = Layout.of(frame)
    >>> layout.n_levels
    array([0, 3])
    >>> matrix = layout.encode(frame)
    >>> matrix
    array([[31.,  0.],
           [54.,  1.]])
    >>> layout.decode(matrix).equals(frame)
    True
    """

    def __init__(self, kind: str, columns: Sequence[_Column]) -> None:
        self.kind = kind
        self.names = tuple(column.name for column in columns)
        self.n_levels: npt.NDArray[np.intp] = np.array(
            [0 if column.labels is None else len(column.labels) for column in columns], np.intp
        )
        self._columns = tuple(columns)

    @classmethod
    def of(cls, data: Any, *, discrete: str | Iterable[str] = ()) -> Self:  # noqa: ANN401
        """Learn the layout of a data frame (pandas, polars, pyarrow) or of an array.

        Parameters
        ----------
        data : data frame or array of shape (n_rows, n_features)
            The training data, without missing values in columns of classes.
        discrete : str or iterable of str, default=()
            Columns of numbers that are classes; their levels are the values that occur.
        """
        if not is_frame(data):
            array = as_matrix(data)
            names = tuple(f"X{column + 1}" for column in range(array.shape[1]))
            kinds = [ARRAY_KINDS.get(array.dtype.kind, "other")] * len(names)
            natives: list[Any] = list(array.T)
            container = "numpy"
            limits = [_limits(array.dtype) if array.dtype.kind in "iu" else None] * len(names)
        else:
            frame = nw.from_native(data, eager_only=True)
            names = check_names(frame.columns, "the columns of the data frame")
            container = _container(frame)
            schema = frame.schema
            kinds = [column_kind(schema[name]) for name in names]
            natives = [frame[name].to_native() for name in names]
            limits = [
                _limits(schema[name]) if schema[name].is_integer() else None for name in names
            ]
        check_kinds(names, kinds)
        classes = set(check_members(discrete, names, "discrete", "the columns of the data"))
        columns = []
        for name, kind, native, limit in zip(names, kinds, natives, limits, strict=True):
            dtype = native.type if container == "pyarrow" else native.dtype
            if kind == "class" or name in classes:
                levels, labels = _levels(native)
                columns.append(_Column(name, kind, dtype, None, levels, labels))
            else:
                columns.append(_Column(name, kind, dtype, limit))
        return cls(container, columns)

    def __repr__(self) -> str:
        return f"Layout(kind={self.kind!r}, names={self.names}, n_levels={self.n_levels.tolist()})"

    def encode(self, data: Any, known: npt.NDArray[np.bool_] | None = None) -> Floats:  # noqa: ANN401
        """Return data as a matrix (n_rows, n_features), classes as codes.

        Columns of a frame are found by name: their order is free, and further columns are
        ignored. Where a frame was learned, an array is taken for a matrix that is encoded
        already. Where `known` is given, the other columns are not looked at, and are 0.
        """
        looked = np.ones(len(self.names), bool) if known is None else known
        if is_frame(data):
            return self._encode_frame(data, looked)
        array = as_matrix(data)
        if array.shape[1] != len(self.names):
            raise ValueError(
                message(
                    "the data",
                    f"of {len(self.names)} columns",
                    array.shape[1],
                    f"The columns that were learned are {_shown(self.names)}",
                )
            )
        encoded = np.zeros(array.shape)
        for position in np.flatnonzero(looked):
            column, values = self._columns[position], array[:, position]
            if self.kind != "numpy":
                _check_kind(column.name, "number", ARRAY_KINDS.get(array.dtype.kind, "other"))
                encoded[:, position] = values
                if column.labels is not None:
                    _whole_codes(encoded[:, position], column)
            else:
                _check_kind(column.name, column.kind, ARRAY_KINDS.get(array.dtype.kind, "other"))
                encoded[:, position] = values if column.labels is None else _codes(values, column)
        return self._finite(encoded)

    def decode(self, matrix: npt.NDArray[np.floating[Any]]) -> Any:  # noqa: ANN401
        """Return a matrix (n_rows, n_features) as a container like the one that was learned.

        Names, dtypes and categories are those that were learned. Columns of integers are rounded
        to whole numbers, half to even, and held to the range of their type. Rows are numbered
        from 0. Memory may be shared with `matrix`.
        """
        matrix = np.asarray(matrix)
        if matrix.ndim != 2 or matrix.shape[1] != len(self.names):
            raise ValueError(
                message(
                    "the matrix",
                    f"of shape (n_rows, {len(self.names)})",
                    matrix.shape,
                    "Give one column for each that was learned; reshape draws to rows first",
                )
            )
        plain = all(column.labels is None and column.limits is None for column in self._columns)
        if self.kind == "numpy":
            return self._decode_array(matrix, plain=plain)
        by_column = matrix if matrix.flags.f_contiguous else np.asfortranarray(matrix)
        if self.kind == "pandas":
            return self._decode_pandas(by_column, plain=plain)
        series = {
            column.name: _to_series(by_column[:, position], column, self.kind)
            for position, column in enumerate(self._columns)
        }
        # narwhals itself would drop the dictionaries of pyarrow when it makes a table.
        library = nw.Implementation.from_backend(self.kind).to_native_namespace()  # type: ignore[arg-type]
        return (library.table if self.kind == "pyarrow" else library.DataFrame)(series)

    def _encode_frame(self, data: Any, looked: npt.NDArray[np.bool_]) -> Floats:  # noqa: ANN401
        frame = nw.from_native(data, eager_only=True)
        present = check_names(frame.columns, "the columns of the data frame")
        if absent := [name for name in self.names if name not in set(present)]:
            raise ValueError(
                message(
                    "the columns of the data frame",
                    f"those that were learned, {_shown(self.names)}",
                    list(present),
                    f"These are missing: {_shown(absent)}",
                )
            )
        schema = frame.schema
        chosen = [self._columns[position] for position in np.flatnonzero(looked)]
        for column in chosen:
            _check_kind(column.name, column.kind, column_kind(schema[column.name]))
        numbers = [column.name for column in chosen if column.labels is None]
        classes = [column for column in chosen if column.labels is not None]
        encoded = np.zeros((len(frame), len(self.names)))
        at = {name: position for position, name in enumerate(self.names)}
        if numbers:
            values = np.asarray(frame.select(*numbers).to_numpy(), np.float64)
            encoded[:, [at[name] for name in numbers]] = values
        for column in classes:
            encoded[:, at[column.name]] = _codes(frame[column.name].to_native(), column)
        return self._finite(encoded)

    def _finite(self, encoded: Floats) -> Floats:
        if not np.isfinite(encoded).all():
            bad = np.flatnonzero((~np.isfinite(encoded)).any(axis=0))
            raise missing([self.names[position] for position in bad])
        return encoded

    def _decode_array(self, matrix: npt.NDArray[Any], *, plain: bool) -> npt.NDArray[Any]:
        dtype = self._columns[0].dtype if self._columns else np.dtype(np.float64)
        if plain:
            return matrix.astype(dtype, copy=False)
        decoded = np.empty(matrix.shape, dtype)
        for position, column in enumerate(self._columns):
            decoded[:, position] = _to_numpy(matrix[:, position], column)
        return decoded

    def _decode_pandas(self, matrix: npt.NDArray[Any], *, plain: bool) -> pd.DataFrame:
        names = list(self.names)
        if plain and all(column.dtype == matrix.dtype for column in self._columns):
            return pd.DataFrame(matrix, columns=names, copy=False)
        columns = {
            column.name: _to_pandas(matrix[:, position], column)
            for position, column in enumerate(self._columns)
        }
        return pd.DataFrame(columns, columns=names, index=range(len(matrix)), copy=False)


def _container(frame: nw.DataFrame[Any]) -> str:
    name = str(frame.implementation.name).lower()
    if name not in ("pandas", "polars", "pyarrow"):
        raise TypeError(
            message(
                "the data frame", "of pandas, polars or pyarrow", name, "Convert it to one of them"
            )
        )
    return name


def _shown(names: Sequence[Any]) -> str:
    return ", ".join(map(repr, names[:6])) + (", ..." if len(names) > 6 else "")


def _check_kind(name: str, expected: str, found: str) -> None:
    words = {"number": "numbers", "class": "strings, booleans or categories"}
    if found != expected:
        raise TypeError(
            message(
                f"column {name!r}",
                f"of {words[expected]}, as in training",
                words.get(found, "another type"),
                "Convert it to the type it had",
            )
        )


def _limits(dtype: Any) -> tuple[float, float]:  # noqa: ANN401
    name = str(dtype).lower()
    info = np.iinfo(np.int64 if name.endswith("128") else name)
    high = float(info.max)
    return float(info.min), high if int(high) <= info.max else float(np.nextafter(high, 0.0))


def _levels(native: Any) -> tuple[Any, pd.Index[Any]]:  # noqa: ANN401
    """Return the levels of a column as an array of its own library, and as an index."""
    dtype = native.type if hasattr(native, "type") else native.dtype
    declared = _declared(native, dtype)
    if declared is not None:
        return declared
    values = _values(native)
    codes, found = pd.factorize(values)
    order = sorted_positions(list(found))
    first = np.empty(len(found), np.intp)
    rows = np.flatnonzero(codes >= 0)[::-1]
    # Written last to first: what stays is the first row of each level.
    first[codes[rows]] = rows
    picked = first[order]
    levels = native[picked] if isinstance(native, np.ndarray) else _taken(native, picked)
    return getattr(levels, "array", levels), pd.Index(found)[order]


def _declared(native: Any, dtype: Any) -> tuple[Any, pd.Index[Any]] | None:  # noqa: ANN401
    """Return the levels that the type of a column declares, if it does."""
    if isinstance(dtype, pd.CategoricalDtype):
        every = np.arange(len(dtype.categories))
        return pd.Categorical.from_codes(every, dtype=dtype), dtype.categories
    if isinstance(native, np.ndarray):
        is_boolean = dtype == np.bool_
        return (np.array([False, True]), pd.Index([False, True])) if is_boolean else None
    series = nw.from_native(native, series_only=True)
    if series.dtype == nw.Boolean:
        both = pd.Index([False, True])
        if isinstance(native, pd.Series):
            return pd.Series(both, dtype=dtype).array, both
        return nw.new_series("", [False, True], backend=series.implementation).to_native(), both
    if isinstance(series.dtype, nw.Enum):
        every_one = list(series.dtype.categories)
        return type(native)(every_one, dtype=dtype), pd.Index(every_one)
    if hasattr(native, "unify_dictionaries") and hasattr(dtype, "value_type"):
        whole = native.unify_dictionaries().combine_chunks()
        part = whole.chunk(0) if hasattr(whole, "chunks") else whole
        dictionary = part.dictionary
        indices = np.arange(len(dictionary), dtype=str(dtype.index_type))
        levels = type(part).from_arrays(indices, dictionary, ordered=dtype.ordered)
        return levels, pd.Index(dictionary.to_pandas())
    return None


def _values(native: Any) -> Any:  # noqa: ANN401
    # pandas knows the codes of its categories, and its own missing values.
    if isinstance(native, (np.ndarray, pd.Series)):
        return native
    return nw.from_native(native, series_only=True).to_numpy()


def _taken(levels: Any, codes: npt.NDArray[np.intp]) -> Any:  # noqa: ANN401
    return levels.gather(codes) if hasattr(levels, "gather") else levels.take(codes)


def _codes(native: Any, column: _Column) -> Floats:  # noqa: ANN401
    """Return the codes of a column, NaN where a value is missing; refuse levels never seen."""
    labels = column.labels
    if isinstance(native, pd.Series) and isinstance(native.dtype, pd.CategoricalDtype):
        if native.cat.categories.equals(labels):
            codes = native.cat.codes.to_numpy().astype(np.float64)
            codes[codes < 0] = np.nan
            return codes
        native = native.astype(native.cat.categories.dtype)
    values = _values(native)
    codes = labels.get_indexer(values).astype(np.float64)  # type: ignore[union-attr]
    if (codes < 0).any():
        absent = np.asarray(pd.isna(values))
        if unseen := list(pd.unique(pd.Series(values)[(codes < 0) & ~absent])):
            raise ValueError(
                message(
                    f"column {column.name!r}",
                    "made of the levels seen in training",
                    unseen[0] if len(unseen) == 1 else unseen[:6],
                    f"They are {_shown(list(labels))}; leave these rows out"  # type: ignore[arg-type]
                    " or train with them",
                )
            )
        codes[absent] = np.nan
    return codes


def _whole_codes(values: npt.NDArray[Any], column: _Column) -> npt.NDArray[np.intp]:
    """Return codes that came as floats; refuse what is no code of the column."""
    n_levels = len(column.labels)  # type: ignore[arg-type]
    good = (values >= 0) & (values < n_levels) & (values == np.floor(values))
    if not good.all():
        raise ValueError(
            message(
                f"column {column.name!r} of the matrix",
                f"codes, whole numbers from 0 to {n_levels - 1}",
                float(values[np.argmin(good)]),
                "Encode the data with the layout first",
            )
        )
    return values.astype(np.intp)


def _whole(values: npt.NDArray[Any], column: _Column) -> npt.NDArray[Any]:
    """Return numbers as the integers nearest to them within the range of the column's type."""
    if not np.isfinite(values).all():
        raise missing([column.name])
    low, high = column.limits  # type: ignore[misc]
    rounded: Floats = np.clip(np.rint(values, dtype=np.float64), low, high)
    return rounded.astype(np.uint64 if low == 0 else np.int64)


def _to_numpy(values: npt.NDArray[Any], column: _Column) -> npt.NDArray[Any]:
    if column.labels is not None:
        taken: npt.NDArray[Any] = column.levels[_whole_codes(values, column)]
        return taken
    return values if column.limits is None else _whole(values, column)


def _to_pandas(values: npt.NDArray[Any], column: _Column) -> Any:  # noqa: ANN401
    if column.labels is not None:
        return _taken(column.levels, _whole_codes(values, column))
    numbers = values if column.limits is None else _whole(values, column)
    if isinstance(column.dtype, np.dtype):
        return numbers.astype(column.dtype, copy=False)
    return pd.array(numbers, dtype=column.dtype)


def _to_series(values: npt.NDArray[Any], column: _Column, backend: Any) -> Any:  # noqa: ANN401
    if column.labels is not None:
        return _taken(column.levels, _whole_codes(values, column))
    numbers = values if column.limits is None else _whole(values, column)
    return nw.new_series(column.name, numbers, backend=backend).to_native().cast(column.dtype)
