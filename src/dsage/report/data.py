"""From a record to plain data: every number and every sentence of a report."""

from __future__ import annotations

from typing import Any, cast

from dsage._check import Choice
from dsage.report import prose
from dsage.report.assumptions import assumptions
from dsage.report.cautions import cautions
from dsage.report.evidence import convergence, sampler
from dsage.report.features import columns, features, to_csv
from dsage.report.network import network
from dsage.report.summary import LEVEL, Summary
from dsage.report.words import count, percent, plain
from dsage.result.choices import worded
from dsage.result.record import Record


def report_data(record: Record) -> dict[str, Any]:
    """Return what a report shows, as data that JSON can hold.

    Parameters
    ----------
    record : Record
        What a run left behind.

    Returns
    -------
    dict
        Strings, numbers, booleans, None, and lists and dictionaries of them. A number that is not
        finite is None. The same record gives the same data.

    Examples
    --------
    >>> import numpy as np
    >>> from dsage.result.choices import Choices
    >>> from dsage.estimate import run
    >>> from dsage.games import MomentGame
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> y = X @ [1.0, 3.0]
    >>> found = run(MomentGame(X, y, y, ["age", "income"]))
    >>> choices = Choices({"loss": {"name": "squared_error"}})
    >>> data = report_data(Record(found, "wealth", None, None, None, None, choices, ()))
    >>> data["headline"][0][:48]
    'income contributes most: it lowers the squared e'
    >>> [feature["name"] for feature in data["features"]]
    ['income', 'age']
    """
    summary = Summary(record)
    data = {
        "title": prose.title(summary),
        "subtitle": prose.subtitle(summary),
        "noun": summary.noun,
        "loss": summary.loss,
        "level": percent(LEVEL),
        "headline": prose.headline(summary),
        "figures": prose.figures(summary),
        "cautions": cautions(summary),
        "columns": columns(summary),
        "features": features(summary),
        "meaning": prose.meaning(summary),
        "savings": prose.savings(summary),
        "skips": summary.skips,
        "audit": prose.audit(summary),
        "graph": network(record),
        "convergence": convergence(summary),
        "sampler": sampler(summary),
        "assumptions": assumptions(summary),
        "choices": _choices(record),
        "csv": to_csv(summary),
    }
    return cast("dict[str, Any]", plain(data))


def _choices(record: Record) -> list[dict[str, object]]:
    return [
        {
            "section": section.replace("_", " "),
            "lines": [
                {"name": name.replace("_", " "), "value": _worded(value)}
                for name, value in named.items()
            ],
        }
        for section, named in record.choices.items()
    ]


def _worded(value: Choice) -> str:
    """Return a choice in words; the number of all orderings has more digits than a page."""
    return count(value) if type(value) is int else worded(value)
