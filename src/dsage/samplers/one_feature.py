"""Models of one feature given others, as functions of a uniform, for `Sequential`.

Each has ``draw(given, noise)``. `given` holds one array per conditioning feature, of shape (n_rows,
1) for a known feature and (n_rows, n_draws) for a drawn one; `noise` is (n_rows, n_draws). The
models of this module work element by element, in a fixed order, so that draws of a row do not
depend on the other rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, Protocol

import numpy as np
from scipy.special import ndtri
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, cross_val_predict

from dsage.samplers.checks import Floats, Ints

N_FOLDS = 5
N_QUANTILES = 1001
# Ridge penalties, as shares of the number of rows (features are standardized).
_PENALTIES = (1e-8, 1e-6, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)


class Model(Protocol):
    """A feature's distribution given others."""

    def draw(self, given: Sequence[Floats], noise: Floats) -> Floats:
        """Turn uniforms into draws, both of shape (n_rows, n_draws)."""
        ...


class Encoder:
    """Predictors of models: numbers standardized, classes as one column per category."""

    def __init__(self, X: Floats, n_categories: Ints) -> None:
        deviation = X.std(axis=0)
        self.n_categories = n_categories
        self.center = np.where(n_categories == 0, np.median(X, axis=0), 0.0)
        self.scale = np.where((n_categories == 0) & (deviation > 0), deviation, 1.0)

    def columns(self, feature: int, values: Floats) -> list[Floats]:
        """Return the columns of one feature, each of the shape of `values`."""
        if self.n_categories[feature]:
            categories = range(self.n_categories[feature])
            return [np.equal(values, category) * 1.0 for category in categories]
        return [(values - self.center[feature]) / self.scale[feature]]

    def matrix(self, features: Sequence[int], given: Sequence[Floats]) -> Floats:
        """Return all columns, each flattened, side by side."""
        columns = [
            column.ravel()
            for feature, values in zip(features, given, strict=True)
            for column in self.columns(feature, values)
        ]
        return np.stack(columns, axis=1)


class Residuals:
    """The residuals added to predictions: quantiles of the errors, or a normal."""

    def __init__(self, errors: Floats, kind: str) -> None:
        self._deviation = float(np.sqrt(np.mean(errors**2)))
        self._quantiles: Floats | None = None
        if kind == "empirical":
            shares = np.linspace(0.0, 1.0, min(len(errors), N_QUANTILES))
            self._quantiles = np.quantile(errors, shares)

    def draw(self, noise: Floats) -> Floats:
        """Return residuals of the shape of `noise`."""
        if self._quantiles is None:
            normal: Floats = self._deviation * ndtri(noise)
            return normal
        last = len(self._quantiles) - 1
        place = noise * last
        below = np.minimum(place.astype(np.intp), max(last - 1, 0))
        low, high = self._quantiles[below], self._quantiles[np.minimum(below + 1, last)]
        quantiles: Floats = low + (place - below) * (high - low)
        return quantiles


class Marginal:
    """The distribution of the rows, if there is no conditioning feature or nothing to learn."""

    def __init__(self, y: Floats, n_categories: int, residuals: str) -> None:
        self._shares: list[float] | None = None
        self._residuals: Residuals | None = None
        if n_categories:
            counts = np.bincount(y.astype(np.intp), minlength=n_categories)
            self._shares = (counts / len(y)).tolist()
        else:
            # The median of equal numbers is their value, to the bit.
            self._center = float(np.median(y)) if y.min() == y.max() else float(y.mean())
            self._residuals = Residuals(y - self._center, residuals)

    def draw(self, given: Sequence[Floats], noise: Floats) -> Floats:  # noqa: ARG002
        """Turn uniforms into draws; `given` is ignored."""
        if self._residuals is not None:
            return self._center + self._residuals.draw(noise)
        return invert([np.full(noise.shape, share) for share in self._shares or ()], noise)


