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
from dsage.data.categories import Categories, shown, sorted_positions
from dsage.data.missing import check_finite

__all__ = [
    "Column",
    "check_kinds",
    "column_kind",
    "dtype_kind",
    "is_boolean",
    "shown",
    "sorted_positions",
]

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
    """Return whether a column holds a ``"number"``, a ``"class"`` or something ``"other"``.

    Strings, booleans, categories and other objects are classes.

    Examples
    --------
    >>> column_kind(np.array([1, 2])), column_kind(pd.Series(["a"])), column_kind(np.array([1j]))
    ('number', 'class', 'other')
    """
    if isinstance(native, np.ndarray):
        return dtype_kind(native.dtype)
    return dtype_kind(nw.from_native(native, series_only=True).dtype)


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


def check_kinds(names: Iterable[str], kinds: Iterable[str]) -> None:
    """Refuse columns that are neither numbers nor classes, by name."""
    if odd := [name for name, kind in zip(names, kinds, strict=True) if kind == "other"]:
        condition = "numbers, strings, booleans or categories"
        advice = "Convert these columns, or leave them out"
        raise refusal("the columns", condition, odd, advice, TypeError)


@dataclass(frozen=True)
class Column:
    """A column as it was in training.

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
    categories : Categories, optional
        The categories of a discrete column.
    """

    name: str
    kind: str
    dtype: Any
    limits: tuple[float, float] | None = None
    categories: Categories | None = None

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
        if isinstance(native, np.ndarray):
            is_integer = dtype.kind in "iu"
        else:
            is_integer = nw.from_native(native, series_only=True).dtype.is_integer()
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
            raise refusal(
                f"column {self.name!r} of the array",
                "floats, or codes of classes,",
                values.dtype,
                "Training data was a data frame: pass a data frame, or encode it with the layout",
                TypeError,
            )
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
            text = (
                f"Column {self.name!r} holds numbers as objects, and objects are taken for classes."
                " Convert it to a numeric type, or, if it is a class, pass "
            )
            warn(Text([text, Setting("discrete", [self.name]), "."]))

    def _warn_if_rounded(self, native: Any) -> None:  # noqa: ANN401
        # Comparisons with NaN, for missing values, are false.
        if (np.abs(self.encode(native)) > _EXACT).any():
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

    def _check_codes(self, values: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
        n_categories = 0 if self.categories is None else len(self.categories)
        good = (values >= 0) & (values < n_categories) & (values == np.floor(values))
        if not good.all():
            raise refusal(
                f"column {self.name!r} of the matrix",
                f"codes, whole numbers from 0 to {n_categories - 1}",
                float(values[np.argmin(good)]),
                "Encode the data with the layout first",
            )
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
