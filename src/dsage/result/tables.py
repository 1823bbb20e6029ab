"""A record as a table to read: in a terminal, in a notebook."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from dsage.estimate.result import MATTERS
from dsage.result.record import Record

# More lines than this are summed up.
_MOST_LINES = 20
_MARK = "!"


def format_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    r"""Return the lines of a table: first column left-aligned, others right, a rule below the head.

    Examples
    --------
    >>> print(*format_table(["edge", "share"], [["a -> b", "90%"], ["b", "5%"]]), sep="\n")
    edge    share
    -------------
    a -> b    90%
    b          5%
    """
    widths = [max(map(_width, column)) for column in zip(heads, *rows, strict=True)]

    def align(cells: Sequence[str]) -> str:
        gaps = [" " * (width - _width(cell)) for cell, width in zip(cells, widths, strict=True)]
        others = [gap + cell for gap, cell in zip(gaps[1:], cells[1:], strict=True)]
        return "  ".join([cells[0] + gaps[0], *others]).rstrip()

    return [align(heads), "-" * (sum(widths) + 2 * (len(widths) - 1)), *map(align, rows)]


def as_text(record: Record) -> str:
    """Return a record as text: a headline, the ranking, and what to know about it."""
    heads, lines, rest = _cells(record)
    table = format_table(heads, lines)
    return "\n".join([headline(record), "", *table, *rest, "", *notes(record)])


def as_html(record: Record) -> str:
    """Return a record as a styled table."""
    heads, lines, rest = _cells(record)
    largest = max((abs(value) for value in record.values.tolist()), default=0.0) or 1.0
    values = sorted(record.values.tolist(), reverse=True)
    head = "".join(
        f'<th style="text-align:{"left" if not at else "right"}">{escape(name)}</th>'
        for at, name in enumerate(heads)
    )
    body = []
    for line, value in zip(lines, values, strict=False):
        bar = max(0.0, value) / largest * 100
        fill = f"linear-gradient(90deg, #56b4e955 {bar:.1f}%, transparent {bar:.1f}%)"
        cells = [f'<td style="text-align:left;background:{fill}" dir="auto">{escape(line[0])}</td>']
        cells += [f'<td style="text-align:right">{escape(cell)}</td>' for cell in line[1:]]
        body.append(f"<tr>{''.join(cells)}</tr>")
    after = "<br>".join(escape(text.strip()) for text in [*rest, *notes(record)])
    return (
        f"<div><p><strong>{escape(headline(record))}</strong></p>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"
        f"<p>{after}</p></div>"
    )


def headline(record: Record) -> str:
    """Return what the values are of, in one line."""
    name = "SAGE" if record.estimate.estimand == "sage" else "d-SAGE"
    if str(record.choices["estimate"].get("orderings", "")).startswith("Order("):
        name = f"asymmetric {name}"
    model = record.choices["model"]["name"]
    loss = record.choices["loss"]["name"]
    rows = record.choices["data"]["rows_evaluation"]
    noun = "row" if rows == 1 else "rows"
    return f"{name} values of {model}: {record.target}, {loss}, {rows:,} evaluation {noun}"


def notes(record: Record) -> list[str]:
    """Return what a reader has to know of the values."""
    known = record.estimate
    lines = [
        (
            f"value ± its standard error by computing; 95 % interval for the population "
            f"({'rows and computing' if np.isfinite(known.se_rows).all() else 'rows too few'})"
        ),
        (
            f"ended because {known.reason}; {record.share_skipped:.0%} of the surpluses are zero "
            "by separation"
        ),
    ]
    if known.audit is not None:
        lines.append(_audited(record))
    if known.interrupted:
        lines.append("interrupted: these are the values so far")
    return lines


def _audited(record: Record) -> str:
    """Return what the audit found: differences, none that matter, or too little to tell."""
    known = record.estimate
    audit = known.audit_frame()
    names = audit.loc[audit["matters"], "feature"].tolist()
    if names:
        hint = f" ({_MARK}); see the audit, or estimand='sage'" * (known.estimand == "d-sage")
        return f"audit: d-SAGE and SAGE differ for {', '.join(names)}{hint}"
    threshold = MATTERS * float(np.ptp(known.values))
    reach = np.maximum(audit["upper"].abs(), audit["lower"].abs())
    is_open = ~(reach <= threshold)
    if not is_open.any():
        return "audit: every difference of d-SAGE to SAGE is below 2 % of the range"
    n_open = int(is_open.sum())
    return (
        f"audit: no difference of d-SAGE to SAGE is surely above 2 % of the range; open for "
        f"{n_open} of {len(audit)} features"
    )


def _cells(record: Record) -> tuple[list[str], list[list[str]], list[str]]:
    """Return the heads, the lines and, where there are too many, what became of the others."""
    frame = record.to_frame()
    digits = _digits(frame["value"].to_numpy())
    has_audit = record.estimate.audit is not None
    heads = ["feature", "value", "95 % interval", "share", "p-value", "skipped"]
    heads += ["audit"] * has_audit
    lines = []
    rows: list[dict[Any, Any]] = frame.head(_MOST_LINES).to_dict("records")
    for row in rows:
        n_surpluses = row["n_evaluated"] + row["n_skipped"]
        line = [
            row["feature"],
            f"{row['value']:,.{digits}f} ± {row['se']:,.{digits}f}",
            _interval(row["lower_total"], row["upper_total"], digits),
            f"{row['share']:.1%}" if math.isfinite(row["share"]) else "",
            "< 0.001" if row["p_value"] < 0.001 else f"{row['p_value']:.3f}",
            f"{row['n_skipped'] / n_surpluses:.0%}" if n_surpluses else "",
        ]
        if has_audit:
            mark = _MARK if row["audit_matters"] else " "
            line.append(_signed(row["audit_difference"], digits) + mark)
        lines.append(line)
    n_more = len(frame) - len(lines)
    rest = [f"... and {n_more} more; to_frame() has them all"] if n_more else []
    return heads, lines, rest


def _interval(low: float, high: float, digits: int) -> str:
    if not math.isfinite(low):
        return "unknown"
    return f"[{low:,.{digits}f}, {high:,.{digits}f}]"


def _signed(value: float, digits: int) -> str:
    """Return a difference with its sign, or 0 where nothing is left of it."""
    text = f"{value:+,.{digits}f}"
    return text if any(digit in text for digit in "123456789") else "0"


def _digits(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> int:
    """Return how many decimals show the largest value with four figures."""
    largest = float(np.max(np.abs(values), initial=0.0))
    if not largest > 0:
        return 4
    return int(np.clip(3 - math.floor(math.log10(largest)), 0, 12))


def _width(text: str) -> int:
    """Return how many columns of a terminal a text takes: East Asian letters take two."""
    return sum(
        0 if unicodedata.combining(letter) else 1 + (unicodedata.east_asian_width(letter) in "WF")
        for letter in text
    )
