"""The effects of parents on the lines (linear predictors) of a mechanism: regressions on blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dsage.data.rows import spread
from dsage.games.base import Floats
from dsage.games.functions import Functions
from dsage.samplers.logistic import fit_logistic

Ints = npt.NDArray[np.intp]

# Numbers of functions of a number; leave-one-out errors choose one.
_TERMS = (1, 2, 3, 5, 8)
# A number of functions is tried only with at least this many rows per column.
_ROWS_PER_COLUMN = 10
# With fewer rows per column, slopes are shrunk.
_ROWS_UNSHRUNK = 20
# Possible penalties, as shares of the number of rows.
_PENALTIES = (0.0, 1e-3, 1e-2, 1e-1, 1.0)
_MAX_ROWS = 20_000
# Singular values below this share of the largest are noise.
_RANK = 1e-9


class Column(NamedTuple):
    """A variable in training: its values, and whether they are classes or few numbers."""

    values: Floats
    is_class: bool


class Effects:
    """The effect of each parent on the lines of a mechanism, as a function of its value.

    Parameters
    ----------
    parents : sequence of Functions
        The columns of each parent.
    slopes : sequence of arrays of shape (n_columns, n_lines)
        Their slopes.
    intercept : array of shape (n_lines,)
    """

    def __init__(
        self, parents: Sequence[Functions], slopes: Sequence[Floats], intercept: Floats
    ) -> None:
        self._parents, self._slopes = tuple(parents), tuple(slopes)
        self.intercept = intercept

    def __len__(self) -> int:
        return len(self._parents)

    def add(self, parent: int, values: Floats) -> Floats:
        """Return the effect on the lines, (..., n_lines), of a parent with some values (...)."""
        columns = self._parents[parent](values.reshape(-1, 1)).columns
        added: Floats = columns @ self._slopes[parent]
        return added.reshape(*values.shape, -1)

    def lines(self, values: Sequence[Floats]) -> Floats:
        """Return the lines (..., n_lines) for values of all parents, (n_lines,) without any."""
        total: Floats = self.intercept.copy()
        for parent in range(len(self)):
            total = total + self.add(parent, values[parent])
        return total


class _Design:
    """The columns of parents in training rows, centered."""

    def __init__(self, parents: Sequence[Column], rows: Ints, n_terms: int) -> None:
        self.functions = []
        blocks = []
        for parent in parents:
            values = parent.values[rows][:, None]
            n_categories = np.array([int(parent.is_class)])
            made = Functions.fit(values, n_categories, n_terms)
            self.functions.append(made)
            blocks.append(made(values).columns)
        self.widths = [block.shape[1] for block in blocks]
        columns = np.concatenate(blocks, axis=1)
        self.means = columns.mean(axis=0)
        self.columns: Floats = columns - self.means

    def effects(self, slopes: Floats, intercept: Floats) -> Effects:
        """Return the effects of slopes (n_columns, n_lines) of the centered columns."""
        parts = np.split(slopes, np.cumsum(self.widths)[:-1])
        return Effects(self.functions, parts, intercept - self.means @ slopes)


def regress(y: Floats, parents: Sequence[Column]) -> tuple[Effects, Floats, int]:
    """Regress a number on the blocks of its parents, by least squares.

    The number of functions of each parent is the smallest one whose leave-one-out error is within
    one standard error of the lowest. With few rows, the slopes are shrunk, by a penalty that is
    chosen in the same way.

    Returns
    -------
    Effects, array of shape (n_rows,), int
        The regression, with one line; its leave-one-out errors, of mean zero; and the number of
        functions of each number.

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(size=500)
    >>> effects, errors, n_terms = regress(x**2, [Column(x, False)])
    >>> n_terms > 1, bool(errors.var() < 0.3 * (x**2).var())
    (True, True)
    """
    rows = spread(len(y), _MAX_ROWS)
    y = y[rows]
    found: list[tuple[Floats, Floats, _Design, int]] = []
    for n_terms in _TERMS:
        design = _Design(parents, rows, n_terms)
        n_columns = design.columns.shape[1]
        if found and (n_columns * _ROWS_PER_COLUMN > len(y) or all(p.is_class for p in parents)):
            break
        penalties = _PENALTIES if n_columns * _ROWS_UNSHRUNK > len(y) else (0.0,)
        found += [(*fit, design, n_terms) for fit in _solve(design.columns, y, penalties)]
    squares = [errors**2 for _, errors, _, _ in found]
    best = int(np.argmin([each.mean() for each in squares]))
    worse = np.stack(squares) - squares[best]
    is_good = worse.mean(axis=1) <= worse.std(axis=1) / np.sqrt(len(y))
    slopes, errors, design, n_terms = found[int(np.argmax(is_good))]
    effects = design.effects(slopes[:, None], np.array([y.mean()]))
    return effects, errors - errors.mean(), n_terms


def _solve(columns: Floats, y: Floats, penalties: Sequence[float]) -> list[tuple[Floats, Floats]]:
    """Return slopes and leave-one-out errors for each penalty."""
    n_rows = len(y)
    left, values, right = np.linalg.svd(columns, full_matrices=False)
    kept = values > _RANK * values.max(initial=0.0)
    left, values, right = left[:, kept], values[kept], right[kept]
    centered = y - y.mean()
    parts = left.T @ centered
    found = []
    for penalty in penalties:
        shrunk = values**2 / (values**2 + penalty * n_rows)
        fitted = left @ (shrunk * parts)
        leverage = np.minimum(1 / n_rows + (left**2) @ shrunk, 1 - 1 / n_rows)
        found.append((right.T @ (shrunk / values * parts), (centered - fitted) / (1 - leverage)))
    return found


def classify(levels: Ints, n_levels: int, parents: Sequence[Column]) -> tuple[Effects, int]:
    """Regress levels 0 .. n_levels - 1, which all occur, on the blocks of parents.

    The number of functions of each number, 1 or 3, is chosen by the BIC.

    Returns
    -------
    Effects, int
        The logarithms of the probabilities up to a constant, one line per level; and the number of
        functions.
    """
    rows = spread(len(levels), _MAX_ROWS)
    y = levels[rows]
    present, codes = np.unique(y, return_inverse=True)
    best: tuple[float, Effects, int] | None = None
    for n_terms in (1, 3):
        design = _Design(parents, rows, n_terms)
        n_columns = design.columns.shape[1]
        if best is not None and (
            n_columns * _ROWS_PER_COLUMN > len(y) or all(p.is_class for p in parents)
        ):
            break
        slopes = np.zeros((n_columns, n_levels))
        # Levels that do not occur in these rows get the lowest probability, whatever the parents.
        intercept = np.full(n_levels, -np.log(len(levels)))
        if len(present) > 1:
            moments = design.columns.T @ design.columns / len(y)
            inside, found = fit_logistic(design.columns.T, moments, codes, len(y))
            slopes[:, present] = found.T
            top = inside.max()
            intercept[present] = inside - top - np.log(np.exp(inside - top).sum())
        else:
            intercept[present] = 0.0
        lines = design.columns @ slopes + intercept
        likelihood = float((lines[np.arange(len(y)), y] - _log_total(lines)).sum())
        bic = np.log(len(y)) * (len(present) - 1) * n_columns - 2 * likelihood
        if best is None or bic < best[0]:
            best = float(bic), design.effects(slopes, intercept), n_terms
    if best is None:  # the loop tries at least one function
        raise RuntimeError("no regression was fitted")
    return best[1], best[2]


def _log_total(lines: Floats) -> Floats:
    top = lines.max(axis=-1)
    total: Floats = top + np.log(np.exp(lines - top[..., None]).sum(axis=-1))
    return total
