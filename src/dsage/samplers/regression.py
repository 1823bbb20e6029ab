"""Linear regressions of one column on others, from second moments if there are many rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from dsage._random import Streams
from dsage.samplers.checks import Floats, Ints, Mask
from dsage.samplers.conditioning import TOLERANCE, lower_factor, sweep
from dsage.samplers.design import Encoder

# Ridge penalties, as shares of the number of rows (features are standardized).
_PENALTIES = (1e-8, 1e-6, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
# With this many rows per column, there is no need to choose a penalty.
_MANY_ROWS = 20
# Rows from which logistic models are learned, and those whose residuals are.
_MAX_ROWS, _MAX_RESIDUALS = 10_000, 4_000


class Training:
    """Training rows as columns of linear models, and their second moments.

    All rows count in the moments. At most 10,000 of them, at random, are kept: `columns` has
    shape (n_columns, n_kept), centered at `middle`, and `codes` (n_features, n_kept).
    """

    def __init__(self, encoder: Encoder, X: Floats) -> None:
        self.encoder, self.n_rows = encoder, len(X)
        parts = [X[start : start + _MAX_ROWS] for start in range(0, len(X), _MAX_ROWS)]
        totals = [encoder.matrix(part).sum(axis=0) for part in parts]
        self.middle: Floats = np.sum(totals, axis=0) / len(X)
        self.moments = np.zeros((encoder.n_columns, encoder.n_columns))
        for part in parts:
            centered = encoder.matrix(part) - self.middle
            self.moments += centered.T @ centered / len(X)
        kept = X[some_rows(len(X), _MAX_ROWS)]
        self.columns: Floats = np.ascontiguousarray((encoder.matrix(kept) - self.middle).T)
        self.narrow = self.columns.astype(np.float32)
        self._few = np.ascontiguousarray(self.columns[:, some_rows(len(kept), _MAX_RESIDUALS)])
        self.codes: Ints = np.where(encoder.n_categories > 0, kept, 0.0).T.astype(np.intp)
        self.counts = {
            at: np.bincount(X[:, at].astype(np.intp), minlength=encoder.n_categories[at])
            for at in encoder.levels
        }
        self._varies: Mask = self.moments.diagonal() > 0
        # One more row at the mean, which keeps the slopes of rare categories small.
        self._ridge = np.where(encoder.is_class, 1.0 / len(X), 0.0)
        self._is_regular = _is_regular(self.moments + np.diag(self._ridge), self._varies)

    def columns_of(self, features: Sequence[int]) -> Ints:
        """Return the positions of the columns of some features that vary."""
        columns = self.encoder.columns_of(features)
        return columns[self._varies[columns]]

    def regress(self, features: Sequence[int], target: int) -> tuple[Ints, Floats, Floats]:
        """Return the columns of features, the target's slopes on them, and residuals.

        Residuals are out-of-sample: in-sample ones would be too small with many features. With
        fewer than 20 rows per column, slopes are from a ridge regression.
        """
        columns = self.columns_of(features)
        if self.n_rows < _MANY_ROWS * len(columns):
            return columns, *self._ridge_regress(columns, target)
        slopes = self._solve(columns, target)
        errors = self._few[target] - slopes @ self._few[columns]
        # On average, a row has this weight in its own prediction.
        return columns, slopes, errors / (1.0 - (len(columns) + 1.0) / self.n_rows)

    def _solve(self, columns: Ints, target: int) -> Floats:
        """Return the slopes of least squares; 0 for columns that follow from others."""
        if not self._is_regular:
            chosen = np.append(columns, target)
            known = np.arange(len(chosen)) < len(columns)
            block = self.moments[np.ix_(chosen, chosen)] + np.diag(self._ridge[chosen] * known)
            coefficients, _ = sweep(block, known)
            return np.ascontiguousarray(coefficients[0])
        block = self.moments[np.ix_(columns, columns)]
        block[np.diag_indices(len(columns))] += self._ridge[columns]
        factor = cho_factor(block, lower=True, overwrite_a=True, check_finite=False)
        slopes: Floats = cho_solve(factor, self.moments[columns, target], check_finite=False)
        return slopes

    def _ridge_regress(self, columns: Ints, target: int) -> tuple[Floats, Floats]:
        """Return the slopes whose leave-one-out errors are smallest, and these errors."""
        centered, y = self.columns[columns].T, self.columns[target]
        shift = centered.mean(axis=0)
        centered = centered - shift
        roots, vectors = np.linalg.eigh(centered.T @ centered)
        roots = np.maximum(roots, 0.0)
        rotated = centered @ vectors
        along = rotated.T @ (y - y.mean())
        best = np.inf
        for penalty in _PENALTIES:
            shrunk = 1.0 / (roots + penalty * len(y))
            leverage = np.minimum(rotated**2 @ shrunk + 1.0 / len(y), 1.0 - 1e-9)
            errors = (y - y.mean() - rotated @ (shrunk * along)) / (1.0 - leverage)
            if (loss := float(errors @ errors)) < best:
                best, kept, slopes = loss, errors, vectors @ (shrunk * along)
        return slopes, kept


def some_rows(n_rows: int, most: int) -> Ints:
    """Return at most `most` of the rows, in their order, the same each time."""
    if n_rows <= most:
        return np.arange(n_rows)
    # Every second row, say, may be special.
    return np.sort(Streams(0)("some-rows").permutation(n_rows)[:most])


def _is_regular(moments: Floats, varies: Mask) -> bool:
    """Return whether no column nearly follows from all others."""
    block = moments[np.ix_(varies, varies)]
    factor = lower_factor(block)
    if not (factor.diagonal() > 0).all():
        return False
    inverse = np.linalg.inv(factor)
    return bool((1.0 / (inverse**2).sum(axis=0) > 100 * TOLERANCE).all())
