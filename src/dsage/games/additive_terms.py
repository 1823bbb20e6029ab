"""Sums of functions of the features, fitted to the outputs of some rows."""

from __future__ import annotations

import numpy as np

from dsage.games.base import Floats
from dsage.games.functions import Functions
from dsage.games.linear import LinearPredictor


class AdditiveTerms:
    """A sum of functions of single features that is fitted to outputs by least squares.

    Parameters
    ----------
    functions : Functions
        The functions of the features.
    rows : array of shape (n_rows, n_features)
        Rows, classes as codes.
    outputs : array of shape (n_rows, n_outputs)
        Their outputs.

    Attributes
    ----------
    mean : array of shape (n_outputs,)
        The mean of the outputs, which is added to the terms.
    n_columns : int array of shape (n_features,)
        The number of coefficients of each feature.
    """

    def __init__(self, functions: Functions, rows: Floats, outputs: Floats) -> None:
        n_rows, basis = len(rows), functions(rows)
        fitted = LinearPredictor(basis, outputs, np.ones(n_rows), ridge=2.0 / n_rows)
        self.mean, self.n_columns = fitted.mean, np.bincount(basis.owner)
        self._functions, self._fitted = functions, fitted
        self._slopes = np.linalg.solve(fitted.correlation, fitted.slopes)

    def __call__(self, X: Floats) -> Floats:
        """Return the terms of the features of rows, (n_features, n_outputs, n_rows)."""
        basis = self._functions(X)
        terms = self._fitted.standardize(basis.columns)[:, :, None] * self._slopes
        out = np.zeros((X.shape[1], len(self.mean), len(X)))
        for column, owner in enumerate(basis.owner):
            out[owner] += terms[:, column].T
        return out
