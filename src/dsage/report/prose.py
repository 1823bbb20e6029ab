"""What a report says in sentences: title, headline, figures, meaning, savings, audit."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from dsage.estimate.result import MATTERS
from dsage.report.summary import LEVEL, Summary
from dsage.report.words import count, counted, duration, listed, named, number, percent

# Below this a value counts as told apart from zero.
_ALPHA = 0.05


def title(summary: Summary) -> str:
    """Return the title."""
    return f"What a model of {summary.target} relies on"


def subtitle(summary: Summary) -> str:
    """Return one line about model, data and method."""
    parts = [str(summary.choice("model", "name") or "Model")]
    parts.append(counted(len(summary.names), summary.noun))
    rows = summary.choice("data", "rows_evaluation")
    if isinstance(rows, int):
        parts.append(counted(rows, "evaluation row"))
    parts.append(f"loss: {summary.loss}")
    parts.append(_estimand(summary))
    return " \N{MIDDLE DOT} ".join(parts)


def headline(summary: Summary) -> list[str]:
    """Return the result in one to three sentences."""
    first = summary.frame.iloc[0]
    name, noun = named(summary.names[0]), summary.noun
    if summary.total <= 0 or first["value"] <= 0:
        worth = number(summary.total)
        return [
            f"The {noun}s do not lower the {summary.loss}: together they are worth {worth}.",
            "The model predicts no better with them than without. Check the model first.",
        ]
    value = number(first["value"])
    text = f"{name} lowers the {summary.loss} by {value}. It is the only {noun}."
    if len(summary.names) > 1:
        text = (
            f"{name} contributes most: it lowers the {summary.loss} by {value} on average, "
            f"{percent(first['share'])} of what the {noun}s explain together."
        )
    sentences = [text, *_most_of_it(summary)]
    if first["p_value"] > _ALPHA:
        sentences.append(
            f"But with these rows even {name} cannot be told from a {noun} that adds nothing."
        )
    elif not first["lower_total"] > summary.frame.iloc[1:]["upper_total"].max():
        others = summary.frame.iloc[1:]
        rivals = others[others["upper_total"] >= first["lower_total"]]["feature"].tolist()
        if rivals:
            sentences.append(
                f"Whether it is also first in the population is open: the interval of {name} "
                f"overlaps with {'that' if len(rivals) == 1 else 'those'} of {listed(rivals, 3)}."
            )
    return sentences


def _most_of_it(summary: Summary) -> list[str]:
    """Return how few features make up 80 %, where these are some but not most."""
    shares = summary.frame["share"].cumsum()
    n_needed = int((shares < 0.8).sum()) + 1
    if not 1 < n_needed <= min(5, len(shares) // 2):
        return []
    top = listed(summary.names[:n_needed])
    return [f"{top} together make up {percent(float(shares.iloc[n_needed - 1]))}."]


def figures(summary: Summary) -> list[dict[str, str]]:
    """Return the few figures that head the report."""
    first = summary.frame.iloc[0]
    share = percent(first["share"])
    result = [
        {
            "label": f"Largest {summary.noun}",
            "figure": summary.names[0],
            "note": "" if math.isnan(first["share"]) else f"{share} of the total",
        },
        {
            "label": f"All {summary.noun}s together",
            "figure": number(summary.total),
            "note": f"lower {summary.loss}" if summary.total > 0 else f"no lower {summary.loss}",
        },
    ]
    if summary.skips:
        share = percent(summary.record.share_skipped)
        result.append(
            {"label": "Skipped", "figure": share, "note": "of all surpluses, by the graph"}
        )
    error = summary.relative_error
    exact = summary.record.estimate.is_exact
    what = "value" if len(summary.names) == 1 else "range of values"
    result.append(
        {
            "label": "Computing error",
            "figure": "none" if error == 0 else percent(error),
            "note": f"at most, of the {what}{', from draws only' if exact else ''}"
            if error
            else "the values are exact for these rows",
        }
    )
    return result


def meaning(summary: Summary) -> list[dict[str, str]]:
    """Return what the numbers are, for a reader who has not seen a SAGE value before."""
    noun, loss = summary.noun, summary.loss
    unit = f": {summary.unit}" if summary.unit else ""
    level = percent(LEVEL)
    result = {
        f"The value of a {noun}": f"How much the {loss} falls, on average, when the model comes to "
        f"know the {noun}. The average runs over all orders in which the {noun}s can become known, "
        f"so those that tell the same share the credit. Values are in units of the loss{unit}.",
        "The sum": f"{_sum(summary)} By so much all {noun}s together lower the {loss}, against "
        f"the model's mean prediction when it knows none of them.",
        "The share": f"A value divided by that sum: what part of the explained {loss} goes to this "
        f"{noun}. It says nothing about what no {noun} explains.",
        "Near zero, below zero": f"Near zero, the model predicts as well without the {noun}, given "
        "the others. Below zero, knowing it makes the predictions worse: by chance, or because the "
        "model learned something that does not hold on these rows.",
        "The two intervals": f"The thick one ({level}) is for these evaluation rows, and more "
        "computing narrows it. The thin one is for the population that the rows come from. It "
        "counts the choice of the rows as well, and that only more rows can mend.",
        "What it is not": "Not a causal effect. A value says what the model's performance rests "
        f"on in data like these, not what would happen to {summary.target} if the {noun} were "
        "changed.",
    }
    if summary.record.groups is not None:
        result["Groups"] = (
            "The members of a group become known at once. The value of a group is not the sum of "
            "the values that its members would have."
        )
    return [{"term": term, "text": text} for term, text in result.items()]


def _sum(summary: Summary) -> str:
    about = "about " if summary.choice("estimate", "semantics") == "skip" else ""
    return f"The values sum to {about}{number(summary.total)}."


def savings(summary: Summary) -> list[str]:
    """Return what the graph and the cache saved, in sentences."""
    known = summary.record.estimate
    n_all = known.n_surpluses * len(summary.names)
    sentences = []
    if summary.skips and n_all:
        share = summary.record.share_skipped
        many = counted(n_all, "surplus", "es")
        if share == 0:
            sentences.append(f"The graph separates nothing here: all of {many} were evaluated.")
        else:
            sentences.append(
                f"{percent(share)} of {many} are zero because the graph separates the "
                f"{summary.noun} from {summary.target}, given what is known already. They were not "
                "evaluated."
            )
    elif not summary.skips:
        sentences.append("No graph was used, so nothing was skipped: this is plain SAGE.")
    n_asked = known.n_evaluated + known.n_shared
    text = f"{counted(known.n_evaluated, 'evaluation')} of the model on a coalition and a row"
    text += " was made." if known.n_evaluated == 1 else " were made."
    if known.n_shared:
        text += (
            f" Another {count(known.n_shared)} ({percent(known.n_shared / n_asked)} of all that "
            "were needed) were known already and taken from memory."
        )
    sentences.append(text)
    if known.is_exact:
        sentences.append(
            f"All {count(known.n_orderings)} orderings were averaged over, none sampled."
        )
    else:
        sentences.append(f"The values rest on {counted(known.n_orderings, 'ordering')}.")
    total = summary.choice("seconds", "total")
    seconds = float(total) if isinstance(total, (int, float)) else known.seconds
    sentences.append(
        f"It took {duration(seconds)}. It ended because {known.reason or 'it was done'}."
    )
    return sentences


def audit(summary: Summary) -> dict[str, object]:
    """Return what the audit found, in sentences and in a verdict for each feature."""
    noun = summary.noun
    if not summary.skips:
        return {"sentences": ["Nothing was skipped, so there is nothing to audit."], "verdicts": []}
    if not summary.audited:
        text = "There was no audit: how much skipping changed the values is not known."
        return {"sentences": [text], "verdicts": []}
    sentences = [
        "Skipping by the graph is exact for the best possible model and a true graph.",
        f"For others it changes values. The audit estimates by how much, for each {noun}.",
        "It shows d-SAGE minus SAGE: the value with skipping, less the value without.",
    ]
    if summary.changed:
        n_changed, n_all = len(summary.changed), len(summary.names)
        sentences.append(
            f"It matters for {listed(summary.changed)} ({n_changed} of {n_all}): surely more than "
            "2 % of the range of the values."
        )
    else:
        sentences.append("No difference is surely larger than 2 % of the range of the values.")
    if summary.undecided:
        sentences.append(
            f"For {listed(summary.undecided)} it is open: the interval reaches beyond 2 %."
        )
    if summary.corrected:
        sentences.append("The values in this report are corrected for it: they estimate SAGE.")
    verdicts = [_verdict(summary, line) for line in summary.lines]
    return {"sentences": sentences, "verdicts": verdicts}


def _verdict(summary: Summary, line: Mapping[str, Any]) -> str:
    difference, lower, upper = (
        float(line[name]) for name in ("audit_difference", "audit_lower", "audit_upper")
    )
    if not math.isfinite(lower):
        return "Not known: too little was audited."
    by = number(abs(difference), 2)
    relative = abs(difference) / summary.spread if summary.spread > 0 else math.nan
    size = "" if math.isnan(relative) else f" ({percent(relative)} of the range)"
    if bool(line["audit_matters"]):
        direction = "low" if difference < 0 else "high"
        done = "would be" if summary.corrected else "is"
        return f"Matters: with skipping the value {done} too {direction} by {by}{size}."
    if lower == upper == 0:
        return "None: skipping changes nothing."
    if str(line["feature"]) not in summary.undecided:
        return f"Small: surely below {percent(MATTERS)} of the range."
    most = max(abs(lower), abs(upper)) / summary.spread if summary.spread > 0 else math.nan
    if lower <= 0 <= upper:
        return f"Open: it may be zero, and it may be {percent(most)} of the range."
    return f"Open: likely not zero, {by}{size}, but not surely above {percent(MATTERS)}."


def _estimand(summary: Summary) -> str:
    if not summary.skips:
        return "plain SAGE"
    if summary.record.estimate.estimand == "sage":
        return "SAGE, by way of d-SAGE"
    return "d-SAGE"
