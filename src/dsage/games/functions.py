"""Basis functions of each feature, which turn rows into the columns of blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, Self

import numpy as np
import numpy.typing as npt

from dsage.data.basis import NumberBasis, indicators
from dsage.games.base import Floats
from dsage.games.blocks import Basis
from dsage.samplers.checks import Ints


class Columns(Protocol):
    """Maps the values of a feature, (n_rows,), to its columns, (n_rows, n_columns)."""

    @property
    def n_columns(self) -> int:
        """Number of columns."""

    def first(self, n_functions: int) -> Columns:
        """Return the fit of at most `n_functions` functions, from a fit of more."""

    def positions(self, n_functions: int) -> Ints:
        """Return which of the columns belong to `first`."""

    def __call__(self, values: Floats, /) -> Floats:
        """Return the columns of values."""


# Number of levels of a class with their own indicator; all others are in the baseline.
_MAX_LEVELS = 12


class Functions:
    """The columns of each feature, as functions of its value, fitted to rows.

    A number gives itself and polynomials of its rank, a class indicators of its levels; where
    values are missing, an indicator of that is added.

    Parameters
    ----------
    made : sequence of callables
        The columns of each feature.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> X[:, 1] = X[:, 1] > 0
    >>> functions = Functions.fit(X, np.array([0, 2]), n_functions=3)
    >>> functions(X).owner
    array([0, 0, 0, 1])
    """

    def __init__(self, made: Sequence[Columns]) -> None:
        self._made = tuple(made)

    @classmethod
    def fit(cls, X: Floats, n_categories: npt.NDArray[np.intp], n_functions: int) -> Self:
        """Fit to rows, classes as codes; the number of categories of numbers is 0."""
        return cls(
            [
                _Class(column) if n_levels else _Number.fit(column, n_functions)
                for column, n_levels in zip(X.T, n_categories, strict=True)
            ]
        )

    def first(self, n_functions: int) -> Self:
        """Return the fit of at most `n_functions` functions of a number, from a fit of more."""
        return type(self)([each.first(n_functions) for each in self._made])

    @property
    def n_columns(self) -> int:
        """Number of columns of all features."""
        return sum(each.n_columns for each in self._made)

    def select(self, basis: Basis, n_functions: int) -> Basis:
        """Return the columns of ``first(n_functions)`` from the columns of these functions."""
        starts = np.cumsum([0, *(each.n_columns for each in self._made)])
        kept = [each.positions(n_functions) for each in self._made]
        ends = np.cumsum([len(each) for each in kept])
        blocks = [np.arange(end - len(each), end) for each, end in zip(kept, ends, strict=True)]
        chosen = [start + each for start, each in zip(starts[:-1], kept, strict=True)]
        return Basis(basis.columns[:, np.concatenate(chosen)], blocks)

    def __call__(self, X: Floats) -> Basis:
        """Return the columns of rows, in blocks."""
        parts = [columns(values) for columns, values in zip(self._made, X.T, strict=True)]
        ends = np.cumsum([part.shape[1] for part in parts])
        blocks = [
            np.arange(end - part.shape[1], end) for part, end in zip(parts, ends, strict=True)
        ]
        return Basis(np.concatenate(parts, axis=1), blocks)


class _Number:
    """A number, polynomials of its rank, and whether it is missing."""

    def __init__(self, basis: NumberBasis | None, *, misses: bool) -> None:
        self._basis, self._misses = basis, misses

    @classmethod
    def fit(cls, values: Floats, n_functions: int) -> Self:
        absent = np.isnan(values)
        basis = None if absent.all() else NumberBasis.fit(values, n_functions)
        return cls(basis, misses=bool(absent.any()))

    def first(self, n_functions: int) -> Self:
        basis = None if self._basis is None else self._basis.first(n_functions)
        return type(self)(basis, misses=self._misses)

    def positions(self, n_functions: int) -> Ints:
        functions = np.arange(self.first(n_functions)._n_functions)
        own = np.arange(self._n_functions, self.n_columns)
        return np.concatenate([functions, own])

    @property
    def _n_functions(self) -> int:
        return 0 if self._basis is None else self._basis.weights.shape[1]

    @property
    def n_columns(self) -> int:
        # A feature has at least one column.
        return max(self._n_functions + self._misses, 1)

    def __call__(self, values: Floats) -> Floats:
        none = np.zeros((len(values), 0))
        functions = none if self._basis is None else self._basis(values)
        if self.n_columns > self._n_functions:
            functions = np.column_stack([functions, np.isnan(values)])
        return functions


class _Class:
    """Indicators of all levels except the most frequent; a missing value is a level, too."""

    def __init__(self, codes: Floats) -> None:
        levels, counts = np.unique(codes, return_counts=True)
        self._levels = levels[np.argsort(-counts, kind="stable")][: _MAX_LEVELS + 1]

    def first(self, n_functions: int) -> Self:  # noqa: ARG002
        return self

    def positions(self, n_functions: int) -> Ints:  # noqa: ARG002
        return np.arange(self.n_columns)

    @property
    def n_columns(self) -> int:
        return max(len(self._levels) - 1, 1)

    def __call__(self, codes: Floats) -> Floats:
        place = np.zeros(len(codes), dtype=np.intp)
        for number, level in enumerate(self._levels.tolist()):
            place[np.isnan(codes) if np.isnan(level) else codes == level] = number
        made = np.zeros((len(codes), self.n_columns))
        found = indicators(place)
        made[:, : found.shape[1]] = found
        return made
