"""How a column is stored: its values as floats, and floats back as its own values."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pandas as pd

from dsage._check import refusal

Floats = npt.NDArray[np.float64]

EXACT = 2.0**53
"""Up to here every whole number is a float."""
# NumPy's integers, and its floats of 32 and 64 bits, in the machine's order of bytes.
_PLAIN = frozenset(map(np.dtype, "bBhHiIlLqQfd"))


class Storage(ABC):
    """The values of a column as floats, and back.

    Attributes
    ----------
    n_categories : int
        The number of categories, including the one of missing values; 0 for numbers and times.
    missing_code : int
        The code of missing values among the categories, -1 if there is none.
    """

    n_categories: int = 0
    missing_code: int = -1

    @abstractmethod
    def encode(self, native: Any, name: str) -> Floats:  # noqa: ANN401
        """Return a column as floats: classes as codes, missing numbers and times as NaN."""

    @abstractmethod
    def decode(self, values: npt.NDArray[Any], name: str, container: str) -> Any:  # noqa: ANN401
        """Return floats as a series or an array of the column's library, in its dtype."""

    @abstractmethod
    def extended(self, native: Any, name: str, *, may_miss: bool) -> Self:  # noqa: ANN401
        """Return a storage that can hold this column too, with the same codes.

        `may_miss` says whether values were missing in training.
        """


def own_dtype(native: Any) -> Any:  # noqa: ANN401
    """Return the dtype of a column in its own library."""
    return native.type if hasattr(native, "type") else native.dtype


def is_plain(native: Any) -> bool:  # noqa: ANN401
    """Return whether a column is a series of pandas of NumPy's integers, or of its usual floats."""
    if not isinstance(native, pd.Series):
        return False
    dtype = native.dtype
    return isinstance(dtype, np.dtype) and dtype in _PLAIN


def library(name: str) -> Any:  # noqa: ANN401
    """Return the module of a library of data frames."""
    return nw.Implementation.from_string(name).to_native_namespace()


def is_arrow(dtype: Any) -> bool:  # noqa: ANN401
    """Return whether a dtype is one of pandas' that pyarrow holds."""
    return isinstance(dtype, pd.ArrowDtype)


def all_missing(native: Any) -> bool:  # noqa: ANN401
    """Return whether a column has rows, and all its values are missing."""
    if not len(native):
        return False
    if isinstance(native, (np.ndarray, pd.Series)):
        return bool(np.asarray(pd.isna(native)).all())
    return int(nw.from_native(native, series_only=True).null_count()) == len(native)


def no_missing(name: str) -> Exception:
    """Return the error for missing values of a column that had none in training."""
    advice = (
        "Fill or drop its missing values, or learn them: fit to rows that have some,"
        " or use layout.extend(X)"
    )
    condition = "without missing values, as in training"
    return refusal(f"column {name!r}", condition, "missing values", advice)
