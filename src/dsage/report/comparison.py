"""From a comparison to plain data: every number and every sentence of its report."""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np
import pandas as pd

from dsage.estimate.inference import intervals
from dsage.estimate.result import Estimate
from dsage.report.words import Scale, count, counted, listed, named, number, p_value, percent
from dsage.result.comparison import DataComparison, ModelComparison
from dsage.result.run_info import plain

_CONFIDENCE = 0.95
# Differences with a smaller p-value are named in the headline.
_SMALL = 0.05
_DOT = " \N{MIDDLE DOT} "
_VALUES = (
    "The values of each run, with intervals for these rows. Features are ordered by the mean over "
    "all runs; the number shown is the value in the first."
)


def comparison_report_data(comparison: ModelComparison | DataComparison) -> dict[str, Any]:
    """Return the content of a report of a comparison as data that JSON can hold.

    Parameters
    ----------
    comparison : ModelComparison or DataComparison
        The result of :func:`dsage.compare` or of :func:`dsage.compare_data`.

    Returns
    -------
    dict
        Strings, numbers, booleans, None, and lists and dictionaries of them.

    Examples
    --------
    >>> import dsage
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import LinearRegression, Ridge
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> X = X[["age", "bmi", "bp", "s5"]]
    >>> rows = X[:300], y[:300], X[300:], y[300:]
    >>> models = {"ordinary": LinearRegression().fit(*rows[:2]), "ridge": Ridge().fit(*rows[:2])}
    >>> found = dsage.compare(models, *rows, sampler="gaussian", random_state=0, progress=False)
    >>> data = comparison_report_data(found)
    >>> data["headline"][0]
    'No feature contributes significantly more in one model than in another.'
    >>> data["series"]
    ['ordinary', 'ridge']
    """
    told = _OfModels(comparison) if isinstance(comparison, ModelComparison) else _OfData(comparison)
    estimates = told.estimates
    order = np.argsort(-np.mean([each.values for each in estimates.values()], axis=0))
    scale = Scale(np.concatenate([each.values for each in estimates.values()]).tolist())
    data = {
        "title": told.title,
        "subtitle": _DOT.join([*told.subtitle, comparison.loss.replace("_", " ")]),
        "headline": told.headline(),
        "figures": told.figures(),
        "noun": "feature",
        "confidence": percent(_CONFIDENCE),
        "series": list(estimates),
        "value_label": f"{comparison.kind} value: lower {comparison.loss.replace('_', ' ')}",
        "parts": told.parts(),
        "columns": told.columns,
        "features": [
            {
                "name": comparison.feature_names[at],
                "values": [_value(each, int(at), scale) for each in estimates.values()],
                "differences": told.differences(comparison.feature_names[at], scale),
            }
            for at in order
        ],
        "differences_text": told.text,
        "values_text": [_VALUES],
        "meaning": told.meaning(),
        "choices": _choices(comparison, estimates),
    }
    return cast("dict[str, Any]", plain(data))


class _Content:
    """The parts of a report that differ between the two kinds of comparison."""

    title: str
    subtitle: list[str]
    columns: list[str]
    text: list[str]
    estimates: dict[str, Estimate]
    frame: pd.DataFrame

    def headline(self) -> list[str]:
        """Return the result in two sentences."""
        raise NotImplementedError

    def figures(self) -> list[dict[str, str]]:
        """Return the risks, and what the runs have in common."""
        raise NotImplementedError

    def parts(self) -> list[dict[str, str]]:
        """Return the words of each chart of differences."""
        raise NotImplementedError

    def differences(self, feature: str, scale: Scale) -> list[dict[str, Any]]:
        """Return the numbers of a feature in each of these charts."""
        raise NotImplementedError

    def meaning(self) -> list[dict[str, str]]:
        """Return terms with explanations."""
        raise NotImplementedError

    def find_significant(self) -> pd.DataFrame:
        """Return the lines that differ from zero in the population."""
        return self.frame[self.frame["p_value"] < _SMALL]


