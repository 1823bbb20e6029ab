"""Gaussian regressions of columns on blocks of columns, from correlations alone."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from dsage.structure.blocks import Floats, Ints
from dsage.structure.scores.base import Parents

RIDGE = 1e-8
"""Added to the variances of columns, so that none is a linear function of others."""

# Residual determinants below this are rounding errors.
_SMALLEST = 1e-10
_FLOOR = math.log(_SMALLEST)


class _Given(NamedTuple):
    """Columns given some parents, on the correlation scale."""

    rows: Floats  # (n_known, n_columns): L^-1 R[known, :], where L L' = R[known, known]
    spread: Floats  # (n_nodes, width, width): covariance of each block given the parents
    whitener: Floats  # (n_nodes, width, width): W with W spread W' = I

    @property
    def n_bytes(self) -> int:
        return self.rows.nbytes + self.spread.nbytes + self.whitener.nbytes


class BlockRegressions:
    """How much of each response is left when blocks of columns are known.

    Parameters
    ----------
    correlation : array of shape (n_columns, n_columns)
        Of all columns.
    blocks : sequence of int arrays
        The columns of each variable as a parent; they may be of different lengths.
    cache_bytes : int
        Memory for what depends on the parents alone.

    Attributes
    ----------
    widths : int array of shape (n_nodes,)
        The number of columns of each block.
    """

    def __init__(
        self, correlation: Floats, blocks: Sequence[Ints], *, cache_bytes: int = 1 << 27
    ) -> None:
        n_columns = len(correlation)
        self.widths = np.array([len(block) for block in blocks], dtype=np.intp)
        self._sizes = self.widths.tolist()
        self._blocks = [np.asarray(block, dtype=np.intp) for block in blocks]
        width = int(self.widths.max(initial=1))
        # Blocks are filled up with a column that nothing depends on.
        self._padded = np.full((len(blocks), width), n_columns, dtype=np.intp)
        for node, block in enumerate(self._blocks):
            self._padded[node, : len(block)] = block
        self._correlation = np.zeros((n_columns + 1, n_columns + 1))
        self._correlation[:n_columns, :n_columns] = correlation
        np.fill_diagonal(self._correlation, 1.0 + RIDGE)
        spread = self._correlation[self._padded[:, :, None], self._padded[:, None, :]]
        is_filler = np.arange(width) >= self.widths[:, None]
        # The same column several times in a block is several independent columns.
        spread[is_filler[:, :, None] | is_filler[:, None, :]] = 0.0
        fillers, places = np.nonzero(is_filler)
        spread[fillers, places, places] = 1.0
        self._states: OrderedDict[Parents, _Given] = OrderedDict()
        self._start = _make_state(np.empty((0, n_columns + 1)), spread)
        self._bytes, self._cache_bytes = 0, cache_bytes

    def n_known(self, parents: Parents) -> int:
        """Return the number of columns of the parents."""
        return sum(self._sizes[parent] for parent in parents)

    def left(self, response: Ints, parents: Parents, *, each: bool = False) -> Floats:
        """Return log determinants of the response's covariance given the parents.

        Shape (1,) for several columns as one response, (n_responses,) with `each`: for every
        column on its own.
        """
        whole = self._correlation[response[:, None], response]
        if not parents:
            return _logs(whole, each=each)
        state = self._states.get(parents)
        if state is not None:
            reached = state.rows[:, response]
            return _logs(whole - reached.T @ reached, each=each)
        known = self.columns(parents)
        rows = self._correlation[known]
        reached = rows[:, response]
        return _logs(whole - reached.T @ np.linalg.solve(rows[:, known], reached), each=each)

    def left_with(self, response: Ints, parents: Parents, *, each: bool = False) -> Floats:
        """Return the same with each variable as one more parent, (n_nodes, n_responses)."""
        state = self._given(parents)
        reached = state.rows[:, response]
        covariance = self._correlation[:, response] - state.rows.T @ reached
        explained = state.whitener @ covariance[self._padded]
        residual = self._correlation[response[:, None], response] - reached.T @ reached
        if each:
            return _floored(residual.diagonal() - (explained**2).sum(axis=1))
        left = residual - explained.transpose(0, 2, 1) @ explained
        return log_determinant(left)[:, None]

    def left_without(self, response: Ints, parents: Parents, *, each: bool = False) -> Floats:
        """Return the same without each of the parents, (n_parents, n_responses)."""
        known = self.columns(parents)
        rows = self._correlation[known]
        whole = self._correlation[response[:, None], response]
        places = groups([self._sizes[parent] for parent in parents])
        left = covariance_without(rows[:, known], rows[:, response], whole, places)
        if each:
            return _floored(left.diagonal(axis1=1, axis2=2))
        return log_determinant(left)[:, None]

    def slopes(self, response: int, parents: Parents) -> tuple[Ints, Floats]:
        """Return the columns of the parents, and the weights that predict a response from them."""
        known = self.columns(parents)
        inner = self._correlation[np.ix_(known, known)]
        return known, np.linalg.solve(inner, self._correlation[known, response])

    def columns(self, parents: Parents) -> Ints:
        """Return the columns of the parents."""
        if not parents:
            return np.empty(0, dtype=np.intp)
        return np.concatenate([self._blocks[parent] for parent in parents])

    def _given(self, parents: Parents) -> _Given:
        if not parents:
            return self._start
        found = self._states.get(parents)
        if found is not None:
            self._states.move_to_end(parents)
            return found
        made = self._states[parents] = self._build(parents)
        self._bytes += made.n_bytes
        while self._bytes > self._cache_bytes:
            self._bytes -= self._states.popitem(last=False)[1].n_bytes
        return made

    def _build(self, parents: Parents) -> _Given:
        """Add one parent to a set that is known, or solve for all of them."""
        before, new = self._start, list(parents)
        for place in range(len(parents) - 1, -1, -1):
            known = self._states.get(parents[:place] + parents[place + 1 :])
            if known is not None:
                before, new = known, [parents[place]]
                break
        columns = self.columns(tuple(new))
        rest = self._correlation[columns] - before.rows[:, columns].T @ before.rows
        factor = np.linalg.cholesky(rest[:, columns] + RIDGE * np.eye(len(columns)))
        added = solve_triangular(factor, rest, lower=True, check_finite=False)
        of_blocks = added[:, self._padded].transpose(1, 2, 0)
        spread = before.spread - of_blocks @ of_blocks.transpose(0, 2, 1)
        spread[new] = np.eye(spread.shape[1])
        return _make_state(np.concatenate([before.rows, added]), spread)


def _make_state(rows: Floats, spread: Floats) -> _Given:
    ridge = RIDGE * np.eye(spread.shape[1])
    return _Given(rows, spread, np.linalg.inv(np.linalg.cholesky(spread + ridge)))


def groups(sizes: Sequence[int]) -> Ints:
    """Return the places of consecutive groups of these sizes, filled up with their total."""
    made = np.full((len(sizes), max(sizes, default=0)), sum(sizes), dtype=np.intp)
    first = 0
    for group, size in enumerate(sizes):
        made[group, :size] = range(first, first + size)
        first += size
    return made


def covariance_without(inner: Floats, reached: Floats, whole: Floats, places: Ints) -> Floats:
    """Return the covariances of a response given all known columns but each group of them.

    Parameters
    ----------
    inner : array of shape (n_known, n_known)
        The covariance of the known columns.
    reached : array of shape (n_known, n_responses)
        Their covariance with the response.
    whole : array of shape (n_responses, n_responses)
        The covariance of the response.
    places : int array of shape (n_groups, size)
        The groups, filled up with n_known.

    Returns
    -------
    array of shape (n_groups, n_responses, n_responses)
    """
    n_known = len(inner)
    # One more column, which nothing depends on, fills up the groups.
    inverse = np.zeros((n_known + 1, n_known + 1))
    inverse[:-1, :-1] = np.linalg.inv(inner)
    slopes = inverse[:, :-1] @ reached
    blocks = inverse[places[:, :, None], places[:, None, :]]
    group, at = np.nonzero(places == n_known)
    blocks[group, at, at] = 1.0
    own = slopes[places]
    lost = own.transpose(0, 2, 1) @ np.linalg.solve(blocks, own)
    left: Floats = whole - reached.T @ slopes[:-1] + lost
    return left


def _logs(covariance: Floats, *, each: bool) -> Floats:
    if each or len(covariance) == 1:
        return _floored(covariance.diagonal())
    return log_determinant(covariance)[None]


def _floored(variances: Floats) -> Floats:
    logs: Floats = np.log(np.maximum(variances, _SMALLEST))
    return logs


def log_determinant(covariance: Floats) -> Floats:
    """Return the log determinants of covariances (..., n, n), not below a floor."""
    if covariance.shape[-1] == 1:
        return _floored(covariance[..., 0, 0])
    sign, logs = np.linalg.slogdet(covariance)
    return np.maximum(np.where(sign > 0, logs, -np.inf), _FLOOR)
