"""Tables: read and check them, and decide the kinds of their columns and of the target."""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd

from dsage._check import check_member, check_members, refusal, shown
from dsage.cli.options import TableCommand
from dsage.cli.output import note
from dsage.data.columns import check_kinds, column_kind
from dsage.data.files import read_table
from dsage.data.kinds import CLASSES, SAYABLE, Kind

MANY_ROWS = 1_000_000
"""Larger Parquet files are read in batches; this many of their rows are used, drawn at random."""
_KINDS = ("number", "class", "time")
# The number of rows that errors name.
_N_NAMED = 5
# Whole numbers are treated as classes if there are at most 10, each about ten times or more.
_FEW_CLASSES, _ROWS_PER_CLASS = 10, 10
# A target with more distinct integers than this is probably not a class.
_MAX_CLASSES = 20
# Texts are reported as numbers or dates if at least this fraction of them are.
_MOST = 0.9
_ISO = r"\d{4}-\d{2}-\d{2}(?:$|[T ])"

# Reading


def read_rows(
    command: TableCommand, *, needs_target: bool = True, reads_dates: bool = True
) -> pd.DataFrame:
    """Return the table in a file, after checking its columns.

    The columns that the options name must exist. Values may be missing, except in a target that is
    needed, but not infinite. Texts that would be numbers without their commas are refused. Texts
    that are dates become dates if `reads_dates` is true.
    """
    name = command.data.name
    table = read_table(
        command.data, drop=command.drop or (), max_rows=MANY_ROWS, **command.csv_format
    )
    _note_sample(table, name)
    columns = [str(column) for column in table.columns]
    check_target_name(command, columns)
    kinds, discrete = find_kinds(command, columns)
    check_kinds(columns, [column_kind(table[column]) for column in columns], _KINDS)
    if reads_dates:
        declared = {*kinds, *discrete, command.target}
        for column in columns:
            if column not in declared:
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


def _note_sample(table: pd.DataFrame, name: str) -> None:
    if len(table) == MANY_ROWS:
        note(f"{name} is large: {MANY_ROWS:,} of its rows are used, drawn at random.", quiet=False)


def check_target_name(command: TableCommand, columns: Sequence[str]) -> None:
    """Refuse a target that is not a column, or is the only one."""
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
    """Return the kinds that the options set, and the columns that they declare as classes."""
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
    _note_sample(test, data.name)
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
    table: pd.DataFrame, target: str | None, declared: Collection[str], *, quiet: bool
) -> None:
    """Note which columns are classes by their type, which are dates, and which look odd.

    The target, and columns that are `declared` by the user, are left out.
    """
    kinds = {str(name): column_kind(table[name]) for name in table.columns if name != target}
    if names := [name for name, kind in kinds.items() if kind == "class"]:
        note(f"Not numeric, so treated as classes: {shown(names)}.", quiet=quiet)
    if names := [name for name, kind in kinds.items() if kind == "time"]:
        note(f"Dates and times: {shown(names)}.", quiet=quiet)
    for name, kind in kinds.items():
        found = remark(table[name]) if kind == "class" and name not in declared else None
        if found is not None and found.is_warning:
            note(f"Warning: {found.text}")
        # The run itself warns of identifiers: columns with a different text in every row.
        elif found is not None and table[name].dropna().duplicated().any():
            note(found.text, quiet=quiet)


def _check_infinite(table: pd.DataFrame, name: str) -> None:
    """Refuse infinite numbers; the error counts them by column."""
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


# Whether the target is treated as classes or as numbers, and how to change that


class TargetRequest(NamedTuple):
    """An option that decides the kind of the target: its name, its value, and the kind."""

    option: str
    value: str
    is_classification: bool


class TargetKind(NamedTuple):
    """Whether the target is treated as classes, and why, in a sentence."""

    is_classification: bool
    text: str

    @classmethod
    def of(cls, name: str, reason: str, remedy: str = "", *, is_classification: bool) -> Self:
        """Make the sentence from a reason, and from a remedy in case it is wrong."""
        text = f"The target {name!r} is treated as {_name_kind(is_classification)}: {reason}."
        return cls(is_classification, f"{text} {remedy}." if remedy else text)


def _name_kind(is_classification: bool) -> str:
    return "classes" if is_classification else "numbers"


