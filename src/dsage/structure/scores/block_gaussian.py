"""Gaussian regressions of columns on blocks of columns, from correlations alone."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dposv, dpotrf, dtrtri

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

    @property
    def n_bytes(self) -> int:
        return self.rows.nbytes + self.spread.nbytes


class BlockRegressions:
    """The residual variance of each response given blocks of columns.

    Parameters
    ----------
    correlation : array of shape (n_columns, n_columns)
        Of all columns.
    blocks : sequence of int arrays
        The columns of each variable as a parent; they may be of different lengths.
    responses : int array, optional
        Columns that are regressed on others, in addition to the blocks; by default all columns.
    cache_bytes : int
        Memory for what depends on the parents alone.

    Attributes
    ----------
    widths : int array of shape (n_nodes,)
        The number of columns of each block.
    width : int or None
        The number of columns of every block, if it is the same for all.
    """

    def __init__(
        self,
        correlation: Floats,
        blocks: Sequence[Ints],
        responses: Ints | None = None,
        *,
        cache_bytes: int = 1 << 27,
    ) -> None:
        self.widths = np.array([len(block) for block in blocks], dtype=np.intp)
        self.width = int(self.widths[0]) if len(set(self.widths.tolist())) == 1 else None
        self._sizes = self.widths.tolist()
        self._blocks = [np.asarray(block, dtype=np.intp) for block in blocks]
        # Columns of blocks first, variable by variable; others are not kept.
        of_blocks = np.concatenate([np.empty(0, dtype=np.intp), *self._blocks])
        self._n_inner = len(of_blocks)
        others = np.arange(len(correlation)) if responses is None else responses
        kept = np.concatenate([of_blocks, np.setdiff1d(others, of_blocks)])
        self._place = np.full(len(correlation), -1, dtype=np.intp)
        self._place[kept] = np.arange(len(kept))
        ends = np.cumsum(self.widths)
        self._spans = [slice(end - size, end) for end, size in zip(ends, self._sizes, strict=True)]
        self._correlation = correlation[kept[:, None], kept]
        np.fill_diagonal(self._correlation, 1.0 + RIDGE)
        self._fillers = _Fillers(self.widths)
        spread = self._fillers.squares(self._correlation, self._spans)
        self._one = np.eye(spread.shape[1])
        self._ridge = RIDGE * self._one
        self._states: OrderedDict[Parents, _Given] = OrderedDict()
        self._start = _Given(np.empty((0, len(kept))), spread)
        self._bytes, self._cache_bytes = 0, cache_bytes

    def n_known(self, parents: Parents) -> int:
        """Return the number of columns of the parents."""
        return sum(self._sizes[parent] for parent in parents)

    def left(self, response: Ints, parents: Parents, *, each: bool = False) -> Floats:
        """Return log determinants of the response's covariance given the parents.

        Shape (1,) for several columns as one response, (n_responses,) with `each`: for every
        column on its own.
        """
        own = self._place[response]
        whole = self._correlation[own[:, None], own]
        if not parents:
            return _logs(whole, each=each)
        state = self._states.get(parents)
        if state is not None:
            reached = state.rows[:, own]
            return _logs(whole - reached.T @ reached, each=each)
        known = self._known(parents)
        inner = self._correlation[known[:, None], known]
        reached = self._correlation[known[:, None], own]
        return _logs(whole - reached.T @ solve_covariance(inner, reached), each=each)

    def left_with(self, response: Ints, parents: Parents, *, each: bool = False) -> Floats:
        """Return the same with each variable as one more parent, (n_nodes, n_responses)."""
        return self.grown(response, parents, each=each)[0]

    def grown(
        self, response: Ints, parents: Parents, *, each: bool = False
    ) -> tuple[Floats, Floats]:
        """Return the results of `left_with` and of `left`."""
        state, own = self._given(parents), self._place[response]
        reached = state.rows[:, own]
        covariance = self._correlation[: self._n_inner, own]
        residual = self._correlation[own[:, None], own]
        if parents:
            covariance = covariance - state.rows[:, : self._n_inner].T @ reached
            residual = residual - reached.T @ reached
        covariance = self._fillers.rows(covariance)
        if covariance.shape[1] == 1:
            slopes = covariance / (state.spread + RIDGE)
        else:
            slopes = np.asarray(np.linalg.solve(state.spread + self._ridge, covariance))
        if each:
            slopes *= covariance
            return _floored(residual.diagonal() - slopes.sum(axis=1)), _logs(residual, each=True)
        left = residual - covariance.transpose(0, 2, 1) @ slopes
        return log_determinant(left)[:, None], _logs(residual, each=False)

    def left_without(self, response: Ints, parents: Parents, *, each: bool = False) -> Floats:
        """Return the same without each of the parents, (n_parents, n_responses)."""
        known, own = self._known(parents), self._place[response]
        inner = self._correlation[known[:, None], known]
        reached = self._correlation[known[:, None], own]
        whole = self._correlation[own[:, None], own]
        if each and self.width is not None:
            return _floored(_variances_without(inner, reached, whole.diagonal(), self.width))
        places = groups([self._sizes[parent] for parent in parents])
        left = covariance_without(inner, reached, whole, places)
        if each:
            return _floored(left.diagonal(axis1=1, axis2=2))
        return log_determinant(left)[:, None]

    def slopes(self, response: Ints, parents: Parents) -> tuple[Ints, Floats]:
        """Return the columns of the parents, and the weights that predict responses from them."""
        known, own = self._known(parents), self._place[response]
        inner = self._correlation[known[:, None], known]
        slopes = solve_covariance(inner, self._correlation[known[:, None], own])
        return self.columns(parents), slopes

    def columns(self, parents: Parents) -> Ints:
        """Return the columns of the parents."""
        if not parents:
            return np.empty(0, dtype=np.intp)
        return np.concatenate([self._blocks[parent] for parent in parents])

    def _known(self, parents: Parents) -> Ints:
        """Return the places of the columns of the parents."""
        spans = [self._spans[parent] for parent in parents]
        return np.array([place for span in spans for place in range(span.start, span.stop)])

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
        for place in range(len(parents) - 1, -1, -1):
            known = self._states.get(parents[:place] + parents[place + 1 :])
            if known is not None:
                return self._with(known, (parents[place],))
        return self._with(self._start, parents)

    def _with(self, given: _Given, new: Parents) -> _Given:
        """Add parents to a set."""
        spans = [self._spans[parent] for parent in new]
        columns = spans[0] if len(new) == 1 else self._known(new)
        rest = self._correlation[columns]
        if len(given.rows):
            rest = rest - given.rows[:, columns].T @ given.rows
        ridge = (
            self._ridge[: len(rest), : len(rest)] if len(new) == 1 else RIDGE * np.eye(len(rest))
        )
        added = inverse_factor(rest[:, columns] + ridge) @ rest
        of_blocks = self._fillers.columns(added[:, : self._n_inner])
        spread = given.spread - of_blocks @ of_blocks.transpose(0, 2, 1)
        spread[list(new)] = self._one
        return _Given(np.concatenate([given.rows, added]), spread)


class _Fillers:
    """Fill up blocks of columns to the same width, with columns that nothing depends on."""

    def __init__(self, widths: Ints) -> None:
        self._shape = len(widths), int(widths.max(initial=1))
        is_own = np.arange(self._shape[1]) < widths[:, None]
        self._inside = None if is_own.all() else np.flatnonzero(is_own)

    def squares(self, correlation: Floats, spans: Sequence[slice]) -> Floats:
        """Return the part of each block, (n_nodes, width, width), with ones for fillers."""
        made = np.tile(np.eye(self._shape[1]), (self._shape[0], 1, 1))
        for square, span in zip(made, spans, strict=True):
            size = span.stop - span.start
            square[:size, :size] = correlation[span, span]
        return made

    def rows(self, values: Floats) -> Floats:
        """Return (n_columns, size) as (n_nodes, width, size)."""
        if self._inside is not None:
            made = np.zeros((self._shape[0] * self._shape[1], values.shape[1]))
            made[self._inside] = values
            values = made
        return values.reshape(*self._shape, -1)

    def columns(self, values: Floats) -> Floats:
        """Return (size, n_columns) as (n_nodes, width, size)."""
        if self._inside is not None:
            made = np.zeros((len(values), self._shape[0] * self._shape[1]))
            made[:, self._inside] = values
            values = made
        return values.reshape(-1, *self._shape).transpose(1, 2, 0)


def inverse_factor(matrix: Floats) -> Floats:
    """Return the inverse of the Cholesky factor."""
    factor, failed = dpotrf(matrix, lower=1)
    if failed:
        message = "Columns are linear functions of others"
        raise np.linalg.LinAlgError(message)
    inverse, _ = dtrtri(factor, lower=1)
    return np.asarray(inverse)


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


def _variances_without(inner: Floats, reached: Floats, whole: Floats, width: int) -> Floats:
    """Return the variances of each response on its own; all groups have the same width."""
    n_groups = len(inner) // width
    inverse = np.linalg.inv(inner)
    slopes = inverse @ reached
    left = whole - (reached * slopes).sum(axis=0)
    own = slopes.reshape(n_groups, width, -1)
    at = np.arange(n_groups)
    blocks = inverse.reshape(n_groups, width, n_groups, width)[at, :, at]
    lost = own / blocks if width == 1 else np.linalg.solve(blocks, own)
    found: Floats = left + (lost * own).sum(axis=1)
    return found


def solve_covariance(inner: Floats, reached: Floats) -> Floats:
    """Return inner^-1 reached, for a covariance."""
    _, solved, failed = dposv(inner, reached, lower=1)
    return np.asarray(np.linalg.solve(inner, reached) if failed else solved, dtype=np.float64)


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
