"""The variables of a mixture: columns of data as numbers, or as tables.

Numbers vary continuously. Tables have few states: classes, codes, columns of zeros and ones that
exclude each other (one table together), and the special values of a number.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dsage.data.kinds import Kind
from dsage.data.layout import Layout
from dsage.samplers.checks import Floats, Ints

# A number that has this share of the rows is a special value, with its own state.
_SPECIAL_SHARE = 0.05
# Whole numbers with at most this many values, each with this many rows on average, are a table.
_MAX_VALUES, _ROWS_PER_VALUE = 30, 20
# A class with more categories is grouped: frequent ones on their own, the others by similarity.
MAX_STATES, _N_GROUPS, _ROWS_PER_STATE = 48, 8, 20


@dataclass(frozen=True, eq=False)
class Table:
    """A variable with states.

    Parameters
    ----------
    columns : int array of shape (n_columns,)
        The columns of the data that it represents.
    values : array of shape (n_levels, n_columns)
        Their values, NaN for missing ones, one line per level.
    state_of : int array of shape (n_levels,)
        The state of each level; several levels of a class may share one.
    shares : array of shape (n_levels,)
        The share of each level in its state.
    is_class : bool
        Whether the levels are codes of categories: those that training lacks are like no other.
    """

    columns: Ints
    values: Floats
    state_of: Ints
    shares: Floats
    is_class: bool = False

    @property
    def n_states(self) -> int:
        """The number of states."""
        return int(self.state_of.max()) + 1

    @property
    def has_groups(self) -> bool:
        """Whether some levels share a state."""
        return len(self.state_of) > self.n_states

    def read(self, X: Floats) -> Ints:
        """Return the levels of rows, whose columns all are known; -1 for one not in training.

        Numbers between the values of training get the nearest one.
        """
        if len(self.columns) > 1:
            agrees = self.agrees(X, np.ones(len(self.columns), bool))
            return np.where(agrees.any(axis=1), agrees.argmax(axis=1), -1)
        x, values = X[:, self.columns[0]], self.values[:, 0]
        if self.is_class:
            return np.where((x >= 0) & (x < len(values)), x, -1).astype(np.intp)
        n_present = int((~np.isnan(values)).sum())
        missing = n_present if n_present < len(values) else -1
        if not n_present:
            return np.full(len(x), missing)
        middles = values[: n_present - 1] / 2 + values[1:n_present] / 2
        levels = np.searchsorted(middles, x)
        levels[np.isnan(x)] = missing
        return levels

    def read_states(self, X: Floats) -> Ints:
        """Return the states of rows; -1 for a level that is not in training."""
        levels = self.read(X)
        return np.where(levels < 0, -1, self.state_of[levels])

    def agrees(
        self, X: Floats, known: np.ndarray[tuple[int], np.dtype[np.bool_]]
    ) -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
        """Return which levels agree with the known columns of rows, (n_rows, n_levels)."""
        at = np.flatnonzero(known)
        given = X[:, self.columns[at]]
        agrees = np.ones((len(X), len(self.values)), bool)
        for position, column in enumerate(at):
            agrees &= given[:, position, None] == self.values[:, column]
        return agrees


@dataclass(frozen=True, eq=False)
class Number:
    """A variable that varies continuously, and its special values.

    Parameters
    ----------
    columns : tuple of int
        The column of the data, and its copies.
    special : array
        Values with their own states: frequent ones, and NaN if some are missing.
    table : int
        The table, among all of them, of the states: 0 for any other value, then the special ones;
        -1 if there are none.
    """

    columns: tuple[int, ...]
    special: Floats
    table: int = -1

    def mark(self, x: Floats) -> Ints:
        """Return the states of values: 0, or 1 plus the position of the special value."""
        states = np.zeros(x.shape, np.intp)
        for position, value in enumerate(self.special):
            states[np.isnan(x) if np.isnan(value) else x == value] = position + 1
        return states


@dataclass(frozen=True, eq=False)
class Variables:
    """The variables of a data set. Tables of special values come after the others."""

    numbers: tuple[Number, ...]
    tables: tuple[Table, ...]
    n_states: tuple[int, ...]  # of all tables, and then of the special values of numbers

    @classmethod
    def of(cls, X: Floats, layout: Layout) -> Variables:
        """Find the variables of training rows."""
        copies: dict[int, list[int]] = {}
        for copy, first in layout.copies.items():
            copies.setdefault(first, []).append(copy)
        done = set(layout.copies)
        tables, found = [], []
        for each in layout.exclusive:
            tables.append(_join(each.columns, each.states, copies))
            done.update(each.columns.tolist())
        axis: Floats | None = None
        for column in range(len(layout.names)):
            if column in done:
                continue
            columns = np.array([column, *copies.get(column, ())], np.intp)
            if layout.n_categories[column]:
                if layout.n_categories[column] > MAX_STATES and axis is None:
                    axis = _main_axis(X, layout)
                tables.append(_class_table(columns, X[:, column], layout, axis))
                continue
            values, counts = np.unique(X[:, column], return_counts=True)
            if _is_table(values, len(X), layout.value_kinds[column]):
                tables.append(_plain_table(columns, values))
            else:
                is_special = (counts >= max(_SPECIAL_SHARE * len(X), 5)) | np.isnan(values)
                found.append((tuple(columns.tolist()), values[is_special]))
        numbers, n_states = [], [table.n_states for table in tables]
        for chosen, special in found:
            numbers.append(Number(chosen, special, len(n_states) if len(special) else -1))
            if len(special):
                n_states.append(len(special) + 1)
        return cls(tuple(numbers), tuple(tables), tuple(n_states))

    @property
    def is_plain(self) -> bool:
        """Whether all columns are numbers, without special values and copies."""
        are_plain = all(len(n.columns) == 1 and n.table < 0 for n in self.numbers)
        return are_plain and not self.tables

    def read(self, X: Floats) -> tuple[Floats, Ints]:
        """Return numbers (n_rows, n_numbers), NaN if special, and states (n_rows, all tables)."""
        states = np.zeros((len(X), len(self.n_states)), np.intp)
        for position, table in enumerate(self.tables):
            states[:, position] = table.read_states(X)
        values = np.empty((len(X), len(self.numbers)))
        for position, number in enumerate(self.numbers):
            x = X[:, number.columns[0]]
            marks = number.mark(x)
            values[:, position] = np.where(marks > 0, np.nan, x)
            if number.table >= 0:
                states[:, number.table] = marks
        return values, states


def _is_table(values: Floats, n_rows: int, kind: Kind) -> bool:
    n_values = len(values)
    if n_values <= 1 or kind == Kind.CODES:
        return True
    is_few = n_values <= _MAX_VALUES and n_values * _ROWS_PER_VALUE <= n_rows
    return kind == Kind.INTEGER and is_few


def _plain_table(columns: Ints, values: Floats) -> Table:
    wide = np.repeat(values[:, None], len(columns), axis=1)
    return Table(columns, wide, np.arange(len(values)), np.ones(len(values)))


def _join(columns: Ints, states: Floats, copies: dict[int, list[int]]) -> Table:
    """Return the table of exclusive columns, and of their copies."""
    every, values = list(columns), [states]
    for position, column in enumerate(columns):
        for copy in copies.get(int(column), ()):
            every.append(copy)
            values.append(states[:, position, None])
    n_states = len(states)
    wide = np.concatenate(values, axis=1)
    return Table(np.array(every, np.intp), wide, np.arange(n_states), np.ones(n_states))


def _class_table(columns: Ints, codes: Floats, layout: Layout, axis: Floats | None) -> Table:
    """Return the table of a class; rare categories of one with many are grouped by similarity."""
    n_levels = int(layout.n_categories[columns[0]])
    plain = _plain_table(columns, np.arange(n_levels, dtype=np.float64))
    table = replace(plain, is_class=True)
    if n_levels <= MAX_STATES or axis is None:
        return table
    levels = codes.astype(np.intp)
    counts = np.bincount(levels, minlength=n_levels)
    order = np.argsort(-counts, kind="stable")
    n_own = min(MAX_STATES - _N_GROUPS, int((counts >= _ROWS_PER_STATE).sum()))
    state_of = np.empty(n_levels, np.intp)
    state_of[order[:n_own]] = np.arange(n_own)
    rare = order[n_own:]
    # The mean along the main axis of the other columns, shrunk to 0 as with one row more.
    sums = np.bincount(levels, weights=axis, minlength=n_levels)
    places = np.argsort((sums / (counts + 1.0))[rare], kind="stable")
    below = np.cumsum(counts[rare[places]]) - counts[rare[places]]
    total = max(1, int(counts[rare].sum()))
    groups = np.minimum(_N_GROUPS * below // total, _N_GROUPS - 1)
    # Groups without a rare category are left out.
    _, state_of[rare[places]] = np.unique(groups, return_inverse=True)
    state_of[rare] += n_own
    in_state = np.bincount(state_of, weights=counts)[state_of]
    shares = np.where(in_state > 0, counts / np.maximum(in_state, 1.0), 0.0)
    return replace(table, state_of=state_of, shares=shares)


def _main_axis(X: Floats, layout: Layout) -> Floats:
    """Return the first principal component of the numbers and of classes with few categories."""
    parts = []
    for column, n_categories in enumerate(layout.n_categories):
        x = X[:, column]
        if n_categories == 0:
            center = np.nanmean(x) if not np.isnan(x).all() else 0.0
            filled = np.where(np.isnan(x), center, x) - center
            spread = filled.std()
            parts.append((filled / (spread if spread > 0 else 1.0))[:, None])
        elif n_categories <= MAX_STATES:
            indicators = np.eye(n_categories)[x.astype(np.intp)]
            parts.append(indicators - indicators.mean(axis=0))
    if not parts:
        return np.zeros(len(X))
    wide = np.concatenate(parts, axis=1)
    _, vectors = np.linalg.eigh(wide.T @ wide)
    axis: Floats = wide @ vectors[:, -1]
    return axis