class Linear:
    """A linear model of a number, by ridge regression, plus residuals.

    The penalty minimizes the leave-one-out error, and the residuals are leave-one-out errors:
    in-sample residuals would be too small with many features.
    """

    def __init__(
        self, encoder: Encoder, features: Sequence[int], X: Floats, y: Floats, residuals: str
    ) -> None:
        self._encoder, self._features = encoder, list(features)
        design = encoder.matrix(features, [X[:, feature] for feature in features])
        middle = design.mean(axis=0)
        centerd = design - middle
        roots, vectors = np.linalg.eigh(centerd.T @ centerd)
        roots = np.maximum(roots, 0.0)
        rotated = centerd @ vectors
        target = y - y.mean()
        along = rotated.T @ target
        best = np.inf
        for penalty in _PENALTIES:
            shrunk = 1.0 / (roots + penalty * len(y))
            leverage = np.minimum(rotated**2 @ shrunk + 1.0 / len(y), 1.0 - 1e-9)
            errors = (target - rotated @ (shrunk * along)) / (1.0 - leverage)
            if (loss := float(errors @ errors)) < best:
                best, kept, slopes = loss, errors, vectors @ (shrunk * along)
        self._slopes = slopes.tolist()
        self._intercept = float(y.mean() - middle @ slopes)
        self._residuals = Residuals(kept, residuals)

    def draw(self, given: Sequence[Floats], noise: Floats) -> Floats:
        """Turn uniforms into draws."""
        slopes = [[slope] for slope in self._slopes]
        (line,) = _lines(self._encoder, self._features, given, slopes, [self._intercept])
        return line + self._residuals.draw(noise)


class Logistic:
    """A multinomial logistic model of a class."""

    def __init__(
        self, encoder: Encoder, features: Sequence[int], X: Floats, y: Floats, n_categories: int
    ) -> None:
        self._encoder, self._features, self._n_categories = encoder, list(features), n_categories
        design = encoder.matrix(features, [X[:, feature] for feature in features])
        fitted = LogisticRegression(max_iter=1000).fit(design, y)
        slopes, intercept = fitted.coef_.T, fitted.intercept_
        if slopes.shape[1] == 1:
            # Two classes: the first is the reference.
            slopes = np.concatenate([np.zeros_like(slopes), slopes], axis=1)
            intercept = np.concatenate([[0.0], intercept])
        self._classes = fitted.classes_.astype(np.intp).tolist()
        self._slopes, self._intercept = slopes.tolist(), intercept.tolist()

    def draw(self, given: Sequence[Floats], noise: Floats) -> Floats:
        """Turn uniforms into draws."""
        lines = _lines(self._encoder, self._features, given, self._slopes, self._intercept)
        top = lines[0]
        for line in lines[1:]:
            top = np.maximum(top, line)
        zero = np.zeros(noise.shape)
        weights = [zero] * self._n_categories
        for category, line in zip(self._classes, lines, strict=True):
            weights[category] = np.exp(line - top) + zero
        return invert(weights, noise)


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
        self._encoder, self._features, self._n_categories = encoder, list(features), n_categories
        design = encoder.matrix(features, [X[:, feature] for feature in features])
        self._residuals: Residuals | None = None
        if not n_categories:
            folds = KFold(min(N_FOLDS, len(y)), shuffle=True, random_state=seed)
            errors = y - cross_val_predict(clone_with_seed(estimator, seed), design, y, cv=folds)
            self._residuals = Residuals(errors, residuals)
        target = y.astype(np.intp) if n_categories else y
        self._model = clone_with_seed(estimator, seed).fit(design, target)

    def draw(self, given: Sequence[Floats], noise: Floats) -> Floats:
        """Turn uniforms into draws."""
        whole = [np.broadcast_to(values, noise.shape) for values in given]
        design = self._encoder.matrix(self._features, whole)
        if self._residuals is not None:
            predicted = np.asarray(self._model.predict(design), np.float64)
            return predicted.reshape(noise.shape) + self._residuals.draw(noise)
        shares = np.asarray(self._model.predict_proba(design), np.float64)
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


def _lines(
    encoder: Encoder,
    features: Sequence[int],
    given: Sequence[Floats],
    slopes: Sequence[Sequence[float]],
    intercepts: Sequence[float],
) -> list[Floats]:
    """Return intercepts plus slopes times columns, one array per intercept.

    Element by element: a matrix product may round a row differently beside other rows.
    """
    lines = [np.full((1, 1), intercept) for intercept in intercepts]
    at = 0
    for feature, values in zip(features, given, strict=True):
        if encoder.n_categories[feature]:
            codes = values.astype(np.intp)
            table = np.array(slopes[at : at + encoder.n_categories[feature]])
            lines = [line + column[codes] for line, column in zip(lines, table.T, strict=True)]
            at += int(encoder.n_categories[feature])
        else:
            (column,) = encoder.columns(feature, values)
            lines = [line + slope * column for line, slope in zip(lines, slopes[at], strict=True)]
            at += 1
    return lines
