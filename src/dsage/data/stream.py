"""Tables that are read from disk batch by batch, as often as needed."""

from __future__ import annotations

import copy
import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, Self

import numpy as np

from dsage._check import check_members, refusal
from dsage.data.batches import BATCH_ROWS, open_batches
from dsage.data.categories import factorize, sort_labels
from dsage.data.frames import Frame
from dsage.data.missing import check_infinite, missing_values
from dsage.data.numbers import read_numbers
from dsage.data.rows import Codes, Floats, Rows
from dsage.data.table import (
    MANY_CATEGORIES,
    MIN_INDICATED,
    RARE,
    ROWS_PER_CATEGORY,
    Table,
    free_name,
)
from dsage.data.times import Times

# A class with more categories is an identifier, and would not fit into memory.
_MAX_CATEGORIES = 100_000


class _Number(NamedTuple):
    """What is known about a column of numbers."""

    n_absent: int
    mean: float  # of the present values; 0 if there are none
    is_flag: bool  # whether there are present values, and all of them are equal
    pattern: bytes  # of the rows that are missing, or of all others
    is_first_absent: bool


class _Class(NamedTuple):
    """What is known about a column of classes."""

    codes: dict[Any, int]  # by category
    missing_code: int
    categories: tuple[Any, ...]
    frequencies: Codes


