"""Data sets for structure learning: columns of numbers, in chunks, and of classes, as codes."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri
from scipy.stats import rankdata

from dsage._check import check_member, check_members, refusal
from dsage.data.categories import factorize
from dsage.data.columns import check_kinds
from dsage.data.frames import Frame
from dsage.data.missing import check_finite, missing_values

# Large enough for full speed of BLAS, small beside any data set that needs chunks.
_CHUNK_BYTES = 16 * 2**20

TRANSFORMS = ("none", "rank")


class Table:
    """A view of a data frame or an array as typed columns; columns are copied only on demand.

    Numbers are continuous. Strings, booleans, categories and other objects are discrete, and so
    are the columns named in `discrete`. The transform ``"rank"`` replaces each continuous column
    by its normal scores. For `names` see :class:`~dsage.data.frames.Frame`.

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
        check_kinds(kinds.keys(), kinds.values(), ("number", "class"))
        self.names, self.n_rows = self._frame.names, self._frame.n_rows
        classes = set(check_members(discrete, self.names, "discrete", "the columns of the data"))
        classes |= {name for name, kind in kinds.items() if kind == "class"}
        self.discrete = tuple(name for name in self.names if name in classes)
        self.continuous = tuple(name for name in self.names if name not in classes)
        # The rows in use, and the codes of whole columns, shared by all views of this table.
        self._rows: npt.NDArray[np.intp] | None = None
        self._codes: dict[str, tuple[npt.NDArray[np.intp], tuple[Any, ...]]] = {}

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

        Discrete columns keep the categories of the whole. Ranks are among the rows taken.
        """
        numbers = np.asarray(rows)
        if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
            raise refusal("rows", "positions of rows", rows, "Pass a list of integers", TypeError)
        if len(numbers) and not 0 <= numbers.min() <= numbers.max() < self.n_rows:
            outside = int(numbers.max() if numbers.max() >= self.n_rows else numbers.min())
            raise refusal("rows", f"from 0 to {self.n_rows - 1}", outside, "There is no such row")
        view = copy.copy(self)
        view._rows = numbers.astype(np.intp) if self._rows is None else self._rows[numbers]
        view.n_rows = len(numbers)
        return view

    def chunks(self) -> Iterator[npt.NDArray[np.float64]]:
        """Yield the continuous columns, transformed, as arrays (n_rows of the chunk, n_columns).

        With the rank transform there is one chunk: ranks are among all rows.
        """
        columns = self.continuous
        fitting = max(1, _CHUNK_BYTES // (8 * max(1, len(columns))))
        step = max(1, self.n_rows) if self._transform == "rank" else fitting
        for start in range(0, self.n_rows, step):
            stop = min(start + step, self.n_rows)
            rows = slice(start, stop) if self._rows is None else self._rows[start:stop]
            chunk = np.array(self._frame.matrix(columns, rows), np.float64, order="C")
            check_finite(chunk, columns)
            if self._transform == "rank":
                for position in range(len(columns)):
                    chunk[:, position] = normal_scores(chunk[:, position])
            yield chunk

    def check_complete(self, names: Sequence[str] | None = None) -> None:
        """Refuse columns of a data frame with missing values, by name."""
        self._frame.check_complete(self.names if names is None else names)

    def codes(self, name: str) -> tuple[npt.NDArray[np.intp], tuple[Any, ...]]:
        """Return a column as codes (n_rows,) from 0, and the categories that they stand for.

        Categories are the values that occur in the whole of the data, sorted.
        """
        if name not in self._codes:
            codes, labels = factorize(self._frame.column(name), name)
            if len(codes) and codes.min() < 0:
                raise missing_values([name])
            codes.flags.writeable = False
            plain = (each.item() if isinstance(each, np.generic) else each for each in labels)
            self._codes[name] = codes, tuple(plain)
        codes, categories = self._codes[name]
        return (codes if self._rows is None else codes[self._rows]), categories


def normal_scores(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the normal quantiles of the ranks, ``ndtri((rank - 1/2) / n_rows)``.

    Equal values share their average rank. Any continuous margin becomes normal, and monotone
    dependence often becomes nearly linear.
    """
    scores: npt.NDArray[np.float64] = ndtri((rankdata(values) - 0.5) / len(values))
    return scores
