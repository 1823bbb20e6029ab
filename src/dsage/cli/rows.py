"""Read tables, check their columns, and split them into training and evaluation rows."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.model_selection import train_test_split

from dsage._check import check_member, check_members, refusal, shown
from dsage.cli.commands import TableCommand
from dsage.cli.output import note
from dsage.cli.texts import find_commas, parse_dates, remark
from dsage.data.columns import check_kinds, column_kind
from dsage.data.files import read_table
from dsage.data.kinds import CLASSES, SAYABLE, Kind

Indices = npt.NDArray[np.intp]

MANY_ROWS = 1_000_000
"""Larger Parquet files are read in batches; so many of their rows are used, drawn at random."""
_MIN_ROWS = 10
_KINDS = ("number", "class", "time")
# So many rows are named in errors.
_N_NAMED = 5


class Split(NamedTuple):
    """Training and evaluation rows, and what the features are.

    `classes` are the features that are classes, by their type or because the user says so,
    `discrete` the numeric columns among them, and `times` those of dates and times. `has_gaps` is
    whether numbers or times are missing. `is_shared` is whether both have all rows.
    """

    X_train: pd.DataFrame
    y_train: pd.Series[Any]
    X_test: pd.DataFrame
    y_test: pd.Series[Any]
    classes: tuple[str, ...]
    discrete: tuple[str, ...]
    times: tuple[str, ...]
    has_gaps: bool
    is_classification: bool
    is_shared: bool


def read_rows(
    command: TableCommand, *, needs_target: bool = True, reads_dates: bool = True
) -> pd.DataFrame:
    """Return the table in a file, after checking its columns.

    The columns that the options name must exist. Values may be missing, except those of the target
    where it is needed, but not infinite. Texts that are numbers but for their commas are refused.
    Those that are dates become dates, if `reads_dates` is true.
    """
    name = command.data.name
    table = read_table(
        command.data, drop=command.drop or (), max_rows=MANY_ROWS, **command.csv_format
    )
    _tell_sample(table, name)
    columns = [str(column) for column in table.columns]
    check_target_name(command, columns)
    kinds, discrete = find_kinds(command, columns)
    check_kinds(columns, [column_kind(table[column]) for column in columns], _KINDS)
    if reads_dates:
        said = {*kinds, *discrete, command.target}
        for column in columns:
            if column not in said:
                table[column] = parse_dates(table[column])
    _check_infinite(table, name)
    if command.target is not None and needs_target:
        _check_target(table[command.target], name)
    for column in columns:
        advice = "" if column in discrete else find_commas(table[column])
        if advice:
            first = str(table[column].dropna().iloc[0])
            raise refusal(f"{column!r} of {name}", "numbers", first, advice)
    return table


def _tell_sample(table: pd.DataFrame, name: str) -> None:
    if len(table) == MANY_ROWS:
        note(f"{name} is large: {MANY_ROWS:,} of its rows are used, drawn at random.", quiet=False)


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
    names = [str(column) for column in table.columns]
    test = read_table(data, columns=names, max_rows=MANY_ROWS, **command.csv_format)
    _tell_sample(test, data.name)
    for column in table.columns:
        wanted = column_kind(table[column])
        if wanted == "time":
            test[column] = parse_dates(test[column])
        found = column_kind(test[column])
        if wanted != found and test[column].isna().all():
            dtype = object if table[column].dtype == bool else table[column].dtype
            test[column] = pd.Series([None] * len(test), dtype=dtype)
        elif wanted != found:
            advice = f"In DATA it is a {wanted}: check its values"
            raise refusal(f"{column!r} of {data.name}", "as in DATA", found, advice, TypeError)
    _check_infinite(test, data.name)
    if command.target is not None:
        _check_target(test[command.target], data.name)
    return test


def note_columns(
    table: pd.DataFrame, target: str | None, said: Collection[str], *, quiet: bool
) -> None:
    """Note which columns are classes because of their type, which are dates, and which look odd.

    Nothing is said about the target, and about the columns whose kind the user says.
    """
    kinds = {str(name): column_kind(table[name]) for name in table.columns if name != target}
    if names := [name for name, kind in kinds.items() if kind == "class"]:
        note(f"Not numeric, so taken for classes: {shown(names)}.", quiet=quiet)
    if names := [name for name, kind in kinds.items() if kind == "time"]:
        note(f"Dates and times: {shown(names)}.", quiet=quiet)
    for name, kind in kinds.items():
        found = remark(table[name]) if kind == "class" and name not in said else None
        if found is not None and found.is_warning:
            note(f"Warning: {found.text}")
        # A column with another text in every row is an identifier, of which the run itself warns.
        elif found is not None and table[name].dropna().duplicated().any():
            note(found.text, quiet=quiet)


def split_rows(
    table: pd.DataFrame,
    target: str,
    *,
    test: pd.DataFrame | None,
    test_size: float,
    discrete: Sequence[str],
    is_classification: bool,
    seed: int,
) -> Split:
    """Split a table into training and evaluation rows.

    `test` are the evaluation rows, which may be the table itself; None holds out some rows of the
    table: the fraction `test_size`, or from 1 on this number.
    """
    kinds = {str(name): column_kind(table[name]) for name in table.columns if name != target}
    classes = tuple(name for name, kind in kinds.items() if kind == "class" or name in discrete)
    train, evaluation = table, test
    if evaluation is None:
        labels = table[target] if is_classification else None
        kept, held = _hold_out(len(table), labels, test_size, seed)
        train, evaluation = table.iloc[kept], table.iloc[held]
    train, evaluation = train.reset_index(drop=True), evaluation.reset_index(drop=True)
    numbers = [name for name in kinds if name not in classes]
    return Split(
        X_train=train.drop(columns=target),
        y_train=train[target],
        X_test=evaluation.drop(columns=target),
        y_test=evaluation[target],
        classes=classes,
        discrete=tuple(name for name in classes if kinds[name] == "number"),
        times=tuple(name for name in numbers if kinds[name] == "time"),
        has_gaps=any(bool(each[numbers].isna().any(axis=None)) for each in (train, evaluation)),
        is_classification=is_classification,
        is_shared=test is table,
    )


def _hold_out(
    n_rows: int, labels: pd.Series[Any] | None, test_size: float, seed: int
) -> tuple[Indices, Indices]:
    """Return training and evaluation rows; the former have all labels of the target."""
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
    if labels is not None:
        is_new = ~labels.iloc[held].isin(labels.iloc[kept].unique()).to_numpy()
    if is_new.all():
        advice = "Choose a larger --test-size, or remove classes that occur once"
        raise refusal("some held-out rows", "of classes that others have", f"{size} rows", advice)
    return np.sort(np.concatenate([kept, held[is_new]])), np.sort(held[~is_new])


def _check_infinite(table: pd.DataFrame, name: str) -> None:
    """Refuse infinite numbers, by column."""
    counts = np.isinf(table.select_dtypes("number", exclude="timedelta")).sum()
    if found := {str(column): int(n) for column, n in counts.items() if n > 0}:
        advice = (
            "These columns have that many infinite values. Replace them, by empty fields if they"
            " are missing, or leave the columns out with --drop"
        )
        raise refusal(name, "free of infinite values", found, advice)


def _check_target(column: pd.Series[Any], name: str) -> None:
    """Refuse a target of dates, and one that is missing in some rows."""
    what = f"the target {str(column.name)!r} of {name}"
    if column_kind(column) == "time":
        advice = "Convert it to numbers, such as days since a date"
        raise refusal(what, "of numbers or classes", str(column.dtype), advice, TypeError)
    rows = np.flatnonzero(column.isna())
    if len(rows):
        named = ", ".join(str(row + 1) for row in rows[:_N_NAMED])
        more = ", ..." if len(rows) > _N_NAMED else ""
        found = f"{len(rows)} of {len(column)} rows without a value: {named}{more}"
        advice = "Remove these rows, counted from 1 after the header: only features may be missing"
        raise refusal(what, "present in every row", found, advice)
