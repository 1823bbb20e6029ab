"""Logistic regressions of a class with few rows: how many functions of each parent to use."""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from dsage.structure.blocks import N_TERMS, Blocks, Floats, Ints
from dsage.structure.scores.base import Parents
from dsage.structure.scores.softmax import softmax_fit

# Numbers of functions of a number that may be used.
_SIZES = np.array([1, 2, 3, 4, 6, N_TERMS])
# Functions of each number at first, and rows for each coefficient that they need.
_START, _ROWS_PER_COEFFICIENT = 4, 5
# Times that the numbers of functions are chosen again, near the last fit.
_ROUNDS = 2
# Added to second derivatives of standardised columns.
_RIDGE = 1e-3
_CACHE_BYTES = 1 << 27
# Multiplications for the gains of all variables, at most.
_MAX_WORK = 1e8


class Fit(NamedTuple):
    """A regression: its columns, its penalised likelihood, and the odds of the rows."""

    columns: Ints
    worth: float
    odds: Floats

    @property
    def n_bytes(self) -> int:
        """The memory of the arrays."""
        return self.odds.nbytes + self.columns.nbytes


class LogisticRegressions:
    """Logistic regressions of classes, each parent with as many functions as it needs.

    The log-likelihood is nearly quadratic around its maximum, so one fit shows how much other
    columns would change it: with second derivatives H there, the value for any columns
    is the value of a linear regression with the moments H. These choose the number of functions of
    each parent, one after the other, and show the gain from one more parent. The choice is fitted.

    Parameters
    ----------
    blocks : Blocks
    price : float
        Of a coefficient, in nats.
    most_work : float, default=1e8
        Multiplications for the gains of all variables up to which a class is cheap.
    """

    def __init__(self, blocks: Blocks, price: float, most_work: float = _MAX_WORK) -> None:
        self._blocks = blocks
        self._price = price
        self._most_work = most_work
        self._fits: OrderedDict[tuple[int, Parents], Fit] = OrderedDict()
        self._bytes = 0
        widths = blocks.widths
        self._padded = np.zeros((len(widths), int(widths.max(initial=1))), dtype=np.intp)
        self._is_own = np.arange(self._padded.shape[1]) < widths[:, None]
        for node in range(len(widths)):
            self._padded[node, : widths[node]] = blocks.columns(node)

    def is_cheap(self, node: int) -> bool:
        """Return whether the gains of all variables take milliseconds: with many levels, more."""
        n_nodes, width = self._padded.shape
        n_coefficients = int(self._blocks.levels[node].max(initial=0)) * width
        return len(self._blocks.sample) * n_nodes * n_coefficients**2 <= self._most_work

    def best(self, node: int, parents: Parents) -> Fit:
        """Return the best regression of a class on functions of its parents."""
        key = node, parents
        found = self._fits.get(key)
        if found is not None:
            self._fits.move_to_end(key)
            return found
        made = self._fits[key] = self._search(node, parents)
        self._bytes += made.n_bytes
        while self._bytes > _CACHE_BYTES:
            self._bytes -= self._fits.popitem(last=False)[1].n_bytes
        return made

    def gains(self, node: int, parents: Parents) -> Floats:
        """Return about how much each variable would add, as one more parent: (n_nodes,).

        The parents keep their functions. For the node and its parents, the result is not defined.
        """
        fit = self.best(node, parents)
        near = _Neighbourhood(self._blocks, node, fit.odds)
        n_free = near.n_free
        known = near.design(fit.columns)
        own = near.slope(known)
        factor = _factor(near.curvature(known, known), len(own))
        reached = solve_triangular(factor, own, lower=True, check_finite=False)
        # All functions of all variables, function by function, levels inside.
        rows = self._blocks.sample
        slope = near.slope(rows)
        cross = near.curvature(rows, known)
        across = solve_triangular(factor, cross.T, lower=True, check_finite=False)
        slope -= across.T @ reached
        n_nodes, width = self._padded.shape
        at = (self._padded[:, :, None] * n_free + np.arange(n_free)).reshape(n_nodes, -1)
        is_own = np.repeat(self._is_own, n_free, axis=1)
        spread = near.blocks(rows, self._padded)
        part = across[:, at].transpose(1, 2, 0)
        spread -= part @ part.transpose(0, 2, 1)
        spread[~(is_own[:, :, None] & is_own[:, None, :])] = 0.0
        size = width * n_free
        spread[:, np.arange(size), np.arange(size)] += np.where(is_own, _RIDGE, 1.0)
        # Known columns have no residuals.
        spread[[node, *parents]] = np.eye(size)
        explained = np.linalg.solve(np.linalg.cholesky(spread), slope[at][:, :, None])[:, :, 0]
        explained[~is_own] = 0.0
        raised = 0.5 * (explained**2).cumsum(axis=1)[:, n_free - 1 :: n_free]
        raised -= self._price * n_free * np.arange(1, width + 1)
        # A class comes with all of its indicators.
        last = self._blocks.widths - 1
        whole = raised[np.arange(n_nodes), last]
        best = raised[:, _SIZES[width >= _SIZES] - 1].max(axis=1)
        return np.where(self._blocks.is_class, whole, best)

    def losses(self, node: int, parents: Parents) -> Floats:
        """Return about how much each parent adds, with the functions of the others: (n_parents,).

        It may be negative.
        """
        fit = self.best(node, parents)
        quadratic = _Quadratic(_Neighbourhood(self._blocks, node, fit.odds), fit.columns)
        owner = self._owner(fit.columns)
        whole = quadratic.value(np.ones(len(owner), dtype=np.bool_))
        return np.array(
            [
                whole
                - quadratic.value(owner != parent)
                - self._price * quadratic.n_free * int((owner == parent).sum())
                for parent in parents
            ]
        )

    def _owner(self, columns: Ints) -> Ints:
        return np.searchsorted(self._blocks.starts, columns, side="right") - 1

    def _search(self, node: int, parents: Parents) -> Fit:
        """Fit a few functions of each parent, then choose how many, and fit those."""
        blocks = self._blocks
        n_rows, n_free = len(blocks.sample), int(blocks.levels[node].max(initial=0))
        sizes = [min(_START, int(blocks.widths[each])) for each in parents]
        if n_free * sum(sizes) * _ROWS_PER_COEFFICIENT > n_rows:
            sizes = [1] * len(parents)
        sizes = [
            int(blocks.widths[each]) if blocks.is_class[each] else size
            for each, size in zip(parents, sizes, strict=True)
        ]
        best = self._fit(node, parents, sizes)
        tried = {tuple(sizes)}
        if blocks.is_class[list(parents)].all():
            return best
        latest = best
        for _ in range(_ROUNDS):
            sizes = self._choose(node, parents, sizes, latest)
            if tuple(sizes) in tried:
                break
            tried.add(tuple(sizes))
            latest = self._fit(node, parents, sizes)
            best = max(best, latest, key=lambda fit: fit.worth)
        return best

    def _fit(self, node: int, parents: Parents, sizes: list[int]) -> Fit:
        blocks = self._blocks
        parts = [blocks.columns(each)[:size] for each, size in zip(parents, sizes, strict=True)]
        columns = np.concatenate([np.empty(0, dtype=np.intp), *parts])
        levels = blocks.levels[node]
        inner = blocks.correlation[np.ix_(columns, columns)]
        likelihood, odds = softmax_fit(blocks.sample[:, columns], levels, inner)
        cost = self._price * int(levels.max(initial=0)) * (len(columns) + 1)
        return Fit(columns, likelihood - cost, odds)

    def _choose(self, node: int, parents: Parents, sizes: list[int], fit: Fit) -> list[int]:
        """Return the numbers of functions that are best near a fit, one parent after the other."""
        blocks = self._blocks
        columns = np.concatenate([blocks.columns(each) for each in parents])
        quadratic = _Quadratic(_Neighbourhood(blocks, node, fit.odds), columns)
        owner = np.repeat(np.arange(len(parents)), blocks.widths[list(parents)])
        place = np.concatenate([np.arange(blocks.widths[each]) for each in parents])
        chosen = np.array(sizes)
        for at, parent in enumerate(parents):
            if blocks.is_class[parent]:
                continue
            others = (place < chosen[owner]) & (owner != at)
            values = quadratic.nested(others, owner == at)
            values = values - self._price * quadratic.n_free * np.arange(1, len(values) + 1)
            allowed = _SIZES[len(values) >= _SIZES]
            chosen[at] = allowed[int(values[allowed - 1].argmax())]
        return [int(size) for size in chosen]


