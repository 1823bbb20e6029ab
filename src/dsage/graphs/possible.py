"""Which nodes a ball may reach in a graph whose edges have unknown ends, for many coalitions.

A walk is possibly open given a coalition if every inner node b is: with the marks m and n of the
two edges of the walk at b,

- b may be a non-collider, and passes the ball if it is unknown, unless m and n are both arrows;
- b may be a collider, and passes the ball if it is known, unless m or n is a tail.

At an unknown node the ball does not turn back over the edge on which it came. If every unshielded
collider is marked, one more rule applies: a node b between a and c, two different nodes that are
not adjacent, is a collider only if m and n are both arrows.

An unknown collider that may have a known descendant s is passed by going to s and back. So possible
descendants need no separate definition: they are the nodes that the ball reaches over edges without
an arrow at the near end and without a tail at the far end.

*No separation is invented.* Let the true graph be a maximal ancestral graph with these edges and
marks. A walk that is open in it is possibly open, because its marks are drawn or circles, and a
circle forbids nothing. This leaves walks that turn back at unknown nodes, w - x - b - x - v. They
need not be considered: w - x - v is open, too. Since b is a non-collider, its mark is a tail. If
the mark at x is an arrow, either x is known and a collider both times, so all marks at x are
arrows; or x is unknown and a non-collider both times, so those of w and v are tails. If the mark at
x is a tail, x is unknown and the edge undirected, so an ancestral graph has no arrow at x.

*Nodes that are not reached may become known.* The rules depend on one node, its two edges and
whether it is known. A walk has to come to a node before this matters, so the nodes that are reached
do not change if a node that is not reached becomes known, or is no longer known. From this follow
weak union, contraction and intersection: the separations are a compositional graphoid, as those of
a graph.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple


class Mark(StrEnum):
    """The end of an edge."""

    TAIL = "tail"
    ARROW = "arrow"
    CIRCLE = "circle"


class MarkedEdge(NamedTuple):
    """An edge between two nodes, with the marks at its ends."""

    one: int
    other: int
    at_one: Mark
    at_other: Mark

    def reversed(self) -> MarkedEdge:
        """Return the same edge, from the other end."""
        return MarkedEdge(self.other, self.one, self.at_other, self.at_one)


class _Next(NamedTuple):
    """Where a walk may go after a step, by the condition on the node between."""

    if_unknown: list[int]
    if_known: list[int]
    always: list[int]


class PossibleReachability:
    """Walks that may be open from source nodes, for one coalition per bit of the bit rows."""

    def __init__(
        self, n_nodes: int, edges: Iterable[MarkedEdge], *, colliders_marked: bool
    ) -> None:
        # Each edge can be walked in both directions.
        steps = [step for edge in edges for step in (edge, edge.reversed())]
        self._from: list[list[int]] = [[] for _ in range(n_nodes)]
        for number, step in enumerate(steps):
            self._from[step.one].append(number)
        self._to = [step.other for step in steps]
        adjacent = {(step.one, step.other) for step in steps}
        self._next = [_Next([], [], []) for _ in steps]
        for step, follow in zip(steps, self._next, strict=True):
            for number in self._from[step.other]:
                onward = steps[number]
                marks = {step.at_other, onward.at_one}
                turns_back = step.one == onward.other
                is_shielded = turns_back or (step.one, onward.other) in adjacent
                if marks == {Mark.ARROW}:
                    follow.if_known.append(number)
                elif Mark.TAIL in marks or (colliders_marked and not is_shielded):
                    if not turns_back:
                        follow.if_unknown.append(number)
                elif turns_back:
                    follow.if_known.append(number)
                else:
                    follow.always.append(number)

    def reached(self, sources: Iterable[int], known: Sequence[int], width: int) -> list[int]:
        """Return, per node, the bit row of the coalitions under which it may be reached.

        As for :meth:`dsage.graphs.reachability.Reachability.reached`.
        """
        every = (1 << width) - 1
        rows = [0] * len(self._to)
        reached = [0] * len(self._from)
        waiting: deque[int] = deque()
        is_waiting = bytearray(len(rows))
        for source in sources:
            reached[source] = every
            for number in self._from[source]:
                rows[number] = every
                is_waiting[number] = 1
                waiting.append(number)
        while waiting:
            number = waiting.popleft()
            is_waiting[number] = 0
            row, node, follow = rows[number], self._to[number], self._next[number]
            reached[node] |= row
            inside = row & known[node]
            sent_over = ((follow.if_unknown, row ^ inside), (follow.if_known, inside))
            for numbers, sent in (*sent_over, (follow.always, row)):
                if not sent:
                    continue
                for after in numbers:
                    total = rows[after] | sent
                    if total != rows[after]:
                        rows[after] = total
                        if not is_waiting[after]:
                            is_waiting[after] = 1
                            waiting.append(after)
        return reached
