"""Rows of the folds of cross-validation, from any scikit-learn splitter."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
import numpy.typing as npt
from sklearn.base import is_classifier
from sklearn.model_selection import check_cv

from dsage._check import name_place, refusal, shown
from dsage.data.frames import is_frame, take_rows
from dsage.data.targets import Array

Rows = npt.NDArray[np.intp]


class Fold(NamedTuple):
    """The number of a fold, from 1, how many there are, and its rows."""

    number: int
    n_folds: int
    train: Rows
    test: Rows

    @property
    def name(self) -> str:
        """The fold in messages."""
        return f"fold {self.number} of {self.n_folds}"


def make_folds(
    cv: Any,  # noqa: ANN401
    X: Any,  # noqa: ANN401
    y: Array,
    cv_groups: Any,  # noqa: ANN401
    model: Any,  # noqa: ANN401
    *,
    is_fitted: bool,
) -> list[Fold]:
    """Return the folds of a number, a splitter, or pairs of training rows and evaluation rows.

    With fitted models, a splitter that splits at random would evaluate them on rows that they were
    fitted to: it is refused.
    """
    if isinstance(cv, Iterable) and not hasattr(cv, "split"):
        # An iterator would be empty the second time.
        cv = list(cv)
    groups = None if cv_groups is None else np.asarray(cv_groups)
    if groups is not None and len(groups) != len(y):
        advice = "Pass the group of each row"
        raise refusal("cv_groups", f"of {len(y)} rows, as y is", len(groups), advice)
    try:
        splitter = check_cv(cv, y, classifier=_has_classes(model))
        pairs = list(splitter.split(X, y, groups))
        again = list(splitter.split(X, y, groups)) if is_fitted else pairs
    except (TypeError, ValueError) as error:
        advice = f"It cannot split these rows: {error}"
        raise refusal("cv", "a number of folds or a splitter", cv, advice) from error
    folds = [
        _check_fold(number, len(pairs), pair, len(y)) for number, pair in enumerate(pairs, start=1)
    ]
    if not folds:
        raise refusal("cv", "one fold or more", cv, "Pass a number of folds, such as 5")
    same = (np.array_equal(one[1], other[1]) for one, other in zip(pairs, again, strict=True))
    if not all(same):
        advice = (
            "It splits at random, so models would be evaluated on rows they were fitted to: give "
            "it a random_state, or pass zip(indices['train'], indices['test']) with the indices of "
            "cross_validate(return_indices=True)"
        )
        raise refusal("cv", "a splitter that repeats its folds, if models are given", cv, advice)
    return folds


def _has_classes(model: Any) -> bool:  # noqa: ANN401
    """Return whether a model is a classifier, also for models of other libraries."""
    if hasattr(model, "__sklearn_tags__"):
        return bool(is_classifier(model))
    return hasattr(model, "predict_proba")


def _check_fold(number: int, n_folds: int, pair: Any, n_rows: int) -> Fold:  # noqa: ANN401
    """Return the rows of a fold as numbers; refuse rows that do not exist, or are in both parts."""
    with name_place(f"fold {number} of {n_folds}"):
        train, test = (_as_numbers(each, n_rows) for each in pair)
        if not len(train) or not len(test):
            advice = "Each fold needs rows to learn from and rows to evaluate"
            sizes = (len(train), len(test))
            raise refusal("cv", "folds with rows in both parts", sizes, advice)
        if len(both := np.intersect1d(train, test)):
            advice = "A model must not be evaluated on rows that it was fitted to"
            found = f"rows {shown(both.tolist())} in both"
            raise refusal("cv", "pairs of different rows", found, advice)
    return Fold(number, n_folds, train, test)


def _as_numbers(rows: Any, n_rows: int) -> Rows:  # noqa: ANN401
    found = np.asarray(rows)
    if found.dtype == np.bool_ and found.shape == (n_rows,):
        found = np.flatnonzero(found)
    if found.shape == (0,):
        return found.astype(np.intp)
    if found.ndim != 1 or found.dtype.kind not in "iu":
        advice = "Pass the positions of the rows, from 0"
        raise refusal("cv", "pairs of arrays of whole numbers", found.dtype, advice, TypeError)
    if len(outside := found[(found < 0) | (found >= n_rows)]):
        raise refusal("cv", f"pairs of rows from 0 to {n_rows - 1}", int(outside[0]), "Correct it")
    return found.astype(np.intp)


def take_targets(y: Any, rows: Rows) -> Any:  # noqa: ANN401
    """Return some values of a target, in the same container."""
    if not is_frame(y) and nw.dependencies.is_into_series(y):
        return nw.from_native(y, series_only=True)[rows].to_native()
    return take_rows(y, rows)
