"""Lines and columns for a terminal."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence


def as_lines(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    r"""Return a table: the first column to the left, the others to the right, a rule below.

    Examples
    --------
    >>> print(*as_lines(["edge", "share"], [["a -> b", "90%"], ["b", "5%"]]), sep="\n")
    edge    share
    -------------
    a -> b    90%
    b          5%
    """
    every = [heads, *rows]
    widths = [max(_width(row[at]) for row in every) for at in range(len(heads))]
    lines = []
    for row in every:
        gaps = [width - _width(cell) for cell, width in zip(row, widths, strict=True)]
        cells = [row[0] + " " * gaps[0]]
        cells += [" " * gap + cell for cell, gap in zip(row[1:], gaps[1:], strict=True)]
        lines.append("  ".join(cells).rstrip())
    return [lines[0], "-" * max(map(_width, lines)), *lines[1:]]


def _width(text: str) -> int:
    """Return how many places a text takes in a terminal."""
    return sum(
        0 if unicodedata.combining(letter) else 1 + (unicodedata.east_asian_width(letter) in "WF")
        for letter in text
    )
