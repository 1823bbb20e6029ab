"""Backward equivalence search: delete edges from a class of equivalent DAGs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from dsage.graphs import Graph
from dsage.graphs.pdag import Pdag, bits_of, members
from dsage.structure.constraints import Constraints, check_constraints
from dsage.structure.result import SearchResult
from dsage.structure.scores.base import Parents, Score
from dsage.structure.searches.base import Callback, Trace
from dsage.structure.searches.grow_shrink import tolerance

# With more common neighbors than this, a greedy chain of cliques is tried instead of all.
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
    class, and a set C of nodes that are neighbors of Y and adjacent to X, such that C is a
    clique, ``Delete(X, Y, H)`` with H = all others of these nodes leads to another class and
    changes the score by ::

        score(Y, C + parents(Y) - X)  -  score(Y, C + parents(Y) + X)

    (Theorem 17 and Corollary 18). In the new class the nodes of H are children of Y, and of X
    where they were its neighbors.

    Parameters
    ----------
    score : Score
        The score to maximize. Equivalent DAGs should score alike.
    graph : Graph
        The DAG to start from; it must satisfy the constraints.
    constraints : Constraints, optional
        Constraints on the graph; none by default.
    callback : callable, optional
        Called with each :class:`~dsage.structure.result.Step`. A ``KeyboardInterrupt``, raised
        here or by the user, ends the search and returns the best graph so far.

    Returns
    -------
    SearchResult
        With a DAG of the last class; `graph` itself if nothing was deleted.

    Notes
    -----
    A deletion is made only if the new class has a DAG that satisfies the constraints and scores
    higher than the previous one; otherwise the next best deletion is tried. Edges that the
    constraints leave only one direction for are directed first; then Dor & Tarsi's algorithm
    finds a DAG if there is one. The bound on the parents is only checked, so a deletion may be
    refused although another DAG of the class would satisfy the bound.

    If X and Y have more than 8 common neighbors, C grows greedily from the empty set by the node
    that makes the deletion best, instead of running through all cliques.

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
    trace = Trace("bes", score, callback)
    constraints = check_constraints(score, constraints)
    search = _Backward(score, constraints, constraints.admit(graph))

    def run() -> None:
        for tail, head, delta in search.deletions():
            trace.add("delete", tail, head, delta, search.total)

    return trace.result(run, lambda: (search.best, search.n_scored))


class _Delete(NamedTuple):
    """An operator and its change of the score; `kept` is C as a set of bits."""

    delta: float
    tail: int
    head: int
    kept: int


class _Backward:
    """A DAG and its class, with the deletions made so far."""

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
        self._current = (parents, self._sum(parents))

    @property
    def best(self) -> list[Parents]:
        """The parents of every node in the best DAG."""
        return self._current[0]

    @property
    def total(self) -> float:
        """Its score."""
        return self._current[1]

    @property
    def n_scored(self) -> int:
        """The number of families that were scored."""
        return len(self._families)

    def deletions(self) -> Iterator[tuple[int, int, float]]:
        """Make deletions until none improves the score; yield each with its gain."""
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
        """Yield the valid deletions of the current class."""
        parents, neighbors = self._class.parents, self._class.neighbors
        adjacent = [
            above | beside | below
            for above, beside, below in zip(parents, neighbors, self._class.children(), strict=True)
        ]
        for head in range(len(parents)):
            for tail in members(parents[head] | neighbors[head]):
                if not self._fixed[tail, head]:
                    common = neighbors[head] & adjacent[tail]
                    yield from self._with_any_kept(tail, head, common, adjacent)

    def _with_any_kept(
        self, tail: int, head: int, common: int, adjacent: list[int]
    ) -> Iterator[_Delete]:
        """Yield the deletions of one edge, for cliques among the common neighbors."""
        is_greedy = common.bit_count() > _ALL_CLIQUES
        # A clique and the nodes that may still join it.
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
        """Move to the new class if it has a legal DAG that scores higher than the current one."""
        parents = self._without(delete)
        if parents is None:
            return False
        found = Pdag.of_class(parents)
        legal = parents if self._is_free else self._legal(found)
        if legal is None or self._sum(legal) <= self.total + tolerance(self.total):
            return False
        self._class = found
        self._current = (legal, self._sum(legal))
        return True

    def _without(self, delete: _Delete) -> list[Parents] | None:
        """Return a DAG of the class that the deletion leads to (Definition 13)."""
        tail, head = delete.tail, delete.head
        pdag = self._class.copy()
        pdag.remove(tail, head)
        neighbors = self._class.neighbors
        adjacent = neighbors[tail] | self._class.parents[tail] | self._class.children()[tail]
        for node in members(neighbors[head] & adjacent & ~delete.kept):
            pdag.direct(head, node)
            if neighbors[tail] >> node & 1:
                pdag.direct(tail, node)
        return pdag.to_dag()

    def _legal(self, pdag: Pdag) -> list[Parents] | None:
        """Return a DAG of this class that satisfies the constraints, or None."""
        guided = pdag.copy()
        for head, tails in enumerate(pdag.parents):
            if tails & ~self._allowed[head]:
                return None
            for tail in members(pdag.neighbors[head] & ~self._allowed[head]):
                if not self._allowed[tail] >> head & 1:
                    return None
                guided.direct(head, tail)
        legal = guided.to_dag()
        # These directions may create a v-structure, and so another class.
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
    """Return, for every node, the parents that the constraints and the score allow, as bits."""
    allowed = []
    for node in range(len(score.names)):
        by_score = score.additions(node, ()) > -np.inf
        may = (constraints.allowed[:, node] & by_score) | constraints.required[:, node]
        allowed.append(bits_of(may.nonzero()[0].tolist()))
    return allowed
