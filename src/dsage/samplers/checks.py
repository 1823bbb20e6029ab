"""Checks that samplers share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dsage._check import check_shape, refusal, warn
from dsage.data.layout import Layout

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]
Mask = npt.NDArray[np.bool_]

LARGEST = 1e150
"""The squares of larger numbers overflow."""


def pick(names: Sequence[str], flags: Mask) -> list[str]:
    """Return the flagged ones of the names."""
    return [name for name, flag in zip(names, flags, strict=True) if flag]


def check_sizes(matrix: Floats, layout: Layout) -> None:
    """Refuse columns of numbers whose squares overflow or underflow."""
    # These leave missing values out.
    low, high = np.fmin.reduce(matrix), np.fmax.reduce(matrix)
    huge = np.maximum(-low, high) > LARGEST
    # Halved, since the range of numbers near the largest float overflows.
    tiny = (low < high) & (high / 2 - low / 2 < 1 / LARGEST)
    if bad := pick(layout.names, (layout.n_categories == 0) & (huge | tiny)):
        condition = f"of columns that stay below {LARGEST:g} and vary by more than {1 / LARGEST:g}"
        raise refusal("X", condition, bad, "Use other units for these columns")


def warn_of_copies(X: Floats, layout: Layout, consequence: str, among: Mask | None = None) -> None:
    """Warn about columns that repeat others; constants repeat nothing."""
    first: dict[tuple[bool, bytes], str] = {}
    copies = []
    for at, (name, column) in enumerate(zip(layout.names, X.T, strict=True)):
        if (among is not None and not among[at]) or column.min() == column.max():
            continue
        # Adding zero turns -0.0 into 0.0.
        key = bool(layout.n_categories[at]), (column + 0.0).tobytes()
        if key in first:
            copies.append(f"{name!r} repeats {first[key]!r}")
        first.setdefault(key, name)
    if copies:
        more = f" and {len(copies) - 10} more" if len(copies) > 10 else ""
        warn(f"Some columns are copies: {', '.join(copies[:10])}{more}. {consequence}")


def check_coalition(known: npt.ArrayLike, feature_names: Sequence[str]) -> Mask:
    """Return one coalition as a boolean array (n_features,)."""
    array = np.asarray(known)
    if array.dtype != np.bool_:
        advice = "Use np.asarray(known, dtype=bool)"
        raise refusal("known", "a boolean array", array.dtype, advice, TypeError)
    shown = ", ".join(feature_names[:6]) + (", ..." if len(feature_names) > 6 else "")
    advice = f"Pass one entry for each of the features {shown}"
    check_shape(array, (len(feature_names),), "known", advice)
    return array


def check_noise(noise: npt.ArrayLike, n_rows: int, n_features: int) -> Floats:
    """Return noise as floats (n_rows, n_draws, n_features), all strictly between 0 and 1."""
    array = np.asarray(noise, dtype=np.float64)
    shape = (n_rows, "n_draws", n_features)
    check_shape(array, shape, "noise", "Pass one uniform per row, draw and feature")
    if not array.shape[1]:
        raise refusal("noise", "of at least one draw", array.shape, "Draw at least once per row")
    if array.size and not (array.min() > 0.0 and array.max() < 1.0):
        bad = array[~((array > 0.0) & (array < 1.0))][0]
        raise refusal("noise", "strictly between 0 and 1", float(bad), "Draw uniforms in (0, 1)")
    return array


def check_draws(
    draws: Floats, shape: tuple[int, ...], unknown: Mask, names: Sequence[str], may_miss: Mask
) -> None:
    """Refuse draws of a sampler that cannot be scored.

    Only columns that `may_miss` can have missing draws; others must be finite.
    """
    advice = "Return (n_rows, n_draws, n_features), the known features with their values"
    check_shape(draws, shape, "the sampler's draws", advice)
    axes = tuple(range(draws.ndim - 1))
    is_bad = np.isinf(draws).any(axis=axes) | (np.isnan(draws).any(axis=axes) & ~may_miss)
    if bad := pick(names, unknown & is_bad):
        advice = "The draws of these columns are not"
        raise refusal("the sampler's draws", "finite", bad, advice)
