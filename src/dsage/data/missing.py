"""Missing and infinite values: where they are found, and what is refused.

A missing feature is a value of its own; see :class:`~dsage.data.layout.Layout`. Infinite numbers
and missing targets are refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dsage._check import refusal

Floats = npt.NDArray[np.float64]

_CONDITION = "finite and without missing values"


def missing_values(names: Sequence[str]) -> Exception:
    """Return the error for columns with missing or infinite values, where both are refused."""
    advice = "Fill or drop the missing values of these columns"
    return refusal("the data", _CONDITION, list(names), advice)


def check_finite(matrix: Floats, names: Sequence[str]) -> None:
    """Refuse columns of a matrix with missing or infinite values, by name."""
    if _is_finite(matrix):
        return
    finite = np.isfinite(matrix).all(axis=0)
    if not finite.all():
        raise missing_values([names[position] for position in np.flatnonzero(~finite).tolist()])


def check_infinite(columns: Iterable[Floats], names: Sequence[str]) -> None:
    """Refuse columns with infinite values, by name; values may be missing."""
    pairs = zip(columns, names, strict=True)
    if bad := [name for each, name in pairs if not _is_finite(each) and np.isinf(each).any()]:
        advice = "Replace the infinite values of these columns, by NaN if they are missing"
        raise refusal("the data", "finite", bad, advice)


def _is_finite(matrix: Floats) -> bool:
    """Return whether all values are finite; False may also be due to a sum that overflows."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(matrix.sum(axis=0)).all())


def check_target_complete(y: npt.NDArray[Any]) -> None:
    """Refuse a target with missing or infinite values."""
    absent = np.asarray(pd.isna(y))
    if y.dtype.kind == "f":
        absent |= np.isinf(y)
    if absent.any():
        n_bad = int(absent.reshape(len(absent), -1).any(axis=1).sum())
        found = f"{n_bad} of {len(y)} rows that are not"
        raise refusal("y", _CONDITION, found, "Drop these rows, of X too")
