"""Best order score search: find the order of the variables whose best graph scores highest."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dsage._check import check_count, check_names, check_same_names
from dsage.structure.constraints import Constraints, check_constraints
from dsage.structure.result import SearchResult
from dsage.structure.scores.base import Ceilings, Parents, Score
from dsage.structure.searches.base import Callback, Trace
from dsage.structure.searches.grow_shrink import NOWHERE, GrowShrink, tolerance
from dsage.structure.searches.grow_shrink import Step as Growth
from dsage.structure.searches.walk import stops


def boss(
    score: Score,
    constraints: Constraints | None = None,
    order: Iterable[str] | None = None,
    *,
    max_passes: int | None = None,
    max_steps: int | None = None,
    trees: list[GrowShrink] | None = None,
    callback: Callback | None = None,
) -> SearchResult:
    """Move one variable after the other to its best place in the order, until none moves.

    An order is projected to a DAG by growing and shrinking the parents of each node among its
    predecessors, see `GrowShrink`; the score of the order is the score of this
    DAG. A pass takes each variable out of the order and puts it where the order
    scores highest (Andrews, Ramsey, Sanchez-Romero, Camchong & Kummerfeld 2023). The search ends
    after a pass without a move. It is deterministic, and it terminates because each move raises
    the score.

    Parameters
    ----------
    score : Score
        The score to maximize.
    constraints : Constraints, optional
        Constraints on the graph; none by default.
    order : iterable of str, optional
        The order to start from; by default the order of the score. A good order, such as a
        topological order of a graph from a cheap search, makes the search faster. If required edges
        contradict it, their heads are moved back.
    max_passes : int, optional
        The largest number of passes; unlimited by default.
    max_steps : int, optional
        Approximate number of sets of parents that may be grown further: no variable is moved after
        that. Unlimited by default.
    trees : list of GrowShrink, optional
        What an earlier search with the same score and constraints has grown, or an empty list, to
        which the trees of this search are added. Their sets of parents count as steps.
    callback : callable, optional
        Called with each :class:`~dsage.structure.result.Step`. A ``KeyboardInterrupt``, raised
        here or by the user, ends the search and returns the best graph so far.

    Returns
    -------
    SearchResult
        In its trace, ``tail`` is the variable that moved and ``head`` the one that now follows it,
        or "" if it moved to the end.

    Notes
    -----
    A move is cheap because the parents of a node depend on the position of few other variables:
    only the nodes that depend on the moved variable are projected again. The parents of the
    variable itself are found for all places in one sweep.

    Examples
    --------
    >>> from dsage.graphs import Graph, LinearGaussian
    >>> from dsage.structure.moments import Moments
    >>> from dsage.structure.scores.gaussian import GaussianScore
    >>> graph = Graph(list("abcd"), [("a", "c"), ("b", "c"), ("c", "d")])
    >>> model = LinearGaussian(graph, dict.fromkeys(graph.edges, 1.0), dict.fromkeys("abcd", 1.0))
    >>> moments = Moments.from_frame(model.sample(1000, random_state=1))
    >>> result = boss(GaussianScore(moments, penalty=np.log(1000) / 2), order=list("dabc"))
    >>> result.graph
    Graph(4 nodes, 3 edges: a -> c, b -> c, c -> d)
    """
    passes = math.inf if max_passes is None else check_count(max_passes, "max_passes", minimum=0)
    steps = math.inf if max_steps is None else check_count(max_steps, "max_steps", minimum=0)
    trace = Trace("boss", score, callback)
    search = _OrderSearch(
        score, check_constraints(score, constraints), _positions(order, score.names), trees
    )

    def run() -> None:
        for move in search.moves(passes, steps):
            trace.add("move", move.variable, move.before, move.gain, search.total)

    return trace.result(run, lambda: (search.best, search.n_scored))


class _Move(NamedTuple):
    """A variable, the one that now follows it (-1 for none), and the gain of the move."""

    variable: int
    before: int
    gain: float


class _Place(NamedTuple):
    """A new place of a variable: before the one at `rank`, where its parents grow to `end`."""

    rank: int
    gain: float
    end: Growth


class _OrderSearch:
    """An order and its projection."""

    def __init__(
        self,
        score: Score,
        constraints: Constraints,
        order: list[int],
        trees: list[GrowShrink] | None = None,
    ) -> None:
        self._score = score
        self._constraints = constraints
        self._order = _legal_order(order, constraints)
        self._required_parents = constraints.admit()
        self._required_children = [tuple(row.nonzero()[0].tolist()) for row in constraints.required]
        self.best: list[Parents] = list(self._required_parents)
        self.total = -math.inf
        self._trees = [] if trees is None else trees
        self._n_scored_before = sum(tree.n_scored for tree in self._trees)
        self._ceilings: Ceilings | None = None
        self._has_moved = True

    @property
    def n_scored(self) -> int:
        """The number of families that were scored."""
        return sum(tree.n_scored for tree in self._trees) - self._n_scored_before

    def moves(self, n_passes: float, n_steps: float = math.inf) -> Iterator[_Move]:
        """Make moves until no variable moves, or for `n_steps` steps; yield each."""
        self._project()
        # The variables that were tried in vain since the last move: they would not move now.
        settled: set[int] = set()
        while n_passes > 0 and len(settled) < len(self._order):
            n_passes -= 1
            for variable in tuple(self._order):
                if variable in settled:
                    continue
                if sum(tree.n_steps for tree in self._trees) >= n_steps:
                    return
                move = self._improve(variable)
                if move is None:
                    settled.add(variable)
                else:
                    settled.clear()
                    yield move

    def _project(self) -> None:
        """Find the parents of all nodes in the current order."""
        n_nodes = len(self._order)
        self._rank = [0] * n_nodes
        for rank, node in enumerate(self._order):
            self._rank[node] = rank
        for node in range(len(self._trees), n_nodes):
            self._trees.append(
                GrowShrink(
                    self._score,
                    node,
                    self._constraints.allowed[:, node],
                    self._required_parents[node],
                    self._constraints.max_parents,
                )
            )
        self._ends = [tree.grow(self._rank, self._rank[j]) for j, tree in enumerate(self._trees)]
        # Entry [i, j]: whether the parents of i depend on j coming before or after i.
        self._depends = np.zeros((n_nodes, n_nodes), dtype=np.bool_)
        self._values = [0.0] * n_nodes
        self._update(range(n_nodes))

    def _improve(self, variable: int) -> _Move | None:
        """Move the variable to its best place, if that is better than its current one."""
        here = self._rank[variable]
        if self._score.reach is None:
            toggled = self._toggle(variable, self._depends[:, variable].nonzero()[0].tolist())
            place = self._best_place(variable, toggled)
        else:
            toggled, place = self._walk(variable, self._score.reach)
        if place is None:
            return None
        there = place.rank
        changed = [
            node
            for node in toggled
            if there <= self._rank[node] < here or here < self._rank[node] < there
        ]
        for node in changed:
            self._ends[node] = toggled[node]
        self._ends[variable] = place.end
        before = self._order[there] if there < len(self._order) else -1
        self._order.insert(there, variable)
        del self._order[here + (there < here)]
        for rank in range(min(here, there), min(max(here, there) + 1, len(self._order))):
            self._rank[self._order[rank]] = rank
        self._has_moved = True
        self._update([variable, *changed])
        return _Move(variable, before, place.gain)

    def _toggle(self, variable: int, nodes: Iterable[int]) -> dict[int, Growth]:
        """Grow the parents of these nodes, with the variable on their other side."""
        rank = self._rank
        here = rank[variable]
        ends: dict[int, Growth] = {}
        for node in nodes:
            rank[variable] = NOWHERE if rank[node] > here else -1
            ends[node] = self._trees[node].grow(rank, rank[node])
        rank[variable] = here
        return ends

    def _walk(self, variable: int, reach: float) -> tuple[dict[int, Growth], _Place | None]:
        """Return the nodes that the variable passes, and the best place, if it is better.

        The variable moves away from its place while the order scores at most `reach` less than at
        the best place so far.
        """
        tree, value, rank = self._trees[variable], self._values[variable], self._rank
        toggled: dict[int, Growth] = {}
        best: _Place | None = None
        places = np.flatnonzero(self._legal_places(variable))
        dependents = self._depends[:, variable].nonzero()[0].tolist()
        legal = int(places[0]), int(places[-1])
        for direction in stops(rank[variable], dependents, rank, legal):
            passed = 0.0
            for node, first, last in direction:
                if node is not None:
                    toggled |= self._toggle(variable, [node])
                    passed += self._gain(node, toggled[node])
                end = tree.grow(rank, last)
                gain = passed + _difference(tree.shrink(end)[1], value)
                if gain > (best.gain if best else self._tolerance):
                    # No further than for the same parents.
                    there = max(first, *(rank[parent] + 1 for parent in end.parents), 0)
                    best = _Place(there, gain, end)
                if gain < (best.gain if best else 0.0) - reach:
                    break
        return toggled, best

    def _best_place(self, variable: int, toggled: dict[int, Growth]) -> _Place | None:
        """Return the place of the variable where the order scores highest, if that is better."""
        tree, value = self._trees[variable], self._values[variable]
        may = self._legal_places(variable)
        if self._score.margin is not None:
            may &= self._worth_scoring(variable, toggled, may)
        gains = self._passed(variable, self._needed(variable, toggled, may), self._gain)
        gains[~may] = -np.inf
        # Then the gain of the variable itself.
        ends = tree.grow_all(self._rank, self._promising(variable, gains))
        own = np.full(len(gains), -np.inf)
        for first, last, end in ends:
            if may[first : last + 1].any():
                own[first : last + 1] = _difference(tree.shrink(end)[1], value)
        gains += own
        there = int(gains.argmax())
        gain = float(gains[there])
        if gain <= self._tolerance:
            return None
        end = next(end for first, last, end in ends if first <= there <= last)
        return _Place(there, gain, end)

    def _legal_places(self, variable: int) -> npt.NDArray[np.bool_]:
        """Mark the places behind all required parents and before all required children.

        Entry r, of n_nodes + 1, is the place before the variable of rank r.
        """
        rank = self._rank
        may = np.ones(len(rank) + 1, dtype=np.bool_)
        may[: max((rank[node] + 1 for node in self._required_parents[variable]), default=0)] = False
        children = self._required_children[variable]
        may[min((rank[node] for node in children), default=len(rank)) + 1 :] = False
        return may

    def _passed(
        self,
        variable: int,
        toggled: dict[int, Growth],
        gain_of: Callable[[int, Growth], float],
    ) -> npt.NDArray[np.float64]:
        """Return, for each place, the gains of the nodes that the variable passes on its way."""
        rank, here = self._rank, self._rank[variable]
        # First the differences from one place to the next.
        gains = np.zeros(len(rank) + 1)
        for node, end in toggled.items():
            gain = gain_of(node, end)
            if rank[node] < here:
                gains[0] += gain
                gain = -gain
            gains[rank[node] + 1] += gain
        return gains.cumsum()

    def _gain(self, node: int, end: Growth) -> float:
        """Return how much better a node is with the parents that grow to `end`."""
        return _difference(self._trees[node].shrink(end)[1], self._values[node])

    def _quick_gain(self, node: int, end: Growth) -> float:
        """Return about the same, without the exact scores of families."""
        quick = self._score.quick
        return _difference(quick(node, end.parents), quick(node, self._ends[node].parents))

    def _worth_scoring(
        self, variable: int, toggled: dict[int, Growth], may: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.bool_]:
        """Mark the places that approximate scores do not rule out."""
        gains = self._passed(variable, toggled, self._quick_gain)
        for first, last, end in self._trees[variable].grow_all(self._rank, may):
            gains[first : last + 1] += self._quick_gain(variable, end)
        worth: npt.NDArray[np.bool_] = ~(gains < -(self._score.margin or 0.0))
        return worth

    def _needed(
        self, variable: int, toggled: dict[int, Growth], may: npt.NDArray[np.bool_]
    ) -> dict[int, Growth]:
        """Return the nodes that the variable passes on its way to these places."""
        places, here = np.flatnonzero(may), self._rank[variable]
        if not len(places):
            return {}
        low, high = int(places[0]), int(places[-1])
        return {
            node: end
            for node, end in toggled.items()
            if low <= self._rank[node] < here or here < self._rank[node] < high
        }

    def _promising(self, variable: int, gains: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
        """Mark the places where the variable may gain most, given the gains of the others.

        If the score has upper bounds, the place with the highest bound is tried, and places whose
        bound is below the gain found there are left out.
        """
        value, tree = self._values[variable], self._trees[variable]
        if self._has_moved:
            self._ceilings = self._score.ceilings(self._order)
            self._has_moved = False
        if self._ceilings is None or value == -math.inf:
            return gains > -np.inf
        hopes = gains + (self._ceilings.of(self._rank[variable]) - value)
        place = int(hopes.argmax())
        reached = tree.shrink(tree.grow(self._rank, place))[1] - value + gains[place]
        promising: npt.NDArray[np.bool_] = hopes > max(reached, 0.0) - self._tolerance
        return promising

    def _update(self, nodes: Iterable[int]) -> None:
        """Update the graph and the score after the ends of these nodes changed."""
        best = list(self.best)
        for node in nodes:
            end = self._ends[node]
            best[node], self._values[node] = self._trees[node].shrink(end)
            self._depends[node] = self._trees[node].sensitive(end)
        self.total = math.fsum(self._values)
        self._tolerance = tolerance(math.fsum(map(abs, self._values)))
        # In one assignment, so that an interrupt finds either the old or the new graph.
        self.best = best


def _difference(one: float, other: float) -> float:
    """Return one - other, and 0 for equal infinities."""
    return 0.0 if one == other else one - other


def _positions(order: Iterable[str] | None, names: tuple[str, ...]) -> list[int]:
    if order is None:
        return list(range(len(names)))
    given = check_names(order, "order")
    check_same_names(given, names, "order", "of all variables")
    position = {name: index for index, name in enumerate(names)}
    return [position[name] for name in given]


def _legal_order(order: list[int], constraints: Constraints) -> list[int]:
    """Return the order with the heads of required edges moved behind their tails."""
    rank = {node: place for place, node in enumerate(order)}
    waits_for = constraints.required.sum(axis=0).tolist()
    ready = [rank[node] for node in order if not waits_for[node]]
    heapq.heapify(ready)
    legal = []
    while ready:
        node = order[heapq.heappop(ready)]
        legal.append(node)
        for child in constraints.required[node].nonzero()[0].tolist():
            waits_for[child] -= 1
            if not waits_for[child]:
                heapq.heappush(ready, rank[child])
    return legal
