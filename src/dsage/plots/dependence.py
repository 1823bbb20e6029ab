"""The SHAP values of one feature over the feature itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from dsage._check import check_member, refusal
from dsage.data.kinds import Kind
from dsage.estimate.inference import intervals
from dsage.plots import style
from dsage.plots.fonts import text_style, wrap
from dsage.plots.local import (
    Shades,
    add_scale,
    check_rows_explained,
    shade,
    value_label,
)
from dsage.result.row_values import MISSING, Label
from dsage.result.rows import RowExplanation

Floats = npt.NDArray[np.float64]

# Inches.
_WIDTH, _HEIGHT = 5.2, 3.6
# With more categories, labels are rotated.
_FLAT_LABELS = 6


def scatter(
    explanation: RowExplanation,
    feature: str,
    *,
    color: str | None = None,
    output: Label | None = None,
    confidence: float = 0.95,
    ax: Axes | None = None,
) -> Axes:
    """Draw the SHAP value of a feature in each row over the feature itself.

    The horizontal axis has numbers or dates, or the categories of a class side by side; rows in
    which the feature is missing are to the right. Lines are the intervals of the SHAP values.

    Parameters
    ----------
    explanation : RowExplanation
        The explained rows.
    feature : str
        The feature; a group of several features cannot be drawn.
    color : str, optional
        Another feature whose value colors the points, to see interactions.
    output : str, int, float or bool, optional
        The output, if several are explained.
    confidence : float, default=0.95
        Confidence level of the intervals.
    ax : matplotlib Axes, optional
        The axes; by default, a new figure is created.

    Returns
    -------
    matplotlib Axes
    """
    one = check_rows_explained(explanation).of_output(output)
    at = one.column_of(feature)
    if at is None:
        advice = "Draw one of its members in an explanation without groups"
        raise refusal("feature", "a single feature", feature, advice)
    if color is not None:
        check_member(color, one.feature_names, "color", "the explained features")
    estimate, place = one.estimates[0], one.feature_names.index(feature)
    values, se = estimate.values[:, place], estimate.se[:, place]
    low, high = intervals(values, se, confidence, df=estimate.df[:, place])
    if ax is None:
        ax = style.new_axes(_WIDTH + (0.9 if color else 0.0), _HEIGHT)
    style.tidy(ax, grid="y")
    where = (
        _put_classes(ax, one, feature, at)
        if one.layout.n_categories[at]
        else _put_numbers(ax, one, at)
    )
    shades = None if color is None else shade(one, color)
    finite = np.isfinite(low)
    options: dict[str, Any] = {"colors": style.LIGHT, "linewidths": 1.0, "zorder": 2}
    ax.vlines(where[finite], low[finite], high[finite], **options)
    is_pale = np.zeros(len(where), bool) if shades is None else shades.is_missing
    edges = [style.INK if pale else "white" for pale in is_pale]
    colors = style.BLUE if shades is None else shades.colors
    ax.scatter(where, values, s=18, c=colors, linewidths=0.5, edgecolors=edges, zorder=3)
    ax.axhline(0.0, color=style.INK, linewidth=0.8, zorder=1)
    style.label_x(ax, feature)
    style.label_y(ax, value_label(one))
    handles = [] if shades is None else _category_handles(shades)
    if (high > low).any():
        text = f"{style.percent(confidence)} interval (orderings and draws)"
        handles.append(Line2D([], [], color=style.LIGHT, label=text))
    is_listed = shades is not None and not shades.is_number
    if shades is not None and shades.is_number and color is not None:
        add_scale(ax, color)
    style.legend_above(ax, handles, title=color if is_listed else None)
    return ax


def _category_handles(shades: Shades) -> list[Line2D]:
    point: dict[str, Any] = {"marker": "o", "linestyle": "none", "markersize": 4.5}
    found = [
        Line2D([], [], color=color, label=name, **point)
        for name, color in shades.categories.items()
    ]
    if shades.is_missing.any():
        pale = {"markerfacecolor": style.LIGHT, "markeredgecolor": style.INK, **point}
        found.append(Line2D([], [], label=MISSING, **pale))
    return found


def _put_classes(ax: Axes, one: RowExplanation, feature: str, at: int) -> Floats:
    """Label the axis with the observed categories, and return positions of rows, with jitter."""
    texts = [row[one.feature_names.index(feature)] for row in one.texts]
    codes = one.matrix[:, at]
    is_missing = one.layout.is_missing(one.matrix)[:, at]
    # Missing values have the last code.
    present = np.unique(codes[~is_missing])
    places = {code: float(number) for number, code in enumerate(present)}
    labels = [texts[int(np.flatnonzero(codes == code)[0])] for code in present]
    if is_missing.any():
        labels.append(MISSING)
    where = np.array(
        [
            float(len(present)) if missing else places[code]
            for code, missing in zip(codes, is_missing, strict=True)
        ]
    )
    many = len(labels) > _FLAT_LABELS
    ax.set_xticks(
        range(len(labels)),
        labels=[wrap(label, 18) for label in labels],
        rotation=90 if many else 0,
        **text_style(),
    )
    ax.set_xlim(-0.6, len(labels) - 0.4)
    # The same jitter in every picture.
    return where + np.random.default_rng(0).uniform(-0.18, 0.18, len(where))


def _put_numbers(ax: Axes, one: RowExplanation, at: int) -> Floats:
    """Return positions of rows on the axis of a number or a date, missing ones to the right."""
    numbers = one.matrix[:, at].copy()
    is_missing = np.isnan(numbers)
    present = numbers[~is_missing]
    low, high = (float(present.min()), float(present.max())) if len(present) else (0.0, 1.0)
    gap = 0.08 * (high - low) or 1.0
    numbers[is_missing] = high + gap
    ticks = [float(each) for each in ax.xaxis.get_major_locator().tick_values(low, high)]
    inside = [each for each in ticks if low - gap / 2 <= each <= high + gap / 4]
    if one.layout.kinds[at] == Kind.TIME or one.layout.value_kinds[at] == Kind.TIME:
        inside = np.linspace(low, high, 4).tolist()
        labels = _dates(one, at, inside)
    else:
        labels = [f"{each:,.6g}" for each in inside]
    if is_missing.any():
        # The label of missing values needs room.
        kept = [at for at, each in enumerate(inside) if each <= high - gap / 2]
        inside, labels = [inside[at] for at in kept], [labels[at] for at in kept]
        inside.append(high + gap)
        labels.append(MISSING)
        ax.axvline(high + gap / 2, color=style.LIGHT, linewidth=0.8, zorder=0)
    ax.set_xticks(inside, labels=labels, **text_style())
    ax.set_xlim(low - 0.6 * gap, high + (1.7 if is_missing.any() else 0.6) * gap)
    return numbers


def _dates(one: RowExplanation, at: int, numbers: list[float]) -> list[str]:
    """Return the dates of encoded numbers."""
    decoded = one.layout.decode_column(one.layout.names[at], np.array(numbers))
    return [str(each)[:10] for each in list(decoded)]
