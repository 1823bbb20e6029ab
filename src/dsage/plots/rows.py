"""Plots with one row per feature: where the rows stand, and intervals in them."""

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
    """Names below each other.

    Attributes
    ----------
    labels : tuple of str
        The names, wrapped.
    centers : array of shape (n_rows,)
        Inches from the top.
    height : float
        Total height in inches.
    """

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
    """Return rows as high as their names need, and at least `least` inches.

    Examples
    --------
    >>> as_rows(["a", "b"]).centers
    array([0.13, 0.39])
    """
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
    handles: list[Artist] = []
    if computing:
        text = f"{percent(confidence)} interval for these rows"
        handles.append(Line2D([], [], color=INK, linewidth=THICK, label=text))
    if population:
        text = f"{percent(confidence)} interval for the population"
        handles.append(Line2D([], [], color=INK, linewidth=THIN, label=text))
    return handles


def draw_zero(ax: Axes) -> None:
    """Draw the line at zero."""
    ax.axvline(0.0, color=INK, linewidth=0.8, zorder=2)


def n_shown(n_features: int, top: int) -> int:
    """Return how many features get a row of their own; "1 other" is never shown.

    Examples
    --------
    >>> n_shown(100, 20), n_shown(21, 20), n_shown(3, 20)
    (20, 21, 3)
    """
    return n_features if n_features <= top + 1 else top
