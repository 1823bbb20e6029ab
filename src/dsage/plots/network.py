"""The graph, with the target and its Markov blanket."""

from __future__ import annotations

from collections.abc import Container
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.lines import Line2D
from matplotlib.patches import FancyArrowPatch, Patch, PathPatch
from matplotlib.path import Path
from matplotlib.text import Text

from dsage._check import refusal
from dsage.graphs import Graph
from dsage.graphs.graph import check_graph
from dsage.graphs.layout import Drawing, Edge, Point, layered
from dsage.plots import style
from dsage.plots.fonts import n_columns, text_style, wrap
from dsage.result.explanation import Explanation

# Light enough for dark text.
_TARGET, _BLANKET, _OTHER = style.ORANGE, "#9BD3F5", "#F2F2F2"
_LINE = "#555555"
# Letters per line of a name.
_NAME = 22
# With more nodes only the target and its Markov blanket are drawn by default.
_MANY = 40


def graph(
    explanation: Explanation, *, blanket_only: bool | None = None, ax: Axes | None = None
) -> Axes:
    """Draw the graph of a run: the target, its Markov blanket, and how stable the edges are.

    If graphs were also learned from resamples of the rows, edges that occur in more of these
    graphs, in either direction, are wider and darker.

    Parameters
    ----------
    explanation : Explanation
        A run with a graph.
    blanket_only : bool, optional
        Draw only the target and its Markov blanket. By default for graphs of more than 40 nodes.
    ax : matplotlib Axes, optional
        The axes; by default, a new figure that fits the graph is created.

    Returns
    -------
    matplotlib Axes
    """
    whole = style.check_explanation(explanation).graph
    if whole is None:
        advice = "Explain with graph='learn' or with a graph"
        raise refusal("explanation", "of a run with a graph", "one without", advice)
    is_part = len(whole) > _MANY if blanket_only is None else blanket_only
    part = _around(whole, explanation.target) if is_part else whole
    note = None
    if len(part) < len(whole):
        note = f"the target and its Markov blanket: {len(part)} of {len(whole)} nodes"
    strength = explanation.edge_strength
    return _draw(part, explanation.target, strength, note, ax, whole.indicators)


