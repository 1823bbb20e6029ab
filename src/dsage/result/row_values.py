"""The values of features in words: numbers, classes, dates, missing values, groups."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dsage.data.frames import Frame
from dsage.data.layout import Layout
from dsage.games.base import Floats

Label = str | int | float | bool

MISSING = "missing"


def show_rows(
    layout: Layout,
    rows: Any,  # noqa: ANN401
    matrix: Floats,
    names: Sequence[str],
    groups: Mapping[str, Sequence[str]] | None,
) -> tuple[tuple[str, ...], ...]:
    """Return the values of features, or of the members of groups, in words, row by row."""
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
    """Return one value in words.

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
        return f"{value:,}"
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
    if size >= 1e4 and size < 1e9:
        return f"{value:,.0f}"
    return f"{value:.4g}"
