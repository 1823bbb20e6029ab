"""The data that a graph is learned from: rows, or sufficient statistics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from dsage._check import refusal
from dsage.data.batches import is_on_disk
from dsage.data.rows import Rows
from dsage.data.stream import Stream
from dsage.data.table import Table
from dsage.structure.counts import Counts
from dsage.structure.moments import Moments

Data = Rows | Moments | Counts


def as_data(
    data: Any,  # noqa: ANN401
    *,
    discrete: str | Iterable[str] = (),
    transform: str = "none",
    complete: bool = True,
) -> Data:
    """Return the data as typed columns; Rows, Moments and Counts are returned unchanged.

    A path or an Arrow data set becomes a :class:`~dsage.data.stream.Stream`.

    Missing numbers are filled in and indicated, see :meth:`~dsage.data.table.Table.completed`;
    they stay missing if `complete` is false.
    """
    if is_on_disk(data):
        if transform != "none":
            advice = "Ranks need all rows in memory: read the file first, or leave transform out"
            raise refusal("transform", "'none' with a file", transform, advice)
        data, discrete = Stream(data, discrete=discrete), ()
    if isinstance(data, Stream):
        data = data.completed() if complete else data
    if not isinstance(data, (Rows, Moments, Counts)):
        table = Table(data, discrete=discrete, transform=transform)
        return table.completed() if complete else table
    if tuple(discrete) or transform != "none":
        condition, given = f"left out with a {type(data).__name__}", (discrete, transform)
        advice = "Pass the data frame or array instead"
        raise refusal("discrete and transform", condition, given, advice)
    return data


def indicators(data: Data) -> dict[str, tuple[str, ...]]:
    """Return the variables that indicate missing values, and those whose values these are."""
    return dict(data.indicators) if isinstance(data, Rows) else {}


def merged_categories(data: Data) -> Iterator[str]:
    """Yield warnings about classes whose rare categories were merged."""
    for name, n_others in (data.merged if isinstance(data, Rows) else {}).items():
        start = f"Most categories of {name!r} occur too rarely to learn a graph from them:"
        yield (
            f"{start} those with fewer than 5 rows are merged into one."
            if n_others
            else f"{start} it stays isolated in the graph."
        )


def rows_of(data: Any, source: Data) -> Any:  # noqa: ANN401
    """Return the rows for a score of the user's own: as passed, or with missing values filled in.

    `source` is the result of `as_data`.
    """
    if isinstance(source, Stream):
        advice = "Read the file first: a score of your own receives a data frame"
        raise refusal("data", "in memory", "a file", advice, TypeError)
    return source.to_frame() if isinstance(source, Table) and source.is_completed else data


def sufficient(data: Data) -> Data:
    """Return the moments of continuous data, the counts of discrete data; mixed data unchanged."""
    kind = kind_of(data)
    if not isinstance(data, Rows) or kind == "mixed":
        return data
    return Moments.from_table(data) if kind == "continuous" else Counts.from_table(data)


def kind_of(data: Data) -> str:
    """Return whether the variables are ``"continuous"``, ``"discrete"`` or ``"mixed"``."""
    if isinstance(data, Moments):
        return "continuous"
    if isinstance(data, Counts):
        return "discrete"
    if not data.names or not data.n_rows:
        shape = (data.n_rows, len(data.names))
        raise refusal("data", "at least one row and one column", shape, "Pass some data")
    if data.continuous and data.discrete:
        return "mixed"
    return "discrete" if data.discrete else "continuous"
