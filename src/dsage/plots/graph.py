"""Draw results with matplotlib (extra ``plot``)."""

from __future__ import annotations

from itertools import pairwise

from dsage.graphs import Graph
from dsage.graphs.graph import check_graph
from dsage.graphs.layout import layered

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
    drawing = layered(graph)
    place = drawing.places
    heights, n_columns = drawing.heights, max(drawing.n_columns, 1)
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
        _draw_edge(ax, list(drawing.routes[edge]), boxes[edge[0]], boxes[edge[1]], "-|>")
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
