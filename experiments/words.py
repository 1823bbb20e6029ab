"""Numbers of the page: shares, times and counts."""

from __future__ import annotations

import math


def percent(share: float) -> str:
    """Return a share as per cent.

    Examples
    --------
    >>> percent(0.384), percent(0.0012), percent(float("nan"))
    ('38 %', '0.12 %', '-')
    """
    if not math.isfinite(share):
        return "-"
    return f"{100 * share:.0f} %" if abs(share) >= 0.0995 else f"{100 * share:.2g} %"


def duration(seconds: float) -> str:
    """Return a time as people say it.

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
    """Return a large number readably.

    Examples
    --------
    >>> count(1234), count(5_240_000)
    ('1,200', '5,200,000')
    """
    return f"{float(f'{number:.2g}'):,.0f}"
