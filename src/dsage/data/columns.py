"""One column of a data frame or an array: its kind, and its values as floats and back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from numbers import Number
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pandas as pd

from dsage._check import Setting, Text, refusal, warn
from dsage.data.categories import Categories
from dsage.data.missing import check_finite

Floats = npt.NDArray[np.float64]

_EXACT = 2.0**53  # up to here every whole number is a float

_ARRAY_KINDS = dict.fromkeys("bUS", "class") | dict.fromkeys("iuf", "number")


def column_kind(native: Any) -> str:  # noqa: ANN401
    """Return whether a column holds a ``"number"``, a ``"class"`` or something ``"other"``.

    Strings, booleans, categories and other objects are classes.

    Examples
    --------
    >>> column_kind(np.array([1, 2])), column_kind(pd.Series(["a"])), column_kind(np.array([1j]))
    ('number', 'class', 'other')
    """
    return dtype_kind(_find_dtype(native))


def _find_dtype(native: Any) -> Any:  # noqa: ANN401
    """Return the dtype of a column, NumPy's for an array and narwhals' for a series."""
    is_array = isinstance(native, np.ndarray)
    return (native if is_array else nw.from_native(native, series_only=True)).dtype


def dtype_kind(dtype: Any) -> str:  # noqa: ANN401
    """Return the kind of a column from its dtype, NumPy's or narwhals'."""
    if isinstance(dtype, np.dtype):
        return _ARRAY_KINDS.get(dtype.kind, "other")
    if dtype.is_numeric():
        return "number"
    if isinstance(dtype, (nw.String, nw.Boolean, nw.Categorical, nw.Enum, nw.Object)):
        return "class"
    return "other"


def is_boolean(dtype: Any) -> bool:  # noqa: ANN401
    """Return whether a dtype, NumPy's or narwhals', is of booleans."""
    return dtype.kind == "b" if isinstance(dtype, np.dtype) else isinstance(dtype, nw.Boolean)


def is_numeric(dtype: Any) -> bool:  # noqa: ANN401
    """Return whether a dtype, NumPy's or narwhals', is of numbers or booleans."""
    return dtype_kind(dtype) == "number" or is_boolean(dtype)


def check_kinds(names: Iterable[str], kinds: Iterable[str]) -> None:
    """Refuse columns that are neither numbers nor classes, by name."""
    if odd := [name for name, kind in zip(names, kinds, strict=True) if kind == "other"]:
        condition = "numbers, strings, booleans or categories"
        advice = "Convert these columns, or leave them out"
        raise refusal("the columns", condition, odd, advice, TypeError)


@dataclass(frozen=True)
class Column:
    """A column as it was in training."""

    name: str
    kind: str  # "number" or "class": what its dtype holds
    dtype: Any  # of its own library
    # The range of a continuous column of integers, as floats that convert back.
    limits: tuple[float, float] | None = None
    categories: Categories | None = None  # of a discrete column

    @classmethod
    def of(cls, name: str, native: Any, *, discrete: bool) -> Column:  # noqa: ANN401
        """Learn a column; a column of numbers is discrete only if `discrete` is true."""
        kind = column_kind(native)
        dtype = native.type if hasattr(native, "type") else native.dtype
        if discrete or kind == "class":
            column = cls(name, kind, dtype, categories=Categories.of(native, name))
            if not discrete:
                column._warn_if_numbers()
            return column
        found = _find_dtype(native)
        is_integer = found.kind in "iu" if isinstance(found, np.dtype) else found.is_integer()
        column = cls(name, kind, dtype, limits=_integer_limits(dtype) if is_integer else None)
        if column.limits is not None and column.limits[1] > _EXACT:
            column._warn_if_rounded(native)
        return column

    def encode(self, native: Any) -> Floats:  # noqa: ANN401
        """Return the values as floats, a discrete column's as codes, NaN for missing values.

        Refuse a column of another kind than in training, and unseen categories.
        """
        self._check_kind(column_kind(native))
        if self.categories is not None:
            return self.categories.encode(native, self.name)
        if isinstance(native, np.ndarray):
            return native.astype(np.float64)
        return np.asarray(nw.from_native(native, series_only=True).to_numpy(), np.float64)

    def check_encoded(self, values: npt.NDArray[Any]) -> Floats:
        """Return values that are encoded already as floats, after checking that they are."""
        if column_kind(values) != "number":
            name, condition = f"column {self.name!r} of the array", "floats, or codes of classes,"
            advice = "Training data was a data frame: pass one, or encode it with the layout"
            raise refusal(name, condition, values.dtype, advice, TypeError)
        floats = values.astype(np.float64)
        if self.categories is not None:
            self._check_codes(floats)
        return floats

    def decode(self, values: npt.NDArray[Any], container: str) -> Any:  # noqa: ANN401
        """Return floats as an array or a series of the column's library and dtype."""
        if self.categories is not None:
            return self.categories.decode(self._check_codes(values))
        numbers = values if self.limits is None else self._round(values)
        if isinstance(self.dtype, np.dtype):
            return numbers.astype(self.dtype, copy=False)
        if container == "pandas":
            return pd.array(numbers, dtype=self.dtype)
        series = nw.new_series(self.name, numbers, backend=container)  # type: ignore[arg-type]
        return series.to_native().cast(self.dtype)

    def _warn_if_numbers(self) -> None:
        """Warn of a column of objects that are all numbers: hardly meant to be classes."""
        if self.categories is None or self.dtype != np.dtype(object) or not len(self.categories):
            return
        if all(
            isinstance(label, (Number, Decimal)) and not isinstance(label, (bool, np.bool_))
            for label in self.categories.labels
        ):
            self._warn("holds numbers as objects, which are taken for classes. Convert them, or,")

    def _warn_if_rounded(self, native: Any) -> None:  # noqa: ANN401
        # Comparisons with NaN, for missing values, are false.
        if (np.abs(self.encode(native)) > _EXACT).any():
            self._warn(
                "has whole numbers beyond 2**53, which are rounded. Leave it out if it is a key;"
            )

    def _warn(self, text: str) -> None:
        start = f"Column {self.name!r} {text} if it is a class, pass "
        warn(Text([start, Setting("discrete", [self.name]), "."]))

    def _check_kind(self, found: str) -> None:
        words = {"number": "numbers", "class": "strings, booleans or categories"}
        if found != self.kind:
            condition = f"of {words[self.kind]}, as in training"
            value = words.get(found, "another type")
            advice = "Convert it to the type it had"
            raise refusal(f"column {self.name!r}", condition, value, advice, TypeError)

    def _check_codes(self, values: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
        n_categories = 0 if self.categories is None else len(self.categories)
        good = (values >= 0) & (values < n_categories) & (values == np.floor(values))
        if not good.all():
            name, bad = f"column {self.name!r} of the matrix", float(values[np.argmin(good)])
            condition = f"codes, whole numbers from 0 to {n_categories - 1}"
            raise refusal(name, condition, bad, "Encode the data with the layout first")
        return values.astype(np.intp)

    def _round(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        check_finite(values[:, None], [self.name])
        low, high = self.limits or (-np.inf, np.inf)
        rounded: Floats = np.clip(np.rint(values, dtype=np.float64), low, high)
        return rounded.astype(np.uint64 if low == 0 else np.int64)


def _integer_limits(dtype: Any) -> tuple[float, float]:  # noqa: ANN401
    name = str(dtype).lower().removesuffix("[pyarrow]")
    info = np.iinfo(np.int64 if name.endswith("128") else name)
    high = float(info.max)
    return float(info.min), high if int(high) <= info.max else float(np.nextafter(high, 0.0))
