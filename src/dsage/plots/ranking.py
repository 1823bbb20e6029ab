"""The ranking of the features."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from dsage._check import check_count
from dsage.plots import style
from dsage.plots.fonts import n_lines
from dsage.plots.rows import Floats, as_rows, draw_interval, draw_zero, interval_handles, n_shown
from dsage.result.explanation import Explanation

# Thickness of a bar in inches.
_BAR = 0.17


def bar(
    explanation: Explanation, *, top: int = 20, confidence: float = 0.95, ax: Axes | None = None
) -> Axes:
    """Draw the ranking: one bar per feature, the largest value on top, with two intervals.

    The thick interval is for these evaluation rows: more computing shortens it. The thin one is for
    the population: only more rows shorten it. Brackets show the error of the sampler to both sides
    of the value. Features whose values differ from SAGE according to the audit have another color.
    A circle marks a feature that is separated from the target in every ordering.

    Parameters
    ----------
    explanation : Explanation
        The explanation.
    top : int, default=20
        The number of features with separate bars. The others share one bar for their sum, without
        an interval, because their errors depend on each other.
    confidence : float, default=0.95
        Confidence level of the intervals.
    ax : matplotlib Axes, optional
        The axes; by default, a new figure that fits the names is created.

    Returns
    -------
    matplotlib Axes
    """
    frame = style.check_explanation(explanation).to_frame(confidence)
    shown = frame[: n_shown(len(frame), check_count(top, "top"))]
    rest = frame[len(shown) :]
    names = shown["feature"].tolist()
    if len(rest):
        names.append(f"{len(rest)} others: their sum, without interval")
    rows = as_rows(names)
    if ax is None:
        n_below = n_lines(style.value_label(explanation), style.LABEL)
        ax = style.new_axes(*rows.size(n_notes=5, n_below=n_below))
    at = rows.centers[: len(shown)]
    matters = shown["audit_matters"].to_numpy(dtype=bool)
    colors = np.where(matters, style.ORANGE, style.SKY).tolist()
    ax.barh(at, shown["value"], height=_BAR, color=colors)
    if len(rest):
        _draw_rest(ax, float(rows.centers[-1]), shown, float(rest["value"].sum()))
    handles = _draw_intervals(ax, at, shown, confidence)
    handles += _draw_sampler_errors(ax, at, shown)
    handles += _audit_handles(explanation, matters)
    handles += _mark_separated(ax, at, shown, explanation)
    draw_zero(ax)
    style.tidy(ax)
    rows.put(ax)
    style.label_x(ax, style.value_label(explanation))
    style.legend_above(ax, handles)
    return ax


def _draw_rest(ax: Axes, at: float, shown: pd.DataFrame, total: float) -> None:
    """Draw the sum of the others; if it is very large, cut the bar and write the sum on it."""
    ends = shown[["value", "upper", "upper_total"]].to_numpy(dtype=np.float64)
    limit = 1.25 * float(np.abs(ends[np.isfinite(ends)]).max())
    is_cut = abs(total) > limit > 0
    end = float(np.clip(total, -limit, limit)) if is_cut else total
    ax.barh(at, end, height=_BAR, color=style.LIGHT)
    if is_cut:
        text = f"{total:.3g} \u2192 " if total > 0 else f" \u2190 {total:.3g}"
        side = "right" if total > 0 else "left"
        ax.text(end, at, text, ha=side, va="center", fontsize=style.SMALL, color=style.INK)


def _draw_intervals(ax: Axes, at: Floats, shown: pd.DataFrame, confidence: float) -> list[Artist]:
    drawn = {}
    for ends, name in (("", "computing"), ("_total", "population")):
        low, high = shown[f"lower{ends}"].to_numpy(), shown[f"upper{ends}"].to_numpy()
        is_thick = name == "computing"
        drawn[name] = draw_interval(ax, at, low, high, color=style.INK, is_thick=is_thick)
    return interval_handles(confidence, **drawn)


def _draw_sampler_errors(ax: Axes, at: Floats, shown: pd.DataFrame) -> list[Artist]:
    """Draw the change with another sampler, to both sides of the values."""
    values, errors = shown["value"].to_numpy(), shown["se_sampler"].to_numpy(dtype=np.float64)
    drawn = np.isfinite(errors) & (errors > 0)
    if not drawn.any():
        return []
    mark: dict[str, Any] = {"linestyle": "none", "color": style.VERMILION, "markersize": 7.0}
    for side, marker in ((-1.0, "$[$"), (1.0, "$]$")):
        ax.plot((values + side * errors)[drawn], at[drawn], marker=marker, zorder=5, **mark)
    return [Line2D([], [], marker="$[\\,]$", label="change with another sampler", **mark)]


def _audit_handles(explanation: Explanation, matters: npt.NDArray[np.bool_]) -> list[Artist]:
    if not matters.any():
        return []
    is_corrected = explanation.estimate.estimand == "sage"
    text = "corrected by" if is_corrected else "differs from SAGE by"
    return [Patch(color=style.ORANGE, label=f"audit: {text} over 2 % of the range")]


def _mark_separated(
    ax: Axes, at: Floats, shown: pd.DataFrame, explanation: Explanation
) -> list[Artist]:
    """Mark features that are separated in all orderings: zero except for a correction."""
    skipped = dict(zip(explanation.feature_names, explanation.estimate.share_skipped, strict=True))
    separated = np.array([skipped[name] >= 1.0 for name in shown["feature"]])
    if not separated.any():
        return []
    mark: dict[str, Any] = {"marker": "o", "markersize": 4.5, "linestyle": "none"}
    mark |= {"markerfacecolor": "white", "markeredgecolor": style.INK}
    ax.plot(np.zeros(separated.sum()), at[separated], zorder=5, **mark)
    is_corrected = explanation.estimate.estimand == "sage"
    text = f"always separated: {'only the correction' if is_corrected else 'zero'}"
    return [Line2D([], [], label=text, **mark)]