def find_declaration(command: TableCommand) -> TargetRequest | None:
    """Return the ``--kind`` or ``--discrete`` option of the target; None without one."""
    target = str(command.target)
    for text in reversed(command.kind or ()):
        column, _, kind = text.rpartition("=")
        if column == target:
            return TargetRequest("--kind", text, kind in CLASSES)
    is_discrete = target in (command.discrete or ())
    return TargetRequest("--discrete", target, True) if is_discrete else None


def decide_target(
    column: pd.Series[Any],
    *,
    request: TargetRequest | None = None,
    declared: TargetRequest | None = None,
) -> TargetKind:
    """Decide whether the target is classes or numbers.

    A target that is not numeric is classes. For numbers, `declared` decides if an option names the
    target; otherwise `request`, the kind that the model or the loss need, if one is given.
    Otherwise two different numbers are classes, and so are at most ten different whole numbers that
    each occur about ten times or more.
    """
    name = str(column.name)
    n_values = int(column.nunique())
    if column_kind(column) != "number":
        reason = f"its {n_values} different values are not numbers"
        return TargetKind.of(name, reason, is_classification=True)
    if declared is not None:
        reason = f"set by {declared.option} {shlex.quote(declared.value)}"
        return TargetKind.of(name, reason, is_classification=declared.is_classification)
    if request is not None:
        kind = _name_kind(request.is_classification)
        reason = f"{request.option} {shlex.quote(request.value)} needs {kind}"
        if request.option == "--model":
            reason = f"the model in {request.value} predicts {kind}"
        if request.is_classification:
            _check_classes(column, request)
        return TargetKind.of(name, reason, is_classification=request.is_classification)
    values = f"({shown(sorted(column.unique().tolist()))})"
    remedy = "If they are numbers, add --loss squared_error"
    if n_values == 2:
        return TargetKind.of(name, f"it has two values {values}", remedy, is_classification=True)
    is_few = n_values <= min(_FEW_CLASSES, len(column) / _ROWS_PER_CLASS)
    if is_few and _is_whole(column):
        found = f"it has only {n_values} different values, all whole numbers {values}"
        return TargetKind.of(name, found, remedy, is_classification=True)
    remedy = f"If they are classes, add --discrete {shlex.quote(name)}"
    reason = f"it has {n_values:,} different values"
    return TargetKind.of(name, reason, remedy, is_classification=False)


def _check_classes(column: pd.Series[Any], request: TargetRequest) -> None:
    """Refuse a continuous target if an option needs classes."""
    n_values = column.nunique()
    if n_values <= 2:
        return
    if _is_whole(column) and n_values <= max(_MAX_CLASSES, len(column) / 10):
        return
    name = str(column.name)
    advice = (
        f"{name!r} has {n_values} distinct numbers. Fit a regression, --fit lm or --fit rf; or, if"
        f" they are classes, add --discrete {name!r}"
    )
    raise refusal(request.option, "suited to a numeric target", request.value, advice)


def _is_whole(column: pd.Series[Any]) -> bool:
    return bool((column == column.round()).all())


# Columns of texts: which are dates, which were meant to be numbers, and remarks on them


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
    """Return texts such as 2024-01-31 or 2024-01-31 12:00 as times; other columns unchanged."""
    if not is_text(column):
        return column
    texts = column.dropna().astype(str)
    if not texts.str.match(_ISO).all():
        return column
    try:
        return pd.to_datetime(column, format="ISO8601")
    # Not dates, or dates in several time zones.
    except ValueError:
        return column


def find_commas(column: pd.Series[Any]) -> str:
    """Return advice about texts that would be numbers without their commas; empty for others."""
    if not is_text(column):
        return ""
    texts = _find_distinct(column)
    if not _share_of_numbers(texts.str.replace(",", "")) >= _MOST > _share_of_numbers(texts):
        return ""
    return (
        "These look like numbers with commas. If the commas are decimal separators, add --decimal ,"
        " (and --sep if fields are not separated by commas); if they separate thousands,"
        f" remove them. If the values are classes, add --discrete {str(column.name)!r}"
    )


def remark(column: pd.Series[Any]) -> Remark | None:
    """Return a remark on a feature of texts that is treated as a class; None if it is fine."""
    if not is_text(column):
        return None
    texts, name = _find_distinct(column), str(column.name)
    start = f"{name!r} is treated as a class with {len(texts):,} categories"
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
        f"{start} in {len(column):,} rows, so little can be learned from it. If it is a name"
        f" or an ID, leave it out with --drop {name!r}.",
        False,
    )


def _find_distinct(column: pd.Series[Any]) -> pd.Series[Any]:
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
