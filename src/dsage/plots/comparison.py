"""Values of several explanations, or of SAGE and d-SAGE, side by side."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes

from dsage._check import check_names, refusal
from dsage.estimate.result import TermEstimate
from dsage.plots.auditing import check_audited, draw_zone, zone_handles
from dsage.plots.pairs import Pair, Series, effective
from dsage.plots.style import check_explanation, legend_above, loss_name, value_label
from dsage.result.explanation import Explanation


def compare(
    explanation: Explanation,
    *others: Explanation,
    labels: Sequence[str] | None = None,
    top: int = 20,
    confidence: float = 0.95,
    ax: Sequence[Axes] | None = None,
) -> npt.NDArray[np.object_]:
    """Draw the values of several explanations side by side, and their differences to the first.

    Features are matched by name, and those that some explanation lacks are left out. The intervals
    of the differences assume independent runs. Runs on the same evaluation rows are not
    independent: the thin intervals, for the population, are then too wide.
    :func:`dsage.estimate.compare_games` is far more precise.

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
        Axes for values and differences; by default those of a new figure.

    Returns
    -------
    array of two matplotlib Axes
        The values, and the differences.
    """
    explanations = _check_explanations(explanation, others)
    named = _labels(explanations) if labels is None else _check_labels(labels, len(explanations))
    common = [name for name in explanation.feature_names if _all_have(name, explanations)]
    if not common:
        raise refusal(
            "others",
            "explanations that share features with the first",
            list(others[0].feature_names[:6]),
            f"The features of the first are {', '.join(map(repr, explanation.feature_names[:6]))}",
        )
    n_left_out = len(set().union(*(each.feature_names for each in explanations))) - len(common)
    series = [_series(each, common, label) for each, label in zip(explanations, named, strict=True)]
    differences = [each.minus(series[0]) for each in series[1:]]
    notes = (
        [f"{n_left_out} features that some explanations lack are left out"] if n_left_out else []
    )
    mean = np.mean([each.values for each in series], axis=0)
    one = {each.estimate.estimand for each in explanations}
    shown = (
        value_label(explanation, None if len(one) == 1 else ""),
        f"difference: {'each' if len(explanations) > 2 else named[1]} minus {named[0]}",
    )
    pair = Pair(common, mean, series, differences, shown, notes)
    return np.array(pair.draw(top=top, confidence=confidence, ax=ax), dtype=object)


def sage_and_dsage(
    explanation: Explanation,
    *,
    top: int = 20,
    confidence: float = 0.95,
    ax: Sequence[Axes] | None = None,
) -> npt.NDArray[np.object_]:
    """Draw d-SAGE and SAGE values of one audited run side by side, and their differences.

    The differences come from the audit. Only the estimand of the run has an interval for the
    population. The zone is 2 % of the range of the values to both sides: differences that are
    significantly outside matter.

    Parameters
    ----------
    explanation : Explanation
        A run with an audit.
    top : int, default=20
        The number of features that are drawn, those with the largest values.
    confidence : float, default=0.95
        Confidence level of the intervals.
    ax : sequence of two matplotlib Axes, optional
        Axes for values and differences; by default those of a new figure.

    Returns
    -------
    array of two matplotlib Axes
        The values, and the differences.
    """
    audit = check_audited(explanation)
    names = list(explanation.feature_names)
    unknown = np.full(len(names), np.nan)
    df = np.full(len(names), audit.df)
    difference = Series("d-SAGE", -audit.values, audit.se, df, unknown, np.ones(len(names)))
    shown = value_label(explanation, ""), "difference: d-SAGE minus SAGE"
    pair = Pair(
        names, explanation.values, _both(explanation, audit, difference), [difference], shown
    )
    left, right = pair.draw(top=top, confidence=confidence, ax=ax)
    draw_zone(right, explanation)
    legend_above(right, zone_handles(explanation))
    return np.array([left, right], dtype=object)


def _both(explanation: Explanation, audit: TermEstimate, difference: Series) -> list[Series]:
    """Return SAGE and d-SAGE; the error of the one that was not estimated combines both errors.

    That one has no error from the choice of the rows.
    """
    estimate = explanation.estimate
    own = _series(explanation, list(explanation.feature_names), "SAGE")
    unknown = np.full(len(own.values), np.nan)
    if estimate.estimand == "sage":
        # Without the correction, whose orderings are its own.
        parts = [each.se**2 for each in estimate.terms if each.kind != audit.kind]
        se = np.sqrt(np.sum([*parts, estimate.se_draws**2], axis=0))
        values = own.values + difference.values
        return [own, Series("d-SAGE", values, se, own.df, unknown, own.df_total)]
    variances = np.stack([estimate.se**2, difference.se**2])
    se = np.sqrt(variances.sum(axis=0))
    sage = Series(
        "SAGE",
        own.values - difference.values,
        se,
        effective(variances, own.df, difference.df),
        unknown,
        own.df_total,
    )
    return [sage, Series("d-SAGE", own.values, own.se, own.df, own.se_total, own.df_total)]


def _series(explanation: Explanation, names: list[str], label: str) -> Series:
    estimate = explanation.estimate
    at = np.array([explanation.feature_names.index(name) for name in names], dtype=np.intp)
    arrays = (
        estimate.values,
        estimate.se,
        estimate.df,
        estimate.se_total,
        estimate.df_total,
    )
    return Series(label, *(array[at] for array in arrays))


def _all_have(name: str, explanations: Sequence[Explanation]) -> bool:
    return all(name in each.feature_names for each in explanations)


def _check_explanations(
    explanation: Explanation, others: Sequence[Explanation]
) -> list[Explanation]:
    explanations = [
        check_explanation(explanation),
        *(check_explanation(each, "others") for each in others),
    ]
    if not others:
        raise refusal(
            "others", "one explanation or more", others, "Pass the explanations to compare with"
        )
    losses = [loss_name(each) for each in explanations]
    if len(set(losses)) > 1:
        raise refusal("others", f"explained with the loss {losses[0]!r}", losses[1:], _ONE_LOSS)
    return explanations


_ONE_LOSS = "Values of different losses have different units: explain all with the same loss"


def _check_labels(labels: Sequence[str], n_explanations: int) -> tuple[str, ...]:
    checked = check_names(labels, "labels")
    if len(checked) != n_explanations:
        raise refusal(
            "labels", f"{n_explanations} names", list(checked), "Pass one label per explanation"
        )
    return checked


def _labels(explanations: Sequence[Explanation]) -> list[str]:
    """Return distinct labels: models, models with estimands, or numbered models."""
    models = [each.choices.model.name for each in explanations]
    kinds = {"sage": "SAGE", "d-sage": "d-SAGE"}
    whole = [
        f"{model}, {kinds[each.estimate.estimand]}"
        for model, each in zip(models, explanations, strict=True)
    ]
    for labels in (models, whole):
        if len(set(labels)) == len(explanations):
            return labels
    return [f"{model} {number}" for number, model in enumerate(models, start=1)]
