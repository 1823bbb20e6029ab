"""Values of folds, or of several explanations, with their pooled values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from dsage._check import check_count
from dsage.plots import style
from dsage.plots.fonts import n_lines
from dsage.plots.rows import THICK, THIN, Floats, as_rows, draw_interval, draw_zero, n_shown
from dsage.result.combined import CombinedExplanation
from dsage.result.folded import FoldedExplanation

# Inches: the height of a row, and the positions of single values and intervals in it.
_ROW = 0.4
_FIRST, _LAST, _INTERVAL = -0.14, 0.02, 0.12


class _Interval(NamedTuple):
    """The columns of an interval, and its scope in words."""

    low: str
    high: str
    scope: str


def folds(
    folded: FoldedExplanation, *, top: int = 20, confidence: float = 0.95, ax: Axes | None = None
) -> Axes:
    """Draw the values of all folds: one row per feature, the largest pooled value on top.

    A circle is the value of a fold, in the order of the folds from top to bottom; the diamond is
    the pooled value. The thick interval is for these models on the population, the thin one for the
    learning procedure, see :class:`dsage.FoldedExplanation`.

    Parameters
    ----------
    folded : FoldedExplanation
        The result of :func:`dsage.explain_cv`.
    top : int, default=20
        The number of features that are drawn.
    confidence : float, default=0.95
        Confidence level of the intervals.
    ax : matplotlib Axes, optional
        The axes; by default, a new figure that fits the names is created.

    Returns
    -------
    matplotlib Axes
    """
    style.check_result(folded, FoldedExplanation, "folded", "dsage.explain_cv")
    thick = _Interval("lower_total", "upper_total", "these models, on the population")
    thin = _Interval("lower_procedure", "upper_procedure", "the learning procedure")
    n_folds = len(folded.folds)
    return _draw(
        folded.to_frame(confidence),
        folded.fold_values[:, np.argsort(-folded.values, kind="stable")],
        [thick, thin],
        (f"value of a fold ({n_folds} folds)", "all folds"),
        style.value_label(folded.folds[0]),
        top=top,
        confidence=confidence,
        ax=ax,
    )


def combined(
    combined: CombinedExplanation,
    *,
    top: int = 20,
    confidence: float = 0.95,
    ax: Axes | None = None,
) -> Axes:
    """Draw the values of several explanations: one row per feature, the largest mean on top.

    A circle is the value of an explanation, in their order from top to bottom; the diamond is the
    mean. The thick interval is for the mean, the thin one for one more explanation of this kind.

    Parameters
    ----------
    combined : CombinedExplanation
        The result of :func:`dsage.combine`.
    top, confidence, ax
        As for :func:`dsage.plots.folds`.

    Returns
    -------
    matplotlib Axes
    """
    style.check_result(combined, CombinedExplanation, "combined", "dsage.combine")
    thick = _Interval("lower", "upper", "the mean")
    thin = _Interval("lower_next", "upper_next", "one more explanation")
    n_values = len(combined.labels)
    return _draw(
        combined.to_frame(confidence),
        combined.all_values[:, np.argsort(-combined.values, kind="stable")],
        [thick, thin],
        (f"value of an explanation ({n_values} of them)", "their mean"),
        style.value_label(combined.explanations[0]),
        top=top,
        confidence=confidence,
        ax=ax,
    )


def _draw(
    frame: pd.DataFrame,
    singles: Floats,
    intervals: Sequence[_Interval],
    names: tuple[str, str],
    label: str,
    *,
    top: int,
    confidence: float,
    ax: Axes | None,
) -> Axes:
    """Draw single values as circles, the pooled ones as diamonds, and two intervals."""
    shown = frame[: n_shown(len(frame), check_count(top, "top"))]
    rows = as_rows(shown["feature"].tolist(), least=_ROW)
    n_left_out = len(frame) - len(shown)
    notes = [f"the top {len(shown)} of {len(frame)} features"] * (n_left_out > 0)
    if ax is None:
        n_below = n_lines(label, style.LABEL)
        ax = style.new_axes(*rows.size(n_notes=4 + len(notes), n_below=n_below))
    at = rows.centers
    offsets = np.linspace(_FIRST, _LAST, len(singles)) if len(singles) > 1 else np.zeros(1)
    dot: dict[str, Any] = {"marker": "o", "markersize": 3.0, "linestyle": "none"}
    dot |= {"color": style.SKY, "markeredgecolor": style.BLUE, "markeredgewidth": 0.5}
    for values, offset in zip(singles, offsets, strict=True):
        ax.plot(values[: len(shown)], at + offset, zorder=3, **dot)
    below = at + _INTERVAL
    handles: list[Artist] = [Line2D([], [], label=names[0], **dot)]
    mark: dict[str, Any] = {"marker": "D", "color": style.INK, "markersize": 4.5}
    ax.plot(shown["value"], below, linestyle="none", zorder=5, **mark)
    handles.append(Line2D([], [], label=names[1], linestyle="none", **mark))
    for number, each in enumerate(intervals):
        low, high = (shown[name].to_numpy() for name in (each.low, each.high))
        color, is_thick = (style.VERMILION, style.INK)[number], number == 0
        if draw_interval(ax, below, low, high, color=color, is_thick=is_thick):
            text = f"{style.percent(confidence)} interval for {each.scope}"
            width = THICK if is_thick else THIN
            handles.append(Line2D([], [], color=color, linewidth=width, label=text))
    for center, height in zip(rows.centers[1:], np.diff(rows.centers), strict=True):
        ax.axhline(center - height / 2, color=style.FAINT, linewidth=0.8, zorder=0)
    draw_zero(ax)
    style.tidy(ax)
    rows.put(ax)
    style.label_x(ax, label)
    style.legend_above(ax, handles, title="\n".join(notes) or None)
    return ax
