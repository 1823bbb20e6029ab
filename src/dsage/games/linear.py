"""The best linear predictor of a model's output from a coalition, and its game."""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dtrtri, dtrtrs

from dsage.data.groups import Groups
from dsage.data.portions import row_slices
from dsage.games.base import Floats, Game, Mask, Orders, Rows
from dsage.games.blocks import Basis

RIDGE = 1e-6
"""Added to the variances, on the scale of correlations, so that duplicate columns do no harm; the
predictor has to be cheap and similar, not exact."""


MANY = 64
"""Columns from which the inverse of a factor is computed one by one, by LAPACK."""

# Least eigenvalue of correlations from which they need no ridge. Without one, risks
# along orderings need no inverse of a factor.
_LEAST_EIGENVALUE = 1e-5


class LinearPredictor:
    """The best linear predictor of a model's output from the columns of the known features.

    With means m and covariances C of the columns x of a basis, and c their covariances with the
    model's output f, the output given a coalition is approximated by

        g_S(x) = mean of f + b_S' (x_S - m_S),    b_S = C_SS^-1 c_S,

    where S are the columns of its features. Columns are standardized, and a small ridge is added
    to their variances: `moments` and `correlation` are the second moments of the standardized rows
    `Z`, without and with it, and `slopes`, (n_columns, n_outputs), moments of `Z` and the output
    (n_rows, n_outputs). Rows are standardized when they are needed, since all would be one more
    copy of the data.
    """

    def __init__(
        self, basis: Basis, output: Floats, weights: Floats, *, ridge: float = RIDGE
    ) -> None:
        self.basis, X = basis, basis.columns
        slices = [some for some in row_slices(len(X), 8 * X.shape[1]) if weights[some].any()]
        shares = [float(weights[some].sum() / weights.sum()) for some in slices]
        n_columns, n_outputs = X.shape[1], output.shape[1]
        self._center: Floats = np.zeros(n_columns)
        for some, share in zip(slices, shares, strict=True):
            self._center += share * np.average(X[some], axis=0, weights=weights[some])
        variances = np.zeros(n_columns)
        for some, share in zip(slices, shares, strict=True):
            squares = (X[some] - self._center) ** 2
            variances += share * np.average(squares, axis=0, weights=weights[some])
        self._scale: Floats = np.where(variances > 0, np.sqrt(variances), 1.0)
        self.mean: Floats = np.average(output, axis=0, weights=weights)
        centered_output = output - self.mean
        self.moments: Floats = np.zeros((n_columns, n_columns))
        self.slopes: Floats = np.zeros((n_columns, n_outputs))
        for some in slices:
            Z = self.standardize(X[some])
            weighted = Z * (weights[some] / len(X))[:, None]
            self.moments += weighted.T @ Z
            self.slopes += weighted.T @ centered_output[some]
        self.has_ridge = n_columns < MANY or _is_nearly_singular(self.moments)
        self.correlation: Floats = self.moments.copy()
        if self.has_ridge:
            self.correlation += ridge * np.eye(n_columns)
        self._variance = float((weights / len(X)) @ (centered_output**2).sum(axis=1))

    @property
    def unexplained(self) -> float:
        """The variance of the output that remains with all columns known, summed over outputs."""
        explained = self.slopes * np.linalg.solve(self.correlation, self.slopes)
        return self._variance - float(explained.sum())

    def Z(self, rows: Rows | slice) -> Floats:  # noqa: N802
        """Return some of the rows, standardized, (n_rows, n_columns)."""
        return self.standardize(self.basis.columns[rows])

    def standardize(self, columns: Floats) -> Floats:
        """Return columns of other rows on the scale of `Z`."""
        scaled: Floats = (columns - self._center) / self._scale
        return scaled

    def coefficients(self, known: Mask) -> Floats:
        """Return coefficients, (n_coalitions, n_columns, n_outputs); 0 for unknown features."""
        columns = self.basis.expanded(known)
        coefficients = np.zeros((len(columns), *self.slopes.shape))
        sizes = columns.sum(axis=1)
        for size in np.unique(sizes[sizes > 0]):
            at = np.flatnonzero(sizes == size)
            members = columns[at].nonzero()[1].reshape(len(at), size)
            matrices = self.correlation[members[:, :, None], members[:, None, :]]
            solved = np.linalg.solve(matrices, self.slopes[members])
            coefficients[at[:, None], members] = solved
        return coefficients

    def factors(self, orders: Orders) -> Floats:
        """Return the Cholesky factors in orders of columns, (n_orderings, n, n)."""
        if orders.shape[1] < MANY:
            matrices = self.correlation[orders[:, :, None], orders[:, None, :]]
            return np.asarray(np.linalg.cholesky(matrices), dtype=np.float64)
        # Rows and columns one after the other: several times as fast as entry by entry.
        factors = np.empty((len(orders), *self.correlation.shape))
        for order, factor in zip(orders, factors, strict=True):
            factor[...] = np.linalg.cholesky(self.correlation.take(order, 1).take(order, 0))
        return factors

    def solve(self, factor: Floats, columns: Floats) -> Floats:
        """Return the product of the inverse of a factor and columns, (n_columns, n)."""
        # The transpose is in LAPACK's order and need not be copied.
        solved: Floats = dtrtrs(factor.T, columns, lower=0, trans=1)[0]
        return solved

    def solve_along(self, orders: Orders, columns: Floats) -> Floats:
        """Return the inverse factors times columns (n_columns, n), (n_orderings, n_columns, n)."""
        factors, right = self.factors(orders), columns[orders]
        if orders.shape[1] >= MANY:
            pairs = zip(factors, right, strict=True)
            return np.stack([self.solve(factor, some) for factor, some in pairs])
        # Row by row, for all orderings at once.
        for k in range(orders.shape[1]):
            right[:, k] -= np.einsum("oi,oic->oc", factors[:, k, :k], right[:, :k])
            right[:, k] /= factors[:, k, k, None]
        return right

    def whitening(self, orders: Orders) -> Floats:
        """Return the inverse Cholesky factors in orders of columns, (n_orderings, n, n)."""
        factors = self.factors(orders)
        if orders.shape[1] >= MANY:
            return np.stack([np.asarray(dtrtri(factor, lower=1)[0]) for factor in factors])
        # Row by row, for all orderings at once: NumPy's inverse does not use the triangle.
        inverse: Floats = np.zeros_like(factors)
        for k in range(orders.shape[1]):
            inverse[:, k, k] = 1.0
            inverse[:, k, :k] = -np.einsum("oi,oif->of", factors[:, k, :k], inverse[:, :k, :k])
            inverse[:, k, : k + 1] /= factors[:, k, k, None]
        return inverse