class _OfModels(_Content):
    """The report of several models on the same rows."""

    def __init__(self, found: ModelComparison) -> None:
        self._found, self.frame = found, found.to_frame(_CONFIDENCE)
        self.title = f"Which model of {found.target} relies on which feature"
        self.subtitle = [
            listed(list(found.estimates)),
            counted(found.n_rows, "evaluation row"),
        ]
        self.estimates = {
            label: found.estimates[label] for label in (found.reference, *found.differences)
        }
        others = list(found.differences)
        heads = [
            "Value" if len(others) > 1 else f"In {others[0]}",
            f"In {found.reference}",
            "Difference",
            "\N{PLUS-MINUS SIGN}",
        ]
        heads += [f"{percent(_CONFIDENCE)} interval", "p-value"]
        self.columns = ["Model"] * (len(others) > 1) + heads
        self.text = [
            f"How much more a feature contributes in a model than in {named(found.reference)}.",
            "All models were evaluated at the same coalitions, on the same rows, with the same",
            "noise, so the errors that they have in common cancel.",
        ]

    def headline(self) -> list[str]:
        """Return the result in two sentences."""
        found, first = self._found, self._found.reference
        risks = sorted(found.risks, key=found.risks.__getitem__)
        lowest = (
            f"{named(risks[0])} has the lowest risk on these rows, {number(found.risks[risks[0]])}."
        )
        sure = self.find_significant()
        if sure.empty:
            return [
                "No feature contributes significantly more in one model than in another.",
                lowest,
            ]
        line = sure.iloc[sure["difference"].abs().argmax()]
        than = "more" if line["difference"] > 0 else "less"
        size = number(abs(float(line["difference"])))
        where = f"in {named(str(line['model']))} than in {named(first)}"
        start = f"{named(str(line['feature']))} contributes {than} {where}: by {size}."
        n_more = len(sure) - 1
        are = "is" if n_more == 1 else "are"
        others = f"{counted(n_more, 'other difference')} {are} significant, too."
        return [start, " ".join([others] * (n_more > 0) + [lowest])]

    def figures(self) -> list[dict[str, str]]:
        """Return the risks, and what the runs have in common."""
        found = self._found
        base = found.risks[found.reference]
        figures = []
        for label in self.estimates:
            risk = found.risks[label]
            note = "the reference"
            if label != found.reference:
                note = f"{'+' if risk > base else ''}{number(risk - base)} to the reference"
            figures.append({"label": f"risk of {label}", "figure": number(risk, 4), "note": note})
        return [*figures, _figure("sampler", found.sampler, "the same for all")]

    def parts(self) -> list[dict[str, str]]:
        """Return the words of each chart of differences."""
        first = self._found.reference
        return [
            {
                "name": label,
                "noun": "difference",
                "title": f"{label} minus {first}",
                "label": f"value in {label} minus value in {first}",
            }
            for label in self._found.differences
        ]

    def differences(self, feature: str, scale: Scale) -> list[dict[str, Any]]:
        """Return the numbers of a feature in each of these charts."""
        lines = self.frame[self.frame["feature"] == feature].set_index("model")
        made = []
        for label in self._found.differences:
            line: Any = lines.loc[label]
            before = [scale(float(line[name])) for name in ("value", "value_reference")]
            made.append(_difference(line, "difference", before, scale))
        return made

    def meaning(self) -> list[dict[str, str]]:
        """Return terms with explanations."""
        found = self._found
        return [
            _term(
                "Value",
                f"How much of the risk, the mean {found.loss.replace('_', ' ')}, a feature removes"
                " in a model, averaged over all orders in which features become known.",
            ),
            _term(
                "Difference",
                "Estimated on common orderings and noise, which is more precise than the "
                "difference of the two columns of values, which come from separate runs.",
            ),
            _term(
                "Intervals",
                "The thick one is for these rows, and more computing narrows it. The thin one is"
                " for the population: only more rows narrow it.",
            ),
            _term(
                "What it does not say",
                "A feature that contributes less in the better model is not less important for the"
                " target: the model may get the same information elsewhere.",
            ),
        ]


