"""Markov equivalence: the CPDAG of a DAG, and distances between structures."""

from __future__ import annotations

from dataclasses import dataclass

from dsage._check import refusal
from dsage.graphs.graph import Graph, check_graph
from dsage.graphs.orientation import orient


@dataclass(frozen=True)
class CPDAG:
    """The class of all DAGs with the same separations (completed partially directed graph).

    Attributes
    ----------
    names : tuple of str
        The nodes.
    directed : frozenset of (str, str)
        Edges that have this direction in every DAG of the class.
    undirected : frozenset of frozenset of str
        Edges whose direction differs between DAGs of the class.
    """

    names: tuple[str, ...]
    directed: frozenset[tuple[str, str]]
    undirected: frozenset[frozenset[str]]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CPDAG):
            return NotImplemented
        return (set(self.names), self.directed, self.undirected) == (
            set(other.names),
            other.directed,
            other.undirected,
        )

    def __hash__(self) -> int:
        return hash((frozenset(self.names), self.directed, self.undirected))

    def to_dag(self) -> Graph:
        """Return one DAG of the class.

        Examples
        --------
        >>> chain = Graph(list("abc"), [("a", "b"), ("b", "c")])
        >>> markov_equivalent(cpdag(chain).to_dag(), chain)
        True
        """
        undirected = [(min(pair), max(pair)) for pair in self.undirected]
        return Graph(self.names, orient(self.names, self.directed, undirected))


def cpdag(graph: Graph) -> CPDAG:
    """Return the CPDAG of a DAG.

    Chickering's labeling algorithm (1995): nodes are visited in topological order, and the last
    parent of a node decides. If every compelled parent of that parent is also a parent of the node,
    and every other parent of the node is a parent of that parent, then only the edges from the
    former are compelled; otherwise all edges into the node are.

    Parameters
    ----------
    graph : Graph
        A DAG.

    Examples
    --------
    >>> collider = cpdag(Graph(list("abc"), [("a", "b"), ("c", "b")]))
    >>> sorted(collider.directed), collider.undirected
    ([('a', 'b'), ('c', 'b')], frozenset())
    >>> sorted(map(sorted, cpdag(Graph(list("abc"), [("a", "b"), ("b", "c")])).undirected))
    [['a', 'b'], ['b', 'c']]
    """
    _check_dag(graph)
    order = {name: index for index, name in enumerate(graph.topological_order())}
    parents = {name: sorted(graph.parents(name), key=order.__getitem__) for name in graph.names}
    compelled: dict[str, set[str]] = {name: set() for name in graph.names}  # head -> tails
    for head in order:
        if not parents[head]:
            continue
        tail = parents[head][-1]
        above, beside = set(parents[tail]), set(parents[head]) - {tail}
        # Compelled by a v-structure here, or by the need to avoid one through the tail.
        if compelled[tail] <= beside <= above:
            compelled[head] = set(compelled[tail])
        else:
            compelled[head] = beside | {tail}
    directed = frozenset((tail, head) for head, tails in compelled.items() for tail in tails)
    undirected = frozenset(frozenset(edge) for edge in graph.edges if edge not in directed)
    return CPDAG(graph.names, directed, undirected)


def markov_equivalent(one: Graph, other: Graph) -> bool:
    """Return whether two DAGs over the same nodes imply the same separations.

    Examples
    --------
    >>> markov_equivalent(Graph(list("ab"), [("a", "b")]), Graph(list("ab"), [("b", "a")]))
    True
    """
    _check_same_nodes(check_graph(one, "one"), check_graph(other, "other"))
    return cpdag(one) == cpdag(other)


def structural_hamming_distance(one: Graph | CPDAG, other: Graph | CPDAG) -> int:
    """Count the pairs of nodes that are not joined in the same way.

    Each missing, additional or differently directed edge counts one.

    Parameters
    ----------
    one, other : Graph or CPDAG
        Two graphs or two CPDAGs over the same nodes.

    Examples
    --------
    >>> chain = Graph(list("abc"), [("a", "b"), ("b", "c")])
    >>> fork = Graph(list("abc"), [("b", "a"), ("b", "c")])
    >>> structural_hamming_distance(chain, fork)
    1
    >>> structural_hamming_distance(cpdag(chain), cpdag(fork))
    0
    """
    if isinstance(one, Graph) != isinstance(other, Graph):
        raise refusal(
            "the structures",
            "two graphs or two CPDAGs",
            (type(one).__name__, type(other).__name__),
            "Convert the graph with cpdag(graph)",
            TypeError,
        )
    _check_same_nodes(one, other)
    marks, other_marks = _marks(one), _marks(other)
    pairs = marks.keys() | other_marks.keys()
    return sum(marks.get(pair) != other_marks.get(pair) for pair in pairs)


def _marks(structure: Graph | CPDAG) -> dict[frozenset[str], set[object]]:
    marks: dict[frozenset[str], set[object]] = {}
    directed = structure.edges if isinstance(structure, Graph) else structure.directed
    for edge in directed:
        marks.setdefault(frozenset(edge), set()).add(edge)
    symmetric = structure.bidirected if isinstance(structure, Graph) else structure.undirected
    for pair in symmetric:
        marks.setdefault(frozenset(pair), set()).add("symmetric")
    return marks


def _check_dag(graph: Graph) -> None:
    if not check_graph(graph).is_dag:
        raise refusal(
            "graph",
            "a DAG",
            graph,
            "Remove the cycles and bidirected edges",
        )


def _check_same_nodes(one: Graph | CPDAG, other: Graph | CPDAG) -> None:
    if odd := sorted(set(one.names) ^ set(other.names)):
        raise refusal(
            "the two graphs", "over the same nodes", odd, "These nodes are in only one of them"
        )
