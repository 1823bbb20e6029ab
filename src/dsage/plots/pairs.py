"""Two panels with the same rows: values side by side, and their differences."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from dsage._check import check_count
from dsage.estimate.inference import intervals
from dsage.plots import rows, style
from dsage.plots.fonts import n_lines, wrap
from dsage.result.series import Series

# Inches between the marks of two explanations of one feature.
_STEP = 0.11
# Letters per line: in the legend, below the values, below the differences.
_LEGEND, _VALUES, _DIFFERENCES = 40, style.LABEL, 36


def draw_pair(
    names: Sequence[str],
    ranked_by: rows.Floats,
    series: list[Series],
    differences: list[Series],
    labels: tuple[str, str],
    notes: Sequence[str] = (),
    *,
    top: int,
    confidence: float,
    ax: Sequence[Axes] | None,
) -> tuple[Axes, Axes]:
    """Draw values on the left, and the differences of all series except the first on the right.

    Features are sorted by `ranked_by`, the largest first. `labels` are the labels of the horizontal
    axes, and `notes` the lines above the legend.
    """
    order = np.argsort(-ranked_by, kind="stable")
    order = order[: rows.n_shown(len(names), check_count(top, "top"))]
    if len(order) < len(names):
        notes = [*notes, f"the top {len(order)} of {len(names)} features"]
    least = max(0.28, _STEP * len(series) + 0.1)
    lines = rows.as_rows([names[number] for number in order], least=least)
    n_notes = 2 + len(notes) + sum(n_lines(each.label, _LEGEND) for each in series)
    n_below = max(n_lines(labels[0], _VALUES), n_lines(labels[1], _DIFFERENCES))
    size = lines.size(2, n_notes=n_notes, n_below=n_below)
    left, right = style.two_axes(ax, *size, (1.25, 1.0))
    drawn = _draw_series(left, lines, [each.take(order) for each in series], 0, confidence)
    _draw_series(right, lines, [each.take(order) for each in differences], 1, confidence)
    lines.put(left)
    lines.put(right, with_names=False)
    style.label_x(left, labels[0], width=_VALUES)
    style.label_x(right, labels[1], width=_DIFFERENCES)
    handles: list[Artist] = [
        Line2D([], [], label=wrap(each.label, _LEGEND), linestyle="none", **_mark(number))
        for number, each in enumerate(series)
    ]
    handles += rows.interval_handles(confidence, **drawn)
    style.legend_above(left, handles, title="\n".join(notes) or None)
    return left, right


def _draw_series(
    ax: Axes, lines: rows.Rows, series: list[Series], first: int, confidence: float
) -> dict[str, bool]:
    """Draw marks with intervals; marks of one feature are below each other."""
    drawn = {"computing": False, "population": False}
    for number, each in enumerate(series):
        at = lines.centers + _STEP * (number - (len(series) - 1) / 2)
        mark = _mark(number + first)
        for name, se, df in (
            ("computing", each.se, each.df),
            ("population", each.se_total, each.df_total),
        ):
            low, high = intervals(each.values, se, confidence, df=df)
            is_thick = name == "computing"
            drawn[name] |= rows.draw_interval(
                ax, at, low, high, color=mark["color"], is_thick=is_thick
            )
        ax.plot(each.values, at, linestyle="none", zorder=5, **mark)
    for end, then in pairwise(lines.centers):
        ax.axhline((end + then) / 2, color=style.FAINT, linewidth=0.8, zorder=0)
    rows.draw_zero(ax)
    style.tidy(ax)
    return drawn


def _mark(number: int) -> dict[str, Any]:
    marker = style.MARKERS[number % len(style.MARKERS)]
    color = style.PALETTE[number % len(style.PALETTE)]
    return {"marker": marker, "color": color, "markersize": 4.0}
