"""The interface to the rows of a table that statistics need, in memory or on disk."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, Self

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.intp]


class Rows(ABC):
    """Typed columns that are read in chunks.

    Attributes
    ----------
    names, continuous, discrete : tuple of str
        The columns, and those of each type.
    n_rows : int
        The number of rows.
    indicators : dict of str to tuple of str
        Columns that `completed` has added, and those whose missing values they indicate.
    merged : dict of str to int
        Discrete columns with merged categories, and how many other categories they have.
    """

    names: tuple[str, ...]
    continuous: tuple[str, ...]
    discrete: tuple[str, ...]
    n_rows: int
    indicators: dict[str, tuple[str, ...]]
    merged: dict[str, int]

    @abstractmethod
    def select(self, names: str | Iterable[str]) -> Self:
        """Return a view of some of the columns, in the order given."""

    @abstractmethod
    def completed(self) -> Self:
        """Return a view without missing values, with indicators of them as further columns."""

    @abstractmethod
    def chunks(self) -> Iterator[Floats]:
        """Yield the continuous columns as arrays, missing values filled in."""

    @abstractmethod
    def numbers(self) -> Iterator[Floats]:
        """Yield the continuous columns as `chunks` does, but NaN where values are missing."""

    @abstractmethod
    def batches(self) -> Iterator[tuple[Floats, Codes]]:
        """Yield the continuous columns as `numbers` does, and the discrete ones as codes."""

    @abstractmethod
    def categories(self, name: str) -> tuple[Any, ...]:
        """Return the categories of a discrete column, in the order of its codes."""

    @abstractmethod
    def frequencies(self, name: str) -> Codes:
        """Return how often each category of a discrete column occurs."""

    def pick(self, rows: Codes) -> Floats:
        """Return some rows of the numbers; `rows` are in increasing order."""
        parts, at = [], 0
        for chunk in self.numbers():
            inside = rows[np.searchsorted(rows, at) : np.searchsorted(rows, at + len(chunk))] - at
            parts.append(chunk[inside])
            at += len(chunk)
        return np.concatenate(parts) if parts else np.empty((len(rows), 0))


def spread(n_rows: int, most: int) -> Codes:
    """Return the positions of at most `most` rows, evenly spread.

    >>> spread(9, 3), spread(2, 3)
    (array([0, 4, 8]), array([0, 1]))
    """
    if n_rows <= most:
        return np.arange(n_rows)
    return np.linspace(0, n_rows - 1, most).round().astype(np.intp)
