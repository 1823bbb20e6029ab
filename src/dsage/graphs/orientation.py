"""Orient the undirected edges of a partially directed graph without changing its separations."""

from __future__ import annotations

from collections.abc import Iterable

from dsage._check import refusal

NamedEdges = Iterable[tuple[str, str]]


def orient(
    names: Iterable[str],
    directed: NamedEdges,
    undirected: NamedEdges,
    bidirected: NamedEdges = (),
) -> set[tuple[str, str]]:
    """Return the directed edges of a graph with the same skeleton and the same v-structures.

    The consistent extension of Dor & Tarsi (1992): repeatedly take a node that has no outgoing
    directed edge and whose undirected neighbors are adjacent to all its other neighbors, orient its
    undirected edges towards it, and remove it. All consistent extensions of a CPDAG have the same
    separations. Bidirected edges are kept: they make nodes adjacent, with an arrowhead at both
    ends. Without undirected edges nothing changes, and directed cycles are allowed.

    Graphs without such an extension, as constraint-based learners may return, are refused.
    """
    left = list(names)
    parents, children, open_, beside = ({name: set[str]() for name in left} for _ in range(4))
    oriented = set(directed)
    for tail, head in oriented:
        parents[head].add(tail)
        children[tail].add(head)
    for pairs, neighbors in ((undirected, open_), (bidirected, beside)):
        for one, other in pairs:
            neighbors[one].add(other)
            neighbors[other].add(one)
    if not any(open_.values()):
        return oriented
    adjacent = {name: parents[name] | children[name] | open_[name] | beside[name] for name in left}

    def is_sink(node: str) -> bool:
        if children[node]:
            return False
        around = parents[node] | open_[node] | beside[node]
        return all(around - {near} <= adjacent[near] for near in open_[node])

    while left:
        sink = next((node for node in left if is_sink(node)), None)
        if sink is None:
            condition = "extendable to a DAG without new v-structures"
            advice = "The edges among these nodes contradict each other; orient them by hand"
            raise refusal("graph", condition, sorted(left), advice)
        oriented |= {(near, sink) for near in open_[sink]}
        for near in open_[sink]:
            open_[near].discard(sink)
        for parent in parents[sink]:
            children[parent].discard(sink)
        left.remove(sink)
    return oriented
