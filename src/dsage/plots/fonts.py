"""Names as they can be drawn: in fonts that are installed, on several lines, never cut."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Any

import matplotlib as mpl
from matplotlib import font_manager

# Common fonts of the systems with letters that matplotlib's own one lacks, most specific last.
_FALLBACKS = (
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "Noto Sans SC",
    "Source Han Sans SC",
    "WenQuanYi Zen Hei",
    "Droid Sans Fallback",
    "PingFang SC",
    "Hiragino Sans",
    "Microsoft YaHei",
    "Malgun Gothic",
    "Noto Sans Arabic",
    "Noto Sans Hebrew",
    "Noto Sans Devanagari",
    "Noto Sans Thai",
    "Segoe UI",
    "Nirmala UI",
    "Arial Unicode MS",
    "Unifont",
    "Symbola",
    "Noto Sans Symbols 2",
    "Noto Emoji",
    "Segoe UI Symbol",
)
# What stands for a character that no installed font has: what a font would draw for it, too.
_BOX = "\u25a1"
# A line may end after one of these.
_PIECES = re.compile(r"[^\s_\-./:,;|)\]}]*[\s_\-./:,;|)\]}]+|[^\s_\-./:,;|)\]}]+")


def text_style() -> dict[str, Any]:
    """Return how text that the user chose is drawn: as it stands, never read as a formula.

    Examples
    --------
    >>> text_style()["parse_math"]
    False
    """
    return {"parse_math": False, "usetex": False, "fontfamily": _families()}


def wrapped(name: str, width: int = 36) -> str:
    r"""Return a name on as few lines of `width` letters as it needs, about equally long.

    Nothing is left out. Lines end after a space, a low line, a dot and the like, or anywhere in a
    longer word. A character that no installed font has becomes a box.

    Examples
    --------
    >>> wrapped("mean_daily_temperature_of_the_last_seven_days", 24).split("\n")
    ['mean_daily_temperature_', 'of_the_last_seven_days']
    """
    text = _showable(name)
    widest = _filled(text, width)
    least = -(-_n_columns(text) // len(widest))
    for narrower in range(least, width):
        lines = _filled(text, narrower)
        if len(lines) == len(widest):
            return "\n".join(lines)
    return "\n".join(widest)


def n_lines(name: str, width: int = 36) -> int:
    """Return on how many lines `wrapped` puts a name.

    Examples
    --------
    >>> n_lines("age"), n_lines("mean_daily_temperature_of_the_last_seven_days", 24)
    (1, 2)
    """
    return wrapped(name, width).count("\n") + 1


def n_columns(text: str) -> int:
    r"""Return how many letters wide the widest line is; East Asian characters count twice.

    Examples
    --------
    >>> n_columns("ab"), n_columns("\u6e29\u5ea6"), n_columns("a\nbcd")
    (2, 4, 3)
    """
    return max(map(_n_columns, text.split("\n")))


def _filled(text: str, width: int) -> list[str]:
    lines: list[str] = [""]
    for piece in _PIECES.findall(text):
        if _n_columns(lines[-1] + piece.rstrip()) > width and lines[-1]:
            lines.append("")
        for letter in piece:
            if _n_columns(lines[-1]) >= width and not letter.isspace():
                lines.append("")
            lines[-1] += letter
    return [line.rstrip() for line in lines]


def _n_columns(line: str) -> int:
    return sum(_width(letter) for letter in line)


def _width(letter: str) -> int:
    if unicodedata.category(letter) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in ("W", "F") else 1


def _showable(name: str) -> str:
    """Return the name with what cannot be drawn replaced, so that drawing it does not warn."""
    fonts = [_letters(font_manager.findfont(_property(family))) for family in _families()]
    shown = ""
    for letter in name:
        if any(ord(letter) in font for font in fonts):
            shown += letter
        elif letter.isspace():
            shown += " "
        # Marks that only change the look of the letter before them leave nothing.
        elif unicodedata.category(letter) not in ("Cf", "Mn", "Me"):
            shown += _BOX
    return shown or _BOX


def _families() -> list[str]:
    """Return the user's fonts, matplotlib's own, and those of `_FALLBACKS` that are installed."""
    installed = set(font_manager.get_font_names())
    own = [*mpl.rcParams["font.family"], "DejaVu Sans"]
    return list(dict.fromkeys([*own, *(name for name in _FALLBACKS if name in installed)]))


def _property(family: str) -> font_manager.FontProperties:
    return font_manager.FontProperties(family=[family])


@lru_cache(maxsize=64)
def _letters(path: str) -> frozenset[int]:
    return frozenset(font_manager.get_font(path).get_charmap())