def draw_graph(
    graph: Graph,
    target: str | None = None,
    *,
    strength: pd.DataFrame | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw a graph with causes to the left of their effects; indicators have a dashed outline.

    Parameters
    ----------
    graph : Graph
        The graph.
    target : str, optional
        Highlight this node and its Markov blanket.
    strength : pandas.DataFrame, optional
        How often each edge was found again, as :meth:`dsage.structure.Stability.to_frame` returns
        it: columns ``from``, ``to``, ``share_either``; edges that are missing were never found.
        More frequent edges are wider and darker.
    ax : matplotlib Axes, optional
        The axes; by default, a new figure that fits the graph is created.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> ax = draw_graph(Graph(["rain", "wet"], [("rain", "wet")]), "wet")
    >>> [text.get_text() for text in ax.texts]
    ['rain', 'wet']
    """
    return _draw(check_graph(graph), target, strength, None, ax, graph.indicators)


def _draw(
    graph: Graph,
    target: str | None,
    strength: pd.DataFrame | None,
    note: str | None,
    ax: Axes | None,
    indicators: Container[str],
) -> Axes:
    blanket = set(graph.markov_blanket(target)) if target is not None else set()
    share = None if strength is None else _shares(graph, strength)
    labels = {name: wrap(name, _NAME) for name in graph.names}
    drawing, width = spread(layered(graph), labels)
    low, high = drawing.heights
    if ax is None:
        n_lines = max((label.count("\n") + 1 for label in labels.values()), default=1)
        unit = max(0.5, style.LINE * n_lines + 0.28)
        ax = style.new_axes(max(width, 3.4), max(unit * (high - low + 1) + 0.7, 1.6))
    boxes: dict[str, Text] = {}
    for name in graph.names:
        color = _TARGET if name == target else _BLANKET if name in blanket else _OTHER
        box = {"boxstyle": "round,pad=0.35", "facecolor": color, "edgecolor": "#333333"}
        boxes[name] = ax.text(
            *drawing.places[name],
            labels[name],
            ha="center",
            va="center",
            fontsize=style.SIZE,
            color=style.INK,
            bbox={**box, "linewidth": 0.8, "linestyle": "--" if name in indicators else "-"},
            **text_style(),
        )
    for edge in graph.edges:
        points, ends = list(drawing.routes[edge]), (boxes[edge[0]], boxes[edge[1]])
        _draw_edge(ax, points, ends, "-|>", 1.0 if share is None else share[edge])
    for one, other in graph.bidirected:
        points = [drawing.places[one], drawing.places[other]]
        _draw_edge(ax, points, (boxes[one], boxes[other]), "<|-|>", 1.0)
    has_indicators = any(name in indicators for name in graph.names)
    style.legend_above(ax, _handles(target, share, has_indicators), title=note)
    ax.set_xlim(0.0, width)
    ax.set_ylim(low - 0.7, high + 0.7)
    ax.set_axis_off()
    return ax


def spread(
    drawing: Drawing, labels: dict[str, str], between: float = 0.75
) -> tuple[Drawing, float]:
    """Return the drawing with columns as wide as their names, and its width in inches."""
    widths = [0.0] * max(drawing.n_columns, 1)
    for name, (x, _) in drawing.places.items():
        widths[int(x)] = max(widths[int(x)], style.text_width(n_columns(labels[name])) + between)
    ends = [0.0, *accumulate(widths)]

    def move(point: Point) -> Point:
        return (ends[int(point[0])] + ends[int(point[0]) + 1]) / 2, point[1]

    places = {name: move(point) for name, point in drawing.places.items()}
    routes = {edge: tuple(map(move, route)) for edge, route in drawing.routes.items()}
    return Drawing(places, routes), ends[-1]


def _shares(graph: Graph, strength: pd.DataFrame) -> dict[Edge, float]:
    columns = ["from", "to", "share_either"]
    if not set(columns).issubset(strength.columns):
        condition, advice = (
            f"a frame with the columns {columns}",
            "Take it from Stability.to_frame()",
        )
        raise refusal("strength", condition, list(strength.columns), advice)
    lines = strength[columns].itertuples(index=False)
    found = {frozenset(edge): float(share) for *edge, share in lines}
    return {edge: found.get(frozenset(edge), 0.0) for edge in graph.edges}


def _around(graph: Graph, target: str) -> Graph:
    """Return the graph of the target and its Markov blanket, with the edges among them."""
    kept = {target, *graph.markov_blanket(target)}
    return Graph(
        [name for name in graph.names if name in kept],
        [edge for edge in graph.edges if kept.issuperset(edge)],
        [edge for edge in graph.bidirected if kept.issuperset(edge)],
    )


def _handles(
    target: str | None, share: dict[Edge, float] | None, has_indicators: bool
) -> list[Artist]:
    handles: list[Artist] = []
    if target is not None:
        handles = [
            Patch(facecolor=_TARGET, edgecolor="#333333", label="target"),
            Patch(facecolor=_BLANKET, edgecolor="#333333", label="its Markov blanket"),
        ]
    if has_indicators:
        text = "indicator of missing values"
        handles.append(Patch(facecolor="none", edgecolor="#333333", linestyle="--", label=text))
    if share:
        for part in (1.0, 0.5):
            width, color = _edge_style(part)
            text = f"edge in {style.percent(part)} of the graphs learned from resamples"
            handles.append(Line2D([], [], color=color, linewidth=width, label=text))
    return handles


def _edge_style(share: float) -> tuple[float, tuple[float, float, float]]:
    """Return width and color: pale rather than transparent, so that crossings look even."""
    part = 0.3 + 0.7 * min(max(share, 0.0), 1.0)
    color = 1.0 - part * (1.0 - np.array(to_rgb(_LINE)))
    return 0.5 + 1.3 * share, tuple(color.tolist())


def _draw_edge(
    ax: Axes, points: list[Point], ends: tuple[Text, Text], arrow: str, share: float
) -> None:
    """Draw a line through the points, and an arrow from the second-to-last point to the box."""
    tail, head = ends
    width, color = _edge_style(share)
    if len(points) > 2:
        # Between two columns an S-curve; it begins under the box of the tail.
        vertices, codes = [points[0]], [Path.MOVETO]
        for (x, y), (then_x, then_y) in pairwise(points[:-1]):
            middle = (x + then_x) / 2
            vertices += [(middle, y), (middle, then_y), (then_x, then_y)]
            codes += [Path.CURVE4] * 3
        line: dict[str, Any] = {"fill": False, "edgecolor": color, "linewidth": width}
        ax.add_patch(PathPatch(Path(vertices, codes), zorder=1, **line))
    # A straight line would be hidden by the nodes that it passes.
    is_bent = points[-2][0] == points[-1][0] or arrow == "<|-|>"
    ax.add_patch(
        FancyArrowPatch(
            points[-2],
            points[-1],
            arrowstyle=arrow,
            linestyle="dashed" if arrow == "<|-|>" else "solid",
            connectionstyle="arc3,rad=0.3" if is_bent else "arc3,rad=0.0",
            mutation_scale=11,
            color=color,
            linewidth=width,
            patchA=tail.get_bbox_patch() if len(points) == 2 else None,
            shrinkA=2.0 if len(points) == 2 else 0.0,
            patchB=head.get_bbox_patch(),
            # The outline of a box is known only after it is drawn.
            zorder=head.get_zorder() + 1,
        )
    )
