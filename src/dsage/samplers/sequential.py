"""Draw one feature after the other, each from its own model."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from dsage._check import check_count, check_member, check_names, refusal
from dsage._random import RandomState, Streams
from dsage.samplers.base import BaseSampler
from dsage.samplers.checks import Floats, Mask, warn_of_copies
from dsage.samplers.design import Design, Encoder
from dsage.samplers.one_feature import Fitted, Linear, Logistic, Marginal, Model
from dsage.samplers.recent import Recent
from dsage.samplers.registry import ANY_DATA, SAMPLERS
from dsage.samplers.regression import Training

RESIDUALS = ("empirical", "gaussian")


# In the order of the columns, regressions add little to the Gaussian: no candidate for numbers.
@SAMPLERS.register(
    "sequential",
    summary="one regression or classifier per feature",
    fits=ANY_DATA,
    draw_cost=0.3,
    call_cost=1500.0,
    fit_cost=1.0,
)
@dataclass(kw_only=True, eq=False, repr=False)
class Sequential(BaseSampler):
    """Draw the unknown features in a fixed order, each given those known or drawn before.

    ``p(x_unknown | x_known) = prod_i p(x_i | x_known, x_unknown before i)``, each factor a
    classifier for a discrete feature, and a regressor plus residuals for a continuous one: the
    choice of Luther, König & Grosse-Wentrup (AISTATS 2023) for mixed data.

    Parameters
    ----------
    order : iterable of str, optional
        All columns, in the order in which they are drawn; by default, the order of the columns.
    classifier : scikit-learn classifier, optional
        For discrete features, with `predict_proba`. By default logistic regression with a penalty
        of half of the squared slopes, on at most 10,000 of the rows.
    regressor : scikit-learn regressor, optional
        For continuous features. By default least squares or, with fewer than 20 rows per column,
        ridge regression whose penalty has the smallest leave-one-out error.
    residuals : {"empirical", "gaussian"}, default="empirical"
        Noise added to a regressor's predictions: interpolated quantiles of its errors on rows
        left out (one at a time for the default regressor, in five folds for others; of at most
        4,000 rows), or a normal with their mean square. Either way the spread is the same for all
        rows.
    max_models : int, default=512
        Models are fitted when a coalition first needs them; the most recently used are kept.
    random_state : int, numpy Generator or None, default=None
        Seed of the models. It replaces their `random_state`, which depends on this seed, the
        feature and the conditioning features only, not on earlier draws.
    discrete, dtype, max_bytes
        See :class:`BaseSampler`.

    Notes
    -----
    Models receive continuous features standardized, and discrete ones as one column per category;
    of more than 20 categories, those with less than 20 rows share one, and are drawn by their
    shares in it. A feature without conditioning features, or with a single value, has the
    distribution of its rows. The default regression draws a copy of a column equal to it, to 1e-6
    of its spread; other models draw it nearly equal, and `fit` warns.

    The default models are fitted when they are needed, from the second moments of all columns: a
    regression needs rows only for its residuals, and a classifier a few passes over them.

    Each feature uses its own column of the noise. The default models work element by element, so
    that draws are the same to the bit in any batch. Other models must predict each row by itself
    for that: trees and forests do (with ``n_jobs=None``), models that multiply matrices may differ
    in the last digit from batch to batch.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> is_adult = rng.random(1000) < 0.5
    >>> height = np.where(is_adult, 170.0, 120.0) + 10 * rng.standard_normal(1000)
    >>> X = pd.DataFrame({"is_adult": is_adult, "height": height})
    >>> sampler = Sequential(random_state=0).fit(X)
    >>> noise = rng.random((1000, 20, 2))
    >>> draws = sampler.draw(X, np.array([False, True]), noise)
    >>> float((draws[:, :, 0] == is_adult[:, None]).mean()) > 0.95
    True
    """

    order: Iterable[str] | None = None
    classifier: Any = None
    regressor: Any = None
    residuals: str = "empirical"
    max_models: int = 512
    random_state: RandomState = None

    def _fit(self, X: Floats) -> None:
        check_count(self.max_models, "max_models")
        check_member(self.residuals, RESIDUALS, "residuals", "the kinds of residuals")
        for parameter, given, method in (
            ("classifier", self.classifier, "predict_proba"),
            ("regressor", self.regressor, "predict"),
        ):
            if given is not None and not (hasattr(given, "fit") and hasattr(given, method)):
                condition = f"a scikit-learn model with fit and {method}"
                raise refusal(parameter, condition, given, "Pass another, or None", TypeError)
        consequence = "Draws need not keep them equal: leave the copies out."
        # The default regression draws copied numbers as copies.
        inexact = self.n_categories_ > 0 if self.regressor is None else None
        warn_of_copies(X, self.layout_, consequence, inexact)
        self._order = self._positions()
        self._streams = Streams(self.random_state)
        self._encoder = Encoder(X, self.n_categories_)
        self._training = Training(self._encoder, X)
        self._X = X.copy()
        self._is_constant = X.min(axis=0) == X.max(axis=0)
        self._models: Recent[Model] = Recent(self.max_models, is_pickled=True)

    def for_part(self) -> Sequential:
        """Return a copy to be fitted to some of the columns, in their order."""
        part = self.clone()
        part.order = None
        return part

    def _positions(self) -> list[int]:
        if self.order is None:
            return list(range(self.n_features_))
        names = check_names(self.order, "order")
        if set(names) != set(self.feature_names_):
            odd = sorted(set(names) ^ set(self.feature_names_))
            advice = "These are missing in one of the two"
            raise refusal("order", "all columns, each once", odd, advice)
        return [self.feature_names_.index(name) for name in names]

    def _draw(self, X: Floats, known: Mask, noise: Floats) -> Floats:
        design = Design(self._encoder, X, known, noise.shape[1])
        unknown = np.flatnonzero(~known)
        draws = np.empty((*noise.shape[:2], len(unknown)))
        given = known.copy()
        for feature in self._order:
            if known[feature]:
                continue
            key = feature, np.packbits(given).tobytes()
            model = self._models.get(key, partial(self._fit_model, feature, given))
            values = model.draw(design, np.ascontiguousarray(noise[:, :, feature]))
            draws[:, :, np.searchsorted(unknown, feature)] = values
            design.add(feature, values)
            given[feature] = True
        return draws

    def _bytes_per_row(self, known: Mask, n_draws: int) -> int:
        widest = max(map(self._encoder.width, range(len(known))))
        n_columns = self._encoder.n_columns if self._has_estimators else 0
        return 8 * n_draws * (4 * len(known) + 4 * widest + 16 + 3 * n_columns)

    @property
    def _has_estimators(self) -> bool:
        return self.classifier is not None or self.regressor is not None

    def _fit_model(self, feature: int, given: Mask) -> Model:
        """Return a model of a feature given others."""
        n_categories = int(self.n_categories_[feature])
        features = np.flatnonzero(given).tolist()
        y = self._X[:, feature]
        if not features or self._is_constant[feature]:
            return Marginal(y, n_categories, self.residuals)
        estimator = self.classifier if n_categories else self.regressor
        if estimator is not None:
            seed = int(self._streams("sequential", feature, *features).integers(2**31))
            rows = self._encoder, features, self._X, y
            return Fitted(*rows, n_categories, self.residuals, estimator, seed)
        if n_categories:
            return Logistic(self._training, features, feature)
        return Linear(self._training, features, feature, self.residuals)
