"""Feature selection by SAGE values, as a scikit-learn transformer."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier
from sklearn.feature_selection import SelectorMixin
from sklearn.model_selection import train_test_split
from sklearn.utils import Tags, get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from dsage._check import check_count, check_member, check_real, refusal
from dsage._random import RandomState
from dsage.data.frames import Frame, is_frame
from dsage.estimate.inference import holm, p_values, simultaneous_intervals
from dsage.games.base import Floats
from dsage.result.explanation import Explanation
from dsage.result.folded import FoldedExplanation
from dsage.steps import make_seed
from dsage.workflows.explainer import Explainer
from dsage.workflows.folds import explain_cv

Mask = npt.NDArray[np.bool_]

_CORRECTIONS = ("holm", "simultaneous", "none")
# Enough to have rows to learn from and rows to evaluate.
_FEWEST_ROWS = 4


class FeatureSelector(SelectorMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Select the features that significantly contribute to a model's performance, or the best k.

    Some of the rows are held out. The estimator is fitted to the others, from which graph and
    sampler are learned too, and evaluated on the rows that it has not seen. With `cv`, this is done
    in every fold, so that all rows are evaluated, and the selection does not depend on a single
    split of the rows.

    Parameters
    ----------
    estimator : estimator
        The model; a clone of it is fitted, unless `prefit` is true.
    k : int, optional
        Select the k features with the largest values. By default, select those whose values are
        significantly above zero.
    alpha : float, default=0.05
        The probability of selecting any feature whose value in the population is not above zero,
        for all features together (or for each, with ``correction="none"``). Not used with `k`.
    correction : {"holm", "simultaneous", "none"}, default="holm"
        How the number of features is accounted for: p-values adjusted by Holm's method, intervals
        that hold for all features at once (two-sided, so that fewer features are selected), or
        not at all.
    test_size : float, default=0.25
        Share of the rows that are held out. Not used with `cv`.
    cv : int, splitter or iterable, optional
        Cross-validate, see :func:`dsage.explain_cv`. Features are then selected by the value of the
        learning procedure, that is, of a model fitted to new training rows.
    prefit : bool, default=False
        Whether `estimator` is already fitted. Then `fit` must receive rows that it was not fitted
        to; they are split in the same way, to learn graph and sampler and to evaluate.
    explainer : Explainer, optional
        The options of the explanations; a clone of it is used. By default ``Explainer()`` without
        progress bars, and with the seed `random_state`.
    random_state : int, numpy Generator or None, default=None
        Seed of the split of the rows, and of the explanation unless `explainer` has its own.

    Attributes
    ----------
    explanation_ : Explanation or FoldedExplanation
        The values; with `cv`, of all folds.
    estimator_ : estimator
        The fitted model; with `cv`, it is fitted to all rows.
    support_ : bool array of shape (n_features,)
        The selected features.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array of str
        Their names, if `fit` received a data frame.

    Notes
    -----
    A value says how much a feature contributes to the performance of *this* model, including its
    information about other features: of two redundant features, both are selected. With groups
    (``Explainer(groups=...)``) all features of a group are selected together.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import LinearRegression
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> explainer = Explainer(
    ...     graph=None, sampler="gaussian", sampler_check=False, progress=False
    ... )
    >>> selector = FeatureSelector(LinearRegression(), k=3, explainer=explainer, random_state=0)
    >>> selector.fit(X, y).get_feature_names_out().tolist()
    ['bmi', 'bp', 's5']
    """

    def __init__(
        self,
        estimator: Any,  # noqa: ANN401
        *,
        k: int | None = None,
        alpha: float = 0.05,
        correction: Literal["holm", "simultaneous", "none"] = "holm",
        test_size: float = 0.25,
        cv: Any = None,  # noqa: ANN401
        prefit: bool = False,
        explainer: Explainer | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.estimator = estimator
        self.k = k
        self.alpha = alpha
        self.correction = correction
        self.test_size = test_size
        self.cv = cv
        self.prefit = prefit
        self.explainer: Any = explainer
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:  # noqa: ANN401
        """Fit the estimator to some of the rows, explain it on the others, and select.

        Parameters
        ----------
        X : data frame or array of shape (n_rows, n_features)
            The rows.
        y : array of shape (n_rows,)
            Their targets.

        Returns
        -------
        FeatureSelector
            The selector itself.
        """
        if isinstance(self.estimator, type) or not hasattr(self.estimator, "__sklearn_tags__"):
            advice = "Pass an instance of a class that follows scikit-learn's conventions"
            raise refusal("estimator", "an estimator", self.estimator, advice, TypeError)
        X, y = self._check_rows(X, y)
        self._check_options(X.shape[1])
        seed = make_seed(self.random_state)
        explainer = self._make_explainer(seed)
        self.explanation_: Explanation | FoldedExplanation
        if self.cv is not None:
            self.estimator_ = clone(self.estimator).fit(X, y)
            options = explainer.get_params(deep=False)
            self.explanation_ = explain_cv(self.estimator, X, y, self.cv, **options)
        else:
            X_train, X_test, y_train, y_test = self._split(X, y, seed)
            self.estimator_ = self.estimator
            if not self.prefit:
                self.estimator_ = clone(self.estimator).fit(X_train, y_train)
            explainer.fit(X_train, y_train, model=self.estimator_)
            self.explanation_ = explainer.explain(self.estimator_, X_test, y_test)
        self.support_ = self._select(self.explanation_, Frame(X).names)
        return self

    def _check_rows(self, X: Any, y: Any) -> tuple[Any, Any]:  # noqa: ANN401
        """Return the rows; data frames are unchanged, so the model gets their columns and types."""
        if not is_frame(X):
            X, y = validate_data(
                self, X, y, dtype="numeric", ensure_all_finite=False, multi_output=True,
                y_numeric=False, ensure_min_samples=_FEWEST_ROWS,
            )  # fmt: skip
            allows_nan = get_tags(self.estimator).input_tags.allow_nan
            validate_data(
                self, X, reset=False, ensure_all_finite="allow-nan" if allows_nan else True
            )
        else:
            validate_data(self, X, y, skip_check_array=True)
            if len(X) < _FEWEST_ROWS:
                condition = f"of at least {_FEWEST_ROWS} rows"
                raise refusal("X", condition, len(X), "Some are held out: pass more rows")
        if is_classifier(self.estimator):
            check_classification_targets(y)
        return X, y

    def _check_options(self, n_features: int) -> None:
        check_member(self.correction, _CORRECTIONS, "correction", "the corrections")
        check_real(self.alpha, "alpha", above=0.0, high=0.5)
        if check_real(self.test_size, "test_size", above=0.0, high=1.0) == 1.0:
            raise refusal(
                "test_size", "below 1", self.test_size, "Some rows are needed to fit the model"
            )
        if self.k is not None and check_count(self.k, "k") > n_features:
            raise refusal("k", f"at most {n_features}", self.k, "There are no more features")
        if self.explainer is not None and not isinstance(self.explainer, Explainer):
            found, advice = type(self.explainer).__name__, "Pass dsage.Explainer(...), or None"
            raise refusal("explainer", "an Explainer", found, advice, TypeError)
        if self.prefit:
            check_is_fitted(self.estimator)
            if self.cv is not None:
                advice = "A model is fitted in every fold: leave one of the two out"
                raise refusal("cv", "None with prefit=True", self.cv, advice)

    def _split(self, X: Any, y: Any, seed: int) -> list[Any]:  # noqa: ANN401
        """Return training rows, evaluation rows, and their targets; stratified by class.

        If some class occurs only once, the rows are split at random instead.
        """
        stratify = None
        if is_classifier(self.estimator):
            counts = np.unique(np.asarray(y).astype(str), return_counts=True)[1]
            n_test = int(np.ceil(self.test_size * len(X)))
            if counts.min() > 1 and min(n_test, len(X) - n_test) >= len(counts):
                stratify = y
        parts: list[Any] = train_test_split(
            X, y, test_size=self.test_size, stratify=stratify, random_state=seed % 2**32
        )
        return parts

    def _make_explainer(self, seed: int) -> Explainer:
        if self.explainer is None:
            return Explainer(progress=False, random_state=seed)
        explainer: Explainer = clone(self.explainer)
        if explainer.random_state is None:
            explainer.set_params(random_state=seed)
        return explainer

    def _select(
        self, explanation: Explanation | FoldedExplanation, features: tuple[str, ...]
    ) -> Mask:
        """Return which of the features are selected."""
        first = explanation if isinstance(explanation, Explanation) else explanation.folds[0]
        players, groups = explanation.feature_names, first.groups or {}
        chosen: set[str] = set()
        for name, is_chosen in zip(players, self._choose(explanation), strict=True):
            if is_chosen:
                chosen.update(groups.get(name, (name,)))
        return np.array([name in chosen for name in features], dtype=np.bool_)

    def _choose(self, explanation: Explanation | FoldedExplanation) -> Mask:
        """Return which of the features, or groups, of an explanation are chosen."""
        values = explanation.values
        if self.k is not None:
            chosen: Mask = np.zeros(len(values), dtype=np.bool_)
            chosen[np.argsort(-values, kind="stable")[: self.k]] = True
            return chosen
        if self.correction == "simultaneous":
            lower = [
                simultaneous_intervals(
                    values, np.where(np.isfinite(se), se, np.inf), 1 - self.alpha, df=df
                )[0]
                for se, df in _errors(explanation)
            ]
            return np.asarray(np.min(lower, axis=0) > 0.0)
        if isinstance(explanation, FoldedExplanation):
            found = explanation.p_procedure
        else:
            ((se, df),) = _errors(explanation)
            found = p_values(values, se, df=df)
        return np.asarray((holm(found) if self.correction == "holm" else found) <= self.alpha)

    def _get_support_mask(self) -> Mask:
        check_is_fitted(self, "support_")
        return self.support_

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.allow_nan = get_tags(self.estimator).input_tags.allow_nan
        return tags


def _errors(explanation: Explanation | FoldedExplanation) -> list[tuple[Floats, Floats]]:
    """Return the errors for the population with their degrees of freedom; two pairs for folds."""
    if isinstance(explanation, Explanation):
        return [(explanation.estimate.se_total, explanation.estimate.df_total)]
    found = [(explanation.se_procedure, explanation.df_procedure)]
    if np.isfinite(explanation.se_total).all():
        found.append((explanation.se_total, explanation.df_total))
    return found
