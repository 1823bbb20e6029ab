"""Columns of texts: which are dates, which were meant to be numbers, and what to say of them."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import pandas as pd

from dsage._check import shown
from dsage.data.columns import column_kind

# At least this fraction of a column's texts must be numbers or dates to say so.
_MOST = 0.9
_ISO = r"\d{4}-\d{2}-\d{2}(?:$|[T ])"


class Remark(NamedTuple):
    """A sentence about a column, and whether it is a warning: the column is probably misread."""

    text: str
    is_warning: bool


def is_text(column: pd.Series[Any]) -> bool:
    """Return whether a column has texts, and not only booleans or numbers."""
    if column_kind(column) != "class":
        return False
    return any(isinstance(value, str) for value in column.dropna().head(100))


def parse_dates(column: pd.Series[Any]) -> pd.Series[Any]:
    """Return texts such as 2024-01-31 or 2024-01-31 12:00 as times; a column of others as it is."""
    if not is_text(column):
        return column
    texts = column.dropna().astype(str)
    if not texts.str.match(_ISO).all():
        return column
    try:
        return pd.to_datetime(column, format="ISO8601")
    # No dates, or of several time zones.
    except ValueError:
        return column


def find_commas(column: pd.Series[Any]) -> str:
    """Return advice about texts that are numbers but for their commas; empty for others."""
    if not is_text(column):
        return ""
    texts = _distinct(column)
    if not _share_of_numbers(texts.str.replace(",", "")) >= _MOST > _share_of_numbers(texts):
        return ""
    return (
        "These look like numbers with commas: if these are decimal separators, add --decimal ,"
        " (and --sep if fields are not separated by commas); if they separate thousands,"
        f" remove them. If the values are classes, add --discrete {str(column.name)!r}"
    )


def remark(column: pd.Series[Any]) -> Remark | None:
    """Return what to say about a feature of texts that is taken for a class."""
    if not is_text(column):
        return None
    texts, name = _distinct(column), str(column.name)
    start = f"{name!r} is taken for a class of {len(texts):,} categories"
    odd = texts[pd.to_numeric(texts, errors="coerce").isna()]
    if 0 < len(odd) <= (1 - _MOST) * len(texts):
        them = shown(odd.iloc[:3].tolist())
        more = ", ..." if len(odd) > 3 else ""
        return Remark(
            f"{start}, but most of them are numbers, except {them}{more}. If these are missing"
            " values, leave their fields empty; otherwise correct them.",
            True,
        )
    if not (len(texts) > 2 and len(texts) > int(column.notna().sum()) / 2):
        return None
    if _are_dates(texts):
        return Remark(
            f"{start}, but they look like dates. Write them as 2024-01-31 to have them read as"
            f" dates, or leave them out with --drop {name!r}.",
            True,
        )
    return Remark(
        f"{start} in {len(column):,} rows, so that little can be learned from it. If it is a name"
        f" or an ID, leave it out with --drop {name!r}.",
        False,
    )


def _distinct(column: pd.Series[Any]) -> pd.Series[Any]:
    return column.dropna().drop_duplicates().astype(str)


def _share_of_numbers(texts: pd.Series[Any]) -> float:
    return float(pd.to_numeric(texts, errors="coerce").notna().mean())


def _are_dates(texts: pd.Series[Any]) -> bool:
    if not texts.str.contains(r"\d").mean() >= _MOST:
        return False
    with warnings.catch_warnings():
        # pandas warns if it cannot infer one format for all texts.
        warnings.simplefilter("ignore")
        found = pd.to_datetime(texts, errors="coerce", format="mixed", utc=True)
    return bool(found.notna().mean() >= _MOST)
