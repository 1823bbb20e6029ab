"""From files to rows to learn from and rows to evaluate on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dsage._check import check_member, check_members, refusal
from dsage.cli.errors import note
from dsage.cli.suspects import check_texts
from dsage.data.columns import check_kinds, column_kind, shown
from dsage.data.files import read_table

Indices = npt.NDArray[np.intp]

_FEWEST_ROWS = 10
# A number with so few values is taken for a class.
_TWO = 2


@dataclass(frozen=True, eq=False)
class Split:
    """Rows with their targets.

    Attributes
    ----------
    X_train, X_test : pandas.DataFrame
        Features.
    y_train, y_test : pandas.Series
        The target.
    classes : tuple of str
        The features that are classes, by their type or by the user's word.
    discrete : tuple of str
        Those of them that are numbers.
    is_of_classes : bool
        Whether the target is one.
    """

    X_train: pd.DataFrame
    y_train: pd.Series[Any]
    X_test: pd.DataFrame
    y_test: pd.Series[Any]
    classes: tuple[str, ...]
    discrete: tuple[str, ...]
    is_of_classes: bool


def read_rows(
    data: Path,
    target: str | None,
    drop: Sequence[str] = (),
    discrete: Sequence[str] = (),
    csv: Mapping[str, Any] | None = None,
) -> pd.DataFrame:
    """Return the table in a file, once it has the target and no gaps; `csv` says how it is written.

    Columns of texts that should have been numbers, or that are names, are refused.
    """
    table = read_table(data, drop=drop, **(csv or {}))
    columns = [str(column) for column in table.columns]
    if target is not None:
        check_member(target, columns, "--target", f"the columns of {data.name}")
        if len(columns) == 1:
            advice = "There is nothing but the target: give features as well"
            raise refusal(data.name, "of two columns at least", columns, advice)
    check_members(discrete, columns, "--discrete", f"the columns of {data.name}")
    check_kinds(columns, [column_kind(table[name]) for name in columns])
    _check_gaps(table, data.name)
    check_texts(table, target, discrete, data.name)
    return table


def read_test_rows(
    data: Path, table: pd.DataFrame, csv: Mapping[str, Any] | None = None
) -> pd.DataFrame:
    """Return the columns of a table from another file, once they are of the same kinds."""
    columns = [str(column) for column in table.columns]
    test = read_table(data, columns=columns, **(csv or {}))
    for column in table.columns:
        kinds = [column_kind(each[column]) for each in (table, test)]
        if kinds[0] != kinds[1]:
            advice = f"In DATA it is a {kinds[0]}: look at its values"
            raise refusal(f"{column!r} of {data.name}", "as in DATA", kinds[1], advice, TypeError)
    _check_gaps(test, data.name)
    return test


def split_rows(
    table: pd.DataFrame,
    target: str,
    *,
    test: pd.DataFrame | None,
    test_size: float,
    discrete: Sequence[str],
    of_classes: bool | None,
    seed: int,
) -> Split:
    """Divide a table into rows to learn from and rows to evaluate on.

    Parameters
    ----------
    table : pandas.DataFrame
        The rows.
    target : str
        The column to predict.
    test : pandas.DataFrame or None
        Rows to evaluate on, where they are given; else some of the table are held out.
    test_size : float
        Their share, or their number from 1 on.
    discrete : sequence of str
        Columns of numbers that are classes.
    of_classes : bool or None
        Whether the target is one; None to tell by its values.
    seed : int
        Of the split.
    """
    kinds = {str(name): column_kind(table[name]) for name in table.columns}
    classes = tuple(
        name
        for name, kind in kinds.items()
        if name != target and (kind == "class" or name in discrete)
    )
    if not of_classes:
        is_told = of_classes is not None
        of_classes = kinds[target] == "class" or target in discrete
        if not (of_classes or is_told) and table[target].nunique() == _TWO:
            of_classes = True
            note(f"{target!r} has two values, so it is taken for a class.")
    if test is not None:
        train, evaluation = table, test
    else:
        labels = table[target] if of_classes else None
        kept, held = _divided(table, classes, labels, test_size, seed)
        train, evaluation = table.iloc[kept], table.iloc[held]
    train, evaluation = train.reset_index(drop=True), evaluation.reset_index(drop=True)
    return Split(
        X_train=train.drop(columns=target),
        y_train=train[target],
        X_test=evaluation.drop(columns=target),
        y_test=evaluation[target],
        classes=classes,
        discrete=tuple(name for name in classes if kinds[name] == "number"),
        is_of_classes=of_classes,
    )


def tell_classes(table: pd.DataFrame, target: str | None) -> None:
    """Say which columns are classes because of their type."""
    names = [
        str(name)
        for name in table.columns
        if name != target and column_kind(table[name]) == "class"
    ]
    if names:
        note(f"Not numbers, so taken for classes: {shown(names)}.")


def _divided(
    table: pd.DataFrame,
    classes: Sequence[str],
    labels: pd.Series[Any] | None,
    test_size: float,
    seed: int,
) -> tuple[Indices, Indices]:
    """Return rows to learn from and rows held out, all of whose levels are among the former."""
    from sklearn.model_selection import train_test_split  # noqa: PLC0415

    n_rows = len(table)
    if n_rows < _FEWEST_ROWS:
        advice = "Give more, or the rows to evaluate on with --test"
        raise refusal("the data", f"of {_FEWEST_ROWS} rows at least", n_rows, advice)
    size = round(test_size * n_rows) if test_size < 1 else int(test_size)
    if not 1 <= size <= n_rows - _TWO:
        advice = "Give a share such as 0.25, or a number of rows"
        raise refusal("--test-size", f"fewer than all {n_rows} rows", test_size, advice)
    counts = None if labels is None else labels.value_counts()
    even = (
        counts is not None and int(counts.min()) >= _TWO and len(counts) <= min(size, n_rows - size)
    )
    kept, held = train_test_split(
        np.arange(n_rows), test_size=size, random_state=seed, stratify=labels if even else None
    )
    new = np.zeros(len(held), bool)
    for name in classes:
        column = table[name]
        new |= ~column.iloc[held].isin(column.iloc[kept].unique()).to_numpy()
    if new.all():
        advice = "Give a larger --test-size, or --drop columns with many rare values"
        raise refusal("the rows", "alike", f"{size} with values of their own", advice)
    return np.sort(np.concatenate([kept, held[new]])), np.sort(held[~new])


def _check_gaps(table: pd.DataFrame, name: str) -> None:
    numbers = table.select_dtypes("number")
    gaps = table.isna().sum().add(np.isinf(numbers).sum(), fill_value=0)
    found = [f"{column!r} ({int(n)} rows)" for column, n in gaps[gaps > 0].items()]
    if found:
        listed = ", ".join(found[:6]) + (", ..." if len(found) > 6 else "")
        raise ValueError(
            f"{name} must be without missing or infinite values; they are in {listed}. Remove these"
            " rows, fill them in (impute) before the model is fitted, or leave the columns out with"
            " --drop."
        )
