"""Models of one feature given others, as functions of a uniform, for `Sequential`.

Each has ``draw(design, noise)``: the design holds the known features and the draws so far, and
`noise` is (n_rows, n_draws). The models of this module work element by element, or sum in a fixed
order, so that draws of a row do not depend on the other rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, Protocol

import numpy as np
from scipy.special import ndtri
from sklearn.base import clone
from sklearn.model_selection import KFold, cross_val_predict

from dsage.samplers.checks import Floats, Ints
from dsage.samplers.design import Design, Encoder
from dsage.samplers.logistic import fit_logistic
from dsage.samplers.regression import Training

N_FOLDS = 5
N_QUANTILES = 1001


class Model(Protocol):
    """A feature's distribution given others."""

    def draw(self, design: Design, noise: Floats) -> Floats:
        """Turn uniforms into draws, both of shape (n_rows, n_draws)."""
        ...


class Residuals:
    """The residuals added to predictions: quantiles of the errors, or a normal."""

    def __init__(self, errors: Floats, kind: str) -> None:
        self._deviation = float(np.sqrt(np.mean(errors**2)))
        self._quantiles: Floats | None = None
        if kind == "empirical":
            shares = np.linspace(0.0, 1.0, min(len(errors), N_QUANTILES))
            self._quantiles = _interpolate(np.sort(errors), shares)

    def draw(self, noise: Floats) -> Floats:
        """Return residuals of the shape of `noise`."""
        if self._quantiles is None:
            normal: Floats = self._deviation * ndtri(noise)
            return normal
        return _interpolate(self._quantiles, noise)


def _interpolate(ordered: Floats, shares: Floats) -> Floats:
    """Return quantiles of ordered numbers."""
    last = len(ordered) - 1
    place = shares * last
    below = np.minimum(place.astype(np.intp), max(last - 1, 0))
    low, high = ordered[below], ordered[np.minimum(below + 1, last)]
    quantiles: Floats = low + (place - below) * (high - low)
    return quantiles


class Marginal:
    """The distribution of the rows, if there is no conditioning feature or nothing to learn."""

    def __init__(self, y: Floats, n_categories: int, residuals: str) -> None:
        self._bounds: Floats | None = None
        self._residuals: Residuals | None = None
        if n_categories:
            counts = np.bincount(y.astype(np.intp), minlength=n_categories)
            self._bounds = np.cumsum(counts / len(y))
        else:
            # The median of equal numbers is their value, to the bit.
            self._center = float(np.median(y)) if y.min() == y.max() else float(y.mean())
            self._residuals = Residuals(y - self._center, residuals)

    def draw(self, design: Design, noise: Floats) -> Floats:  # noqa: ARG002
        """Turn uniforms into draws; `design` is ignored."""
        if self._bounds is None:
            return self._center + self._residuals.draw(noise)  # type: ignore[union-attr]
        return find_codes(self._bounds, noise).astype(np.float64)


class Linear:
    """A linear model of a number, plus residuals; see :meth:`Training.regress`."""

    def __init__(
        self, training: Training, features: Sequence[int], target: int, residuals: str
    ) -> None:
        encoder = training.encoder
        columns, slopes, errors = training.regress(features, int(encoder.starts[target]))
        unit = encoder.scale[target]
        self._slopes = np.zeros((1, encoder.n_columns))
        self._slopes[0, columns] = slopes * unit
        middle = training.middle[encoder.starts[target]] - slopes @ training.middle[columns]
        self._intercept = np.array([encoder.center[target] + unit * middle])
        self._residuals = Residuals(errors * unit, residuals)

    def draw(self, design: Design, noise: Floats) -> Floats:
        """Turn uniforms into draws."""
        line = design.lines(self._intercept, self._slopes).reshape(noise.shape)
        return line + self._residuals.draw(noise)


