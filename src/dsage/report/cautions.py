"""What a reader must know before trusting a result, and what to do about it."""

from __future__ import annotations

import math

import numpy as np

from dsage.report.summary import Summary
from dsage.report.words import counted, listed, percent

# Errors above these shares of the range of the values are pointed out.
_UNSETTLED = 0.05
_FEW_ROWS = 0.1
# How the run's own warning about the audit begins; the report says the same in more words.
_OF_AUDIT = "Skipping by separation changes the values"

Caution = dict[str, str]


def cautions(summary: Summary) -> list[Caution]:
    """Return warnings first, then notes: each with a title, what it means, and what to do."""
    found = [
        *_interrupted(summary),
        *_audit(summary),
        *_computing(summary),
        *_rows(summary),
        *_equal(summary),
        *_negative(summary),
        *_from_run(summary),
    ]
    return sorted(found, key=lambda caution: caution["level"] != "warning")


def _caution(confidence: str, heading: str, text: str, advice: str = "") -> Caution:
    return {"level": confidence, "title": heading, "text": text, "advice": advice}


def _interrupted(summary: Summary) -> list[Caution]:
    if not summary.record.estimate.interrupted:
        return []
    return [
        _caution(
            "warning",
            "The run was interrupted",
            "The values are what was known by then. They are valid, but less sure than asked for.",
            "Run it again to its end, or resume it from its checkpoint.",
        )
    ]


def _audit(summary: Summary) -> list[Caution]:
    if summary.changed and summary.corrected:
        return [
            _caution(
                "note",
                "The graph alone would have changed some values",
                f"For {listed(summary.changed)} skipping would change the value"
                f"{_by_more(summary)}. The values here are corrected for it.",
            )
        ]
    if summary.changed:
        return [
            _caution(
                "warning",
                "Skipping by the graph changes some values",
                f"For {listed(summary.changed)} the value differs from plain SAGE"
                f"{_by_more(summary)}. The graph misses dependences, or the model is far from the "
                "best.",
                'Estimate with estimand="sage", which corrects for it; look at the graph, and at '
                "how well the model fits.",
            )
        ]
    if summary.undecided:
        return [
            _caution(
                "note",
                "The audit leaves some differences open",
                f"Skipping may change the value of {listed(summary.undecided)} by more than 2 % of "
                f"{summary.range_words}, or not: the audit is not precise enough to tell.",
                'Give the run more time, or estimate with estimand="sage".',
            )
        ]
    if summary.skips and not summary.audited and summary.record.share_skipped > 0:
        return [
            _caution(
                "note",
                "There was no audit",
                "How much skipping by the graph changed the values is not known.",
                "Run with the audit to know.",
            )
        ]
    return []


def _by_more(summary: Summary) -> str:
    return "" if summary.is_single else f" by more than 2 % of {summary.range_words}"


def _computing(summary: Summary) -> list[Caution]:
    error = summary.relative_error
    if math.isnan(error):
        return [
            _caution(
                "warning",
                "The error of computing is not known",
                "Too few orderings were evaluated to tell how sure the values are.",
                "Give the run more time or more orderings.",
            )
        ]
    if error <= _UNSETTLED:
        return []
    return [
        _caution(
            "warning",
            "The values are not settled",
            "The largest standard error that computing leaves is "
            + (
                f"{percent(error)} of {summary.yardstick_words}."
                if math.isfinite(error)
                else "above zero, and all values are zero."
            ),
            "Give the run more time, or a smaller tolerance.",
        )
    ]


def _rows(summary: Summary) -> list[Caution]:
    se_rows = summary.record.estimate.se_rows
    n_rows = summary.choice("data", "rows_evaluation")
    few = counted(n_rows, "evaluation row") if isinstance(n_rows, int) else "the evaluation rows"
    if not np.isfinite(se_rows).all():
        return [
            _caution(
                "warning",
                "Nothing is known about the population",
                f"From {few} the error that the choice of rows leaves cannot be estimated. The "
                "values hold for these rows only.",
                "Give more evaluation rows.",
            )
        ]
    worst = float(se_rows.max())
    if worst <= _FEW_ROWS * summary.yardstick:
        return []
    size = ""
    if summary.yardstick > 0:
        size = f", up to {percent(worst / summary.yardstick)} of {summary.yardstick_words}"
    order = "" if summary.is_single else ", and do not read much into the order of neighbours"
    return [
        _caution(
            "note",
            "The evaluation rows limit what can be known",
            f"With {few} the standard error of the values in the population is large{size}. More "
            "computing does not make it smaller.",
            f"Give more evaluation rows{order}.",
        )
    ]


def _equal(summary: Summary) -> list[Caution]:
    if not summary.hardly_differ:
        return []
    size = percent(summary.spread / summary.yardstick)
    return [
        _caution(
            "note",
            "The values hardly differ",
            f"All lie within {size} of the largest value. Which {summary.noun} comes first means "
            "little.",
        )
    ]


def _negative(summary: Summary) -> list[Caution]:
    frame = summary.frame
    names = [str(name) for name in frame.loc[frame["upper_total"] < 0, "feature"]]
    if not names:
        return []
    return [
        _caution(
            "note",
            "Some values are surely below zero",
            f"Knowing {listed(names)} makes the predictions worse on average.",
            f"Look whether the model overfits {'it' if len(names) == 1 else 'them'}, or whether "
            "the evaluation rows differ from those of training.",
        )
    ]


def _from_run(summary: Summary) -> list[Caution]:
    told = dict.fromkeys(str(text) for text in summary.record.warnings)
    if summary.changed:
        told = dict.fromkeys(text for text in told if not text.startswith(_OF_AUDIT))
    return [_caution("note", "The run warned", text) for text in told]
