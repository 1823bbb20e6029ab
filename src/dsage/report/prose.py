"""The sentences of a report: title, headline, figures, meaning, savings, audit."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from dsage.estimate.accumulate.balance import MOST_FEATURES
from dsage.estimate.result import MATTERS
from dsage.report.summary import CONFIDENCE, Summary
from dsage.report.words import count, counted, duration, listed, named, number, percent

# Significance level of the p-values.
_ALPHA = 0.05


def title(summary: Summary) -> str:
    """Return the title."""
    return f"What a model of {summary.target} relies on"


def subtitle(summary: Summary) -> str:
    """Return one line about model, data and method."""
    choices = summary.explanation.choices
    is_sage = summary.explanation.estimate.estimand == "sage"
    estimand = "SAGE, as d-SAGE plus correction" if is_sage else "d-SAGE"
    parts = [
        choices.model.name,
        counted(len(summary.names), summary.noun),
        counted(choices.data.n_rows_evaluation, "evaluation row"),
        f"loss: {summary.loss}",
        estimand if summary.skips else "causal SAGE" if summary.is_causal else "plain SAGE",
    ]
    return " \N{MIDDLE DOT} ".join(parts)


def headline(summary: Summary) -> list[str]:
    """Return the result in one to three sentences."""
    first = summary.frame.iloc[0]
    name, noun = named(summary.names[0]), summary.noun
    if summary.total <= 0:
        return _no_gain(summary)
    value = number(first["value"])
    text = f"{name} lowers the {summary.loss} by {value}. It is the only {noun}."
    if len(summary.names) > 1:
        text = (
            f"{name} contributes most: it lowers the {summary.loss} by {value} on average"
            f"{_part(summary, first['share'])}."
        )
    sentences = [text, *_most_of_it(summary)]
    if first["p_value"] > _ALPHA:
        sentences.append(
            f"But with these rows even the value of {name} is not significantly above zero."
        )
    elif not first["lower_total"] > summary.frame.iloc[1:]["upper_total"].max():
        others = summary.frame.iloc[1:]
        rivals = others[others["upper_total"] >= first["lower_total"]]["feature"].tolist()
        if rivals:
            sentences.append(
                f"It may not be first in the population: the interval of {name} "
                f"overlaps with {'that' if len(rivals) == 1 else 'those'} of {listed(rivals, 3)}."
            )
    return sentences


def _no_gain(summary: Summary) -> list[str]:
    """Return the headline if the features together do not lower the loss."""
    nouns = summary.noun if summary.is_single else f"{summary.noun}s"
    them = "it" if summary.is_single else "them"
    if summary.total == 0:
        return [
            f"The {nouns} {'does' if summary.is_single else 'do'} not lower the {summary.loss}.",
            f"The model predicts no better with {them} than without. Check the model first.",
        ]
    who = (
        f"{named(summary.names[0])} raises" if summary.is_single else f"Together the {nouns} raise"
    )
    sentences = [
        f"{who} the {summary.loss} by {number(-summary.total)}.",
        f"The model predicts worse with {them} than without. Check the model first.",
    ]
    first = summary.frame.iloc[0]
    if first["value"] > 0:
        name = named(summary.names[0])
        sentences.append(f"{name} lowers it by {number(first['value'])}; others raise it by more.")
    return sentences


def _part(summary: Summary, share: float) -> str:
    """Return a share for a sentence; nothing if shares are not parts of a whole."""
    if not summary.has_parts:
        return ""
    return f", {percent(share)} of what the {summary.noun}s explain together"


def _most_of_it(summary: Summary) -> list[str]:
    """Return which few features make up 80 %, unless it is one or most of them."""
    if not summary.has_parts:
        return []
    shares = summary.frame["share"].cumsum()
    n_needed = int((shares < 0.8).sum()) + 1
    if not 1 < n_needed <= min(5, len(shares) // 2):
        return []
    top = listed(summary.names[:n_needed])
    return [f"{top} together make up {percent(float(shares.iloc[n_needed - 1]))}."]


def figures(summary: Summary) -> list[dict[str, str]]:
    """Return the figures at the top of the report."""
    first = summary.frame.iloc[0]
    share, total = percent(first["share"]), summary.total
    direction = "lower" if total > 0 else "higher" if total < 0 else "no lower"
    result = [
        {
            "label": f"{'The only' if summary.is_single else 'Largest'} {summary.noun}",
            "figure": summary.names[0],
            "note": f"{share} of the total" if summary.has_parts and not summary.is_single else "",
        },
        {
            "label": "Its value" if summary.is_single else f"All {summary.noun}s together",
            "figure": number(abs(total)),
            "note": f"{direction} {summary.loss}",
        },
    ]
    if summary.skips:
        share = percent(summary.explanation.share_skipped)
        result.append(
            {"label": "Skipped", "figure": share, "note": "of all surpluses, by the graph"}
        )
    error = summary.relative_error
    exact = summary.explanation.estimate.is_exact
    result.append(
        {
            "label": "Computing error",
            "figure": "none" if error == 0 else percent(error),
            "note": f"at most, of {summary.yardstick_words}{', from draws only' if exact else ''}"
            if error
            else "the values are exact for these rows",
        }
    )
    return result


def meaning(summary: Summary) -> list[dict[str, str]]:
    """Return what the numbers mean, for readers who have not seen a SAGE value before."""
    noun, loss = summary.noun, summary.loss
    unit = f": {summary.unit}" if summary.unit else ""
    confidence = percent(CONFIDENCE)
    orders = (
        f"The average is over all orders in which the {noun}s can become known, so those that "
        "carry the same information share the credit. "
    ) * (not summary.is_single)
    result = {
        f"The value of a {noun}": f"How much the {loss} falls, on average, when the {noun} becomes "
        f"known to the model. {orders}Values are in units of the loss{unit}.",
        "The sum": _sum(summary),
        "The share": _share(summary),
        "Near zero, negative": f"Near zero, the {noun} adds little on average over all orders. It "
        "may still be informative when little else is known. With a negative value, knowing it "
        "makes the predictions worse on average: by chance, or because the model learned something "
        "that does not hold on these rows.",
        "The two intervals": f"The thick one ({confidence}) is for these evaluation rows, and more "
        "computing narrows it. The thin one is for the population that the rows come from. It "
        "includes the choice of the rows, and only more rows narrow it.",
        "What it is not": "Not a causal effect. A value describes what the performance of the "
        f"model depends on in data like these, not what would happen to {summary.target} if the "
        f"{noun} were changed.",
    }
    if summary.is_causal:
        result[f"The value of a {noun}"] = (
            f"How much the {loss} falls, on average, when the {noun} is set to its value and the "
            f"model learns it. {orders}Values are in units of the loss{unit}."
        )
        result["What it is not"] = (
            f"Not the effect of the {noun} on {summary.target}. A value describes what the "
            f"performance of the model depends on when a {noun} is set and its effects change "
            "accordingly."
        )
    if summary.is_single:
        # The sum is the value, and there is only one order.
        for term in ("The sum", "The share", "Near zero, negative"):
            del result[term]
    if summary.explanation.groups is not None:
        result["Groups"] = (
            "The members of a group become known together. The value of a group is not the sum of "
            "the values of its members."
        )
    return [{"term": term, "text": text} for term, text in result.items()]


def _sum(summary: Summary) -> str:
    is_approximate = summary.explanation.choices.estimate.semantics == "skip"
    # So many features are not adjusted if they have different numbers of orderings.
    is_approximate |= len(summary.names) > MOST_FEATURES
    about = "about " if is_approximate else ""
    verb = "raise" if summary.total < 0 else "lower"
    return (
        f"The values sum to {about}{number(summary.total)}. This is how much all {summary.noun}s "
        f"together {verb} the {summary.loss}, compared with the mean prediction of the model "
        "when none of them is known."
    )


def _share(summary: Summary) -> str:
    if summary.total <= 0:
        return "A value divided by that sum. It is meaningless here, since the sum is not positive."
    text = (
        f"A value divided by that sum: the part of the explained {summary.loss} that goes to this "
        f"{summary.noun}. It says nothing about the loss that no {summary.noun} explains."
    )
    if summary.some_negative:
        text += (
            " Some values are negative, and so are their shares; the others add up to more than "
            "100 %. They are not parts of a whole."
        )
    return text


def savings(summary: Summary) -> list[str]:
    """Return what the graph and the cache saved, in sentences."""
    estimate = summary.explanation.estimate
    n_all = estimate.n_surpluses * len(summary.names)
    sentences = []
    if summary.skips and n_all:
        share = summary.explanation.share_skipped
        many = counted(n_all, "surplus", "es")
        if share == 0:
            sentences.append(f"The graph separates no feature here: all {many} were evaluated.")
        else:
            sentences.append(
                f"{percent(share)} of {many} are zero because the graph separates the "
                f"{summary.noun} from {summary.target}, given the features known before it. They "
                "were not evaluated."
            )
    elif summary.has_unused_graph:
        sentences.append(
            "A graph was learned, but using it would not have made the run cheaper: "
            f"{percent(summary.explanation.choices.graph.share_skippable or 0.0)} of the surpluses "
            "could be skipped. Nothing was skipped: this is plain SAGE."
        )
    elif summary.is_causal:
        shared = "An indirect part is zero where setting a feature changes no unknown one: then "
        sentences.append(f"{shared}it costs nothing. Separations are not used for causal values.")
    elif not summary.skips:
        sentences.append("No graph was used, so nothing was skipped: this is plain SAGE.")
    n_needed = estimate.n_evaluated + estimate.n_shared
    pairs = counted(estimate.n_evaluated, "pair")
    text = f"The model was evaluated on {pairs} of a coalition and a row."
    if estimate.n_shared:
        text += (
            f" Another {count(estimate.n_shared)} ({percent(estimate.n_shared / n_needed)} of all "
            "that were needed) were reused from memory."
        )
    sentences.append(text)
    if estimate.is_exact:
        many = count(estimate.n_surpluses)
        sentences.append(f"The values are averages over all {many} orderings, not a sample.")
    else:
        many = counted(estimate.n_surpluses, "ordering")
        sentences.append(
            f"The values are based on {many}, each with the surpluses of the {summary.noun}s whose "
            "errors were not small enough yet."
        )
    longest = max(estimate.terms, key=lambda term: term.n_orderings)
    if longest.n_orderings > estimate.n_surpluses:
        many = counted(longest.n_orderings, "ordering")
        sentences.append(f"The term that needed the most orderings, {longest.kind}, has {many}.")
    seconds = summary.explanation.choices.seconds.total
    sentences.append(f"The run took {duration(seconds)}. It stopped because {estimate.reason}.")
    return sentences


def audit(summary: Summary) -> dict[str, object]:
    """Return the findings of the audit in sentences, and a verdict for each feature."""
    noun = summary.noun
    if not summary.skips:
        return {"sentences": ["Nothing was skipped, so there is nothing to audit."], "verdicts": []}
    if not summary.audited:
        text = "There was no audit: it is unknown how much skipping changed the values."
        return {"sentences": [text], "verdicts": []}
    sentences = [
        "Skipping by the graph is exact for the best possible model and a correct graph.",
        f"Otherwise it changes values. The audit estimates by how much, for each {noun}.",
        "It shows d-SAGE minus SAGE: the value with skipping minus the value without.",
    ]
    if summary.changed:
        n_changed, n_all = len(summary.changed), len(summary.names)
        sentences.append(
            f"It matters for {listed(summary.changed)}: it is significantly different from zero."
            if summary.is_single
            else f"It matters for {listed(summary.changed)} ({n_changed} of {n_all}): "
            f"significantly more than 2 % of {summary.range_words}."
        )
    else:
        sentences.append(
            f"No difference is significantly larger than 2 % of {summary.range_words}."
        )
    if summary.undecided:
        sentences.append(
            f"It is undecided for {listed(summary.undecided)}: the interval reaches beyond 2 %."
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
        return "Unknown: too little was audited."
    by = number(abs(difference), 2)
    size = _size(summary, difference)
    size = f" ({size})" if size else ""
    if bool(line["audit_matters"]):
        direction = "low" if difference < 0 else "high"
        verb = "would be" if summary.corrected else "is"
        return f"Matters: with skipping the value {verb} too {direction} by {by}{size}."
    if lower == upper == 0:
        return "None: skipping changes nothing."
    if str(line["feature"]) not in summary.undecided:
        return f"Small: clearly below {percent(MATTERS)} of {_short(summary.range_words)}."
    if lower <= 0 <= upper:
        largest = max(abs(lower), abs(upper))
        most = _size(summary, largest) or number(largest, 2)
        return f"Undecided: it may be zero, and it may be {most}."
    return f"Undecided: likely not zero, {by}{size}, but maybe below {percent(MATTERS)}."


def _size(summary: Summary, difference: float) -> str:
    """Return a difference as a share of the yardstick; empty if that is zero."""
    if not summary.yardstick > 0:
        return ""
    return f"{percent(abs(difference) / summary.yardstick)} of {_short(summary.yardstick_words)}"


def _short(words: str) -> str:
    return words.removesuffix(" of the values")
