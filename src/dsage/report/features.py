"""The features of a report: numbers for the charts, cells of the table, and the CSV."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from dsage.data.csv_text import to_csv as as_csv
from dsage.report.summary import CONFIDENCE, Summary
from dsage.report.words import UNKNOWN, Scale, count, p_value, percent

Line = Mapping[str, Any]

# The numbers behind the charts.
_CHARTED = (
    "value", "lower", "upper", "lower_total", "upper_total", "share", "se_sampler",
    "sampler_matters",
    "audit_difference", "audit_lower", "audit_upper", "audit_matters",
)  # fmt: skip


_CAUSAL = ("direct", "indirect")


class _Column(NamedTuple):
    label: str
    hint: str
    key: str
    text: Callable[[Line], str]
    is_evidence: bool = False

    def of(self, line: Line, summary: Summary) -> str:
        """Return the cell; there is no evidence about a feature that was never evaluated."""
        is_given = line["n_skipped"] > 0 and line["n_evaluated"] == 0 and not summary.corrected
        return "by the graph" if is_given and self.is_evidence else self.text(line)


def columns(summary: Summary) -> list[dict[str, str]]:
    """Return label and hint of each column of the table, except for the name."""
    return [{"label": each.label, "hint": each.hint} for each in _columns(summary)]


def features(summary: Summary) -> list[dict[str, object]]:
    """Return name, charted numbers and cells (text and sort key) of each feature."""
    shown = _columns(summary)
    groups = summary.explanation.groups or {}
    estimate = summary.explanation.estimate
    skipped = dict(zip(estimate.feature_names, estimate.share_skipped.tolist(), strict=True))
    return [
        {
            "name": name,
            "members": list(groups.get(name, ())),
            **{key: line[key] for key in (*_CHARTED, *_CAUSAL * summary.is_causal)},
            "share_skipped": skipped[name],
            "words": _words(summary, line, skipped[name]),
            "cells": [
                {"text": each.of(line, summary), "key": float(line[each.key])} for each in shown
            ],
        }
        for name, line in zip(summary.names, summary.lines, strict=True)
    ]


def to_csv(summary: Summary) -> str:
    """Return the table as CSV, with all digits."""
    return as_csv(summary.frame)


def _words(summary: Summary, line: Line, skipped: float) -> dict[str, str]:
    """Return the texts of the tooltips."""
    scale = summary.scale
    audit = Scale([*summary.frame["audit_difference"], *summary.frame["value"]])
    return {
        "value": scale(line["value"]),
        "share": _share(line["share"]),
        "interval": scale.interval(line["lower"], line["upper"]),
        "interval_total": scale.interval(line["lower_total"], line["upper_total"]),
        "skipped": percent(skipped),
        "sampler": scale(line["se_sampler"]),
        "difference": audit(line["audit_difference"]),
        "difference_interval": audit.interval(line["audit_lower"], line["audit_upper"]),
    }


def _columns(summary: Summary) -> list[_Column]:
    scale = summary.scale
    confidence = percent(CONFIDENCE)
    return [
        _Column(
            "Value",
            f"How much it lowers the {summary.loss}; negative if it raises it",
            "value",
            _text(scale, "value"),
        ),
        _Column("Share", _share_hint(summary), "share", _text(_share, "share")),
        _Column(
            f"{confidence} interval, these rows",
            "For the value on these evaluation rows; more computing narrows it",
            "lower",
            lambda line: scale.interval(line["lower"], line["upper"]),
            is_evidence=True,
        ),
        _Column(
            f"{confidence} interval, population",
            "For the value in the population; includes the choice of the rows",
            "lower_total",
            lambda line: scale.interval(line["lower_total"], line["upper_total"]),
            is_evidence=True,
        ),
        _Column(
            "Error, computing",
            "Standard error from orderings and draws; more computing reduces it",
            "se",
            _text(scale, "se"),
        ),
        _Column(
            "Error, rows",
            "Standard error from the choice of the evaluation rows; only more data reduces it",
            "se_rows",
            _text(scale, "se_rows"),
        ),
        _Column(
            "Error, sampler",
            "How much the value would change with another sampler that scores as well; a better "
            "sampler reduces it",
            "se_sampler",
            _text(scale, "se_sampler"),
        ),
        _Column("Error, graph", _graph_hint(summary), "audit_difference", _graph_text(summary)),
        _Column(
            "p\N{NON-BREAKING HYPHEN}value",
            "For the hypothesis that the value in the population is not above zero, adjusted for "
            "the number of tests",
            "p_value",
            _text(p_value, "p_value"),
            is_evidence=True,
        ),
        _Column(
            "Evaluated", "Surpluses that were evaluated", "n_evaluated", _text(count, "n_evaluated")
        ),
        _Column(
            "Skipped",
            "Surpluses that are zero by the graph",
            "n_skipped",
            _text(count, "n_skipped"),
        ),
    ]


def _graph_hint(summary: Summary) -> str:
    if summary.corrected:
        return (
            "How much skipping by the graph would change the value; the values are corrected for it"
        )
    return (
        "How much skipping by the graph changes the value, d-SAGE minus SAGE;"
        " a better graph reduces it"
    )


def _graph_text(summary: Summary) -> Callable[[Line], str]:
    if not summary.audited:
        return lambda _: UNKNOWN if summary.explanation.share_skipped > 0 else "none"
    return _text(
        Scale([*summary.frame["audit_difference"], *summary.frame["value"]]), "audit_difference"
    )


def _share(share: float) -> str:
    return percent(share) if math.isfinite(share) else "none"


def _share_hint(summary: Summary) -> str:
    if not summary.some_negative:
        return "Of the sum of all values"
    return "Of the sum of all values; some are negative, so the others add up to more than the sum"


def _text(wording: Callable[[Any], str], name: str) -> Callable[[Line], str]:
    return lambda line: wording(line[name])
