"""Format the tables, lists and numbers of the page."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: bool = True) -> str:
    """Return a Markdown table; all columns but the first are right-aligned if `numbers`.

    Examples
    --------
    >>> print(markdown(["graph", "F1"], [["dag_s(2)", "1.000"]]))
    | graph | F1 |
    | :-- | --: |
    | dag_s(2) | 1.000 |
    """
    rule = [":--", *["--:" if numbers else ":--"] * (len(header) - 1)]
    return "\n".join("| " + " | ".join(row) + " |" for row in (header, rule, *rows))


def join_words(names: Iterable[str]) -> str:
    """Join names by commas and "and".

    Examples
    --------
    >>> join_words(["a", "b", "c"])
    'a, b and c'
    """
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def seconds(value: float) -> str:
    """Format a time with three significant digits and its unit.

    Examples
    --------
    >>> seconds(0.00012), seconds(0.0123), seconds(4.5), seconds(4344.81)
    ('0.12 ms', '12.3 ms', '4.50 s', '4,345 s')
    """
    if value < 1:
        return f"{1000 * value:.3g} ms"
    return f"{value:,.2f} s" if value < 100 else f"{value:,.0f} s"


def times(ratios: Iterable[float]) -> str:
    """Format ratios as a range.

    Examples
    --------
    >>> times([3.14159, 12345.6, 20]), times([2])
    ('3.1 to 12,346 times', '2.0 times')
    """
    ordered = sorted(ratios)
    shown = [f"{value:.1f}" if value < 10 else f"{value:,.0f}" for value in ordered]
    ends = [shown[0]] if len(shown) == 1 else [shown[0], shown[-1]]
    return f"{' to '.join(ends)} times"


def percent(share: float) -> str:
    """Format a share as a percentage.

    Examples
    --------
    >>> percent(0.384), percent(0.0012), percent(float("nan"))
    ('38 %', '0.12 %', '-')
    """
    if not math.isfinite(share):
        return "-"
    return f"{100 * share:.0f} %" if abs(share) >= 0.0995 else f"{100 * share:.2g} %"


def duration(seconds: float) -> str:
    """Format a time in seconds, minutes or hours.

    Examples
    --------
    >>> duration(0.0351), duration(42.4), duration(600), duration(44040)
    ('0.035 s', '42 s', '10 min', '12 h 14 min')
    """
    if not math.isfinite(seconds):
        return "-"
    if seconds < 99.5:
        return f"{seconds:.2g} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60} min"


def count(number: float) -> str:
    """Format a large number with two significant digits.

    Examples
    --------
    >>> count(1234), count(5_240_000)
    ('1,200', '5,200,000')
    """
    return f"{float(f'{number:.2g}'):,.0f}"
