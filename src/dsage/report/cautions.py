"""Warnings and notes on a result, and what to do about them."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from dsage.report.summary import Summary
from dsage.report.words import counted, listed, percent

# Errors above these shares of the range of the values are pointed out.
_UNSETTLED = 0.05
_FEW_ROWS = 0.1

Caution = dict[str, str]


def cautions(summary: Summary) -> list[Caution]:
    """Return warnings, then notes: what each is about, a title, an explanation and advice."""
    checks = {
        "interrupt": _interrupted,
        "audit": _audit,
        "sampler": _sampler,
        "computing": _computing,
        "rows": _rows,
        "ties": _equal,
        "negative": _negative,
        "run": _from_run,
    }
    found = [
        {"about": name, **caution} for name, check in checks.items() for caution in check(summary)
    ]
    return sorted(found, key=lambda caution: caution["kind"] != "warning")


def _caution(kind: str, title: str, text: str, advice: str = "") -> Caution:
    return {"kind": kind, "title": title, "text": text, "advice": advice}


def _interrupted(summary: Summary) -> Iterator[Caution]:
    if summary.explanation.estimate.interrupted:
        yield _caution(
            "warning",
            "The run was interrupted",
            "The values are the estimates so far. They are valid, but less precise than requested.",
            "Run it again without interruption, or resume it from its checkpoint.",
        )


def _audit(summary: Summary) -> Iterator[Caution]:
    by_more = "" if summary.is_single else f" by more than 2 % of {summary.range_words}"
    if summary.changed and summary.corrected:
        yield _caution(
            "note",
            "Without correction, the graph would have changed some values",
            f"Skipping changes the value of {listed(summary.changed)}{by_more}. The values in this "
            "report are corrected for it.",
        )
    elif summary.changed:
        yield _caution(
            "warning",
            "Skipping by the graph changes some values",
            f"The value of {listed(summary.changed)} differs from plain SAGE{by_more}. The graph "
            "misses dependences, or the model is far from optimal.",
            'Estimate with estimand="sage", which corrects for it. Check the graph, and how well '
            "the model fits.",
        )
    elif summary.undecided:
        yield _caution(
            "note",
            "The audit is undecided about some features",
            f"Skipping may change the value of {listed(summary.undecided)} by more than 2 % of "
            f"{summary.range_words}: the audit is not precise enough to rule it out.",
            'Let the run compute longer, or estimate with estimand="sage".',
        )
    elif summary.skips and not summary.audited and summary.explanation.share_skipped > 0:
        yield _caution(
            "note",
            "There was no audit",
            "It is unknown how much skipping by the graph changed the values.",
            "Explain with audit=True.",
        )


def _sampler(summary: Summary) -> Iterator[Caution]:
    check = summary.check
    if check is None or not summary.depends:
        return
    better = [other for other, is_so in zip(check.others, check.are_better, strict=True) if is_so]
    chosen = summary.explanation.choices.sampler.name
    text = (
        f"{listed(check.others)} cannot be distinguished from {chosen} by the scores on held-out "
        "rows, and"
    )
    advice = "Look at the scores of the samplers, and use more training rows."
    if better:
        text = f"{better[0]} scores clearly better than {chosen} on held-out rows, and"
        advice = 'Explain with sampler="auto".'
    elif check.is_own:
        text = f"{chosen} was fitted to half of the training rows:"
        advice = "Use more training rows."
    yield _caution(
        "warning",
        "Some values depend on the sampler",
        f"{text} with it the value of {listed(summary.depends)} would change by more than its "
        "other errors.",
        advice,
    )


def _computing(summary: Summary) -> Iterator[Caution]:
    error = summary.relative_error
    if math.isnan(error):
        yield _caution(
            "warning",
            "The error from computing is unknown",
            "Too few orderings were evaluated to estimate the error of the values.",
            "Let the run compute longer, or with more orderings.",
        )
    elif error > _UNSETTLED:
        size = "above zero, and all values are zero"
        if math.isfinite(error):
            size = f"{percent(error)} of {summary.yardstick_words}"
        yield _caution(
            "warning",
            "The values have not converged",
            f"The largest standard error from computing is {size}.",
            "Let the run compute longer, or use a smaller tolerance.",
        )


def _rows(summary: Summary) -> Iterator[Caution]:
    se_rows = summary.explanation.estimate.se_rows
    few = counted(summary.explanation.choices.data.n_rows_evaluation, "evaluation row")
    worst = float(se_rows.max())
    if not np.isfinite(se_rows).all():
        yield _caution(
            "warning",
            "The error for the population is unknown",
            f"With {few} the error from the choice of the rows cannot be estimated. The values "
            "hold for these rows only.",
            "Use more evaluation rows.",
        )
    elif worst > _FEW_ROWS * summary.yardstick:
        size = ""
        if summary.yardstick > 0:
            size = f", up to {percent(worst / summary.yardstick)} of {summary.yardstick_words}"
        order = ", and do not rely on the order of features with similar values"
        yield _caution(
            "note",
            "More evaluation rows are needed",
            f"With {few} the standard error of the values in the population is large{size}. More "
            "computing does not reduce it.",
            f"Use more evaluation rows{'' if summary.is_single else order}.",
        )


def _equal(summary: Summary) -> Iterator[Caution]:
    if summary.hardly_differ:
        size = percent(summary.spread / summary.yardstick)
        yield _caution(
            "note",
            "The values hardly differ",
            f"All lie within {size} of the largest value. Their order means little.",
        )


def _negative(summary: Summary) -> Iterator[Caution]:
    frame = summary.frame
    names = [str(name) for name in frame.loc[frame["upper_total"] < 0, "feature"]]
    if names:
        yield _caution(
            "note",
            "Some values are significantly negative",
            f"Knowing {listed(names)} makes the predictions worse on average.",
            f"Check whether the model overfits {'it' if len(names) == 1 else 'them'}, or whether "
            "the evaluation rows differ from the training rows.",
        )


def _from_run(summary: Summary) -> Iterator[Caution]:
    for text in dict.fromkeys(summary.explanation.warnings):
        yield _caution("note", "A warning of the run", text)
