"""Draws from a mixture for the prefixes of an ordering of the columns.

With the numbers in the order in which they become known, each component has a Cholesky factor
``S = L L'``. A draw from it, given the first q numbers, is ``mean + L [z_1 .. z_q, e_(q+1) ..]``
with ``z = L^-1 (x - mean)`` and e the normal scores of noise. The components' probabilities given
the known columns change by one factor when a column becomes known. One factorization serves all
prefixes.

Draws of a row do not depend on the other rows, to the bit: z and e are rounded to a grid, so that
products with the rounded factor are exact (see :mod:`dsage.samplers.conditioning`), and everything
else is computed element by element.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dsage.samplers.checks import Floats, Ints, Mask
from dsage.samplers.conditioning import as_grid, exact_factor, grid_scores
from dsage.samplers.mix.em import Components
from dsage.samplers.mix.impute import patterns
from dsage.samplers.mix.margins import Margins
from dsage.samplers.mix.states import StateDraws, Uniforms, remainder
from dsage.samplers.mix.trees import Trees
from dsage.samplers.mix.variables import Variables
from dsage.samplers.projections import Projected
from dsage.samplers.recent import Recent

_FAR = 128.0  # standard deviations: values beyond count as so far
NEVER = np.iinfo(np.intp).max
_CACHE_BYTES = 2**25


@dataclass(frozen=True, eq=False)
class Factors:
    """The factors of all components, with the numbers in some order."""

    lower: Floats  # (n_components, n_numbers, n_numbers)
    exact: Floats  # transposed and rounded, in steps of the grid
    log_scale: Floats  # logarithms of the diagonals, (n_components, n_numbers)


class Drawn(NamedTuple):
    """Draws for prefixes of an ordering, and what is behind them."""

    values: Floats  # (n_lengths, n_rows, n_draws, n_columns)
    scores: Floats  # of the numbers, in their order, (n_lengths, n_rows, n_draws, n_numbers)
    shares: Floats  # of the components, up to a factor, (n_lengths, n_rows, n_components)


class Drawer:
    """Draws from a mixture, given columns of the data. Immutable; thread-safe."""

    def __init__(
        self, variables: Variables, components: Components, margins: Margins, trees: Trees
    ) -> None:
        self.variables, self.components, self.margins = variables, components, margins
        self.log_weights = np.log(components.weights)
        self.states = StateDraws(variables, components, trees)
        size = max(1, 16 * components.covariances.size)
        self._recent: Recent[Factors] = Recent(max(1, _CACHE_BYTES // size))

    def along(self, X: Floats, noise: Floats, order: Ints) -> Path:
        """Return draws for the prefixes of an ordering, from all that they have in common.

        Columns of X that are not in the ordering are ignored.
        """
        return Path(self, X, noise, order)

    def read(self, X: Floats, is_read: Mask) -> tuple[Floats, Ints]:
        """Return scores of the numbers, NaN if special, and states; -1 if nothing is known."""
        numbers, tables = self.variables.numbers, self.variables.tables
        values = np.zeros((len(X), len(numbers)))
        states = np.full((len(X), len(self.variables.n_states)), -1)
        for position, table in enumerate(tables):
            if is_read[table.columns].all():
                states[:, position] = table.read_states(X)
        for position, number in enumerate(numbers):
            if readable := [column for column in number.columns if is_read[column]]:
                x = X[:, readable[0]]
                marks = number.mark(x)
                values[:, position] = np.where(marks > 0, np.nan, x)
                if number.table >= 0:
                    # Missing outside of training only: nothing is known.
                    states[:, number.table] = np.where(np.isnan(x) & (marks == 0), -1, marks)
        return self.margins.to_scores(values), states

    def factors(self, order: Ints) -> Factors:
        """Return the factors of all components, with the numbers in this order."""
        return self._recent.get(order.tobytes(), lambda: self._factor(order))

    def _factor(self, order: Ints) -> Factors:
        permuted = self.components.covariances[:, order[:, None], order]
        lower: Floats = np.linalg.cholesky(permuted).astype(np.float64, copy=False)
        return Factors(
            lower, exact_factor(lower, _FAR), np.log(np.diagonal(lower, axis1=1, axis2=2))
        )


class Path:
    """Draws for rows, given prefixes of an ordering (made by :meth:`Drawer.along`)."""

    def __init__(self, drawer: Drawer, X: Floats, noise: Floats, order: Ints) -> None:
        self._X, self._shape, self._order = X, noise.shape, order
        step = np.full(X.shape[1], NEVER)
        step[order] = np.arange(1, len(order) + 1)
        scores, states = drawer.read(X, step < NEVER)
        # A special value is known as such: the number itself stays unknown.
        self._groups = [
            (rows, _Group(drawer, X[rows], scores[rows], states[rows], noise[rows], gaps, step))
            for gaps, rows in patterns(np.isnan(scores))
        ]
        copied = [number.columns for number in drawer.variables.numbers if len(number.columns) > 1]
        self._copied = [(columns, step[list(columns)]) for columns in copied]

    def draw(self, lengths: Sequence[int]) -> Floats:
        """Return draws (n_lengths, n_rows, n_draws, n_columns) for ascending lengths.

        Those for a length do not depend on the other lengths.
        """
        return self._draw(lengths)[0]

    def draw_sums(
        self, lengths: Sequence[int], weights: Floats
    ) -> tuple[Floats, Iterator[Projected]]:
        """Return draws as `draw` does, and sums of the scores behind them, length by length.

        The weights have shape (n_numbers, n_sums) and are the same in all calls. Lengths may not be
        smaller than those of the last call.
        """
        out, found = self._draw(lengths)
        parts = [
            group.project(drawn, lengths, weights)
            for (_, group), drawn in zip(self._groups, found, strict=True)
        ]
        if len(parts) == 1:
            return out, parts[0]
        return out, (self._join(some) for some in zip(*parts, strict=True))

    def _join(self, parts: Sequence[Projected]) -> Projected:
        """Return the sums of all rows."""
        n_sums, _, n_components = parts[0].means.shape
        n_rows, n_draws = self._shape[:2]
        joined = Projected(
            np.empty((n_sums, n_rows, n_draws)),
            np.empty((n_rows, n_components)),
            *(np.empty((n_sums, n_rows, n_components)) for _ in range(2)),
        )
        for (rows, _), part in zip(self._groups, parts, strict=True):
            joined.drawn[:, rows], joined.shares[rows] = part.drawn, part.shares
            joined.means[:, rows], joined.variances[:, rows] = part.means, part.variances
        return joined

    def _draw(self, lengths: Sequence[int]) -> tuple[Floats, list[Drawn]]:
        """Return draws for all rows, and those of each group of rows."""
        found = [group.draw(lengths) for _, group in self._groups]
        if len(found) == 1:
            out = found[0].values
        else:
            out = np.empty((len(lengths), *self._shape))
            for (rows, _), each in zip(self._groups, found, strict=True):
                out[:, rows] = each.values
        for drawn, length in zip(out, lengths, strict=True):
            known = self._order[:length]
            drawn[..., known] = self._X[:, None, known]
            for columns, steps in self._copied:
                given = [column for column, at in zip(columns, steps, strict=True) if at <= length]
                if 0 < len(given) < len(columns):
                    copies = [column for column in columns if column not in given]
                    drawn[..., copies] = self._X[:, None, given[:1]]
        return out, found


class _Group:
    """Rows whose numbers have the same gaps.

    `step` is the length of the shortest prefix that has a column.
    """

    def __init__(
        self,
        drawer: Drawer,
        X: Floats,
        scores: Floats,
        states: Ints,
        noise: Floats,
        gaps: Mask,
        step: Ints,
    ) -> None:
        self._drawer, self._X, self._states, self._step = drawer, X, states, step
        self._noise = noise
        firsts = [int(step[list(n.columns)].min()) for n in drawer.variables.numbers]
        self._when = np.array(firsts, np.intp)  # the prefix from which a number is known
        self._known_when = np.where(gaps, NEVER, self._when)
        self.order = np.argsort(self._known_when, kind="stable")
        self.factors = drawer.factors(self.order)
        self.z = self._whiten(scores)
        numbers = drawer.variables.numbers
        self._columns = np.array([numbers[at].columns[0] for at in self.order], np.intp)
        self._tables = np.array([numbers[at].table for at in self.order], np.intp)
        # Those of special values, and of the first column, depend on what was chosen before.
        self._others = np.flatnonzero((self._tables >= 0) | (self._columns == 0)).tolist()
        self._first_scores = grid_scores(noise[:, :, self._columns])
        self._steps = np.ascontiguousarray(as_grid(self.z))
        self._sums: _Sums | None = None

    def _whiten(self, scores: Floats) -> Floats:
        """Return z of all rows and components, in the order of the numbers; 0 if never known."""
        components = self._drawer.components
        n_known = int((self._known_when < NEVER).sum())
        order = self.order[:n_known]
        # The numbers are the first axis here: what each step needs is in one piece.
        lower = np.ascontiguousarray(self.factors.lower[:, :n_known, :n_known].transpose(2, 1, 0))
        rest = scores.T[order, :, None] - components.means.T[order, None, :]
        whitened = np.zeros((len(self.order), len(scores), len(components)))
        products = np.empty_like(rest)
        for at in range(n_known):
            z = np.divide(rest[at], lower[at, at], out=whitened[at])
            np.clip(z, -_FAR, _FAR, out=z)
            np.multiply(lower[at, at + 1 :, None], z, out=products[at + 1 :])
            rest[at + 1 :] -= products[at + 1 :]
        return whitened.transpose(1, 2, 0)

    def draw(self, lengths: Sequence[int]) -> Drawn:
        """Return draws for ascending lengths."""
        noise = self._noise
        given = self._drawer.states.given(self._X, self._states, self._step, lengths)
        logs = self._log_shares(lengths) + given.log_shares
        shares = np.exp(logs - logs.max(axis=2, keepdims=True))
        bounds = np.cumsum(shares, axis=2)
        u = noise[None, :, :, 0] * bounds[:, :, -1:]
        chosen = _count_below(bounds, u)
        low = np.take_along_axis(bounds, np.maximum(chosen - 1, 0), axis=2)
        width = np.take_along_axis(shares, chosen, axis=2)
        uniforms = Uniforms(noise, remainder(u, np.where(chosen > 0, low, 0.0), width))
        out = np.empty((*chosen.shape, noise.shape[2]))
        marks = self._drawer.states.draw(out, given, chosen, uniforms)
        scores = self._draw_numbers(out, chosen, uniforms, marks, lengths)
        return Drawn(out, scores, shares)

    def project(self, drawn: Drawn, lengths: Sequence[int], weights: Floats) -> Iterator[Projected]:
        """Yield sums of the scores behind draws; see :meth:`Path.draw_sums`."""
        if self._sums is None:
            # The number behind a known special value plays no part: it is left out altogether.
            known_when = self._known_when[self.order]
            is_read = (known_when < NEVER) | (self._when[self.order] == NEVER)
            own = np.where(is_read[:, None], weights[self.order], 0.0)
            self._sums = _Sums(self._drawer.components.means[:, self.order], own, self)
        for length, scores, shares in zip(lengths, drawn.scores, drawn.shares, strict=True):
            n_known = int((self._known_when <= length).sum())
            yield self._sums.given(n_known, scores, shares / shares.sum(axis=1, keepdims=True))

    def _log_shares(self, lengths: Sequence[int]) -> Floats:
        """Return log probabilities from known numbers, (n_lengths, n_rows, n_components)."""
        logs = np.tile(self._drawer.log_weights, (len(self._X), 1))
        out = np.empty((len(lengths), *logs.shape))
        known_when = self._known_when[self.order]
        at = 0
        for position, length in enumerate(lengths):
            # Sums in the order of the numbers, whatever the lengths are.
            while at < len(known_when) and known_when[at] <= length:
                logs -= 0.5 * self.z[:, :, at] ** 2 + self.factors.log_scale[:, at]
                at += 1
            out[position] = logs
        return out

    def _draw_numbers(
        self,
        out: Floats,
        chosen: Ints,
        uniforms: Uniforms,
        marks: dict[int, tuple[Ints, Floats]],
        lengths: Sequence[int],
    ) -> Floats:
        """Write the draws of the unknown numbers, and return the scores of all.

        `marks` has states of special values.
        """
        if not len(self.order):
            return np.empty((*chosen.shape, 0))
        drawer, order = self._drawer, self.order
        numbers = drawer.variables.numbers
        scores = self._scores(chosen, uniforms, marks)
        rows = np.arange(chosen.shape[1])[:, None]
        known_when = self._known_when[order]
        for i, length in enumerate(lengths):
            if n_known := int((known_when <= length).sum()):
                scores[i, :, :, :n_known] = self._steps[rows, chosen[i], :n_known]
        drawn = self._to_numbers(scores, chosen)
        n_unknown = np.searchsorted(lengths, self._when[order])
        for place, (at, n) in enumerate(zip(order.tolist(), n_unknown.tolist(), strict=True)):
            if not n:
                continue
            x = drawer.margins.to_values(drawn[:n, :, :, place], at)
            if numbers[at].table in marks:
                states = marks[numbers[at].table][0][:n]
                special = np.append(0.0, numbers[at].special)
                x = np.where(states > 0, special[states], x)
            for column in numbers[at].columns:
                out[:n, :, :, column] = x
        return drawn

    def _scores(
        self, chosen: Ints, uniforms: Uniforms, marks: dict[int, tuple[Ints, Floats]]
    ) -> Floats:
        """Return normal scores, in steps of the grid."""
        scores = np.empty((*chosen.shape, len(self.order)))
        scores[...] = self._first_scores
        for place in self._others:
            table = int(self._tables[place])
            u = uniforms.first if table < 0 else marks[table][1]
            scores[..., place] = grid_scores(u)
        return scores

    def _to_numbers(self, scores: Floats, chosen: Ints) -> Floats:
        """Replace scores (..., n_numbers) by the numbers of their components, in place."""
        flat, components = scores.reshape(-1, len(self.order)), self._drawer.components
        means = components.means[:, self.order]
        by_component = np.argsort(chosen.ravel(), kind="stable")
        ends = np.cumsum(np.bincount(chosen.ravel(), minlength=len(components)))
        for component, some in enumerate(np.split(by_component, ends[:-1])):
            if len(some):
                part = flat[some] @ self.factors.exact[component]
                part += means[component]
                flat[some] = part
        return scores


class _Sums:
    """Sums of scores, with means and variances that are updated as more numbers become known.

    Given the first q numbers, the sum with weights v has the mean ``v'm + sum over i <= q of
    (L'v)_i z_i`` in a component, and the variance ``sum over i > q of (L'v)_i^2``.

    Parameters
    ----------
    means : array of shape (n_components, n_numbers)
    weights : array of shape (n_numbers, n_sums)
    group : _Group
        The rows, with their numbers in the same order.
    """

    def __init__(self, means: Floats, weights: Floats, group: _Group) -> None:
        self._z, self._weights, self._n_known = group.z, weights, 0
        n_rows, n_components, n_numbers = self._z.shape
        # The effects of the numbers on the sums: (n_sums, n_numbers, n_components).
        self._effects = np.einsum("kji,js->sik", group.factors.lower, weights)
        starts = np.einsum("kj,js->sk", means, weights)
        self._means = np.repeat(starts[:, None], n_rows, axis=1)
        squares = np.zeros((weights.shape[1], n_numbers + 1, n_components))
        squares[:, :-1] = self._effects**2
        self._variances = np.cumsum(squares[:, ::-1], axis=1)[:, ::-1]

    def given(self, n_known: int, scores: Floats, shares: Floats) -> Projected:
        """Return the sums of drawn scores; `n_known` may not fall."""
        for at in range(self._n_known, n_known):
            self._means += self._effects[:, at, None] * self._z[:, :, at]
        self._n_known = n_known
        # Element by element: the sums of a row do not depend on the other rows.
        drawn = np.zeros((len(self._means), *scores.shape[:2]))
        for at, weights in enumerate(self._weights):
            drawn += weights[:, None, None] * scores[:, :, at]
        return Projected(drawn, shares, self._means, self._variances[:, n_known, None])


def _count_below(bounds: Floats, u: Floats) -> Ints:
    """Return how many of ascending bounds, less the last, are below each of some numbers.

    Bisects all rows at once. Shapes (..., n_bounds) and (..., n_draws).
    """
    n_bounds = bounds.shape[-1]
    flat, first = bounds.reshape(-1), np.arange(0, bounds.size, n_bounds)
    first = first.reshape(*bounds.shape[:-1], 1)
    found = np.zeros(u.shape, np.intp)
    for digit in reversed(range((n_bounds - 1).bit_length())):
        more = found + (1 << digit)
        # Bounds are ascending: if the last of several is below, all are.
        is_below = flat.take(first + np.minimum(more, n_bounds) - 1) < u
        np.copyto(found, more, where=is_below & (more < n_bounds))
    return found
