"""Two panels with the same rows: values side by side, and their differences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from dsage._check import check_count
from dsage.estimate.inference import effective_df, intervals
from dsage.plots.fonts import n_lines, wrap
from dsage.plots.rows import (
    Floats,
    Rows,
    as_rows,
    draw_interval,
    draw_zero,
    interval_handles,
    n_shown,
)
from dsage.plots.style import (
    FAINT,
    LABEL,
    MARKERS,
    PALETTE,
    label_x,
    legend_above,
    tidy,
    two_axes,
)

# Inches between the marks of two explanations of one feature.
_STEP = 0.11
# Letters per line: in the legend, below the values, below the differences.
_LEGEND, _VALUES, _DIFFERENCES = 40, LABEL, 36


@dataclass(frozen=True)
class Series:
    """Estimates for the same features, with their errors.

    Attributes
    ----------
    label : str
        Name in the legend.
    values, se, df : arrays of shape (n_features,)
        The estimates, their errors from computing, and degrees of freedom.
    se_total, df_total : arrays of shape (n_features,)
        The errors from rows and computing; NaN if unknown.
    """

    label: str
    values: Floats
    se: Floats
    df: Floats
    se_total: Floats
    df_total: Floats

    def minus(self, other: Series) -> Series:
        """Return the differences to the estimates of an independent run."""
        variances = np.stack([self.se**2, other.se**2])
        total = np.stack([self.se_total**2, other.se_total**2])
        return Series(
            self.label,
            self.values - other.values,
            np.sqrt(variances.sum(axis=0)),
            effective(variances, self.df, other.df),
            np.sqrt(total.sum(axis=0)),
            effective(total, self.df_total, other.df_total),
        )

    def take(self, at: npt.NDArray[np.intp]) -> Series:
        """Return the estimates for some features."""
        arrays = (self.values, self.se, self.df, self.se_total, self.df_total)
        return Series(self.label, *(array[at] for array in arrays))


@dataclass(frozen=True)
class Pair:
    """The content of the two panels.

    Attributes
    ----------
    names : list of str
        The features.
    ranked_by : array of shape (n_features,)
        Features are sorted by this, the largest first.
    series, differences : lists of Series
        The left panel, and the right one, for all series but the first.
    labels : pair of str
        Labels of the horizontal axes.
    notes : list of str
        Lines above the legend.
    """

    names: list[str]
    ranked_by: Floats
    series: list[Series]
    differences: list[Series]
    labels: tuple[str, str]
    notes: list[str] = field(default_factory=list)

    def draw(self, *, top: int, confidence: float, ax: Sequence[Axes] | None) -> tuple[Axes, Axes]:
        """Draw values on the left and differences on the right."""
        n_rows = n_shown(len(self.names), check_count(top, "top"))
        order = np.argsort(-self.ranked_by, kind="stable")[:n_rows]
        notes = list(self.notes)
        if len(order) < len(self.names):
            notes.append(f"the top {len(order)} of {len(self.names)} features")
        least = max(0.28, _STEP * len(self.series) + 0.1)
        rows = as_rows([self.names[number] for number in order], least=least)
        left, right = two_axes(ax, *self._size(rows, notes), (1.25, 1.0))
        drawn = _draw_series(left, rows, [each.take(order) for each in self.series], 0, confidence)
        _draw_series(right, rows, [each.take(order) for each in self.differences], 1, confidence)
        rows.put(left)
        rows.put(right, with_names=False)
        label_x(left, self.labels[0], width=_VALUES)
        label_x(right, self.labels[1], width=_DIFFERENCES)
        handles: list[Artist] = [
            Line2D([], [], label=wrap(each.label, _LEGEND), linestyle="none", **_mark(number))
            for number, each in enumerate(self.series)
        ]
        title = "\n".join(notes) or None
        legend_above(left, [*handles, *interval_handles(confidence, **drawn)], title=title)
        return left, right

    def _size(self, rows: Rows, notes: list[str]) -> tuple[float, float]:
        n_notes = 2 + len(notes) + sum(n_lines(each.label, _LEGEND) for each in self.series)
        n_below = max(n_lines(self.labels[0], _VALUES), n_lines(self.labels[1], _DIFFERENCES))
        return rows.size(2, n_notes=n_notes, n_below=n_below)


def _draw_series(
    ax: Axes, rows: Rows, series: list[Series], first: int, confidence: float
) -> dict[str, bool]:
    """Draw marks with intervals, those of one feature below each other."""
    drawn = {"computing": False, "population": False}
    for number, each in enumerate(series):
        at = rows.centers + _STEP * (number - (len(series) - 1) / 2)
        style = _mark(number + first)
        color = style["color"]
        for name, se, df in (
            ("computing", each.se, each.df),
            ("population", each.se_total, each.df_total),
        ):
            low, high = intervals(each.values, se, confidence, df=df)
            is_thick = name == "computing"
            drawn[name] |= draw_interval(ax, at, low, high, color=color, is_thick=is_thick)
        ax.plot(each.values, at, linestyle="none", zorder=5, **style)
    for end, then in pairwise(rows.centers):
        ax.axhline((end + then) / 2, color=FAINT, linewidth=0.8, zorder=0)
    draw_zero(ax)
    tidy(ax)
    return drawn


def _mark(number: int) -> dict[str, Any]:
    return {
        "marker": MARKERS[number % len(MARKERS)],
        "color": PALETTE[number % len(PALETTE)],
        "markersize": 4.0,
    }


def effective(variances: Floats, *df: Floats) -> Floats:
    """Return the degrees of freedom of a sum, without the parts of unknown variance."""
    return effective_df(np.where(np.isfinite(variances), variances, 0.0), np.stack(df))
