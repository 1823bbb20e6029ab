"""How figures look: small SVG files that are the same for the same tables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from typing import Any

try:
    import matplotlib as mpl
    from matplotlib.figure import Figure
except ImportError as error:
    raise ImportError(
        "The figures need matplotlib; install it with: pip install 'dsage[plot]'."
    ) from error

# Okabe & Ito's palette, told apart by every kind of color vision.
BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
YELLOW, BLUE, RED, PURPLE = "#F0E442", "#0072B2", "#D55E00", "#CC79A7"

WIDTH = 6.6
"""Inches: the column of a page."""

_STYLE = {
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 9,
    # The whole list of fallbacks would be written with every word.
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 8.5,
    "grid.alpha": 0.25,
    "legend.frameon": False,
    # Text stays text, and the identifiers do not depend on the day.
    "svg.fonttype": "none",
    "svg.hashsalt": "dsage",
    # The lines of the grid are enough.
    "xtick.bottom": False,
    "ytick.left": False,
}


@contextmanager
def draw_svg(path: Path, height: float, width: float = WIDTH) -> Iterator[Figure]:
    """Give a figure to draw on, and write it to an SVG file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    style: Any = _STYLE
    with mpl.rc_context(style):
        figure = Figure(figsize=(width, height), layout="constrained")
        yield figure
        text = StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None})
        path.write_text(_compact(text.getvalue()), encoding="utf-8")


def _compact(svg: str) -> str:
    """Return the same drawing in fewer letters: no names of groups, hundredths of a point."""
    text = re.sub(r"\s*<!--.*?-->", "", re.sub(r'<g id="[^"]*"', "<g", svg))
    return re.sub(r"\n\s*", "\n", re.sub(r"<[^>]+>", _compact_tag, text))


def _compact_tag(tag: re.Match[str]) -> str:
    """Round the numbers of a tag, and write its path in one line; words are not touched."""
    rounded = re.sub(r"-?\d+\.\d{3,}", lambda number: f"{float(number[0]):.2f}", tag[0])
    # Corners of markers are round then, as the others are.
    plain = rounded.replace("; stroke-linejoin: miter", "")
    return re.sub(r"\s*\n(?=\")", "", re.sub(r"\s*\n(?=[MLCQz])", "", plain))
