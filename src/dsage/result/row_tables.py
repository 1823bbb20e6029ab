"""Tables of explained rows for terminals and notebooks."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

import numpy as np

from dsage.result.tables import count_digits, format_table
from dsage.structure.info import GraphSource

if TYPE_CHECKING:
    from dsage.result.rows import RowExplanation

# Rows and features that are shown.
_MOST_ROWS, _MOST_FEATURES = 5, 8


def value_noun(explanation: RowExplanation) -> str:
    """Return the name of the values."""
    if explanation.estimand == "causal":
        is_asymmetric = explanation.choices.estimate.is_asymmetric
        return "asymmetric Shapley value" if is_asymmetric else "Shapley value"
    is_with_graph = explanation.estimand == "d-sage"
    if explanation.choices.estimate.is_asymmetric:
        return "asymmetric d-SHAP value" if is_with_graph else "asymmetric SHAP value"
    return "d-SHAP value" if is_with_graph else "SHAP value"


def explained_noun(explanation: RowExplanation) -> str:
    """Return the name of the explained quantity: a loss, a probability or a prediction."""
    choices = explanation.choices
    if explanation.is_loss:
        return choices.loss.name.replace("_", " ")
    if len(explanation.outputs) > 1:
        return f"{len(explanation.outputs)} outputs"
    output = explanation.outputs[0]
    if output is None:
        return f"prediction of {explanation.target}"
    if choices.model.classes is not None:
        return f"probability of {explanation.target} = {output}"
    return f"output {output}"


def headline(explanation: RowExplanation) -> str:
    """Return the model, the explained quantity and the number of rows in one line."""
    n_rows = len(explanation)
    what = explained_noun(explanation)
    kind = "Marginal" if explanation.is_marginal else "Conditional"
    kind = "Causal" if explanation.estimand == "causal" else kind
    return (
        f"{kind} {value_noun(explanation)}s of {explanation.choices.model.name}: {what}, "
        f"{n_rows:,} {'row' if n_rows == 1 else 'rows'}"
    )


def as_text(explanation: RowExplanation) -> str:
    """Return explained rows as text: a headline, a table of the rows, and notes."""
    heads, lines, rest = _cells(explanation)
    table = format_table(heads, lines)
    return "\n".join([headline(explanation), "", *table, *rest, "", *notes(explanation)])


def as_html(explanation: RowExplanation) -> str:
    """Return explained rows as a table."""
    heads, lines, rest = _cells(explanation)
    head = "".join(f"<th>{escape(name)}</th>" for name in heads)
    body = []
    for line in lines:
        cells = "".join(f'<td style="text-align:right">{escape(cell)}</td>' for cell in line)
        body.append(f"<tr>{cells}</tr>")
    after = "<br>".join(escape(text) for text in [*rest, *notes(explanation)])
    return (
        f"<div><p><strong>{escape(headline(explanation))}</strong></p>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"
        f"<p>{after}</p></div>"
    )


def notes(explanation: RowExplanation) -> list[str]:
    """Return how to read the values, why the run stopped, and what the audit found."""
    largest = max(float(each.se.max(initial=0.0)) for each in explanation.estimates)
    ends = "base minus loss" if explanation.is_loss else "prediction minus base"
    sums = f"the values of a row add up to its {ends}"
    if explanation.estimand == "d-sage":
        left = max(float(np.abs(each.unexplained).max()) for each in explanation.estimates)
        sums += f", except for up to {left:.3g} that the graph does not explain"
    lines = [
        f"{sums}; largest standard error {largest:.3g}",
        f"stopped because {explanation.estimates[-1].reason}",
    ]
    graph = explanation.choices.graph
    if explanation.estimand == "causal":
        lines.append("features are set as in the graph; to_frame() has direct and indirect parts")
    elif graph.is_used is False:
        lines.append(f"graph: {graph.why}")
    elif graph.source is not GraphSource.NONE:
        share = explanation.choices.evaluations.share_skipped
        lines.append(f"graph: {share:.0%} of the surpluses are zero by separation")
    lines += _audit_note(explanation)
    if any(each.interrupted for each in explanation.estimates):
        lines.append("interrupted: these are the values so far")
    return lines


def audit_counts(explanation: RowExplanation) -> dict[str, int] | None:
    """Return in how many rows the audit finds each feature changed; None without an audit."""
    found = [each for each in explanation.estimates if each.audit is not None]
    if not found:
        return None
    changed = [each.audit.matters(each.values) for each in found if each.audit is not None]
    counts = np.any(changed, axis=0).sum(axis=0).tolist()
    return dict(zip(explanation.feature_names, counts, strict=True))


def _audit_note(explanation: RowExplanation) -> list[str]:
    counts = audit_counts(explanation)
    if counts is None:
        return []
    named = [f"{name} ({count} rows)" for name, count in counts.items() if count]
    if not named:
        text = "audit: no difference to values without the graph is significantly above 2 % of"
        return [f"{text} the range"]
    return [f"audit: the graph changes the values of {', '.join(named)}"]


def _cells(explanation: RowExplanation) -> tuple[list[str], list[list[str]], list[str]]:
    """Return the heads, a line for each row and output, and notes on what is not shown."""
    frame = explanation.mean_frame()
    size = frame.groupby("feature", sort=False)["mean_absolute"].max()
    shown = size.sort_values(ascending=False, kind="stable").index[:_MOST_FEATURES].tolist()
    places = [explanation.feature_names.index(name) for name in shown]
    is_several = len(explanation.outputs) > 1
    ends = ["base", *shown, "loss" if explanation.is_loss else "prediction"]
    heads = ["row", *["output"] * is_several, *ends]
    digits = count_digits(np.stack([each.values for each in explanation.estimates]).ravel())
    lines = []
    for row in range(min(len(explanation), _MOST_ROWS)):
        for output, each in zip(explanation.outputs, explanation.estimates, strict=True):
            base = float(np.broadcast_to(each.base_value, len(each.values))[row])
            numbers = [base, *each.values[row, places].tolist(), float(each.predictions[row])]
            name = str(explanation.row_names[row])
            cells = [name, *[str(output)] * is_several]
            lines.append([*cells, *(f"{number:,.{digits}f}" for number in numbers)])
    n_rows, n_features = len(explanation) - _MOST_ROWS, len(size) - len(shown)
    more = [f"{n_rows:,} more rows"] * (n_rows > 0) + [f"{n_features} more features"] * (
        n_features > 0
    )
    rest = [f"... and {' and '.join(more)}; to_frame() has them all"] if more else []
    return heads, lines, rest
