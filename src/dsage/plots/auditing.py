"""Skipped surpluses, and what skipping them changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.cbook import boxplot_stats
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from dsage._check import check_count, refusal
from dsage.estimate.result import MATTERS, TermEstimate
from dsage.plots import style
from dsage.plots.fonts import n_lines
from dsage.plots.rows import Rows, as_rows, draw_interval, draw_zero, n_shown
from dsage.result.explanation import Explanation

# Height of a box in inches.
_BOX = 0.15


def audit(
    explanation: Explanation,
    *,
    top: int = 20,
    confidence: float = 0.95,
    ax: Sequence[Axes] | None = None,
) -> npt.NDArray[np.object_]:
    """Draw the surpluses that were skipped, and by how much that changes the values.

    Left: for each feature a box plot of the surpluses that separation sets to zero, as the model
    computes them (quartiles, whiskers up to 1.5 times the interquartile range, and points beyond).
    For an optimal model and a true graph all of them are zero up to noise. Right: the estimated
    difference d-SAGE minus SAGE with its interval, and a zone of 2 % of the range of the values. A
    difference matters if it is significantly outside that zone, for all features at once.

    Parameters
    ----------
    explanation : Explanation
        A run with an audit.
    top : int, default=20
        The number of features that are drawn, those with the largest differences.
    confidence : float, default=0.95
        Confidence level of each interval.
    ax : sequence of two matplotlib Axes, optional
        Axes for surpluses and differences; by default, a new figure is created.

    Returns
    -------
    array of two matplotlib Axes
        The skipped surpluses, and the differences.
    """
    require_audit(explanation)
    estimate = explanation.estimate
    if estimate.skipped_surpluses.empty:
        advice = "The graph separates no feature from the target, so d-SAGE equals SAGE"
        raise refusal("explanation", "of a run that skipped surpluses", "one without", advice)
    frame = estimate.audit_frame(confidence)
    size = -frame["difference"].abs().to_numpy()
    order = np.argsort(size, kind="stable")[: n_shown(len(frame), check_count(top, "top"))]
    shown = frame.iloc[order]
    rows = as_rows(shown["feature"].tolist())
    label = f"skipped surpluses ({style.loss_name(explanation)})"
    size_of_figure = rows.size(2, n_notes=3, n_below=n_lines(label, style.LABEL))
    left, right = style.two_axes(ax, *size_of_figure, (1.0, 1.0))
    _draw_boxes(left, rows, shown["feature"].tolist(), estimate.skipped_surpluses)
    _draw_differences(right, rows, shown, explanation)
    rows.put(left)
    rows.put(right, with_names=False)
    style.label_x(left, label)
    style.label_x(right, "difference: d-SAGE minus SAGE")
    boxes = Patch(facecolor=style.SKY, edgecolor=style.GRAY, label="quartiles, median, whiskers")
    style.legend_above(left, [boxes], title=_title(len(order), size))
    style.legend_above(right, [*_difference_handles(shown, confidence), *zone_handles(explanation)])
    return np.array([left, right], dtype=object)


def require_audit(explanation: object) -> TermEstimate:
    """Return the audit of an explanation; refuse an explanation without one."""
    found = style.check_explanation(explanation).estimate.audit
    if found is None:
        advice = "Explain with graph='learn' and audit=True"
        raise refusal("explanation", "of a run with an audit", "one without", advice)
    return found


def draw_zone(ax: Axes, explanation: Explanation) -> None:
    """Shade the zone in which differences from SAGE do not matter."""
    half = MATTERS * float(np.ptp(explanation.values))
    ax.axvspan(-half, half, color=style.FAINT, zorder=0)


def zone_handles(explanation: Explanation) -> list[Artist]:
    """Return the legend entry of the zone; a single value has no range and no zone."""
    if not np.ptp(explanation.values) > 0:
        return []
    return [Patch(color=style.FAINT, label="2 % of the range of the values")]


def _draw_boxes(ax: Axes, rows: Rows, names: list[str], skipped: pd.DataFrame) -> None:
    """Draw a box for each feature that was skipped."""
    by_name = {name: part.to_numpy() for name, part in skipped.groupby("feature")["surplus"]}
    for name, y in zip(names, rows.centers, strict=True):
        if name not in by_name:
            # An empty row could be mistaken for a box without width.
            text: dict[str, Any] = {"va": "center", "fontsize": style.SMALL, "color": style.GRAY}
            place = {"xytext": (4, 0), "textcoords": "offset points"}
            ax.annotate("never skipped", (0.0, y), **text | place)
            continue
        box = boxplot_stats(by_name[name])[0]
        ax.hlines(y, box["whislo"], box["whishi"], colors=style.GRAY, linewidths=0.9, zorder=2)
        fill: dict[str, Any] = {"color": style.SKY, "edgecolor": style.GRAY, "linewidth": 0.7}
        ax.barh(y, box["q3"] - box["q1"], _BOX, left=box["q1"], zorder=3, **fill)
        ax.vlines(
            box["med"], y - _BOX / 2, y + _BOX / 2, colors=style.INK, linewidths=1.4, zorder=4
        )
        beyond = np.full(len(box["fliers"]), y)
        ax.plot(box["fliers"], beyond, ".", color=style.GRAY, markersize=2.5, zorder=2)
    # Otherwise the axes would end at the edge of a bar.
    ax.use_sticky_edges = False
    draw_zero(ax)
    style.tidy(ax)


def _draw_differences(ax: Axes, rows: Rows, shown: pd.DataFrame, explanation: Explanation) -> None:
    matters = shown["matters"].to_numpy(dtype=bool)
    low, high = shown["lower"].to_numpy(), shown["upper"].to_numpy()
    for mask, marker, color in ((matters, "D", style.ORANGE), (~matters, "o", style.INK)):
        at = rows.centers[mask]
        draw_interval(ax, at, low[mask], high[mask], color=color, is_thick=True)
        values = shown["difference"].to_numpy()[mask]
        edge: dict[str, Any] = {"markeredgecolor": style.INK, "markeredgewidth": 0.6}
        ax.plot(values, at, marker, color=color, markersize=4.5, zorder=5, **edge)
    draw_zone(ax, explanation)
    draw_zero(ax)
    style.tidy(ax)


def _title(n_drawn: int, size: npt.NDArray[np.float64]) -> str | None:
    if n_drawn == len(size):
        return None
    largest = float(np.max(np.sort(-size)[: len(size) - n_drawn]))
    return f"{len(size) - n_drawn} others differ by at most {largest:.2g}"


def _difference_handles(shown: pd.DataFrame, confidence: float) -> list[Artist]:
    text = f"difference with {style.percent(confidence)} interval"
    mark: dict[str, Any] = {"linewidth": 3, "markersize": 4.5}
    handles: list[Artist] = [Line2D([], [], marker="o", color=style.INK, label=text, **mark)]
    if shown["matters"].any():
        mark |= {"marker": "D", "color": style.ORANGE, "markeredgecolor": style.INK}
        handles.append(Line2D([], [], label="it matters", **mark))
    return handles
