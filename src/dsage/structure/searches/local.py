"""Local searches for the best graph: hill climbing and tabu search."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from dsage._check import check_count
from dsage._random import RandomState, Streams
from dsage.graphs import Graph
from dsage.structure.constraints import Constraints, check_constraints
from dsage.structure.result import SearchResult
from dsage.structure.scores.base import Parents, Score
from dsage.structure.searches.base import METHODS, Callback, Trace
from dsage.structure.searches.moves import Change, Kind, MoveTable

Edge = tuple[int, int]

_KINDS: tuple[Kind, ...] = ("add", "delete", "reverse")

# Random moves are tried up to this many times until a legal one is found.
_TRIES = 1000


@METHODS.register(
    "hc",
    summary="hill climbing, as bnlearn's hc",
    options=("restarts", "perturb", "max_iter"),
    is_random=True,
)
def hill_climb(
    score: Score,
    constraints: Constraints | None = None,
    *,
    start: Graph | None = None,
    restarts: int = 0,
    perturb: int = 1,
    max_iter: int | None = None,
    random_state: RandomState = None,
    callback: Callback | None = None,
) -> SearchResult:
    """Make the move that improves the score most, until none does.

    A move adds, deletes or reverses one edge, as in bnlearn's ``hc``.

    Parameters
    ----------
    score : Score
        The score to maximize.
    constraints : Constraints, optional
        Constraints on the graphs; none by default.
    start : Graph, optional
        The graph to start from; required edges are added. The empty graph by default.
    restarts : int, default=0
        How often to continue from the best graph so far, after `perturb` random moves.
    perturb : int, default=1
        The number of random moves before each restart.
    max_iter : int, optional
        The largest number of moves, not counting random ones; unlimited by default.
    random_state : int, numpy Generator or None, default=None
        Seed of the random moves.
    callback : callable, optional
        Called with each :class:`~dsage.structure.result.Step`. A ``KeyboardInterrupt``, raised
        here or by the user, ends the search and returns the best graph so far.

    Returns
    -------
    SearchResult

    Examples
    --------
    >>> from dsage.graphs import random_dag, random_linear_gaussian
    >>> from dsage.structure import choose_score
    >>> model = random_linear_gaussian(random_dag(5, 2, random_state=1), random_state=1)
    >>> hill_climb(choose_score(model.sample(1000, random_state=1), "bic")).graph
    Graph(5 nodes, 8 edges: X1 -> X2, X1 -> X4, X1 -> X5, X2 -> X4, X2 -> X5, X4 -> X3, ...)
    """
    restarts = check_count(restarts, "restarts", minimum=0)
    perturb = check_count(perturb, "perturb", minimum=1)
    search = _Search("hc", score, constraints, start, max_iter, callback)
    streams = Streams(random_state)

    def run() -> None:
        search.climb(MoveTable(score, search.constraints, search.best), memory=0, patience=0)
        for restart in range(restarts):
            table = MoveTable(score, search.constraints, search.best)
            search.shake(table, perturb, streams("perturb", restart))
            search.climb(table, memory=0, patience=0)

    return search.result(run)


@METHODS.register(
    "tabu",
    summary="tabu search, as bnlearn's tabu",
    options=("tabu", "max_tabu", "max_iter"),
)
def tabu(
    score: Score,
    constraints: Constraints | None = None,
    *,
    start: Graph | None = None,
    tabu: int = 10,
    max_tabu: int | None = None,
    max_iter: int | None = None,
    callback: Callback | None = None,
) -> SearchResult:
    """Climb, and continue downhill past the top, avoiding recently visited graphs.

    As in bnlearn's ``tabu``, each move is the best one that does not lead to one of the `tabu`
    most recent graphs, the current one included. The search ends after `max_tabu` moves that
    did not improve the score without a new best graph, or when there is no move. The best
    visited graph is returned.

    Parameters
    ----------
    score : Score
        The score to maximize.
    constraints : Constraints, optional
        Constraints on the graphs; none by default.
    start : Graph, optional
        The graph to start from; required edges are added. The empty graph by default.
    tabu : int, default=10
        The number of graphs to remember.
    max_tabu : int, optional
        The number of moves that need not improve the score; by default as many as `tabu`.
    max_iter : int, optional
        The largest number of moves; unlimited by default.
    callback : callable, optional
        As for :func:`hill_climb`.

    Returns
    -------
    SearchResult

    Notes
    -----
    A move that improves the score but leads to a graph visited at any time before counts as one
    that does not improve it. So the search always ends, even if rounding makes a round trip look
    like an improvement.

    Examples
    --------
    >>> from dsage.graphs import random_dag, random_linear_gaussian
    >>> from dsage.structure import choose_score
    >>> model = random_linear_gaussian(random_dag(5, 2, random_state=1), random_state=1)
    >>> result = tabu(choose_score(model.sample(1000, random_state=1), "bic"))
    >>> result.to_frame()[["kind", "from", "to"]].head(2)
      kind from  to
    0  add   X1  X4
    1  add   X2  X5
    """
    memory = check_count(tabu, "tabu", minimum=0)
    patience = memory if max_tabu is None else check_count(max_tabu, "max_tabu", minimum=0)
    search = _Search("tabu", score, constraints, start, max_iter, callback)

    def run() -> None:
        search.climb(MoveTable(score, search.constraints, search.best), memory, patience)

    return search.result(run)


class _Memory:
    """The most recent graphs, each as the set of edges that differ from the current graph.

    A move leads back to one of them if and only if it changes exactly these edges.
    """

    def __init__(self, size: int) -> None:
        self._differences: deque[set[Edge]] = deque(maxlen=size)

    def remember(self) -> None:
        """Add the current graph; the oldest one is forgotten."""
        self._differences.append(set())

    def follow(self, change: Change) -> None:
        """Update the differences after a move."""
        edges = set(_edges_of(change))
        for difference in self._differences:
            difference.symmetric_difference_update(edges)

    def banned(self, table: MoveTable) -> set[Change]:
        """Return the moves that lead back to a remembered graph."""
        banned: set[Change] = set()
        for difference in self._differences:
            if len(difference) == 1:
                ((tail, head),) = difference
                banned.add(("delete" if table.has_edge(tail, head) else "add", tail, head))
            elif len(difference) == 2:
                (tail, head), other = difference
                if (head, tail) == other:
                    there = (tail, head) if table.has_edge(tail, head) else other
                    banned.add(("reverse", *there))
        return banned


class _Search:
    """The loop of both searches, with the best graph so far and the trace."""

    def __init__(
        self,
        method: str,
        score: Score,
        constraints: Constraints | None,
        start: Graph | None,
        max_iter: int | None,
        callback: Callback | None,
    ) -> None:
        self.constraints = check_constraints(score, constraints)
        self.best: list[Parents] = self.constraints.admit(start)
        self._best_score = -math.inf
        self._left = math.inf if max_iter is None else check_count(max_iter, "max_iter", minimum=0)
        self._tables: list[MoveTable] = []
        self._trace = Trace(method, score, callback)

    @property
    def n_scored(self) -> int:
        """The number of families that were scored."""
        return sum(table.n_scored for table in self._tables)

    def result(self, run: Callable[[], None]) -> SearchResult:
        """Run, and return the best graph."""
        return self._trace.result(run, lambda: (self.best, self.n_scored))

    def climb(self, table: MoveTable, memory: int, patience: int) -> None:
        """Make the best move repeatedly; `patience` moves need not improve the score."""
        self._tables.append(table)
        remembered = _Memory(memory)
        current = _key(table.edges())
        visited = {current}
        losses = 0
        self._keep_best(table)
        while self._left > 0:
            remembered.remember()
            move = table.best(remembered.banned(table))
            if move is None:
                break
            then = _key(_edges_of(move.change), current)
            if move.delta <= table.tolerance or then in visited:
                if losses >= patience:
                    break
                losses += 1
            self._make(table, move.change, move.kind)
            remembered.follow(move.change)
            visited.add(then)
            current = then
            self._left -= 1
            if self._keep_best(table):
                losses = 0

    def shake(self, table: MoveTable, n_moves: int, generator: np.random.Generator) -> None:
        """Make up to `n_moves` random legal moves."""
        self._tables.append(table)
        for _ in range(n_moves):
            for change in _random_changes(table, generator):
                if table.is_legal(change):
                    self._make(table, change, f"perturb: {change[0]}")
                    break

    def _make(self, table: MoveTable, change: Change, label: str) -> None:
        before = table.score
        table.apply(change)
        self._trace.add(label, *change[1:], table.score - before, table.score)

    def _keep_best(self, table: MoveTable) -> bool:
        found = table.score
        if found <= self._best_score + table.tolerance:
            return False
        self.best, self._best_score = list(table.parents), found
        return True


def _edges_of(change: Change) -> tuple[Edge, ...]:
    """Return the edges that exist either before or after a move, but not both."""
    kind, tail, head = change
    return ((tail, head), (head, tail)) if kind == "reverse" else ((tail, head),)


def _key(edges: Iterable[Edge], key: int = 0) -> int:
    """Return the key of the graph that differs by `edges` from the one with this `key`."""
    for edge in edges:
        key ^= hash(edge)
    return key


def _random_changes(table: MoveTable, generator: np.random.Generator) -> Iterator[Change]:
    """Yield random changes, legal or not."""
    n_nodes, edges = len(table.parents), table.edges()
    for _ in range(_TRIES):
        kind = _KINDS[generator.integers(len(_KINDS))]
        if kind == "add":
            yield kind, int(generator.integers(n_nodes)), int(generator.integers(n_nodes))
        elif edges:
            yield kind, *edges[generator.integers(len(edges))]
