"""Distinct rows of discrete data and how often each occurs: all that discrete scores need."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from dsage._check import check_members, check_names, check_same_names, refusal
from dsage.data.rows import Rows, spread
from dsage.data.table import Table

Codes = npt.NDArray[np.intp]
Category = Any

# Keys of rows are whole numbers below this, so that they fit into 64 bits with room for the sign.
_LARGEST_KEY = 2**62

# Rows on disk that are counted together, at least, and distinct ones in memory, at most.
_MIN_MERGED, _MAX_DISTINCT = 1 << 17, 1 << 19


class Counts:
    """Distinct rows of discrete variables with their multiplicities. Immutable.

    Every contingency table of the variables follows exactly, whatever their number. Counts of
    parts of the data merge into counts of the whole, so rows can be counted in batches.

    Parameters
    ----------
    names : iterable of str
        The variables.
    categories : sequence of sequences
        The categories of each variable, in the order of its codes.
    rows : array of int, shape (n_distinct, n_nodes)
        Codes, from 0; equal rows are merged.
    multiplicity : array of int, shape (n_distinct,), optional
        How often each row occurs; once by default.

    Examples
    --------
    >>> counts = Counts.from_batches([[[True, False], [True, True]], [[True, True]]], ["a", "b"])
    >>> counts
    Counts(3 rows, 2 of them distinct, 2 nodes)
    >>> counts.categories
    ((True,), (False, True))
    >>> counts.table("b")
    array([1, 2])
    """

    def __init__(
        self,
        names: Iterable[str],
        categories: Sequence[Sequence[Category]],
        rows: npt.ArrayLike,
        multiplicity: npt.ArrayLike | None = None,
    ) -> None:
        self._names = check_names(names)
        self._categories = tuple(tuple(of_column) for of_column in categories)
        codes = np.asarray(rows)
        shape = (len(codes), len(self._names))
        if codes.shape != shape or len(self._categories) != len(self._names):
            advice = "Pass one column, and its categories, per variable"
            raise refusal("rows", f"of shape {shape}", codes.shape, advice)
        for name, column, n_categories in zip(self._names, codes.T, self.n_categories, strict=True):
            if len(column) and not (column.min() >= 0 and column.max() < n_categories):
                condition = f"codes from 0 to {n_categories - 1} in the column {name!r}"
                found = (int(column.min()), int(column.max()))
                raise refusal("rows", condition, found, "Pass a category for each code")
        weights = np.ones(len(codes), np.int64) if multiplicity is None else multiplicity
        counted = np.asarray(weights)
        if counted.shape != (len(codes),) or counted.dtype.kind not in "iu" or (counted < 1).any():
            condition = "a positive integer for each row"
            raise refusal("multiplicity", condition, weights, "Count the rows")
        codes = codes.astype(np.min_scalar_type(max(self.n_categories, default=0)))
        merged = _merge_equal(codes, counted.astype(np.int64), self.n_categories)
        self._rows, self._multiplicity = merged
        self._rows.flags.writeable = self._multiplicity.flags.writeable = False

    # Constructors

    @classmethod
    def from_table(cls, table: Rows) -> Self:
        """Count the rows of typed columns, all treated as discrete; missing values are None.

        If there are more than half a million distinct rows on disk, only half a million evenly
        spread rows are counted.
        """
        if not table.n_rows:
            raise refusal("the data", "at least one row", 0, "Pass some rows")
        if not isinstance(table, Table):
            return cls._from_disk(table, _MAX_DISTINCT)
        rows = np.empty((table.n_rows, len(table.names)), dtype=np.uint32)
        categories = []
        for position, name in enumerate(table.names):
            rows[:, position], of_column = table.codes(name)
            categories.append(of_column)
        return cls(table.names, categories, rows)

    @classmethod
    def _from_disk(cls, table: Rows, most: int, rows: Codes | None = None) -> Self:
        """Count discrete columns batch by batch, all rows or some in increasing order."""
        counted, at = _Running(table), 0
        for _, codes in table.batches():
            inside: Codes | slice = slice(None)
            if rows is not None:
                first, last = np.searchsorted(rows, [at, at + len(codes)])
                inside = rows[first:last] - at
            counted.add(codes[inside])
            at += len(codes)
            if rows is None and counted.n_distinct > most:
                return cls._from_disk(table, most, spread(table.n_rows, most))
        found = counted.result()
        return cls(found.names, found.categories, found.rows, found.multiplicity)

    @classmethod
    def from_frame(cls, frame: Any, names: Iterable[str] | None = None) -> Self:  # noqa: ANN401
        """Count the rows of a data frame or array, all columns treated as discrete."""
        return cls.from_table(Table(frame, names))

    @classmethod
    def from_batches(cls, batches: Iterable[Any], names: Iterable[str] | None = None) -> Self:
        """Count the rows of batches, data frames or arrays, all columns treated as discrete.

        Only one batch and the distinct rows are held in memory.
        """
        total: Self | None = None
        columns = None if names is None else check_names(names)
        for batch in batches:
            part = cls.from_frame(batch, columns)
            total = part if total is None else total.merge(part)
            columns = total.names
        if total is None:
            raise refusal("batches", "at least one batch", 0, "Pass some rows")
        return total

    # Properties

    @property
    def names(self) -> tuple[str, ...]:
        """The variables."""
        return self._names

    @property
    def categories(self) -> tuple[tuple[Category, ...], ...]:
        """The categories of each variable."""
        return self._categories

    @property
    def n_categories(self) -> tuple[int, ...]:
        """The number of categories of each variable."""
        return tuple(len(of_column) for of_column in self._categories)

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
        """The number of rows."""
        return int(self._multiplicity.sum())

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        return f"Counts({self.n_rows} rows, {len(self._rows)} of them distinct, {len(self)} nodes)"

    # Operations

    def table(self, names: str | Iterable[str]) -> npt.NDArray[np.int64]:
        """Return the contingency table of some variables, one axis per variable."""
        chosen = check_members(names, self._names, "names", "the variables of the counts")
        at = [self._names.index(name) for name in chosen]
        table = np.zeros([self.n_categories[node] for node in at], dtype=np.int64)
        np.add.at(table, tuple(self._rows[:, node] for node in at), self._multiplicity)
        return table

    def select(self, names: str | Iterable[str]) -> Self:
        """Return the counts of some of the variables, in the order given."""
        chosen = check_members(names, self._names, "names", "the variables of the counts")
        at = [self._names.index(name) for name in chosen]
        categories = [self._categories[node] for node in at]
        return type(self)(chosen, categories, self._rows[:, at], self._multiplicity)

    def merge(self, other: Counts) -> Self:
        """Return the counts of the rows of both, with the categories of both."""
        check_same_names(self._names, other.names, "the counts", "of the same variables")
        part = other.select(self._names)
        categories, columns = [], []
        for node in range(len(self._names)):
            both = _sort_categories({*self._categories[node], *part.categories[node]})
            code = {category: position for position, category in enumerate(both)}
            recoded = []
            for counts in (self, part):
                codes = np.array([code[category] for category in counts.categories[node]])
                recoded.append(codes[counts.rows[:, node]])
            categories.append(both)
            columns.append(np.concatenate(recoded))
        multiplicity = np.concatenate([self._multiplicity, part.multiplicity])
        return type(self)(self._names, categories, np.column_stack(columns), multiplicity)

    def __add__(self, other: object) -> Self:
        return self.merge(other) if isinstance(other, Counts) else NotImplemented


class _Running:
    """Counts of the rows seen so far."""

    def __init__(self, table: Rows) -> None:
        self._names = table.names
        self._categories = [table.categories(name) for name in table.names]
        self._counts: Counts | None = None
        self._waiting: list[Codes] = []
        self._n_waiting = 0

    @property
    def n_distinct(self) -> int:
        """The number of distinct rows, without those that wait to be counted."""
        return 0 if self._counts is None else len(self._counts.rows)

    def add(self, codes: Codes) -> None:
        self._waiting.append(codes)
        self._n_waiting += len(codes)
        # Seldom enough to be quick, often enough for bounded memory.
        if self._n_waiting > max(_MIN_MERGED, self.n_distinct):
            self.result()

    def result(self) -> Counts:
        parts: list[npt.NDArray[np.integer[Any]]] = [*self._waiting]
        times = [np.ones(self._n_waiting, np.int64)]
        if self._counts is not None:
            parts.append(self._counts.rows)
            times.append(self._counts.multiplicity)
        rows, multiplicity = np.concatenate(parts), np.concatenate(times)
        self._counts = Counts(self._names, self._categories, rows, multiplicity)
        self._waiting, self._n_waiting = [], 0
        return self._counts


def configurations(
    columns: Sequence[npt.NDArray[np.integer[Any]]], n_categories: Sequence[int], n_rows: int
) -> tuple[Codes, int]:
    """Return the number of each row's combination of codes, from 0, and the count of these."""
    key, radix = np.zeros(n_rows, dtype=np.intp), 1
    for codes, n_codes in zip(columns, n_categories, strict=True):
        if radix * n_codes > _LARGEST_KEY:
            key, radix = _renumber(key, radix)
        key, radix = key * n_codes + codes, radix * n_codes
    return _renumber(key, radix)


def _renumber(key: Codes, radix: int) -> tuple[Codes, int]:
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


def _merge_equal(
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


def _sort_categories(categories: Iterable[Category]) -> list[Category]:
    try:
        return sorted(categories)
    except TypeError:
        return sorted(categories, key=repr)
