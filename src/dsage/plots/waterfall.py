"""How features lead from the base value to the prediction, or the loss, of a row."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from dsage._check import check_count
from dsage.estimate.inference import intervals
from dsage.plots import style
from dsage.plots.fonts import text_style
from dsage.plots.local import check_rows_explained, explained_label, with_value
from dsage.plots.rows import Floats, as_rows, n_shown
from dsage.result.row_values import Label
from dsage.result.rows import RowExplanation

# Thickness of a bar in inches.
_BAR = 0.19
# The unexplained part of the prediction is drawn if it exceeds this share of the range.
_LEFT = 0.01


def waterfall(
    explanation: RowExplanation,
    row: int = 0,
    *,
    output: Label | None = None,
    top: int = 12,
    confidence: float = 0.95,
    ax: Axes | None = None,
) -> Axes:
    """Draw how the features move the prediction of a row away from the base value.

    The bars follow each other from the base value on top to the prediction at the bottom, the
    largest value first. A bar ends at the prediction after its feature is added, with the interval
    of its value. With a graph, the last bar is the part of the prediction that the values do not
    explain.

    Parameters
    ----------
    explanation : RowExplanation
        The explained rows.
    row : int, default=0
        The position of the row.
    output : str, int, float or bool, optional
        The output, if several are explained; by default the one with the largest prediction.
    top : int, default=12
        The number of features with separate bars. The others share one.
    confidence : float, default=0.95
        Confidence level of the intervals.
    ax : matplotlib Axes, optional
        The axes; by default, a new figure that fits the names is created.

    Returns
    -------
    matplotlib Axes
    """
    one = check_rows_explained(explanation)[row]
    if output is None and len(one.outputs) > 1:
        output = one.outputs[int(np.argmax(one.predictions[0]))]
    one = one.of_output(output)
    estimate, sign = one.estimates[0], -1.0 if one.is_loss else 1.0
    values = sign * estimate.values[0]
    order = np.argsort(-np.abs(values), kind="stable")
    shown = order[: n_shown(len(order), check_count(top, "top"))]
    rest = order[len(shown) :]
    names = [with_value(one.feature_names[at], one.texts[0][at]) for at in shown]
    steps, errors = values[shown], estimate.se[0, shown]
    if len(rest):
        names.append(f"{len(rest)} others")
        steps = np.append(steps, values[rest].sum())
        # An upper bound, since the errors of features may be correlated.
        errors = np.append(errors, estimate.se[0, rest].sum())
    base, end = float(one.base_values[0]), float(one.predictions[0])
    left = end - base - float(values.sum())
    n_steps = len(names)
    if abs(left) > _LEFT * max(abs(end - base), float(np.ptp(values))):
        names.append(_left_name(one))
        steps, errors = np.append(steps, left), np.append(errors, 0.0)
    ends = base + np.cumsum(steps)
    first, last = ("no feature known", "loss") if one.is_loss else ("mean prediction", "prediction")
    rows = as_rows([first, *names, f"{last} of row {one.row_names[0]}"])
    if ax is None:
        ax = style.new_axes(*rows.size(n_notes=3, n_below=2))
    df = estimate.df[0].min()
    low, high = intervals(ends, errors, confidence, df=df)
    handles = _draw_steps(ax, rows.centers[1:-1], ends, steps, n_steps, (low, high))
    _draw_ends(ax, rows.centers, base, end)
    _write_steps(ax, rows.centers[1:-1], ends, steps, (low, high))
    style.tidy(ax)
    rows.put(ax)
    ax.set_xlim(*_limits(np.array([base, end, *ends, *low, *high])))
    style.label_x(ax, explained_label(one))
    handles.append(Line2D([], [], color=style.INK, label=_interval_text(confidence)))
    style.legend_above(ax, handles)
    return ax


def _limits(ends: Floats) -> tuple[float, float]:
    """Return the ends of the axis, with room for the numbers next to the bars."""
    finite = ends[np.isfinite(ends)]
    low, high = float(finite.min()), float(finite.max())
    room = 0.17 * (high - low) or 1.0
    return low - room, high + room


def _left_name(one: RowExplanation) -> str:
    return "not explained by the graph" if one.estimand == "d-sage" else "error of the draws"


def _interval_text(confidence: float) -> str:
    return f"{style.percent(confidence)} interval of the value (orderings and draws)"


def _draw_steps(
    ax: Axes,
    at: Floats,
    ends: Floats,
    steps: Floats,
    n_steps: int,
    interval: tuple[Floats, Floats],
) -> list[Artist]:
    """Draw the bars, the lines between them, and their intervals; return legend entries."""
    up, down = style.VERMILION, style.BLUE
    colors = [up if step > 0 else down for step in steps]
    colors[n_steps:] = [style.LIGHT] * (len(steps) - n_steps)
    ax.barh(at, steps, left=ends - steps, height=_BAR, color=colors, zorder=3)
    for here, below, end in zip(at[:-1], at[1:], ends[:-1], strict=True):
        ax.plot([end, end], [here, below], color=style.LIGHT, linewidth=0.9, zorder=1)
    low, high = interval
    finite = np.isfinite(low) & (high > low)
    options: dict[str, Any] = {"colors": style.INK, "linewidths": 1.1, "zorder": 4}
    ax.hlines(at[finite], low[finite], high[finite], **options)
    return [
        Patch(color=color, label=f"{word} it")
        for color, word in ((up, "raises"), (down, "lowers"))
        if color in colors[:n_steps]
    ]


def _draw_ends(ax: Axes, centers: Floats, base: float, end: float) -> None:
    """Mark the base value and the prediction with a line and their numbers."""
    for at, number in ((centers[0], base), (centers[-1], end)):
        ax.plot([number], [at], marker="D", markersize=5, color=style.INK, zorder=5)
        ax.annotate(
            f"{number:,.4g}",
            (number, at),
            xytext=(7, 0),
            textcoords="offset points",
            va="center",
            fontsize=style.SMALL,
            color=style.INK,
        )
        ax.axvline(number, color=style.LIGHT, linewidth=0.9, linestyle=(0, (3, 3)), zorder=0)


def _write_steps(
    ax: Axes, at: Floats, ends: Floats, steps: Floats, interval: tuple[Floats, Floats]
) -> None:
    """Write the value of each step next to its bar, outside of its interval."""
    low, high = interval
    for here, end, step, below, above in zip(at, ends, steps, low, high, strict=True):
        is_up = step >= 0
        tip = above if is_up else below
        place = float(tip) if np.isfinite(tip) else float(end)
        ax.annotate(
            f"{step:+,.3g}".replace("-", "\N{MINUS SIGN}"),
            (place, here),
            xytext=(4 if is_up else -4, 0),
            textcoords="offset points",
            ha="left" if is_up else "right",
            va="center",
            fontsize=style.SMALL,
            color=style.INK,
            **text_style(),
        )
