"""Columns of dates, durations and times of day: any library's as floats, and back.

A time is stored as its distance from the earliest one in training, counted in the largest unit
(days, hours, minutes, seconds, ...) of which all these distances are multiples.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pandas as pd

from dsage._check import refusal
from dsage.data.storage import EXACT, Floats, Storage, is_arrow, library, own_dtype

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

# Nanoseconds.
_UNITS = {
    "D": 86_400_000_000_000,
    "h": 3_600_000_000_000,
    "m": 60_000_000_000,
    "s": 1_000_000_000,
    "ms": 1_000_000,
    "us": 1_000,
    "ns": 1,
}
_NOT_A_TIME = np.iinfo(np.int64).min
# Sums of a float of this size and its rounding error do not overflow.
_LARGEST = 2**63 - 2**12


class Ticks(NamedTuple):
    """Times as whole numbers."""

    values: Ints  # 0 where they are missing
    absent: Mask
    what: str  # "date", "duration" or "time of day"
    tick: int | None  # nanoseconds; None for months, years and less than a nanosecond
    is_zoned: bool


@dataclass(frozen=True)
class Times(Storage):
    """How a column stores its times."""

    dtype: Any  # of its own library
    what: str
    tick: int | None
    is_zoned: bool
    origin: int  # in ticks
    unit: int  # in ticks
    last: int  # of the training rows, in ticks

    @classmethod
    def of(cls, native: Any) -> Self:  # noqa: ANN401
        """Learn how a column stores its times."""
        ticks = read_ticks(native)
        present = ticks.values[~ticks.absent]
        origin, last = (int(present.min()), int(present.max())) if len(present) else (0, 0)
        unit = _find_unit(_minus(present, origin), ticks.tick)
        return cls(own_dtype(native), ticks.what, ticks.tick, ticks.is_zoned, origin, unit, last)

    @property
    def rounded(self) -> float:
        """The number of ticks to which times are rounded; at most 1 if they are exact."""
        if (self.last - self.origin) / self.unit <= EXACT:
            return 0.0
        return max(2.0, (self.last - self.origin) / EXACT)

    def encode(self, native: Any, name: str) -> Floats:  # noqa: ANN401
        """Return the times as distances from the origin, NaN where they are missing."""
        ticks = read_ticks(native)
        found, wanted = (_words(each.what, each.is_zoned) for each in (ticks, self))
        if found != wanted:
            advice = "Convert it to the type it had"
            raise refusal(
                f"column {name!r}", f"a {wanted}, as in training", found, advice, TypeError
            )
        values, origin, unit = ticks.values, self.origin, self.unit
        if ticks.tick != self.tick:
            if ticks.tick is None or self.tick is None:
                value, advice = str(own_dtype(native)), "Convert it to the type it had"
                raise refusal(f"column {name!r}", f"of type {self.dtype}", value, advice, TypeError)
            # Whole numbers of the finer of the two.
            if ticks.tick < self.tick:
                origin, unit = (each * (self.tick // ticks.tick) for each in (origin, unit))
            else:
                values = _times(values, ticks.tick // self.tick)
        distance = _minus(values, origin)
        counts: Floats = np.asarray(distance // unit, np.float64)
        counts += np.asarray(distance % unit, np.float64) / unit
        counts[ticks.absent] = np.nan
        return counts

    def decode(self, values: npt.NDArray[Any], name: str, container: str) -> Any:  # noqa: ANN401
        """Return distances from the origin as times of the column's dtype."""
        absent = np.isnan(values)
        low, high = _limits(self.dtype, self.what, self.tick)
        span = (self.last - self.origin) / self.unit
        lowest, highest = ((each - self.origin) / self.unit for each in (low, high))
        counts = np.where(absent, 0.0, values).astype(np.float64)
        counts = np.clip(counts, min(0.0, lowest), max(span, highest))
        whole = np.floor(counts)
        part = np.rint((counts - whole) * self.unit)
        # 64 bits suffice even where a product overflows: the sum is right modulo 2**64.
        if np.abs(whole).max(initial=0.0) < _LARGEST:
            ticks = self.origin + whole.astype(np.int64) * self.unit + part.astype(np.int64)
        else:
            ticks = self._exact_ticks(whole, part)
        return _write_ticks(ticks, absent if absent.any() else None, self.dtype, name, container)

    def _exact_ticks(self, whole: Floats, part: Floats) -> Ints:
        """Return ticks computed with Python integers, which do not overflow."""
        pairs = zip(whole.tolist(), part.tolist(), strict=True)
        ticks = [self.origin + int(count) * self.unit + int(rest) for count, rest in pairs]
        return np.array([min(max(each, _NOT_A_TIME + 1), 2**63 - 1) for each in ticks], np.int64)

    def extended(self, native: Any, name: str, *, may_miss: bool) -> Self:  # noqa: ANN401, ARG002
        """Return the storage itself: any time can be missing."""
        return self


def is_time(native: Any) -> bool:  # noqa: ANN401
    """Return whether a column holds dates, durations or times of day."""
    if isinstance(native, np.ndarray):
        return native.dtype.kind in "mM"
    dtype = nw.from_native(native, series_only=True).dtype
    # narwhals does not know pyarrow's dates in milliseconds.
    return dtype.is_temporal() or "date64" in str(own_dtype(native))


def read_ticks(native: Any) -> Ticks:  # noqa: ANN401
    """Return a column of times as whole numbers."""
    dtype = own_dtype(native)
    if isinstance(dtype, pd.DatetimeTZDtype):
        return _read_numpy(native.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy(), zoned=True)
    if isinstance(dtype, np.dtype):
        return _read_numpy(np.asarray(native), zoned=False)
    if hasattr(native, "to_physical"):
        return _read_polars(native)
    return _read_arrow(native.array.__arrow_array__() if is_arrow(dtype) else native)