class _OfData(_Content):
    """The report of one model on two sets of rows."""

    def __init__(self, found: DataComparison) -> None:
        self._found, self.frame = found, found.to_frame(_CONFIDENCE)
        one, two = found.labels
        self.title = f"Why the risk of a model of {found.target} has changed"
        rows = " and ".join(count(len(found.losses[label])) for label in found.labels)
        self.subtitle = [found.model, f"{named(one)} and {named(two)}", f"{rows} rows"]
        self.estimates = {label: found.estimates[label] for label in found.labels}
        self.columns = [one, two, "Explains", "\N{PLUS-MINUS SIGN}"]
        self.columns += [f"{percent(_CONFIDENCE)} interval", "p-value"]
        self.text = [
            "The part of the change in risk that each feature explains:",
            "if a feature contributes less than before, the risk rises by that amount.",
        ]

    def headline(self) -> list[str]:
        """Return the result in two sentences."""
        found, (one, two) = self._found, self._found.labels
        verb = "rises" if found.change > 0 else "falls"
        size = number(abs(found.change))
        start = f"From {named(one)} to {named(two)} the risk {verb} by {size}."
        features = -float(found.difference.values.sum())
        text = (
            f"Of this change, {number(found.change_without_features)} occurs without any feature,"
            f" and {number(features)} is due to the features."
        )
        sure = self.find_significant()["feature"].tolist()
        changed = (
            f"The contribution of {listed(sure)} has changed significantly."
            if sure
            else "No feature has changed its contribution significantly."
        )
        return [start, f"{text} {changed}"]

    def figures(self) -> list[dict[str, str]]:
        """Return the risks, and what the runs have in common."""
        frame = self._found.risk_frame(_CONFIDENCE)
        figures = [
            _figure(
                "change of the risk" if of == "change" else f"risk of {of}",
                number(risk, 4),
                f"{number(lower)} to {number(upper)}" if math.isfinite(lower) else "",
            )
            for of, risk, lower, upper in zip(
                frame["of"], frame["risk"], frame["lower"], frame["upper"], strict=True
            )
        ]
        return [*figures, _figure("sampler", self._found.sampler, "the same for both")]

    def parts(self) -> list[dict[str, str]]:
        """Return the words of each chart of differences."""
        one, two = self._found.labels
        label = f"part of the change in risk from {one} to {two}"
        title = "How much of the change in risk each feature explains"
        return [{"name": two, "noun": "explains", "title": title, "label": label}]

    def differences(self, feature: str, scale: Scale) -> list[dict[str, Any]]:
        """Return the numbers of a feature in each of these charts."""
        line = self.frame[self.frame["feature"] == feature].iloc[0]
        before = [scale(float(line[f"value[{label}]"])) for label in self._found.labels]
        turned = line.copy()
        for name in ("", "_total"):
            turned[f"lower{name}"] = -line[f"upper{name}"]
            turned[f"upper{name}"] = -line[f"lower{name}"]
        return [_difference(turned, "explained", before, scale)]

    def meaning(self) -> list[dict[str, str]]:
        """Return terms with explanations."""
        return [
            _term(
                "The sum",
                "The change of the risk is the change without features plus the changes that the "
                "features explain. Both parts can be large and cancel.",
            ),
            _term(
                "Without features",
                "How much harder the target has become to predict without any feature: it may "
                "simply vary more.",
            ),
            _term(
                "Why a value changes",
                "The sampler is the same for both sets, so either the relation of the feature to"
                " the target has changed, or the distribution of the rows.",
            ),
            _term(
                "Intervals",
                "The thick one is for these rows, and more computing narrows it. The thin one is"
                " for the populations: only more rows narrow it.",
            ),
        ]


def _term(term: str, text: str) -> dict[str, str]:
    return {"term": term, "text": text}


def _figure(label: str, figure: str, note: str) -> dict[str, str]:
    return {"label": label, "figure": figure, "note": note}


def _value(estimate: Estimate, at: int, scale: Scale) -> dict[str, Any]:
    some = slice(at, at + 1)
    values, se, df = estimate.values[some], estimate.se[some], estimate.df[some]
    lower, upper = intervals(values, se, _CONFIDENCE, df=df)
    text = scale(float(values[0]))
    return {"value": values[0], "lower": lower[0], "upper": upper[0], "text": text}


def _difference(line: Any, name: str, before: list[str], scale: Scale) -> dict[str, Any]:  # noqa: ANN401
    ends = [float(line[each]) for each in ("lower", "upper", "lower_total", "upper_total")]
    words = {
        "value": scale(float(line[name])),
        "interval": scale.interval(*ends[2:]),
        "p_value": p_value(float(line["p_value"])),
    }
    numbers = dict(zip(("lower", "upper", "lower_total", "upper_total"), ends, strict=True))
    cells = [*before, words["value"], scale(float(line["se"])), words["interval"], words["p_value"]]
    return {"value": float(line[name]), **numbers, "words": words, "cells": cells}


def _choices(
    comparison: ModelComparison | DataComparison, estimates: dict[str, Estimate]
) -> list[dict[str, object]]:
    """Return the choices that the runs share, and how each of them ended."""
    common = {
        "values": comparison.kind,
        "loss": comparison.loss,
        "sampler": comparison.sampler,
        "target": comparison.target,
    }
    runs = dict(estimates)
    if isinstance(comparison, ModelComparison):
        first = comparison.reference
        runs |= {f"{name} minus {first}": each for name, each in comparison.differences.items()}
    sections = {"In common": common, "Runs": {name: _end(each) for name, each in runs.items()}}
    return [
        {"section": section, "lines": [{"name": key, "value": each} for key, each in told.items()]}
        for section, told in sections.items()
    ]


def _end(estimate: Estimate) -> str:
    n_orderings = (
        "all orderings" if estimate.is_exact else counted(estimate.n_orderings, "ordering")
    )
    return f"{n_orderings}; stopped because {estimate.reason}"
