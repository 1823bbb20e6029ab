"""Names as they can be drawn: in installed fonts, wrapped, never cut."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Any

import matplotlib as mpl
from matplotlib import font_manager

from dsage.result.tables import text_columns

# Common system fonts with letters that the font of matplotlib lacks, most specific last.
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
# Replaces a character that is not in any installed font.
_BOX = "\u25a1"
# A line may end after one of these.
_PIECES = re.compile(r"[^\s_\-./:,;|)\]}]*[\s_\-./:,;|)\]}]+|[^\s_\-./:,;|)\]}]+")


def text_style() -> dict[str, Any]:
    """Return the style of text from the user: literal, never a formula."""
    return {"parse_math": False, "usetex": False, "fontfamily": _families()}


def wrap(name: str, width: int = 36) -> str:
    """Return a name on as few lines of `width` letters as possible, about equally long.

    Nothing is left out. Lines break after spaces and punctuation, or anywhere in a longer word. A
    character that is not in any installed font becomes a box.
    """
    text = _replace_missing(name)
    widest = _fill(text, width)
    least = -(-text_columns(text) // len(widest))
    for narrower in range(least, width):
        lines = _fill(text, narrower)
        if len(lines) == len(widest):
            return "\n".join(lines)
    return "\n".join(widest)


def n_lines(name: str, width: int = 36) -> int:
    """Return the number of lines of a wrapped name."""
    return wrap(name, width).count("\n") + 1


def n_columns(text: str) -> int:
    """Return the number of letters of the widest line; East Asian characters count twice."""
    return max(map(text_columns, text.split("\n")))


def _fill(text: str, width: int) -> list[str]:
    lines: list[str] = [""]
    for piece in _PIECES.findall(text):
        if text_columns(lines[-1] + piece.rstrip()) > width and lines[-1]:
            lines.append("")
        for letter in piece:
            if text_columns(lines[-1]) >= width and not letter.isspace():
                lines.append("")
            lines[-1] += letter
    return [line.rstrip() for line in lines]


def _replace_missing(name: str) -> str:
    """Replace characters that cannot be drawn, so that matplotlib does not warn."""
    fonts = [_letters(font_manager.findfont(_property(family))) for family in _families()]
    shown = ""
    for letter in name:
        if any(ord(letter) in font for font in fonts):
            shown += letter
        elif letter.isspace():
            shown += " "
        # Combining marks are dropped.
        elif unicodedata.category(letter) not in ("Cf", "Mn", "Me"):
            shown += _BOX
    return shown or _BOX


def _families() -> list[str]:
    """Return the fonts of the user, matplotlib's default font, and the installed `_FALLBACKS`."""
    installed = set(font_manager.get_font_names())
    own = [*mpl.rcParams["font.family"], "DejaVu Sans"]
    return list(dict.fromkeys([*own, *(name for name in _FALLBACKS if name in installed)]))


def _property(family: str) -> font_manager.FontProperties:
    return font_manager.FontProperties(family=[family])


@lru_cache(maxsize=64)
def _letters(path: str) -> frozenset[int]:
    return frozenset(font_manager.get_font(path).get_charmap())
