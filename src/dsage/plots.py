"""Draw results with matplotlib (extra ``plot``)."""

from __future__ import annotations

from itertools import pairwise

import networkx as nx

from dsage.graphs import Graph
from dsage.graphs.graph import check_graph

try:
    from matplotlib import pyplot as plt
    from matplotlib.axes import Axes
    from matplotlib.patches import FancyArrowPatch, Patch, PathPatch
    from matplotlib.path import Path
    from matplotlib.text import Text
except ImportError as error:
    raise ImportError(
        "dsage.plots needs matplotlib; install it with: pip install 'dsage[plot]'."
    ) from error

# Okabe & Ito's palette, told apart by every kind of colour vision; light enough for black text.
_TARGET, _BLANKET, _OTHER = "#E69F00", "#9BD3F5", "#F2F2F2"
_LINE = "#555555"

# What stands in a column: a node, or the place at which a longer edge passes.
Slot = str | tuple[str, str, int]


def draw_graph(graph: Graph, target: str | None = None, *, ax: Axes | None = None) -> Axes:
    """Draw a graph with causes to the left of their effects.

    Parameters
    ----------
    graph : Graph
        The graph.
    target : str, optional
        Highlight this node and its Markov blanket.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure whose size follows the graph's.

    Returns
    -------
    matplotlib Axes
    """
    check_graph(graph)
    blanket = set(graph.markov_blanket(target)) if target is not None else set()
    routes = _routes(graph)
    place = _places(graph, routes)
    heights = [y for _, y in place.values()] or [0.0]
    n_columns = 1 + max((x for x, _ in place.values()), default=0.0)
    if ax is None:
        longest = max(map(len, graph.names), default=1)
        width = n_columns * (0.9 + 0.11 * longest)
        height = 1.2 + 0.55 * (max(heights) - min(heights))
        _, ax = plt.subplots(figsize=(max(width, 4.0), max(height, 2.0)), layout="constrained")
    boxes = {}
    for name in graph.names:
        colour = _TARGET if name == target else _BLANKET if name in blanket else _OTHER
        style = {"boxstyle": "round,pad=0.35", "facecolor": colour, "edgecolor": "#333333"}
        boxes[name] = ax.text(
            *place[name], name, ha="center", va="center", bbox=style, parse_math=False
        )
    for edge in graph.edges:
        _draw_edge(
            ax, [place[slot] for slot in routes[edge]], boxes[edge[0]], boxes[edge[1]], "-|>"
        )
    for one, other in graph.bidirected:
        _draw_edge(ax, [place[one], place[other]], boxes[one], boxes[other], "<|-|>")
    if target is not None:
        handles = [
            Patch(facecolor=_TARGET, edgecolor="#333333", label="target"),
            Patch(facecolor=_BLANKET, edgecolor="#333333", label="its Markov blanket"),
        ]
        ax.legend(
            handles=handles, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False
        )
    ax.set_xlim(-0.6, n_columns - 0.4)
    ax.set_ylim(min(heights) - 0.8, max(heights) + 0.8)
    ax.set_axis_off()
    return ax


def _draw_edge(
    ax: Axes, points: list[tuple[float, float]], tail: Text, head: Text, arrow: str
) -> None:
    """Draw a line through the points, and an arrow from the last but one of them to the box."""
    if len(points) > 2:
        # Between two columns an S that is level at both ends; it begins under the tail's box.
        vertices, codes = [points[0]], [Path.MOVETO]
        for (x, y), (then_x, then_y) in pairwise(points[:-1]):
            middle = (x + then_x) / 2
            vertices += [(middle, y), (middle, then_y), (then_x, then_y)]
            codes += [Path.CURVE4] * 3
        line = PathPatch(
            Path(vertices, codes), fill=False, edgecolor=_LINE, linewidth=1.0, zorder=1
        )
        ax.add_patch(line)
    is_level = points[-2][0] == points[-1][0]
    ax.add_patch(
        FancyArrowPatch(
            points[-2],
            points[-1],
            arrowstyle=arrow,
            linestyle="dashed" if arrow == "<|-|>" else "solid",
            connectionstyle="arc3,rad=0.3" if is_level else "arc3,rad=0.0",
            mutation_scale=11,
            color=_LINE,
            patchA=tail.get_bbox_patch() if len(points) == 2 else None,
            shrinkA=2.0 if len(points) == 2 else 0.0,
            patchB=head.get_bbox_patch(),
            # After the boxes, whose outlines are known only once they are drawn.
            zorder=head.get_zorder() + 1,
        )
    )


def _routes(graph: Graph) -> dict[tuple[str, str], list[Slot]]:
    """Return what each directed edge passes: its tail, a slot a column between, its head."""
    column = _columns(graph)
    routes: dict[tuple[str, str], list[Slot]] = {}
    for tail, head in graph.edges:
        between = range(column[tail] + 1, column[head])
        routes[tail, head] = [tail, *((tail, head, number) for number in between), head]
    return routes


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


def _places(
    graph: Graph, routes: dict[tuple[str, str], list[Slot]]
) -> dict[Slot, tuple[float, float]]:
    """Return where everything stands.

    Within a column nodes and passing edges are sorted by the mean height of their neighbours, a
    few times back and forth, which removes most crossings.
    """
    column = _columns(graph)
    columns: list[list[Slot]] = [[] for _ in range(max(column.values(), default=-1) + 1)]
    for name in graph.names:
        columns[column[name]].append(name)
    neighbours = nx.Graph(list(graph.bidirected))
    neighbours.add_nodes_from(graph.names)
    for route in routes.values():
        neighbours.add_edges_from(pairwise(route))
        for slot in route[1:-1]:
            columns[int(slot[2])].append(slot)
    height = _heights(columns)
    for _ in range(12):
        for slots in columns:
            wanted = {
                slot: (height[slot] + sum(height[other] for other in neighbours[slot]))
                / (1 + len(neighbours[slot]))
                for slot in slots
            }
            slots.sort(key=wanted.__getitem__)
            height |= _heights([slots])
    return {slot: (float(x), height[slot]) for x, slots in enumerate(columns) for slot in slots}


def _heights(columns: list[list[Slot]]) -> dict[Slot, float]:
    """Return heights around zero: a node takes one, a passing edge less."""
    height: dict[Slot, float] = {}
    for slots in columns:
        sizes = [1.0 if isinstance(slot, str) else 0.45 for slot in slots]
        top = 0.0
        for slot, size in zip(slots, sizes, strict=True):
            height[slot] = top + size / 2 - sum(sizes) / 2
            top += size
    return height
