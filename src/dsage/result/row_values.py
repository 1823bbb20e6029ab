"""The values of features as text: numbers, classes, dates, missing values, groups."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dsage.data.frames import Frame
from dsage.data.layout import Layout
from dsage.games.base import Floats

Label = str | int | float | bool

MISSING = "missing"
# Numbers from the first one on have separators (years do not), from the second on exponents.
_LARGE, _HUGE = 10_000, 1e9
# Number of categories with separate colors; all others share one.
_MOST_CATEGORIES = 6
# Quantiles between which colors vary with the values of a number.
_ENDS = (0.05, 0.95)


@dataclass(frozen=True, eq=False)
class Positions:
    """The relative position of each row's value of a feature, for colors.

    Attributes
    ----------
    shares : array of shape (n_rows,)
        From 0 for low to 1 for high numbers or dates; NaN for missing ones, classes and groups.
    categories : tuple of str
        The most frequent categories of a class, sorted; empty for other features.
    codes : int array of shape (n_rows,)
        The position in `categories`, or ``len(categories)`` for other categories; -1 for missing
        values, and for features without categories.
    is_missing : bool array of shape (n_rows,)
        The rows in which the feature is missing.
    """

    shares: Floats
    categories: tuple[str, ...]
    codes: npt.NDArray[np.intp]
    is_missing: npt.NDArray[np.bool_]

    @property
    def is_number(self) -> bool:
        """Whether the feature goes from low to high."""
        return bool(np.isfinite(self.shares).any())

    @classmethod
    def of_group(cls, n_rows: int) -> Positions:
        """Return the positions of a group of features, which has none."""
        nowhere = np.full(n_rows, -1, dtype=np.intp)
        return cls(np.full(n_rows, np.nan), (), nowhere, np.zeros(n_rows, dtype=np.bool_))

    @classmethod
    def of_class(cls, texts: Sequence[str], is_missing: npt.NDArray[np.bool_]) -> Positions:
        """Return the positions of a class."""
        words = np.array(texts, dtype=object)
        names, counts = np.unique(words[~is_missing], return_counts=True)
        frequent = np.argsort(-counts, kind="stable")[:_MOST_CATEGORIES]
        categories = tuple(sorted(str(names[at]) for at in frequent))
        place = {name: at for at, name in enumerate(categories)}
        found = [place.get(word, len(categories)) for word in texts]
        codes = np.where(is_missing, -1, np.array(found, dtype=np.intp))
        return cls(np.full(len(texts), np.nan), categories, codes, is_missing)

    @classmethod
    def of_number(cls, numbers: Floats, is_missing: npt.NDArray[np.bool_]) -> Positions:
        """Return the positions of a number or a date, between two quantiles."""
        present, shares = numbers[~is_missing], np.full(len(numbers), np.nan)
        if len(present):
            low, high = np.quantile(present, _ENDS).tolist()
            if high <= low:
                low, high = float(present.min()), float(present.max())
            spread = high - low
            shares[~is_missing] = np.clip((present - low) / spread, 0, 1) if spread > 0 else 0.5
        nowhere = np.full(len(numbers), -1, dtype=np.intp)
        return cls(shares, (), nowhere, is_missing)


def show_rows(
    layout: Layout,
    rows: Any,  # noqa: ANN401
    matrix: Floats,
    names: Sequence[str],
    groups: Mapping[str, Sequence[str]] | None,
) -> tuple[tuple[str, ...], ...]:
    """Return the values of features, or of the members of groups, as text, row by row."""
    frame, is_missing = Frame(rows, layout.names), layout.is_missing(matrix)
    texts = {}
    for at, name in enumerate(layout.names):
        values = frame.column(name)
        listed = values.to_pylist() if hasattr(values, "to_pylist") else list(values)
        texts[name] = [
            MISSING if missing else show_value(value)
            for value, missing in zip(listed, is_missing[:, at], strict=True)
        ]
    for group, members in (groups or {}).items():
        parts = zip(*(texts[member] for member in members), strict=True)
        texts[group] = [", ".join(each) for each in parts]
    return tuple(zip(*(texts[name] for name in names), strict=True))


def show_value(value: Any) -> str:  # noqa: ANN401
    """Return one value as text.

    Examples
    --------
    >>> import pandas as pd
    >>> [show_value(each) for each in (3, 0.123456, 1234567.0, "Adelie", True)]
    ['3', '0.1235', '1,234,567', 'Adelie', 'True']
    >>> show_value(pd.Timestamp("2024-05-01"))
    '2024-05-01'
    """
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value))
    if isinstance(value, (int, np.integer)):
        whole = int(value)
        return f"{whole:,}" if abs(whole) >= _LARGE else str(whole)
    if isinstance(value, (float, np.floating)):
        return _number(float(value))
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[s]").item()
    text = str(value)
    return text.removesuffix(" 00:00:00").removesuffix("T00:00:00")


def _number(value: float) -> str:
    if not math.isfinite(value):
        return MISSING
    size = abs(value)
    if _LARGE <= size < _HUGE:
        return f"{value:,.0f}"
    return f"{value:.4g}"
