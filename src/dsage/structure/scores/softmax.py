"""The likelihood of a class given columns of numbers: multinomial logistic regression."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]

# The accuracy of the log-likelihood, and the price of a weight of one, both in nats.
_ACCURACY, _RIDGE = 0.05, 1e-3
_MAX_STEPS = 60


def softmax_likelihood(X: Floats, levels: Ints, correlation: Floats | None = None) -> float:
    """Return the largest log-likelihood of levels 0, 1, ... given columns and an intercept.

    The columns are made uncorrelated, and the levels as uncorrelated as the bound on the Hessian
    by Boehning (1992) allows; then a few steps of L-BFGS, in single precision, suffice. If the
    columns are standardised, their `correlation` may be passed; it need not be exact.

    Examples
    --------
    >>> levels = np.array([0, 0, 1, 1])
    >>> round(softmax_likelihood(np.empty((4, 0)), levels), 2)
    -2.77
    """
    n_rows, n_levels = len(levels), int(levels.max(initial=0)) + 1
    counts = np.bincount(levels, minlength=n_levels)
    shares = counts / n_rows
    null = float(counts @ np.log(np.maximum(shares, 1e-300)))
    if not X.shape[1] or n_levels < 2:
        return null
    basis = _orthonormal(X, correlation)
    # W W' is the inverse of the bound (I - 1 1' / n_levels) / 2 on the Hessian of a row.
    n_free = n_levels - 1
    whitener = np.linalg.cholesky(2.0 * (np.eye(n_free) + np.ones((n_free, n_free))))
    whitener = whitener.astype(np.float32)
    rows = np.flatnonzero(levels)
    at = levels[rows] - 1, rows

    def loss(flat: Floats) -> tuple[float, Floats]:
        weights = flat.reshape(n_free, len(basis)).astype(np.float32)
        odds = (whitener @ weights) @ basis
        top = np.maximum(odds.max(axis=0), 0.0)
        value = float(top.sum(dtype=np.float64)) - float(odds[at].sum(dtype=np.float64))
        odds -= top
        shares = np.exp(odds, out=odds)
        total = shares.sum(axis=0)
        total += np.exp(-top)
        value += float(np.log(total).sum(dtype=np.float64))
        shares /= total
        shares[at] -= 1.0
        slope = (whitener.T @ (shares @ basis.T)).astype(np.float64).ravel()
        return value + 0.5 * _RIDGE * float(flat @ flat), slope + _RIDGE * flat

    start = np.zeros((n_free, len(basis)))
    logits = np.log(np.maximum(shares[1:], 1e-12) / max(shares[0], 1e-12))
    start[:, 0] = np.linalg.solve(whitener, logits)
    options = {"ftol": _ACCURACY / max(1.0, -null), "gtol": 1e-9, "maxiter": _MAX_STEPS}
    found = minimize(loss, start.ravel(), jac=True, method="L-BFGS-B", options=options)
    return max(null, -float(found.fun))


def _orthonormal(X: Floats, correlation: Floats | None) -> npt.NDArray[np.float32]:
    """Return a constant and uncorrelated columns of unit variance with the same span, as rows."""
    if correlation is None:
        X = X - X.mean(axis=0)
        correlation = X.T @ X / len(X)
    ridge = 1e-6 * np.diag(correlation.diagonal())
    inverse = np.linalg.inv(np.linalg.cholesky(correlation + ridge))
    made = np.ones((X.shape[1] + 1, len(X)), dtype=np.float32)
    np.matmul(inverse.astype(np.float32), X.T.astype(np.float32), out=made[1:])
    return made
