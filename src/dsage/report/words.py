"""Numbers, counts and names in words."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Sequence

MINUS = "\N{MINUS SIGN}"
UNKNOWN = "unknown"
# Keeps a number and its unit on one line.
_SPACE = "\N{NO-BREAK SPACE}"
_TIMES = f"{_SPACE}\N{MULTIPLICATION SIGN}{_SPACE}"
_SUPERSCRIPTS = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
# Larger counts are shown as powers of ten.
_MANY = 10**9


def number(value: float, digits: int = 3) -> str:
    """Return a number with some significant digits."""
    if not math.isfinite(value):
        return UNKNOWN
    if value == 0:
        return "0"
    exponent = math.floor(math.log10(abs(value)))
    if not -5 < exponent < 7:
        return _scientific(value, digits)
    return _signed(f"{abs(value):,.{max(digits - 1 - exponent, 0)}f}", negative=value < 0)


class Scale:
    """A common format for numbers in a column: four significant digits for the largest."""

    def __init__(self, values: Iterable[float]) -> None:
        finite = [abs(value) for value in values if math.isfinite(value)]
        largest = max(finite, default=0.0)
        exponent = math.floor(math.log10(largest)) if largest > 0 else 0
        self._decimals = max(3 - exponent, 0) if -5 < exponent < 7 else None

    def __call__(self, value: float) -> str:
        """Return the number."""
        if not math.isfinite(value):
            return UNKNOWN
        if self._decimals is None:
            return number(value)
        text = f"{abs(value):,.{self._decimals}f}"
        return _signed(text, negative=value < 0 and float(text.replace(",", "")) != 0)

    def interval(self, lower: float, upper: float) -> str:
        """Return an interval; "unknown" if an end is not finite."""
        if not (math.isfinite(lower) and math.isfinite(upper)):
            return UNKNOWN
        return f"{self(lower)} to {self(upper)}"


def percent(share: float) -> str:
    """Return a share in percent."""
    if not math.isfinite(share):
        return UNKNOWN
    size = abs(share)
    if 0 < size < 0.0005:
        return f"under{_SPACE}0.1{_SPACE}%"
    if 0.995 <= size < 1:
        # A part must not look like the whole.
        text = f"{math.floor(1000 * size) / 10:.1f}"
    else:
        text = f"{100 * size:.{0 if size >= 0.0995 else 1}f}".removesuffix(".0")
    return _signed(f"{text}{_SPACE}%", negative=share < 0)


def count(value: float) -> str:
    """Return a count; a huge one as a power of ten."""
    if isinstance(value, float) and not math.isfinite(value):
        return UNKNOWN
    if abs(value) < _MANY:
        return f"{round(value):,}"
    # Works also for integers that are too large for a float.
    exponent = math.floor(math.log10(value))
    leading = round(10 ** (math.log10(value) - exponent), 2)
    return f"{leading:g}{_TIMES}10{str(exponent).translate(_SUPERSCRIPTS)}"


def counted(value: float, noun: str, ending: str = "s") -> str:
    """Return a count with its noun."""
    return f"{count(value)} {noun}{'' if value == 1 else ending}"


def p_value(value: float) -> str:
    """Return a p-value in the usual format."""
    if not math.isfinite(value):
        return UNKNOWN
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def named(name: str) -> str:
    """Return a name for a sentence, isolated if it is written from right to left."""
    is_rtl = any(unicodedata.bidirectional(letter) in ("R", "AL", "RLO", "RLE") for letter in name)
    return f"\N{FIRST STRONG ISOLATE}{name}\N{POP DIRECTIONAL ISOLATE}" if is_rtl else name


def listed(names: Sequence[str], most: int = 5) -> str:
    """Return names as a list in a sentence."""
    shown = [named(name) for name in names[:most]]
    if len(names) > most:
        shown.append(f"{len(names) - most} more")
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def duration(seconds: float) -> str:
    """Return a duration."""
    if not math.isfinite(seconds):
        return UNKNOWN
    if seconds < 60:
        return f"{number(seconds, 2)} seconds"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def _scientific(value: float, digits: int) -> str:
    leading, exponent = f"{abs(value):.{digits - 1}e}".split("e")
    text = f"{leading}{_TIMES}10{str(int(exponent)).translate(_SUPERSCRIPTS)}"
    return _signed(text, negative=value < 0)


def _signed(text: str, *, negative: bool) -> str:
    return MINUS + text if negative else text
