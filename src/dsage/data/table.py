"""Data sets for structure learning: columns of numbers, in chunks, and of classes, as codes."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Self

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import ndtri
from scipy.stats import rankdata

from dsage._check import check_member, check_members, refusal
from dsage.data.categories import factorize
from dsage.data.frames import Frame
from dsage.data.missing import check_finite
from dsage.data.numbers import read_numbers
from dsage.data.rows import Codes, Rows
from dsage.data.times import Times

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

# Large enough for full speed of BLAS, small beside any data set that needs chunks.
_CHUNK_BYTES = 16 * 2**20

_WIDE = (nw.Int128, nw.UInt128, nw.Decimal)

TRANSFORMS = ("none", "rank")
# With fewer missing or fewer present values, nothing can be learned about an indicator.
MIN_INDICATED = 5
# A discrete column with more categories than these, and fewer rows for each, is too fine for tables
# of counts; categories with fewer rows than the last number are then merged.
MANY_CATEGORIES, ROWS_PER_CATEGORY, RARE = 50, 4, 5
# Columns that an indicator of several is named after.
_MOST_NAMED = 3


class Table(Rows):
    """A view of a data frame or an array as typed columns; columns are copied only on demand.

    Numbers, dates and times are continuous. Strings, booleans, categories and other objects are
    discrete, and so are the columns named in `discrete`. The transform ``"rank"`` replaces each
    continuous column by its normal scores. For `names` see :class:`~dsage.data.frames.Frame`.

    Missing values of a discrete column are one more category, None. For those of continuous
    columns see `completed`. In a discrete column with more than 50 categories and fewer than four
    rows for each, categories that occur fewer than five times become one.

    Attributes
    ----------
    names, continuous, discrete : tuple of str
        The columns, and those of each type.
    n_rows : int
        The number of rows.
    indicators : dict of str to tuple of str
        Columns that `completed` has added, and those whose missing values they indicate.
    merged : dict of str to int
        Discrete columns that were read and whose rare categories were merged, and how many other
        categories they have.

    Examples
    --------
    >>> import pandas as pd
    >>> table = Table(pd.DataFrame({"age": [31, 54], "sex": ["f", "m"]}))
    >>> table.continuous, table.discrete
    (('age',), ('sex',))
    """

    def __init__(
        self,
        data: Any,  # noqa: ANN401
        names: Iterable[str] | None = None,
        *,
        discrete: str | Iterable[str] = (),
        transform: str = "none",
    ) -> None:
        self._transform = check_member(transform, TRANSFORMS, "transform", "the transforms")
        self._frame = Frame(data, names)
        kinds = self._frame.kinds
        self.names, self.n_rows = self._frame.names, self._frame.n_rows
        classes = set(check_members(discrete, self.names, "discrete", "the columns of the data"))
        classes |= {name for name, kind in kinds.items() if kind == "class"}
        self.discrete = tuple(name for name in self.names if name in classes)
        self.continuous = tuple(name for name in self.names if name not in classes)
        self.indicators: dict[str, tuple[str, ...]] = {}
        self._times = {name for name in self.continuous if kinds[name] == "time"}
        # Numbers of types that libraries cannot convert for NumPy.
        self._wide = {
            name for name, dtype in self._frame.dtypes.items() if isinstance(dtype, _WIDE)
        }
        # Columns with values to fill in; those of which only presence varies.
        self._incomplete: frozenset[str] = frozenset()
        self._flags: frozenset[str] = frozenset()
        # The rows in use, and whole columns as codes or floats, shared by all views of this table.
        self._rows: npt.NDArray[np.intp] | None = None
        self._codes: dict[str, tuple[npt.NDArray[np.intp], tuple[Any, ...]]] = {}
        self.merged: dict[str, int] = {}
        self._floats: dict[str, Floats] = {}

    def select(self, names: str | Iterable[str]) -> Self:
        """Return a view of some of the columns, in the order given."""
        chosen = check_members(names, self.names, "names", "the columns of the data")
        view = copy.copy(self)
        view.names = chosen
        view.discrete = tuple(name for name in chosen if name in self.discrete)
        view.continuous = tuple(name for name in chosen if name in self.continuous)
        return view

    def take(self, rows: npt.ArrayLike) -> Self:
        """Return a view of some of the rows, by position; a row may be taken repeatedly.

        Discrete columns keep the categories of the whole. Ranks are among the rows taken, and so
        are the means that fill in missing values.
        """
        numbers = np.asarray(rows)
        if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
            raise refusal("rows", "positions of rows", rows, "Pass a list of integers", TypeError)
        if len(numbers) and not 0 <= numbers.min() <= numbers.max() < self.n_rows:
            outside = int(numbers.max() if numbers.max() >= self.n_rows else numbers.min())
            raise refusal("rows", f"from 0 to {self.n_rows - 1}", outside, "There are no such rows")
        view = copy.copy(self)
        view._rows = numbers.astype(np.intp) if self._rows is None else self._rows[numbers]
        view.n_rows = len(numbers)
        return view

    def completed(self) -> Self:
        """Return a view without missing values, with indicators of them as further columns.

        A missing number is replaced by the mean of the others. If at least five are missing and
        five are not, a column of zeros and ones indicates which; columns that are missing in the
        same rows, or in exactly the other rows, share one. Together, the filled column and its
        indicator carry the information of the column and nothing else. Values predicted from other
        columns would carry the information of those, so that the column would seem to screen them
        off. And the two are uncorrelated.

        A column whose present values are all equal becomes 1 where it is present, 0 elsewhere.

        Examples
        --------
        >>> X = np.array([[1.0, 2.0, 3.0, 4.0, 5.0] + 5 * [np.nan], 10 * [7.0]]).T
        >>> table = Table(X).completed()
        >>> table.names, table.indicators
        (('X1', 'X2', 'X1 is missing'), {'X1 is missing': ('X1',)})
        >>> next(table.chunks())[4:6]
        array([[5., 7., 0.],
               [3., 7., 1.]])
        """
        masks = {name: self._absent(name) for name in self._suspects()}
        found = {name: mask for name, mask in masks.items() if mask.any()}
        if not found:
            return self
        view = copy.copy(self)
        view._flags = frozenset(name for name, mask in found.items() if self._is_flag(name, mask))
        view._incomplete = frozenset(found) - view._flags
        shared: dict[bytes, list[str]] = {}
        for name, mask in found.items():
            n_absent = int(mask.sum())
            is_seen = min(n_absent, self.n_rows - n_absent) >= MIN_INDICATED
            if is_seen and name not in view._flags:
                shared.setdefault((mask ^ mask[0]).tobytes(), []).append(name)
        indicators: dict[str, tuple[str, ...]] = {}
        for columns in shared.values():
            alike = [name for name in columns if (found[name] == found[columns[0]]).all()]
            indicators[free_name(alike, (*self.names, *indicators))] = tuple(columns)
        view.indicators = indicators
        view.names = (*self.names, *indicators)
        view.continuous = (*self.continuous, *indicators)
        return view

    @property
    def is_completed(self) -> bool:
        """Whether missing numbers were filled in."""
        return bool(self._incomplete or self._flags)

    def chunks(self) -> Iterator[Floats]:
        """Yield the continuous columns, transformed, as arrays (n_rows of the chunk, n_columns).

        With the rank transform there is one chunk: ranks are among all rows. Missing values are
        refused, unless the table is `completed`.
        """
        fills = {name: self._mean(name) for name in self.continuous if name in self._incomplete}
        is_rank = self._transform == "rank"
        for chunk in self.numbers():
            for position, name in enumerate(self.continuous):
                if name in fills:
                    absent = np.isnan(chunk[:, position])
                    # Ranks are among all rows, and so is the mean of their scores.
                    present = chunk[~absent, position] if is_rank else chunk[:0, position]
                    fill = float(present.mean()) if len(present) else fills[name]
                    chunk[absent, position] = fill
            yield chunk

    def numbers(self) -> Iterator[Floats]:
        """Yield the continuous columns as `chunks` does, but NaN where values are missing."""
        columns = self.continuous
        fitting = max(1, _CHUNK_BYTES // (8 * max(1, len(columns))))
        step = max(1, self.n_rows) if self._transform == "rank" else fitting
        may_miss = [position for position, name in enumerate(columns) if name in self._incomplete]
        for start in range(0, self.n_rows, step):
            chunk = self._read(columns, slice(start, min(start + step, self.n_rows)))
            kept = chunk[:, may_miss]
            chunk[:, may_miss] = np.nan_to_num(kept, nan=0.0, posinf=np.inf, neginf=-np.inf)
            check_finite(chunk, columns)
            chunk[:, may_miss] = kept
            if self._transform == "rank":
                for position in range(len(columns)):
                    chunk[:, position] = _scores(chunk[:, position])
            yield chunk

    def codes(self, name: str) -> tuple[npt.NDArray[np.intp], tuple[Any, ...]]:
        """Return a column as codes (n_rows,) from 0, and the categories that they stand for.

        Categories are the values that occur in the whole of the data, sorted; then the merged ones,
        as a tuple, and None, at the end, if values are missing.
        """
        if name not in self._codes:
            codes, labels = factorize(self._frame.column(name), name)
            plain = [each.item() if isinstance(each, np.generic) else each for each in labels]
            if len(plain) > max(MANY_CATEGORIES, len(codes) / ROWS_PER_CATEGORY):
                codes, plain = _merge_rare(codes, plain)
                self.merged[name] = len(plain) - 1
            if len(codes) and codes.min() < 0:
                codes[codes < 0] = len(plain)
                plain.append(None)
            codes.flags.writeable = False
            self._codes[name] = codes, tuple(plain)
        codes, categories = self._codes[name]
        return (codes if self._rows is None else codes[self._rows]), categories

    def batches(self) -> Iterator[tuple[Floats, Codes]]:
        """Yield the continuous columns as `numbers` does, and the discrete ones as codes."""
        columns = [self.codes(name)[0] for name in self.discrete]
        start = 0
        for chunk in self.numbers():
            rows = slice(start, start + len(chunk))
            codes = np.empty((len(chunk), len(columns)), dtype=np.intp)
            for position, column in enumerate(columns):
                codes[:, position] = column[rows]
            yield chunk, codes
            start = rows.stop

    def categories(self, name: str) -> tuple[Any, ...]:
        """Return the categories of a discrete column; see `codes`."""
        return self.codes(name)[1]

    def frequencies(self, name: str) -> Codes:
        """Return how often each category of a discrete column occurs."""
        codes, categories = self.codes(name)
        return np.bincount(codes, minlength=len(categories))

    def to_frame(self) -> pd.DataFrame:
        """Return the columns as a data frame: continuous ones as in `chunks`, others as objects."""
        X = np.concatenate([np.empty((0, len(self.continuous))), *self.chunks()])
        columns: dict[str, Any] = dict(zip(self.continuous, X.T, strict=True))
        for name in self.discrete:
            codes, categories = self.codes(name)
            labels = np.empty(len(categories), dtype=object)
            labels[:] = categories
            columns[name] = pd.Series(labels[codes], dtype=object)
        return pd.DataFrame({name: columns[name] for name in self.names})

    # Numbers

    def _read(self, columns: tuple[str, ...], rows: slice) -> Floats:
        """Return some rows of continuous columns as floats; missing values are NaN."""
        at = rows if self._rows is None else self._rows[rows]
        usual = [name for name in columns if not self._is_special(name)]
        n_rows = rows.stop - rows.start
        plain = self._frame.matrix(usual, at) if usual else np.empty((n_rows, 0))
        if plain.dtype.kind == "O":
            # Of types that NumPy does not have.
            usual = []
        if len(usual) == len(columns):
            return np.array(plain, np.float64, order="C")
        read = np.empty((n_rows, len(columns)))
        if usual:
            read[:, [columns.index(name) for name in usual]] = plain
        for position, name in enumerate(columns):
            if name not in usual:
                read[:, position] = self._column(name, at)
        return read

    def _is_special(self, name: str) -> bool:
        """Return whether a column cannot be read as it is."""
        is_changed = name in self._incomplete or name in self._flags or name in self.indicators
        return is_changed or name in self._times or name in self._wide

    def _column(self, name: str, rows: slice | npt.NDArray[np.intp]) -> Floats | Mask:
        """Return some rows of a column or of an indicator."""
        if name in self.indicators:
            return np.isnan(self._whole(self.indicators[name][0])[rows])
        values = self._whole(name)[rows]
        return ~np.isnan(values) if name in self._flags else values

    def _whole(self, name: str) -> Floats:
        """Return a whole column of numbers or times as floats, NaN where they are missing."""
        if name not in self._floats:
            native = self._frame.column(name)
            is_time = name in self._times
            read = Times.of(native).encode(native, name) if is_time else read_numbers(native)
            self._floats[name] = read
        return self._floats[name]

    def _in_use(self, name: str) -> Floats:
        return self._whole(name) if self._rows is None else self._whole(name)[self._rows]

    def _suspects(self) -> tuple[str, ...]:
        """Return the continuous columns that may have missing values."""
        if not self._frame.is_array or not self.continuous or self._times:
            return self.continuous
        # The rows of an array are read faster together.
        with np.errstate(over="ignore", invalid="ignore"):
            is_odd = np.isnan(self._frame.matrix(self.continuous).sum(axis=0))
        return tuple(itertools.compress(self.continuous, is_odd))

    def _absent(self, name: str) -> Mask:
        """Return which rows are missing; a complete column is not kept."""
        was_known = name in self._floats
        absent: Mask = np.isnan(self._in_use(name))
        if not (was_known or absent.any()):
            del self._floats[name]
        return absent

    def _is_flag(self, name: str, absent: Mask) -> bool:
        """Return whether there are present values, and all of them are equal."""
        present = self._in_use(name)[~absent]
        return len(present) > 0 and bool((present == present[0]).all())

    def _mean(self, name: str) -> float:
        """Return the mean of the present values; 0 if there are none."""
        values = self._in_use(name)
        present = values[~np.isnan(values)]
        return float(present.mean()) if len(present) else 0.0


def _merge_rare(
    codes: npt.NDArray[np.intp], labels: list[Any]
) -> tuple[npt.NDArray[np.intp], list[Any]]:
    """Return codes and labels in which rare categories are one, the last; -1 stays -1."""
    is_rare = np.bincount(codes[codes >= 0], minlength=len(labels)) < RARE
    # The last entry is for the code -1.
    new = np.append(np.cumsum(~is_rare) - 1, -1)
    new[:-1][is_rare] = n_kept = int((~is_rare).sum())
    rare = tuple(label for label, flag in zip(labels, is_rare, strict=True) if flag)
    kept = [label for label, flag in zip(labels, is_rare, strict=True) if not flag]
    return new[codes], [*kept, rare] if n_kept < len(labels) else kept


def free_name(columns: Sequence[str], taken: Sequence[str]) -> str:
    """Return the name of the indicator of columns, which no other column has."""
    *others, last = columns
    if len(columns) > _MOST_NAMED:
        others, last = list(columns[: _MOST_NAMED - 1]), f"{len(columns) - _MOST_NAMED + 1} more"
    name = f"{', '.join(others)} and {last} are missing" if others else f"{last} is missing"
    while name in taken:
        name += "_"
    return name


def normal_scores(values: Floats) -> Floats:
    """Return the normal quantiles of the ranks, ``ndtri((rank - 1/2) / n_rows)``.

    Equal values share their average rank. Any continuous margin becomes normal, and monotone
    dependence often becomes nearly linear.
    """
    scores: Floats = ndtri((rankdata(values) - 0.5) / len(values))
    return scores


def _scores(values: Floats) -> Floats:
    """Return normal scores among the values that are not missing."""
    absent = np.isnan(values)
    scores = np.full(len(values), np.nan)
    if not absent.all():
        scores[~absent] = normal_scores(values[~absent])
    return scores
