"""Tables for terminals and notebooks."""

from __future__ import annotations

import base64
import math
import unicodedata
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from dsage._check import visible
from dsage.estimate.result import MATTERS, PARTS
from dsage.structure.info import GraphSource

if TYPE_CHECKING:
    from dsage.estimate import SamplerCheck
    from dsage.estimate.graph_range import GraphRange
    from dsage.result.explanation import Explanation

# The number of features that are shown.
_MOST_LINES = 20
# The number of outputs that get a column.
_MOST_OUTPUTS = 4
_MARK = "!"


def format_table(
    heads: Sequence[str], rows: Sequence[Sequence[str]], *, left: Sequence[str] = ()
) -> list[str]:
    """Return the lines of a table, with a rule below the head.

    The first column, and columns with heads in `left`, are aligned to the left, others to the
    right.
    """
    heads, *rows = ([visible(cell).replace("\n", "\\n") for cell in row] for row in (heads, *rows))
    widths = [max(map(text_columns, column)) for column in zip(heads, *rows, strict=True)]
    is_left = [not at or head in left for at, head in enumerate(heads)]

    def align(cells: Sequence[str]) -> str:
        gaps = [
            " " * (width - text_columns(cell)) for cell, width in zip(cells, widths, strict=True)
        ]
        parts = zip(cells, gaps, is_left, strict=True)
        return "  ".join(cell + gap if first else gap + cell for cell, gap, first in parts).rstrip()

    return [align(heads), "-" * (sum(widths) + 2 * (len(widths) - 1)), *map(align, rows)]


def as_text(explanation: Explanation) -> str:
    """Return an explanation as text: a headline, the ranking, and notes."""
    heads, lines, rest = _cells(explanation)
    table = format_table(heads, lines)
    return visible("\n".join([headline(explanation), "", *table, *rest, "", *notes(explanation)]))


def as_html(explanation: Explanation, picture: bytes | None = None) -> str:
    """Return an explanation as a styled table, with a picture (PNG) below if there is one."""
    heads, lines, rest = _cells(explanation)
    largest = max((abs(value) for value in explanation.values.tolist()), default=0.0) or 1.0
    values = sorted(explanation.values.tolist(), reverse=True)
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
    after = "<br>".join(escape(text.strip()) for text in [*rest, *notes(explanation)])
    return (
        f"<div><p><strong>{escape(headline(explanation))}</strong></p>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"
        f"<p>{after}</p>{_as_image(picture)}</div>"
    )


def _as_image(picture: bytes | None) -> str:
    if picture is None:
        return ""
    data = base64.b64encode(picture).decode("ascii")
    # These bytes of a PNG are its width; two of its pixels make one pixel of the page.
    width = int.from_bytes(picture[16:20]) // 2
    source = f"data:image/png;base64,{data}"
    return f'<img alt="The ranking of the features" width="{width}" src="{source}">'


NAMES = {"sage": "SAGE", "d-sage": "d-SAGE", "causal": "causal SAGE"}
"""The names of the values in tables, by estimand."""


def headline(explanation: Explanation) -> str:
    """Return model, target, loss and rows in one line."""
    choices = explanation.choices
    name = NAMES[explanation.estimate.estimand]
    if choices.estimate.is_asymmetric:
        name = f"asymmetric {name}"
    n_rows = choices.data.n_rows_evaluation
    return (
        f"{name} values of {choices.model.name}: {explanation.target}, {choices.loss.name}, "
        f"{n_rows:,} evaluation {'row' if n_rows == 1 else 'rows'}"
    )


def notes(explanation: Explanation) -> list[str]:
    """Return how to read the values, why the run stopped, and what the audit found."""
    estimate = explanation.estimate
    is_known = np.isfinite(estimate.se_rows).all()
    parts = "rows and computing" if is_known else "unknown: too few rows"
    lines = [
        f"value ± its standard error from computing; 95 % interval for the population ({parts})",
        f"stopped because {estimate.reason}",
        *_graph_note(explanation),
    ]
    outputs = explanation.choices.data.outputs
    if outputs:
        names = ", ".join(outputs[:_MOST_OUTPUTS]) + ", ..." * (len(outputs) > _MOST_OUTPUTS)
        more = "; see per_output" * (estimate.outputs is not None)
        lines.append(f"values are sums over {len(outputs)} outputs ({names}){more}")
    if explanation.sampler_check is not None:
        lines.append(_sampler_note(explanation, explanation.sampler_check))
    if estimate.audit is not None:
        lines.append(_audit_note(explanation))
    if estimate.interrupted:
        lines.append("interrupted: these are the values so far")
    return lines


def _graph_note(explanation: Explanation) -> list[str]:
    """Return what the graph saved, or left undetermined, in at most one line."""
    graph = explanation.choices.graph
    if explanation.estimate.estimand == "causal":
        return [_range_note(explanation.range_graph)]
    if graph.is_used is False:
        return [f"graph: {graph.why}"]
    if graph.source is GraphSource.NONE and not explanation.share_skipped:
        return []
    return [f"graph: {explanation.share_skipped:.0%} of the surpluses are zero by separation"]


def _range_note(found: GraphRange | None) -> str:
    """Return whether values depend on directions that the data do not determine."""
    if found is None:
        return "features are set as in the graph; direct + indirect = value"
    n_graphs = 1 + len(found.graphs)
    signs, ranks = found.changes_sign(), found.changes_rank()
    if signs or ranks:
        names = list(dict.fromkeys([*signs, *(name for pair in ranks for name in pair)]))
        return (
            f"graphs: over {n_graphs} graphs that the data do not exclude, the sign or the rank of "
            f"{', '.join(names)} changes ({_MARK})"
        )
    return f"graphs: the range over {n_graphs} graphs that the data do not exclude"


