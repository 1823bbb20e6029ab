"""From explained rows to plain data: every number and every sentence of their report."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from dsage.estimate.inference import intervals
from dsage.estimate.local.result import LocalEstimate
from dsage.report.data import choices_of
from dsage.report.words import count, counted, duration, listed, named, number, percent
from dsage.result.row_tables import audit_counts, explained_noun, value_noun
from dsage.result.rows import RowExplanation
from dsage.result.run_info import plain

_CONFIDENCE = 0.95
# Limits: rows with their own picture, and points of a feature.
_MOST_ROWS = 500
# Digits of numbers that are only drawn.
_DIGITS = 6


def row_report_data(explanation: RowExplanation) -> dict[str, Any]:
    """Return the content of a report of rows as data that JSON can hold.

    Only the first 500 rows are in it.

    Parameters
    ----------
    explanation : RowExplanation
        The explained rows.

    Returns
    -------
    dict
        Strings, numbers, booleans, None, and lists and dictionaries of them.
    """
    shown = explanation[:_MOST_ROWS]
    data = {
        "title": _title(explanation),
        "subtitle": _subtitle(explanation),
        "headline": _headline(explanation),
        "figures": _figures(explanation),
        "noun": "group" if explanation.groups else "feature",
        "is_loss": explanation.is_loss,
        "confidence": percent(_CONFIDENCE),
        "label": value_noun(explanation),
        "features": [
            {"name": name, **_positions(shown, name)} for name in explanation.feature_names
        ],
        "rows": [str(name) for name in shown.row_names],
        "texts": shown.texts,
        "outputs": [_output(shown, at) for at in range(len(shown.outputs))],
        "notes": _notes(explanation),
        "choices": choices_of(explanation.choices),
    }
    return cast("dict[str, Any]", plain(data))


def _title(explanation: RowExplanation) -> str:
    if explanation.is_loss:
        return f"What lowers the losses of a model of {explanation.target}, row by row"
    return f"What the predictions of {explanation.target} are made of, row by row"


def _subtitle(explanation: RowExplanation) -> str:
    parts = [
        explanation.choices.model.name,
        counted(len(explanation), "row"),
        explained_noun(explanation),
        f"{'marginal' if explanation.is_marginal else 'conditional'} {value_noun(explanation)}s",
    ]
    return " \N{MIDDLE DOT} ".join(parts)


def _headline(explanation: RowExplanation) -> list[str]:
    """Return the result in two sentences."""
    frame = explanation.mean_frame()
    first = frame.iloc[0]
    name = named(str(first["feature"]))
    n_rows = counted(len(explanation), "row")
    if explanation.is_loss:
        text = f"{name} removes the most loss: {number(float(first['mean']))} on average"
        return [f"{text} over {n_rows}.", "The means over the rows are their SAGE values."]
    sizes = frame.groupby("feature", sort=False)["mean_absolute"].max().sort_values()
    name, size = named(str(sizes.index[-1])), float(sizes.iloc[-1])
    sums = "The values of a row add up to its prediction minus the mean prediction"
    left = ", except for the part that the graph does not explain" * (
        explanation.estimand == "d-sage"
    )
    first_line = f"{name} moves the predictions most: by {number(size)} on average over {n_rows}."
    return [first_line, f"{sums}{left}."]


def _figures(explanation: RowExplanation) -> list[dict[str, str]]:
    choices, estimates = explanation.choices, explanation.estimates
    largest = max(float(each.se.max(initial=0.0)) for each in estimates)
    spread = max(float(np.ptp(each.values)) for each in estimates)
    orderings = "all" if estimates[0].is_exact else count(estimates[0].n_orderings)
    entries = (
        ("rows", count(len(explanation)), f"{counted(len(explanation.feature_names), 'feature')}"),
        ("sampler", choices.sampler.name, "draws unknown features"),
        ("orderings", orderings, f"{count(choices.evaluations.n_made)} evaluations"),
        (
            "largest standard error",
            number(largest),
            f"{percent(largest / spread)} of the range" if spread > 0 else "all values are equal",
        ),
        ("time", duration(choices.seconds.total), f"seed {choices.run.random_state}"),
    )
    return [{"label": label, "figure": figure, "note": note} for label, figure, note in entries]


def _notes(explanation: RowExplanation) -> list[str]:
    """Return sentences about the effect of the graph, and the findings of the audit."""
    graph, counts = explanation.choices.graph, audit_counts(explanation)
    reason = explanation.estimates[-1].reason
    notes = [f"The estimation stopped because {reason}."]
    if explanation.estimand == "d-sage":
        share = percent(explanation.choices.evaluations.share_skipped)
        notes.append(
            f"A graph was used: {share} of the steps add nothing, because the graph separates the "
            "feature from the target. The rest of a prediction, beyond the values, is what the "
            "graph does not explain."
        )
    elif graph.is_used is False:
        notes.append(f"The graph was {graph.why}.")
    if counts is not None:
        changed = [name for name, each in counts.items() if each]
        notes.append(
            f"The audit finds that the graph changes the values of {listed(changed)} by more than"
            " 2 % of the range in some rows."
            if changed
            else "The audit finds no change by the graph that is significantly above 2 % of the"
            " range."
        )
    return [*notes, *explanation.warnings]


def _positions(explanation: RowExplanation, feature: str) -> dict[str, Any]:
    found = explanation.positions(feature)
    return {
        "shares": [None if np.isnan(each) else round(float(each), 3) for each in found.shares],
        "categories": list(found.categories),
        "codes": found.codes.tolist(),
        "missing": np.flatnonzero(found.is_missing).tolist(),
    }


def _output(explanation: RowExplanation, at: int) -> dict[str, Any]:
    """Return the values of an output, with words for the numbers of each row."""
    one: LocalEstimate = explanation.estimates[at]
    label = explanation.outputs[at]
    n_rows, n_features = one.values.shape
    lower, upper = intervals(one.values.ravel(), one.se.ravel(), _CONFIDENCE, df=one.df.ravel())
    order = np.argsort(-np.abs(one.values).mean(axis=0), kind="stable")
    single = explanation if label is None else explanation.of_output(label)
    return {
        "name": "" if label is None else str(label),
        "label": explained_noun(single),
        "order": order.tolist(),
        "base": _short(np.broadcast_to(one.base_value, n_rows)),
        "full": _short(one.predictions),
        "left": _short(one.unexplained),
        "values": _short(one.values),
        "lower": _short(lower.reshape(n_rows, n_features)),
        "upper": _short(upper.reshape(n_rows, n_features)),
        "mean": _short(one.values.mean(axis=0)),
        "size": _short(np.abs(one.values).mean(axis=0)),
    }


def _short(numbers: Any) -> Any:  # noqa: ANN401
    """Return numbers with few digits, as lists."""
    array = np.asarray(numbers, dtype=np.float64)
    flat = [float(f"{each:.{_DIGITS}g}") for each in array.ravel()]
    return np.array(flat).reshape(array.shape).tolist()
