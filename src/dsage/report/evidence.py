"""The evidence behind the values: how they converged, and how well the sampler fits."""

from __future__ import annotations

import math

import pandas as pd

from dsage.estimate.accumulate.history import History
from dsage.report.summary import Summary
from dsage.report.words import Scale, count, counted, listed, named, number, percent
from dsage.result.run_info import word

_REFERENCE = "Marginal"
# Half the width of a band, in standard errors.
_BAND = 2.0
_LABELLED = 8


def convergence(summary: Summary) -> dict[str, object]:
    """Return the values at each look, with bands, the largest value first."""
    history = summary.explanation.estimate.history
    along = _along(history)
    estimate = summary.explanation.estimate
    if along is None:
        text = "The values were computed once, at the end, so no convergence can be shown."
        if estimate.is_exact:
            text = f"All {count(estimate.n_surpluses)} orderings were averaged at once."
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
        "A sampler draws unknown features given the known ones. All values depend on its draws.",
        f"It was {word(info.source)}." if info.decision is None else info.decision.words(),
    ]
    sentences += _check_sentences(summary)
    frame = summary.explanation.sampler_scores
    if frame is None:
        sentences.append("No sampler was scored on held-out rows.")
        return {"sentences": sentences, "chosen": chosen, "lines": [], "columns": []}
    has_msev = "msev" in frame and bool(frame["msev"].notna().any())
    if has_msev:
        sentences.append(
            "The MSEv is the mean squared difference between the expected prediction, when only "
            "some features are known, and the model's prediction, on held-out rows, as a share of "
            "the variance of the predictions: lower is better."
        )
    sentences.append(
        "The energy score measures how far the draws are from held-out rows: lower is better."
    )
    gain = gain_over_marginal(summary)
    if gain is not None:
        sentences.append(_describe_gain(chosen, gain))
    columns, lines = _table(frame, chosen, has_msev=has_msev)
    return {"sentences": sentences, "chosen": chosen, "lines": lines, "columns": columns}


def _check_sentences(summary: Summary) -> list[str]:
    check = summary.explanation.sampler_check
    if check is None:
        return []
    if not check.others:
        return [f"The error of the sampler was not estimated: {check.reason}."]
    text = f"It was compared with {listed(check.others)} on common orderings, rows and draws"
    if not summary.depends:
        return [f"{text}: no value would change by significantly more than its other errors."]
    names = listed(summary.depends)
    return [f"{text}: the value of {names} would change by more than its other errors."]


def _table(
    frame: pd.DataFrame, chosen: str, *, has_msev: bool
) -> tuple[list[str], list[dict[str, object]]]:
    """Return the heads and the lines of the table of scores."""
    scores = {"Energy score": "energy_score", "Above the best": "difference"}
    scores["Standard error"] = "se"
    if has_msev:
        scores = {
            "MSEv": "msev", "MSEv above the best": "msev_difference", "MSEv error": "msev_se",
            **scores,
        }  # fmt: skip
    scales = {
        name: Scale(frame[name].tolist()) for name in ("energy_score", "msev") if name in frame
    }
    lines: list[dict[str, object]] = []
    for line in frame.to_dict("records"):
        name = str(line["sampler"])
        # The line of the sampler itself is marked.
        told = ("error", "warnings") if name == chosen else ("verdict", "error", "warnings")
        found = [line.get(key) for key in told]
        remarks = [each for each in found if isinstance(each, str) and each]
        if name == _REFERENCE and "verdict" not in line:
            remarks.insert(0, "for reference: ignores the known features")
        cells = [
            scales["msev" if key.startswith("msev") else "energy_score"](float(line[key]))
            for key in scores.values()
        ]
        # Files of the first releases have no times for samplers that were passed fitted.
        seconds = sum(float(line.get(key, math.nan)) for key in ("fit_seconds", "draw_seconds"))
        cells.append(number(seconds, 2))
        lines.append({"cells": [name, *cells, "; ".join(remarks)], "chosen": name == chosen})
    return ["Sampler", *scores, "Seconds", "Remarks"], lines


def gain_over_marginal(summary: Summary) -> float | None:
    """Return how far the score of the sampler is below the score of marginal draws, as a share."""
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
