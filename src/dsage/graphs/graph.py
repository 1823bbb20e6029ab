"""The causal graph: named nodes, directed and bidirected edges, immutable."""

from __future__ import annotations

import graphlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Self

import networkx as nx
import numpy as np
import numpy.typing as npt
import pandas as pd

from dsage._check import check_member, check_names, refusal
from dsage.graphs import interchange
from dsage.graphs.pairs import check_pairs
from dsage.graphs.partial import PARTIAL_ADVICE, PartialGraph
from dsage.graphs.parts import PartsOracle, check_indicators, with_indicators, with_whole_values
from dsage.graphs.reachability import Reachability, components
from dsage.graphs.separation import Oracle, SeparationOracle, are_separated, check_features

_OF_GRAPH = "the nodes of the graph"


class Graph:
    """A directed graph over named variables, which implies separations between them.

    The graph decides what "separated" means: d-separation in a DAG, m-separation if there are
    bidirected edges, sigma-separation if there are directed cycles.

    Parameters
    ----------
    names : iterable of str
        The nodes. All results keep their order.
    edges : iterable of (str, str)
        Directed edges, from cause to effect. Cycles are allowed, self-loops are not.
    bidirected : iterable of (str, str), default=()
        Pairs of nodes with an unobserved common cause.
    indicators : mapping of str to iterables of str, optional
        Indicator nodes, and the nodes whose missing values they indicate. If such a node is known,
        so are its indicators; see :meth:`oracle`.

    Notes
    -----
    Graphs are immutable. Two of them are equal if they have the same nodes and edges, in any order,
    and the same indicators.

    Examples
    --------
    >>> graph = Graph(["rain", "sprinkler", "wet"], [("rain", "wet"), ("sprinkler", "wet")])
    >>> graph
    Graph(3 nodes, 2 edges: rain -> wet, sprinkler -> wet)
    >>> graph.is_separated("rain", "sprinkler")
    True
    >>> graph.is_separated("rain", "sprinkler", given="wet")
    False
    """

    __slots__ = (
        "_bidirected", "_children", "_edges", "_indicators", "_names", "_parents", "_position",
        "_sweep",
    )  # fmt: skip

    def __init__(
        self,
        names: Iterable[str],
        edges: Iterable[tuple[str, str]],
        bidirected: Iterable[tuple[str, str]] = (),
        indicators: Mapping[str, Iterable[str]] | None = None,
    ) -> None:
        self._names = check_names(names)
        self._position = {name: index for index, name in enumerate(self._names)}
        self._edges = tuple(sorted(set(check_pairs(edges, self._names, "edges", _OF_GRAPH))))
        both = check_pairs(bidirected, self._names, "bidirected", _OF_GRAPH)
        self._bidirected = tuple(sorted({(min(pair), max(pair)) for pair in both}))
        self._parents: list[list[int]] = [[] for _ in self._names]
        self._children: list[list[int]] = [[] for _ in self._names]
        for tail, head in self._edges:
            self._parents[head].append(tail)
            self._children[tail].append(head)
        self._sweep: Reachability | None = None
        self._indicators = check_indicators(indicators, self._names)

    # Nodes and edges

    @property
    def names(self) -> tuple[str, ...]:
        """The nodes."""
        return self._names

    @property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """The directed edges, in the order of the nodes."""
        return tuple((self._names[tail], self._names[head]) for tail, head in self._edges)

    @property
    def bidirected(self) -> tuple[tuple[str, str], ...]:
        """The bidirected edges, in the order of the nodes."""
        return tuple((self._names[one], self._names[other]) for one, other in self._bidirected)

    @property
    def indicators(self) -> dict[str, tuple[str, ...]]:
        """The indicator nodes, and the nodes whose missing values they indicate."""
        return dict(self._indicators)

    @property
    def is_acyclic(self) -> bool:
        """Whether there is no directed cycle."""
        return len(set(components(len(self), self._edges).tolist())) == len(self)

    @property
    def is_dag(self) -> bool:
        """Whether there is neither a directed cycle nor a bidirected edge."""
        return not self._bidirected and self.is_acyclic

    @property
    def cycles(self) -> tuple[tuple[str, ...], ...]:
        """The sets of nodes that share directed cycles (strongly connected components)."""
        groups: dict[int, list[str]] = {}
        labels = components(len(self), self._edges).tolist()
        for name, label in zip(self._names, labels, strict=True):
            groups.setdefault(label, []).append(name)
        return tuple(tuple(group) for group in groups.values() if len(group) > 1)

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._position

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Graph):
            return NotImplemented
        return self._canonical() == other._canonical()

    def __hash__(self) -> int:
        return hash(self._canonical())

    def _canonical(self) -> tuple[frozenset[Any], ...]:
        pairs = frozenset(frozenset(pair) for pair in self.bidirected)
        indicated = frozenset((name, frozenset(each)) for name, each in self._indicators.items())
        return frozenset(self._names), frozenset(self.edges), pairs, indicated

    def __repr__(self) -> str:
        drawn = [f"{tail} -> {head}" for tail, head in self.edges]
        drawn += [f"{one} <-> {other}" for one, other in self.bidirected]
        counts = f"{_count(len(self), 'node')}, {_count(len(self._edges), 'edge')}"
        if self._bidirected:
            counts += f", {len(self._bidirected)} bidirected"
        if not self.is_acyclic:
            counts += ", cyclic"
        shown = ", ".join(drawn[:6]) + (", ..." if len(drawn) > 6 else "")
        return f"Graph({counts}{': ' if shown else ''}{shown})"

    # Relatives

    def parents(self, node: str) -> tuple[str, ...]:
        """Return the direct causes of `node`."""
        return self._to_names(self._parents[self._at(node)])

    def children(self, node: str) -> tuple[str, ...]:
        """Return the direct effects of `node`."""
        return self._to_names(self._children[self._at(node)])

    def ancestors(self, node: str) -> tuple[str, ...]:
        """Return all direct and indirect causes of `node`, without itself."""
        return self._to_names(self._closure(self._at(node), self._parents))

    def descendants(self, node: str) -> tuple[str, ...]:
        """Return all direct and indirect effects of `node`, without itself."""
        return self._to_names(self._closure(self._at(node), self._children))

    def markov_blanket(self, node: str) -> tuple[str, ...]:
        """Return the smallest set of nodes that separates `node` from all others.

        In a DAG these are its parents, its children and its children's other parents.

        Examples
        --------
        >>> Graph(list("abcd"), [("a", "b"), ("c", "b"), ("b", "d")]).markov_blanket("a")
        ('b', 'c')
        """
        oracle = self.oracle(node)
        everything = np.ones((1, len(oracle.feature_names)), dtype=np.bool_)
        inside = oracle.boundary(everything)[0]
        return tuple(np.array(oracle.feature_names, dtype=object)[inside].tolist())

    def topological_order(self) -> tuple[str, ...]:
        """Return the nodes with every cause before its effects.

        Raises
        ------
        ValueError
            If the graph has a directed cycle; the message shows one.
        """
        try:
            order = graphlib.TopologicalSorter(dict(enumerate(self._parents))).static_order()
            return tuple(self._names[node] for node in order)
        except graphlib.CycleError as error:
            cycle = " -> ".join(self._names[node] for node in error.args[1])
            advice = "A cyclic graph has no topological order"
            raise refusal("graph", "acyclic", cycle, advice) from None

    def _at(self, node: str) -> int:
        return self._position[check_member(node, self._names, "node", _OF_GRAPH)]

    def _to_names(self, nodes: Iterable[int]) -> tuple[str, ...]:
        return tuple(self._names[node] for node in sorted(nodes))

    @staticmethod
    def _closure(start: int, neighbors: list[list[int]]) -> set[int]:
        found: set[int] = set()
        waiting = list(neighbors[start])
        while waiting:
            node = waiting.pop()
            if node not in found:
                found.add(node)
                waiting += neighbors[node]
        return found - {start}

    # Separation

    def oracle(self, target: str, features: Iterable[str] | None = None) -> Oracle:
        """Return the separation oracle of `target`, which handles many coalitions at a time.

        Parameters
        ----------
        target : str
            The target, one of the nodes.
        features : iterable of str, optional
            The nodes that can be known, in the order of the columns of the coalitions: usually the
            columns of the model's data. Other nodes are unobserved. By default all nodes but the
            target, in the order of the graph.

        Returns
        -------
        SeparationOracle or PartsOracle
            Indicators of missing values that are not features themselves become known together with
            the features whose missing values they indicate: a feature then represents several
            nodes. Such a feature does not separate its causes from its effects, since it does so
            only in rows in which it is not missing.

        Examples
        --------
        >>> graph = Graph(["age", "no age", "y"], [("no age", "y")], indicators={"no age": ["age"]})
        >>> graph.oracle("y", ["age"]).separated(np.array([[False]]))
        array([[False]])
        """
        checked = check_features(target, features, self._names)
        parts = with_indicators(checked, self._indicators, besides=target)
        nodes = tuple(dict.fromkeys(node for each in parts.values() for node in each))
        if nodes == checked:
            return SeparationOracle(self._reachability(), self._names, target, nodes)
        whole = Graph(*with_whole_values(self._names, self.edges, self.bidirected, parts))
        oracle = SeparationOracle(whole._reachability(), whole.names, target, nodes)
        return PartsOracle(oracle, parts)

    def is_separated(
        self, x: str | Iterable[str], y: str | Iterable[str], given: str | Iterable[str] = ()
    ) -> bool:
        """Return whether `x` and `y` are separated given `given`.

        Separated means independent, given the values of `given`, in every distribution that the
        graph can produce.

        Parameters
        ----------
        x, y : str or iterable of str
            Nodes or sets of nodes. Sets are separated if all pairs are.
        given : str or iterable of str, default=()
            The nodes whose values are known.

        Examples
        --------
        >>> chain = Graph(list("abc"), [("a", "b"), ("b", "c")])
        >>> chain.is_separated("a", "c"), chain.is_separated("a", "c", given="b")
        (False, True)
        """
        return are_separated(self._reachability(), self._names, x, y, given)

    def _reachability(self) -> Reachability:
        if self._sweep is None:
            self._sweep = Reachability(len(self), self._edges, self._bidirected)
        return self._sweep

    # Interchange

    @classmethod
    def from_adjacency(
        cls,
        matrix: npt.ArrayLike | Any,  # noqa: ANN401
        names: Iterable[str] | None = None,
        bidirected: Iterable[tuple[str, str]] = (),
    ) -> Self:
        """Read a matrix in which a non-zero entry [i, j] means i -> j.

        Parameters
        ----------
        matrix : array or data frame of shape (n_nodes, n_nodes)
            The columns of a data frame (pandas, polars, pyarrow) are the names.
        names : iterable of str, optional
            The nodes; required for an array.
        bidirected : iterable of (str, str), default=()
            Pairs of nodes with an unobserved common cause.

        Examples
        --------
        >>> Graph.from_adjacency([[0, 1], [0, 0]], ["a", "b"])
        Graph(2 nodes, 1 edge: a -> b)
        """
        parts = interchange.from_adjacency(matrix, names)
        return cls(parts.names, parts.edges, bidirected)

    @classmethod
    def from_networkx(cls, graph: Any) -> Self:  # noqa: ANN401
        """Read a networkx ``DiGraph``, such as pgmpy's ``DAG`` and ``PDAG``.

        Nodes become strings. A node with the attribute ``latent=True``, or among pgmpy's
        ``latents``, becomes bidirected edges between its children. The undirected edges of a
        ``PDAG`` are oriented to a member of the equivalence class.
        """
        return cls(*interchange.from_networkx(graph))

    @classmethod
    def from_causal_learn(cls, graph: Any) -> Self:  # noqa: ANN401
        """Read causal-learn's ``GeneralGraph``, or a result of its PC, GES or FCI.

        Undirected edges are oriented without new v-structures: a CPDAG becomes a member of its
        equivalence class, with the same separations. Edges with a circle (FCI) are refused: see
        :meth:`dsage.graphs.PartialGraph.from_causal_learn`. A bidirected edge is read as an
        unobserved common cause; PC with some settings writes one where its tests contradict each
        other.
        """
        return cls(*interchange.from_causal_learn(graph))

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a graph that :meth:`save` wrote."""
        return cls(*interchange.load(path))

    def save(self, path: str | Path) -> None:
        """Write the graph to a JSON file."""
        interchange.save(self._parts(), path)

    def to_adjacency(self) -> pd.DataFrame:
        """Return a boolean data frame in which entry [i, j] means i -> j.

        It contains the directed edges only; see :attr:`bidirected` for the others.
        """
        matrix = np.zeros((len(self), len(self)), dtype=np.bool_)
        for tail, head in self._edges:
            matrix[tail, head] = True
        return pd.DataFrame(matrix, index=list(self._names), columns=list(self._names))

    def to_networkx(self) -> nx.DiGraph:
        """Return a networkx ``DiGraph``; a bidirected edge becomes a node with ``latent=True``.

        Without directed cycles this is the canonical DAG, whose d-separations are the m-separations
        of the graph.
        """
        return interchange.to_networkx(self._parts())

    def to_dot(self, target: str | None = None) -> str:
        """Return the graph in Graphviz's DOT language; the target, if given, is filled."""
        if target is not None:
            check_member(target, self._names, "target", _OF_GRAPH)
        return interchange.to_dot(self._parts(), target)

    def _parts(self) -> interchange.Parts:
        return interchange.Parts(self._names, self.edges, self.bidirected, self.indicators)


def check_graph(graph: object, parameter: str = "graph") -> Graph:
    """Return `graph` if it is a `Graph`; refuse other objects."""
    if isinstance(graph, Graph):
        return graph
    if isinstance(graph, PartialGraph):
        condition = "a dsage.Graph, without circles"
        raise refusal(parameter, condition, graph, PARTIAL_ADVICE, TypeError)
    advice = "Convert it with dsage.graphs.as_graph"
    raise refusal(parameter, "a dsage.Graph", type(graph).__name__, advice, TypeError)


def check_dag(graph: object, parameter: str = "graph") -> Graph:
    """Return `graph` if it is a DAG; refuse other graphs and objects."""
    if not (checked := check_graph(graph, parameter)).is_dag:
        raise refusal(parameter, "a DAG", graph, "Remove the cycles and bidirected edges")
    return checked


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