def _read_numpy(array: npt.NDArray[Any], *, zoned: bool) -> Ticks:
    unit, multiple = np.datetime_data(array.dtype)
    tick = _UNITS.get(unit)
    native = array.astype(array.dtype.newbyteorder("="), copy=False)
    values = np.ascontiguousarray(native).view(np.int64)
    absent = values == _NOT_A_TIME
    what = "date" if array.dtype.kind == "M" else "duration"
    ticks = np.where(absent, 0, values)
    return Ticks(ticks, absent, what, None if tick is None else tick * multiple, zoned)


def _read_polars(series: Any) -> Ticks:  # noqa: ANN401
    dtype = series.dtype
    polars = library("polars")
    what, unit, zone = _words_of(nw.from_native(series, series_only=True).dtype)
    values = series.to_physical().cast(polars.Int64).fill_null(0).to_numpy().astype(np.int64)
    tick = _UNITS["D" if dtype == polars.Date else unit or "ns"]
    return Ticks(values, series.is_null().to_numpy(), what, tick, zone is not None)


def _read_arrow(array: Any) -> Ticks:  # noqa: ANN401
    arrow = library("pyarrow")
    dtype, types = array.type, arrow.types
    absent = np.asarray(array.is_null())
    narrow = types.is_date32(dtype) or types.is_time32(dtype)
    numbers = array.cast(arrow.int32() if narrow else arrow.int64()).cast(arrow.int64())
    values = np.asarray(numbers.fill_null(0)).astype(np.int64)
    if types.is_date(dtype):
        # Dates in milliseconds are whole days, too.
        is_day = types.is_date32(dtype)
        days = values if is_day else values // (_UNITS["D"] // _UNITS["ms"])
        return Ticks(days, absent, "date", _UNITS["D"], False)
    what = "date" if types.is_timestamp(dtype) else "time of day"
    what = "duration" if types.is_duration(dtype) else what
    return Ticks(values, absent, what, _UNITS[dtype.unit], getattr(dtype, "tz", None) is not None)


def _words_of(dtype: Any) -> tuple[str, str | None, str | None]:  # noqa: ANN401
    """Return what a dtype of narwhals holds, its unit and its time zone."""
    if isinstance(dtype, nw.Duration):
        return "duration", dtype.time_unit, None
    if isinstance(dtype, nw.Time):
        return "time of day", None, None
    if isinstance(dtype, nw.Datetime):
        return "date", dtype.time_unit, dtype.time_zone
    return "date", None, None


def _words(what: str, is_zoned: bool) -> str:
    return f"{what} with a time zone" if is_zoned else what


def _find_unit(distances: Any, tick: int | None) -> int:  # noqa: ANN401
    """Return the largest unit, in ticks, of which all distances are multiples."""
    if tick is None or not len(distances) or not distances.max():
        return 1
    for unit in _UNITS.values():
        if unit > tick and unit % tick == 0 and not (distances % (unit // tick)).any():
            return unit // tick
    return 1


def _minus(values: Ints, origin: int) -> Any:  # noqa: ANN401
    """Return differences; as Python's numbers where 64 bits are too few."""
    if not len(values):
        return values
    low, high = int(values.min()) - origin, int(values.max()) - origin
    exact = low > -_LARGEST and high < _LARGEST and abs(origin) < _LARGEST
    return values - origin if exact else values.astype(object) - origin


def _times(values: Ints, factor: int) -> Any:  # noqa: ANN401
    largest = max(abs(int(values.max())), abs(int(values.min()))) if len(values) else 0
    return values * factor if largest * factor < _LARGEST else values.astype(object) * factor


def _limits(dtype: Any, what: str, tick: int | None) -> tuple[int, int]:  # noqa: ANN401
    """Return the first and the last tick that a dtype can hold, or nearly so."""
    if what == "time of day" and tick is not None:
        return 0, _UNITS["D"] // tick - 1
    days = what == "date" and tick == _UNITS["D"] and not isinstance(dtype, np.dtype)
    return (-(2**31), 2**31 - 1) if days else (-_LARGEST, _LARGEST)


def _write_ticks(ticks: Ints, absent: Mask | None, dtype: Any, name: str, container: str) -> Any:  # noqa: ANN401
    """Return ticks as a series or an array of the column's library."""
    if isinstance(dtype, (np.dtype, pd.DatetimeTZDtype)):
        if absent is not None:
            ticks[absent] = _NOT_A_TIME
        if isinstance(dtype, np.dtype):
            return ticks.view(dtype.newbyteorder("=")).astype(dtype, copy=False)
        index = pd.DatetimeIndex(ticks.view(f"M8[{dtype.unit}]"))
        return index.tz_localize("UTC").tz_convert(dtype.tz).array
    if container == "polars":
        polars = library("polars")
        series = polars.Series(name, ticks).cast(dtype)
        nothing = polars.Series([None], dtype=dtype)
        return series if absent is None else series.zip_with(polars.Series(~absent), nothing)
    if is_arrow(dtype):
        return pd.arrays.ArrowExtensionArray(_to_arrow(ticks, absent, dtype.pyarrow_dtype))
    return _to_arrow(ticks, absent, dtype)


def _to_arrow(ticks: Ints, absent: Mask | None, dtype: Any) -> Any:  # noqa: ANN401
    arrow = library("pyarrow")
    types = arrow.types
    if types.is_date64(dtype):
        ticks = ticks * (_UNITS["D"] // _UNITS["ms"])
    numbers = arrow.array(ticks, mask=absent)
    narrow = types.is_date32(dtype) or types.is_time32(dtype)
    return (numbers.cast(arrow.int32()) if narrow else numbers).cast(dtype)
