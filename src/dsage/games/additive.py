"""The additive predictor for evaluation rows: its predictions from coalitions of features."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from scipy.linalg.lapack import dtrtri, dtrtrs

from dsage.games.base import Floats, Rows
from dsage.games.functions import Functions
from dsage.games.linear import LinearPredictor

# Bytes of the columns of all rows up to which they are kept.
KEPT_BYTES = 2**25


class AdditiveRows:
    """The columns of the evaluation rows, and predictions from the columns of the known features.

    Parameters
    ----------
    predictor : LinearPredictor
        The predictor, fitted to columns of drawn rows.
    functions : Functions
        The functions that made these columns.
    X : array of shape (n_rows, n_features)
        Evaluation rows, classes as codes.
    """

    def __init__(self, predictor: LinearPredictor, functions: Functions, X: Floats) -> None:
        self.predictor, self._functions, self._X = predictor, functions, X
        is_large = 8 * len(X) * predictor.basis.n_columns > KEPT_BYTES
        self._kept = None if is_large else self._make(slice(None))

    def _make(self, rows: Rows | slice) -> Floats:
        return self.predictor.standardize(self._functions(self._X[rows]).columns)

    def Z(self, rows: Rows | slice) -> Floats:  # noqa: N802
        """Return the standardized columns of some rows; recomputed if all take much memory."""
        return self._make(rows) if self._kept is None else self._kept[rows]

    def along(self, order: Rows, ends: Rows, Z: Floats) -> tuple[Floats, Floats]:
        """Return the predictions for prefixes of an order of the columns, and their variances.

        With ``C = L L'`` in this order and ``u = L^-1 c``, the k-th column adds u_k^2 to the
        variance of the prediction over rows; see :func:`coefficients_along`.

        Parameters
        ----------
        order : int array of shape (n_columns,)
            The columns in the order in which they become known.
        ends : int array of shape (n_prefixes,)
            Number of columns of each prefix.
        Z : array of shape (n_rows, n_columns)
            Standardized columns of rows.

        Returns
        -------
        arrays of shape (n_rows, n_prefixes, n_outputs) and (n_prefixes, n_outputs)
            The predictions, less the mean.
        """
        predictor = self.predictor
        factor = predictor.factors(order[None])[0]
        gains = predictor.solve(factor, predictor.slopes[order])
        explained = np.zeros((len(order) + 1, gains.shape[1]))
        np.cumsum(gains**2, axis=0, out=explained[1:])
        if gains.size * len(ends) > len(order) ** 2:
            white = Z.take(order, axis=1) @ invert(factor).T
            return _add_blocks(white, gains, ends), explained[ends]
        coefficients = coefficients_along(factor, gains, order, ends)
        path = coefficients.reshape(-1, len(order)) @ Z.T
        return path.reshape(len(ends), -1, len(Z)).transpose(2, 0, 1), explained[ends]


def coefficients_along(factor: Floats, gains: Floats, order: Rows, ends: Rows) -> Floats:
    """Return the coefficients of the columns for prefixes of an order of the columns.

    With ``C = L L'`` and ``u = L^-1 c`` in this order, the coefficients b of the first k columns
    solve ``L' b = u``, where u is zero after the first k columns.

    Parameters
    ----------
    factor : array of shape (n_columns, n_columns)
        L.
    gains : array of shape (n_columns, n_outputs)
        u.
    order : int array of shape (n_columns,)
        The order of the columns.
    ends : int array of shape (n_prefixes,)
        Number of columns of each prefix.

    Returns
    -------
    array of shape (n_prefixes, n_outputs, n_columns)
        The coefficients, with the columns in their own order, not in that of the prefixes.
    """
    n_columns, n_outputs = gains.shape
    is_known = np.arange(n_columns) < ends[:, None]
    right = (is_known[:, None] * gains.T).reshape(-1, n_columns)
    found = np.empty_like(right)
    # The transposes are in LAPACK's order and need not be copied.
    found[:, order] = dtrtrs(factor.T, right.T, lower=0, overwrite_b=1)[0].T
    return found.reshape(len(ends), n_outputs, n_columns)


def _add_blocks(white: Floats, slopes: Floats, ends: Rows) -> Floats:
    """Return the sums over the first columns, up to each of the ends, of white times slopes.

    With many outputs this takes less time than their coefficients. The columns of a feature are
    summed by a product.
    """
    path = np.zeros((len(ends), len(white), slopes.shape[1]))
    for at, (start, stop) in enumerate(pairwise(ends.tolist()), start=1):
        np.matmul(white[:, start:stop], slopes[start:stop], out=path[at])
        path[at] += path[at - 1]
    return np.moveaxis(path, 0, 1)


def invert(factor: Floats) -> Floats:
    """Return the inverse of a lower triangular matrix."""
    # The transpose is in LAPACK's order and need not be copied.
    inverse: Floats = dtrtri(factor.T, lower=0)[0].T
    return inverse
