"""Causal values: direct and indirect parts, and the range over graphs."""

from __future__ import annotations

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from dsage._check import check_count, refusal
from dsage.estimate.graph_range import GraphRange
from dsage.plots import style
from dsage.plots.fonts import n_lines
from dsage.plots.rows import as_rows, draw_interval, draw_zero, interval_handles
from dsage.result.explanation import Explanation

# Inches: the thickness of a bar, and the least height of a row, without and with a range.
_BAR, _ROW, _TALL = 0.17, 0.26, 0.4


def parts(
    explanation: Explanation, *, top: int = 20, confidence: float = 0.95, ax: Axes | None = None
) -> Axes:
    """Draw the direct and the indirect part of each causal value as stacked bars.

    The direct part is the model's gain from the value itself, the indirect part the gain because
    setting the feature changes others. Parts with opposite signs are on different sides of zero. A
    diamond marks their sum, the value, with its interval for the population; a gray line marks its
    range over graphs that the data do not exclude, if there are several.

    Parameters
    ----------
    explanation : Explanation
        An explanation with ``estimand="causal"``.
    top : int, default=20
        The number of features that are shown.
    confidence : float, default=0.95
        Confidence level of the intervals.
    ax : matplotlib Axes, optional
        The axes; by default, a new figure that fits the names is created.

    Returns
    -------
    matplotlib Axes
    """
    if style.check_explanation(explanation).estimate.parts is None:
        advice = "Estimate with estimand='causal'"
        found = explanation.estimate.estimand
        raise refusal("explanation", "one of causal values", found, advice)
    shown = explanation.to_frame(confidence)[: check_count(top, "top")]
    has_range = explanation.range_graph is not None
    rows = as_rows(shown["feature"].tolist(), least=_TALL if has_range else _ROW)
    if ax is None:
        n_below = n_lines(style.value_label(explanation), style.LABEL)
        ax = style.new_axes(*rows.size(n_notes=5, n_below=n_below))
    direct, indirect = shown["direct"].to_numpy(), shown["indirect"].to_numpy()
    is_alike = np.sign(direct) == np.sign(indirect)
    ax.barh(rows.centers, direct, height=_BAR, color=style.BLUE)
    start = np.where(is_alike, direct, 0.0)
    ax.barh(rows.centers, indirect, left=start, height=_BAR, color=style.ORANGE)
    handles: list[Artist] = [
        Patch(color=style.BLUE, label="direct: from the value itself"),
        Patch(color=style.ORANGE, label="indirect: from other features that it changes"),
    ]
    low, high = shown["lower_total"].to_numpy(), shown["upper_total"].to_numpy()
    drawn = draw_interval(ax, rows.centers, low, high, color=style.INK, is_thick=False)
    handles += interval_handles(confidence, computing=False, population=drawn)
    ax.plot(shown["value"], rows.centers, "D", color=style.INK, markersize=4.0, zorder=6)
    handles.append(Line2D([], [], marker="D", color=style.INK, linestyle="none", label="value"))
    if has_range:
        below = rows.centers + 0.75 * _BAR
        ends = shown["lowest_graph"].to_numpy(), shown["highest_graph"].to_numpy()
        ax.hlines(below, *ends, color=style.GRAY, linewidth=2.0)
        handles.append(Line2D([], [], color=style.GRAY, linewidth=2.0, label="range over graphs"))
    draw_zero(ax)
    style.tidy(ax)
    rows.put(ax)
    style.label_x(ax, style.value_label(explanation))
    style.legend_above(ax, handles)
    return ax


def graph_range(explanation: Explanation, *, top: int = 20, ax: Axes | None = None) -> Axes:
    """Draw causal values with each graph that the data do not exclude.

    Parameters
    ----------
    explanation : Explanation
        An explanation with ``estimand="causal"``, and with a learned graph or a class of graphs.
    top : int, default=20
        The number of features that are shown.
    ax : matplotlib Axes, optional
        The axes; by default, a new figure that fits the names is created.

    Returns
    -------
    matplotlib Axes
    """
    found = style.check_explanation(explanation).range_graph
    if found is None:
        advice = "Causal values have one if the data leave directions of the graph undetermined"
        raise refusal("explanation", "one with range_graph", None, advice)
    order = np.argsort(-found.values, kind="stable")[: check_count(top, "top")]
    rows = as_rows([found.feature_names[at] for at in order])
    if ax is None:
        n_below = n_lines(style.value_label(explanation), style.LABEL)
        ax = style.new_axes(*rows.size(n_notes=4, n_below=n_below))
    ends = found.lowest[order], found.highest[order]
    ax.hlines(rows.centers, *ends, color=style.LIGHT, linewidth=4.0, zorder=1)
    handles = _draw_graphs(ax, found, order, rows.centers)
    draw_zero(ax)
    style.tidy(ax)
    rows.put(ax)
    style.label_x(ax, style.value_label(explanation))
    style.legend_above(ax, handles)
    return ax


def _draw_graphs(
    ax: Axes,
    found: GraphRange,
    order: np.ndarray[tuple[int], np.dtype[np.intp]],
    at: np.ndarray[tuple[int], np.dtype[np.float64]],
) -> list[Artist]:
    values = (found.values + found.differences)[:, order]
    handles: list[Artist] = []
    kinds = {
        False: ("o", style.BLUE, "other directions that fit the data as well"),
        True: ("x", style.VERMILION, "graphs learned from resamples of the rows"),
    }
    resampled = np.array(found.are_resampled, dtype=np.bool_)
    for is_resampled, (marker, color, text) in kinds.items():
        chosen = values[resampled == is_resampled]
        if not len(chosen):
            continue
        places = np.broadcast_to(at, chosen.shape)
        ax.plot(chosen.ravel(), places.ravel(), marker, color=color, markersize=5, alpha=0.8)
        handles.append(Line2D([], [], marker=marker, color=color, linestyle="none", label=text))
    ax.plot(found.values[order], at, "D", color=style.INK, markersize=5, zorder=6)
    own = Line2D([], [], marker="D", color=style.INK, linestyle="none", label="graph of the run")
    return [own, *handles]
