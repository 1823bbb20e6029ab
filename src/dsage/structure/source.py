"""The data that a graph is learned from: rows, or sufficient statistics."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dsage._check import refusal
from dsage.data.table import Table
from dsage.structure.counts import Counts
from dsage.structure.moments import Moments

Data = Table | Moments | Counts


def as_data(
    data: Any,  # noqa: ANN401
    *,
    discrete: str | Iterable[str] = (),
    transform: str = "none",
) -> Data:
    """Return the data as typed columns; Tables, Moments and Counts are returned unchanged."""
    if not isinstance(data, (Table, Moments, Counts)):
        return Table(data, discrete=discrete, transform=transform)
    if tuple(discrete) or transform != "none":
        condition, given = f"left out with a {type(data).__name__}", (discrete, transform)
        advice = "Pass the data frame or array instead"
        raise refusal("discrete and transform", condition, given, advice)
    return data


def sufficient(data: Data) -> Data:
    """Return the moments of continuous data, the counts of discrete data; mixed data unchanged."""
    kind = kind_of(data)
    if not isinstance(data, Table) or kind == "mixed":
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
