"""Missing and infinite values: where they are found, and what happens to them.

Nothing in the package handles them yet: columns and targets that have any are refused by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dsage._check import refusal

_CONDITION = "finite and without missing values"


def missing_values(names: Sequence[str]) -> Exception:
    """Return the error for columns with missing or infinite values."""
    advice = "Fill or drop the missing values of these columns"
    return refusal("the data", _CONDITION, list(names), advice)


def check_finite(matrix: npt.NDArray[np.float64], names: Sequence[str]) -> None:
    """Refuse columns of a matrix with missing or infinite values, by name."""
    with np.errstate(over="ignore", invalid="ignore"):
        sums = matrix.sum(axis=0)
    # A finite sum has finite summands; large ones may overflow.
    if np.isfinite(sums).all():
        return
    finite = np.isfinite(matrix).all(axis=0)
    if not finite.all():
        raise missing_values([names[position] for position in np.flatnonzero(~finite).tolist()])


def check_target_complete(y: npt.NDArray[Any]) -> None:
    """Refuse a target with missing or infinite values."""
    absent = np.asarray(pd.isna(y))
    if y.dtype.kind == "f":
        absent |= np.isinf(y)
    if absent.any():
        n_bad = int(absent.reshape(len(absent), -1).any(axis=1).sum())
        found = f"{n_bad} of {len(y)} rows that are not"
        raise refusal("y", _CONDITION, found, "Drop these rows, of X too")
