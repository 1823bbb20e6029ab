"""Backward equivalence search: delete edges from a class of equivalent DAGs while that helps."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from dsage.graphs import Graph
from dsage.structure.constraints import Constraints, constraints_of
from dsage.structure.grow_shrink import tolerance
from dsage.structure.pdag import Pdag, bits_of, members
from dsage.structure.record import Callback, Record
from dsage.structure.result import SearchResult
from dsage.structure.scores.base import Parents, Score

# Up to so many common neighbours all their cliques are tried, beyond it a greedy chain of them.
_ALL_CLIQUES = 8


def bes(
    score: Score,
    graph: Graph,
    constraints: Constraints | None = None,
    *,
    callback: Callback | None = None,
) -> SearchResult:
    """Make the deletion that improves the score most, until none does (Chickering 2002).

    This is the second phase of greedy equivalence search. For an edge X -> Y or X - Y of the
    class, and a set C of nodes that are neighbours of Y and adjacent to X, such that C is a
    clique, ``Delete(X, Y, H)`` with H = all others of these nodes leads to another class and
    changes the score by ::

        score(Y, C + parents(Y) - X)  -  score(Y, C + parents(Y) + X)

    (Theorem 17 and Corollary 18). In the new class the nodes of H are children of Y, and of X
    where they were its neighbours.

    Parameters
    ----------
    score : Score
        What is to be as large as possible. Equivalent DAGs should score alike.
    graph : Graph
        The DAG to start from; it must keep to the constraints.
    constraints : Constraints, optional
        What the graph must keep to; nothing by default.
    callback : callable, optional
        Called with each :class:`~dsage.structure.result.Step`. A ``KeyboardInterrupt``, raised
        here or by the user, ends the search with the best graph so far.

    Returns
    -------
    SearchResult
        With a DAG of the last class; `graph` itself when nothing was deleted.

    Notes
    -----
    A deletion is made only if the new class has a DAG that keeps to the constraints and scores
    higher than the one before; else the next best deletion is tried. This DAG is looked for with
    the edges directed that the constraints leave no choice for (by Dor & Tarsi's algorithm, which
    finds one if there is one); only the bound on the parents is not sought but checked, so that a
    deletion may be refused although some other DAG of the class would keep to the bound.

    When X and Y have more than 8 common neighbours, C grows greedily from nothing by the node
    that makes the deletion best, instead of being any of all cliques.

    Examples
    --------
    >>> from dsage.structure.moments import Moments
    >>> from dsage.structure.scores.gaussian import GaussianScore
    >>> X = np.random.default_rng(0).normal(size=(1000, 3))
    >>> X[:, 2] += X[:, 0] + X[:, 1]
    >>> score = GaussianScore(Moments.from_array(X, list("abc")), penalty=np.log(1000) / 2)
    >>> bes(score, Graph(list("abc"), [("a", "b"), ("a", "c"), ("c", "b")])).graph
    Graph(3 nodes, 2 edges: a -> c, b -> c)
    """
    record = Record("bes", score, callback)
    constraints = constraints_of(score, constraints)
    search = _Backward(score, constraints, constraints.admit(graph))

    def run() -> None:
        for tail, head, delta in search.deletions():
            record.note("delete", tail, head, delta, search.total)

    return record.result(run, search)


class _Delete(NamedTuple):
    """An operator, with what it changes the score by; `kept` is C as a set of bits."""

    delta: float
    tail: int
    head: int
    kept: int


class _Backward:
    """A DAG and its class, from which edges are deleted."""

    def __init__(self, score: Score, constraints: Constraints, parents: list[Parents]) -> None:
        self._score = score
        self._fixed = constraints.required | constraints.required.T
        self._allowed = _allowed_parents(score, constraints)
        self._max_parents = constraints.max_parents
        everyone = (1 << len(parents)) - 1
        self._is_free = self._max_parents >= len(parents) - 1 and all(
            allowed | 1 << node == everyone for node, allowed in enumerate(self._allowed)
        )
        self._families: dict[tuple[int, int], float] = {}
        self._class = Pdag.of_class(parents)
        # One attribute, so that an interrupt finds a graph with its own score.
        self._present = (parents, self._sum(parents))

    @property
    def best(self) -> list[Parents]:
        """The parents of every node in the best DAG."""
        return self._present[0]

    @property
    def total(self) -> float:
        """Its score."""
        return self._present[1]

    @property
    def n_scored(self) -> int:
        """How many families were scored."""
        return len(self._families)

    def deletions(self) -> Iterator[tuple[int, int, float]]:
        """Make deletions, and yield each with the gain, until none improves the score."""
        is_done = False
        while not is_done:
            is_done = True
            for delete in sorted(self._operators(), key=lambda one: (-one.delta, *one[1:])):
                if delete.delta <= tolerance(self.total):
                    break
                before = self.total
                if self._make(delete):
                    yield delete.tail, delete.head, self.total - before
                    is_done = False
                    break

    def _operators(self) -> Iterator[_Delete]:
        """Yield the valid deletions of the present class."""
        parents, neighbours = self._class.parents, self._class.neighbours
        adjacent = [
            above | beside | below
            for above, beside, below in zip(
                parents, neighbours, self._class.children(), strict=True
            )
        ]
        for head in range(len(parents)):
            for tail in members(parents[head] | neighbours[head]):
                if not self._fixed[tail, head]:
                    common = neighbours[head] & adjacent[tail]
                    yield from self._with_any_kept(tail, head, common, adjacent)

    def _with_any_kept(
        self, tail: int, head: int, common: int, adjacent: list[int]
    ) -> Iterator[_Delete]:
        """Yield the deletions of one edge, for cliques among the common neighbours."""
        is_greedy = common.bit_count() > _ALL_CLIQUES
        # A clique, and the nodes that may still join it.
        waiting = [(0, common)]
        while waiting:
            kept, joining = waiting.pop()
            delete = _Delete(self._delta(tail, head, kept), tail, head, kept)
            if math.isfinite(delete.delta):
                yield delete
            larger = []
            for node in members(joining):
                if not is_greedy:
                    joining ^= 1 << node
                larger.append((kept | 1 << node, joining & adjacent[node]))
            if is_greedy and larger:
                larger = [max(larger, key=lambda pair: self._delta(tail, head, pair[0]))]
            waiting += larger

    def _delta(self, tail: int, head: int, kept: int) -> float:
        others = kept | self._class.parents[head] & ~(1 << tail)
        with_tail = self._family(head, others | 1 << tail)
        if with_tail == -math.inf:
            return -math.inf
        return self._family(head, others) - with_tail

    def _make(self, delete: _Delete) -> bool:
        """Go to the new class, if it has a legal DAG that scores higher than the present one."""
        parents = self._without(delete)
        if parents is None:
            return False
        found = Pdag.of_class(parents)
        legal = parents if self._is_free else self._legal(found)
        if legal is None or self._sum(legal) <= self.total + tolerance(self.total):
            return False
        self._class = found
        self._present = (legal, self._sum(legal))
        return True

    def _without(self, delete: _Delete) -> list[Parents] | None:
        """Return a DAG of the class that the deletion leads to (Definition 13)."""
        tail, head = delete.tail, delete.head
        pdag = self._class.copy()
        pdag.remove(tail, head)
        neighbours = self._class.neighbours
        adjacent = neighbours[tail] | self._class.parents[tail] | self._class.children()[tail]
        for node in members(neighbours[head] & adjacent & ~delete.kept):
            pdag.direct(head, node)
            if neighbours[tail] >> node & 1:
                pdag.direct(tail, node)
        return pdag.to_dag()

    def _legal(self, pdag: Pdag) -> list[Parents] | None:
        """Return a DAG of this class that keeps to the constraints, if there is one."""
        guided = pdag.copy()
        for head, tails in enumerate(pdag.parents):
            if tails & ~self._allowed[head]:
                return None
            for tail in members(pdag.neighbours[head] & ~self._allowed[head]):
                if not self._allowed[tail] >> head & 1:
                    return None
                guided.direct(head, tail)
        legal = guided.to_dag()
        # The directions that were given may make a v-structure, which is another class.
        if legal is None or Pdag.of_class(legal) != pdag:
            return None
        return legal if all(len(tails) <= self._max_parents for tails in legal) else None

    def _family(self, node: int, parents: int) -> float:
        known = self._families.get((node, parents))
        if known is None:
            known = self._score.family(node, tuple(members(parents)))
            self._families[node, parents] = known
        return known

    def _sum(self, parents: list[Parents]) -> float:
        return math.fsum(self._family(node, bits_of(tails)) for node, tails in enumerate(parents))


def _allowed_parents(score: Score, constraints: Constraints) -> list[int]:
    """Return for every node the parents that the constraints and the score allow, as bits."""
    allowed = []
    for node in range(len(score.names)):
        by_score = score.additions(node, ()) > -np.inf
        may = (constraints.allowed[:, node] & by_score) | constraints.required[:, node]
        allowed.append(bits_of(may.nonzero()[0].tolist()))
    return allowed
