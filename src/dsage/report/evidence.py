"""The evidence behind the values: how they converged, and how well the sampler fits."""

from __future__ import annotations

import math

from dsage.estimate.accumulate.history import History
from dsage.report.summary import Summary
from dsage.report.words import Scale, count, counted, named, number, percent
from dsage.result.run_info import word

_REFERENCE = "Marginal"
# Half a band, in standard errors.
_BAND = 2.0
_LABELLED = 8


def convergence(summary: Summary) -> dict[str, object]:
    """Return the values at each look, with bands, the largest value first."""
    history = summary.explanation.estimate.history
    along = _along(history)
    estimate = summary.explanation.estimate
    if along is None:
        text = "The values were computed once, at the end: there is no course to show."
        if estimate.is_exact:
            text = f"All {count(estimate.n_surpluses)} orderings were averaged over at once."
        return {"sentences": [text], "at": [], "lines": []}
    label, looks, at = along
    order = [summary.explanation.feature_names.index(name) for name in summary.names]
    scale = Scale(summary.frame["value"].tolist())
    lines = []
    for column in order:
        values, half = history.values[looks, column], _BAND * history.se[looks, column]
        lines.append(
            {
                "values": values,
                "lower": values - half,
                "upper": values + half,
                "words": [_at_look(scale, *each) for each in zip(values, half, strict=True)],
            }
        )
    many = counted(len(at), "look")
    sentences = [
        f"Each line is the estimated value of a {summary.noun} during the run, at {many}.",
        "The bands are two standard errors from computing to each side, unless very wide.",
        "Lines that are flat and apart at the end will not change places with more computing.",
    ]
    if len(order) > _LABELLED:
        sentences.append(f"The {_LABELLED} largest have colors and names; the others are gray.")
    return {
        "sentences": sentences,
        "label": label,
        "at": at,
        "at_words": [count(each) for each in at],
        "labelled": _LABELLED,
        "lines": lines,
    }


def _along(history: History) -> tuple[str, list[int], list[int]] | None:
    """Return the axis (evaluations, or else units), the distinct looks, and their positions."""
    for label, grown in (("evaluations", history.n_evaluated), ("units", history.n_units)):
        at = [int(each) for each in grown]
        # The last look counts if several are at the same position.
        looks = [look for look, each in enumerate(at) if at[look + 1 : look + 2] != [each]]
        if len(looks) > 1:
            return label, looks, [at[look] for look in looks]
    return None


def _at_look(scale: Scale, value: float, half: float) -> str:
    if not math.isfinite(half):
        return scale(value)
    return f"{scale(value)} \N{PLUS-MINUS SIGN} {scale(half)}"


def sampler(summary: Summary) -> dict[str, object]:
    """Return the scores of the samplers in a table and in sentences."""
    info = summary.explanation.choices.sampler
    chosen = info.name
    sentences = [
        f"Unknown features were drawn by {named(chosen)}.",
        "A sampler draws unknown features given the known ones. Every value rests on its draws.",
        f"It was {word(info.source)}." if info.decision is None else info.decision.words(),
    ]
    frame = summary.explanation.sampler_scores
    if frame is None:
        sentences.append("No sampler was scored on held-out rows.")
        return {"sentences": sentences, "chosen": chosen, "lines": [], "columns": []}
    sentences.append(
        "The energy score measures how far the draws are from rows that the sampler has not seen: "
        "lower is better."
    )
    gain = gain_over_marginal(summary)
    if gain is not None:
        sentences.append(_describe_gain(chosen, gain))
    columns = ["Sampler", "Energy score", "Above the best", "Standard error", "Seconds", "Remarks"]
    scale = Scale(frame["energy_score"].tolist())
    lines = []
    for line in frame.to_dict("records"):
        name = str(line["sampler"])
        remarks = [str(line[key]) for key in ("error", "warnings") if isinstance(line[key], str)]
        if name == _REFERENCE:
            remarks.insert(0, "for reference: ignores the known features")
        cells = [scale(float(line[key])) for key in ("energy_score", "difference", "se")]
        cells.append(number(float(line["fit_seconds"]) + float(line["draw_seconds"]), 2))
        text = "; ".join(remark for remark in remarks if remark)
        lines.append({"cells": [name, *cells, text], "chosen": name == chosen})
    return {"sentences": sentences, "chosen": chosen, "lines": lines, "columns": columns}


def gain_over_marginal(summary: Summary) -> float | None:
    """Return by which share the score of the sampler is below that of marginal draws."""
    frame = summary.explanation.sampler_scores
    if frame is None:
        return None
    scores = {
        str(line["sampler"]): float(line["energy_score"]) for line in frame.to_dict("records")
    }
    chosen, reference = (
        scores.get(name, math.nan)
        for name in (summary.explanation.choices.sampler.name, _REFERENCE)
    )
    if not (math.isfinite(chosen) and math.isfinite(reference) and reference > 0):
        return None
    return 1.0 - chosen / reference


def _describe_gain(chosen: str, gain: float) -> str:
    if chosen == _REFERENCE:
        return "Marginal draws ignore the known features, so the values are not conditional."
    if gain <= 0:
        return (
            f"{named(chosen)} scores no better than draws that ignore the known features. Either "
            "the features are independent, or it misses their dependence."
        )
    better = f"{named(chosen)} scores {percent(gain)} better"
    return f"{better} than draws that ignore the known features (Marginal)."
