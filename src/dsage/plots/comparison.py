"""Values of several explanations, or of SAGE and d-SAGE, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes

from dsage._check import check_names, refusal
from dsage.estimate.result import TermEstimate
from dsage.plots.auditing import draw_zone, require_audit, zone_handles
from dsage.plots.pairs import draw_pair
from dsage.plots.style import (
    check_explanation,
    check_result,
    legend_above,
    loss_name,
    value_label,
)
from dsage.result.comparison import DataComparison, ModelComparison
from dsage.result.explanation import Explanation
from dsage.result.series import Series, combine_df
from dsage.result.tables import NAMES


def compare(
    explanation: Explanation,
    *others: Explanation,
    labels: Sequence[str] | None = None,
    top: int = 20,
    confidence: float = 0.95,
    ax: Sequence[Axes] | None = None,
) -> npt.NDArray[np.object_]:
    """Draw the values of several explanations side by side, and their differences to the first.

    Features are matched by name; features that some explanation lacks are left out. The intervals
    of the differences assume independent runs. Runs on the same evaluation rows are not
    independent: the thin intervals, for the population, are then too wide.
    :func:`dsage.compare` is far more precise.

    Parameters
    ----------
    explanation, *others : Explanation
        Two or more, with the same loss.
    labels : sequence of str, optional
        Their names in the legend; by default the names of their models.
    top : int, default=20
        The number of features that are drawn, those with the largest mean value.
    confidence : float, default=0.95
        Confidence level of the intervals.
    ax : sequence of two matplotlib Axes, optional
        Axes for values and differences; by default, a new figure is created.

    Returns
    -------
    array of two matplotlib Axes
        The values, and the differences.
    """
    explanations = _check_explanations(explanation, *others)
    named = (
        _make_labels(explanations) if labels is None else _check_labels(labels, len(explanations))
    )
    found = [set(each.feature_names) for each in explanations]
    common = [name for name in explanation.feature_names if all(name in each for each in found)]
    if not common:
        wanted = "explanations that share features with the first"
        advice = f"The first has {', '.join(map(repr, explanation.feature_names[:6]))}"
        raise refusal("others", wanted, list(others[0].feature_names[:6]), advice)
    n_left_out = len(set().union(*found)) - len(common)
    notes = [f"{n_left_out} features that some explanations lack are left out"] * (n_left_out > 0)
    series = [
        Series.of(each, common, label) for each, label in zip(explanations, named, strict=True)
    ]
    differences = [each.minus(series[0]) for each in series[1:]]
    is_one = len({each.estimate.estimand for each in explanations}) == 1
    shown = (
        value_label(explanation, None if is_one else ""),
        f"difference: {'each' if len(explanations) > 2 else named[1]} minus {named[0]}",
    )
    options: dict[str, Any] = {"top": top, "confidence": confidence, "ax": ax}
    return _draw_series(common, series, differences, shown, notes, **options)


def compare_models(
    comparison: ModelComparison,
    *,
    top: int = 20,
    confidence: float = 0.95,
    ax: Sequence[Axes] | None = None,
) -> npt.NDArray[np.object_]:
    """Draw the values of several models side by side, and their differences to one of them.

    The differences were estimated with common orderings, rows and noise, see :func:`dsage.compare`.

    Parameters
    ----------
    comparison : ModelComparison
        The result of :func:`dsage.compare`.
    top, confidence, ax
        As for :func:`dsage.plots.compare`.

    Returns
    -------
    array of two matplotlib Axes
        The values, and the differences.
    """
    check_result(comparison, ModelComparison, "comparison", "dsage.compare")
    first = comparison.reference
    order = [first, *comparison.differences]
    series = [Series.of_estimate(comparison.estimates[label], label) for label in order]
    differences = [
        Series.of_estimate(estimate, label) for label, estimate in comparison.differences.items()
    ]
    minus = f"{'each' if len(differences) > 1 else order[1]} minus {first}"
    return _draw_series(
        comparison.feature_names,
        series,
        differences,
        (_value_label(comparison), f"difference: {minus}"),
        top=top,
        confidence=confidence,
        ax=ax,
    )


def compare_data(
    comparison: DataComparison,
    *,
    top: int = 20,
    confidence: float = 0.95,
    ax: Sequence[Axes] | None = None,
) -> npt.NDArray[np.object_]:
    """Draw the values of one model on two sets of rows side by side, and their changes.

    Parameters
    ----------
    comparison : DataComparison
        The result of :func:`dsage.compare_data`.
    top, confidence, ax
        As for :func:`dsage.plots.compare`.

    Returns
    -------
    array of two matplotlib Axes
        The values, and the changes.
    """
    check_result(comparison, DataComparison, "comparison", "dsage.compare_data")
    one, two = comparison.labels
    return _draw_series(
        comparison.feature_names,
        [Series.of_estimate(comparison.estimates[label], label) for label in (one, two)],
        [comparison.difference],
        (_value_label(comparison), f"change: {two} minus {one}"),
        top=top,
        confidence=confidence,
        ax=ax,
    )


def _value_label(comparison: ModelComparison | DataComparison) -> str:
    return f"{comparison.kind} value (reduction of {comparison.loss.replace('_', ' ')})"


def _draw_series(
    names: Sequence[str],
    series: list[Series],
    differences: list[Series],
    labels: tuple[str, str],
    notes: Sequence[str] = (),
    **options: Any,  # noqa: ANN401
) -> npt.NDArray[np.object_]:
    """Draw values and differences, the features with the largest mean value on top."""
    mean = np.mean([each.values for each in series], axis=0)
    pair = draw_pair(names, mean, series, differences, labels, notes, **options)
    return np.array(pair, dtype=object)


def sage_and_dsage(
    explanation: Explanation,
    *,
    top: int = 20,
    confidence: float = 0.95,
    ax: Sequence[Axes] | None = None,
) -> npt.NDArray[np.object_]:
    """Draw d-SAGE and SAGE values of one audited run side by side, and their differences.

    The differences come from the audit. Only the estimand of the run has an interval for the
    population. The shaded zone is 2 % of the range of the values to both sides of zero:
    differences that are significantly outside matter.

    Parameters
    ----------
    explanation : Explanation
        A run with an audit.
    top, confidence, ax
        As for :func:`dsage.plots.compare`.

    Returns
    -------
    array of two matplotlib Axes
        The values, and the differences.
    """
    audit = require_audit(explanation)
    names = list(explanation.feature_names)
    unknown = np.full(len(names), np.nan)
    df = np.full(len(names), audit.df)
    difference = Series("d-SAGE", -audit.values, audit.se, df, unknown, np.ones(len(names)))
    shown = value_label(explanation, ""), "difference: d-SAGE minus SAGE"
    left, right = draw_pair(
        names,
        explanation.values,
        _make_both(explanation, audit, difference),
        [difference],
        shown,
        top=top,
        confidence=confidence,
        ax=ax,
    )
    draw_zone(right, explanation)
    legend_above(right, zone_handles(explanation))
    return np.array([left, right], dtype=object)


def _make_both(explanation: Explanation, audit: TermEstimate, difference: Series) -> list[Series]:
    """Return SAGE and d-SAGE, one of which is computed from the other and their difference.

    Its error combines both errors, and its error from the choice of the rows is unknown.
    """
    estimate = explanation.estimate
    own = Series.of(explanation, explanation.feature_names, "SAGE")
    unknown = np.full(len(own.values), np.nan)
    if estimate.estimand == "sage":
        # Without the correction, which is estimated with separate orderings.
        parts = [each.se**2 for each in estimate.terms if each.kind != audit.kind]
        se = np.sqrt(np.sum([*parts, estimate.se_draws**2], axis=0))
        values = own.values + difference.values
        return [own, Series("d-SAGE", values, se, own.df, unknown, own.df_total)]
    variances = np.stack([estimate.se**2, difference.se**2])
    se, df = np.sqrt(variances.sum(axis=0)), combine_df(variances, own.df, difference.df)
    sage = Series("SAGE", own.values - difference.values, se, df, unknown, own.df_total)
    return [sage, replace(own, label="d-SAGE")]


def _check_explanations(*explanations: Explanation) -> tuple[Explanation, ...]:
    for number, each in enumerate(explanations):
        check_explanation(each, "others" if number else "explanation")
    if len(explanations) == 1:
        advice = "Pass the explanations to compare with"
        raise refusal("others", "one explanation or more", (), advice)
    losses = [loss_name(each) for each in explanations]
    if len(set(losses)) > 1:
        advice = "Values of different losses have different units: explain all with the same loss"
        raise refusal("others", f"explained with the loss {losses[0]!r}", losses[1:], advice)
    return explanations


def _check_labels(labels: Sequence[str], n_explanations: int) -> tuple[str, ...]:
    checked = check_names(labels, "labels")
    if len(checked) != n_explanations:
        advice = "Pass one label per explanation"
        raise refusal("labels", f"{n_explanations} names", list(checked), advice)
    return checked


def _make_labels(explanations: Sequence[Explanation]) -> list[str]:
    """Return distinct labels: models, models with estimands, or numbered models."""
    models = [each.choices.model.name for each in explanations]
    kinds = [NAMES[each.estimate.estimand] for each in explanations]
    whole = [f"{model}, {kind}" for model, kind in zip(models, kinds, strict=True)]
    for labels in (models, whole):
        if len(set(labels)) == len(explanations):
            return labels
    return [f"{model} {number}" for number, model in enumerate(models, start=1)]
