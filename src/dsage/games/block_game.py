"""The game of the best additive predictor: risks from the moments of basis functions."""

from __future__ import annotations

import numpy as np

from dsage.data.portions import row_slices
from dsage.games.additive import AdditiveRows, coefficients_along
from dsage.games.base import Floats, Game, Mask, Orders, Rows
from dsage.games.functions import Functions
from dsage.games.linear import LinearPredictor

# Bytes of the matrices of orderings that are handled at a time.
_MAX_BYTES = 2**25


class BlockGame(Game):
    """Squared error of the additive predictor of a model's output from the known features.

    With z the basis functions of the features, see :class:`~dsage.games.functions.Functions`,
    the output given a coalition is approximated by

        g_S(x) = mean of f + b_S' z_S,    b_S = C_SS^-1 c_S,

    where the moments C and c are of rows *drawn from the sampler* and of the model's output for
    them: this is the distribution of the game itself, with any number of rows. The risk of S
    is the mean of ``(y - g_S(x))^2`` over the evaluation rows, summed over outputs. It needs their
    second moments only.

    Parameters
    ----------
    predictor : LinearPredictor
        The predictor, fitted to columns of drawn rows.
    functions : Functions
        The functions that made these columns.
    X : array of shape (n_rows, n_features)
        Evaluation rows, classes as codes.
    target : array of shape (n_rows,) or (n_rows, n_outputs)
        The targets on the scale of the output.
    feature_names : sequence of str
        The features.
    weights : array of shape (n_rows,)
        Weights of the rows, with mean one.
    under : Game, optional
        A game of fewer functions: the first level of this one.
    """

    has_paths = True
    weights: Floats

    def __init__(
        self,
        predictor: LinearPredictor,
        functions: Functions,
        X: Floats,
        target: Floats,
        feature_names: tuple[str, ...],
        weights: Floats,
        under: Game | None = None,
    ) -> None:
        self.feature_names = tuple(feature_names)
        self.n_rows, self.weights = len(X), weights
        self._linear, self._basis, self._under = predictor, predictor.basis, under
        self._rows = AdditiveRows(predictor, functions, X)
        n_columns = predictor.basis.n_columns
        # Factors of matrices.
        self.cost = float(n_columns) ** 2
        target = np.asarray(target, dtype=np.float64).reshape(self.n_rows, -1)
        self._rest = target - predictor.mean
        self._moments = np.zeros((n_columns, n_columns))
        self._effects = np.zeros((n_columns, target.shape[1]))
        for some in row_slices(self.n_rows, 8 * n_columns):
            Z = self._rows.Z(some)
            weighted = Z * (weights[some] / self.n_rows)[:, None]
            self._moments += weighted.T @ Z
            self._effects += weighted.T @ self._rest[some]
        self._start = float((weights / self.n_rows) @ (self._rest**2).sum(axis=1))

    def first_level(self) -> Game | None:
        """Return the game of fewer functions, if there is one."""
        return self._under

    def risks(self, known: Mask, rows: Rows, epoch: int = 0) -> Floats:  # noqa: ARG002
        """Return the risks of coalitions; see :class:`Game`."""
        Z, rest, weights = self._rows.Z(rows), self._rest[rows], self.weights[rows]
        out = np.empty((len(known), len(rows), 1))
        for coefficients, risk in zip(self._linear.coefficients(known), out, strict=True):
            left = rest - Z @ coefficients
            risk[:, 0] = weights * (left * left).sum(axis=1)
        return out

    def path_risks(self, orders: Orders, rows: Rows, epoch: int, needed: Mask) -> Floats:  # noqa: ARG002
        """Return the risks of all prefixes of orderings; see :class:`Game`."""
        out = np.empty((*needed.shape, len(rows), 1))
        columns, ends = self._basis.orders(orders)
        rest, weights = self._rest[rows], self.weights[rows]
        Z = self._rows.Z(rows)
        for order, end, risks in zip(columns, ends, out, strict=True):
            left = rest[:, None] - self._rows.along(order, end, Z)[0]
            risks[:, :, 0] = weights * (left * left).sum(axis=2).T
        return out

    def mean_risks(self, known: Mask) -> Floats:
        """Return the means over all rows of the risks of coalitions, (n_coalitions,)."""
        risks = np.empty(len(known))
        at_once = max(1, _MAX_BYTES // (8 * self._basis.n_columns**2))
        for start in range(0, len(known), at_once):
            at = slice(start, start + at_once)
            coefficients = self._linear.coefficients(known[at])
            crossed = np.einsum("cfo,fo->c", coefficients, self._effects)
            squared = np.einsum("cfo,cfo->c", coefficients, self._moments @ coefficients)
            risks[at] = self._start - 2.0 * crossed + squared
        return risks

    def mean_path_risks(self, orders: Orders) -> Floats:
        """Return the `mean_risks` of all prefixes of orderings, (n_orderings, n_features + 1).

        See :func:`~dsage.games.additive.coefficients_along`. With coefficients b and the second
        moments M of the evaluation rows, ``b' M b`` is the mean square of the prediction.
        """
        columns, ends = self._basis.orders(orders)
        n_columns, n_outputs = columns.shape[1], self._rest.shape[1]
        risks = np.full(ends.shape, self._start)
        n_entries = n_columns * max(n_columns, n_outputs * ends.shape[1])
        at_once = max(1, _MAX_BYTES // (8 * n_entries))
        for start in range(0, len(orders), at_once):
            at = slice(start, start + at_once)
            some = columns[at]
            paths = np.empty((len(some), ends.shape[1], n_outputs, n_columns))
            for order, end, factor, path in zip(
                some, ends[at], self._linear.factors(some), paths, strict=True
            ):
                gains = self._linear.solve(factor, self._linear.slopes[order])
                path[...] = coefficients_along(factor, gains, order, end)
            # One product of many rows, not many of a few.
            products = (paths.reshape(-1, n_columns) @ self._moments).reshape(paths.shape)
            squares = np.einsum("apof,apof->ap", products, paths)
            risks[at] += squares - 2.0 * np.einsum("apof,fo->ap", paths, self._effects)
        return risks
