"""Rows on disk that need not fit into memory: some of them, drawn at random, or all in batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from dsage._check import (
    Setting,
    Text,
    check_count,
    check_member,
    check_members,
    import_extra,
    refusal,
    warn,
)
from dsage._random import RandomState, Streams
from dsage.data.batches import Batches, is_on_disk, open_batches

MAX_ROWS = 200_000
"""Rows of a file that are held in memory, if they have few columns."""
MAX_BYTES = 2**27
"""Memory of the rows of a file, as floats."""

_WHERE = "Pass the name of a column"


def sample_rows(
    data: Any,  # noqa: ANN401
    n_rows: int | None = None,
    *,
    columns: str | list[str] | None = None,
    random_state: RandomState = 0,
) -> pd.DataFrame:
    """Read rows from disk, drawn at random if there are many.

    Only one batch and the drawn rows are in memory. Which rows are drawn depends only on the number
    of rows and on the seed, not on batches, row groups or files.

    Parameters
    ----------
    data : path or pyarrow Dataset
        A Parquet file, a folder of them, or a data set.
    n_rows : int, optional
        The largest number of rows; by default 200,000, and fewer with more than 80 columns.
    columns : list of str, optional
        The columns; all by default.
    random_state : int, numpy Generator or None, default=0
        Seed of the draw.

    Returns
    -------
    pandas.DataFrame
        The rows in their order, with their numbers as the index.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "numbers.parquet"
    >>> pd.DataFrame({"a": range(1000), "b": 0.5}).to_parquet(file, row_group_size=100)
    >>> rows = sample_rows(file, 5)
    >>> len(rows), bool((rows["a"] == rows.index).all())
    (5, True)
    """
    batches = open_batches(data)
    wanted = batches.names if columns is None else columns
    names = list(check_members(wanted, batches.names, "columns", "the columns of the data"))
    most = most_rows(len(names)) if n_rows is None else check_count(n_rows, "n_rows")
    chosen = None
    if batches.n_rows > most:
        generator = Streams(random_state)("rows-on-disk")
        chosen = np.sort(generator.choice(batches.n_rows, most, replace=False, shuffle=False))
    parts, start = [], 0
    for batch in batches.read(names):
        stop = start + batch.num_rows
        numbers = np.arange(start, stop)
        if chosen is not None:
            numbers = chosen[slice(*np.searchsorted(chosen, [start, stop]).tolist())]
        if len(numbers):
            parts.append(batch if len(numbers) == batch.num_rows else batch.take(numbers - start))
        start = stop
    if not parts:
        raise refusal("data", "of at least one row", batches.n_rows, "It has none")
    arrow = import_extra("pyarrow", "Reading Parquet files", "parquet")
    # Batches may have different categories.
    rows: pd.DataFrame = arrow.concat_tables(parts).unify_dictionaries().to_pandas()
    return rows.set_axis(np.arange(start) if chosen is None else chosen, axis=0)


def most_rows(n_columns: int) -> int:
    """Return the largest number of rows that are held in memory."""
    return max(1, min(MAX_ROWS, MAX_BYTES // (8 * max(1, n_columns))))


@dataclass(frozen=True, eq=False)
class DiskInputs:
    """Rows and targets of a call, read from disk.

    Parameters
    ----------
    X_train, y_train, X_test, y_test : frames and series
        Rows that are held in memory; None for evaluation rows that were not given.
    target : str
        The column of the target.
    source : Batches
        All training rows, with the target.
    """

    X_train: pd.DataFrame
    y_train: pd.Series[Any]
    X_test: Any
    y_test: Any
    target: str
    source: Batches


def read_inputs(
    X_train: Any,  # noqa: ANN401
    y_train: Any,  # noqa: ANN401
    X_test: Any,  # noqa: ANN401
    y_test: Any,  # noqa: ANN401
    random_state: RandomState,
) -> DiskInputs | None:
    """Return the rows of files and data sets; None if the training rows are in memory.

    The target is a column of the file, by its name. Evaluation rows may be on disk or in memory.
    """
    if not is_on_disk(X_train):
        if is_on_disk(X_test):
            advice = "Pass two files, or two tables in memory"
            raise refusal(
                "X_train", "on disk if X_test is", type(X_train).__name__, advice, TypeError
            )
        return None
    source = open_batches(X_train)
    if not isinstance(y_train, str):
        found = type(y_train).__name__
        condition = "the name of a column if X_train is on disk"
        raise refusal("y_train", condition, found, _WHERE, TypeError)
    target = check_member(y_train, source.names, "y_train", "the columns of X_train")
    features = [name for name in source.names if name != target]
    train = _read("X_train", source, [*features, target], random_state)
    rows, targets = X_test, y_test
    if is_on_disk(X_test):
        if not (y_test is None or isinstance(y_test, str)):
            condition = "the name of a column, or left out, if X_test is on disk"
            raise refusal("y_test", condition, type(y_test).__name__, _WHERE, TypeError)
        held_out = open_batches(X_test)
        name = target if y_test is None else y_test
        check_members([*features, name], held_out.names, "X_test", "its columns")
        test = _read("X_test", held_out, [*features, name], random_state)
        rows, targets = test[features], test[name]
    return DiskInputs(train[features], train[target], rows, targets, target, source)


def _read(
    parameter: str, batches: Batches, columns: list[str], random_state: RandomState
) -> pd.DataFrame:
    rows = sample_rows(batches, columns=columns, random_state=random_state)
    if len(rows) < batches.n_rows:
        use = (
            "the graph is learned from all of them, the sampler from"
            if parameter == "X_train"
            else "the model is evaluated on"
        )
        start = f"{parameter} has {batches.n_rows:,} rows on disk: {use} {len(rows):,} of them, "
        ending = ". The standard errors from the choice of rows include the effect."
        warn(Text([f"{start}drawn at random with ", Setting("random_state"), ending]))
    return rows
