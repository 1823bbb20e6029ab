"""Prior knowledge about the graph: required and forbidden edges, tiers, bounds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from dsage._check import (
    Setting,
    Text,
    check_count,
    check_member,
    check_names,
    check_same_names,
    refusal,
)
from dsage.graphs import Graph
from dsage.graphs.graph import check_dag
from dsage.graphs.pairs import check_pairs
from dsage.structure.scores.base import Parents, Score

Edges = Iterable[tuple[str, str]]
Mask = npt.NDArray[np.bool_]

_OF_DATA = "the variables"


class Constraints:
    """Edges that a learned graph must or must not have, and the largest number of parents.

    Parameters
    ----------
    names : iterable of str
        The variables, in the order of the data.
    required : iterable of (str, str), default=()
        Edges, from cause to effect, that every graph must have.
    forbidden : iterable of (str, str), default=()
        Edges that no graph may have. The opposite direction stays allowed.
    tiers : iterable of iterables of str, optional
        Groups of variables in temporal order: no variable causes one of an earlier group.
        Variables in no group are unconstrained.
    max_parents : int, optional
        The largest number of parents of a node; unlimited by default.

    Attributes
    ----------
    names : tuple of str
    allowed : array of bool of shape (n_nodes, n_nodes)
        Entry [i, j]: whether the edge i -> j is allowed. Read-only.
    required : array of bool of shape (n_nodes, n_nodes)
        Entry [i, j]: whether the edge i -> j is required. Read-only.
    max_parents : int
        At most ``n_nodes - 1``.

    Examples
    --------
    >>> constraints = Constraints(["age", "dose", "cured"], tiers=[["age"], ["dose", "cured"]])
    >>> constraints.allowed.astype(int)
    array([[0, 1, 1],
           [0, 0, 1],
           [0, 1, 0]])
    """

    def __init__(
        self,
        names: Iterable[str],
        *,
        required: Edges = (),
        forbidden: Edges = (),
        tiers: Iterable[Iterable[str]] | None = None,
        max_parents: int | None = None,
    ) -> None:
        self.names = check_names(names)
        n_nodes = len(self.names)
        self.max_parents = max(n_nodes - 1, 0)
        if max_parents is not None:
            bound = check_count(max_parents, "max_parents", minimum=0)
            self.max_parents = min(bound, self.max_parents)
        self.required = self._matrix(required, "required")
        banned = self._matrix(forbidden, "forbidden")
        backwards = self._backwards(tiers)
        self._check_contradictions(banned, backwards)
        # The opposite of a required edge would close a cycle with it.
        self.allowed = ~(banned | backwards | self.required.T | np.eye(n_nodes, dtype=np.bool_))
        self.allowed.flags.writeable = self.required.flags.writeable = False

    def _matrix(self, edges: Edges, parameter: str) -> Mask:
        matrix = np.zeros((len(self.names), len(self.names)), dtype=np.bool_)
        for edge in check_pairs(edges, self.names, parameter, _OF_DATA):
            matrix[edge] = True
        return matrix

    def _backwards(self, tiers: Iterable[Iterable[str]] | None) -> Mask:
        """Mark the edges from a tier to an earlier one."""
        rank: dict[str, int] = {}
        for place, tier in enumerate(() if tiers is None else tiers):
            for name in check_names(tier, "tiers"):
                check_member(name, self.names, "tiers", _OF_DATA)
                if name in rank:
                    raise refusal("tiers", "disjoint", name, "Put it into one tier only")
                rank[name] = place
        ranks = np.array([rank.get(name, np.nan) for name in self.names])
        return ranks[:, None] > ranks

    def _check_contradictions(self, banned: Mask, backwards: Mask) -> None:
        for mask, what in (
            (banned, "other than the forbidden edges"),
            (backwards, "edges that do not lead to an earlier tier"),
        ):
            if odd := self._edges_in(self.required & mask):
                raise refusal("required", what, odd, "Remove these edges from one of the two")
        cycles = Graph(self.names, self._edges_in(self.required)).cycles
        if cycles:
            inside = np.isin(np.array(self.names, dtype=object), cycles[0])
            odd = self._edges_in(self.required & inside[:, None] & inside)
            raise refusal("required", "without cycles", odd, "Remove one of these edges")
        n_required = self.required.sum(axis=0)
        if (n_required > self.max_parents).any():
            head = int(np.argmax(n_required))
            edges = self._edges_in(self.required & (np.arange(len(self.names)) == head))
            remedy = Text(["Remove some, or set ", Setting("max_parents", int(n_required[head]))])
            raise refusal(
                "required", f"at most {self.max_parents} edges into a node", edges, remedy
            )

    def _edges_in(self, matrix: Mask) -> list[tuple[str, str]]:
        return [(self.names[tail], self.names[head]) for tail, head in np.argwhere(matrix)]

    def select(self, names: Sequence[str], given: Edges = ()) -> Constraints:
        """Return the constraints on the graph of some of the variables.

        Parameters
        ----------
        names : sequence of str
            The variables to keep.
        given : iterable of (str, str), default=()
            Edges that the graph will always have, so they may be required.

        Raises
        ------
        ValueError
            If a required edge has an end outside `names`.

        Examples
        --------
        >>> Constraints(list("abc"), required=[("a", "c")]).select(["a", "c"])
        Constraints(2 nodes, 1 required, 0 forbidden, max_parents=1)
        """
        at = np.array([self.names.index(name) for name in names], dtype=np.intp)
        selected = np.ix_(at, at)
        lost = self.required & ~self._matrix(given, "given")
        lost[selected] = False
        if edges := self._edges_in(lost):
            condition = "between columns that vary and are not copies of others"
            advice = "Remove these edges, or the constant and copied columns"
            raise refusal("required", condition, edges, advice)
        made = Constraints(names, max_parents=self.max_parents)
        made.allowed, made.required = self.allowed[selected], self.required[selected]
        made.allowed.flags.writeable = made.required.flags.writeable = False
        return made

    def admit(self, graph: Graph | None = None) -> list[Parents]:
        """Return the parents of every node in `graph`, with the required edges added.

        Parameters
        ----------
        graph : Graph, optional
            A DAG over the same variables; the empty graph by default.

        Raises
        ------
        ValueError
            If the graph violates the constraints; the message names the edges.

        Examples
        --------
        >>> Constraints(list("abc"), required=[("c", "a")]).admit(Graph(list("abc"), [("a", "b")]))
        [(2,), (0,), ()]
        """
        matrix = self.required.copy()
        if graph is not None:
            check_same_names(graph.names, self.names, "start", "over the variables of the data")
            check_dag(graph, "start")
            matrix |= graph.to_adjacency().loc[list(self.names), list(self.names)].to_numpy()
        if edges := self._edges_in(matrix & ~self.allowed):
            raise refusal("start", "of allowed edges only", edges, "Remove these edges")
        if cycles := Graph(self.names, self._edges_in(matrix)).cycles:
            advice = "Remove an edge between these nodes"
            raise refusal("start", "acyclic with the required edges", cycles[0], advice)
        crowded = matrix.sum(axis=0) > self.max_parents
        if crowded.any():
            remedy = Text(["These have more: remove edges or increase ", Setting("max_parents")])
            nodes = [self.names[node] for node in np.flatnonzero(crowded)]
            raise refusal(
                "start", f"with at most {self.max_parents} parents per node", nodes, remedy
            )
        return [tuple(np.flatnonzero(column).tolist()) for column in matrix.T]

    def __repr__(self) -> str:
        n_forbidden = int((~self.allowed).sum()) - len(self.names) - int(self.required.sum())
        return (
            f"Constraints({len(self.names)} nodes, {int(self.required.sum())} required, "
            f"{n_forbidden} forbidden, max_parents={self.max_parents})"
        )


def check_constraints(score: Score, constraints: Constraints | None) -> Constraints:
    """Return the constraints after a check against the score; None means no constraints."""
    if constraints is None:
        return Constraints(score.names)
    if tuple(score.names) != constraints.names:
        condition = f"over the variables {tuple(score.names)!r}, in this order"
        advice = "Make them with Constraints(score.names, ...)"
        raise refusal("constraints", condition, constraints.names, advice)
    return constraints


def graph_of(names: Sequence[str], parents: Sequence[Parents]) -> Graph:
    """Return the graph in which each node has these parents."""
    edges = [(names[tail], names[head]) for head, tails in enumerate(parents) for tail in tails]
    return Graph(names, edges)
