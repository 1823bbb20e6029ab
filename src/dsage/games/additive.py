"""The additive predictor for evaluation rows: its predictions from coalitions of features."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from scipy.linalg.lapack import dtrtri

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

        With ``C = L L'`` in this order, W = L^-1 and u = W c, the k-th column adds the product of
        u_k and ``(W z)_k`` to the prediction, and u_k^2 to its variance over rows.

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
        whitening = invert(self.predictor.factors(order[None])[0])
        slopes = whitening @ self.predictor.slopes[order]
        white = Z.take(order, axis=1) @ whitening.T
        explained = np.zeros((len(order) + 1, slopes.shape[1]))
        np.cumsum(slopes**2, axis=0, out=explained[1:])
        if slopes.shape[1] > 1:
            return _add_blocks(white, slopes, ends), explained[ends]
        path = np.zeros((len(Z), len(order) + 1, 1))
        np.cumsum(white[:, :, None] * slopes, axis=1, out=path[:, 1:])
        return path[:, ends], explained[ends]


def _add_blocks(white: Floats, slopes: Floats, ends: Rows) -> Floats:
    """Return the sums over the first columns, up to each of the ends, of white times slopes.

    The columns of a feature are summed by a product, in place of products of single columns that
    are summed later: with many outputs these would take most of the time.
    """
    path = np.zeros((len(ends), len(white), slopes.shape[1]))
    for at, (start, stop) in enumerate(pairwise(ends.tolist()), start=1):
        np.matmul(white[:, start:stop], slopes[start:stop], out=path[at])
        path[at] += path[at - 1]
    return np.moveaxis(path, 0, 1)


def invert(factor: Floats) -> Floats:
    """Return the inverse of a lower triangular matrix."""
    inverse: Floats = dtrtri(factor, lower=1)[0]
    return inverse
