"""What each feature adds to the prefixes of an ordering, not only to the one before it."""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dtrtri, dtrtrs

from dsage.games.base import Floats


def mean_additions(factors: Floats, variances: Floats, crossed: Floats) -> Floats:
    """Return means over sizes of coalitions of what columns explain, (n_orderings, n_columns).

    A column p of an ordering is added to the first k columns for all ``k <= p``, and taken away
    from the first k columns for all ``k > p + 1``. So each column has a coalition of others of each
    size, from 0 to n - 1. In a uniform ordering these are uniform among the coalitions of their
    size, so the mean is an unbiased estimate of the Shapley value, and it varies far less than what
    the column adds at its own position.

    With ``C = L L'``, the covariances of the columns, the columns of a set S explain
    ``a_S' C_SS^-1 (2 b_S - a_S)``. Given the first k columns, the remaining variance of p is
    ``C_pp - sum over i < k of L_pi^2``, and likewise for a and b, with ``L^-1 a`` in the place of
    one L. Conversely, with W = L^-1, the inverse of the covariances of the first k columns has the
    diagonal ``sum over i < k of W_ip^2``, and the coefficients of p are sums of ``W_ip (W a)_i``.

    Parameters
    ----------
    factors : array of shape (n_orderings, n_columns, n_columns)
        L, in the order of each ordering; overwritten.
    variances : array of shape (n_orderings, n_columns)
        The diagonal of C.
    crossed : array of shape (n_orderings, n_columns, 2 * n_outputs)
        The columns of a, followed by those of b. What outputs explain is added up.

    Examples
    --------
    Two independent columns: each explains the square of its covariance, wherever it is added.

    >>> mean_additions(np.eye(2)[None], np.ones((1, 2)), np.array([[[2.0, 2.0], [1.0, 1.0]]]))
    array([[4., 1.]])
    """
    pairs = zip(factors, crossed, strict=True)
    # The transpose of a factor is in LAPACK's order.
    solved = np.stack([dtrtrs(each.T, right, lower=0, trans=1)[0].T for each, right in pairs])
    columns = np.ascontiguousarray(crossed.transpose(0, 2, 1))
    total = _added(np.ascontiguousarray(factors.transpose(0, 2, 1)), variances, columns, solved)
    for each in factors:
        each[...] = dtrtri(each.T, lower=0)[0].T
    total += _taken(factors, solved)
    total /= factors.shape[1]
    return total


def _added(uppers: Floats, variances: Floats, crossed: Floats, solved: Floats) -> Floats:
    """Return the sums over k of what columns at k and later explain beyond the first k columns."""
    left, parts = variances.copy(), crossed.copy()
    total = np.zeros_like(left)
    for k in range(uppers.shape[1]):
        total[:, k:] += _explained(parts[:, :, k:], left[:, k:])
        later = uppers[:, k, k + 1 :]
        left[:, k + 1 :] -= later * later
        parts[:, :, k + 1 :] -= solved[:, :, k, None] * later[:, None]
    return total


def _taken(inverses: Floats, solved: Floats) -> Floats:
    """Return the sums over k of what the first k columns miss without one of them but the last."""
    diagonal, parts = np.zeros(inverses.shape[:2]), np.zeros(solved.shape)
    total = np.zeros_like(diagonal)
    for k in range(inverses.shape[1]):
        known = inverses[:, k, : k + 1]
        diagonal[:, : k + 1] += known * known
        parts[:, :, : k + 1] += solved[:, :, k, None] * known[:, None]
        total[:, :k] += _explained(parts[:, :, :k], diagonal[:, :k])
    return total


def _explained(parts: Floats, variances: Floats) -> Floats:
    """Return ``a (2 b - a) / v`` of parts (a, b), summed over outputs."""
    n_outputs = parts.shape[1] // 2
    a, b = parts[:, :n_outputs], parts[:, n_outputs:]
    products = a * (2.0 * b - a)
    found: Floats = (products[:, 0] if n_outputs == 1 else products.sum(axis=1)) / variances
    return found
