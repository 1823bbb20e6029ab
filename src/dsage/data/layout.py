"""The columns of a data set, to turn data frames into matrices and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from dsage._check import check_shape, refusal, shown
from dsage.data.categories import Categories
from dsage.data.columns import Column
from dsage.data.frames import Frame
from dsage.data.groups import Groups
from dsage.data.kinds import Kind, check_given_kinds
from dsage.data.missing import check_infinite
from dsage.data.numbers import Numbers
from dsage.data.patterns import find_copies, find_exclusive
from dsage.data.possible import Exclusive, Possible
from dsage.data.storage import library

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

# Bytes from which a matrix is not held twice.
_LARGE = 2**25


class Layout:
    """The columns of a data set, to turn data frames into matrices and back.

    Numbers become floats: whole numbers beyond 2**53 are rounded, with a warning. Times become
    distances from the earliest one. Strings, booleans, categories and other objects, and the
    columns that are said to be classes, become codes 0 .. n_categories - 1: declared categories in
    their order (all of them, seen or not), ``False`` before ``True``, other values sorted.

    A missing number or time is NaN. Missing values of a class are one more category, the last one;
    `decode` returns the missing value of the column's own type. If a column has several kinds of
    missing values (None and NaN), it is the null of its type, or the first kind.

    Attributes
    ----------
    kind : {"pandas", "polars", "pyarrow", "numpy"}
        The library.
    names : tuple of str
        The columns.
    kinds, value_kinds : tuple of Kind
        The kind of each column, see :mod:`dsage.data.kinds`. For constants, copies and identifiers,
        `value_kinds` is the kind that their values would have otherwise.
    n_categories : int array of shape (n_features,)
        The number of categories, including the one of missing values; 0 for numbers and times.
    missing_codes : int array of shape (n_features,)
        The code of missing values of a class; -1 if none are missing, and for numbers and times.
    may_miss : bool array of shape (n_features,)
        The columns with missing values in training.
    is_whole : bool array of shape (n_features,)
        The columns of a type of whole numbers, to which `decode` rounds.
    copies : dict of int to int
        Columns that repeat an earlier one in training, and that column.
    exclusive : tuple of Exclusive
        Sets of columns of zeros and ones of which at most one is 1.
    possible : Possible
        The values that can occur.

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

    def __init__(
        self,
        kind: str,
        columns: Sequence[Column],
        *,
        copies: Mapping[int, int] | None = None,
        exclusive: Iterable[Exclusive] = (),
    ) -> None:
        self.kind = kind
        self.names = tuple(column.name for column in columns)
        self.kinds = tuple(column.kind for column in columns)
        self.value_kinds = tuple(column.value_kind for column in columns)
        storages = [column.storage for column in columns]
        counts = [storage.n_categories for storage in storages]
        self.n_categories: npt.NDArray[np.intp] = np.array(counts, np.intp)
        codes = [storage.missing_code for storage in storages]
        self.missing_codes: npt.NDArray[np.intp] = np.array(codes, np.intp)
        self.may_miss: Mask = np.array([column.may_miss for column in columns], bool)
        is_whole = [isinstance(each, Numbers) and each.limits is not None for each in storages]
        self.is_whole: Mask = np.array(is_whole, bool)
        self.copies = dict(copies or {})
        self.exclusive = tuple(exclusive)
        self._columns = tuple(columns)

    @classmethod
    def of(
        cls,
        data: Any,  # noqa: ANN401
        *,
        discrete: str | Iterable[str] = (),
        kinds: Mapping[str, str] | None = None,
        groups: Mapping[str, Iterable[str]] | None = None,
    ) -> Self:
        """Learn the layout of a data frame (pandas, polars, pyarrow) or of an array.

        Parameters
        ----------
        data : data frame or array of shape (n_rows, n_features)
            The training rows.
        discrete : str or iterable of str, default=()
            Columns of numbers that are classes; their categories are the values that occur.
        kinds : dict of str to str, optional
            The kinds of columns that :mod:`dsage.data.kinds` would guess wrong, such as
            ``{"zip": "class"}``.
        groups : dict of str to list of str, optional
            Groups of columns. Columns of zeros and ones in one group exclude each other if at most
            one of them is 1 in every row.
        """
        frame = Frame(data)
        if frame.library not in ("pandas", "polars", "pyarrow", "numpy"):
            condition, advice = "of pandas, polars or pyarrow", "Convert it to one of them"
            raise refusal("the data frame", condition, frame.library, advice, TypeError)
        names = tuple(frame.kinds)
        given = check_given_kinds(kinds, discrete, names)
        learned = [Column.learn(name, frame.column(name), given.get(name)) for name in names]
        columns, values = [column for column, _ in learned], [values for _, values in learned]
        check_infinite(values, names)
        sorts = [None if column.is_constant else column.sort for column in columns]
        copies = find_copies(values, sorts)
        for at in copies:
            if not columns[at].is_given:
                columns[at] = replace(columns[at], kind=Kind.COPY)
        members = {} if groups is None else _members(groups, names)
        pairs = zip(columns, values, strict=True)
        is_flag = np.array([_is_flag(column, each) for column, each in pairs], bool)
        exclusive = find_exclusive(values, is_flag, members)
        return cls(frame.library, columns, copies=copies, exclusive=exclusive)

    @classmethod
    def of_numbers(cls, names: Iterable[str]) -> Self:
        """Return the layout of columns of a data frame that can hold any numbers."""
        storage = Numbers(np.dtype(np.float64))
        given = ("number", storage, Kind.NUMBER, Kind.NUMBER, True)
        return cls("pandas", [Column(name, *given) for name in names])

    def __repr__(self) -> str:
        counts = self.n_categories.tolist()
        return f"Layout(kind={self.kind!r}, names={self.names}, n_categories={counts})"

    @cached_property
    def possible(self) -> Possible:
        """The values that can occur."""
        limits = {at: column.possible for at, column in enumerate(self._columns)}
        known = {at: each for at, each in limits.items() if each is not None}
        return Possible(known, self.exclusive)

    @property
    def numbers_as_classes(self) -> tuple[str, ...]:
        """The columns of numbers that the user says to be classes."""
        return tuple(
            column.name
            for column in self._columns
            if column.holds == "number" and column.categories is not None
        )

    def categories(self, name: str) -> tuple[Any, ...]:
        """Return the categories of a class, without missing values, in the order of their codes."""
        storage = self._columns[self.names.index(name)].storage
        return tuple(storage.labels) if isinstance(storage, Categories) else ()

    @property
    def surprises(self) -> tuple[str, ...]:
        """What may surprise the user about each column, in words; empty if nothing does."""
        return tuple(column.surprise for column in self._columns)

    def decode_column(self, name: str, values: Floats) -> Any:  # noqa: ANN401
        """Return floats of one column as an array or a series of its library and dtype."""
        return self._columns[self.names.index(name)].decode(values, self.kind)

    def encode(self, data: Any, known: Mask | None = None) -> Floats:  # noqa: ANN401
        """Return data as a matrix (n_rows, n_features), classes as codes.

        Columns of a data frame are found by name, in any order; further columns are ignored. If
        the layout is that of a data frame, an array is taken for an encoded matrix. If `known` is
        given, the other columns are not read, and are 0. Infinite numbers and unseen categories
        are refused.
        """
        if known is None and self._takes_as_it_is(data):
            if tuple(data.columns) != self.names:
                Frame(data, self.names)  # refuses what lacks some
                data = data[list(self.names)]
            matrix: Floats = data.to_numpy(np.float64, copy=True)
            check_infinite(matrix.T, self.names)
            return np.ascontiguousarray(matrix)
        frame = Frame(data, self.names)
        is_encoded = frame.is_array and self.kind != "numpy"
        if self._takes_at_once(data, is_encoded=is_encoded):
            # Not a number, missing or infinite, makes a sum that is not finite.
            found = data.copy() if known is None else np.where(known, data, 0.0)
            if not np.isfinite(found.sum()):
                check_infinite(found.T, self.names)
            return np.ascontiguousarray(found)
        # Columns are written faster into an array by columns, which then has to be copied.
        is_large = 8 * frame.n_rows * len(self.names) > _LARGE
        order: Literal["C", "F"] = "C" if is_large else "F"
        encoded = np.zeros((frame.n_rows, len(self.names)), order=order)
        for position in range(len(self.names)) if known is None else np.flatnonzero(known):
            column = self._columns[position]
            encode = column.check_encoded if is_encoded else column.encode
            encoded[:, position] = encode(frame.column(column.name))
        check_infinite(encoded.T, self.names)
        return np.ascontiguousarray(encoded)

    def extend(self, data: Any, known: Mask | None = None) -> Self:  # noqa: ANN401
        """Return a layout that knows the categories and missing values of further rows, too.

        New categories, and missing values if they are new, are appended, so that the codes of
        training stay the same. So do `kinds`, `may_miss`, `copies`, `exclusive` and `possible`. If
        `known` is given, the other columns are not read.
        """
        frame = Frame(data, self.names)
        if frame.is_array and self.kind != "numpy":
            return self
        columns = list(self._columns)
        for position in range(len(columns)) if known is None else np.flatnonzero(known):
            column = columns[position]
            columns[position] = column.extended(frame.column(column.name))
        if all(new is old for new, old in zip(columns, self._columns, strict=True)):
            return self
        return type(self)(self.kind, columns, copies=self.copies, exclusive=self.exclusive)

    def select(self, positions: Sequence[int]) -> Self:
        """Return the layout of some of the columns, in a given order."""
        place = {old: new for new, old in enumerate(positions)}
        copies = {
            place[at]: place[of] for at, of in self.copies.items() if at in place and of in place
        }
        columns = [self._columns[at] for at in positions]
        # A subset of exclusive columns would not determine the class.
        return type(self)(self.kind, columns, copies=copies)

    def beside(self, other: Layout) -> Self:
        """Return the layout of these columns, followed by those of another layout."""
        columns = [*self._columns, *other._columns]
        return type(self)(self.kind, columns, copies=self.copies, exclusive=self.exclusive)

    def is_missing(self, matrix: npt.NDArray[np.floating[Any]]) -> Mask:
        """Return which entries of an encoded matrix (..., n_features) are missing."""
        codes = np.where(self.missing_codes < 0, np.nan, self.missing_codes)
        missing: Mask = np.isnan(matrix) | (matrix == codes)
        return missing

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
        made = library(self.kind)
        return (made.table if self.kind == "pyarrow" else made.DataFrame)(columns)

    def _decode_array(self, matrix: npt.NDArray[Any]) -> npt.NDArray[Any]:
        if self._is_plain(matrix.dtype):
            return matrix
        columns = [
            column.decode(matrix[:, position], "numpy")
            for position, column in enumerate(self._columns)
        ]
        first = columns[0].dtype
        # The order of bytes would be lost.
        alike = all(column.dtype == first for column in columns)
        return np.stack(columns, axis=1, dtype=first if alike else None)

    def _takes_as_it_is(self, data: Any) -> bool:  # noqa: ANN401
        """Return whether data is a frame of pandas with floats only, as in training.

        Its columns need not be looked at one by one, which takes long where there are many.
        """
        if self.kind != "pandas" or not isinstance(data, pd.DataFrame):
            return False
        double = np.dtype(np.float64)
        return self._is_plain(double) and all(dtype == double for dtype in data.dtypes)

    def _takes_at_once(self, data: Any, *, is_encoded: bool) -> bool:  # noqa: ANN401
        """Return whether data is an array of floats of which no column is looked at."""
        if type(data) is not np.ndarray or data.dtype != np.float64 or data.ndim != 2:
            return False
        if is_encoded:
            return not self.n_categories.any()
        return self.kind == "numpy" and self._is_plain(np.dtype(np.float64))

    def _is_plain(self, dtype: np.dtype[Any]) -> bool:
        """Return whether all columns are floats of this type, so that nothing is converted."""
        storages = (column.storage for column in self._columns)
        return all(
            isinstance(each, Numbers) and each.limits is None and each.dtype == dtype
            for each in storages
        )


def _is_flag(column: Column, values: Floats) -> bool:
    """Return whether a column has only zeros and ones."""
    is_class = column.holds == "class" and column.value_kind != Kind.BOOLEAN
    if column.may_miss or is_class or column.value_kind in (Kind.NUMBER, Kind.TIME):
        return False
    categories = column.categories
    if categories is not None and list(categories.labels) != [0, 1]:
        return False
    return bool(((values == 0) | (values == 1)).all()) and len(values) > 0


def _members(
    groups: Mapping[str, Iterable[str]], names: tuple[str, ...]
) -> dict[str, tuple[int, ...]]:
    """Return the positions of the columns in each group."""
    members = Groups(groups, names).members
    return {name: tuple(map(names.index, each)) for name, each in members.items()}
