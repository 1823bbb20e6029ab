"""Add edges to a DAG while that raises its score."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dsage.graphs import Graph
from dsage.structure.constraints import Constraints, check_constraints
from dsage.structure.result import SearchResult
from dsage.structure.scores.base import Floats, Parents, Score
from dsage.structure.searches.ancestry import Ancestry
from dsage.structure.searches.base import Callback, Trace
from dsage.structure.searches.grow_shrink import tolerance


def add_edges(
    score: Score,
    graph: Graph,
    constraints: Constraints | None = None,
    *,
    callback: Callback | None = None,
) -> SearchResult:
    """Make the addition that improves the score most, until none does.

    A search over orders may end at a graph that lacks such an edge: in the order, its head comes
    before its tail, and also before nodes that it would have to pass. The graph itself allows the
    edge if its head is no ancestor of its tail.

    Parameters
    ----------
    score : Score
        The score to maximize. If it is approximate, only additions that also raise the scores of
        families are made.
    graph : Graph
        The DAG to start from; it must satisfy the constraints.
    constraints : Constraints, optional
        Constraints on the graph; none by default.
    callback : callable, optional
        Called with each :class:`~dsage.structure.result.Step`. A ``KeyboardInterrupt`` ends the
        search and returns the best graph so far.

    Returns
    -------
    SearchResult
        With `graph` itself if nothing was added.

    Examples
    --------
    >>> from dsage.structure.moments import Moments
    >>> from dsage.structure.scores.gaussian import GaussianScore
    >>> X = np.random.default_rng(0).normal(size=(1000, 3))
    >>> X[:, 2] += X[:, 0] + X[:, 1]
    >>> score = GaussianScore(Moments.from_array(X, list("abc")), penalty=np.log(1000) / 2)
    >>> add_edges(score, Graph(list("abc"), [("a", "c")])).graph
    Graph(3 nodes, 2 edges: a -> c, b -> c)
    """
    trace = Trace("additions", score, callback)
    constraints = check_constraints(score, constraints)
    search = _Additions(score, constraints, constraints.admit(graph))

    def run() -> None:
        for tail, head, delta, total in search.additions():
            trace.add("add", tail, head, delta, total)

    return trace.result(run, lambda: (search.parents, search.n_scored))


class _Additions:
    """A DAG to which edges are added, and what one more parent of each node would change."""

    def __init__(self, score: Score, constraints: Constraints, parents: list[Parents]) -> None:
        self._score, self._constraints = score, constraints
        self.parents = list(parents)
        self.n_scored = 0
        self._ancestry = Ancestry(parents)
        self._total = sum(score.family(*family) for family in enumerate(parents))
        self._gains = np.array([self._find_gains(node) for node in range(len(parents))])

    def additions(self) -> Iterator[tuple[int, int, float, float]]:
        """Make additions until none improves the score; yield each, its gain and the score."""
        while self._gains.size:
            head, tail = divmod(int(self._gains.argmax()), len(self.parents))
            if self._gains[head, tail] <= tolerance(self._total):
                return
            gain = self._gain(tail, head)
            self._gains[head, tail] = -np.inf
            if gain <= tolerance(self._total):
                continue
            self.parents[head] = tuple(sorted((*self.parents[head], tail)))
            self._ancestry.add(tail, head)
            self._total += gain
            yield tail, head, gain, self._total
            self._gains[head] = self._find_gains(head)

    def _gain(self, tail: int, head: int) -> float:
        """Return what an edge adds to the score; minus infinity if it is not possible."""
        if self._ancestry.has_path(head, tail):
            return -np.inf
        self.n_scored += 1
        parents = self.parents[head]
        more = tuple(sorted((*parents, tail)))
        return self._score.family(head, more) - self._score.family(head, parents)

    def _find_gains(self, node: int) -> Floats:
        """Return what each variable would add as one more parent, perhaps approximately."""
        parents = self.parents[node]
        if len(parents) >= self._constraints.max_parents:
            return np.full(len(self.parents), -np.inf)
        scores, whole = self._score.growth(node, parents)
        return np.where(self._constraints.allowed[:, node], scores - whole, -np.inf)
