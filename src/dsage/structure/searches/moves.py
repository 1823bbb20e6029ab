"""The moves of a local search: their changes of the score, and which of them are legal."""

from __future__ import annotations

import array
import bisect
from collections.abc import Collection, Sequence
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from dsage._check import refusal
from dsage.structure.constraints import Constraints
from dsage.structure.scores.base import Parents, Score
from dsage.structure.searches.ancestry import Ancestry

Floats = npt.NDArray[np.float64]
Kind = Literal["add", "delete", "reverse"]
Change = tuple[Kind, int, int]

_ROOT_EPSILON = float(np.sqrt(np.finfo(np.float64).eps))


class Move(NamedTuple):
    """Adding, deleting or reversing the edge tail -> head changes the score by delta."""

    kind: Kind
    tail: int
    head: int
    delta: float

    @property
    def change(self) -> Change:
        """The move without its delta."""
        return self[:3]


class MoveTable:
    """A DAG with the score changes of all moves, updated after each move.

    A move changes the parents of one or two nodes; only edges into these are scored again. The
    best legal addition into each node is remembered. Ties, differences within `tolerance`, go to
    the first move in bnlearn's order: additions, deletions, reversals, each by tail and then head.
    The tolerance is sqrt(machine epsilon), as in bnlearn, or more if the rounding of large scores
    needs it.
    """

    def __init__(self, score: Score, constraints: Constraints, parents: Sequence[Parents]) -> None:
        self._score = score
        self._max_parents = constraints.max_parents
        self.parents = list(parents)
        self.n_scored = 0
        n_nodes = len(self.parents)
        self._n_nodes = n_nodes
        self._allowed_into = np.ascontiguousarray(constraints.allowed.T)
        self._can_delete = ~constraints.required.ravel()
        self._can_reverse = (constraints.allowed.T & ~constraints.required).ravel()
        self._ancestry = Ancestry(self.parents)
        # Codes tail * n_nodes + head in increasing order: the order in which ties are broken.
        self._edges = array.array(
            "q",
            sorted(t * n_nodes + head for head, tails in enumerate(self.parents) for t in tails),
        )
        # Edges found not to be reversible because of another path.
        self._blocked: list[int] = []
        self._families = np.zeros(n_nodes)
        # Entry [head, tail]: the delta of adding tail -> head or, if it exists, of deleting it.
        self._delta = np.zeros((n_nodes, n_nodes))
        # The same for legal additions; -inf otherwise.
        self._open = np.full((n_nodes, n_nodes), -np.inf)
        self._best_tail = np.zeros(n_nodes, dtype=np.intp)
        self._best_delta = np.full(n_nodes, -np.inf)
        for node in range(n_nodes):
            self._rescore(node)
        largest = float(np.abs(self._families).max(initial=0.0))
        self.tolerance = max(_ROOT_EPSILON, 1e-12 * largest)

    @property
    def score(self) -> float:
        """The score of the graph."""
        return float(self._families.sum())

    def has_edge(self, tail: int, head: int) -> bool:
        """Return whether the graph has the edge tail -> head."""
        return tail in self.parents[head]

    def edges(self) -> list[tuple[int, int]]:
        """Return the edges, each as its tail and head, in order."""
        return [divmod(code, self._n_nodes) for code in self._edges]

    def is_legal(self, change: Change) -> bool:
        """Return whether a move is legal."""
        kind, tail, head = change
        if kind == "add":
            return bool(self._open[head, tail] > -np.inf)
        if not self.has_edge(tail, head):
            return False
        if kind == "delete":
            deletable = self._can_delete[tail * self._n_nodes + head]
            return bool(deletable and self._delta[head, tail] > -np.inf)
        return bool(
            self._can_reverse[tail * self._n_nodes + head]
            and self._delta[tail, head] > -np.inf
            and self._has_room(tail)
            and not self._ancestry.has_other_path(tail, head)
        )

    def delta(self, change: Change) -> float:
        """Return the change of the score by a legal move."""
        kind, tail, head = change
        delta = self._delta[head, tail]
        return float(delta + self._delta[tail, head] if kind == "reverse" else delta)

    # Updating the table

    def _rescore(self, head: int) -> None:
        parents = self.parents[head]
        family = self._score.family(head, parents)
        if family == -np.inf:
            edges = [(self._score.names[tail], self._score.names[head]) for tail in parents]
            advice = "These edges together score -inf: remove some of them"
            raise refusal("start", "a graph that the score allows", edges, advice)
        self._families[head] = family
        delta = self._delta[head]
        np.subtract(self._score.additions(head, parents), family, out=delta)
        self.n_scored += 1 + self._n_nodes
        opened = self._open[head]
        opened.fill(-np.inf)
        if self._has_room(head):
            legal = (
                self._allowed_into[head] & ~self._ancestry.masks((self._ancestry.below[head],))[0]
            )
            np.copyto(opened, delta, where=legal)
        if parents:
            places = list(parents)
            delta[places] = self._score.removals(head, parents)[places] - family
            self.n_scored += len(places)
        best = int(opened.argmax())
        self._best_tail[head] = best
        self._best_delta[head] = opened[best]

    def _close(self, tail: int, head: int) -> None:
        """Remove the additions that would close a cycle with a new edge tail -> head."""
        above = self._ancestry.members(self._ancestry.above[tail])
        below = self._ancestry.masks((self._ancestry.below[head],))[0]
        self._open[above[:, None], np.flatnonzero(below)] = -np.inf
        self._find_best(above[below[self._best_tail[above]]])

    def _reopen(self, before: dict[int, int]) -> None:
        """Restore the additions that no longer close a cycle."""
        below = self._ancestry.below
        changed = [
            node for node, old in before.items() if old != below[node] and self._has_room(node)
        ]
        if changed:
            heads = np.array(changed)
            freed = self._ancestry.masks([before[node] & ~below[node] for node in changed])
            freed &= self._allowed_into[heads]
            opened = self._open[heads]
            np.copyto(opened, self._delta[heads], where=freed)
            self._open[heads] = opened
            self._find_best(heads)

    def _find_best(self, heads: npt.NDArray[np.intp]) -> None:
        if len(heads):
            rows = self._open[heads]
            best = rows.argmax(axis=1)
            self._best_tail[heads] = best
            self._best_delta[heads] = rows[np.arange(len(heads)), best]

    # Making a move

    def apply(self, change: Change) -> None:
        """Make a legal move."""
        kind, tail, head = change
        if kind == "add":
            self._link(tail, head)
            self._close(tail, head)
        else:
            above = self._ancestry.members(self._ancestry.above[tail]).tolist()
            before = {node: self._ancestry.below[node] for node in above}
            self._unlink(tail, head)
            self._reopen(before)
            if kind == "reverse":
                self._link(head, tail)
                self._close(head, tail)
                self._rescore(tail)
        self._rescore(head)

    def _link(self, tail: int, head: int) -> None:
        self.parents[head] = tuple(sorted((*self.parents[head], tail)))
        self._ancestry.add(tail, head)
        bisect.insort(self._edges, tail * self._n_nodes + head)

    def _unlink(self, tail: int, head: int) -> None:
        self.parents[head] = tuple(parent for parent in self.parents[head] if parent != tail)
        self._ancestry.remove(tail, head)
        del self._edges[bisect.bisect_left(self._edges, tail * self._n_nodes + head)]
        self._can_reverse[self._blocked] = True
        self._blocked.clear()

    # Choosing a move

    def best(self, banned: Collection[Change] = ()) -> Move | None:
        """Return the legal move, not banned, with the largest delta; None if there is none."""
        best = self._best_addition(banned)
        if self._edges:
            forward = np.array(self._edges)
            tails, heads = np.divmod(forward, self._n_nodes)
            backward = heads * self._n_nodes + tails
            deletions = self._delta.take(backward)
            reversals = deletions + self._delta.take(forward)
            best = self._best_deletion(best, forward, deletions, banned)
            best = self._best_reversal(best, forward, reversals, banned)
        return best

    def _best_addition(self, banned: Collection[Change]) -> Move | None:
        shut = {(tail, head) for kind, tail, head in banned if kind == "add"}
        best = self._best_delta
        if shut:
            best = best.copy()
            for head in {head for _, head in shut}:
                row = self._open[head].copy()
                row[[tail for tail, other in shut if other == head]] = -np.inf
                best[head] = row.max()
        top = float(best.max(initial=-np.inf))
        if top == -np.inf:
            return None
        enough = top - self.tolerance
        tied = (
            (int(tail), int(head))
            for head in np.flatnonzero(best >= enough)
            for tail in np.flatnonzero(self._open[head] >= enough)
        )
        tail, head = min(edge for edge in tied if edge not in shut)
        return Move("add", tail, head, float(self._open[head, tail]))

    def _best_deletion(
        self,
        best: Move | None,
        edges: npt.NDArray[np.intp],
        deltas: Floats,
        banned: Collection[Change],
    ) -> Move | None:
        deltas = np.where(self._can_delete.take(edges), deltas, -np.inf)
        for kind, tail, head in banned:
            if kind == "delete" and self.has_edge(tail, head):
                deltas[bisect.bisect_left(self._edges, tail * self._n_nodes + head)] = -np.inf
        top = float(deltas.max())
        if not self._beats(top, best):
            return best
        place = int(np.argmax(deltas >= top - self.tolerance))
        tail, head = divmod(self._edges[place], self._n_nodes)
        return Move("delete", tail, head, float(deltas[place]))

    def _best_reversal(
        self,
        best: Move | None,
        edges: npt.NDArray[np.intp],
        deltas: Floats,
        banned: Collection[Change],
    ) -> Move | None:
        bound = -np.inf if best is None else best.delta + self.tolerance
        places = np.flatnonzero((deltas > bound) & self._can_reverse.take(edges))
        top = -np.inf
        found: list[tuple[int, int, float]] = []
        # Few reversals beat the best addition, so few are checked for cycles.
        for place in places[np.argsort(-deltas[places], kind="stable")].tolist():
            if deltas[place] < top - self.tolerance:
                break
            tail, head = divmod(self._edges[place], self._n_nodes)
            if self._ancestry.has_other_path(tail, head):
                # Additions cannot remove this path.
                self._can_reverse[self._edges[place]] = False
                self._blocked.append(self._edges[place])
            elif self._has_room(tail) and ("reverse", tail, head) not in banned:
                top = max(top, float(deltas[place]))
                found.append((tail, head, float(deltas[place])))
        return Move("reverse", *min(found)) if found else best

    def _has_room(self, head: int) -> bool:
        return len(self.parents[head]) < self._max_parents

    def _beats(self, delta: float, best: Move | None) -> bool:
        return delta > (-np.inf if best is None else best.delta + self.tolerance)
