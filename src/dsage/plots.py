"""Draw results with matplotlib (extra ``plot``)."""

from __future__ import annotations

import networkx as nx

from dsage.graphs import Graph
from dsage.graphs.graph import check_graph

try:
    from matplotlib import pyplot as plt
    from matplotlib.axes import Axes
    from matplotlib.patches import FancyArrowPatch, Patch
except ImportError as error:
    raise ImportError(
        "dsage.plots needs matplotlib; install it with: pip install 'dsage[plot]'."
    ) from error

# Okabe & Ito's palette, told apart by every kind of colour vision; light enough for black text.
_TARGET, _BLANKET, _OTHER = "#E69F00", "#9BD3F5", "#F2F2F2"


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
    columns = _columns(graph)
    if ax is None:
        longest = max(map(len, graph.names), default=1)
        width = len(columns) * (0.9 + 0.11 * longest)
        height = 0.8 + 0.55 * max(map(len, columns), default=1)
        _, ax = plt.subplots(figsize=(max(width, 4.0), max(height, 2.0)), layout="constrained")
    boxes = {}
    for x, column in enumerate(columns):
        for row, name in enumerate(column):
            colour = _TARGET if name == target else _BLANKET if name in blanket else _OTHER
            style = {"boxstyle": "round,pad=0.35", "facecolor": colour, "edgecolor": "#333333"}
            # Neighbouring columns are shifted, so that fewer edges run through a box.
            y = (len(column) - 1) / 2 - row + 0.2 * (-1) ** x
            boxes[name] = ax.text(
                x, y, name, ha="center", va="center", bbox=style, parse_math=False
            )

    joined = [(edge, "-|>", "solid") for edge in graph.edges]
    joined += [(pair, "<|-|>", "dashed") for pair in graph.bidirected]
    for (tail, head), arrow, line in joined:
        ax.add_patch(
            FancyArrowPatch(
                boxes[tail].get_position(),
                boxes[head].get_position(),
                arrowstyle=arrow,
                linestyle=line,
                connectionstyle="arc3,rad=0.08",
                mutation_scale=11,
                color="#555555",
                patchA=boxes[tail].get_bbox_patch(),
                patchB=boxes[head].get_bbox_patch(),
                # After the boxes, whose outlines are known only once they are drawn.
                zorder=boxes[tail].get_zorder() + 1,
            )
        )
    if target is not None:
        handles = [
            Patch(facecolor=_TARGET, edgecolor="#333333", label="target"),
            Patch(facecolor=_BLANKET, edgecolor="#333333", label="its Markov blanket"),
        ]
        ax.legend(
            handles=handles, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False
        )
    tallest = max(map(len, columns), default=1)
    ax.set_xlim(-0.6, len(columns) - 0.4)
    ax.set_ylim(-tallest / 2 - 0.4, tallest / 2 + 0.4)
    ax.set_axis_off()
    return ax


def _columns(graph: Graph) -> list[list[str]]:
    """Return the nodes by their longest distance from a root; a cycle shares a column.

    Within a column they are sorted by the mean position of their neighbours, a few times back
    and forth, which removes most crossings.
    """
    directed = nx.DiGraph(list(graph.edges))
    directed.add_nodes_from(graph.names)
    condensed = nx.condensation(directed)
    columns = [
        sorted(
            (name for part in parts for name in condensed.nodes[part]["members"]),
            key=graph.names.index,
        )
        for parts in nx.topological_generations(condensed)
    ]
    neighbours = nx.Graph(list(graph.edges) + list(graph.bidirected))
    neighbours.add_nodes_from(graph.names)
    for _ in range(8):
        height = {
            name: row - (len(column) - 1) / 2
            for column in columns
            for row, name in enumerate(column)
        }

        def barycentre(name: str, height: dict[str, float] = height) -> float:
            near = [height[other] for other in neighbours[name]]
            return sum(near) / len(near) if near else height[name]

        columns = [sorted(column, key=barycentre) for column in columns]
    return columns
