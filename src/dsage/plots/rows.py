"""Plots with one row per feature: positions of the rows, and intervals in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from dsage.plots.fonts import n_columns, text_style, wrap
from dsage.plots.style import INK, LINE, SIZE, SMALL, percent, text_width

Floats = npt.NDArray[np.float64]

# Widths of the lines of the two intervals, in points.
THICK, THIN = 3.0, 0.9
# Inches: the minimum height of a row, and the width of the axes.
_ROW, _PANEL = 0.26, 3.4
# Inches: the minimum height of the axes.
_LEAST = 0.5


@dataclass(frozen=True)
class Rows:
    """Wrapped names below each other: their centers from the top and total height, in inches."""

    labels: tuple[str, ...]
    centers: Floats
    height: float

    def size(self, n_panels: int = 1, n_notes: int = 2, n_below: int = 1) -> tuple[float, float]:
        """Return the width and height in inches of a figure with room for everything.

        There are `n_notes` lines above the panels and `n_below` below their axes.
        """
        names = text_width(max(map(n_columns, self.labels)))
        width = names + n_panels * _PANEL + 0.2
        around = 0.5 + n_below * LINE + n_notes * 1.3 * SMALL / 72
        return width, max(self.height, _LEAST) + around

    def put(self, ax: Axes, *, with_names: bool = True) -> None:
        """Label the vertical axis with the rows, from top to bottom."""
        labels = self.labels if with_names else [""] * len(self.labels)
        ax.set_yticks(self.centers, labels=labels, **text_style())
        ax.tick_params(axis="y", length=0, labelsize=SIZE, labelcolor=INK)
        # A single row would fill the axes.
        room = max(_LEAST - self.height, 0.0) / 2
        ax.set_ylim(self.height + room, -room)


def as_rows(names: Sequence[str], *, least: float = _ROW) -> Rows:
    """Return rows as high as their names need, and at least `least` inches."""
    labels = tuple(map(wrap, names))
    heights = [max(least, LINE * (label.count("\n") + 1) + 0.08) for label in labels]
    ends = np.cumsum(heights)
    return Rows(labels, ends - np.asarray(heights) / 2, float(ends[-1]))


def draw_interval(
    ax: Axes, at: Floats, low: Floats, high: Floats, *, color: str, is_thick: bool
) -> bool:
    """Draw the finite intervals, and return whether any is visible."""
    finite = np.isfinite(low) & np.isfinite(high)
    width, zorder = (THICK, 4) if is_thick else (THIN, 3)
    ax.hlines(at[finite], low[finite], high[finite], colors=color, linewidths=width, zorder=zorder)
    # The interval of an exact value has no length.
    return bool((high[finite] > low[finite]).any())


def interval_handles(confidence: float, *, computing: bool, population: bool) -> list[Artist]:
    """Return the legend entries of the intervals that are drawn."""
    text = f"{percent(confidence)} interval for"
    kinds = ((computing, THICK, "these rows"), (population, THIN, "the population"))
    return [
        Line2D([], [], color=INK, linewidth=width, label=f"{text} {scope}")
        for is_drawn, width, scope in kinds
        if is_drawn
    ]


def draw_zero(ax: Axes) -> None:
    """Draw the line at zero."""
    ax.axvline(0.0, color=INK, linewidth=0.8, zorder=2)


def n_shown(n_features: int, top: int) -> int:
    """Return the number of features with separate rows; "1 other" is never shown."""
    return n_features if n_features <= top + 1 else top
