"""Partial ancestral graphs: what is known about a graph with hidden common causes."""

from __future__ import annotations

import graphlib
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Self

import numpy as np

from dsage._check import check_names, refusal
from dsage.graphs import interchange
from dsage.graphs.pairs import check_pairs
from dsage.graphs.possible import Mark, MarkedEdge, PossibleReachability
from dsage.graphs.separation import Oracle, SeparationOracle, are_separated, check_features

PARTIAL_ADVICE = "Not all ends of its edges are known: pass it as graph= to explain, or its oracle"
"""What to do with a partial graph where a `Graph` is required."""

_MARKS = {
    f"{start}-{stop}": (at_start, at_stop)
    for start, at_start in {"-": Mark.TAIL, "<": Mark.ARROW, "o": Mark.CIRCLE}.items()
    for stop, at_stop in {"-": Mark.TAIL, ">": Mark.ARROW, "o": Mark.CIRCLE}.items()
}
_DRAWN = {marks: drawn for drawn, marks in _MARKS.items()}
# An edge is drawn from the end whose mark comes first here: -->, o->, o--, but not <--.
_FIRST = (Mark.CIRCLE, Mark.TAIL, Mark.ARROW)


class PartialGraph:
    """A graph with hidden common causes in which ends of edges may be unknown.

    Such graphs, partial ancestral graphs (PAGs), are the results of FCI and its relatives. The end
    of an edge is a tail, an arrow or a circle, which means "a tail or an arrow". The partial graph
    stands for its members: the maximal ancestral graphs that differ from it only in the circles.
    Two nodes are called separated only if they are in every member. Separations may be missed, but
    are never invented: a missed one costs evaluations, a false one would bias the values.

    Parameters
    ----------
    names : iterable of str
        The nodes.
    edges : iterable of (str, str, str)
        A node, the edge as it is drawn, and another node, such as ``("a", "o->", "b")``. The left
        end is ``-``, ``<`` or ``o``, the right end ``-``, ``>`` or ``o``, and two nodes have at
        most one edge.

        - ``a --> b``: a is a cause of b.
        - ``a <-> b``: neither causes the other; they have a hidden common cause.
        - ``a o-> b``: b is no cause of a.
        - ``a o-o b``: nothing else is known.
        - ``a --- b``: both affect which rows are in the data.
    colliders_marked : bool, default=True
        Whether every unshielded collider is drawn with two arrows. In ``a o-o b o-o c`` without an
        edge between a and c, b is then no collider, and separates a from c if it is known. This
        holds for the results of FCI. Use False for graphs in which a circle may also stand for the
        arrow of such a collider: drawn by hand, or learned with background knowledge that
        forbade one.

    Notes
    -----
    *Separation.* Nodes are separated if no walk between them can be open in any member. An inner
    node of a walk that is not known lets it pass unless both marks at the node are arrows. A known
    one lets it pass unless a mark there is a tail, or the node is known to be no collider as above.
    A walk may turn back only at a known node: it passes an unknown collider by a walk to a known
    possible descendant and back. Each node is judged on its own, although the marks of several may
    exclude each other; so not every separation that all members share is found. Without circles
    this is m-separation.

    *Why unshielded triples are decided.* The members of a PAG are Markov equivalent, so they have
    the same adjacencies and the same unshielded colliders (Spirtes & Richardson, 1996). The arrows
    of these are common to all members, so the PAG has them. Hence an unshielded triple that is not
    drawn as a collider is none in any member. FCI draws them in its first rule (R0).

    Partial graphs are immutable. They are equal if they have the same nodes and edges, in any
    order, and the same `colliders_marked`.

    References
    ----------
    J. Zhang (2008). On the completeness of orientation rules for causal discovery in the presence
    of latent confounders and selection bias. Artificial Intelligence 172, 1873-1896.

    Examples
    --------
    >>> edges = [("a", "o->", "b"), ("c", "o->", "b"), ("b", "-->", "y")]
    >>> graph = PartialGraph(["a", "b", "c", "y"], edges)
    >>> graph
    PartialGraph(4 nodes, 3 edges: a o-> b, b --> y, c o-> b)
    >>> graph.is_separated("a", "y"), graph.is_separated("a", "y", given="b")
    (False, True)
    >>> graph.is_separated("a", "c"), graph.is_separated("a", "c", given="y")
    (True, False)
    """

    __slots__ = ("_colliders_marked", "_edges", "_names", "_sweep")

    def __init__(
        self,
        names: Iterable[str],
        edges: Iterable[tuple[str, str, str]],
        *,
        colliders_marked: bool = True,
    ) -> None:
        self._names = check_names(names)
        self._edges = tuple(sorted(_check_edges(edges, self._names)))
        self._colliders_marked = bool(colliders_marked)
        _check_acyclic(self._edges, self._names)
        self._sweep = PossibleReachability(
            len(self._names), self._edges, colliders_marked=self._colliders_marked
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The nodes."""
        return self._names

    @property
    def edges(self) -> tuple[tuple[str, str, str], ...]:
        """The edges, such as ``("a", "o->", "b")``, in the order of the nodes."""
        return tuple(
            (
                self._names[edge.one],
                _DRAWN[edge.at_one, edge.at_other],
                self._names[edge.other],
            )
            for edge in self._edges
        )

    @property
    def colliders_marked(self) -> bool:
        """Whether every unshielded collider is drawn with two arrows."""
        return self._colliders_marked

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PartialGraph):
            return NotImplemented
        return self._canonical() == other._canonical()

    def __hash__(self) -> int:
        return hash(self._canonical())

    def _canonical(self) -> tuple[frozenset[Any], frozenset[Any], bool]:
        edges = (
            frozenset(
                {(self._names[edge.one], edge.at_one), (self._names[edge.other], edge.at_other)}
            )
            for edge in self._edges
        )
        return frozenset(self._names), frozenset(edges), self._colliders_marked

    def __repr__(self) -> str:
        drawn = [" ".join(edge) for edge in self.edges]
        counts = f"{len(self)} node{'s' * (len(self) != 1)}"
        counts += f", {len(drawn)} edge{'s' * (len(drawn) != 1)}"
        shown = ", ".join(drawn[:6]) + (", ..." if len(drawn) > 6 else "")
        return f"PartialGraph({counts}{': ' if shown else ''}{shown})"

    def oracle(self, target: str, features: Iterable[str] | None = None) -> Oracle:
        """Return the separation oracle of `target`, which handles many coalitions at a time.

        Parameters
        ----------
        target : str
            The target, one of the nodes.
        features : iterable of str, optional
            The nodes that can be known, in the order of the columns of the coalitions. Other nodes
            are unobserved. By default all nodes but the target, in the order of the graph.

        Returns
        -------
        SeparationOracle
            A feature counts as separated only if it is separated in every member. The boundary of a
            coalition contains the boundaries in all members.

        Examples
        --------
        >>> graph = PartialGraph(["a", "b", "y"], [("a", "o-o", "b"), ("b", "o-o", "y")])
        >>> graph.oracle("y").separated(np.array([[False, False], [False, True]]))
        array([[False, False],
               [ True, False]])
        """
        checked = check_features(target, features, self._names)
        return SeparationOracle(self._sweep, self._names, target, checked)

    def is_separated(
        self, x: str | Iterable[str], y: str | Iterable[str], given: str | Iterable[str] = ()
    ) -> bool:
        """Return whether `x` and `y` are separated given `given` in every member.

        Parameters
        ----------
        x, y : str or iterable of str
            Nodes or sets of nodes. Sets are separated if all pairs are.
        given : str or iterable of str, default=()
            The nodes whose values are known.
        """
        return are_separated(self._sweep, self._names, x, y, given)

    def markov_blanket(self, node: str) -> tuple[str, ...]:
        """Return a set of nodes that separates `node` from all others in every member.

        Examples
        --------
        >>> edges = [("a", "o-o", "b"), ("b", "o-o", "y")]
        >>> graph = PartialGraph(["a", "b", "y"], edges)
        >>> graph.markov_blanket("y")
        ('b',)
        """
        oracle = self.oracle(node)
        inside = oracle.boundary(np.ones((1, len(oracle.feature_names)), dtype=np.bool_))[0]
        return tuple(np.array(oracle.feature_names, dtype=object)[inside].tolist())

    @classmethod
    def from_causal_learn(cls, graph: Any, *, colliders_marked: bool = True) -> Self:  # noqa: ANN401
        """Read causal-learn's ``GeneralGraph``, or a result of its FCI, with the marks as they are.

        Parameters
        ----------
        graph : GeneralGraph, or tuple that starts with one
            What ``fci`` returns.
        colliders_marked : bool, default=True
            Use False if background knowledge was passed to ``fci``.
        """
        names, marked = interchange.marked_edges(graph)
        edges = [
            (one, _DRAWN[Mark[start], Mark[stop]], other) for (one, other), (start, stop) in marked
        ]
        return cls(names, edges, colliders_marked=colliders_marked)


def _check_edges(edges: object, names: Sequence[str]) -> Iterator[MarkedEdge]:
    """Yield the edges after checking names and signs, each drawn in the usual direction."""
    if isinstance(edges, str) or not isinstance(edges, Iterable):
        advice = "Write them as [('a', 'o->', 'b'), ...]"
        raise refusal("edges", "an iterable of marked edges", edges, advice, TypeError)
    seen: set[frozenset[int]] = set()
    for edge in edges:
        is_ordered = isinstance(edge, Iterable) and not isinstance(edge, (str, AbstractSet))
        if not is_ordered or len(parts := tuple(edge)) != 3:
            raise refusal("edges", "marked edges", edge, "Write each as ('a', 'o->', 'b')")
        ((one, other),) = check_pairs(
            [(parts[0], parts[2])], names, "edges", "the nodes of the graph"
        )
        start, stop = _check_marks(parts[1])
        if frozenset((one, other)) in seen:
            advice = "Two nodes have at most one edge: remove the others"
            raise refusal("edges", "one for each pair of nodes", parts, advice)
        seen.add(frozenset((one, other)))
        marked = MarkedEdge(one, other, start, stop)
        turned = marked.reversed()
        yield min(marked, turned, key=lambda each: (_FIRST.index(each.at_one), each.one))


def _check_marks(drawn: object) -> tuple[Mark, Mark]:
    if not isinstance(drawn, str) or drawn not in _MARKS:
        advice = "For example 'o->', '-->', '<->', 'o-o' or '---'"
        raise refusal("the middle of an edge", "two ends joined by '-'", drawn, advice)
    return _MARKS[drawn]


def _check_acyclic(edges: Iterable[MarkedEdge], names: Sequence[str]) -> None:
    """Refuse a cycle of directed edges: the graph would have no member."""
    causes: dict[int, list[int]] = {}
    for edge in edges:
        if (edge.at_one, edge.at_other) == (Mark.TAIL, Mark.ARROW):
            causes.setdefault(edge.other, []).append(edge.one)
    try:
        graphlib.TopologicalSorter(causes).prepare()
    except graphlib.CycleError as error:
        cycle = " --> ".join(names[node] for node in error.args[1])
        advice = "No graph has these edges; if it was learned, try another level of significance"
        raise refusal("edges", "without a directed cycle", cycle, advice) from None
