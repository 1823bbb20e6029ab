"""Columns of texts that are hardly classes: numbers written otherwise, dates, names."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import pandas as pd

from dsage.data.columns import column_kind

# So many of the texts have to be numbers or dates to call the column that.
_MOSTLY = 0.9
_FEWEST = 2


def check_texts(
    table: pd.DataFrame, target: str | None, discrete: Sequence[str], name: str
) -> None:
    """Refuse columns of texts that were meant to be numbers, and features with a text a row.

    Parameters
    ----------
    table : pandas.DataFrame
        The table.
    target : str or None
        The column that may have a text a row.
    discrete : sequence of str
        Columns that the user calls classes.
    name : str
        Of the file.
    """
    for column in table.columns:
        if column_kind(table[column]) != "class" or table[column].dtype == bool:
            continue
        texts = table[column].drop_duplicates().astype(str)
        if column not in discrete and _have_commas(texts):
            raise _refusal(
                column,
                name,
                f"texts such as {texts.iloc[0]!r}",
                "They look like numbers with commas: if these are decimal signs, give --decimal ,"
                " (and --sep if fields are not separated by commas); if they separate thousands,"
                f" take them out of the file. If they are classes, say --discrete {column!r}.",
            )
        n_categories, n_rows = len(texts), len(table)
        if column != target and n_categories > n_rows / 2 and n_categories > _FEWEST:
            got = f"{n_categories} classes in {n_rows} rows"
            raise _refusal(column, name, got, _advice(str(column), texts))


def _advice(column: str, texts: pd.Series[Any]) -> str:
    odd = texts[pd.to_numeric(texts, errors="coerce").isna()]
    if len(odd) <= (1 - _MOSTLY) * len(texts):
        listed = ", ".join(map(repr, odd.iloc[:3]))
        return f"Most are numbers, but not {listed}: mend or remove these rows."
    if _are_dates(texts):
        return (
            "They look like dates: turn them into numbers, such as days since a day, or leave"
            f" them out with --drop {column!r}."
        )
    return f"If it is a name or an ID, leave it out with --drop {column!r}."


def _refusal(column: object, name: str, got: str, advice: str) -> ValueError:
    condition = "numbers, or classes that occur more than once"
    return ValueError(f"{column!r} of {name} must be {condition}; got {got}. {advice}")


def _have_commas(texts: pd.Series[Any]) -> bool:
    """Tell whether texts are numbers but for commas in them."""
    return _share_of_numbers(texts.str.replace(",", "")) >= _MOSTLY > _share_of_numbers(texts)


def _share_of_numbers(texts: pd.Series[Any]) -> float:
    return float(pd.to_numeric(texts, errors="coerce").notna().mean())


def _are_dates(texts: pd.Series[Any]) -> bool:
    if not texts.str.contains(r"\d").mean() >= _MOSTLY:
        return False
    with warnings.catch_warnings():
        # Where the format is not clear, each text is read for itself.
        warnings.simplefilter("ignore")
        found = pd.to_datetime(texts, errors="coerce", format="mixed", utc=True)
    return bool(found.notna().mean() >= _MOSTLY)
