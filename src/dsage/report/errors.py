"""The four errors of the values, in plain words."""

from __future__ import annotations

import numpy as np

from dsage.games.base import Floats
from dsage.report.summary import Summary
from dsage.report.words import UNKNOWN, listed, number, percent


def errors(summary: Summary) -> list[dict[str, str]]:
    """Return each source of error: its name, what it is, the largest one, and what reduces it."""
    explanation, estimate = summary.explanation, summary.explanation.estimate
    return [
        {
            "name": "Orderings and draws",
            "what": "The values are averages over a sample of orderings and draws, not over all.",
            "largest": _largest(summary, estimate.se),
            "remedy": "More computing: a smaller tolerance, or more time.",
        },
        {
            "name": "Rows",
            "what": "The evaluation rows are a sample: other rows would give other values.",
            "largest": _largest(summary, estimate.se_rows),
            "remedy": "More evaluation rows.",
        },
        {
            "name": "Sampler",
            "what": _sampler(summary),
            "largest": _largest(summary, explanation.se_sampler),
            "remedy": "A sampler with better scores, or more training rows.",
        },
        {"name": "Graph", **_graph(summary)},
    ]


def _sampler(summary: Summary) -> str:
    text = "Unknown features are drawn from a model of the data, which is never exactly right."
    check = summary.explanation.sampler_check
    if summary.check is not None:
        return f"{text} The error is what {listed(summary.check.others)} would change."
    why = "" if check is None else f": {check.reason}"
    return f"{text} Its error was not estimated{why}."


def _graph(summary: Summary) -> dict[str, str]:
    if summary.is_causal:
        return _directions(summary)
    if not summary.skips or summary.explanation.share_skipped == 0:
        what = "Nothing was skipped, so there is no error from the graph."
        return {"what": what, "largest": "none", "remedy": ""}
    what = "Surpluses that the graph says are zero were not evaluated."
    remedy = 'A better graph or model; or estimand="sage", which corrects for it.'
    audit = summary.explanation.estimate.audit
    if audit is None:
        return {"what": f"{what} There was no audit.", "largest": UNKNOWN, "remedy": remedy}
    if summary.corrected:
        what += " The values are corrected for it; this is the correction."
        remedy = ""
    return {"what": what, "largest": _largest(summary, np.abs(audit.values)), "remedy": remedy}


def _directions(summary: Summary) -> dict[str, str]:
    found = summary.explanation.range_graph
    remedy = "Pass what is known about causes: tiers, required and forbidden edges."
    if found is None:
        what = "The values are for this graph; how much another graph would change them is unknown."
        return {"what": what, "largest": UNKNOWN, "remedy": remedy}
    what = "Other graphs fit the data equally well. This is the largest range of a value over them."
    largest = _largest(summary, found.highest - found.lowest)
    return {"what": what, "largest": largest, "remedy": remedy}


def _largest(summary: Summary, found: Floats | None) -> str:
    """Return the largest error in units of the loss, and as a share of the range."""
    if found is None or not np.isfinite(found).all():
        return UNKNOWN
    largest = float(found.max())
    if largest == 0:
        return "none"
    share = ""
    if summary.yardstick > 0:
        share = f" ({percent(largest / summary.yardstick)} of {summary.yardstick_words})"
    return f"{number(largest, 2)}{share}"
