"""How the values developed during the run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from dsage._check import check_count, check_members
from dsage.estimate.inference import intervals
from dsage.plots import style
from dsage.plots.fonts import n_columns, text_style, wrap
from dsage.plots.rows import Floats
from dsage.result.explanation import Explanation

# Inches: the axes, and the room above and below them.
_WIDTH, _HEIGHT, _AROUND = 4.2, 2.6, 0.9
_LINE = style.SMALL * 1.3 / 72
# Letters per line of a name.
_NAME = 30


def convergence(
    explanation: Explanation,
    *,
    features: str | Iterable[str] | None = None,
    top: int = 8,
    confidence: float = 0.95,
    ax: Axes | None = None,
) -> Axes:
    """Draw how the values developed with the number of evaluations, with confidence bands.

    A band is the interval for these evaluation rows at that moment. Names are at the ends of the
    lines. Other features are drawn as thin lines without a band.

    Parameters
    ----------
    explanation : Explanation
        The explanation.
    features : str or iterable of str, optional
        The features to name, instead of the `top` ones.
    top : int, default=8
        The number of features that are named, those with the largest values.
    confidence : float, default=0.95
        Confidence level of each band.
    ax : matplotlib Axes, optional
        The axes; by default, a new figure is created.

    Returns
    -------
    matplotlib Axes
    """
    names = style.check_explanation(explanation).feature_names
    if features is None:
        order = np.argsort(-explanation.values, kind="stable")[: check_count(top, "top")]
    else:
        chosen = check_members(features, names, "features", "the features")
        order = np.array([names.index(name) for name in chosen], dtype=np.intp)
    labels = [wrap(names[number], _NAME) for number in order]
    n_lines = sum(label.count("\n") + 1 for label in labels)
    if ax is None:
        margin = style.text_width(max(map(n_columns, labels), default=0), style.SMALL) + 0.5
        height = max(_HEIGHT, _LINE * n_lines + 0.08 * len(labels)) + _AROUND
        ax = style.new_axes(_WIDTH + margin, height)
    history = explanation.estimate.history
    x = history.n_evaluated.astype(np.float64)
    rest = np.setdiff1d(np.arange(len(names)), order)
    ax.plot(x, history.values[:, rest], color=style.LIGHT, linewidth=0.7, zorder=1)
    low, high = _bands(explanation, confidence)
    _draw_lines(ax, x, history.values[:, order], low[:, order], high[:, order])
    style.tidy(ax, grid="y")
    _set_limits(ax, x, history.values, low[:, order], high[:, order])
    style.label_x(ax, "evaluations of a coalition on a row")
    style.label_y(ax, style.value_label(explanation))
    _name_ends(ax, labels, x[-1], history.values[-1, order])
    bands = "bands" if len(x) > 1 else "intervals at the only look,"
    handles = [Line2D([], [], color=style.LIGHT, linewidth=0.7, label=f"{len(rest)} others")]
    title = f"{style.percent(confidence)} {bands} for these rows"
    style.legend_above(ax, handles if len(rest) else [], title=title)
    return ax


def _bands(explanation: Explanation, confidence: float) -> tuple[Floats, Floats]:
    """Return the ends of the intervals at each look."""
    history = explanation.estimate.history
    df = np.maximum(history.n_units - 1.0, 1.0)[:, None] * np.ones(history.values.shape)
    # Degrees of freedom were kept for the last look only; earlier ones are approximate.
    df[-1] = explanation.estimate.df
    ends = [
        intervals(values, se, confidence, df=own)
        for values, se, own in zip(history.values, history.se, df, strict=True)
    ]
    return np.stack([low for low, _ in ends]), np.stack([high for _, high in ends])


def _draw_lines(ax: Axes, x: Floats, values: Floats, low: Floats, high: Floats) -> None:
    for number in range(values.shape[1]):
        color, dashes = _line_style(number)
        known = np.isfinite(low[:, number]) & np.isfinite(high[:, number])
        if len(x) == 1:
            ax.vlines(x[known], low[known, number], high[known, number], colors=color, alpha=0.5)
        ax.fill_between(
            x, low[:, number], high[:, number], where=known, color=color, alpha=0.15, linewidth=0
        )
        line: dict[str, Any] = {"color": color, "linestyle": dashes, "linewidth": 1.4}
        marker = "o" if len(x) == 1 else None
        ax.plot(x, values[:, number], marker=marker, markersize=4, zorder=3, **line)


def _line_style(number: int) -> tuple[str, str]:
    """Return a color, and dashes that distinguish lines of the same color."""
    dashes = ("solid", "dashed", "dotted", "dashdot")
    turn, color = divmod(number, len(style.PALETTE))
    return style.PALETTE[color], dashes[turn % len(dashes)]


def _set_limits(ax: Axes, x: Floats, values: Floats, low: Floats, high: Floats) -> None:
    """Show all values; cut bands at the start, which may be huge."""
    if len(x) > 1 and x[0] > 0 and x[-1] / x[0] >= 10:
        ax.set_xscale("log")
        ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        ax.xaxis.set_minor_locator(NullLocator())
    elif len(x) == 1:
        ax.set_xticks(x)
    ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.0f}"))
    ends = np.concatenate([low[-1:].ravel(), high[-1:].ravel(), values.ravel(), [0.0]])
    ends = ends[np.isfinite(ends)]
    least, most = float(ends.min()), float(ends.max())
    span = (most - least) or 1.0
    wide = np.concatenate([low.ravel(), high.ravel(), ends])
    wide = wide[np.isfinite(wide)]
    bottom = max(float(wide.min()), least - 0.3 * span) - 0.04 * span
    ax.set_ylim(bottom, min(float(wide.max()), most + 0.3 * span) + 0.04 * span)
    if bottom < 0:
        ax.axhline(0.0, color=style.INK, linewidth=0.8, zorder=2)


def _name_ends(ax: Axes, labels: Sequence[str], x: float, values: Floats) -> None:
    """Write the names to the right of their lines, without overlaps."""
    bottom, top = ax.get_ylim()
    # An approximation: the layout is not final yet.
    points = 72 * ax.get_window_extent().height / ax.figure.dpi
    heights = [(label.count("\n") + 1) * style.SMALL * 1.3 + 3 for label in labels]
    wanted = (values - bottom) / (top - bottom)
    places = _apart(wanted, np.array(heights) / points)
    for number, (label, at) in enumerate(zip(labels, places, strict=True)):
        color, dashes = _line_style(number)
        line = {"arrowstyle": "-", "color": color, "linewidth": 1.0, "linestyle": dashes}
        ax.annotate(
            label,
            xy=(x, values[number]),
            xytext=(1.05, at),
            textcoords=ax.transAxes,
            va="center",
            fontsize=style.SMALL,
            color=style.INK,
            arrowprops={**line, "relpos": (0.0, 0.5), "shrinkA": 2.0, "shrinkB": 0.0},
            annotation_clip=False,
            **text_style(),
        )


def _apart(wanted: Floats, heights: Floats) -> Floats:
    """Return positions near the wanted ones at which labels of these heights do not overlap.

    This is least squares under the order of the wanted positions: labels that touch are pooled,
    and move together to the mean of their wanted positions.
    """
    order = np.argsort(wanted, kind="stable")
    pools: list[tuple[float, float, list[int]]] = []
    for number in order.tolist():
        center, height, members = float(wanted[number]), float(heights[number]), [number]
        while pools and pools[-1][0] + pools[-1][1] / 2 > center - height / 2:
            below, its_height, its_members = pools.pop()
            n_below, n_here = len(its_members), len(members)
            center = (below * n_below + center * n_here) / (n_below + n_here)
            height, members = height + its_height, its_members + members
        pools.append((center, height, members))
    places = np.empty(len(wanted))
    for center, height, members in pools:
        end = center - height / 2
        for number in members:
            places[number] = end + heights[number] / 2
            end += heights[number]
    # Move labels into the frame: below its top, then, if there is no room, above its bottom.
    limit = 1.0
    for number in order[::-1].tolist():
        places[number] = min(places[number], limit - heights[number] / 2)
        limit = places[number] - heights[number] / 2
    limit = 0.0
    for number in order.tolist():
        places[number] = max(places[number], limit + heights[number] / 2)
        limit = places[number] + heights[number] / 2
    return places
