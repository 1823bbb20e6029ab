"""Edges that a search overlooks, found by tests of independence."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy.linalg import qr
from scipy.special import chdtrc

from dsage.structure.blocks import N_TERMS, Blocks, Floats, Ints
from dsage.structure.scores.base import Parents
from dsage.structure.scores.logistic import LogisticRegressions
from dsage.structure.scores.noise import density_slopes

# False edges in a whole graph, about, with classes and of numbers alone.
_FALSE_EDGES, _OF_NUMBERS = 1.0, 0.5
# The largest p-value of an edge for each of these, and of an edge to a class near the target.
_LEVEL, _NEAR_TARGET = 0.01, 0.02
# With more rows than these, only edges near the target are tested, at the level of 1,000 rows times
# 1,000 divided by the number of rows.
_FEW_ROWS, _ROWS_OF_LEVEL = 2_000, 1_000
# With more variables than these, too, if there is a target: all pairs would take minutes.
_MANY_NODES = 128
# Rows for each column that is known.
_ROWS_PER_COLUMN = 10
# Numbers that are multiplied at a time.
_MAX_VALUES = 1 << 22
# How many functions of a number are tested together.
_SIZES = (1, 2, 4, N_TERMS)


class OverlookedEdges:
    """Tests of what a graph claims, more powerful than its score.

    A score charges each coefficient, so that several functions of a variable, or several levels,
    must explain far more than chance allows; and it compares least squares, which are not
    efficient if noise is skewed. Tests need neither. A graph claims that each variable is
    independent of earlier ones given its parents. So its residuals must be uncorrelated with
    functions of each of these, after what the parents explain is taken out of both. The residuals
    of a number are replaced by derivatives of their log density by location and by scale, which
    are efficient whatever the density is; residuals of a class come from logistic regression, and
    are compared with these derivatives of earlier numbers too. Unequal spread does not mislead the
    tests (Shah & Peters, 2020).

    With d variables, an edge is added if p < 2 / d^2, which is about one false edge in the graph,
    and p < 0.01; half as much if there are no classes, whose edges are the ones that are weak. If
    there is a target, p < 0.02 suffices for an edge to a class between the target and another
    variable, or between its Markov blanket and a variable outside: most false separations come from
    such edges. The most significant ones, relative to their level, come first, since they may
    explain others.

    With n > 2,000 rows, edges that matter leave clearer traces: an edge is added if p < 10 / n and
    p < 2 / d^2, and only edges of the target or of its Markov blanket are tested. Only these are
    tested if there are more than 128 variables and a target, too.

    An edge has several tests, of one, two, four or eight functions. The smallest p-value counts,
    times their number. If there is a target, Cauchy's combination (Liu & Xie, 2020) counts for
    edges to classes: it is smaller if several tests agree.

    Parameters
    ----------
    blocks : Blocks
    logistics : LogisticRegressions or None
        Those of its classes; without it, classes are not tested.
    target : int, optional
        The variable whose separations matter.
    """

    def __init__(
        self, blocks: Blocks, logistics: LogisticRegressions | None, target: int | None = None
    ) -> None:
        self._blocks = blocks
        self._logistics = logistics
        self._target = target
        n_nodes = len(blocks.names)
        n_false = _FALSE_EDGES if blocks.is_class.any() else _OF_NUMBERS
        n_rows = len(blocks.sample)
        self._has_many_rows = n_rows > _FEW_ROWS
        level = _LEVEL * _ROWS_OF_LEVEL / n_rows if self._has_many_rows else _LEVEL
        self._level = n_false * min(level, 2.0 / n_nodes**2)
        self._is_local = self._has_many_rows or (n_nodes > _MANY_NODES and target is not None)
        self._width = int(blocks.widths.max(initial=1))
        # What is left of variables: derivatives of the log density of numbers.
        self._slopes: dict[int, Floats] = {}

    def find(
        self,
        parents: Sequence[Parents],
        order: Sequence[int],
        allowed: npt.NDArray[np.bool_],
        max_parents: int,
    ) -> list[Parents]:
        """Return the parents of each variable, with those that were overlooked.

        Parameters
        ----------
        parents : sequence of tuples of int
            The parents of each variable.
        order : sequence of int
            The variables, parents before their children.
        allowed : bool array of shape (n_nodes, n_nodes)
            Which edges may be added, from row to column.
        max_parents : int
            The largest number of parents.
        """
        found = list(parents)
        near = self._near_target(parents)
        for at, node in enumerate(order):
            tails = [
                tail
                for tail in order[:at]
                if tail not in found[node]
                and allowed[tail, node]
                and (not self._is_local or node in near or tail in near)
                and self._is_tested(tail)
            ]
            if not tails or not self._is_tested(node):
                continue
            while True:
                known, own = self._left(node, found[node])
                if not tails or len(found[node]) >= max_parents:
                    break
                self._find_slopes(tails, found)
                surprise = self._test(node, own, tails, known) / self._levels(node, tails, near)
                best = int(np.argmin(surprise))
                if surprise[best] >= 1.0:
                    break
                found[node] = tuple(sorted((*found[node], tails.pop(best))))
            self._slopes[node] = own
        return found

    def _left(self, node: int, parents: Parents) -> tuple[Floats, Floats]:
        """Return columns that span functions of the parents, and what they do not explain."""
        known = self._known(parents)
        return known, _without(self._residuals(node, parents, known), known)

    def _find_slopes(self, nodes: Sequence[int], parents: Sequence[Parents]) -> None:
        """Find the derivatives of the log density of numbers, given their parents."""
        for node in nodes:
            if node not in self._slopes and not self._blocks.is_class[node]:
                self._slopes[node] = self._left(node, parents[node])[1]

    def _near_target(self, parents: Sequence[Parents]) -> set[int]:
        """Return the target and its Markov blanket."""
        if self._target is None:
            return set()
        families = [(node, *of_node) for node, of_node in enumerate(parents)]
        near = {self._target, *parents[self._target]}
        return near.union(*(each for each in families if self._target in each[1:]))

    def _levels(self, node: int, tails: Sequence[int], near: set[int]) -> Floats:
        """Return the largest p-value of each edge to a node."""
        levels = np.full(len(tails), self._level)
        if self._blocks.is_class[node] and not self._has_many_rows:
            is_outward = [
                (node in near) != (tail in near) or self._target in (node, tail) for tail in tails
            ]
            levels[is_outward] = _NEAR_TARGET
        return levels

    def _is_tested(self, node: int) -> bool:
        if not self._blocks.is_class[node]:
            # Values that were filled in have no density.
            return node not in self._blocks.absent
        return self._logistics is not None and self._logistics.is_cheap(node)

    def _known(self, parents: Parents) -> Floats:
        """Return orthonormal columns that span functions of the parents and products of two.

        Fewer of many parents.
        """
        blocks = self._blocks
        n_rows = len(blocks.sample)
        n_terms = N_TERMS
        while True:
            columns = [blocks.sample[:, blocks.columns(each, n_terms)] for each in parents]
            plain = np.column_stack([np.ones(n_rows), *columns])
            room = n_rows // _ROWS_PER_COLUMN - plain.shape[1]
            if n_terms == 1 or room >= 0:
                break
            n_terms //= 2
        for one, other in itertools.combinations(parents, 2):
            first, second = (blocks.sample[:, blocks.columns(each, 1)] for each in (one, other))
            products = (first[:, :, None] * second[:, None, :]).reshape(n_rows, -1)
            room -= products.shape[1]
            if room >= 0:
                plain = np.column_stack([plain, products])
        basis, triangle, _ = qr(plain, mode="economic", pivoting=True, check_finite=False)
        size = np.abs(triangle.diagonal())
        return np.asarray(basis[:, size > 1e-6 * size[0]])

    def _residuals(self, node: int, parents: Parents, known: Floats) -> Floats:
        """Return what the parents do not explain: residuals of indicators, or density slopes."""
        blocks = self._blocks
        if blocks.is_class[node] and self._logistics is not None:
            odds = self._logistics.best(node, parents).odds
            top = np.maximum(odds.max(axis=0, initial=0.0), 0.0)
            shares = np.exp(odds - top)
            shares /= np.exp(-top) + shares.sum(axis=0)
            hot = blocks.levels[node] == np.arange(1, len(odds) + 1)[:, None]
            return np.asarray(hot - shares)
        # Of the value and the score, the one that the parents explain better.
        left = _without(blocks.sample[:, blocks.responses[:, node]].T, known)
        spread = np.maximum((left**2).mean(axis=1), 1e-12)
        likelihood = blocks.offsets[:, node] - 0.5 * blocks.n_rows * np.log(spread)
        return density_slopes(left[int(likelihood.argmax())])

    def _test(self, node: int, own: Floats, tails: Sequence[int], known: Floats) -> Floats:
        """Return a p-value for each tail: whether it explains the node beyond the parents.

        All tests of a tail together.
        """
        at = list(tails)
        is_class, widths = self._blocks.is_class[at], self._blocks.widths[at]
        share = max(0.0, 1.0 - known.shape[1] / len(known))
        functions = _without(self._functions(tails), known)
        every = np.arange(len(at))
        # Entry [i, j]: a test of tail j, NaN if there is none.
        if self._blocks.is_class[node]:
            nested = _nested(own, functions, share)
            found = [_of_sizes(nested, widths, is_class, size) for size in _SIZES]
            slopes = np.zeros((len(at), 2, len(known)))
            for place in np.flatnonzero(~is_class):
                slopes[place] = self._slopes[at[place]]
            slopes = _without(slopes, known)
            for column in (0, 1):
                p_values = _nested(own, slopes[:, [column]], share)[:, 0]
                found.append(np.where(is_class, np.nan, p_values))
        else:
            nested = _nested(own[:1], functions, share)
            found = [_of_sizes(nested, widths, is_class, size) for size in _SIZES]
            nested = _nested(own[1:], functions, share)
            found.append(nested[every, np.where(is_class, widths, 1) - 1])
        made = np.array(found)
        if self._blocks.is_class[node] and self._target is not None:
            return _cauchy(made)
        best: Floats = np.nanmin(made, axis=0) * np.isfinite(made).sum(axis=0)
        return best

    def _functions(self, tails: Sequence[int]) -> Floats:
        """Return indicators or functions of variables: (n_tails, width, n_rows), zeros after."""
        blocks = self._blocks
        made = np.zeros((len(tails), self._width, len(blocks.sample)))
        for place, tail in enumerate(tails):
            columns = blocks.columns(tail)
            made[place, : len(columns)] = blocks.sample[:, columns].T
        return made


def _cauchy(p_values: Floats) -> Floats:
    """Return the combined p-value of each column of p-values; NaN is none (Liu & Xie, 2020)."""
    inside = np.clip(p_values, 1e-300, 1.0 - 1e-9)
    # The cotangent of a tiny angle is its inverse.
    tails = np.where(inside < 1e-5, 1.0 / (np.pi * inside), np.tan((0.5 - inside) * np.pi))
    mean = np.nanmean(tails, axis=0)
    combined: Floats = np.arctan2(1.0, mean) / np.pi
    return combined


def _without(columns: Floats, known: Floats) -> Floats:
    """Return the residuals of rows of values, (..., n_rows), given others."""
    left = columns - (columns @ known) @ known.T
    # Columns that are determined by the others are zero, not rounding errors.
    whole = np.square(columns).sum(axis=-1, keepdims=True)
    left[np.square(left).sum(axis=-1) < 1e-8 * whole[..., 0]] = 0.0
    return np.asarray(left)


def _of_sizes(nested: Floats, widths: Ints, is_class: npt.NDArray[np.bool_], size: int) -> Floats:
    """Return the p-values of `size` functions of numbers; of classes only with size 1."""
    every = np.arange(len(widths))
    if size == 1:
        return np.asarray(nested[every, np.where(is_class, widths, 1) - 1])
    size = min(size, nested.shape[1])
    return np.where(is_class | (widths < size), np.nan, nested[:, size - 1])


def _nested(own: Floats, others: Floats, share_left: float) -> Floats:
    """Return p-values of the hypothesis that residuals are uncorrelated.

    With residuals `own` of shape (n_residuals, n_rows) and functions `others` of shape (n_tails,
    width, n_rows), entry [t, k] is about the first k + 1 functions of tail t.
    """
    n_tails, width, n_rows = others.shape
    size = width * len(own)
    statistic = np.empty((n_tails, width))
    step = max(1, _MAX_VALUES // (size * n_rows))
    for first in range(0, n_tails, step):
        part = others[first : first + step]
        products = (part[:, :, None] * own).reshape(len(part), size, n_rows)
        spread = products @ products.transpose(0, 2, 1)
        total = products.sum(axis=2)
        diagonal = spread[:, np.arange(size), np.arange(size)]
        ridge = 1e-9 * diagonal.sum(axis=1, keepdims=True)
        spread[:, np.arange(size), np.arange(size)] += np.where(diagonal > 0.0, ridge, 1.0)
        reached = np.linalg.solve(np.linalg.cholesky(spread), total[:, :, None])[:, :, 0]
        statistic[first : first + step] = (reached**2).cumsum(axis=1)[:, len(own) - 1 :: len(own)]
    degrees = len(own) * np.arange(1, width + 1)
    return np.asarray(chdtrc(degrees, share_left * statistic))