class _Neighbourhood:
    """Derivatives of the log-likelihood of a class, at some odds."""

    def __init__(self, blocks: Blocks, node: int, odds: Floats) -> None:
        self._rows = blocks.sample
        levels = blocks.levels[node]
        self.n_free = len(odds)
        top = np.maximum(odds.max(axis=0, initial=0.0), 0.0)
        shares = np.exp(odds - top)
        shares /= np.exp(-top) + shares.sum(axis=0)
        hot = levels == np.arange(1, self.n_free + 1)[:, None]
        self._weights = -shares[:, None] * shares
        at = np.arange(self.n_free)
        self._weights[at, at] += shares
        # The slope, and the slope of the quadratic function at odds of zero.
        self._left = hot - shares
        self._start = self._left + np.einsum("lmi,mi->li", self._weights, odds)

    def design(self, columns: Ints) -> Floats:
        """Return a constant and these columns of the rows."""
        return np.column_stack([np.ones(len(self._rows)), self._rows[:, columns]])

    def slope(self, columns: Floats) -> Floats:
        """Return derivatives, for each column and all levels."""
        slope: Floats = (columns.T @ self._left.T).ravel()
        return slope

    def start(self, columns: Floats) -> Floats:
        """Return the derivatives of the quadratic function at odds of zero."""
        slope: Floats = (columns.T @ self._start.T).ravel()
        return slope

    def curvature(self, one: Floats, other: Floats) -> Floats:
        """Return minus the second derivatives by coefficients of two sets of columns."""
        made = np.empty((one.shape[1], self.n_free, other.shape[1], self.n_free))
        for level in range(self.n_free):
            for second in range(level + 1):
                part = one.T @ (other * self._weights[level, second][:, None])
                made[:, level, :, second] = part
                made[:, second, :, level] = part
        return made.reshape(one.shape[1] * self.n_free, -1)

    def blocks(self, rows: Floats, padded: Ints) -> Floats:
        """Return the same for each block of columns with itself: (n_nodes, size, size)."""
        n_nodes, width = padded.shape
        parts = rows.T[padded]
        made = np.empty((n_nodes, width, self.n_free, width, self.n_free))
        for level in range(self.n_free):
            for second in range(level + 1):
                weighted = parts * self._weights[level, second]
                part = weighted @ parts.transpose(0, 2, 1)
                made[:, :, level, :, second] = part
                made[:, :, second, :, level] = part
        return made.reshape(n_nodes, width * self.n_free, -1)


