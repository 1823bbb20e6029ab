"""Blocks: the basis columns that represent each feature in a linear predictor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dsage._check import refusal
from dsage.games.base import Floats, Mask, Orders


class Basis:
    """Columns of numbers, in blocks: a feature is known when all columns of its block are.

    Parameters
    ----------
    columns : array of shape (n_rows, n_columns)
        The columns, finite.
    blocks : sequence of int arrays, optional
        The columns of each feature, by position; each column in one of them. By default each
        column is a separate feature.

    Attributes
    ----------
    columns : array of shape (n_rows, n_columns)
    owner : int array of shape (n_columns,)
        The feature of each column.
    is_plain : bool
        Whether each column is a separate feature, in their order.

    Examples
    --------
    >>> basis = Basis(np.zeros((5, 3)), [[0, 2], [1]])
    >>> basis.expanded(np.array([[True, False]]))
    array([[ True, False,  True]])
    >>> basis.orders(np.array([[1, 0]]))
    (array([[1, 0, 2]]), array([[0, 1, 3]]))
    """

    def __init__(
        self, columns: Floats, blocks: Sequence[Sequence[int] | npt.NDArray[Any]] | None = None
    ) -> None:
        self.columns = columns
        n_columns = columns.shape[1]
        made = [[at] for at in range(n_columns)] if blocks is None else blocks
        members = np.array([at for block in made for at in block], dtype=np.intp)
        self._sizes = np.array([len(block) for block in made], dtype=np.intp)
        if sorted(members.tolist()) != list(range(n_columns)) or not self._sizes.all():
            condition = f"a partition of the {n_columns} columns into blocks that are not empty"
            raise refusal("blocks", condition, [list(block) for block in made], "Correct them")
        self.owner: npt.NDArray[np.intp] = np.empty(n_columns, dtype=np.intp)
        self.owner[members] = np.repeat(np.arange(len(made)), self._sizes)
        self.is_plain = bool((self.owner == np.arange(n_columns)).all())

    @classmethod
    def linear(cls, X: Floats) -> Basis:
        """Return each feature as its own block: the column and, if values are missing, where.

        Missing numbers are replaced by the mean of the others, so that the two columns of a block
        are uncorrelated; the indicators of missing values come last.

        Examples
        --------
        >>> basis = Basis.linear(np.array([[1.0, 5.0], [np.nan, 6.0], [3.0, 7.0]]))
        >>> basis.columns
        array([[1., 5., 0.],
               [2., 6., 1.],
               [3., 7., 0.]])
        >>> basis.owner
        array([0, 1, 0])
        """
        absent = np.isnan(X)
        incomplete = np.flatnonzero(absent.any(axis=0))
        if not len(incomplete):
            return cls(X)
        filled = X.copy()
        for feature in incomplete.tolist():
            is_absent = absent[:, feature]
            present = X[~is_absent, feature]
            filled[is_absent, feature] = present.mean() if len(present) else 0.0
        flags = absent[:, incomplete].astype(np.float64)
        blocks: list[list[int]] = [[at] for at in range(X.shape[1])]
        for number, feature in enumerate(incomplete.tolist()):
            blocks[feature].append(X.shape[1] + number)
        return cls(np.concatenate([filled, flags], axis=1), blocks)

    @property
    def n_features(self) -> int:
        """The number of features."""
        return len(self._sizes)

    @property
    def n_columns(self) -> int:
        """The number of columns."""
        return len(self.owner)

    def expanded(self, known: Mask) -> Mask:
        """Return coalitions of features as sets of columns."""
        columns: Mask = known[:, self.owner]
        return columns

    def orders(self, orders: Orders) -> tuple[Orders, Orders]:
        """Return orderings of features as orderings of columns, and where the features end.

        The columns of a feature are adjacent; in ordering o, ``ends[o, k]`` columns belong to the
        first k features.
        """
        ends = np.zeros((len(orders), self.n_features + 1), dtype=np.intp)
        np.cumsum(self._sizes[orders], axis=1, out=ends[:, 1:])
        if self.is_plain:
            return orders, ends
        position = np.argsort(orders, axis=1)
        return np.argsort(position[:, self.owner], axis=1, kind="stable"), ends
