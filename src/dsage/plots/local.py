"""Helpers for plots of explained rows: names with values, labels, colors of features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.colors import LinearSegmentedColormap, to_rgba

from dsage._check import refusal
from dsage.plots import style
from dsage.result.row_tables import explained_noun, value_noun
from dsage.result.rows import RowExplanation

Floats = npt.NDArray[np.float64]

# From low to high values of a feature: blue to vermilion over a dark violet, which is visible on
# white everywhere and differs in lightness for readers who do not see the hues.
COLORS = LinearSegmentedColormap.from_list(
    "dsage", [style.SKY, style.BLUE, "#4B3B7C", "#A03E5B", style.VERMILION, style.ORANGE]
)
# Longer values are cut in labels.
_LONGEST = 24


def check_rows_explained(explanation: object) -> RowExplanation:
    """Return `explanation`, or refuse other objects."""
    if not isinstance(explanation, RowExplanation):
        found, advice = type(explanation).__name__, "Pass the result of dsage.explain_rows"
        raise refusal("explanation", "a RowExplanation", found, advice, TypeError)
    return explanation


def with_value(name: str, text: str) -> str:
    """Return the name of a feature with its value in a row."""
    return f"{name} = {cut(text, _LONGEST)}"


def cut(text: str, longest: int) -> str:
    """Return a text of at most `longest` letters."""
    return text if len(text) <= longest else f"{text[: longest - 1]}\N{HORIZONTAL ELLIPSIS}"


def explained_label(explanation: RowExplanation) -> str:
    """Return the label of the axis of predictions or losses."""
    return explained_noun(explanation)


def value_label(explanation: RowExplanation) -> str:
    """Return the label of the axis of the values."""
    what = explained_noun(explanation)
    if explanation.is_loss:
        return f"{value_noun(explanation)} (reduction of {what})"
    return f"{value_noun(explanation)} (contribution to the {what})"


@dataclass(frozen=True, eq=False)
class Shades:
    """The color of each row by a feature.

    `colors` has shape (n_rows, 4); `categories` are the names of a class with their colors;
    `is_number` says whether colors go from low to high; `is_missing` marks missing values.
    """

    colors: Floats
    categories: dict[str, Any]
    is_number: bool
    is_missing: npt.NDArray[np.bool_]


def shade(explanation: RowExplanation, feature: str) -> Shades:
    """Return the colors of rows by a feature: a scale for numbers, a palette for classes."""
    found = explanation.positions(feature)
    colors = np.tile(to_rgba(style.GRAY), (len(explanation), 1))
    is_scaled = np.isfinite(found.shares)
    colors[is_scaled] = COLORS(found.shares[is_scaled])
    palette: dict[str, Any] = dict(zip(found.categories, style.PALETTE, strict=False))
    for at, color in enumerate(palette.values()):
        colors[found.codes == at] = to_rgba(color)
    if palette and (found.codes == len(palette)).any():
        palette["others"] = style.GRAY
    colors[found.is_missing] = to_rgba(style.LIGHT)
    return Shades(colors, palette, found.is_number, found.is_missing)


def add_scale(ax: Any, text: str) -> None:  # noqa: ANN401
    """Add a color bar from low to high next to the axes."""
    mappable = mpl.cm.ScalarMappable(cmap=COLORS)
    bar = ax.figure.colorbar(mappable, ax=ax, ticks=[0, 1], aspect=30, pad=0.02, fraction=0.04)
    bar.ax.set_yticklabels(["low", "high"], fontsize=style.SMALL, color=style.INK)
    bar.ax.tick_params(length=0)
    bar.set_label(text, fontsize=style.SMALL, color=style.INK, labelpad=-8)
    bar.outline.set_visible(False)