class Logistic:
    """A multinomial logistic model of a class.

    Rare categories of a class with many are one class of the model, and have their shares in it.
    """

    def __init__(self, training: Training, features: Sequence[int], target: int) -> None:
        encoder = training.encoder
        columns = training.columns_of(features)
        levels, counts = encoder.levels[target], training.counts[target]
        y = levels[training.codes[target]]
        totals = np.bincount(levels, weights=counts)
        # Some levels may have no row among those from which the model is learned.
        found = np.bincount(y, minlength=len(totals)) > 0
        present, y = np.flatnonzero(found), (np.cumsum(found) - 1)[y]
        self._slopes = np.zeros((len(present), encoder.n_columns))
        moments = training.moments[np.ix_(columns, columns)]
        intercepts, self._slopes[:, columns] = fit_logistic(
            training.narrow[columns], moments, y, training.n_rows
        )
        self._intercepts: Floats = intercepts - self._slopes @ training.middle
        others = np.delete(totals, present)
        self._levels: Ints = np.append(present, np.delete(np.arange(len(totals)), present))
        self._others: Floats = others / totals[present].sum()
        self._members = [np.flatnonzero(levels == level) for level in self._levels]
        self._bounds = [
            np.cumsum(counts[each] / max(counts[each].sum(), 1)) for each in self._members
        ]

    def draw(self, design: Design, noise: Floats) -> Floats:
        """Turn uniforms into draws."""
        weights = design.lines(self._intercepts, self._slopes)
        top = weights[0].copy()
        for line in weights[1:]:
            np.maximum(top, line, out=top)
        weights -= top
        np.exp(weights, out=weights)
        bounds = list(accumulate(weights))
        for share in self._others:
            bounds.append(bounds[-1] + share * bounds[len(weights) - 1])
        target = noise.ravel() * bounds[-1]
        chosen = np.zeros(len(target), np.intp)
        for bound in bounds[:-1]:
            chosen += target > bound
        codes = np.array([each[0] for each in self._members])[chosen]
        for number, members in enumerate(self._members):
            if len(members) > 1:
                at = np.flatnonzero(chosen == number)
                low = bounds[number - 1][at] if number else 0.0
                rest = (target[at] - low) / (bounds[number][at] - low)
                codes[at] = members[find_codes(self._bounds[number], rest)]
        return codes.reshape(noise.shape).astype(np.float64)


class Fitted:
    """A scikit-learn model, which predicts all rows at once."""

    def __init__(
        self,
        encoder: Encoder,
        features: Sequence[int],
        X: Floats,
        y: Floats,
        n_categories: int,
        residuals: str,
        estimator: Any,  # noqa: ANN401
        seed: int,
    ) -> None:
        self._features, self._n_categories = list(features), n_categories
        design = encoder.matrix(X, features)
        self._residuals: Residuals | None = None
        if not n_categories:
            folds = KFold(min(N_FOLDS, len(y)), shuffle=True, random_state=seed)
            errors = y - cross_val_predict(clone_with_seed(estimator, seed), design, y, cv=folds)
            self._residuals = Residuals(errors, residuals)
        target = y.astype(np.intp) if n_categories else y
        self._model = clone_with_seed(estimator, seed).fit(design, target)

    def draw(self, design: Design, noise: Floats) -> Floats:
        """Turn uniforms into draws."""
        matrix = design.matrix(self._features)
        if self._residuals is not None:
            predicted = np.asarray(self._model.predict(matrix), np.float64)
            return predicted.reshape(noise.shape) + self._residuals.draw(noise)
        shares = np.asarray(self._model.predict_proba(matrix), np.float64)
        weights = [np.zeros(noise.shape)] * self._n_categories
        for position, category in enumerate(self._model.classes_):
            weights[int(category)] = shares[:, position].reshape(noise.shape)
        return invert(weights, noise)


def clone_with_seed(estimator: Any, seed: int) -> Any:  # noqa: ANN401
    """Return a clone with all its `random_state` parameters set to `seed`."""
    made = clone(estimator)
    names = [name for name in made.get_params() if f"__{name}".endswith("__random_state")]
    return made.set_params(**dict.fromkeys(names, seed))


def invert(weights: Sequence[Floats], noise: Floats) -> Floats:
    """Return the category in whose share of the summed weights the uniform falls."""
    cumulative = list(accumulate(weights))
    target = noise * cumulative[-1]
    codes = np.zeros(noise.shape)
    for bound in cumulative[:-1]:
        codes += target > bound
    return codes


def find_codes(bounds: Floats, noise: Floats) -> Ints:
    """Return the category in whose share the uniform falls; `bounds` are cumulated shares."""
    codes: Ints = np.searchsorted(bounds[:-1], noise * bounds[-1])
    return codes
