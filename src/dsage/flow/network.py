"""The network of a flow: sources, the nodes of a graph, and the model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from dsage._check import refusal, shown
from dsage.graphs import Graph

MODEL = -1
"""The number that stands for the model where nodes have numbers."""

# More paths than these from the sources to the model are refused: each is evaluated in turn.
_MAX_PATHS = 20_000


class Ordering(NamedTuple):
    """An order of the sources, and of the edges that leave each node."""

    sources: tuple[int, ...]
    leaving: tuple[tuple[int, ...], ...]

    @property
    def reverse(self) -> Ordering:
        """The reversed ordering."""
        return Ordering(self.sources[::-1], tuple(edges[::-1] for edges in self.leaving))


class Network:
    """The nodes that reach a model, the edges between them, their sources and the model.

    Each node has a source: its own noise, or an intervention that sets it to its value. Every
    feature has an edge to the model. The target is a node if some feature descends from it;
    otherwise nothing passes through it.

    Edges are numbered: the edge from the source of node j is j, then come the edges between nodes,
    then those to the model.

    Parameters
    ----------
    graph : Graph
        A DAG over the features and the target.
    features : sequence of str
        The features, in the order of the model's columns.
    target : str
        The target.
    is_set : bool, default=False
        Whether features are set to their values; then the target has no source.
    model_first : bool, default=False
        Whether a node sends its value to the model before it sends it to other nodes.

    Attributes
    ----------
    nodes : tuple of str
        The nodes, causes before effects.
    columns : tuple of int
        The column of each node in the model's rows; -1 for the target.
    parents : tuple of tuples of int
        The parents of each node.
    tails, heads : tuple of int
        The nodes that each edge joins; the tail of a source's edge is its node, the head of an edge
        to the model is `MODEL`.
    idle : tuple of (str, str)
        The edges of the graph that do not lead to the model.

    Examples
    --------
    >>> graph = Graph(["a", "b", "y"], [("a", "b"), ("b", "y")])
    >>> network = Network(graph, ["a", "b"], "y")
    >>> network.nodes, network.n_paths, network.idle
    (('a', 'b'), 3, (('b', 'y'),))
    """

    def __init__(
        self,
        graph: Graph,
        features: Sequence[str],
        target: str,
        *,
        is_set: bool = False,
        model_first: bool = False,
    ) -> None:
        graph = _merge_indicators(_check(graph, features, target), features)
        reaching = _reaching(graph, features, target)
        self.nodes = tuple(name for name in graph.topological_order() if name in reaching)
        place = {name: at for at, name in enumerate(self.nodes)}
        position = {name: at for at, name in enumerate(features)}
        self.columns = tuple(position.get(name, -1) for name in self.nodes)
        self.parents = tuple(
            tuple(place[parent] for parent in graph.parents(name)) for name in self.nodes
        )
        inner = [(tail, head) for head, tails in enumerate(self.parents) for tail in tails]
        to_model = [at for at, column in enumerate(self.columns) if column >= 0]
        n_nodes = len(self.nodes)
        self.tails = (*range(n_nodes), *(tail for tail, _ in inner), *to_model)
        self.heads = (*range(n_nodes), *(head for _, head in inner), *([MODEL] * len(to_model)))
        self.is_set, self.model_first = is_set, model_first
        self.sources = tuple(at for at in range(n_nodes) if not is_set or self.columns[at] >= 0)
        leaving: list[list[int]] = [[] for _ in self.nodes]
        for edge in range(n_nodes, len(self.tails)):
            leaving[self.tails[edge]].append(edge)
        self._leaving = tuple(map(tuple, leaving))
        self.idle = tuple(edge for edge in graph.edges if not reaching.issuperset(edge))
        if self.n_paths > _MAX_PATHS:
            condition = f"one with at most {_MAX_PATHS:,} paths from its nodes to the model"
            advice = "Each path is evaluated in turn: remove edges, or features from the model"
            raise refusal("graph", condition, f"{self.n_paths:,} paths", advice)

    @property
    def listed(self) -> tuple[int, ...]:
        """The edges, without those from sources that do not exist."""
        n_nodes = len(self.nodes)
        return (*self.sources, *range(n_nodes, self.n_edges))

    @property
    def n_edges(self) -> int:
        """The number of edges, including those from sources and to the model."""
        return len(self.tails)

    @property
    def n_paths(self) -> int:
        """The number of paths from the sources to the model."""
        below = [0] * len(self.nodes)
        for node in reversed(range(len(self.nodes))):
            heads = (self.heads[edge] for edge in self._leaving[node])
            below[node] = sum(1 if head == MODEL else below[head] for head in heads)
        return sum(below[node] for node in self.sources)

    def names(self, edge: int) -> tuple[str, str, str]:
        """Return the kind of an edge, ``"source"``, ``"edge"`` or ``"model"``, and its ends."""
        tail = self.nodes[self.tails[edge]]
        if edge < len(self.nodes):
            return "source", "do" if self.is_set else "noise", tail
        head = self.heads[edge]
        return ("model", tail, "model") if head == MODEL else ("edge", tail, self.nodes[head])

    def draw(self, rng: np.random.Generator) -> Ordering:
        """Draw an ordering of the sources and of the edges that leave each node."""
        leaving = tuple(self._mix(edges, rng) for edges in self._leaving)
        return Ordering(self._shuffle(self.sources, rng), leaving)

    def _mix(self, edges: tuple[int, ...], rng: np.random.Generator) -> tuple[int, ...]:
        if not self.model_first:
            return self._shuffle(edges, rng)
        first = [edge for edge in edges if self.heads[edge] == MODEL]
        others = tuple(edge for edge in edges if self.heads[edge] != MODEL)
        return (*first, *self._shuffle(others, rng))

    @staticmethod
    def _shuffle(items: tuple[int, ...], rng: np.random.Generator) -> tuple[int, ...]:
        return tuple(rng.permutation(np.array(items, dtype=np.intp)).tolist())

    def reverse(self, ordering: Ordering) -> Ordering:
        """Return the reversed ordering; edges to the model that come first stay first."""
        back = ordering.reverse
        if not self.model_first:
            return back
        leaving = [
            tuple(sorted(edges, key=lambda edge: self.heads[edge] != MODEL))
            for edges in back.leaving
        ]
        return Ordering(back.sources, tuple(leaving))


def _check(graph: Graph, features: Sequence[str], target: str) -> Graph:
    """Return the graph; refuse graphs that cannot carry a flow; the error names the nodes."""
    if absent := [name for name in features if name not in graph]:
        advice = f"Add {shown(absent)} as nodes; those without edges act on the model alone"
        raise refusal("graph", "one that has all features", list(graph.names), advice)
    if graph.cycles:
        cycles = [list(cycle) for cycle in graph.cycles]
        advice = "Of these nodes none comes first: remove an edge of each cycle"
        raise refusal("graph", "acyclic", cycles, advice)
    if graph.bidirected:
        drawn = [f"{one} <-> {other}" for one, other in graph.bidirected]
        advice = (
            "The noises of these nodes depend on each other, so that none of them can be changed "
            "alone: remove the edges, or direct them"
        )
        raise refusal("graph", "one without bidirected edges", drawn, advice)
    hidden = [
        name
        for name in graph.names
        if name not in features
        and name != target
        and name not in graph.indicators
        and not set(features).isdisjoint(graph.descendants(name))
    ]
    if hidden:
        advice = "They act on features, but their values are not known: remove them or add columns"
        raise refusal("graph", "one of features and the target", hidden, advice)
    return graph


def _merge_indicators(graph: Graph, features: Iterable[str]) -> Graph:
    """Return the graph in which indicators of missing values are merged into their features."""
    stands = {
        name: tuple(each for each in told if each in graph)
        for name, told in graph.indicators.items()
        if name not in features
    }
    if not stands:
        return graph
    edges = {
        (tail, head)
        for one, other in graph.edges
        for tail in stands.get(one, (one,))
        for head in stands.get(other, (other,))
        if tail != head
    }
    merged = Graph([name for name in graph.names if name not in stands], sorted(edges))
    if merged.cycles:
        cycles = [list(cycle) for cycle in merged.cycles]
        advice = "With a feature and the indicator of its missing values as one node, it is cyclic"
        raise refusal("graph", "acyclic", cycles, advice)
    return merged


def _reaching(graph: Graph, features: Sequence[str], target: str) -> set[str]:
    """Return the features, and the target if one of them descends from it."""
    reaching = set(features)
    if target in graph and not reaching.isdisjoint(graph.descendants(target)):
        reaching.add(target)
    return reaching
