"""Markov equivalence: the CPDAG of a DAG, and distances between structures."""

from __future__ import annotations

from dataclasses import dataclass

from dsage._check import check_same_names, refusal
from dsage.graphs.graph import Graph, check_dag, check_graph
from dsage.graphs.orientation import orient
from dsage.graphs.pdag import Pdag, members

_SAME = ("the two graphs", "over the same nodes")


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
        return self._canonical() == other._canonical()

    def __hash__(self) -> int:
        return hash(self._canonical())

    def _canonical(self) -> tuple[object, ...]:
        return frozenset(self.names), self.directed, self.undirected

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
    """Return the CPDAG of a DAG, by Chickering's labeling algorithm (1995).

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
    names = check_dag(graph).names
    position = {name: at for at, name in enumerate(names)}
    parents = [tuple(position[parent] for parent in graph.parents(name)) for name in names]
    compelled = zip(names, Pdag.of_class(parents).parents, strict=True)
    directed = frozenset(
        (names[tail], head) for head, tails in compelled for tail in members(tails)
    )
    undirected = frozenset(frozenset(edge) for edge in graph.edges if edge not in directed)
    return CPDAG(graph.names, directed, undirected)


def markov_equivalent(one: Graph, other: Graph) -> bool:
    """Return whether two DAGs over the same nodes imply the same separations.

    Examples
    --------
    >>> markov_equivalent(Graph(list("ab"), [("a", "b")]), Graph(list("ab"), [("b", "a")]))
    True
    """
    check_same_names(check_graph(one, "one").names, check_graph(other, "other").names, *_SAME)
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
        kinds = (type(one).__name__, type(other).__name__)
        advice = "Convert the graph with cpdag(graph)"
        raise refusal("the structures", "two graphs or two CPDAGs", kinds, advice, TypeError)
    check_same_names(one.names, other.names, *_SAME)
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
