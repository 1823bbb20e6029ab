"""Local searches for the best graph: hill climbing and tabu search."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from dsage._check import check_count
from dsage._random import RandomState, Streams
from dsage.graphs import Graph
from dsage.structure.constraints import Constraints, constraints_of
from dsage.structure.moves import Change, Kind, MoveTable
from dsage.structure.record import Callback, Record
from dsage.structure.result import SearchResult
from dsage.structure.scores.base import Parents, Score

Edge = tuple[int, int]

_KINDS: tuple[Kind, ...] = ("add", "delete", "reverse")

# How many random pairs of nodes are tried for one random move before it is given up.
_TRIES = 1000


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
    """Climb: make the move that improves the score most, until none does.

    Moves add, delete or reverse one edge. As bnlearn's ``hc``.

    Parameters
    ----------
    score : Score
        What is to be as large as possible.
    constraints : Constraints, optional
        What the graphs must keep to; nothing by default.
    start : Graph, optional
        Where to start; required edges are added. The empty graph by default.
    restarts : int, default=0
        How often to go on from the best graph so far, after `perturb` random moves.
    perturb : int, default=1
        How many random moves are made before each restart.
    max_iter : int, optional
        The most moves to make, random ones not counted; no bound by default.
    random_state : int, numpy Generator or None, default=None
        Seed of the random moves.
    callback : callable, optional
        Called with each :class:`~dsage.structure.result.Step`. A ``KeyboardInterrupt``, raised
        here or by the user, ends the search with the best graph so far.

    Returns
    -------
    SearchResult

    Examples
    --------
    >>> from dsage.graphs import random_dag, random_linear_gaussian
    >>> from dsage.structure.moments import Moments
    >>> from dsage.structure.scores.gaussian import GaussianScore
    >>> model = random_linear_gaussian(random_dag(5, 2, random_state=1), random_state=1)
    >>> moments = Moments.from_frame(model.sample(1000, random_state=1))
    >>> hill_climb(GaussianScore(moments, penalty=np.log(1000) / 2)).graph
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
    """Climb, and go on downhill past the top, never to a graph visited a short while ago.

    As bnlearn's ``tabu``: each move is the best one that does not lead to one of the `tabu` most
    recent graphs, the present one among them. The search ends when `max_tabu` moves that did not
    improve the score were made without a new best graph, or when there is no move. The best graph
    visited is returned.

    Parameters
    ----------
    score : Score
        What is to be as large as possible.
    constraints : Constraints, optional
        What the graphs must keep to; nothing by default.
    start : Graph, optional
        Where to start; required edges are added. The empty graph by default.
    tabu : int, default=10
        How many graphs to remember.
    max_tabu : int, optional
        How many moves that do not improve the score to make; by default as many as `tabu`.
    max_iter : int, optional
        The most moves to make; no bound by default.
    callback : callable, optional
        As for :func:`hill_climb`.

    Returns
    -------
    SearchResult

    Notes
    -----
    A move that improves the score but leads to a graph visited at any time counts as one that
    does not improve it. So the search always ends, even when rounding makes a round trip look
    like an improvement.

    Examples
    --------
    >>> from dsage.graphs import random_dag, random_linear_gaussian
    >>> from dsage.structure.moments import Moments
    >>> from dsage.structure.scores.gaussian import GaussianScore
    >>> model = random_linear_gaussian(random_dag(5, 2, random_state=1), random_state=1)
    >>> moments = Moments.from_frame(model.sample(1000, random_state=1))
    >>> result = tabu(GaussianScore(moments, penalty=np.log(1000) / 2))
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
    """The most recent graphs, each as the set of edges in which it differs from the present one.

    A move leads back to one of them exactly if it changes these edges.
    """

    def __init__(self, size: int) -> None:
        self._differences: deque[set[Edge]] = deque(maxlen=size)

    def remember(self) -> None:
        """Take the present graph in; the oldest is forgotten."""
        self._differences.append(set())

    def follow(self, change: Change) -> None:
        """Take note of a move."""
        edges = set(_edges_of(change))
        for difference in self._differences:
            difference.symmetric_difference_update(edges)

    def banned(self, table: MoveTable) -> set[Change]:
        """Return the moves back to a remembered graph."""
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
    """What the searches share: the loop, the best graph so far and the trace."""

    def __init__(
        self,
        method: str,
        score: Score,
        constraints: Constraints | None,
        start: Graph | None,
        max_iter: int | None,
        callback: Callback | None,
    ) -> None:
        self.constraints = constraints_of(score, constraints)
        self.best: list[Parents] = self.constraints.admit(start)
        self._best_score = -math.inf
        self._left = math.inf if max_iter is None else check_count(max_iter, "max_iter", minimum=0)
        self._tables: list[MoveTable] = []
        self._record = Record(method, score, callback)

    @property
    def n_scored(self) -> int:
        """How many families were scored."""
        return sum(table.n_scored for table in self._tables)

    def result(self, run: Callable[[], None]) -> SearchResult:
        """Run, and return the best graph."""
        return self._record.result(run, self)

    def climb(self, table: MoveTable, memory: int, patience: int) -> None:
        """Make the best move again and again; `patience` of them need not improve the score."""
        self._tables.append(table)
        remembered = _Memory(memory)
        present = _key(table.edges())
        visited = {present}
        losses = 0
        self._note_best(table)
        while self._left > 0:
            remembered.remember()
            move = table.best(remembered.banned(table))
            if move is None:
                break
            then = _key(_edges_of(move.change), present)
            if move.delta <= table.tolerance or then in visited:
                if losses >= patience:
                    break
                losses += 1
            self._make(table, move.change, move.kind)
            remembered.follow(move.change)
            visited.add(then)
            present = then
            self._left -= 1
            if self._note_best(table):
                losses = 0

    def shake(self, table: MoveTable, n_moves: int, generator: np.random.Generator) -> None:
        """Make random legal moves, as many as can be found."""
        self._tables.append(table)
        for _ in range(n_moves):
            for change in _random_changes(table, generator):
                if table.is_legal(change):
                    self._make(table, change, f"perturb: {change[0]}")
                    break

    def _make(self, table: MoveTable, change: Change, label: str) -> None:
        before = table.score
        table.apply(change)
        self._record.note(label, *change[1:], table.score - before, table.score)

    def _note_best(self, table: MoveTable) -> bool:
        found = table.score
        if found <= self._best_score + table.tolerance:
            return False
        self.best, self._best_score = list(table.parents), found
        return True


def _edges_of(change: Change) -> tuple[Edge, ...]:
    """Return the edges that are there either before or after a move, but not both."""
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
