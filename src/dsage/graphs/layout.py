"""Where the nodes and edges of a graph stand in a drawing: numbers only, drawn elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import networkx as nx

from dsage.graphs.graph import Graph, check_graph

Point = tuple[float, float]
Edge = tuple[str, str]
# What stands in a column: a node, or the place at which a longer edge passes.
_Slot = str | tuple[str, str, int]

# Sweeps over the columns; crossings hardly become fewer after that.
_N_SWEEPS = 12
# The height of a passing edge, where that of a node is one.
_PASSING = 0.45


@dataclass(frozen=True)
class Drawing:
    """Where everything stands.

    Attributes
    ----------
    places : dict from str to (float, float)
        The centre of each node. x is its column, 0 or more; y goes up, around zero. Nodes of one
        column are at least one apart.
    routes : dict from (str, str) to tuple of (float, float)
        The points that each directed edge passes: its tail, one point in each column between, its
        head. Bidirected edges pass nothing, and are not here.
    """

    places: dict[str, Point]
    routes: dict[Edge, tuple[Point, ...]]

    @property
    def n_columns(self) -> int:
        """How many columns there are."""
        return 1 + int(max((x for x, _ in self.places.values()), default=-1.0))

    @property
    def heights(self) -> Point:
        """The lowest and the highest place that is taken."""
        points = [
            *self.places.values(),
            *(point for route in self.routes.values() for point in route),
        ]
        heights = [y for _, y in points] or [0.0]
        return min(heights), max(heights)


def layered(graph: Graph) -> Drawing:
    """Lay a graph out in columns, with causes to the left of their effects.

    Parameters
    ----------
    graph : Graph
        The graph. The nodes of a directed cycle share a column.

    Returns
    -------
    Drawing

    Examples
    --------
    >>> drawing = layered(Graph(["a", "b", "c"], [("a", "b"), ("b", "c"), ("a", "c")]))
    >>> [x for x, _ in drawing.places.values()]
    [0.0, 1.0, 2.0]
    >>> [x for x, _ in drawing.routes["a", "c"]]
    [0.0, 1.0, 2.0]
    """
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
    """Return what each directed edge passes: its tail, a slot a column between, its head."""
    routes: dict[Edge, list[_Slot]] = {}
    for tail, head in graph.edges:
        between = range(column[tail] + 1, column[head])
        routes[tail, head] = [tail, *((tail, head, number) for number in between), head]
    return routes


def _places(
    graph: Graph, column: dict[str, int], routes: dict[Edge, list[_Slot]]
) -> dict[_Slot, Point]:
    """Return where everything stands.

    Within a column nodes and passing edges are sorted by the mean height of their neighbours, a
    few times back and forth, which removes most crossings.
    """
    columns: list[list[_Slot]] = [[] for _ in range(max(column.values(), default=-1) + 1)]
    for name in graph.names:
        columns[column[name]].append(name)
    neighbours = nx.Graph(list(graph.bidirected))
    neighbours.add_nodes_from(graph.names)
    for route in routes.values():
        neighbours.add_edges_from(pairwise(route))
        for slot in route[1:-1]:
            columns[int(slot[2])].append(slot)
    height = _heights(columns)
    for _ in range(_N_SWEEPS):
        for slots in columns:
            wanted = {
                slot: (height[slot] + sum(height[other] for other in neighbours[slot]))
                / (1 + len(neighbours[slot]))
                for slot in slots
            }
            slots.sort(key=wanted.__getitem__)
            height |= _heights([slots])
    return {slot: (float(x), height[slot]) for x, slots in enumerate(columns) for slot in slots}


def _heights(columns: list[list[_Slot]]) -> dict[_Slot, float]:
    """Return heights around zero: a node takes one, a passing edge less."""
    height: dict[_Slot, float] = {}
    for slots in columns:
        sizes = [1.0 if isinstance(slot, str) else _PASSING for slot in slots]
        top = 0.0
        for slot, size in zip(slots, sizes, strict=True):
            height[slot] = top + size / 2 - sum(sizes) / 2
            top += size
    return height
