"""The states of the tables of a mixture: evidence from known ones, draws of unknown ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dsage.samplers.checks import Floats, Ints, Mask
from dsage.samplers.mix.em import Components
from dsage.samplers.mix.trees import Evidence, Trees
from dsage.samplers.mix.variables import Table, Variables

_TINY = 1e-300
# Bounds that are compared one by one in less time than a search takes.
_FEW_BOUNDS = 6
_SMALLEST = 2.0**-54  # uniforms are kept off 0 and 1


class Uniforms:
    """The noise of each column; the first is what remains after the choice of components."""

    def __init__(self, noise: Floats, first: Floats) -> None:
        self.noise, self.first = noise, first

    def of(self, column: int, lengths: Sequence[int] | Ints) -> Floats:
        """Return the uniforms of a column for some of the lengths, (.., n_rows, n_draws)."""
        if column == 0:
            left: Floats = self.first[np.asarray(lengths)]
            return left
        u = self.noise[None, :, :, column]
        return np.broadcast_to(u, (len(lengths), *u.shape[1:]))


def remainder(u: Floats, low: Floats, width: Floats) -> Floats:
    """Return where uniforms are in their intervals, as uniforms in (0, 1) again."""
    place: Floats = (u - low) / np.where(width > 0.0, width, 1.0)
    return np.clip(place, _SMALLEST, 1.0 - _SMALLEST)


@dataclass(frozen=True, eq=False)
class Given:
    """The known states of the tables with each prefix.

    Parameters
    ----------
    log_shares : array of shape (n_lengths, n_rows, n_components)
        Log probabilities of what is known.
    states : int array of shape (n_rows, n_tables)
        The states of rows, -1 if nothing is known.
    is_known : dict of bool arrays of shape (n_lengths,)
        With which prefixes a table is known.
    allowed : dict of arrays of shape (n_lengths, n_rows, n_states)
        1 for the states that agree with what is known, 0 for others, of the tables in trees and of
        those that are partly known with some prefix.
    evidence : Evidence or None
        About the tables in trees, for all prefixes, one after the other, and distinct rows.
    place : int array of shape (n_rows,)
        Where each row is among the distinct ones.
    """

    log_shares: Floats
    states: Ints
    is_known: dict[int, Mask]
    allowed: dict[int, Floats]
    evidence: Evidence | None
    place: Ints


class StateDraws:
    """Draws of the states of tables."""

    def __init__(self, variables: Variables, components: Components, trees: Trees) -> None:
        self._variables, self._trees = variables, trees
        self._tables = components.tables
        self._n_components = len(components)
        children = trees.children
        nodes = trees.order
        self._in_trees = [n for n in nodes if trees.parents[n] >= 0 or children[n]]
        self._alone = [n for n in nodes if n not in set(self._in_trees)]
        # Those of tables that stand alone: (n_states, n_components).
        self._logs = {n: np.log(np.maximum(self._tables[n][:, 0], _TINY)).T for n in self._alone}
        self._bounds = {n: np.cumsum(self._tables[n][:, 0], axis=1) for n in self._alone}
        numbers = np.arange(len(components))[:, None]
        # All bounds of a table as one ascending sequence, component after component.
        self._flat = {
            n: (np.minimum(bounds[:, :-1], 1.0) + numbers).ravel()
            for n, bounds in self._bounds.items()
        }
        self._levels = {
            n: _Levels(table) for n, table in enumerate(variables.tables) if table.has_groups
        }
        columns = {n: table.columns for n, table in enumerate(variables.tables)}
        for number in variables.numbers:
            if number.table >= 0:
                columns[number.table] = np.array(number.columns)
        self._columns = columns
        self._of_number = {n.table for n in variables.numbers if n.table >= 0}

    def given(self, X: Floats, states: Ints, step: Ints, lengths: Sequence[int]) -> Given:
        """Return the known states with each prefix; `step` is the first prefix with a column."""
        size = np.array(lengths)
        is_known = {n: size >= self._when(n, step) for n in self._columns}
        out = np.zeros((len(lengths), len(X), self._n_components))
        for n in self._alone:
            if is_known[n].any():
                out[is_known[n]] += self._of_state(n, states[:, n])
        allowed: dict[int, Floats] = {}
        for n in [*self._alone, *self._in_trees]:
            partly = (step[self._columns[n]][:, None] <= size).any(axis=0) & ~is_known[n]
            if partly.any() or n in self._in_trees:
                allowed[n] = np.ones((len(lengths), len(X), self._trees.n_states[n]))
                for i in np.flatnonzero(partly).tolist():
                    now = step[self._columns[n]] <= lengths[i]
                    allowed[n][i] = self._agreeing(n, X, now)
            if partly.any() and n in self._alone:
                out[partly] += self._of_allowed(n, allowed[n][partly])
            if n in self._in_trees and is_known[n].any():
                allowed[n][is_known[n]] = self._indicators(n, states[:, n])
        evidence, place = None, np.arange(len(X))
        if self._in_trees:
            some, place = self._distinct(states, step, size)
            flat = {n: allowed[n][:, some].reshape(-1, allowed[n].shape[2]) for n in self._in_trees}
            evidence = Evidence(self._trees, self._tables, flat)
            out += evidence.log_shares.reshape(len(out), len(some), -1)[:, place]
        return Given(out, states, is_known, allowed, evidence, place)

    def _distinct(self, states: Ints, step: Ints, size: Ints) -> tuple[Ints, Ints]:
        """Return rows with all distinct states of trees, and which of these rows each row is."""
        if any(len(self._columns[n]) > 1 for n in self._in_trees):
            # Tables of several columns may be known in part, beyond their states.
            every = np.arange(len(states))
            return every, every
        now = [n for n in self._in_trees if self._when(n, step) <= size.max(initial=0)]
        _, some, place = np.unique(states[:, now], axis=0, return_index=True, return_inverse=True)
        return some, place.reshape(-1)

    def _when(self, node: int, step: Ints) -> int:
        """Return the prefix from which a table is known: any copy of a number will do."""
        steps = step[self._columns[node]]
        return int(steps.min() if node in self._of_number else steps.max())

    def _of_state(self, node: int, states: Ints) -> Floats:
        """Return the log probabilities of known states; 0 if nothing is known."""
        logs = self._logs[node][states]
        if (states < 0).any():
            logs[states < 0] = 0.0
        return logs

    def _of_allowed(self, node: int, allowed: Floats) -> Floats:
        total = np.zeros((*allowed.shape[:2], self._n_components))
        for state, column in enumerate(self._tables[node][:, 0].T):
            total += allowed[:, :, state, None] * column
        return np.log(np.maximum(total, _TINY))

    def _indicators(self, node: int, states: Ints) -> Floats:
        allowed = np.eye(self._trees.n_states[node])[states]
        allowed[states < 0] = 1.0
        return allowed

    def _agreeing(self, node: int, X: Floats, known: Mask) -> Floats:
        """Return which states agree with the known columns of a table; all, if none does."""
        agrees = self._variables.tables[node].agrees(X, known)
        return (agrees | ~agrees.any(axis=1, keepdims=True)).astype(np.float64)

    def draw(
        self, out: Floats, given: Given, chosen: Ints, uniforms: Uniforms
    ) -> dict[int, tuple[Ints, Floats]]:
        """Write the draws of unknown tables; return states and remainders of special values."""
        marks: dict[int, tuple[Ints, Floats]] = {}
        for n in self._alone:
            if n in self._of_number:
                marks[n] = self._draw_mark(n, chosen, uniforms)
            else:
                self._draw_alone(n, out, given, chosen, uniforms)
        if given.evidence is not None:
            self._draw_trees(out, given, given.evidence, chosen, uniforms, marks)
        return marks

    def _draw_mark(self, node: int, chosen: Ints, uniforms: Uniforms) -> tuple[Ints, Floats]:
        u = uniforms.of(int(self._columns[node][0]), range(len(chosen)))
        states = self._invert(node, chosen, u)
        return states, self._remainder(node, chosen, states, u)

    def _draw_alone(
        self, node: int, out: Floats, given: Given, chosen: Ints, uniforms: Uniforms
    ) -> None:
        column = int(self._columns[node][0])
        unknown = np.flatnonzero(~given.is_known[node])
        if not len(unknown):
            return
        here, u = chosen[unknown], uniforms.of(column, unknown)
        if node in given.allowed:
            shares = self._tables[node][here, 0] * given.allowed[node][unknown][:, :, None]
            states, rest = _invert_bounds(np.cumsum(shares, axis=3), u)
        else:
            states = self._invert(node, here, u)
            rest = self._remainder(node, here, states, u) if node in self._levels else u
        self._write(out, node, unknown, states, rest)

    def _invert(self, node: int, chosen: Ints, u: Floats) -> Ints:
        n_bounds = self._bounds[node].shape[1] - 1
        if not n_bounds:
            return np.zeros(chosen.shape, np.intp)
        if n_bounds > _FEW_BOUNDS:
            states: Ints = np.searchsorted(self._flat[node], chosen + u) - n_bounds * chosen
            return states
        states = np.zeros(chosen.shape, np.intp)
        for bound in self._bounds[node].T[:-1]:
            states += np.minimum(bound, 1.0).take(chosen) < u
        return states

    def _remainder(self, node: int, chosen: Ints, states: Ints, u: Floats) -> Floats:
        low = self._bounds[node][chosen, np.maximum(states - 1, 0)]
        width = self._tables[node][chosen, 0, states]
        return remainder(u, np.where(states > 0, low, 0.0), width)

    def _draw_trees(
        self,
        out: Floats,
        given: Given,
        evidence: Evidence,
        chosen: Ints,
        uniforms: Uniforms,
        marks: dict[int, tuple[Ints, Floats]],
    ) -> None:
        """Draw the states of tables in trees, parents first."""
        flat = chosen.reshape(-1, chosen.shape[2])
        drawn: dict[int, Ints] = {-1: np.zeros(flat.shape, np.intp)}
        every = range(len(chosen))
        n_distinct = int(given.place.max(initial=-1)) + 1
        place = (n_distinct * np.arange(len(chosen))[:, None] + given.place).ravel()
        for n in self._in_trees:
            known = given.states[:, n]
            if n not in self._of_number and given.is_known[n].all() and (known >= 0).all():
                drawn[n] = np.broadcast_to(np.tile(known, len(chosen))[:, None], flat.shape)
                continue
            u = uniforms.of(int(self._columns[n][0]), every).reshape(flat.shape)
            bounds = evidence.bounds(n, place, flat, drawn[self._trees.parents[n]])
            drawn[n], rest = _invert_bounds(bounds, u)
            states, left = drawn[n].reshape(chosen.shape), rest.reshape(chosen.shape)
            if n in self._of_number:
                marks[n] = states, left
            else:
                unknown = np.flatnonzero(~given.is_known[n])
                self._write(out, n, unknown, states[unknown], left[unknown])

    def _write(self, out: Floats, node: int, lengths: Ints, states: Ints, rest: Floats) -> None:
        table = self._variables.tables[node]
        levels = self._levels[node].draw(states, rest) if node in self._levels else states
        for position, column in enumerate(table.columns):
            out[lengths, :, :, column] = table.values[levels, position]


def _invert_bounds(bounds: Floats, u: Floats) -> tuple[Ints, Floats]:
    """Return the states in whose share of the cumulated ones uniforms fall, and the remainders."""
    target = u * bounds[..., -1]
    states = np.zeros(u.shape, np.intp)
    for bound in range(bounds.shape[-1] - 1):
        states += target > bounds[..., bound]
    high = np.take_along_axis(bounds, states[..., None], axis=-1)[..., 0]
    low = np.take_along_axis(bounds, np.maximum(states - 1, 0)[..., None], axis=-1)[..., 0]
    low = np.where(states > 0, low, 0.0)
    return states, remainder(target, low, high - low)


class _Levels:
    """The levels of a table whose states are groups of levels, by state."""

    def __init__(self, table: Table) -> None:
        self._order = np.argsort(table.state_of, kind="stable")
        states = table.state_of[self._order]
        total = np.cumsum(table.shares[self._order])
        self._first = np.searchsorted(states, np.arange(table.n_states))
        self._last = np.append(self._first[1:], len(states)) - 1
        # One ascending sequence: the number of the state plus the shares of levels before.
        before = np.append(0.0, total)[self._first]
        self._bounds = states + np.minimum(total - before[states], 1.0)

    def draw(self, states: Ints, u: Floats) -> Ints:
        """Return levels of states from uniforms."""
        found = np.searchsorted(self._bounds, states + u)
        return self._order[np.clip(found, self._first[states], self._last[states])]
