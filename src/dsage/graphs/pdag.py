"""Partially directed graphs as sets of bits: classes of equivalent DAGs, and DAGs of a class.

A search that asks for them thousands of times needs them on integers instead of names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

Parents = tuple[int, ...]


def members(bits: int) -> Iterator[int]:
    """Yield the nodes of a set of bits, in increasing order: 0, 1, 3 for 0b1011."""
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest


def bits_of(nodes: Iterable[int]) -> int:
    """Return nodes as a set of bits."""
    bits = 0
    for node in nodes:
        bits |= 1 << node
    return bits


@dataclass
class Pdag:
    """Directed and undirected edges; all sets are integers with bit j for node j."""

    parents: list[int]  # of every node: the tails of the directed edges into it
    neighbors: list[int]  # of every node: the other ends of its undirected edges

    @classmethod
    def of_class(cls, parents: Sequence[Parents]) -> Pdag:
        """Return the CPDAG of a DAG, by the labeling of Chickering (1995).

        Nodes are visited in topological order, and the last parent of a node decides. If every
        compelled parent of that parent is a parent of the node too, and every other parent of the
        node is a parent of that parent, then only the edges from the former are compelled;
        otherwise all edges into the node are.
        """
        above = [bits_of(tails) for tails in parents]
        compelled = [0] * len(parents)
        neighbors = [0] * len(parents)
        order = topological_order(parents)
        rank = {node: place for place, node in enumerate(order)}
        for head in order:
            if not above[head]:
                continue
            tail = max(parents[head], key=rank.__getitem__)
            beside = above[head] ^ (1 << tail)
            # Compelled by a v-structure here, or by the need to avoid one through the tail.
            if compelled[tail] & ~beside or beside & ~above[tail]:
                compelled[head] = above[head]
            else:
                compelled[head] = compelled[tail]
            reversible = above[head] & ~compelled[head]
            neighbors[head] |= reversible
            for near in members(reversible):
                neighbors[near] |= 1 << head
        return cls(compelled, neighbors)

    def children(self) -> list[int]:
        """Return, for every node, the heads of the directed edges out of it."""
        children = [0] * len(self.parents)
        for head, tails in enumerate(self.parents):
            for tail in members(tails):
                children[tail] |= 1 << head
        return children

    def copy(self) -> Pdag:
        """Return a copy that can be changed."""
        return Pdag(list(self.parents), list(self.neighbors))

    def direct(self, tail: int, head: int) -> None:
        """Direct the undirected edge tail - head from tail to head."""
        self.neighbors[tail] &= ~(1 << head)
        self.neighbors[head] &= ~(1 << tail)
        self.parents[head] |= 1 << tail

    def remove(self, tail: int, head: int) -> None:
        """Remove the edge tail -> head or tail - head."""
        self.parents[head] &= ~(1 << tail)
        self.neighbors[tail] &= ~(1 << head)
        self.neighbors[head] &= ~(1 << tail)

    def to_dag(self) -> list[Parents] | None:
        """Direct all edges so that no cycle and no new v-structure arises; None if impossible.

        The algorithm of Dor & Tarsi (1992): a node without children, whose undirected neighbors
        are adjacent to all nodes around it, can be the last of the remaining nodes.
        """
        parents, neighbors = list(self.parents), list(self.neighbors)
        children = self.children()
        left = (1 << len(parents)) - 1
        waiting = list(range(len(parents) - 1, -1, -1))
        while waiting:
            node = waiting.pop()
            if not left >> node & 1 or children[node] & left:
                continue
            near, around = neighbors[node] & left, (neighbors[node] | parents[node]) & left
            if any(
                around & ~(parents[other] | children[other] | neighbors[other] | 1 << other)
                for other in members(near)
            ):
                continue
            left ^= 1 << node
            parents[node] |= near
            # Only these nodes may have become last.
            waiting.extend(reversed(list(members(around))))
        return None if left else [tuple(members(tails)) for tails in parents]


def topological_order(parents: Sequence[Parents]) -> list[int]:
    """Return the nodes of a DAG with all parents of a node before it."""
    children: list[list[int]] = [[] for _ in parents]
    for head, tails in enumerate(parents):
        for tail in tails:
            children[tail].append(head)
    waits_for = [len(tails) for tails in parents]
    order = [node for node, count in enumerate(waits_for) if not count]
    for node in order:
        for child in children[node]:
            waits_for[child] -= 1
            if not waits_for[child]:
                order.append(child)
    return order
