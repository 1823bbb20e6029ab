"""Combine explanations of different rows, seeds or models."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from dsage._check import check_names, refusal, shown
from dsage.result.combined import CombinedExplanation
from dsage.result.explanation import Explanation
from dsage.result.folded import FoldedExplanation


def combine(
    explanations: Mapping[str, Explanation] | Iterable[Explanation],
    *,
    shared_rows: bool | None = None,
) -> CombinedExplanation:
    """Pool explanations of different rows, seeds or models by a random-effects mean.

    Each explanation estimates a different value, for its model and its rows. The mean of these
    values and their standard deviation, the spread, are estimated from the explanations and their
    errors, feature by feature (Paule and Mandel, 1982; Hartung and Knapp, 2001).

    The meaning of the interval depends on how the explanations differ. For different rows, such as
    the patients of several hospitals, it is about the mean over such sets of rows; for refitted
    models, about the mean over fits; for seeds, the spread should be zero, and the mean is only
    more precise. For the folds of one cross-validation use :func:`dsage.explain_cv`: their models
    share training rows, which this function does not take into account.

    Parameters
    ----------
    explanations : mapping of str to Explanation, or iterable of Explanation
        Two or more, with the same features, target and loss. The names are used in the result; an
        iterable is numbered.
    shared_rows : bool, optional
        Whether they were evaluated on the same rows. Then the error from the choice of the rows is
        common to all, and is added to the error of the mean. By default this is determined from
        the rows; if only some of them agree, it must be given, and True is the conservative
        choice.

    Returns
    -------
    CombinedExplanation

    Examples
    --------
    >>> import dsage
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import LinearRegression, Ridge
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> X = X[["age", "bmi", "bp", "s5"]]
    >>> rows = X[:300], y[:300], X[300:], y[300:]
    >>> found = {
    ...     name: dsage.explain(model.fit(*rows[:2]), *rows, sampler="gaussian", graph=None,
    ...                         sampler_check=False, random_state=0, progress=False)
    ...     for name, model in {"ordinary": LinearRegression(), "ridge": Ridge(0.1)}.items()
    ... }
    >>> combined = combine(found)
    >>> combined.to_frame()["feature"].tolist(), combined.shared_rows
    (['bmi', 's5', 'bp', 'age'], True)
    """
    named = _name(explanations)
    first_label, first = next(iter(named.items()))
    for label, each in named.items():
        _check_alike(first_label, first, label, each)
    if shared_rows not in (None, True, False):
        raise refusal("shared_rows", "True, False or None", shared_rows, "Leave it out", TypeError)
    shared = _share_rows(named) if shared_rows is None else bool(shared_rows)
    if not shared:
        for label, each in named.items():
            if not np.isfinite(each.estimate.se_total).all():
                advice = "The error from the choice of its rows is unknown"
                condition = "evaluated on two rows or more"
                raise refusal(f"explanation {label!r}", condition, _n_rows(each), advice)
    return CombinedExplanation(tuple(named), tuple(named.values()), shared)


def _name(explanations: object) -> dict[str, Explanation]:
    """Return the explanations by name."""
    if isinstance(explanations, Explanation) or not isinstance(explanations, Iterable):
        found, advice = type(explanations).__name__, "Pass a list"
        if isinstance(explanations, FoldedExplanation):
            advice = "Its folds are pooled already: see its values"
        raise refusal("explanations", "several Explanations", found, advice, TypeError)
    if isinstance(explanations, Mapping):
        check_names(explanations, "the names of explanations")
        named = dict(explanations)
    else:
        named = {str(number): each for number, each in enumerate(explanations, start=1)}
    if len(named) < 2:
        advice = "A single explanation needs no mean"
        raise refusal("explanations", "two or more", len(named), advice)
    for label, each in named.items():
        if not isinstance(each, Explanation):
            advice = "Pass results of dsage.explain or dsage.load"
            what = f"explanation {label!r}"
            raise refusal(what, "an Explanation", type(each).__name__, advice, TypeError)
    return named


def _check_alike(first_label: str, first: Explanation, label: str, other: Explanation) -> None:
    """Refuse explanations whose values mean different things, and say what differs."""
    what = f"explanation {label!r}"
    if odd := sorted(set(first.feature_names) ^ set(other.feature_names)):
        ours = [name for name in odd if name in first.feature_names]
        theirs = [name for name in odd if name not in first.feature_names]
        parts = [f"It lacks {shown(ours)}"] * bool(ours) + [f"It also has {shown(theirs)}"] * bool(
            theirs
        )
        condition = f"of the features of {first_label!r}"
        raise refusal(what, condition, list(other.feature_names[:6]), ". ".join(parts))
    if first.target != other.target:
        condition = f"of the target of {first_label!r}, {first.target!r}"
        raise refusal(what, condition, other.target, "Combine explanations of one target")
    losses = [each.choices.loss.name for each in (first, other)]
    if losses[0] != losses[1]:
        advice = "Values of different losses have different units: explain all with the same loss"
        raise refusal(what, f"of the loss of {first_label!r}, {losses[0]!r}", losses[1], advice)


def _share_rows(named: Mapping[str, Explanation]) -> bool:
    """Return whether all were evaluated on the same rows; refuse if only some were."""
    digests = [each.choices.data.digest for each in named.values()]
    n_different = len(set(digests))
    if None in digests or 1 < n_different < len(digests):
        groups: dict[str | None, list[str]] = {}
        for label, digest in zip(named, digests, strict=True):
            groups.setdefault(digest, []).append(label)
        found = " | ".join(", ".join(labels) for labels in groups.values())
        condition = "given if only some of the explanations have the same evaluation rows"
        advice = f"These share rows: {found}. Pass True, which is conservative, or False"
        raise refusal("shared_rows", condition, None, advice)
    return n_different == 1


def _n_rows(explanation: Explanation) -> int:
    return explanation.choices.data.n_rows_evaluation
