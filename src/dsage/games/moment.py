"""The game of the best linear predictor: risks from moments, at the cost of linear algebra."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dsage._check import check_shape
from dsage.data.portions import row_slices
from dsage.games.base import Floats, Game, Mask, Orders, Rows
from dsage.games.blocks import Basis
from dsage.games.linear import MANY, RIDGE, LinearPredictor
from dsage.games.options import check_weights

# Coalitions solved for at a time.
_AT_ONCE = 4096


class MomentGame(Game):
    """Squared error of the linear predictor of a model's output from the known features.

    Let g_S be that predictor, see :class:`~dsage.games.linear.LinearPredictor`. The risk of S is
    the mean of ``(y - g_S(x))^2`` over the evaluation rows, summed over outputs; it depends on the
    rows only through their second moments. The game need not be accurate: it is the first level of
    an estimate, a cheap game similar to the model's.

    Parameters
    ----------
    X : array of shape (n_rows, n_features), or Basis
        Evaluation rows, classes as codes, NaN for missing numbers; or the columns that stand
        for the features. Of an array, see :meth:`~dsage.games.blocks.Basis.linear`.
    output : array of shape (n_rows,) or (n_rows, n_outputs)
        The model's predictions for them.
    target : array of shape (n_rows,) or (n_rows, n_outputs)
        The targets on the scale of the predictions; for a classifier, 1 for the class, 0 otherwise.
    feature_names : sequence of str
        The features.
    sample_weight : array of shape (n_rows,), optional
        Weights of the rows.

    Examples
    --------
    >>> generator = np.random.default_rng(0)
    >>> X = generator.normal(size=(1000, 2))
    >>> game = MomentGame(X, X @ [1.0, 0.0], X @ [1.0, 0.0], ["a", "b"])
    >>> known = np.array([[False, False], [True, False], [False, True]])
    >>> game.mean_risks(known).round(2)
    array([1.04, 0.  , 1.04])
    """

    def __init__(
        self,
        X: Floats | Basis,
        output: Floats,
        target: Floats,
        feature_names: tuple[str, ...],
        *,
        sample_weight: npt.ArrayLike | None = None,
    ) -> None:
        self.feature_names = tuple(feature_names)
        basis = X if isinstance(X, Basis) else Basis.linear(X)
        self.n_rows = len(basis.columns)
        self.cost = float(basis.n_columns) ** 2
        output = np.asarray(output, dtype=np.float64).reshape(self.n_rows, -1)
        target = np.asarray(target, dtype=np.float64).reshape(self.n_rows, -1)
        advice = "Pass one column per output; code a class as 1, others as 0"
        check_shape(target, output.shape, "target", advice)
        self.weights: Floats = check_weights(sample_weight, self.n_rows)
        self._linear = LinearPredictor(basis, output, self.weights)
        self._rest = target - self._linear.mean
        self._effects = np.zeros((basis.n_columns, output.shape[1]))
        for some in row_slices(self.n_rows, 8 * basis.n_columns):
            weighted = self._linear.Z(some) * (self.weights[some] / self.n_rows)[:, None]
            self._effects += weighted.T @ self._rest[some]
        self._start = float((self.weights / self.n_rows) @ (self._rest**2).sum(axis=1))

    def risks(self, known: Mask, rows: Rows, epoch: int = 0) -> Floats:  # noqa: ARG002
        """Return the risks of coalitions; see :class:`Game`."""
        Z, rest, weights = self._linear.Z(rows), self._rest[rows], self.weights[rows]
        out = np.empty((len(known), len(Z), 1))
        columns = self._linear.basis.expanded(known)
        for chosen, coefficients, risk in zip(
            columns, self._linear.coefficients(known), out, strict=True
        ):
            # One product per coalition, so that its rounding does not depend on the others.
            left = rest - Z[:, chosen] @ coefficients[chosen]
            risk[:, 0] = weights * (left * left).sum(axis=1)
        return out

    @property
    def has_paths(self) -> bool:  # type: ignore[override]
        """Whether `path_risks` is used: with many columns, single coalitions take too long."""
        return self._linear.basis.n_columns >= MANY

    def path_risks(self, orders: Orders, rows: Rows, epoch: int, needed: Mask) -> Floats:  # noqa: ARG002
        """Return the risks of all prefixes of orderings, from a factor each; see :class:`Game`."""
        out = np.empty((*needed.shape, len(rows), 1))
        columns, ends = self._linear.basis.orders(orders)
        Z, rest, weights = self._linear.Z(rows), self._rest[rows], self.weights[rows]
        for order, end, risks in zip(columns, ends, out, strict=True):
            factor = self._linear.factors(order[None])[0]
            scores = self._linear.solve(factor, Z.take(order, axis=1).T).T
            slopes = self._linear.solve(factor, self._linear.slopes[order])
            added = scores[:, :, None] * slopes
            path = np.zeros((len(rows), len(order) + 1, rest.shape[1]))
            np.cumsum(added, axis=1, out=path[:, 1:])
            left = rest[:, None] - path[:, end]
            risks[:, :, 0] = weights * (left * left).sum(axis=2).T
        return out

    def mean_risks(self, known: Mask) -> Floats:
        """Return the means over all rows of the risks of coalitions, (n_coalitions,)."""
        risks = np.empty(len(known))
        for start in range(0, len(known), _AT_ONCE):
            at = slice(start, start + _AT_ONCE)
            coefficients = self._linear.coefficients(known[at])
            crossed = np.einsum("cfo,fo->c", coefficients, self._effects)
            squared = np.einsum("cfo,cfo->c", coefficients, self._linear.moments @ coefficients)
            risks[at] = self._start - 2.0 * crossed + squared
        return risks

    def mean_path_risks(self, orders: Orders) -> Floats:
        """Return the `mean_risks` of all prefixes of orderings, (n_orderings, n_features + 1).

        One Cholesky factor serves all prefixes. With ``C + ridge = L L'`` in this order, W = L^-1
        and u = W c, the coefficients of the first k columns are the sum of ``u_i W_i``, and their
        second moment is the one of u minus the ridge's part. Without a ridge the coefficients are
        not needed.
        """
        columns, ends = self._linear.basis.orders(orders)
        n_orderings, n_columns = columns.shape
        risks = np.empty((n_orderings, n_columns + 1))
        if not self._linear.has_ridge:
            risks[:, 0] = self._start
            for order, risk in zip(columns, risks, strict=True):
                factor = self._linear.factors(order[None])[0]
                slopes = self._linear.solve(factor, self._linear.slopes[order])
                effects = self._linear.solve(factor, self._effects[order])
                fitted = (slopes * (slopes - 2.0 * effects)).sum(axis=1)
                risk[1:] = self._start + fitted.cumsum()
            return np.take_along_axis(risks, ends, axis=1)
        step = max(1, _AT_ONCE // n_columns)
        for start in range(0, n_orderings, step):
            order = columns[start : start + step]
            inverse = self._linear.whitening(order)
            slopes = inverse @ self._linear.slopes[order]
            effects = inverse @ self._effects[order]
            fitted = (slopes * (slopes - 2.0 * effects)).sum(axis=2).cumsum(axis=1)
            shrunk = np.zeros(fitted.shape)
            for output in range(slopes.shape[2]):
                paths = (slopes[:, :, output, None] * inverse).cumsum(axis=1)
                shrunk += np.einsum("okf,okf->ok", paths, paths)
            risks[start : start + step, 0] = self._start
            risks[start : start + step, 1:] = self._start + fitted - RIDGE * shrunk
        return np.take_along_axis(risks, ends, axis=1)
