"""Bayes-ball for many coalitions at a time, on bit rows.

One sweep serves three kinds of graphs. A bidirected edge becomes a latent common cause, and a
directed cycle is replaced by its acyclification. The result is a DAG with latent nodes, whose
d-separations are the m-separations or sigma-separations of the original graph.
"""

from __future__ import annotations

import graphlib
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

Edges = Sequence[tuple[int, int]]


def components(n_nodes: int, edges: Edges) -> npt.NDArray[np.intp]:
    """Label the strongly connected components: nodes on a common directed cycle have one label."""
    tails, heads = np.array(edges, dtype=np.intp).reshape(-1, 2).T
    matrix = coo_array((np.ones(len(edges)), (tails, heads)), shape=(n_nodes, n_nodes))
    _, labels = connected_components(matrix, directed=True, connection="strong")
    return np.asarray(labels, dtype=np.intp)


def canonical_dag(n_nodes: int, edges: Edges, bidirected: Edges) -> list[set[int]]:
    """Return the parents of each node in a DAG with the same separations among the first `n_nodes`.

    Nodes from `n_nodes` on are latent. A bidirected edge becomes a latent parent of its two ends.
    The acyclification (Bongers, Forré, Peters & Mooij, 2021) of a strongly connected component
    gives every member all parents that any member has outside the component, and gives the members
    a common latent parent; a bidirected edge then joins the whole components of its ends.
    Sigma-separation in the graph is d-separation in the result.
    """
    labels = components(n_nodes, edges)
    members: dict[int, list[int]] = {}
    for node, label in enumerate(labels.tolist()):
        members.setdefault(label, []).append(node)
    component = [members[label] for label in labels.tolist()]

    parents: list[set[int]] = [set() for _ in range(n_nodes)]
    for tail, head in edges:
        if labels[tail] != labels[head]:
            for node in component[head]:
                parents[node].add(tail)
    confounded = {frozenset(group) for group in members.values() if len(group) > 1}
    confounded |= {
        frozenset(component[one] + component[other])
        for one, other in bidirected
        if labels[one] != labels[other]
    }
    for latent, group in enumerate(sorted(confounded, key=sorted), start=n_nodes):
        parents.append(set())
        for node in group:
            parents[node].add(latent)
    return parents


class Reachability:
    """Bayes-ball from source nodes, for one coalition per bit of the bit rows."""

    def __init__(self, n_nodes: int, edges: Edges, bidirected: Edges) -> None:
        parents = canonical_dag(n_nodes, edges, bidirected)
        children: list[list[int]] = [[] for _ in parents]
        for node, above in enumerate(parents):
            for parent in above:
                children[parent].append(node)
        self._n_nodes = n_nodes
        self._order = tuple(graphlib.TopologicalSorter(dict(enumerate(parents))).static_order())
        self._parents = [sorted(above) for above in parents]
        self._children = children

    def reached(self, sources: Iterable[int], known: Sequence[int], width: int) -> list[int]:
        """Return, per observed node, the bit row of the coalitions under which it is reached.

        The ball starts from the `sources`, which must not be known. Bit i of ``known[node]``, of
        `width`, is whether coalition i contains the node. A member of a coalition is reached if
        the ball comes to it, even if it stops there: it then depends on the source given the rest.
        """
        every = (1 << width) - 1
        n_latent = len(self._parents) - self._n_nodes
        inside = [*known, *([0] * n_latent)]
        outside = [every ^ row for row in inside]
        from_child = [0] * len(inside)
        from_parent = [0] * len(inside)
        # Nodes with something new to pass on to their parents and children.
        news_up = bytearray(len(inside))
        news_down = bytearray(len(inside))
        for source in sources:
            from_child[source] = every
            news_up[source] = news_down[source] = 1

        parents, children = self._parents, self._children
        downwards = self._order
        upwards = downwards[::-1]
        while 1 in news_up or 1 in news_down:
            for node in upwards:
                if news_up[node]:
                    news_up[node] = 0
                    sent = from_child[node] & outside[node] | from_parent[node] & inside[node]
                    for parent in parents[node]:
                        total = from_child[parent] | sent
                        if total != from_child[parent]:
                            from_child[parent] = total
                            news_up[parent] = news_down[parent] = 1
            for node in downwards:
                if news_down[node]:
                    news_down[node] = 0
                    sent = (from_child[node] | from_parent[node]) & outside[node]
                    for child in children[node]:
                        total = from_parent[child] | sent
                        if total != from_parent[child]:
                            from_parent[child] = total
                            news_up[child] = news_down[child] = 1
        return [from_child[node] | from_parent[node] for node in range(self._n_nodes)]
