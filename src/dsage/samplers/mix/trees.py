"""Trees of table variables: within a component, each depends on its parent.

The trees are as in Chow & Liu (IEEE Trans. Inf. Theory 1968): of all trees, they have the
largest sum of mutual information along their edges.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dsage.samplers.checks import Floats, Ints

_MAX_CELLS = 400  # of the joint table of a variable and its parent


@dataclass(frozen=True, eq=False)
class Trees:
    """The parent of each table variable, -1 for none, and numbers of states."""

    parents: tuple[int, ...]
    n_states: tuple[int, ...]

    @classmethod
    def none(cls, n_states: Sequence[int]) -> Trees:
        """Return trees without edges: variables are independent within a component."""
        return cls((-1,) * len(n_states), tuple(n_states))

    @classmethod
    def of(cls, states: Ints, n_states: Sequence[int]) -> Trees:
        """Learn trees from the states of rows (n_rows, n_tables).

        An edge must pay for its parameters, by BIC.
        """
        n_rows, n_tables = states.shape
        gains: list[tuple[float, int, int]] = []
        for first in range(n_tables):
            for second in range(first):
                n_cells = n_states[first] * n_states[second]
                if n_cells <= _MAX_CELLS:
                    joint = np.bincount(
                        states[:, first] * n_states[second] + states[:, second], minlength=n_cells
                    )
                    shape = n_states[first], n_states[second]
                    gain = _gain(joint.reshape(shape), n_rows)
                    gains.append((gain, first, second))
        tree = list(range(n_tables))
        edges: list[list[int]] = [[] for _ in range(n_tables)]
        for gain, first, second in sorted(gains, reverse=True):
            if gain > 0.0 and tree[first] != tree[second]:
                edges[first].append(second)
                edges[second].append(first)
                old, new = tree[first], tree[second]
                tree = [new if each == old else each for each in tree]
        parents = [-2] * n_tables
        for root in range(n_tables):
            if parents[root] == -2:
                parents[root] = -1
                reached = [root]
                for node in reached:
                    for other in edges[node]:
                        if parents[other] == -2:
                            parents[other] = node
                            reached.append(other)
        return cls(tuple(parents), tuple(n_states))

    @property
    def has_edges(self) -> bool:
        """Whether some variable has a parent."""
        return any(parent >= 0 for parent in self.parents)

    @property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """The children of each variable."""
        found: list[list[int]] = [[] for _ in self.parents]
        for child, parent in enumerate(self.parents):
            if parent >= 0:
                found[parent].append(child)
        return tuple(tuple(each) for each in found)

    @property
    def order(self) -> tuple[int, ...]:
        """All variables, parents before their children."""
        done = [node for node, parent in enumerate(self.parents) if parent < 0]
        children = self.children
        for node in done:
            done.extend(children[node])
        return tuple(done)

    @property
    def n_cells(self) -> tuple[int, ...]:
        """The number of cells of each variable's table: its states times its parent's."""
        return tuple(
            n * (self.n_states[parent] if parent >= 0 else 1)
            for n, parent in zip(self.n_states, self.parents, strict=True)
        )

    def cells(self, states: Ints) -> Ints:
        """Return the cells of the states of rows, (n_rows, n_tables)."""
        cells = states.copy()
        for node, parent in enumerate(self.parents):
            if parent >= 0:
                cells[:, node] += self.n_states[node] * states[:, parent]
        return cells


def _gain(joint: Ints, n_rows: int) -> float:
    """Return how much an edge raises BIC: likelihood ratio minus penalty."""
    expected = np.outer(joint.sum(axis=1), joint.sum(axis=0)) / max(1, n_rows)
    seen = joint > 0
    ratio = float((joint[seen] * np.log(joint[seen] / expected[seen])).sum())
    # States that do not occur have no parameters.
    n_first, n_second = (joint.sum(axis=1) > 0).sum(), (joint.sum(axis=0) > 0).sum()
    return ratio - 0.5 * float((n_first - 1) * (n_second - 1)) * math.log(max(2, n_rows))


class Evidence:
    """Known values of the variables of trees, and what they imply for components and states.

    Parameters
    ----------
    trees : Trees
        The trees.
    tables : sequence of arrays of shape (n_components, n_parent_states, n_states)
        Probabilities of the states given the parent's state; one parent state for a root.
    allowed : dict of arrays of shape (n_rows, n_states)
        For each variable of the trees: 1 for states that agree with what is known, 0 for others.
        Parents come before their children.

    Attributes
    ----------
    log_shares : array of shape (n_rows, n_components)
        Log probabilities of what is known.
    """

    def __init__(self, trees: Trees, tables: Sequence[Floats], allowed: dict[int, Floats]) -> None:
        self._tables = tables
        children = trees.children
        # For each variable: the likelihood of the known values in its subtree, given each state.
        self._likely: dict[int, Floats] = {}
        messages: dict[int, Floats] = {}
        n_rows = len(next(iter(allowed.values())))
        self.log_shares = np.zeros((n_rows, len(tables[0])))
        for node in reversed(allowed):
            likely = np.repeat(allowed[node][:, None, :], len(tables[node]), axis=1)
            for child in children[node]:
                likely *= messages[child]
            self._likely[node] = likely
            messages[node], logs = self._send(node, likely)
            self.log_shares += logs

    def _send(self, node: int, likely: Floats) -> tuple[Floats, Floats]:
        """Return the likelihood given each state of the parent, and the logarithm of its scale."""
        table = self._tables[node]
        message = np.zeros((len(likely), *table.shape[:2]))
        # Summed in a fixed order, element by element.
        for state in range(table.shape[2]):
            message += likely[:, :, state, None] * table[:, :, state]
        top = np.maximum(message.max(axis=2, keepdims=True), 1e-300)
        message /= top
        return message, np.log(top[:, :, 0])

    def bounds(self, node: int, rows: Ints, chosen: Ints, parent: Ints) -> Floats:
        """Return cumulated shares of the states, given components and states of the parent.

        `chosen` and `parent` have shape (len(rows), n_draws), the result one axis more.
        """
        shares = self._tables[node][chosen, parent] * self._likely[node][rows[:, None], chosen]
        return np.cumsum(shares, axis=2)
