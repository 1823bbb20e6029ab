"""One column of a data frame or an array: its kind, its levels, its values as floats and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from numbers import Number
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pandas as pd

from dsage._check import Setting, Text, refusal, warn

Floats = npt.NDArray[np.float64]

_EXACT = 2.0**53  # up to here every whole number is a float

_ARRAY_KINDS = {
    "b": "class",
    "U": "class",
    "S": "class",
    "i": "number",
    "u": "number",
    "f": "number",
}


def column_kind(native: Any) -> str:  # noqa: ANN401
    """Tell whether a column holds a ``"number"``, a ``"class"`` or something ``"other"``.

    Strings, booleans, categories and other objects are classes.

    Examples
    --------
    >>> column_kind(np.array([1, 2])), column_kind(pd.Series(["a"])), column_kind(np.array([1j]))
    ('number', 'class', 'other')
    """
    if isinstance(native, np.ndarray):
        return _ARRAY_KINDS.get(native.dtype.kind, "other")
    return dtype_kind(nw.from_native(native, series_only=True).dtype)


def dtype_kind(dtype: Any) -> str:  # noqa: ANN401
    """Tell the same of a narwhals dtype."""
    if dtype.is_numeric():
        return "number"
    if isinstance(dtype, (nw.String, nw.Boolean, nw.Categorical, nw.Enum, nw.Object)):
        return "class"
    return "other"


def check_kinds(names: Sequence[str], kinds: Sequence[str]) -> None:
    """Refuse columns that are neither numbers nor classes, by name."""
    if odd := [name for name, kind in zip(names, kinds, strict=True) if kind == "other"]:
        raise refusal(
            "the columns",
            "numbers, strings, booleans or categories",
            odd,
            "Convert these columns, or leave them out",
            TypeError,
        )


def missing(names: Sequence[str]) -> Exception:
    """Return the error for columns with missing or infinite values."""
    return refusal(
        "the data",
        "finite and without missing values",
        list(names),
        "Fill or drop the missing values of these columns",
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


def shown(names: Sequence[Any]) -> str:
    """Return the first few names for an error message."""
    return ", ".join(map(repr, names[:6])) + (", ..." if len(names) > 6 else "")


@dataclass(frozen=True)
class Column:
    """What one column is: its dtype in its own library, and its levels if it is discrete.

    Attributes
    ----------
    name : str
        Its name.
    kind : {"number", "class"}
        What its dtype holds.
    dtype : object
        The dtype of its own library.
    limits : tuple of two floats, optional
        The range of a continuous column of integers, as floats that convert back.
    levels : Levels, optional
        The levels of a discrete column.
    """

    name: str
    kind: str
    dtype: Any
    limits: tuple[float, float] | None = None
    levels: Levels | None = None

    @classmethod
    def of(cls, name: str, native: Any, *, discrete: bool) -> Column:  # noqa: ANN401
        """Learn a column; one of numbers is discrete where `discrete` says so."""
        kind = column_kind(native)
        dtype = native.type if hasattr(native, "type") else native.dtype
        if discrete or kind == "class":
            try:
                column = cls(name, kind, dtype, levels=_levels(native, dtype))
            except TypeError as error:
                raise refusal(
                    "the columns", "numbers or classes", name, f"Convert it: {error}", TypeError
                ) from None
            if not discrete:
                column._warn_if_numbers()
            return column
        if isinstance(native, np.ndarray):
            is_integer = dtype.kind in "iu"
        else:
            is_integer = nw.from_native(native, series_only=True).dtype.is_integer()
        column = cls(name, kind, dtype, limits=_limits(dtype) if is_integer else None)
        if column.limits is not None and column.limits[1] > _EXACT:
            column._warn_if_rounded(native)
        return column

    def encode(self, native: Any) -> Floats:  # noqa: ANN401
        """Return the values as floats, a discrete column's as codes, NaN where one is missing.

        Refuse a column of another kind than the one learned, and levels that were not.
        """
        self._check_kind(column_kind(native))
        if self.levels is None:
            if isinstance(native, np.ndarray):
                return native.astype(np.float64)
            return np.asarray(nw.from_native(native, series_only=True).to_numpy(), np.float64)
        return self.levels.codes(native, self.name)

    def encoded(self, values: npt.NDArray[Any]) -> Floats:
        """Return values that are encoded already, once it is sure that they are."""
        if column_kind(values) != "number":
            raise refusal(
                f"column {self.name!r} of the array",
                "floats, or codes of classes,",
                values.dtype,
                "Training data was a data frame: give one, or encode it with its layout",
                TypeError,
            )
        floats = values.astype(np.float64)
        if self.levels is not None:
            self._whole_codes(floats)
        return floats

    def decode(self, values: npt.NDArray[Any], container: str) -> Any:  # noqa: ANN401
        """Return floats as an array or a series of the column's library and dtype."""
        if self.levels is not None:
            return _taken(self.levels.native, self._whole_codes(values))
        numbers = values if self.limits is None else self._whole(values)
        if isinstance(self.dtype, np.dtype):
            return numbers.astype(self.dtype, copy=False)
        if container == "pandas":
            return pd.array(numbers, dtype=self.dtype)
        made = nw.new_series(self.name, numbers, backend=container)  # type: ignore[arg-type]
        return made.to_native().cast(self.dtype)

    def _warn_if_numbers(self) -> None:
        """Warn of a column of objects which are all numbers: it was hardly meant for classes."""
        labels = () if self.levels is None or self.dtype != np.dtype(object) else self.levels.labels
        if len(labels) and all(
            isinstance(label, (Number, Decimal)) and not isinstance(label, (bool, np.bool_))
            for label in labels
        ):
            text = (
                f"Column {self.name!r} holds numbers as objects, and objects are taken for classes."
                " Convert it to a numeric type, or, if it is a class, pass "
            )
            warn(Text([text, Setting("discrete", [self.name]), "."]))

    def _warn_if_rounded(self, native: Any) -> None:  # noqa: ANN401
        values = self.encode(native)
        # NaN, where a value is missing, is not above anything.
        if (np.abs(values) > _EXACT).any():
            text = (
                f"Column {self.name!r} has whole numbers beyond 2**53, which are rounded: floats "
                "have no more digits. Leave it out if it is a key; if it is a class, pass "
            )
            warn(Text([text, Setting("discrete", [self.name]), "."]))

    def _check_kind(self, found: str) -> None:
        words = {"number": "numbers", "class": "strings, booleans or categories"}
        if found != self.kind:
            raise refusal(
                f"column {self.name!r}",
                f"of {words[self.kind]}, as in training",
                words.get(found, "another type"),
                "Convert it to the type it had",
                TypeError,
            )

    def _whole_codes(self, values: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
        n_categories = 0 if self.levels is None else len(self.levels)
        good = (values >= 0) & (values < n_categories) & (values == np.floor(values))
        if not good.all():
            raise refusal(
                f"column {self.name!r} of the matrix",
                f"codes, whole numbers from 0 to {n_categories - 1}",
                float(values[np.argmin(good)]),
                "Encode the data with the layout first",
            )
        return values.astype(np.intp)

    def _whole(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        if not np.isfinite(values).all():
            raise missing([self.name])
        low, high = self.limits or (-np.inf, np.inf)
        rounded: Floats = np.clip(np.rint(values, dtype=np.float64), low, high)
        return rounded.astype(np.uint64 if low == 0 else np.int64)


@dataclass(frozen=True)
class Levels:
    """The levels of a discrete column, in the order of their codes.

    Attributes
    ----------
    native : array of the column's library
        The levels, in the column's dtype.
    labels : pandas Index
        The same, to look values up.
    """

    native: Any
    labels: pd.Index[Any]

    def __len__(self) -> int:
        return len(self.labels)

    def codes(self, native: Any, name: str) -> Floats:  # noqa: ANN401
        """Return the codes of a column, NaN where a value is missing; refuse levels never seen."""
        if isinstance(native, pd.Series) and isinstance(native.dtype, pd.CategoricalDtype):
            if native.cat.categories.equals(self.labels):
                codes = native.cat.codes.to_numpy().astype(np.float64)
                codes[codes < 0] = np.nan
                return codes
            native = native.astype(native.cat.categories.dtype)
        values = _values(native)
        codes = self.labels.get_indexer(values).astype(np.float64)
        if (codes < 0).any():
            absent = np.asarray(pd.isna(values))
            if unseen := list(pd.unique(pd.Series(values)[(codes < 0) & ~absent])):
                raise refusal(
                    f"column {name!r}",
                    "made of the levels seen in training",
                    unseen[0] if len(unseen) == 1 else unseen[:6],
                    f"They are {shown(list(self.labels))}; leave these rows out,"
                    " or train with them",
                )
            codes[absent] = np.nan
        return codes


def _limits(dtype: Any) -> tuple[float, float]:  # noqa: ANN401
    name = str(dtype).lower().removesuffix("[pyarrow]")
    info = np.iinfo(np.int64 if name.endswith("128") else name)
    high = float(info.max)
    return float(info.min), high if int(high) <= info.max else float(np.nextafter(high, 0.0))


def _levels(native: Any, dtype: Any) -> Levels:  # noqa: ANN401
    declared = _declared(native, dtype)
    if declared is not None:
        return declared
    values = _values(native)
    codes, found = pd.factorize(values)
    order = sorted_positions(list(found))
    rows = np.flatnonzero(codes >= 0)[::-1]
    first = np.empty(len(found), np.intp)
    # Written last to first: what stays is the first row of each level.
    first[codes[rows]] = rows
    levels = _taken(native, first[order])
    return Levels(getattr(levels, "array", levels), pd.Index(found)[order])


def _declared(native: Any, dtype: Any) -> Levels | None:  # noqa: ANN401
    """Return the levels that the dtype itself declares, if it does."""
    if isinstance(dtype, pd.CategoricalDtype):
        every = pd.Categorical.from_codes(np.arange(len(dtype.categories)), dtype=dtype)
        return Levels(every, dtype.categories)
    both = pd.Index([False, True])
    if isinstance(native, np.ndarray):
        return Levels(np.array([False, True]), both) if dtype == np.bool_ else None
    series = nw.from_native(native, series_only=True)
    if series.dtype == nw.Boolean:
        if isinstance(native, pd.Series):
            return Levels(pd.Series(both, dtype=dtype).array, both)
        made = nw.new_series("", [False, True], backend=series.implementation)
        return Levels(made.to_native(), both)
    if isinstance(series.dtype, nw.Enum):
        categories = list(series.dtype.categories)
        return Levels(type(native)(categories, dtype=dtype), pd.Index(categories))
    if hasattr(native, "unify_dictionaries") and hasattr(dtype, "index_type"):
        whole = native.unify_dictionaries().combine_chunks()
        part = whole.chunk(0) if hasattr(whole, "chunks") else whole
        indices = np.arange(len(part.dictionary), dtype=str(dtype.index_type))
        levels = type(part).from_arrays(indices, part.dictionary, ordered=dtype.ordered)
        return Levels(levels, pd.Index(part.dictionary.to_pandas()))
    return None


def _values(native: Any) -> Any:  # noqa: ANN401
    # pandas knows the codes of its categories, and its own missing values.
    if isinstance(native, (np.ndarray, pd.Series)):
        return native
    return nw.from_native(native, series_only=True).to_numpy()


def _taken(levels: Any, codes: npt.NDArray[np.intp]) -> Any:  # noqa: ANN401
    return levels.gather(codes) if hasattr(levels, "gather") else levels.take(codes)
