"""The ancestor relation of a DAG that changes by one edge at a time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from dsage.structure.scores.base import Parents

Mask = npt.NDArray[np.bool_]


class Ancestry:
    """The ancestor relation of a DAG, as sets of bits: integers with bit j for node j."""

    def __init__(self, parents: Sequence[Parents]) -> None:
        self._n_nodes = len(parents)
        self._n_bytes = -(-self._n_nodes // 8)
        self._parents: list[set[int]] = [set() for _ in parents]
        self._children: list[set[int]] = [set() for _ in parents]
        # Each node is among its own ancestors and descendants.
        self.above = [1 << node for node in range(self._n_nodes)]
        self.below = [1 << node for node in range(self._n_nodes)]
        for head, tails in enumerate(parents):
            for tail in tails:
                self.add(tail, head)

    def has_path(self, tail: int, head: int) -> bool:
        """Return whether there is a directed path, or the two nodes are the same."""
        return bool(self.below[tail] >> head & 1)

    def has_other_path(self, tail: int, head: int) -> bool:
        """Return whether there is a directed path other than the edge tail -> head."""
        return any(self.below[child] >> head & 1 for child in self._children[tail] if child != head)

    def add(self, tail: int, head: int) -> None:
        """Add the edge tail -> head, which must not close a cycle."""
        self._parents[head].add(tail)
        self._children[tail].add(head)
        if self.has_path(tail, head):
            return
        above, below = self.above[tail], self.below[head]
        for node in self.members(above).tolist():
            self.below[node] |= below
        for node in self.members(below).tolist():
            self.above[node] |= above

    def remove(self, tail: int, head: int) -> None:
        """Remove the edge tail -> head."""
        self._parents[head].discard(tail)
        self._children[tail].discard(head)
        if self.has_other_path(tail, head):
            return
        self._rebuild(self.above[tail], self.below, self._children)
        self._rebuild(self.below[head], self.above, self._parents)

    def _rebuild(self, nodes: int, sets: list[int], nearest: list[set[int]]) -> None:
        # A node has more descendants than any of its descendants (and likewise for ancestors), so
        # in this order a set is built from sets that are already correct.
        order = sorted(self.members(nodes).tolist(), key=lambda node: sets[node].bit_count())
        for node in order:
            made = 1 << node
            for near in nearest[node]:
                made |= sets[near]
            sets[node] = made

    def members(self, nodes: int) -> npt.NDArray[np.intp]:
        """Return the nodes of a set of bits, in increasing order."""
        return np.flatnonzero(self.masks((nodes,))[0])

    def masks(self, sets: Iterable[int]) -> Mask:
        """Return sets of bits as boolean rows, shape (n_sets, n_nodes)."""
        packed = b"".join([nodes.to_bytes(self._n_bytes, "little") for nodes in sets])
        rows = np.frombuffer(packed, dtype=np.uint8).reshape(-1, self._n_bytes)
        bits = np.unpackbits(rows, axis=1, count=self._n_nodes, bitorder="little")
        return bits.view(np.bool_)
