"""Basis functions of each feature: what turns rows into the columns of blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Self

import numpy as np
import numpy.typing as npt

from dsage.data.basis import NumberBasis, indicators
from dsage.games.base import Floats
from dsage.games.blocks import Basis

Columns = Callable[[Floats], Floats]
"""Maps the values of a feature, (n_rows,), to its columns, (n_rows, n_columns)."""

# Levels of a class with an indicator of their own; all others are the baseline with the commonest.
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
                _Class(column) if n_levels else _Number(column, n_functions)
                for column, n_levels in zip(X.T, n_categories, strict=True)
            ]
        )

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

    def __init__(self, values: Floats, n_functions: int) -> None:
        absent = np.isnan(values)
        self._misses = bool(absent.any())
        self._basis = None if absent.all() else NumberBasis.fit(values, n_functions)

    def __call__(self, values: Floats) -> Floats:
        none = np.zeros((len(values), 0))
        functions = none if self._basis is None else self._basis(values)
        if self._misses or not functions.shape[1]:
            # A feature has at least one column.
            functions = np.column_stack([functions, np.isnan(values)])
        return functions


class _Class:
    """Indicators of all levels but the commonest; a missing value is a level, too."""

    def __init__(self, codes: Floats) -> None:
        levels, counts = np.unique(codes, return_counts=True)
        self._levels = levels[np.argsort(-counts, kind="stable")][: _MAX_LEVELS + 1]

    def __call__(self, codes: Floats) -> Floats:
        place = np.zeros(len(codes), dtype=np.intp)
        for number, level in enumerate(self._levels.tolist()):
            place[np.isnan(codes) if np.isnan(level) else codes == level] = number
        made = np.zeros((len(codes), max(len(self._levels) - 1, 1)))
        found = indicators(place)
        made[:, : found.shape[1]] = found
        return made