class _Quadratic:
    """The log-likelihood near a fit, as a function of the columns that are used."""

    def __init__(self, near: _Neighbourhood, columns: Ints) -> None:
        design = near.design(columns)
        self.n_free = near.n_free
        self._slope = near.start(design)
        self._curvature = near.curvature(design, design)

    def value(self, used: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> float:
        """Return the largest value with these columns, up to a constant."""
        return float(self._raised(np.flatnonzero([True, *used]))[-1])

    def nested(
        self,
        others: np.ndarray[tuple[int, ...], np.dtype[np.bool_]],
        own: np.ndarray[tuple[int, ...], np.dtype[np.bool_]],
    ) -> Floats:
        """Return the same for the first 1, 2, ... of the own columns, together with the others."""
        order = np.concatenate([np.flatnonzero([True, *others]), 1 + np.flatnonzero(own)])
        return self._raised(order)[-int(own.sum()) :]

    def _raised(self, order: Ints) -> Floats:
        """Return the values with the first 1, 2, ... columns of an order."""
        at = (order[:, None] * self.n_free + np.arange(self.n_free)).ravel()
        factor = _factor(self._curvature[np.ix_(at, at)], len(at))
        explained = solve_triangular(factor, self._slope[at], lower=True, check_finite=False)
        raised: Floats = 0.5 * (explained**2).cumsum()[self.n_free - 1 :: self.n_free]
        return raised


def _factor(curvature: Floats, size: int) -> Floats:
    inner = curvature.copy()
    inner.flat[:: size + 1] += _RIDGE + 1e-9 * float(inner.trace()) / max(1, size)
    return np.asarray(cholesky(inner, lower=True, check_finite=False))
