"""The game of the best linear predictor: risks from moments, at the cost of linear algebra."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.linalg.lapack import dtrtri

from dsage._check import check_shape
from dsage.data.portions import row_slices
from dsage.games.base import Floats, Game, Mask, Orders, Rows
from dsage.games.blocks import Basis
from dsage.games.linear import MANY, RIDGE, LinearPredictor
from dsage.games.options import check_weights
from dsage.games.positions import mean_additions
from dsage.samplers.recent import Recent

# Coalitions solved for at a time.
_AT_ONCE = 4096
# Entries of the factors of orderings that are handled at a time.
_CELLS = 1 << 19


class MomentGame(Game):
    """Squared error of the linear predictor of a model's output from the known features.

    Let g_S be that predictor, see :class:`~dsage.games.linear.LinearPredictor`. The risk of S is
    the mean of ``(y - g_S(x))^2`` over the evaluation rows, summed over outputs; it depends on the
    rows only through their second moments. If the predictor has a ridge, the risk includes its
    penalty: then what a feature adds to a coalition follows from the factor of an ordering alone.
    The game need not be accurate: it is the first level of an estimate, a cheap game similar to the
    model's.

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
        self._both: Floats = np.concatenate([self._linear.slopes, self._effects], axis=1)
        self._penalty = RIDGE if self._linear.has_ridge else 0.0
        # Both orderings of a unit.
        self._recent: Recent[Floats] = Recent(2)

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
            penalty = self._penalty * float((coefficients * coefficients).sum())
            risk[:, 0] = weights * ((left * left).sum(axis=1) + penalty)
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
            factor = self._factor(order)
            scores = self._linear.solve(factor, Z.take(order, axis=1).T).T
            slopes = self._linear.solve(factor, self._linear.slopes[order])
            added = scores[:, :, None] * slopes
            path = np.zeros((len(rows), len(order) + 1, rest.shape[1]))
            np.cumsum(added, axis=1, out=path[:, 1:])
            left = rest[:, None] - path[:, end]
            penalties = self._penalties(factor, slopes)[end]
            risks[:, :, 0] = weights * ((left * left).sum(axis=2).T + penalties[:, None])
        return out

    def _factor(self, order: Rows) -> Floats:
        """Return the factor in an order of columns; long orderings come in pieces of the rows."""
        return self._recent.get(order.tobytes(), lambda: self._linear.factors(order[None])[0])

    def _penalties(self, factor: Floats, slopes: Floats) -> Floats:
        """Return the penalties of the coefficients along an ordering, (n_columns + 1,)."""
        squares = np.zeros(len(factor) + 1)
        if self._penalty:
            inverse = dtrtri(factor.T, lower=0)[0].T
            for output in slopes.T:
                paths = (output[:, None] * inverse).cumsum(axis=0)
                squares[1:] += (paths * paths).sum(axis=1)
        return self._penalty * squares

    def mean_risks(self, known: Mask) -> Floats:
        """Return the means over all rows of the risks of coalitions, (n_coalitions,)."""
        risks = np.empty(len(known))
        for start in range(0, len(known), _AT_ONCE):
            at = slice(start, start + _AT_ONCE)
            coefficients = self._linear.coefficients(known[at])
            crossed = np.einsum("cfo,fo->c", coefficients, self._effects)
            squared = np.einsum("cfo,cfo->c", coefficients, self._linear.correlation @ coefficients)
            risks[at] = self._start - 2.0 * crossed + squared
        return risks

    def mean_path_risks(self, orders: Orders) -> Floats:
        """Return the `mean_risks` of all prefixes of orderings, (n_orderings, n_features + 1).

        One Cholesky factor serves all prefixes. With ``C + ridge = L L'`` in this order, W = L^-1
        and u = W c, the coefficients of the first k columns are the sum of ``u_i W_i``, and their
        second moment with the penalty is the sum of the ``u_i^2``.
        """
        columns, ends = self._linear.basis.orders(orders)
        n_orderings, n_columns = columns.shape
        risks = np.full((n_orderings, n_columns + 1), self._start)
        step = max(1, _AT_ONCE // n_columns)
        for start in range(0, n_orderings, step):
            order = columns[start : start + step]
            solved = self._linear.solve_along(order, self._both)
            slopes, effects = np.split(solved, 2, axis=2)
            fitted = (slopes * (slopes - 2.0 * effects)).sum(axis=2)
            risks[start : start + step, 1:] += fitted.cumsum(axis=1)
        return np.take_along_axis(risks, ends, axis=1)

    @property
    def has_position_means(self) -> bool:  # type: ignore[override]
        """Whether `position_means` is implemented: with many columns, one for each feature."""
        return self.has_paths and self._linear.basis.is_plain

    def position_means(self, orders: Orders) -> Floats:
        """Return estimates of the values from all prefixes of orderings; see :class:`Game`."""
        found, diagonal = np.empty(orders.shape), self._linear.correlation.diagonal()
        step = max(1, _CELLS // orders.shape[1] ** 2)
        for start in range(0, len(orders), step):
            some = orders[start : start + step]
            given = self._linear.factors(some), diagonal[some], self._both[some]
            np.put_along_axis(found[start : start + step], some, mean_additions(*given), axis=1)
        return found
