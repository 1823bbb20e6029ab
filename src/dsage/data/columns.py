"""One column of a data frame or an array: its kind, and its values as floats and back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from decimal import Decimal
from numbers import Number
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pandas as pd

from dsage._check import Setting, Text, refusal, warn
from dsage.data.categories import Categories
from dsage.data.kinds import (
    CLASSES,
    Kind,
    choices,
    guess_number,
    is_identifier,
    is_whole,
)
from dsage.data.numbers import Numbers
from dsage.data.possible import Codes, Range
from dsage.data.storage import Floats, Storage, all_missing, is_plain, own_dtype
from dsage.data.times import Times, is_time

_ARRAY_KINDS = (
    dict.fromkeys("bUS", "class") | dict.fromkeys("iuf", "number") | dict.fromkeys("mM", "time")
)
_WORDS = {
    "number": "numbers",
    "class": "strings, booleans or categories",
    "time": "dates or times",
}


def column_kind(native: Any) -> str:  # noqa: ANN401
    """Return what a column holds: a ``"number"``, ``"class"``, ``"time"`` or something ``"other"``.

    Strings, booleans, categories and other objects are classes, and so is a column without a type,
    all of whose values are missing.

    Examples
    --------
    >>> import pandas as pd
    >>> column_kind(np.array([1, 2])), column_kind(pd.Series(["a"])), column_kind(np.array([1j]))
    ('number', 'class', 'other')
    """
    if isinstance(native, np.ndarray):
        return dtype_kind(native.dtype)
    if is_plain(native):
        return "number"
    kind = dtype_kind(nw.from_native(native, series_only=True).dtype)
    if kind == "other" and is_time(native):
        return "time"
    is_null = str(own_dtype(native)).lower().removesuffix("[pyarrow]") == "null"
    return "class" if kind == "other" and is_null else kind


def dtype_kind(dtype: Any) -> str:  # noqa: ANN401
    """Return what a dtype, NumPy's or narwhals', holds."""
    if isinstance(dtype, np.dtype):
        return _ARRAY_KINDS.get(dtype.kind, "other")
    if dtype.is_numeric():
        return "number"
    if isinstance(dtype, (nw.String, nw.Boolean, nw.Categorical, nw.Enum, nw.Object)):
        return "class"
    return "time" if dtype.is_temporal() else "other"


def is_boolean(dtype: Any) -> bool:  # noqa: ANN401
    """Return whether a dtype, NumPy's or narwhals', is of booleans."""
    return dtype.kind == "b" if isinstance(dtype, np.dtype) else isinstance(dtype, nw.Boolean)


def is_numeric(dtype: Any) -> bool:  # noqa: ANN401
    """Return whether a dtype, NumPy's or narwhals', is of numbers or booleans."""
    return dtype_kind(dtype) == "number" or is_boolean(dtype)


def check_kinds(
    names: Iterable[str],
    kinds: Iterable[str],
    allowed: Iterable[str] = ("number", "class", "time"),
) -> None:
    """Refuse columns that hold anything but numbers, classes and times; the error names them."""
    wanted = tuple(allowed)
    if odd := [name for name, kind in zip(names, kinds, strict=True) if kind not in wanted]:
        times = ", dates or times" if "time" in wanted else ""
        condition = f"numbers, strings, booleans or categories{times}"
        advice = "Convert these columns, or leave them out"
        raise refusal("the columns", condition, odd, advice, TypeError)


@dataclass(frozen=True)
class Column:
    """A column as it was in training."""

    name: str
    holds: str  # "number", "class" or "time": what its dtype holds
    storage: Storage
    kind: Kind
    value_kind: Kind  # what the values are, if it is constant, a copy or an identifier
    is_given: bool = False  # whether the user said the kind
    may_miss: bool = False  # whether values were missing in training
    is_constant: bool = False  # whether it had one value, or was always missing
    possible: Codes | Range | None = None  # None: any value
    surprise: str = ""  # what a user may not expect

    @classmethod
    def learn(cls, name: str, native: Any, given: Kind | None) -> tuple[Column, Floats]:  # noqa: ANN401
        """Learn a column; return it and its values as floats."""
        holds = column_kind(native)
        is_flag = holds == "class" and _is_flag(native)
        if given is not None and given not in (allowed := choices(holds, is_boolean=is_flag)):
            condition = f"a kind that a column of {_WORDS[holds]} can have"
            advice = f"It can be {' or '.join(map(repr, map(str, allowed)))}"
            raise refusal(f"kinds[{name!r}]", condition, str(given), advice)
        storage: Storage
        if holds == "class" or given in CLASSES:
            storage = Categories.of(native, name)
        else:
            storage = Times.of(native) if holds == "time" else Numbers.of(native)
        values = storage.encode(native, name)
        absent = np.isnan(values) if storage.missing_code < 0 else values == storage.missing_code
        column = cls(name, holds, storage, Kind.NUMBER, Kind.NUMBER, given is not None)
        column = replace(column, may_miss=bool(absent.any()))
        present = values[~absent] if column.may_miss else values
        column = column._with_kind(present, given, len(values), is_flag=is_flag)
        surprise = _find_surprise(column, present, native, given)
        if surprise:
            column = replace(column, surprise=surprise)
            remedy: tuple[str | Setting, ...] = (" ", *column.advice) if holds != "time" else ()
            warn(Text([f"Column {name!r} {surprise}.", *remedy]))
        return column, values

    def _with_kind(
        self, present: Floats, given: Kind | None, n_rows: int, *, is_flag: bool
    ) -> Column:
        """Return the column with its kind, and the values that it can have."""
        distinct = present[:0]
        kind = Kind.TIME if self.holds == "time" else Kind.CLASS
        if isinstance(self.storage, Numbers):
            kind, distinct = guess_number(present[np.isfinite(present)], n_rows)
        elif is_flag:
            kind = Kind.BOOLEAN
        elif isinstance(self.storage, Categories) and self.storage.is_ordered:
            kind = Kind.ORDERED_CLASS
        if given is not None:
            kind = given
            if kind == Kind.INTEGER and not is_whole(present):
                odd = float(present[present != np.rint(present)][0])
                advice = "Round it, or choose 'number' or 'codes'"
                condition = "of whole numbers to be of the kind integer"
                raise refusal(f"column {self.name!r}", condition, odd, advice)
            if kind == Kind.CODES:
                distinct = np.unique(present)
        is_constant = not len(present) or (
            not self.may_miss and bool((present == present[0]).all())
        )
        shown = kind
        if given is None and is_constant:
            shown = Kind.CONSTANT
        elif given is None and is_identifier(present, kind):
            shown = Kind.IDENTIFIER
        possible: Codes | Range | None = None
        if kind == Kind.CODES:
            possible = Codes(distinct)
        elif kind in (Kind.INTEGER, Kind.TIME) and len(present):
            possible = Range(float(present.min()), float(present.max()))
        found: dict[str, Any] = {"kind": shown, "value_kind": kind, "possible": possible}
        return replace(self, is_constant=is_constant, **found)

    @property
    def categories(self) -> Categories | None:
        """The categories of a class."""
        return self.storage if isinstance(self.storage, Categories) else None

    @property
    def sort(self) -> object:
        """A key that is equal for columns whose floats represent the same values."""
        if isinstance(self.storage, Categories):
            return ("class", *map(repr, self.storage.labels))
        if isinstance(self.storage, Times):
            times = self.storage
            return ("time", times.what, times.tick, times.origin, times.unit)
        return "number"

    def encode(self, native: Any) -> Floats:  # noqa: ANN401
        """Return the values as floats: classes as codes, missing numbers and times as NaN.

        Refuse a column of another kind than in training, and unseen categories.
        """
        return (
            self.storage.encode(native, self.name) if self._fits(native) else self._nothing(native)
        )

    def extended(self, native: Any) -> Column:  # noqa: ANN401
        """Return a column that knows further categories and missing values."""
        if not self._fits(native):
            native = np.full(len(native), np.nan)
        storage = self.storage.extended(native, self.name, may_miss=self.may_miss)
        return self if storage is self.storage else replace(self, storage=storage)

    def check_encoded(self, values: npt.NDArray[Any]) -> Floats:
        """Return encoded values as floats, after checking that they are encoded."""
        if column_kind(values) != "number":
            name, condition = f"column {self.name!r} of the array", "floats, or codes of classes,"
            advice = "Training data was a data frame: pass one, or encode it with the layout"
            raise refusal(name, condition, values.dtype, advice, TypeError)
        floats = values.astype(np.float64)
        if self.categories is not None:
            self.categories.check_codes(floats, self.name)
        return floats

    def decode(self, values: npt.NDArray[Any], container: str) -> Any:  # noqa: ANN401
        """Return floats as an array or a series of the column's library and dtype."""
        return self.storage.decode(values, self.name, container)

    def _fits(self, native: Any) -> bool:  # noqa: ANN401
        """Return whether a column holds the same as in training; False if all are missing."""
        found = column_kind(native)
        if found == self.holds:
            return True
        if all_missing(native):
            return False
        condition = f"of {_WORDS[self.holds]}, as in training"
        value = _WORDS.get(found, "another type")
        advice = "Convert it to the type it had"
        raise refusal(f"column {self.name!r}", condition, value, advice, TypeError)

    def _nothing(self, native: Any) -> Floats:  # noqa: ANN401
        if self.categories is not None:
            return self.categories.encode(np.full(len(native), np.nan), self.name)
        return np.full(len(native), np.nan)

    @property
    def advice(self) -> Text:
        """What the user can do about a surprise."""
        start = (
            "Leave it out if it is a key; if" if self.holds == "number" else "Convert them, or, if"
        )
        return Text([f"{start} it is a class, pass ", Setting("discrete", [self.name]), "."])


