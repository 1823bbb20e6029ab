"""The features of a report: the numbers to draw, the cells of the table, the lines of the CSV."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from dsage.report.summary import LEVEL, Summary
from dsage.report.words import Scale, count, p_value, percent

Line = Mapping[str, Any]

# What pictures are drawn from.
_DRAWN = (
    "value", "lower", "upper", "lower_total", "upper_total", "share",
    "audit_difference", "audit_lower", "audit_upper", "audit_matters",
)  # fmt: skip


class _Column(NamedTuple):
    label: str
    hint: str
    key: Callable[[Line], float]
    text: Callable[[Line], str]


def columns(summary: Summary) -> list[dict[str, str]]:
    """Return the label and the explanation of each column of the table after the name."""
    return [{"label": each.label, "hint": each.hint} for each in _columns(summary)]


def features(summary: Summary) -> list[dict[str, object]]:
    """Return for each feature its name, what is drawn of it, and its cells: text and sort key."""
    shown = _columns(summary)
    groups = summary.record.groups or {}
    skipped = dict(
        zip(
            summary.record.feature_names,
            map(float, summary.record.estimate.share_skipped),
            strict=True,
        )
    )
    result: list[dict[str, object]] = []
    for line in summary.lines:
        name = str(line["feature"])
        result.append(
            {
                "name": name,
                "members": list(groups.get(name, ())),
                **{key: line[key] for key in _DRAWN},
                "share_skipped": skipped[name],
                "words": _words(summary, line, skipped[name]),
                "cells": [{"text": each.text(line), "key": each.key(line)} for each in shown],
            }
        )
    return result


def to_csv(summary: Summary) -> str:
    """Return the table as CSV, every digit kept."""
    return str(summary.frame.to_csv(index=False, lineterminator="\n"))


def _words(summary: Summary, line: Line, skipped: float) -> dict[str, str]:
    """Return what the pictures say when a feature is pointed at."""
    scale = summary.scale
    audit = _audit_scale(summary)
    return {
        "value": scale(line["value"]),
        "share": _share(line["share"]),
        "interval": scale.interval(line["lower"], line["upper"]),
        "interval_total": scale.interval(line["lower_total"], line["upper_total"]),
        "skipped": percent(skipped),
        "difference": audit(line["audit_difference"]),
        "difference_interval": audit.interval(line["audit_lower"], line["audit_upper"]),
    }


def _audit_scale(summary: Summary) -> Scale:
    return Scale([*summary.frame["audit_difference"], *summary.frame["value"]])


def _columns(summary: Summary) -> list[_Column]:
    scale = summary.scale
    confidence = percent(LEVEL)
    return [
        _Column(
            "Value",
            f"How much it lowers the {summary.loss}; below zero, by how much it raises it",
            _of("value"),
            _by(scale, "value"),
        ),
        _Column("Share", _share_hint(summary), _of("share"), _by(_share, "share")),
        _Column(
            f"{confidence} interval, these rows",
            "Where the value for these evaluation rows lies; more computing narrows it",
            _of("lower"),
            lambda line: scale.interval(line["lower"], line["upper"]),
        ),
        _Column(
            f"{confidence} interval, population",
            "Where the value in the population lies; counts the choice of the rows as well",
            _of("lower_total"),
            lambda line: scale.interval(line["lower_total"], line["upper_total"]),
        ),
        _Column(
            "Error, computing", "Standard error that computing leaves", _of("se"), _by(scale, "se")
        ),
        _Column(
            "Error, rows",
            "Standard error from the choice of the evaluation rows; only more data narrows it",
            _of("se_rows"),
            _by(scale, "se_rows"),
        ),
        _Column(
            "p\N{NON-BREAKING HYPHEN}value",
            "Of: the value in the population is not above zero. Adjusted for the number of tests",
            _of("p_value"),
            _by(p_value, "p_value"),
        ),
        _Column(
            "Evaluated",
            "Surpluses that were evaluated",
            _of("n_evaluated"),
            _by(count, "n_evaluated"),
        ),
        _Column(
            "Skipped",
            "Surpluses that are zero by the graph",
            _of("n_skipped"),
            _by(count, "n_skipped"),
        ),
    ]


def _share(share: float) -> str:
    return percent(share) if math.isfinite(share) else "none"


def _share_hint(summary: Summary) -> str:
    if not summary.some_negative:
        return "Of the sum of all values"
    return "Of the sum of all values; some are below zero, so the others make up more than the sum"


def _of(name: str) -> Callable[[Line], float]:
    def key(line: Line) -> float:
        value = float(line[name])
        return value if math.isfinite(value) else math.nan

    return key


def _by(wording: Callable[[Any], str], name: str) -> Callable[[Line], str]:
    return lambda line: wording(line[name])
