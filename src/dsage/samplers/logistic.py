"""Multinomial logistic regression, quick if the second moments of its columns are known."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg.lapack import dtrtri

from dsage.samplers.checks import Floats, Ints

Columns = npt.NDArray[np.floating[Any]]

# The objective is computed to this many nats per parameter; a parameter costs half a nat.
_TOLERANCE = 0.003
_MAX_STEPS = 100
_MEMORY = 12
_BLOCK = 2_048  # rows at a time, which fit into a cache


def fit_logistic(Z: Columns, moments: Floats, y: Ints, n_rows: float) -> tuple[Floats, Floats]:
    """Return intercepts (n_classes,) and slopes (n_classes, n_columns) of a logistic regression.

    They minimize ``-n_rows mean log p(y) + |slopes|^2 / 2``, up to a small part of a nat. If there
    are two classes, the first has slope 0.

    Parameters
    ----------
    Z : array of shape (n_columns, n_some)
        The columns of rows, with means of about 0. Sums over rows are in their precision.
    moments : array of shape (n_columns, n_columns)
        The covariances of the columns.
    y : int array of shape (n_some,)
        The classes, 0 .. n_classes - 1, each in some row.
    n_rows : float
        The number of rows that these represent.
    """
    shares = np.bincount(y) / len(y)
    logs = np.log(shares)
    is_pair = len(shares) == 2
    first = 1 if is_pair else 0
    scale = np.sqrt(n_rows * (shares * (1 - shares))[first:])
    ridge = np.eye(len(moments)) * (1.0 / (scale**2).mean())
    root = np.linalg.cholesky(moments + ridge)
    whitening: Floats = dtrtri(root, lower=1)[0]
    start = np.zeros((len(scale), len(moments) + 1))
    start[:, 0] = (logs - logs[0] if is_pair else logs - logs.mean())[first:] * scale
    hits = np.zeros((len(shares), len(y)), Z.dtype)
    hits[y, np.arange(len(y))] = 1.0
    problem = _Problem(Z, hits[first:], n_rows, scale, whitening)
    intercepts, slopes = problem.unpack(_minimize(problem, start.ravel()))
    if is_pair:
        intercepts = np.append(0.0, intercepts)
        slopes = np.vstack([np.zeros(len(moments)), slopes])
    return intercepts, slopes


class _Problem:
    """The objective in coordinates in which its Hessian is nearly the identity.

    The Hessian is nearly the matrix of second moments of the columns, times the variances of the
    classes. `hits` says which row has which class, without the first one if there are two; `scale`
    is the scale of the coordinates of each class, and `whitening` the inverse of the Cholesky
    factor of the moments.
    """

    def __init__(
        self, Z: Columns, hits: Columns, n_rows: float, scale: Floats, whitening: Floats
    ) -> None:
        self.Z, self.scale, self.whitening = Z, scale, whitening
        self.n_some, self.weight = hits.shape[1], n_rows / hits.shape[1]
        self.counts = hits.sum(axis=1, dtype=np.float64)
        self.sums: Floats = (hits @ Z.T).astype(np.float64)

    def unpack(self, at: Floats) -> tuple[Floats, Floats]:
        """Return intercepts and slopes of coordinates."""
        both = at.reshape(len(self.scale), -1) / self.scale[:, None]
        return both[:, 0], both[:, 1:] @ self.whitening

    def __call__(self, at: Floats) -> tuple[float, Floats]:
        """Return the objective and its gradient."""
        intercepts, slopes = self.unpack(at)
        gradient = np.empty((len(slopes), len(self.Z) + 1))
        gradient[:, 0], gradient[:, 1:] = -self.counts, -self.sums
        loss = -float(intercepts @ self.counts) - float((slopes * self.sums).sum())
        narrow = slopes.astype(self.Z.dtype), intercepts.astype(self.Z.dtype)[:, None]
        for start in range(0, self.n_some, _BLOCK):
            loss += self._add(gradient, self.Z[:, start : start + _BLOCK], *narrow)
        gradient *= self.weight
        gradient[:, 1:] = (gradient[:, 1:] + slopes) @ self.whitening.T
        gradient /= self.scale[:, None]
        return self.weight * loss + 0.5 * float((slopes**2).sum()), gradient.ravel()

    def _add(self, gradient: Floats, Z: Columns, slopes: Columns, intercepts: Columns) -> float:
        """Add the gradient of the log of the sum of weights of some rows, and return its sum."""
        lines = slopes @ Z
        lines += intercepts
        top = lines.max(axis=0)
        if len(lines) == 1:
            # The other class has 0.
            np.maximum(top, 0.0, out=top)
        lines -= top
        np.exp(lines, out=lines)
        total = lines.sum(axis=0)
        if len(lines) == 1:
            total += np.exp(-top)
        lines /= total
        gradient[:, 0] += lines.sum(axis=1)
        gradient[:, 1:] += lines @ Z.T
        return float(np.log(total).sum() + top.sum())


def _minimize(problem: _Problem, at: Floats) -> Floats:
    """Return the minimum, by the limited-memory quasi-Newton method (Nocedal, 1980)."""
    # The last steps, with the changes of the gradient that they made.
    memory: list[tuple[Floats, Floats]] = []
    value, gradient = problem(at)
    for _ in range(_MAX_STEPS):
        step = -_solve(gradient, memory)
        slope = float(step @ gradient)
        # For a quadratic function, a step gains half of this.
        if -slope < _TOLERANCE * len(at):
            break
        length = 1.0
        while True:
            trial = at + length * step
            new_value, new_gradient = problem(trial)
            if new_value <= value + 1e-4 * length * slope or length < 1e-6:
                break
            length *= 0.5
        change = trial - at, new_gradient - gradient
        if change[0] @ change[1] > 1e-12:
            memory.append(change)
            del memory[:-_MEMORY]
        at, value, gradient = trial, new_value, new_gradient
    return at


def _solve(gradient: Floats, memory: list[tuple[Floats, Floats]]) -> Floats:
    """Return the gradient times the inverse Hessian, approximated from the last steps."""
    rest = gradient.copy()
    shares = []
    for step, change in reversed(memory):
        share = (step @ rest) / (step @ change)
        rest -= share * change
        shares.append(share)
    if memory:
        step, change = memory[-1]
        rest *= (step @ change) / (change @ change)
    for (step, change), share in zip(memory, reversed(shares), strict=True):
        rest += (share - (change @ rest) / (step @ change)) * step
    return rest
