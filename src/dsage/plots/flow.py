"""The flow along the edges of a graph to the model."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Literal

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import FancyArrowPatch, PathPatch
from matplotlib.path import Path
from matplotlib.text import Text

from dsage._check import check_count, refusal
from dsage.graphs import Graph
from dsage.graphs.layout import Point, layered
from dsage.plots import style
from dsage.plots.fonts import n_columns, text_style, wrap
from dsage.plots.network import spread
from dsage.result.flow import FlowExplanation

_NODE, _TARGET, _MODEL = "#F2F2F2", style.ORANGE, "#E3E3E3"
_MORE, _LESS, _NOTHING = style.BLUE, "#C0392B", "#BBBBBB"
# Widths of the widest edge and of an edge without flow, in points.
_WIDEST, _THINNEST = 9.0, 0.6
# Letters per line of a name; height of a line of nodes in inches.
_NAME, _UNIT = 20, 0.85
_ALPHA = 0.55
# Edges that carry less than this share of the largest value have no label.
_LEAST = 0.01
# Possible places of labels between two columns, as shares of the distance; the best one first.
_PARTS = (0.5, 0.42, 0.58, 0.34, 0.66, 0.26, 0.74)
# Inches around the name of a node.
_PADDING = 0.1


def flow(
    explanation: FlowExplanation, *, top: int = 20, confidence: float = 0.95, ax: Axes | None = None
) -> Axes:
    """Draw the graph with edges as wide as the flow along them to the model.

    Blue edges reduce the risk, red ones increase it. Nodes and edges are labeled with values and
    half the width of their intervals for the population; a node's own value is the flow from its
    source.

    Parameters
    ----------
    explanation : FlowExplanation
        The result of :func:`dsage.explain_flow`.
    top : int, default=20
        Number of edges with labels, those with the largest flow.
    confidence : float, default=0.95
        Confidence level of the intervals.
    ax : matplotlib Axes, optional
        The axes; by default, a new figure that fits the graph is created.

    Returns
    -------
    matplotlib Axes
    """
    frame = _check(explanation).to_frame(confidence)
    check_count(top, "top", minimum=0)
    drawn = frame[frame["kind"] != "source"]
    own = frame[frame["kind"] == "source"].set_index("target")
    sink = "model"
    while sink in explanation.graph:
        sink += "'"
    lines: list[Any] = list(drawn.itertuples(index=False))
    pairs = [
        (str(line.source), sink if line.kind == "model" else str(line.target)) for line in lines
    ]
    names = [*dict.fromkeys([*explanation.nodes, *(name for pair in pairs for name in pair)])]
    labels = {name: _node_label(name, own, explanation) for name in names}
    labels[sink] = _model_label(explanation)
    drawing, width = spread(layered(Graph(names, pairs)), labels, between=1.35)
    low, high = drawing.heights
    if ax is None:
        ax = style.new_axes(max(width, 4.0), max(_UNIT * (high - low + 1) + 0.9, 2.2))
    boxes = _draw_nodes(ax, drawing.places, labels, explanation.target, sink)
    largest = float(np.abs(drawn["value"]).max())
    for pair, line in zip(pairs, lines, strict=True):
        ends = boxes[pair[0]], boxes[pair[1]]
        _draw_edge(ax, list(drawing.routes[pair]), ends, *_style(line.value, largest))
    room = _Room(drawing.places, labels)
    ranked = np.argsort(-np.abs(drawn["value"].to_numpy()), kind="stable")[:top]
    for at in ranked.tolist():
        if abs(lines[at].value) >= _LEAST * largest > 0:
            text = _number(lines[at])
            place = room.find(list(drawing.routes[pairs[at]]), text)
            _write(ax, place, text)
    style.legend_above(ax, _handles(drawn, explanation, confidence))
    ax.set_xlim(0.0, width)
    ax.set_ylim(low - 0.75, high + 0.75)
    ax.set_axis_off()
    return ax


def _check(explanation: object) -> FlowExplanation:
    if isinstance(explanation, FlowExplanation):
        return explanation
    advice = "Pass what dsage.explain_flow returns"
    found = type(explanation).__name__
    raise refusal("explanation", "a FlowExplanation", found, advice, TypeError)


def _node_label(name: str, own: pd.DataFrame, explanation: FlowExplanation) -> str:
    """Return the name of a node, with the flow from its source."""
    label = wrap(name, _NAME)
    if name not in own.index:
        return label
    return f"{label}\n{'own' if explanation.sources == 'noise' else 'do'} {_number(own.loc[name])}"


def _model_label(explanation: FlowExplanation) -> str:
    return f"model\n{explanation.reduction:,.4g} in all"


def _number(line: Any) -> str:  # noqa: ANN401
    """Return a value with half the width of its interval, rounded accordingly."""
    half = (line.upper_total - line.lower_total) / 2
    if not np.isfinite(half):
        half = (line.upper - line.lower) / 2
    if not half:
        return f"{line.value:.3g}"
    n_decimals = int(np.clip(1 - np.floor(np.log10(half)), 0, 12))
    return f"{line.value:,.{n_decimals}f} ± {half:,.{n_decimals}f}"


def _draw_nodes(
    ax: Axes, places: dict[str, Point], labels: dict[str, str], target: str, sink: str
) -> dict[str, Text]:
    boxes = {}
    for name, place in places.items():
        color = _TARGET if name == target else _MODEL if name == sink else _NODE
        shape = "square,pad=0.4" if name == sink else "round,pad=0.35"
        boxes[name] = ax.text(
            *place,
            labels[name],
            ha="center",
            va="center",
            fontsize=style.SIZE,
            color=style.INK,
            zorder=4,
            bbox={"boxstyle": shape, "facecolor": color, "edgecolor": "#333333", "linewidth": 0.8},
            **text_style(),
        )
    return boxes


def _style(value: float, largest: float) -> tuple[float, str]:
    """Return the width, in points, and the color of an edge."""
    share = abs(value) / largest if largest else 0.0
    color = _NOTHING if value == 0 else _MORE if value > 0 else _LESS
    return _THINNEST + (_WIDEST - _THINNEST) * share, color


def _draw_edge(
    ax: Axes, points: list[Point], ends: tuple[Text, Text], width: float, color: str
) -> None:
    """Draw a curve through the points, with an arrow at its end."""
    if len(points) > 2:
        look: dict[str, Any] = {"edgecolor": color, "linewidth": width, "alpha": _ALPHA}
        dashes = "--" if color == _NOTHING else "-"
        curve = PathPatch(_curve(points[:-1]), fill=False, zorder=1, linestyle=dashes, **look)
        ax.add_patch(curve)
    is_short = len(points) == 2
    head = f"head_width={width + 6.0:.3f},head_length={0.6 * width + 6.0:.3f}"
    ax.add_patch(
        FancyArrowPatch(
            points[-2],
            points[-1],
            # A polygon: the outline of other arrows grows with their width, and hides their tips.
            arrowstyle=f"simple,tail_width={width:.3f},{head}",
            mutation_scale=1.0,
            facecolor=color,
            linewidth=0.0,
            alpha=_ALPHA,
            patchA=ends[0].get_bbox_patch() if is_short else None,
            patchB=ends[1].get_bbox_patch(),
            shrinkA=1.0 if is_short else 0.0,
            zorder=2,
        )
    )


def _curve(points: list[Point]) -> Path:
    vertices, codes = [points[0]], [Path.MOVETO]
    for (x, y), (then_x, then_y) in pairwise(points):
        middle = (x + then_x) / 2
        vertices += [(middle, y), (middle, then_y), (then_x, then_y)]
        codes += [Path.CURVE4] * 3
    return Path(vertices, codes)


class _Room:
    """Keep track of occupied areas, so that labels of edges do not cover names or each other."""

    def __init__(self, places: dict[str, Point], labels: dict[str, str]) -> None:
        self._taken = [_extent(place, labels[name], _PADDING) for name, place in places.items()]

    def find(self, points: list[Point], text: str) -> Point:
        """Return the place on an edge with the most room for a text, and mark it as occupied."""
        pieces = list(enumerate(pairwise(points)))
        # Near its ends an edge has many neighbors.
        pieces.sort(key=lambda piece: abs(piece[0] - (len(pieces) - 1) / 2))
        places = [
            (x + part * (then_x - x), y + _bend(part, is_last=at == len(pieces) - 1) * (then_y - y))
            for at, ((x, y), (then_x, then_y)) in pieces
            for part in _PARTS
        ]
        covered = [self._cover(_extent(place, text, 0.02)) for place in places]
        chosen = places[int(np.argmin(covered))]
        self._taken.append(_extent(chosen, text, 0.02))
        return chosen

    def _cover(self, extent: tuple[float, ...]) -> float:
        left, right, low, high = extent
        area = 0.0
        for other in self._taken:
            wide = min(right, other[1]) - max(left, other[0])
            tall = min(high, other[3]) - max(low, other[2])
            area += max(wide, 0.0) * max(tall, 0.0)
        return area


def _bend(part: float, *, is_last: bool) -> float:
    """Return how far up a curve is at a part of its way; the last piece is straight."""
    return part if is_last else part**2 * (3.0 - 2.0 * part)


def _extent(place: Point, text: str, padding: float) -> tuple[float, float, float, float]:
    """Return left, right, lower and upper end of a text, in the units of the axes."""
    size = style.SIZE if padding == _PADDING else style.SMALL
    wide = style.text_width(max(map(n_columns, text.split("\n"))), size) / 2 + padding
    tall = (style.LINE * (text.count("\n") + 1) / 2 + padding) / _UNIT
    return place[0] - wide, place[0] + wide, place[1] - tall, place[1] + tall


def _write(ax: Axes, place: Point, text: str) -> None:
    ax.text(
        *place,
        text,
        ha="center",
        va="center",
        fontsize=style.SMALL,
        color=style.INK,
        zorder=5,
        bbox={
            "boxstyle": "round,pad=0.1",
            "facecolor": "white",
            "edgecolor": "none",
            "alpha": 0.75,
        },
        **text_style(),
    )


def _handles(drawn: pd.DataFrame, explanation: FlowExplanation, confidence: float) -> list[Artist]:
    loss = explanation.loss.replace("_", " ")
    texts: list[tuple[str, Literal["-", "--"], str, Any]]
    texts = [(_MORE, "-", f"reduces the risk ({loss})", (drawn["value"] > 0).any())]
    texts.append((_LESS, "-", "increases it", (drawn["value"] < 0).any()))
    texts.append((_NOTHING, "--", "carries nothing", (drawn["value"] == 0).any()))
    handles: list[Artist] = [
        Line2D([], [], color=color, linestyle=dash, linewidth=3.0, alpha=0.7, label=text)
        for color, dash, text, is_there in texts
        if is_there
    ]
    note = f"± half of a {style.percent(confidence)} interval for the population"
    return [*handles, Line2D([], [], color="none", label=note)]
