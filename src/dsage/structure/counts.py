"""Distinct rows of discrete data and how often each occurs: all that discrete scores need."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from dsage._check import check_members, check_names, refusal
from dsage.data.table import Table

Codes = npt.NDArray[np.intp]
Level = Any

# Keys of rows are whole numbers below this, so that they fit into 64 bits with room for the sign.
_LARGEST_KEY = 2**62


class Counts:
    """Distinct rows of discrete variables with their multiplicities. Immutable.

    Every contingency table of the variables follows exactly, whatever their number. Counts of
    parts of the data merge into those of the whole, so the rows may come in batches.

    Parameters
    ----------
    names : iterable of str
        The variables.
    levels : sequence of sequences
        The levels of each variable, in the order of its codes.
    rows : array of int, shape (n_distinct, n_nodes)
        Codes, from 0; rows that occur twice are put together.
    multiplicity : array of int, shape (n_distinct,), optional
        How often each row occurs; once by default.

    Examples
    --------
    >>> counts = Counts.from_batches([[[True, False], [True, True]], [[True, True]]], ["a", "b"])
    >>> counts
    Counts(3 rows, 2 of them distinct, 2 nodes)
    >>> counts.levels
    ((True,), (False, True))
    >>> counts.table("b")
    array([1, 2])
    """

    __slots__ = ("_levels", "_multiplicity", "_names", "_rows")

    def __init__(
        self,
        names: Iterable[str],
        levels: Sequence[Sequence[Level]],
        rows: npt.ArrayLike,
        multiplicity: npt.ArrayLike | None = None,
    ) -> None:
        self._names = check_names(names)
        self._levels = tuple(tuple(of_column) for of_column in levels)
        codes = np.asarray(rows)
        shape = (len(codes), len(self._names))
        if codes.shape != shape or len(self._levels) != len(self._names):
            raise refusal("rows", f"of shape {shape}", codes.shape, "Give one column a variable")
        for name, column, n_categories in zip(self._names, codes.T, self.n_categories, strict=True):
            if len(column) and not (column.min() >= 0 and column.max() < n_categories):
                raise refusal(
                    "rows",
                    f"codes from 0 to {n_categories - 1} in the column {name!r}",
                    (int(column.min()), int(column.max())),
                    "Give each code a level",
                )
        weights = np.ones(len(codes), np.int64) if multiplicity is None else multiplicity
        counted = np.asarray(weights)
        if counted.shape != (len(codes),) or counted.dtype.kind not in "iu" or (counted < 1).any():
            raise refusal(
                "multiplicity", "a positive integer for each row", weights, "Count the rows"
            )
        self._rows, self._multiplicity = _distinct(
            codes.astype(_code_type(self._levels)), counted.astype(np.int64), self.n_categories
        )
        self._rows.flags.writeable = self._multiplicity.flags.writeable = False

    # Sources

    @classmethod
    def from_table(cls, table: Table) -> Self:
        """Count the rows of typed columns, each taken as discrete."""
        if not table.n_rows:
            raise refusal("the data", "at least one row", 0, "Give some rows")
        table.check_complete()
        rows = np.empty((table.n_rows, len(table.names)), dtype=np.uint32)
        levels = []
        for position, name in enumerate(table.names):
            rows[:, position], of_column = table.codes(name)
            levels.append(of_column)
        return cls(table.names, levels, rows)

    @classmethod
    def from_frame(cls, frame: Any, names: Iterable[str] | None = None) -> Self:  # noqa: ANN401
        """Count the rows of a data frame or array, each column of which is taken as discrete."""
        return cls.from_table(Table(frame, names))

    @classmethod
    def from_batches(cls, batches: Iterable[Any], names: Iterable[str] | None = None) -> Self:
        """Count rows that come in batches, data frames or arrays, all columns taken as discrete.

        Memory is needed for one batch and for the distinct rows.
        """
        total: Self | None = None
        columns = None if names is None else check_names(names)
        for batch in batches:
            part = cls.from_frame(batch, columns)
            total = part if total is None else total.merge(part)
            columns = total.names
        if total is None:
            raise refusal("batches", "at least one batch", 0, "Give some rows")
        return total

    # What they are

    @property
    def names(self) -> tuple[str, ...]:
        """The variables."""
        return self._names

    @property
    def levels(self) -> tuple[tuple[Level, ...], ...]:
        """The levels of each variable."""
        return self._levels

    @property
    def n_categories(self) -> tuple[int, ...]:
        """How many levels each variable has."""
        return tuple(len(of_column) for of_column in self._levels)

    @property
    def rows(self) -> npt.NDArray[np.integer[Any]]:
        """The distinct rows as codes, shape (n_distinct, n_nodes)."""
        return self._rows

    @property
    def multiplicity(self) -> npt.NDArray[np.int64]:
        """How often each distinct row occurs, shape (n_distinct,)."""
        return self._multiplicity

    @property
    def n_rows(self) -> int:
        """How many rows were counted."""
        return int(self._multiplicity.sum())

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        return f"Counts({self.n_rows} rows, {len(self._rows)} of them distinct, {len(self)} nodes)"

    # What can be made of them

    def table(self, names: str | Iterable[str]) -> npt.NDArray[np.int64]:
        """Return the contingency table of some variables, one axis a variable."""
        chosen = check_members(names, self._names, "names", "the variables of the counts")
        at = [self._names.index(name) for name in chosen]
        shape = tuple(self.n_categories[node] for node in at)
        table = np.zeros(shape, dtype=np.int64)
        np.add.at(table, tuple(self._rows[:, node] for node in at), self._multiplicity)
        return table

    def select(self, names: str | Iterable[str]) -> Self:
        """Return the counts of some of the variables, in the order given."""
        chosen = check_members(names, self._names, "names", "the variables of the counts")
        at = [self._names.index(name) for name in chosen]
        levels = [self._levels[node] for node in at]
        return type(self)(chosen, levels, self._rows[:, at], self._multiplicity)

    def merge(self, other: Counts) -> Self:
        """Return the counts of the rows of both; the levels are those that occur in either."""
        if odd := sorted(set(self._names) ^ set(other.names)):
            raise refusal("the counts", "of the same variables", odd, "These are in one part only")
        part = other.select(self._names)
        levels, one, two = [], [], []
        for node in range(len(self._names)):
            both = _sorted_levels({*self._levels[node], *part.levels[node]})
            code = {level: position for position, level in enumerate(both)}
            levels.append(both)
            one.append(np.array([code[level] for level in self._levels[node]])[self._rows[:, node]])
            two.append(np.array([code[level] for level in part.levels[node]])[part.rows[:, node]])
        rows = np.concatenate([np.column_stack(one), np.column_stack(two)])
        return type(self)(
            self._names,
            levels,
            rows,
            np.concatenate([self._multiplicity, part.multiplicity]),
        )

    def __add__(self, other: object) -> Self:
        return self.merge(other) if isinstance(other, Counts) else NotImplemented


def configurations(
    columns: Sequence[npt.NDArray[np.integer[Any]]], n_categories: Sequence[int], n_rows: int
) -> tuple[Codes, int]:
    """Return a number from 0 for the combination of codes in each row, and how many occur.

    Examples
    --------
    >>> configurations([np.array([0, 1, 1]), np.array([2, 0, 0])], [2, 3], 3)
    (array([0, 1, 1]), 2)
    """
    key, radix = np.zeros(n_rows, dtype=np.intp), 1
    for codes, levels in zip(columns, n_categories, strict=True):
        if radix * levels > _LARGEST_KEY:
            key, radix = _numbered(key, radix)
        key, radix = key * levels + codes, radix * levels
    return _numbered(key, radix)


def _numbered(key: Codes, radix: int) -> tuple[Codes, int]:
    """Replace the keys, below `radix`, by consecutive numbers in the same order."""
    if radix <= 1:
        return key, int(len(key) > 0)
    if radix > 8 * len(key) + 1024:
        values, inverse = np.unique(key, return_inverse=True)
        return inverse.astype(np.intp, copy=False), len(values)
    occurs = np.zeros(radix, dtype=np.bool_)
    occurs[key] = True
    number = np.cumsum(occurs) - 1
    return number[key], int(number[-1]) + 1


def _code_type(levels: Sequence[Sequence[Level]]) -> np.dtype[np.unsignedinteger[Any]]:
    return np.min_scalar_type(max((len(of_column) for of_column in levels), default=0))


def _distinct(
    rows: npt.NDArray[np.integer[Any]],
    multiplicity: npt.NDArray[np.int64],
    n_categories: Sequence[int],
) -> tuple[npt.NDArray[np.integer[Any]], npt.NDArray[np.int64]]:
    key, n_distinct = configurations(list(rows.T), n_categories, len(rows))
    first = np.full(n_distinct, -1, dtype=np.intp)
    first[key[::-1]] = np.arange(len(rows) - 1, -1, -1)
    total = np.zeros(n_distinct, dtype=np.int64)
    np.add.at(total, key, multiplicity)
    return rows[first], total


def _sorted_levels(levels: Iterable[Level]) -> list[Level]:
    try:
        return sorted(levels)
    except TypeError:
        return sorted(levels, key=repr)
