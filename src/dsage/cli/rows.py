"""Read tables, check their columns, and split them into training and evaluation rows."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.model_selection import train_test_split

from dsage._check import check_member, check_members, refusal, shown
from dsage.cli.commands import TableCommand
from dsage.cli.output import note
from dsage.data.columns import check_kinds, column_kind
from dsage.data.files import read_table
from dsage.data.kinds import CLASSES, SAYABLE, Kind

Indices = npt.NDArray[np.intp]

_MIN_ROWS = 10
# A numeric target with this many distinct values is taken for a class.
_BINARY = 2
# At least this fraction of a column's texts must be numbers or dates to say so.
_MOST = 0.9


class Split(NamedTuple):
    """Training and evaluation rows, and what is a class.

    `classes` are the features that are classes, by their type or because the user says so, and
    `discrete` the numeric columns among them.
    """

    X_train: pd.DataFrame
    y_train: pd.Series[Any]
    X_test: pd.DataFrame
    y_test: pd.Series[Any]
    classes: tuple[str, ...]
    discrete: tuple[str, ...]
    is_classification: bool


def read_rows(command: TableCommand) -> pd.DataFrame:
    """Return the table in a file, after checking its columns.

    The columns that the options name must exist, and no value may be missing. Text columns that
    look like numbers, names or dates are refused.
    """
    name = command.data.name
    table = read_table(command.data, drop=command.drop or (), **command.csv_format)
    columns = [str(column) for column in table.columns]
    check_target_name(command, columns)
    _, discrete = find_kinds(command, columns)
    check_kinds(columns, [column_kind(table[column]) for column in columns], ("number", "class"))
    _check_missing(table, name)
    for column in columns:
        is_target, is_discrete = column == command.target, column in discrete
        advice = advise_texts(table[column], is_target=is_target, is_discrete=is_discrete)
        if advice:
            condition = "numbers, or classes that occur more than once"
            first = str(table[column].iloc[0])
            raise refusal(f"{column!r} of {name}", condition, first, advice)
    return table


def check_target_name(command: TableCommand, columns: Sequence[str]) -> None:
    """Refuse a target that is no column, or the only one."""
    if command.target is None:
        return
    name = command.data.name
    check_member(command.target, columns, "--target", f"the columns of {name}")
    if len(columns) == 1:
        advice = "It has only the target: add features"
        raise refusal(name, "a table of two or more columns", list(columns), advice)


def find_kinds(
    command: TableCommand, columns: Sequence[str]
) -> tuple[dict[str, Kind], tuple[str, ...]]:
    """Return the kinds that the options say, and the columns that are classes by them."""
    name = command.data.name
    named = check_members(command.discrete or (), columns, "--discrete", f"the columns of {name}")
    kinds = parse_kinds(command.kind or (), columns, name)
    classes = (column for column, kind in kinds.items() if kind in CLASSES)
    return kinds, tuple(dict.fromkeys((*named, *classes)))


def parse_kinds(texts: Sequence[str], columns: Sequence[str], name: str) -> dict[str, Kind]:
    """Return the kinds of ``--kind`` by column."""
    found = {}
    for text in texts:
        column, sign, kind = text.rpartition("=")
        if not (column and sign):
            advice = "Write a column, '=' and its kind, such as --kind zip=class"
            raise refusal("--kind", "COLUMN=KIND", text, advice)
        check_member(column, columns, "--kind", f"the columns of {name}")
        found[column] = Kind(check_member(kind, SAYABLE, f"--kind {column}", "the kinds"))
    return found


def read_test_rows(data: Path, command: TableCommand, table: pd.DataFrame) -> pd.DataFrame:
    """Return the columns of `table` from another file, after checking that the types agree."""
    test = read_table(data, columns=[str(column) for column in table.columns], **command.csv_format)
    for column in table.columns:
        wanted, found = column_kind(table[column]), column_kind(test[column])
        if wanted != found:
            advice = f"In DATA it is a {wanted}: check its values"
            raise refusal(f"{column!r} of {data.name}", "as in DATA", found, advice, TypeError)
    _check_missing(test, data.name)
    return test


def note_classes(table: pd.DataFrame, target: str | None, *, quiet: bool) -> None:
    """Note which columns are classes because of their type."""
    kinds = {str(name): column_kind(table[name]) for name in table.columns if name != target}
    if names := [name for name, kind in kinds.items() if kind == "class"]:
        note(f"Not numeric, so taken for classes: {shown(names)}.", quiet=quiet)


def is_class(target: pd.Series[Any], discrete: Sequence[str]) -> bool:
    """Return whether a target is taken for a class: by its type, the options or its two values."""
    named = column_kind(target) == "class" or str(target.name) in discrete
    return named or target.nunique() == _BINARY


def split_rows(
    table: pd.DataFrame,
    target: str,
    *,
    test: pd.DataFrame | None,
    test_size: float,
    discrete: Sequence[str],
    is_classification: bool | None,
    seed: int,
) -> Split:
    """Split a table into training and evaluation rows.

    `test` are the evaluation rows; None holds out some rows of the table: the fraction `test_size`,
    or from 1 on this number. If `is_classification` is None, the values of the target decide.
    """
    kinds = {str(name): column_kind(table[name]) for name in table.columns}
    classes = tuple(
        name
        for name, kind in kinds.items()
        if name != target and (kind == "class" or name in discrete)
    )
    if not is_classification:
        is_open = is_classification is None
        is_classification = kinds[target] == "class" or target in discrete
        if is_open and not is_classification and is_class(table[target], discrete):
            is_classification = True
            note(f"{target!r} has two values, so it is taken for a class.")
    train, evaluation = table, test
    if evaluation is None:
        labels = table[target] if is_classification else None
        kept, held = _hold_out(table, classes, labels, test_size, seed)
        train, evaluation = table.iloc[kept], table.iloc[held]
    train, evaluation = train.reset_index(drop=True), evaluation.reset_index(drop=True)
    return Split(
        X_train=train.drop(columns=target),
        y_train=train[target],
        X_test=evaluation.drop(columns=target),
        y_test=evaluation[target],
        classes=classes,
        discrete=tuple(name for name in classes if kinds[name] == "number"),
        is_classification=is_classification,
    )


def _hold_out(
    table: pd.DataFrame,
    classes: Sequence[str],
    labels: pd.Series[Any] | None,
    test_size: float,
    seed: int,
) -> tuple[Indices, Indices]:
    """Return training and evaluation rows; the former have all categories of the latter."""
    n_rows = len(table)
    if n_rows < _MIN_ROWS:
        advice = "Add rows, or provide evaluation rows with --test"
        raise refusal("the data", f"{_MIN_ROWS} rows or more", n_rows, advice)
    size = round(test_size * n_rows) if test_size < 1 else int(test_size)
    # One row cannot be learned from.
    if not 1 <= size <= n_rows - 2:
        advice = "Use a fraction such as 0.25, or a number of rows"
        raise refusal("--test-size", f"fewer than all {n_rows} rows", test_size, advice)
    counts = None if labels is None else labels.value_counts()
    can_stratify = (
        counts is not None and int(counts.min()) >= 2 and len(counts) <= min(size, n_rows - size)
    )
    kept, held = train_test_split(
        np.arange(n_rows),
        test_size=size,
        random_state=seed,
        stratify=labels if can_stratify else None,
    )
    is_new = np.zeros(len(held), bool)
    for name in classes:
        column = table[name]
        is_new |= ~column.iloc[held].isin(column.iloc[kept].unique()).to_numpy()
    if is_new.all():
        advice = "Choose a larger --test-size, or --drop columns with many rare categories"
        raise refusal("some held-out rows", "free of new categories", f"{size} rows", advice)
    return np.sort(np.concatenate([kept, held[is_new]])), np.sort(held[~is_new])


def _check_missing(table: pd.DataFrame, name: str) -> None:
    n_missing = table.isna().sum().add(np.isinf(table.select_dtypes("number")).sum(), fill_value=0)
    found = {str(column): int(n) for column, n in n_missing.items() if n > 0}
    if found:
        advice = (
            "These columns have that many such rows. Remove the rows, impute the values before"
            " fitting the model, or leave the columns out with --drop"
        )
        raise refusal(name, "free of missing and infinite values", found, advice)


def advise_texts(column: pd.Series[Any], *, is_target: bool, is_discrete: bool) -> str:
    """Return advice for texts that were meant to be numbers, or with about one text per row."""
    if column_kind(column) != "class" or column.dtype == bool:
        return ""
    texts = column.dropna().drop_duplicates().astype(str)
    n_categories, n_rows = len(texts), len(column)
    if not is_discrete and n_categories and _have_commas(texts):
        return (
            "These look like numbers with commas: if these are decimal separators, add --decimal ,"
            " (and --sep if fields are not separated by commas); if they separate thousands,"
            f" remove them. If the values are classes, add --discrete {str(column.name)!r}"
        )
    if not is_target and n_categories > n_rows / 2 and n_categories > 2:
        return f"{n_categories} of {n_rows} values are distinct. {_advise(column.name, texts)}"
    return ""


def _advise(name: object, texts: pd.Series[Any]) -> str:
    odd = texts[pd.to_numeric(texts, errors="coerce").isna()]
    if len(odd) <= (1 - _MOST) * len(texts):
        return f"Most are numbers, but not {shown(odd.iloc[:3].tolist())}: fix or remove these rows"
    if _are_dates(texts):
        return (
            "They look like dates: convert them to numbers, such as days since a date, or leave"
            f" them out with --drop {name!r}"
        )
    return f"If it is a name or an ID, leave it out with --drop {name!r}"


def _have_commas(texts: pd.Series[Any]) -> bool:
    """Return whether texts are numbers except for their commas."""
    return _share_of_numbers(texts.str.replace(",", "")) >= _MOST > _share_of_numbers(texts)


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