def _find_surprise(column: Column, present: Floats, native: Any, given: Kind | None) -> str:  # noqa: ANN401
    """Return what may surprise the user about a column, or an empty text."""
    storage = column.storage
    if isinstance(storage, Numbers) and storage.is_rounded(present):
        if storage.limits is None:
            return "has decimal numbers of more than 15 digits, which are rounded"
        return "has whole numbers beyond 2**53, which are rounded"
    if isinstance(storage, Times) and storage.rounded > 1:
        return (
            f"has times that are too fine for their range, rounded to {storage.rounded:.0f} ticks"
        )
    # Objects that are all numbers are hardly meant to be classes.
    are_objects = given is None and own_dtype(native) == np.dtype(object)
    if are_objects and isinstance(storage, Categories) and _are_numbers(storage):
        return "holds numbers as objects, which are treated as classes"
    return ""


def _is_flag(native: Any) -> bool:  # noqa: ANN401
    """Return whether a column is of booleans; they may be objects where some are missing."""
    if isinstance(native, np.ndarray):
        return is_boolean(native.dtype)
    dtype = nw.from_native(native, series_only=True).dtype
    if not isinstance(dtype, nw.Object) or not len(native):
        return is_boolean(dtype)
    flags = [isinstance(value, (bool, np.bool_)) for value in native]
    return any(flags) and bool(np.all(np.array(flags) | np.asarray(pd.isna(native))))


def _are_numbers(categories: Categories) -> bool:
    return bool(len(categories.labels)) and all(
        isinstance(label, (Number, Decimal)) and not isinstance(label, (bool, np.bool_))
        for label in categories.labels
    )