def _is_nearly_singular(correlation: Floats) -> bool:
    return bool(np.linalg.eigvalsh(correlation)[0] < _LEAST_EIGENVALUE)


class LinearOutput(Game):
    """The output of the linear predictor itself: the risk of S is ``-g_S(x)``, row by row.

    A cheap game similar to :class:`~dsage.games.OutputGame`: a surplus is
    ``g_{S+j}(x) - g_S(x)``. It is linear in the row, so the mean over orderings of its
    coefficients gives the means of all rows.

    Parameters
    ----------
    X : array of shape (n_rows, n_features)
        Evaluation rows, classes as codes, NaN for missing numbers.
    output : array of shape (n_rows,)
        The model's predictions for them.
    feature_names : sequence of str
        The features.
    groups : Groups, optional
        Groups of features that are known together: then they are the players.

    Examples
    --------
    >>> generator = np.random.default_rng(0)
    >>> X = generator.normal(size=(1000, 2))
    >>> game = LinearOutput(X, X @ [1.0, 0.0], ["a", "b"])
    >>> known = np.array([[False, False], [True, False], [False, True]])
    >>> game.risks(known, np.arange(1)).round(2)[:, 0, 0], X[0, 0].round(2)
    (array([ 0.03, -0.13,  0.03]), np.float64(0.13))
    """

    has_paths = True

    def __init__(
        self,
        X: Floats,
        output: Floats,
        feature_names: tuple[str, ...],
        groups: Groups | None = None,
    ) -> None:
        self.feature_names = tuple(feature_names) if groups is None else groups.names
        self.n_rows = len(X)
        basis = Basis.linear(X)
        if groups is not None:
            members = groups.expanded(np.eye(len(groups.names), dtype=np.bool_))
            blocks = [np.flatnonzero(each[basis.owner]) for each in members]
            basis = Basis(basis.columns, blocks)
        self._linear = LinearPredictor(basis, output[:, None], np.ones(self.n_rows))

    @property
    def n_columns(self) -> int:
        """The number of columns that represent the features."""
        return self._linear.basis.n_columns

    def risks(self, known: Mask, rows: Rows, epoch: int = 0) -> Floats:  # noqa: ARG002
        """Return the risks of coalitions, (n_coalitions, n_rows, 1); see :class:`Game`."""
        return -(self._linear.mean + self.outputs(self.coefficients(known), rows))[..., None]

    def path_risks(self, orders: Orders, rows: Rows, epoch: int, needed: Mask) -> Floats:  # noqa: ARG002
        """Return the risks of all prefixes of orderings; see :class:`Game`.

        With ``C + ridge = L L'`` in the ordering's order and W = L^-1, the k-th column adds the
        product of ``(W c)_k`` and ``(W z)_k``.
        """
        out = np.empty((*needed.shape, len(rows), 1))
        columns, ends = self._linear.basis.orders(orders)
        path = np.zeros((self.n_columns + 1, len(rows)))
        for order, end, risks in zip(columns, ends, out, strict=True):
            whitening = self._linear.whitening(order[None])[0]
            effects = whitening @ self._linear.slopes[order, 0]
            scores = np.einsum("rf,kf->kr", self._linear.Z(rows).take(order, axis=1), whitening)
            np.cumsum(-scores * effects[:, None], axis=0, out=path[1:])
            risks[:, :, 0] = path[end]
        out -= self._linear.mean
        return out

    def coefficients(self, known: Mask) -> Floats:
        """Return the coefficients of coalitions on standardized rows, (n_coalitions, n_columns)."""
        return self._linear.coefficients(known)[:, :, 0]

    def path_coefficients(self, orders: Orders) -> Floats:
        """Return the change of the coefficients from each feature of orderings.

        The shape is (n_orderings, n_features, n_columns): the second axis follows the orderings.
        """
        columns, ends = self._linear.basis.orders(orders)
        whitening = self._linear.whitening(columns)
        effects = np.einsum("okf,of->ok", whitening, self._linear.slopes[columns, 0])
        added = np.empty_like(whitening)
        places = np.broadcast_to(columns[:, None, :], added.shape)
        np.put_along_axis(added, places, effects[:, :, None] * whitening, axis=2)
        if self._linear.basis.is_plain:
            return added
        # A feature adds what its columns add.
        return np.stack(
            [np.add.reduceat(each, end[:-1], axis=0) for each, end in zip(added, ends, strict=True)]
        )

    def standardized(self, rows: Rows) -> Floats:
        """Return standardized rows, (n_rows, n_columns), to which the coefficients apply."""
        return self._linear.Z(rows)

    def outputs(self, coefficients: Floats, rows: Rows) -> Floats:
        """Return the outputs of coefficients (n, n_columns) for some rows, (n, n_rows)."""
        # In a matrix product, the rounding of a row would depend on the other rows.
        outputs: Floats = np.einsum("rf,cf->cr", self._linear.Z(rows), coefficients)
        return outputs
