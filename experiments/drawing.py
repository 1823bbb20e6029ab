"""Draw figures as small, reproducible SVG files."""

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

# The palette of Okabe and Ito, which is safe for color-blind readers.
BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
YELLOW, BLUE, RED, PURPLE = "#F0E442", "#0072B2", "#D55E00", "#CC79A7"

WIDTH = 6.6
"""Width of a page column in inches."""

_STYLE = {
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 9,
    # Otherwise the whole list of fallback fonts is written with every text.
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 8.5,
    "grid.alpha": 0.25,
    "legend.frameon": False,
    # Keep text as text and make identifiers reproducible.
    "svg.fonttype": "none",
    "svg.hashsalt": "dsage",
    # The grid replaces tick marks.
    "xtick.bottom": False,
    "ytick.left": False,
}


@contextmanager
def draw_svg(path: Path, height: float, width: float = WIDTH) -> Iterator[Figure]:
    """Yield a figure to draw on, then write it to an SVG file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    style: Any = _STYLE
    with mpl.rc_context(style):
        figure = Figure(figsize=(width, height), layout="constrained")
        yield figure
        text = StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None})
        path.write_text(_compact(text.getvalue()), encoding="utf-8")


def _compact(svg: str) -> str:
    """Shorten an SVG file by dropping group names and rounding to hundredths of a point."""
    text = re.sub(r"\s*<!--.*?-->", "", re.sub(r'<g id="[^"]*"', "<g", svg))
    return re.sub(r"\n\s*", "\n", re.sub(r"<[^>]+>", _compact_tag, text))


def _compact_tag(tag: re.Match[str]) -> str:
    """Round the numbers of a tag and write its path in one line."""
    rounded = re.sub(r"-?\d+\.\d{3,}", lambda number: f"{float(number[0]):.2f}", tag[0])
    # Draw the corners of markers round, like all others.
    plain = rounded.replace("; stroke-linejoin: miter", "")
    return re.sub(r"\s*\n(?=\")", "", re.sub(r"\s*\n(?=[MLCQz])", "", plain))
