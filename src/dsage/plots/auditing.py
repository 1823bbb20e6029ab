"""What was skipped, and what skipping it changed."""

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
from dsage.plots.fonts import n_lines
from dsage.plots.rows import Rows, as_rows, draw_interval, draw_zero, n_shown
from dsage.plots.style import (
    FAINT,
    GREY,
    INK,
    LABEL,
    ORANGE,
    SKY,
    SMALL,
    check_record,
    label_x,
    legend_above,
    loss_name,
    percent,
    tidy,
    two_axes,
)
from dsage.result.record import Record

# Inches: how high a box is.
_BOX = 0.15


def audit(
    record: Record,
    *,
    top: int = 20,
    confidence: float = 0.95,
    ax: Sequence[Axes] | None = None,
) -> npt.NDArray[np.object_]:
    """Draw the surpluses that were skipped, and by how much that changes the values.

    Left, a box plot a feature of the surpluses that separation sets to zero, as the model has
    them: the quartiles, whiskers to the last surplus within 1.5 times the height of the box, and
    those beyond. For an optimal model and a true graph all are zero, but for noise. Right, the
    estimated difference d-SAGE minus SAGE with its interval, and the zone of 2 % of the range of
    the values. A difference matters where it is surely outside, for all features at once.

    Parameters
    ----------
    record : Explanation or Record
        A run with an audit.
    top : int, default=20
        So many features are drawn, those with the largest differences.
    confidence : float, default=0.95
        Confidence level of the intervals, each on its own.
    ax : sequence of two matplotlib Axes, optional
        Where to draw surpluses and differences; by default a new figure.

    Returns
    -------
    array of two matplotlib Axes
        The skipped surpluses, and the differences.

    Examples
    --------
    >>> import dsage
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import LinearRegression
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> X = X[["age", "bmi", "bp", "s5"]]
    >>> model = LinearRegression().fit(X[:300], y[:300])
    >>> explanation = dsage.explain(model, X[:300], y[:300], X[300:], y[300:], sampler="gaussian",
    ...                             random_state=0, progress=False)
    >>> left, right = audit(explanation)
    >>> right.get_xlabel()
    'difference: d-SAGE minus SAGE'
    """
    check_audited(record)
    known = record.estimate
    if known.skipped_surpluses.empty:
        raise refusal(
            "record",
            "of a run that skipped something",
            "one that skipped nothing",
            "The graph separates no feature from the target: d-SAGE is SAGE here",
        )
    frame = known.audit_frame(confidence)
    size = -frame["difference"].abs().to_numpy()
    order = np.argsort(size, kind="stable")[: n_shown(len(frame), check_count(top, "top"))]
    shown = frame.iloc[order]
    rows = as_rows(shown["feature"].tolist())
    label = f"skipped surpluses ({loss_name(record)})"
    size_of_figure = rows.size(2, n_notes=3, n_below=n_lines(label, LABEL))
    left, right = two_axes(ax, *size_of_figure, (1.0, 1.0))
    _draw_boxes(left, rows, shown["feature"].tolist(), known.skipped_surpluses)
    _draw_differences(right, rows, shown, record)
    rows.put(left)
    rows.put(right, with_names=False)
    label_x(left, label)
    label_x(right, "difference: d-SAGE minus SAGE")
    boxes = Patch(facecolor=SKY, edgecolor=GREY, label="quartiles, median, whiskers")
    legend_above(left, [boxes], title=_title(len(order), size))
    legend_above(right, [*_difference_handles(shown, confidence), *zone_handles(record)])
    return np.array([left, right], dtype=object)


def check_audited(record: object) -> TermEstimate:
    """Return the audit of a record that has one."""
    found = check_record(record).estimate.audit
    if found is None:
        raise refusal(
            "record",
            "of a run with an audit",
            "one without",
            "Only runs that skip by a graph have one: give graph='learn' and leave audit=True",
        )
    return found


def draw_zone(ax: Axes, record: Record) -> None:
    """Shade where differences to SAGE do not matter."""
    half = MATTERS * float(np.ptp(record.values))
    ax.axvspan(-half, half, color=FAINT, zorder=0)


def zone_handles(record: Record) -> list[Artist]:
    """Return what explains the zone, where there is one: one value alone has no range."""
    if not np.ptp(record.values) > 0:
        return []
    return [Patch(color=FAINT, label="2 % of the range of the values")]


def _draw_boxes(ax: Axes, rows: Rows, names: list[str], skipped: pd.DataFrame) -> None:
    """Draw a box for each feature that was skipped."""
    by_name = {name: part.to_numpy() for name, part in skipped.groupby("feature")["surplus"]}
    there = [number for number, name in enumerate(names) if name in by_name]
    at = rows.centres[there]
    for y, box in zip(at, boxplot_stats([by_name[names[number]] for number in there]), strict=True):
        ax.hlines(y, box["whislo"], box["whishi"], colors=GREY, linewidths=0.9, zorder=2)
        ax.barh(
            y,
            box["q3"] - box["q1"],
            left=box["q1"],
            height=_BOX,
            color=SKY,
            edgecolor=GREY,
            linewidth=0.7,
            zorder=3,
        )
        ax.vlines(box["med"], y - _BOX / 2, y + _BOX / 2, colors=INK, linewidths=1.4, zorder=4)
        beyond = np.full(len(box["fliers"]), y)
        ax.plot(box["fliers"], beyond, ".", color=GREY, markersize=2.5, zorder=2)
    for number in set(range(len(names))) - set(there):
        # A word where a box would stand: an empty row could be a box of no width.
        ax.annotate(
            "never skipped",
            (0.0, rows.centres[number]),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize=SMALL,
            color=GREY,
        )
    # A bar would have its own end at the margin.
    ax.use_sticky_edges = False
    draw_zero(ax)
    tidy(ax)


def _draw_differences(ax: Axes, rows: Rows, shown: pd.DataFrame, record: Record) -> None:
    matters = shown["matters"].to_numpy(dtype=bool)
    low, high = shown["lower"].to_numpy(), shown["upper"].to_numpy()
    for mask, marker, colour in ((matters, "D", ORANGE), (~matters, "o", INK)):
        at = rows.centres[mask]
        draw_interval(ax, at, low[mask], high[mask], colour=colour, is_thick=True)
        values = shown["difference"].to_numpy()[mask]
        style: dict[str, Any] = {"markeredgecolor": INK, "markeredgewidth": 0.6, "markersize": 4.5}
        ax.plot(values, at, marker, color=colour, zorder=5, **style)
    draw_zone(ax, record)
    draw_zero(ax)
    tidy(ax)


def _title(n_drawn: int, size: npt.NDArray[np.float64]) -> str | None:
    if n_drawn == len(size):
        return None
    largest = float(np.max(np.sort(-size)[: len(size) - n_drawn]))
    return f"{len(size) - n_drawn} others differ by {largest:.2g} at most"


def _difference_handles(shown: pd.DataFrame, confidence: float) -> list[Artist]:
    text = f"difference with {percent(confidence)} interval"
    handles: list[Artist] = [
        Line2D([], [], marker="o", color=INK, linewidth=3, markersize=4.5, label=text)
    ]
    if shown["matters"].any():
        style: dict[str, Any] = {
            "marker": "D",
            "color": ORANGE,
            "markeredgecolor": INK,
            "markersize": 4.5,
        }
        handles.append(Line2D([], [], linewidth=3, label="it matters", **style))
    return handles
