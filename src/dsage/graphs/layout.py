"""Positions of the nodes and edges of a graph in a drawing."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import networkx as nx

from dsage.graphs.graph import Graph, check_graph

Point = tuple[float, float]
Edge = tuple[str, str]
# A node, or the place in a column through which a longer edge passes.
_Slot = str | tuple[str, str, int]

# Sweeps over the columns; more of them hardly remove further crossings.
_N_SWEEPS = 12
# Height of a passing edge, relative to a node.
_PASSING = 0.45


@dataclass(frozen=True)
class Drawing:
    """Centers of nodes, and points on directed edges: tail, one in each column between, head.

    x is the column, 0 or more; y goes up, around zero. Nodes of a column are at least one apart.
    """

    places: dict[str, Point]
    routes: dict[Edge, tuple[Point, ...]]

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return 1 + int(max((x for x, _ in self.places.values()), default=-1.0))

    @property
    def heights(self) -> Point:
        """The lowest and the highest position."""
        heights = [y for route in (self.places.values(), *self.routes.values()) for _, y in route]
        return min(heights, default=0.0), max(heights, default=0.0)


def layered(graph: Graph) -> Drawing:
    """Lay a graph out in columns, with causes left of their effects; a cycle shares a column."""
    check_graph(graph)
    column = _columns(graph)
    routes = _routes(graph, column)
    place = _places(graph, column, routes)
    return Drawing(
        {name: place[name] for name in graph.names},
        {edge: tuple(place[slot] for slot in route) for edge, route in routes.items()},
    )


def _columns(graph: Graph) -> dict[str, int]:
    """Return the column of each node: its longest distance from a root; a cycle shares one."""
    directed = nx.DiGraph(list(graph.edges))
    directed.add_nodes_from(graph.names)
    condensed = nx.condensation(directed)
    return {
        name: number
        for number, parts in enumerate(nx.topological_generations(condensed))
        for part in parts
        for name in condensed.nodes[part]["members"]
    }


def _routes(graph: Graph, column: dict[str, int]) -> dict[Edge, list[_Slot]]:
    """Return the slots of each directed edge: tail, one per column between, head."""
    routes: dict[Edge, list[_Slot]] = {}
    for tail, head in graph.edges:
        between = range(column[tail] + 1, column[head])
        routes[tail, head] = [tail, *((tail, head, number) for number in between), head]
    return routes


def _places(
    graph: Graph, column: dict[str, int], routes: dict[Edge, list[_Slot]]
) -> dict[_Slot, Point]:
    """Return the positions of all slots.

    Within a column, nodes and passing edges are repeatedly sorted by the mean height of their
    neighbors, which removes most crossings.
    """
    columns: list[list[_Slot]] = [[] for _ in range(max(column.values(), default=-1) + 1)]
    for name in graph.names:
        columns[column[name]].append(name)
    neighbors = nx.Graph(list(graph.bidirected))
    neighbors.add_nodes_from(graph.names)
    for route in routes.values():
        neighbors.add_edges_from(pairwise(route))
        for slot in route[1:-1]:
            columns[int(slot[2])].append(slot)
    height = _heights(columns)
    for _ in range(_N_SWEEPS):
        for slots in columns:
            wanted = {
                slot: (height[slot] + sum(height[other] for other in neighbors[slot]))
                / (1 + len(neighbors[slot]))
                for slot in slots
            }
            slots.sort(key=wanted.__getitem__)
            height |= _heights([slots])
    return {slot: (float(x), height[slot]) for x, slots in enumerate(columns) for slot in slots}


def _heights(columns: list[list[_Slot]]) -> dict[_Slot, float]:
    """Return heights around zero, where a node takes one and a passing edge less."""
    height: dict[_Slot, float] = {}
    for slots in columns:
        sizes = [1.0 if isinstance(slot, str) else _PASSING for slot in slots]
        top = 0.0
        for slot, size in zip(slots, sizes, strict=True):
            height[slot] = top + size / 2 - sum(sizes) / 2
            top += size
    return height