def _sampler_note(explanation: Explanation, check: SamplerCheck) -> str:
    if not check.others:
        return f"sampler: its error was not estimated: {check.reason}"
    others = " or ".join(check.others)
    names = check.exceeds(explanation.estimate)
    if not names:
        return f"sampler: how much a value would change with {others}"
    return (
        f"sampler: with {others} the values of {', '.join(names)} would change by more than their "
        f"other errors ({_MARK})"
    )


def _audit_note(explanation: Explanation) -> str:
    estimate = explanation.estimate
    audit = estimate.audit_frame()
    names = audit.loc[audit["matters"], "feature"].tolist()
    if names:
        hint = f" ({_MARK}); see the audit, or estimate SAGE"
        hint *= estimate.estimand == "d-sage"
        return f"audit: d-SAGE and SAGE differ for {', '.join(names)}{hint}"
    farthest = np.maximum(audit["upper"].abs(), audit["lower"].abs())
    is_open = ~(farthest <= MATTERS * float(np.ptp(estimate.values)))
    if not is_open.any():
        return "audit: all differences between d-SAGE and SAGE are below 2 % of the range"
    return (
        "audit: no difference between d-SAGE and SAGE is significantly above 2 % of the range; "
        f"undecided for {int(is_open.sum())} of {len(audit)} features"
    )


def _cells(explanation: Explanation) -> tuple[list[str], list[list[str]], list[str]]:
    """Return the heads, the lines and, if some features are not shown, a note on them."""
    frame, estimate = explanation.to_frame(), explanation.estimate
    digits = count_digits(frame["value"].to_numpy())
    has_audit = estimate.audit is not None
    has_check = explanation.se_sampler is not None
    heads = ["feature", "value", "95 % interval", *["sampler"] * has_check]
    is_causal, ranges = estimate.parts is not None, explanation.range_graph
    heads += ["share", "p-value", *["skipped"] * (not is_causal), *["audit"] * has_audit]
    heads += [*PARTS] * is_causal
    heads += ["over graphs"] * (ranges is not None)
    outputs = explanation.choices.data.outputs[: _MOST_OUTPUTS * (not is_causal)]
    heads += outputs
    lines = []
    rows: list[dict[Any, Any]] = frame.head(_MOST_LINES).to_dict("records")
    for row in rows:
        n_surpluses = row["n_evaluated"] + row["n_skipped"]
        value = [
            f"{row['value']:,.{digits}f} ± {row['se']:,.{digits}f}",
            format_interval(row["lower_total"], row["upper_total"], digits),
            *[_sampler_cell(row, digits)] * has_check,
        ]
        p_value = "< 0.001" if row["p_value"] < 0.001 else f"{row['p_value']:.3f}"
        if estimate.estimand == "d-sage" and row["n_skipped"] and not row["n_evaluated"]:
            # The value follows from the graph: nothing was evaluated, so there is no error.
            value, p_value = ["0 by the graph", *[""] * (1 + has_check)], ""
        line = [
            row["feature"],
            *value,
            f"{row['share']:.1%}" if math.isfinite(row["share"]) else "",
            p_value,
            *[f"{row['n_skipped'] / n_surpluses:.0%}" if n_surpluses else ""] * (not is_causal),
        ]
        if has_audit:
            mark = _MARK if row["audit_matters"] else " "
            line.append(_signed(row["audit_difference"], digits) + mark)
        if is_causal:
            line += [f"{row[name]:,.{digits}f}" for name in PARTS]
        if ranges is not None:
            low, high = row["lowest_graph"], row["highest_graph"]
            line.append(f"{low:,.{digits}f} to {high:,.{digits}f}")
        line += [f"{row[f'value[{name}]']:,.{digits}f}" for name in outputs]
        lines.append(line)
    n_more = len(frame) - len(lines)
    rest = [f"... and {n_more} more; to_frame() has them all"] if n_more else []
    return heads, lines, rest


def _sampler_cell(row: dict[Any, Any], digits: int) -> str:
    return f"± {row['se_sampler']:,.{digits}f}" + (_MARK if row["sampler_matters"] else " ")


def format_interval(low: float, high: float, digits: int) -> str:
    """Return an interval as text."""
    if not math.isfinite(low):
        return "unknown"
    return f"[{low:,.{digits}f}, {high:,.{digits}f}]"


def _signed(value: float, digits: int) -> str:
    """Return a difference with its sign, or 0 if it rounds to zero."""
    text = f"{value:+,.{digits}f}"
    return text if any(digit in text for digit in "123456789") else "0"


def count_digits(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> int:
    """Return the number of decimals that show the largest value with four digits."""
    largest = float(np.max(np.abs(values), initial=0.0))
    if not largest > 0:
        return 4
    return int(np.clip(3 - math.floor(math.log10(largest)), 0, 12))


def text_columns(text: str) -> int:
    """Return the width of a text in letters; East Asian letters count twice, invisible ones 0."""
    seen = [letter for letter in text if unicodedata.category(letter) not in ("Mn", "Me", "Cf")]
    return len(seen) + sum(unicodedata.east_asian_width(letter) in ("W", "F") for letter in seen)
