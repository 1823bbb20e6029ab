"""Models of one feature given others, as functions of a uniform: the parts of `Sequential`.

Each has ``draw(given, noise)``. `given` holds one array a conditioning feature, of shape (n_rows,
1) for a known feature and (n_rows, n_draws) for a drawn one; `noise` is (n_rows, n_draws). The
models of this module work element by element, in a fixed order, and so do not depend on the other
rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, cross_val_predict

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]

N_FOLDS = 5
N_QUANTILES = 1001
# Ridge penalties tried, as shares of the number of rows (features are standardised).
_PENALTIES = (1e-8, 1e-6, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)


class Model(Protocol):
    """A feature's distribution given others."""

    def draw(self, given: Sequence[Floats], noise: Floats) -> Floats:
        """Turn uniforms into draws, both of shape (n_rows, n_draws)."""
        ...


class Encoder:
    """Predictors of models: numbers standardised, classes as one column a level."""

    def __init__(self, X: Floats, n_categories: Ints) -> None:
        deviation = X.std(axis=0)
        self.n_categories = n_categories
        self.centre = np.where(n_categories == 0, np.median(X, axis=0), 0.0)
        self.scale = np.where((n_categories == 0) & (deviation > 0), deviation, 1.0)

    def columns(self, feature: int, values: Floats) -> list[Floats]:
        """Return the columns of one feature, each of the shape of `values`."""
        if self.n_categories[feature]:
            return [np.equal(values, level) * 1.0 for level in range(self.n_categories[feature])]
        return [(values - self.centre[feature]) / self.scale[feature]]

    def matrix(self, features: Sequence[int], given: Sequence[Floats]) -> Floats:
        """Return all columns, each flattened, side by side."""
        columns = [
            column.ravel()
            for feature, values in zip(features, given, strict=True)
            for column in self.columns(feature, values)
        ]
        return np.stack(columns, axis=1)


class Residuals:
    """What is added to a regressor's answer: a quantile of its errors, or a normal."""

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
    """No conditioning feature, or nothing to learn: the distribution of the rows themselves."""

    def __init__(self, y: Floats, n_categories: int, residuals: str) -> None:
        self._shares: list[float] | None = None
        self._residuals: Residuals | None = None
        if n_categories:
            counts = np.bincount(y.astype(np.intp), minlength=n_categories)
            self._shares = (counts / len(y)).tolist()
        else:
            # The middle of equal numbers is their value, to the bit.
            self._centre = float(np.median(y)) if y.min() == y.max() else float(y.mean())
            self._residuals = Residuals(y - self._centre, residuals)

    def draw(self, given: Sequence[Floats], noise: Floats) -> Floats:  # noqa: ARG002
        """Turn uniforms into draws; `given` is not looked at."""
        if self._residuals is not None:
            return self._centre + self._residuals.draw(noise)
        return inverted([np.full(noise.shape, share) for share in self._shares or ()], noise)


class Linear:
    """A linear model of a number, by ridge regression, plus residuals.

    The penalty is the one with the smallest leave-one-out error, and the residuals are
    leave-one-out errors: those of the fit itself would be too small with many features.
    """

    def __init__(
        self, encoder: Encoder, features: Sequence[int], X: Floats, y: Floats, residuals: str
    ) -> None:
        self._encoder, self._features = encoder, list(features)
        design = encoder.matrix(features, [X[:, feature] for feature in features])
        middle = design.mean(axis=0)
        centred = design - middle
        roots, vectors = np.linalg.eigh(centred.T @ centred)
        roots = np.maximum(roots, 0.0)
        rotated = centred @ vectors
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
        for level, line in zip(self._classes, lines, strict=True):
            weights[level] = np.exp(line - top) + zero
        return inverted(weights, noise)


class Fitted:
    """A model of scikit-learn's kind; its answers are taken as they are, for all rows at once."""

    def __init__(
        self, encoder: Encoder, features: Sequence[int], X: Floats, y: Floats, residuals: str
    ) -> None:
        self._encoder, self._features = encoder, list(features)
        self._X, self._y, self._kind = X, y, residuals
        self._n_categories = 0
        self._residuals: Residuals | None = None

    def fit(self, estimator: Any, n_categories: int, seed: int) -> Fitted:  # noqa: ANN401
        """Fit a clone of the estimator; for a number, keep its errors on folds left out."""
        design = self._encoder.matrix(self._features, [self._X[:, j] for j in self._features])
        y = self._y
        self._n_categories = n_categories
        self._model = seeded(estimator, seed).fit(design, y.astype(np.intp) if n_categories else y)
        if not n_categories:
            folds = KFold(min(N_FOLDS, len(y)), shuffle=True, random_state=seed)
            errors = y - cross_val_predict(seeded(estimator, seed), design, y, cv=folds)
            self._residuals = Residuals(errors, self._kind)
        del self._X, self._y
        return self

    def draw(self, given: Sequence[Floats], noise: Floats) -> Floats:
        """Turn uniforms into draws."""
        whole = [np.broadcast_to(values, noise.shape) for values in given]
        design = self._encoder.matrix(self._features, whole)
        if self._residuals is not None:
            answers = np.asarray(self._model.predict(design), np.float64)
            return answers.reshape(noise.shape) + self._residuals.draw(noise)
        shares = np.asarray(self._model.predict_proba(design), np.float64)
        weights = [np.zeros(noise.shape)] * self._n_categories
        for position, level in enumerate(self._model.classes_):
            weights[int(level)] = shares[:, position].reshape(noise.shape)
        return inverted(weights, noise)


def seeded(estimator: Any, seed: int) -> Any:  # noqa: ANN401
    """Return a clone whose every `random_state` is `seed`."""
    made = clone(estimator)
    names = [
        name
        for name in made.get_params()
        if name == "random_state" or name.endswith("__random_state")
    ]
    return made.set_params(**dict.fromkeys(names, seed))


def inverted(weights: Sequence[Floats], noise: Floats) -> Floats:
    """Return the level in whose share of the summed weights the uniform falls.

    Examples
    --------
    >>> half = np.full((1, 2), 0.5)
    >>> inverted([half, 0 * half, half], np.array([[0.4, 0.6]]))
    array([[0., 2.]])
    """
    cumulative = [weights[0]]
    for weight in weights[1:]:
        cumulative.append(cumulative[-1] + weight)
    target = noise * cumulative[-1]
    codes = np.zeros(noise.shape)
    for level in cumulative[:-1]:
        codes += target > level
    return codes


def _lines(
    encoder: Encoder,
    features: Sequence[int],
    given: Sequence[Floats],
    slopes: Sequence[Sequence[float]],
    intercepts: Sequence[float],
) -> list[Floats]:
    """Return intercepts plus slopes times columns, one array an intercept.

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
