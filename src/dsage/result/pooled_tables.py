"""Tables of several explanations together, for terminals and notebooks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

import pandas as pd

from dsage._check import visible
from dsage.result.explanation import Explanation
from dsage.result.tables import NAMES, count_digits, format_interval, format_table

# The number of features that are shown.
_MOST_LINES = 20


class PooledTable(NamedTuple):
    """The content of a table: a title, one line per feature, the ends of its intervals, and notes.

    The frame has the columns ``feature``, ``value``, ``se``, ``spread`` and ``p_value``, and the
    columns of the intervals.
    """

    title: str
    frame: pd.DataFrame
    intervals: Mapping[str, tuple[str, str]]
    notes: Sequence[str]


def as_text(table: PooledTable) -> str:
    """Return a table as text."""
    heads, lines, rest = _cells(table)
    shown = [table.title, "", *format_table(heads, lines), *rest, "", *table.notes]
    return visible("\n".join(shown))


def as_html(table: PooledTable) -> str:
    """Return a table as HTML."""
    heads, lines, rest = _cells(table)
    return html_table(table.title, heads, lines, [*rest, *table.notes])


def html_table(
    title: str, heads: Sequence[str], lines: Sequence[Sequence[str]], notes: Sequence[str]
) -> str:
    """Return cells as an HTML table, with the first column aligned to the left."""
    sides = ["left", *["right"] * (len(heads) - 1)]

    def line(cells: Sequence[str], tag: str) -> str:
        parts = zip(cells, sides, strict=True)
        inner = "".join(
            f'<{tag} style="text-align:{side}">{escape(cell)}</{tag}>' for cell, side in parts
        )
        return f"<tr>{inner}</tr>"

    body = "".join(line(cells, "td") for cells in lines)
    after = "<br>".join(map(escape, notes))
    return (
        f"<div><p><strong>{escape(title)}</strong></p><table><thead>{line(heads, 'th')}</thead>"
        f"<tbody>{body}</tbody></table><p>{after}</p></div>"
    )


def name_estimand(explanations: Sequence[Explanation]) -> str:
    """Return the name of the estimand, or of several."""
    found = dict.fromkeys(NAMES[each.estimate.estimand] for each in explanations)
    return " and ".join(sorted(found, reverse=True))


def p_value_cell(p: float) -> str:
    """Return a p-value as text."""
    if not math.isfinite(p):
        return ""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def _cells(table: PooledTable) -> tuple[list[str], list[list[str]], list[str]]:
    """Return the heads, the lines and, if some features are not shown, a note on them."""
    digits = count_digits(table.frame["value"].to_numpy())
    heads = ["feature", "value", "spread", *table.intervals, "p-value"]
    lines = []
    rows: list[dict[Any, Any]] = table.frame.head(_MOST_LINES).to_dict("records")
    for row in rows:
        spread = f"{row['spread']:,.{digits}f}" if math.isfinite(row["spread"]) else ""
        ends = [
            format_interval(row[low], row[high], digits) for low, high in table.intervals.values()
        ]
        value = f"{row['value']:,.{digits}f} ± {row['se']:,.{digits}f}"
        lines.append([row["feature"], value, spread, *ends, p_value_cell(row["p_value"])])
    n_more = len(table.frame) - len(lines)
    return heads, lines, [f"... and {n_more} more; to_frame() has them all"] * (n_more > 0)
