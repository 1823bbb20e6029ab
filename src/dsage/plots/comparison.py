"""Values beside each other, and their differences."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes

from dsage._check import check_names, refusal
from dsage.estimate.result import TermEstimate
from dsage.plots.auditing import check_audited, draw_zone, zone_handles
from dsage.plots.pairs import Pair, Series, effective
from dsage.plots.style import check_record, legend_above, loss_name, value_label
from dsage.result.record import Record


def compare(
    record: Record,
    *others: Record,
    labels: Sequence[str] | None = None,
    top: int = 20,
    confidence: float = 0.95,
    ax: Sequence[Axes] | None = None,
) -> npt.NDArray[np.object_]:
    """Draw the values of several explanations side by side, and their differences to the first.

    The features are those that all explanations have, by name. The intervals of the differences
    take the runs for independent. Runs on the same evaluation rows are not: the thin intervals, for
    the population, are then too wide. :func:`dsage.estimate.compare_games` is far more precise.

    Parameters
    ----------
    record, *others : Explanation or Record
        Two or more, with the same loss.
    labels : sequence of str, optional
        What they are called; by default by the names of their models.
    top : int, default=20
        So many features are drawn, those with the largest mean value.
    confidence : float, default=0.95
        Confidence level of the intervals.
    ax : sequence of two matplotlib Axes, optional
        Where to draw values and differences; by default a new figure.

    Returns
    -------
    array of two matplotlib Axes
        The values, and the differences.

    Examples
    --------
    >>> import dsage
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import LinearRegression
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> X = X[["age", "bmi", "bp", "s5"]]
    >>> model = LinearRegression().fit(X[:300], y[:300])
    >>> explanation = dsage.explain(model, X[:300], y[:300], X[300:], y[300:], sampler="gaussian",
    ...                             random_state=0, progress=False)
    >>> other = dsage.explain(model, X[:300], y[:300], X[300:], y[300:], sampler="gaussian",
    ...                       graph=None, random_state=0, progress=False)
    >>> left, right = compare(explanation, other, labels=["learned", "without"])
    >>> right.get_xlabel()
    'difference: without minus learned'
    """
    records = _check_records(record, others)
    named = _labels(records) if labels is None else _check_labels(labels, len(records))
    common = [name for name in record.feature_names if _all_have(name, records)]
    if not common:
        raise refusal(
            "others",
            "explanations that share features with the first",
            list(others[0].feature_names[:6]),
            f"Those of the first are {', '.join(map(repr, record.feature_names[:6]))}",
        )
    n_left_out = len(set().union(*(each.feature_names for each in records))) - len(common)
    series = [_series(each, common, label) for each, label in zip(records, named, strict=True)]
    differences = [each.minus(series[0]) for each in series[1:]]
    notes = [f"{n_left_out} features that not all have are left out"] if n_left_out else []
    mean = np.mean([each.values for each in series], axis=0)
    one = {each.estimate.estimand for each in records}
    shown = (
        value_label(record, None if len(one) == 1 else ""),
        f"difference: {'each' if len(records) > 2 else named[1]} minus {named[0]}",
    )
    pair = Pair(common, mean, series, differences, shown, notes)
    return np.array(pair.draw(top=top, confidence=confidence, ax=ax), dtype=object)


def sage_and_dsage(
    record: Record,
    *,
    top: int = 20,
    confidence: float = 0.95,
    ax: Sequence[Axes] | None = None,
) -> npt.NDArray[np.object_]:
    """Draw d-SAGE and SAGE values of one audited run side by side, and their differences.

    The differences come from the audit. Only the value that the run estimated has an interval for
    the population. The zone is 2 % of the range of the values to both sides:
    differences that surely leave it matter.

    Parameters
    ----------
    record : Explanation or Record
        A run with an audit.
    top : int, default=20
        So many features are drawn, those with the largest values of the run.
    confidence : float, default=0.95
        Confidence level of the intervals.
    ax : sequence of two matplotlib Axes, optional
        Where to draw values and differences; by default a new figure.

    Returns
    -------
    array of two matplotlib Axes
        The values, and the differences.

    Examples
    --------
    >>> import dsage
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import LinearRegression
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> X = X[["age", "bmi", "bp", "s5"]]
    >>> model = LinearRegression().fit(X[:300], y[:300])
    >>> explanation = dsage.explain(model, X[:300], y[:300], X[300:], y[300:], sampler="gaussian",
    ...                             random_state=0, progress=False)
    >>> left, right = sage_and_dsage(explanation)
    >>> right.get_xlabel()
    'difference: d-SAGE minus SAGE'
    """
    audit = check_audited(record)
    names = list(record.feature_names)
    unknown = np.full(len(names), np.nan)
    df = np.full(len(names), audit.df)
    difference = Series("d-SAGE", -audit.values, audit.se, df, unknown, np.ones(len(names)))
    shown = value_label(record, ""), "difference: d-SAGE minus SAGE"
    pair = Pair(names, record.values, _both(record, audit, difference), [difference], shown)
    left, right = pair.draw(top=top, confidence=confidence, ax=ax)
    draw_zone(right, record)
    legend_above(right, zone_handles(record))
    return np.array([left, right], dtype=object)


def _both(record: Record, audit: TermEstimate, difference: Series) -> list[Series]:
    """Return SAGE and d-SAGE; the error of the one that was not estimated is made of both.

    What the choice of the rows does to that one was not estimated.
    """
    known = record.estimate
    own = _series(record, list(record.feature_names), "SAGE")
    unknown = np.full(len(own.values), np.nan)
    if known.estimand == "sage":
        # Without the correction, whose orderings are its own.
        parts = [each.se**2 for each in known.terms if each.kind is not audit.kind]
        se = np.sqrt(np.sum([*parts, known.se_draws**2], axis=0))
        values = own.values + difference.values
        return [own, Series("d-SAGE", values, se, own.df, unknown, own.df_total)]
    variances = np.stack([known.se**2, difference.se**2])
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


def _series(record: Record, names: list[str], label: str) -> Series:
    known = record.estimate
    at = np.array([record.feature_names.index(name) for name in names], dtype=np.intp)
    arrays = (known.values, known.se, known.df, known.se_total, known.df_total)
    return Series(label, *(array[at] for array in arrays))


def _all_have(name: str, records: Sequence[Record]) -> bool:
    return all(name in each.feature_names for each in records)


def _check_records(record: Record, others: Sequence[Record]) -> list[Record]:
    records = [check_record(record), *(check_record(each, "others") for each in others)]
    if not others:
        raise refusal("others", "one explanation or more", others, "Give what to compare with")
    losses = [loss_name(each) for each in records]
    if len(set(losses)) > 1:
        raise refusal("others", f"explained with the loss {losses[0]!r}", losses[1:], _ONE_LOSS)
    return records


_ONE_LOSS = "Values of different losses have different units: explain all with one loss"


def _check_labels(labels: Sequence[str], n_records: int) -> tuple[str, ...]:
    checked = check_names(labels, "labels")
    if len(checked) != n_records:
        raise refusal("labels", f"{n_records} names", list(checked), "Give one an explanation")
    return checked


def _labels(records: Sequence[Record]) -> list[str]:
    """Return names that tell the explanations apart: of models, estimands, or numbers."""
    models = [str(each.choices.get("model", {}).get("name") or "model") for each in records]
    kinds = {"sage": "SAGE", "d-sage": "d-SAGE"}
    whole = [
        f"{model}, {kinds[each.estimate.estimand]}"
        for model, each in zip(models, records, strict=True)
    ]
    for labels in (models, whole):
        if len(set(labels)) == len(records):
            return labels
    return [f"{model} {number}" for number, model in enumerate(models, start=1)]
