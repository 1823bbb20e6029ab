"""Words and tables of the page, in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; the first column is to the left, the others are to the right.

    Examples
    --------
    >>> print(markdown(["graph", "F1"], [["dag_s(2)", "1.000"]]))
    | graph | F1 |
    | :-- | --: |
    | dag_s(2) | 1.000 |
    """
    rule = [":--", *["--:"] * (len(header) - 1)]
    return "\n".join("| " + " | ".join(row) + " |" for row in (header, rule, *rows))


def listed(names: Iterable[str]) -> str:
    """Return names as prose.

    Examples
    --------
    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def seconds(value: float) -> str:
    """Return a time with three digits that matter, and its unit.

    Examples
    --------
    >>> seconds(0.00012), seconds(0.0123), seconds(4.5), seconds(4344.81)
    ('0.12 ms', '12.3 ms', '4.50 s', '4,345 s')
    """
    if value < 1:
        return f"{1000 * value:.3g} ms"
    return f"{value:,.2f} s" if value < 100 else f"{value:,.0f} s"


def times(value: float) -> str:
    """Return a ratio as a number of times.

    Examples
    --------
    >>> times(3.14159), times(12345.6)
    ('3.1 times', '12,346 times')
    """
    return f"{value:.1f} times" if value < 10 else f"{value:,.0f} times"
