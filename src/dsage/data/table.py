"""Typed columns of data frames and arrays: numbers, or classes with levels."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Self

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import ndtri
from scipy.stats import rankdata

from dsage._check import check_member, check_members, check_names, refusal
from dsage.data.columns import check_kinds, column_kind, dtype_kind, missing, sorted_positions
from dsage.data.layout import as_matrix, is_frame, open_frame

# One block of rows as floats: large enough for full speed of BLAS, small beside any data set
# that needs blocks at all.
_BLOCK_BYTES = 16 * 2**20

TRANSFORMS = ("none", "rank")


class Table:
    """A view of a data frame or of an array as typed columns; nothing is copied until asked for.

    Numbers are continuous. Strings, booleans, categories and other objects are discrete, and so
    are the columns named in `discrete`.

    Parameters
    ----------
    data : data frame (pandas, polars, pyarrow) or array of shape (n_rows, n_nodes)
        The observations.
    names : iterable of str, optional
        The columns of an array, ``X1, X2, ...`` by default; of a frame, the columns to use.
    discrete : str or iterable of str, default=()
        Columns of numbers that are classes.
    transform : {"none", "rank"}, default="none"
        ``"rank"`` replaces each continuous column by its normal scores.

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
        self._frame: nw.DataFrame[Any] | None = None
        if is_frame(data):
            self._frame = open_frame(data)
            self.names = _frame_names(self._frame, names)
            self.n_rows = len(self._frame)
            schema = self._frame.schema
            kinds = [dtype_kind(schema[name]) for name in self.names]
        else:
            self._array = as_matrix(data, "n_nodes")
            self.names = _array_names(self._array, names)
            self.n_rows = len(self._array)
            self._position = {name: column for column, name in enumerate(self.names)}
            kinds = [column_kind(self._array)] * len(self.names)
        check_kinds(self.names, kinds)
        classes = set(check_members(discrete, self.names, "discrete", "the columns of the data"))
        classes |= {name for name, kind in zip(self.names, kinds, strict=True) if kind == "class"}
        self.discrete = tuple(name for name in self.names if name in classes)
        self.continuous = tuple(name for name in self.names if name not in classes)
        # Which rows, and the codes of the whole columns, shared by all that is made of this table.
        self._rows: npt.NDArray[np.intp] | None = None
        self._known: dict[str, tuple[npt.NDArray[np.intp], tuple[Any, ...]]] = {}

    def select(self, names: str | Iterable[str]) -> Self:
        """Return a view of some of the columns, in the order given."""
        chosen = check_members(names, self.names, "names", "the columns of the data")
        made = copy.copy(self)
        made.names = chosen
        made.discrete = tuple(name for name in chosen if name in self.discrete)
        made.continuous = tuple(name for name in chosen if name in self.continuous)
        return made

    def take(self, rows: npt.ArrayLike) -> Self:
        """Return a view of some of the rows, by their numbers; a row may be taken repeatedly.

        Discrete columns keep the levels of the whole. Normal scores are of the rows taken.

        Examples
        --------
        >>> table = Table(np.array([["x"], ["y"], ["z"]]))
        >>> codes, levels = table.take([2, 2, 0]).codes("X1")
        >>> codes, levels
        (array([2, 2, 0]), ('x', 'y', 'z'))
        """
        numbers = np.asarray(rows)
        if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
            raise refusal(
                "rows", "the numbers of rows", rows, "Give integers, one for each row", TypeError
            )
        if len(numbers) and not 0 <= numbers.min() <= numbers.max() < self.n_rows:
            outside = int(numbers.max() if numbers.max() >= self.n_rows else numbers.min())
            raise refusal("rows", f"from 0 to {self.n_rows - 1}", outside, "There is no such row")
        made = copy.copy(self)
        made._rows = numbers.astype(np.intp) if self._rows is None else self._rows[numbers]
        made.n_rows = len(numbers)
        return made

    def blocks(self) -> Iterator[npt.NDArray[np.float64]]:
        """Return the continuous columns, transformed, as arrays (rows of the block, n_columns).

        With a transform there is one block only: ranks are of all rows.
        """
        columns = self.continuous
        rows = max(1, _BLOCK_BYTES // (8 * max(1, len(columns))))
        step = max(1, self.n_rows) if self._transform == "rank" else rows
        for start in range(0, self.n_rows, step):
            stop = min(start + step, self.n_rows)
            block = self._floats(columns, start, stop)
            check_finite(block, columns)
            if self._transform == "rank":
                for position in range(len(columns)):
                    block[:, position] = normal_scores(block[:, position])
            yield block

    def check_complete(self, names: Sequence[str] | None = None) -> None:
        """Refuse missing values in columns of a frame, naming those that have some."""
        if self._frame is None:
            return
        columns = self.names if names is None else names
        if not columns:
            return
        counts = self._frame.select(nw.col(*columns).null_count()).rows()[0]
        if bad := [name for name, count in zip(columns, counts, strict=True) if count]:
            raise missing(bad)

    def codes(self, name: str) -> tuple[npt.NDArray[np.intp], tuple[Any, ...]]:
        """Return a column as codes (n_rows,) from 0, and the levels that the codes stand for.

        Levels are those that occur in the whole of the data, sorted.
        """
        if name not in self._known:
            try:
                codes, levels = _factorized(self._classes(name))
            except TypeError as error:
                raise refusal(
                    "the columns", "numbers or classes", name, f"Convert it: {error}", TypeError
                ) from None
            if len(codes) and codes.min() < 0:
                raise missing([name])
            codes.flags.writeable = False
            self._known[name] = codes, levels
        codes, levels = self._known[name]
        return (codes if self._rows is None else codes[self._rows]), levels

    def _classes(self, name: str) -> Any:  # noqa: ANN401
        if self._frame is None:
            return self._array[:, self._position[name]]
        column = self._frame[name]
        native = column.to_native()
        # pandas knows the codes of its categories, and its own missing values.
        return native if isinstance(native, pd.Series) else column.to_numpy()

    def _floats(self, columns: tuple[str, ...], start: int, stop: int) -> npt.NDArray[np.float64]:
        rows = slice(start, stop) if self._rows is None else self._rows[start:stop]
        if self._frame is None:
            part = self._array[rows]
            at = [self._position[name] for name in columns]
            if at != list(range(part.shape[1])):
                part = part[:, at]
            return part.astype(np.float64, order="C")
        return np.array(self._frame.select(*columns)[rows].to_numpy(), np.float64, order="C")


def normal_scores(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the normal quantiles of the ranks, ``ndtri((rank - 1/2) / n_rows)``.

    Equal values share their average rank. The margins become normal whatever they were, and
    dependence that is monotone in each variable becomes linear more often than not.

    Examples
    --------
    >>> normal_scores(np.array([1.0, 100.0, 10.0])).round(2)
    array([-0.97,  0.97,  0.  ])
    """
    scores: npt.NDArray[np.float64] = ndtri((rankdata(values) - 0.5) / len(values))
    return scores


def check_finite(block: npt.NDArray[np.float64], names: Sequence[str]) -> None:
    """Refuse missing and infinite values, naming the columns that have them."""
    with np.errstate(over="ignore", invalid="ignore"):
        sums = block.sum(axis=0)
    if np.isfinite(sums).all():
        return
    bad = [name for name, column in zip(names, block.T, strict=True) if not _all_finite(column)]
    if bad:
        raise missing(bad)


def _all_finite(column: npt.NDArray[np.float64]) -> bool:
    return bool(np.isfinite(column).all())


def _factorized(values: Any) -> tuple[npt.NDArray[np.intp], tuple[Any, ...]]:  # noqa: ANN401
    """Return codes, -1 where a value is missing, and the levels, sorted."""
    codes, found = pd.factorize(values)
    levels = [level.item() if isinstance(level, np.generic) else level for level in found]
    order = sorted_positions(levels)
    # The last entry is for the code -1.
    rank = np.full(len(order) + 1, -1, dtype=np.intp)
    rank[order] = np.arange(len(order))
    return rank[codes], tuple(levels[position] for position in order)


def _frame_names(frame: nw.DataFrame[Any], names: Iterable[str] | None) -> tuple[str, ...]:
    columns = check_names(frame.columns, "the columns of the data frame")
    if names is None:
        return columns
    return tuple(
        check_member(name, columns, "names", "the columns of the data frame")
        for name in check_names(names)
    )


def _array_names(array: npt.NDArray[Any], names: Iterable[str] | None) -> tuple[str, ...]:
    if names is None:
        return tuple(f"X{column + 1}" for column in range(array.shape[1]))
    checked = check_names(names)
    if len(checked) != array.shape[1]:
        raise refusal(
            "names",
            f"as many as the columns of the data, {array.shape[1]}",
            len(checked),
            "Give one name a column",
        )
    return checked
