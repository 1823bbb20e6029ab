"""The likelihood of a class given columns of numbers: multinomial logistic regression."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy.linalg.lapack import dpotrf, dpotrs

Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]
Ints = npt.NDArray[np.intp]

# The accuracy of the log-likelihood, and the price of a weight of one, both in nats.
_ACCURACY, _RIDGE = 0.05, 1e-3
# The accuracy from a start that is near, with many rows: one column changes the likelihood by far
# more.
_COARSE = 0.1
_MAX_STEPS = 60
# Steps with new second derivatives, and what is added to these, as a share of their mean.
_CURVED_STEPS, _DAMPING = 6, 1e-2
# With more weights than this, second derivatives are bounded instead of computed.
_MAX_CURVED = 400
# Rows that second derivatives are computed from: a number, and a multiple of the number of weights.
_CURVED_ROWS, _ROWS_PER_WEIGHT = 1_500, 10
# Log odds whose exponentials are far from the largest number in single precision.
_LARGE_ODDS = 80.0
# Products with at most this many rows are computed row by row.
_MAX_SINGLE = 8


def softmax_likelihood(X: Floats, levels: Ints, correlation: Floats | None = None) -> float:
    """Return the largest log-likelihood of levels 0, 1, ... given columns and an intercept.

    The columns are made uncorrelated. Then a few Newton steps, in single precision, with second
    derivatives from some of the rows suffice. With more than 400 weights there are steps of L-BFGS
    instead, from the bound on second derivatives by Boehning (1992). If the columns are
    standardised, their `correlation` may be passed; it need not be exact.

    Examples
    --------
    >>> levels = np.array([0, 0, 1, 1])
    >>> round(softmax_likelihood(np.empty((4, 0)), levels), 2)
    -2.77
    """
    return softmax_fit(X, levels, correlation)[0]


def softmax_fit(X: Floats, levels: Ints, correlation: Floats | None = None) -> tuple[float, Floats]:
    """Return the largest log-likelihood, and the log odds of levels 1, 2, ... against level 0.

    The odds have the shape (n_levels - 1, n_rows). Otherwise as :func:`softmax_likelihood`.
    """
    counts, null = _without_columns(levels)
    if X.shape[1] and len(counts) > 1:
        fit = _Fit(_orthonormal(X, correlation)[0], levels, counts)
        value = -fit.smallest_loss()
        if value >= null:
            return value, fit.odds()
    logs = np.log(np.maximum(counts, 1e-12))
    return null, np.broadcast_to((logs[1:] - logs[0])[:, None], (len(counts) - 1, len(levels)))


def softmax_near(
    X: Floats, levels: Ints, correlation: Floats, start: Floats | None
) -> tuple[float, Floats]:
    """Return the largest log-likelihood, and the weights of intercepts and columns.

    The search ends where one more step promises less than 0.1 nats, or 0.05 without a start.

    The weights have the shape (n_levels - 1, 1 + n_columns). `start` says from where to search:
    the intercepts of log odds, and their covariances with the columns, which are standardised.
    """
    counts, null = _without_columns(levels)
    weights = np.zeros((len(counts) - 1, 1 + X.shape[1]))
    logs = np.log(np.maximum(counts, 1e-12))
    weights[:, 0] = logs[1:] - logs[0]
    if not X.shape[1] or len(counts) == 1:
        return null, weights
    basis, root = _orthonormal(X, correlation)
    fit = _Fit(basis, levels, counts)
    if start is not None:
        start = np.concatenate([start[:, :1], start[:, 1:] @ root.T], axis=1)
    value = -fit.smallest_loss(start, _ACCURACY if start is None else _COARSE)
    if not value >= null:
        return null, weights
    found = fit.weights()
    return value, np.concatenate([found[:, :1], found[:, 1:] @ root], axis=1)


def _without_columns(levels: Ints) -> tuple[Ints, float]:
    """Return how often each level occurs, and the log-likelihood of these shares."""
    counts = np.bincount(levels, minlength=1)
    return counts, float(counts @ np.log(np.maximum(counts / len(levels), 1e-300)))


class _Fit:
    """A regression of levels on orthonormal rows `basis`, (n_columns, n_rows), constant first."""

    def __init__(self, basis: Singles, levels: Ints, counts: Ints) -> None:
        self._basis = basis
        self._shape = len(counts) - 1, len(basis)
        self._shares = np.maximum(counts / len(levels), 1e-12)
        hot = (levels == np.arange(1, len(counts))[:, None]).astype(np.float32)
        # The part of the loss that is linear in the weights.
        self._sums = _times(hot, basis).astype(np.float64)
        self._weights = np.zeros(self._sums.size)

    def weights(self) -> Floats:
        """Return the weights at the smallest loss, (n_levels - 1, n_columns)."""
        return self._weights.reshape(self._shape)

    def odds(self) -> Floats:
        """Return the log odds of the rows at the smallest loss."""
        return np.asarray(self.weights().astype(np.float32) @ self._basis, dtype=np.float64)

    def smallest_loss(self, start: Floats | None = None, accuracy: float = _ACCURACY) -> float:
        """Return the smallest negative log-likelihood, found from some weights on."""
        constant = np.zeros(self._shape)
        constant[:, 0] = np.log(self._shares[1:] / self._shares[0])
        weights: Floats = constant.ravel()
        value, slope = self._constant_loss(constant[:, 0])
        is_curved, solve = weights.size <= _MAX_CURVED, self._start_curvature()
        if start is not None:
            near, near_slope = self._loss(start.ravel())
            if near < value:
                weights, value, slope = start.ravel(), near, near_slope
                solve = self._curvature(weights) if is_curved else solve
        steps: list[tuple[Floats, Floats, float]] = []
        for step in range(_MAX_STEPS):
            self._weights = weights
            direction = _direction(slope, steps, solve)
            promise = float(slope @ direction)
            if promise < accuracy:
                return value - 0.5 * max(promise, 0.0)
            size = 1.0
            while True:
                moved = weights - size * direction
                new, new_slope = self._loss(moved)
                if new <= value - 1e-4 * size * promise or size < 1e-3:
                    break
                size *= 0.5
            if new >= value:
                return value
            if is_curved and step < _CURVED_STEPS:
                solve = self._curvature(moved)
            else:
                change, bend = moved - weights, new_slope - slope
                steps = [*steps[-9:], (change, bend, 1.0 / max(float(change @ bend), 1e-9))]
            weights, value, slope = moved, new, new_slope
        return value

    def _constant_loss(self, odds: Floats) -> tuple[float, Floats]:
        """Return the loss and its slope where all rows have the same odds."""
        n_rows, weights = self._basis.shape[1], np.zeros(self._shape)
        weights[:, 0] = odds
        sums = self._basis @ np.ones(n_rows, dtype=np.float32)
        slope = np.outer(self._shares[1:], sums.astype(np.float64))
        slope += _RIDGE * weights - self._sums
        value = -n_rows * math.log(self._shares[0]) - float(odds @ self._sums[:, 0])
        return value + 0.5 * _RIDGE * float(odds @ odds), slope.ravel()

    def _loss(self, flat: Floats) -> tuple[float, Floats]:
        """Return the loss and its slope."""
        weights = flat.reshape(self._shape)
        shares, value = self._chances(weights, self._basis)
        slope = _times(shares, self._basis).astype(np.float64) - self._sums + _RIDGE * weights
        value += 0.5 * _RIDGE * float(flat @ flat) - float((weights * self._sums).sum())
        return value, slope.ravel()

    @staticmethod
    def _chances(weights: Floats, basis: Singles) -> tuple[Singles, float]:
        """Return the probabilities of the levels but the first, and the sum of log partitions."""
        odds = weights.astype(np.float32) @ basis
        if odds.max() < _LARGE_ODDS:
            # No exponential overflows.
            shares = np.exp(odds, out=odds)
            total = shares[0] + np.float32(1.0)
            for share in shares[1:]:
                total += share
            shares /= total
            return shares, float(np.log(total, out=total).sum(dtype=np.float64))
        top = np.maximum(odds.max(axis=0) if len(odds) > 1 else odds[0], np.float32(0.0))
        odds -= top
        shares = np.exp(odds, out=odds)
        total = np.exp(-top)
        total += shares.sum(axis=0) if len(shares) > 1 else shares[0]
        shares /= total
        value = float(top.sum(dtype=np.float64))
        return shares, value + float(np.log(total, out=total).sum(dtype=np.float64))

    def _start_curvature(self) -> Callable[[Floats], Floats]:
        """Return a function that divides by the second derivatives at weights of zero.

        With many weights, by the bound of Boehning: it must hold for all weights.
        """
        n_rows, later = self._basis.shape[1], self._shares[1:]
        inverse = np.diag(1.0 / later) + 1.0 / self._shares[0]
        if self._sums.size > _MAX_CURVED:
            inverse = 2.0 * (np.eye(len(later)) + 1.0)
        return lambda slope: (inverse @ slope.reshape(self._shape) / n_rows).ravel()

    def _curvature(self, flat: Floats) -> Callable[[Floats], Floats]:
        """Return a function that divides by the second derivatives at these weights."""
        n_free, n_columns = self._shape
        n_rows, size = self._basis.shape[1], n_free * n_columns
        step = max(1, n_rows // max(_CURVED_ROWS, _ROWS_PER_WEIGHT * size))
        basis = np.ascontiguousarray(self._basis[:, ::step])
        shares, _ = self._chances(flat.reshape(self._shape), basis)
        curvature = np.empty((n_free, n_columns, n_free, n_columns))
        for one in range(n_free):
            # Of this level and those before it, in one product.
            weights = -shares[one] * shares[: one + 1]
            weights[one] += shares[one]
            weighted = (weights[:, None] * basis).reshape(-1, basis.shape[1])
            made = (weighted @ basis.T).reshape(one + 1, n_columns, n_columns)
            curvature[one, :, : one + 1] = made.transpose(1, 0, 2)
            curvature[: one + 1, :, one] = made.transpose(0, 2, 1)
        matrix = curvature.reshape(size, size) * (n_rows / basis.shape[1])
        matrix.flat[:: size + 1] += _RIDGE + _DAMPING * float(matrix.trace()) / size
        factor, failed = dpotrf(matrix, lower=1)
        if failed:
            return self._start_curvature()
        return lambda slope: np.asarray(dpotrs(factor, slope, lower=1)[0])


def _times(rows: Singles, basis: Singles) -> Singles:
    """Return ``rows @ basis.T``, faster for the few rows that levels have."""
    if len(rows) > _MAX_SINGLE:
        return rows @ basis.T
    return np.stack([basis @ row for row in rows])


def _direction(
    slope: Floats,
    steps: list[tuple[Floats, Floats, float]],
    solve: Callable[[Floats], Floats],
) -> Floats:
    """Return the inverse curvature times the slope, learned from the steps so far."""
    left, shares = slope.copy(), []
    for change, bend, scale in reversed(steps):
        shares.append(scale * float(change @ left))
        left -= shares[-1] * bend
    found = solve(left)
    for (change, bend, scale), share in zip(steps, reversed(shares), strict=True):
        found = found + change * (share - scale * float(bend @ found))
    return found


def _orthonormal(X: Floats, correlation: Floats | None) -> tuple[Singles, Floats]:
    """Return a constant and uncorrelated columns of unit variance with the same span, as rows.

    The second array is the inverse of the Cholesky factor of the columns' covariances: the columns
    are made by it.
    """
    if correlation is None:
        X = X - X.mean(axis=0)
        correlation = X.T @ X / len(X)
    ridge = 1e-6 * np.diag(correlation.diagonal())
    inverse: Floats = np.linalg.inv(np.linalg.cholesky(correlation + ridge))
    made = np.ones((X.shape[1] + 1, len(X)), dtype=np.float32)
    np.matmul(inverse.astype(np.float32), X.T.astype(np.float32), out=made[1:])
    return made, inverse
