"""Columns of numbers: any library's and dtype's as floats, and back."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pandas as pd

from dsage._check import refusal
from dsage.data.missing import check_infinite
from dsage.data.storage import (
    EXACT,
    Floats,
    Storage,
    is_arrow,
    is_plain,
    library,
    no_missing,
    own_dtype,
)

_TOO_LARGE = 2.0**63


@dataclass(frozen=True)
class Numbers(Storage):
    """How a column stores its numbers."""

    dtype: Any  # of its own library
    # The range of a dtype of integers, as floats that convert back.
    limits: tuple[float, float] | None = None
    # Whether missing numbers are NaN although the dtype has a missing value of its own.
    keeps_nan: bool = False
    # The smallest step between decimal numbers, 1 for whole numbers, 0 for floats.
    step: float = 0.0

    @classmethod
    def of(cls, native: Any) -> Self:  # noqa: ANN401
        """Learn how a column stores its numbers."""
        dtype = own_dtype(native)
        if isinstance(native, np.ndarray) or is_plain(native):
            is_integer = native.dtype.kind in "iu"
        else:
            is_integer = nw.from_native(native, series_only=True).dtype.is_integer()
        limits = _integer_limits(dtype) if is_integer else None
        return cls(dtype, limits, _has_only_nan(native), _finest(native))

    def encode(self, native: Any, name: str) -> Floats:  # noqa: ANN401
        """Return the numbers as floats, NaN where they are missing."""
        values = read_numbers(native)
        if str(self.dtype).endswith("128") and (np.abs(values) >= _TOO_LARGE).any():
            largest = float(np.nanmax(np.abs(values)))
            advice = "Convert it to floats, or to texts if it is a key"
            raise refusal(f"column {name!r}", "whole numbers of 64 bits", largest, advice)
        return values

    def is_rounded(self, values: Floats) -> bool:
        """Return whether floats are too few for numbers of this size."""
        return self.step > 0 and bool((np.abs(values) / self.step > EXACT).any())

    def decode(self, values: npt.NDArray[Any], name: str, container: str) -> Any:  # noqa: ANN401
        """Return floats in the column's dtype; whole numbers are rounded into its range."""
        absent = np.isnan(values)
        is_complete = not absent.any()
        numbers = values if self.limits is None else self._round(values, absent, name)
        if isinstance(self.dtype, np.dtype):
            if is_complete:
                return numbers.astype(self.dtype, copy=False)
            if self.dtype.kind in "iu":
                raise no_missing(name)
            return np.where(absent, np.nan, numbers).astype(self.dtype, copy=False)
        mask = None if is_complete or self.keeps_nan else absent
        if container == "pandas":
            return self._to_pandas(numbers, mask)
        if container == "polars":
            series = library(container).Series(name, numbers)
            # Whole numbers have zeros where they are missing.
            whole = series if mask is None else _with_nulls(series, mask)
            return whole.cast(self.dtype)
        return library(container).array(numbers, mask=mask).cast(self.dtype)

    def extended(self, native: Any, name: str, *, may_miss: bool) -> Self:  # noqa: ANN401, ARG002
        """Return a storage that can hold the missing numbers of this column, too."""
        if may_miss or not np.isnan(read_numbers(native)).any():
            return self
        if not isinstance(self.dtype, np.dtype):
            return replace(self, keeps_nan=_has_only_nan(native))
        # NumPy's integers cannot be missing: in pandas, such a column is one of floats.
        return replace(self, dtype=np.dtype(np.float64)) if self.dtype.kind in "iu" else self

    def _to_pandas(self, numbers: npt.NDArray[Any], mask: npt.NDArray[np.bool_] | None) -> Any:  # noqa: ANN401
        if is_arrow(self.dtype):
            array = library("pyarrow").array(numbers, mask=mask, from_pandas=False)
            return pd.arrays.ArrowExtensionArray(array.cast(self.dtype.pyarrow_dtype))
        if self.keeps_nan and numbers.dtype.kind == "f":
            floats = numbers.astype(self.dtype.numpy_dtype)
            return pd.arrays.FloatingArray(floats, np.zeros(len(floats), np.bool_))
        array = pd.array(numbers, dtype=self.dtype)
        if mask is not None:
            array[mask] = pd.NA
        return array

    def _round(
        self, values: npt.NDArray[Any], absent: npt.NDArray[np.bool_], name: str
    ) -> npt.NDArray[Any]:
        """Return whole numbers within the limits of their type, 0 where they are missing."""
        present = np.where(absent, 0.0, values)
        check_infinite([present], [name])
        low, high = self.limits or (-np.inf, np.inf)
        rounded: Floats = np.clip(np.rint(present, dtype=np.float64), low, high)
        if isinstance(self.dtype, np.dtype) and self.dtype.kind == "f":
            return rounded
        return rounded.astype(np.uint64 if low == 0 else np.int64)


def read_numbers(native: Any) -> Floats:  # noqa: ANN401
    """Return a column of numbers as floats, NaN where they are missing."""
    if isinstance(native, np.ndarray):
        return native.astype(np.float64)
    if isinstance(native, pd.Series):
        if isinstance(native.dtype, np.dtype):
            return np.asarray(native.to_numpy(), np.float64)
        return np.asarray(native.to_numpy(np.float64, na_value=np.nan))
    series = nw.from_native(native, series_only=True)
    if series.dtype.is_decimal() or str(series.dtype).endswith("128"):
        series = series.cast(nw.Float64)
    return np.asarray(series.to_numpy(), np.float64)


def _finest(native: Any) -> float:  # noqa: ANN401
    """Return the step between numbers of a dtype of whole or decimal numbers, 0 for floats."""
    if isinstance(native, np.ndarray) or is_plain(native):
        return float(native.dtype.kind in "iu")
    dtype = nw.from_native(native, series_only=True).dtype
    if dtype.is_decimal():
        # That of narwhals has a scale in newer versions only.
        own = own_dtype(native)
        return float(10.0 ** -getattr(own, "pyarrow_dtype", own).scale)
    return float(dtype.is_integer())


def _has_only_nan(native: Any) -> bool:  # noqa: ANN401
    """Return whether values are missing as NaN only, in a dtype that has a null as well."""
    if isinstance(own_dtype(native), np.dtype):
        return False
    series = nw.from_native(native, series_only=True)
    if not series.dtype.is_float() or series.null_count():
        return False
    return bool(np.isnan(read_numbers(native)).any())


def _with_nulls(series: Any, mask: npt.NDArray[np.bool_]) -> Any:  # noqa: ANN401
    """Return a series of polars with nulls where the mask is true."""
    polars = library("polars")
    return series.zip_with(polars.Series(~mask), polars.Series([None], dtype=series.dtype))


def _integer_limits(dtype: Any) -> tuple[float, float]:  # noqa: ANN401
    name = str(dtype).lower().removesuffix("[pyarrow]")
    info = np.iinfo(np.int64 if name.endswith("128") else name)
    high = float(info.max)
    return float(info.min), high if int(high) <= info.max else float(np.nextafter(high, 0.0))