class Stream(Rows):
    """Typed columns of rows on disk: Parquet files, or a data set of pyarrow.

    Types, categories and missing values are those of a :class:`~dsage.data.table.Table` of the same
    rows. One pass over the rows finds them; every statistic then takes another pass. Only one batch
    and the categories are in memory.

    Parameters
    ----------
    data : path, pyarrow Dataset or Batches
        A Parquet file, a folder of them, or a data set.
    columns : iterable of str, optional
        The columns to use; all by default.
    discrete : str or iterable of str, default=()
        Numeric columns to treat as classes.
    batch_rows : int, default=65536
        The largest number of rows in memory at a time.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import pandas as pd
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "people.parquet"
    >>> pd.DataFrame({"age": [31, 54, 54], "sex": ["f", "m", "f"]}).to_parquet(file)
    >>> stream = Stream(file, batch_rows=2)
    >>> stream.n_rows, stream.continuous, stream.categories("sex")
    (3, ('age',), ('f', 'm'))
    """

    def __init__(
        self,
        data: Any,  # noqa: ANN401
        columns: Iterable[str] | None = None,
        *,
        discrete: str | Iterable[str] = (),
        batch_rows: int = BATCH_ROWS,
    ) -> None:
        self._source = open_batches(data, batch_rows)
        all_names = self._source.names
        wanted = all_names if columns is None else columns
        self.names = check_members(wanted, all_names, "columns", "the columns of the data")
        self.n_rows = self._source.n_rows
        if not self.n_rows or not self.names:
            shape = (self.n_rows, len(self.names))
            raise refusal("data", "at least one row and one column", shape, "Pass some data")
        self.indicators, self.merged = {}, {}
        first = next(self._source.read(self.names))
        typed = Table(first, discrete=discrete)
        self.discrete, self.continuous = typed.discrete, typed.continuous
        frame = Frame(first)
        self._times = {
            name: Times.of(frame.column(name))
            for name in self.continuous
            if frame.kinds[name] == "time"
        }
        self._incomplete: frozenset[str] = frozenset()
        self._flags: frozenset[str] = frozenset()
        self._numbers, self._classes = self._look()

    def select(self, names: str | Iterable[str]) -> Self:
        """Return a view of some of the columns, in the order given."""
        chosen = check_members(names, self.names, "names", "the columns of the data")
        view = copy.copy(self)
        view.names = chosen
        view.discrete = tuple(name for name in chosen if name in self.discrete)
        view.continuous = tuple(name for name in chosen if name in self.continuous)
        return view

    def completed(self) -> Self:
        """Return a view without missing values; see :meth:`~dsage.data.table.Table.completed`."""
        if self._incomplete or self._flags:
            return self
        found = {name: self._numbers[name] for name in self.continuous}
        found = {name: number for name, number in found.items() if number.n_absent}
        if not found:
            return self
        view = copy.copy(self)
        view._flags = frozenset(name for name, number in found.items() if number.is_flag)
        view._incomplete = frozenset(found) - view._flags
        shared: dict[bytes, list[str]] = {}
        for name, number in found.items():
            is_seen = min(number.n_absent, self.n_rows - number.n_absent) >= MIN_INDICATED
            if is_seen and name not in view._flags:
                shared.setdefault(number.pattern, []).append(name)
        indicators: dict[str, tuple[str, ...]] = {}
        for columns in shared.values():
            side = found[columns[0]].is_first_absent
            alike = [name for name in columns if found[name].is_first_absent == side]
            indicators[free_name(alike, (*self.names, *indicators))] = tuple(columns)
        view.indicators = indicators
        view.names = (*self.names, *indicators)
        view.continuous = (*self.continuous, *indicators)
        return view

    def categories(self, name: str) -> tuple[Any, ...]:
        """Return the categories of a discrete column, as :meth:`Table.codes` does."""
        return self._classes[name].categories

    def frequencies(self, name: str) -> Codes:
        """Return how often each category of a discrete column occurs."""
        return self._classes[name].frequencies

    def chunks(self) -> Iterator[Floats]:
        """Yield the continuous columns as arrays; missing values are refused or filled in."""
        fills = {
            position: self._numbers[name].mean
            for position, name in enumerate(self.continuous)
            if name in self._incomplete
        }
        for chunk in self.numbers():
            for position, fill in fills.items():
                chunk[np.isnan(chunk[:, position]), position] = fill
            yield chunk

    def numbers(self) -> Iterator[Floats]:
        """Yield the continuous columns as `chunks` does, but NaN where values are missing."""
        self._check_complete()
        for frame in self._frames(self.continuous):
            yield self._read(frame)

    def batches(self) -> Iterator[tuple[Floats, Codes]]:
        """Yield the continuous columns as `numbers` does, and the discrete ones as codes."""
        self._check_complete()
        for frame in self._frames(self.names):
            codes = np.empty((frame.n_rows, len(self.discrete)), dtype=np.intp)
            for position, name in enumerate(self.discrete):
                codes[:, position] = self._encode(frame, name)
            yield self._read(frame), codes

    # Reading

    def _check_complete(self) -> None:
        """Refuse missing values, unless the rows are `completed`."""
        known = {*self._incomplete, *self._flags, *self.indicators}
        if bad := [
            name for name in self.continuous if name not in known and self._numbers[name].n_absent
        ]:
            raise missing_values(bad)

    def _frames(self, names: Iterable[str]) -> Iterator[Frame]:
        """Yield the columns on disk that these columns are made of."""
        needed = {self.indicators[name][0] if name in self.indicators else name for name in names}
        columns = [name for name in self._source.names if name in needed]
        return (Frame(batch) for batch in self._source.read(columns))

    def _read(self, frame: Frame) -> Floats:
        read = np.empty((frame.n_rows, len(self.continuous)))
        for position, name in enumerate(self.continuous):
            if name in self.indicators:
                read[:, position] = np.isnan(self._column(frame, self.indicators[name][0]))
                continue
            values = self._column(frame, name)
            read[:, position] = ~np.isnan(values) if name in self._flags else values
        return read

    def _column(self, frame: Frame, name: str) -> Floats:
        """Return a column of numbers or times, NaN where they are missing."""
        native = frame.column(name)
        times = self._times.get(name)
        return read_numbers(native) if times is None else times.encode(native, name)

    def _encode(self, frame: Frame, name: str) -> Codes:
        known = self._classes[name]
        codes, labels = factorize(frame.column(name), name)
        # The last entry is for the code -1.
        of_label = [known.codes[_plain(label)] for label in labels]
        return np.array([*of_label, known.missing_code], dtype=np.intp)[codes]

    # The first pass

    def _look(self) -> tuple[dict[str, _Number], dict[str, _Class]]:
        """Read all rows once: where numbers are missing, and which categories there are."""
        seen = {name: _Seen() for name in self.continuous}
        labels: dict[str, Counter[Any]] = {name: Counter() for name in self.discrete}
        for frame in self._frames(self.names):
            for name, number in seen.items():
                values = self._column(frame, name)
                check_infinite([values], [name])
                number.add(values)
            for name, counter in labels.items():
                codes, found = factorize(frame.column(name), name)
                counts = np.bincount(codes + 1, minlength=len(found) + 1).tolist()
                counter.update(dict(zip([None, *map(_plain, found)], counts, strict=True)))
                if len(counter) > _MAX_CATEGORIES:
                    advice = "Drop or convert this column: it seems to be an identifier"
                    condition = f"of at most {_MAX_CATEGORIES} categories"
                    raise refusal(f"column {name!r}", condition, f"{len(counter)} or more", advice)
        classes = {name: self._make_class(name, counter) for name, counter in labels.items()}
        return {name: number.result() for name, number in seen.items()}, classes

    def _make_class(self, name: str, counter: Counter[Any]) -> _Class:
        """Order the categories as in a table, and merge rare ones if there are many."""
        n_missing = counter.pop(None, 0)
        labels = sort_labels([label for label, count in counter.items() if count])
        categories: list[Any] = labels
        codes = {label: code for code, label in enumerate(labels)}
        if len(labels) > max(MANY_CATEGORIES, self.n_rows / ROWS_PER_CATEGORY):
            kept = [label for label in labels if counter[label] >= RARE]
            rare = tuple(label for label in labels if counter[label] < RARE)
            categories = [*kept, rare] if rare else kept
            codes = {label: code for code, label in enumerate(kept)}
            codes |= dict.fromkeys(rare, len(kept))
            self.merged[name] = len(categories) - 1
        frequencies = np.zeros(len(categories) + (n_missing > 0), dtype=np.intp)
        for label, code in codes.items():
            frequencies[code] += counter[label]
        if n_missing:
            frequencies[-1] = n_missing
            categories = [*categories, None]
        return _Class(codes, len(categories) - 1, tuple(categories), frequencies)


class _Seen:
    """The state of a column of numbers during the first pass."""

    def __init__(self) -> None:
        self._n_absent = self._n_present = 0
        self._mean, self._first = 0.0, np.nan
        self._varies = False
        self._is_first_absent: bool | None = None
        self._hash = hashlib.blake2b(digest_size=16)

    def add(self, values: Floats) -> None:
        absent = np.isnan(values)
        if self._is_first_absent is None:
            self._is_first_absent = bool(absent[0])
        self._hash.update((absent ^ self._is_first_absent).tobytes())
        present = values[~absent]
        self._n_absent += len(values) - len(present)
        if not len(present):
            return
        if not self._n_present:
            self._first = float(present[0])
        self._varies |= bool((present != self._first).any())
        self._n_present += len(present)
        self._mean += (float(present.mean()) - self._mean) * len(present) / self._n_present

    def result(self) -> _Number:
        is_flag = self._n_present > 0 and not self._varies
        is_first_absent = bool(self._is_first_absent)
        return _Number(self._n_absent, self._mean, is_flag, self._hash.digest(), is_first_absent)


def _plain(label: Any) -> Any:  # noqa: ANN401
    return label.item() if isinstance(label, np.generic) else label
