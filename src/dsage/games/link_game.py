"""The game of an additive predictor on the scale of a link, with the loss of the model's game."""

from __future__ import annotations

from collections.abc import Callable
from zlib import crc32

import numpy as np

from dsage.games.additive import AdditiveRows
from dsage.games.base import Floats, Game, Mask, Orders, Rows
from dsage.games.links import Link

# Rows whose products cost as much as a factor, and the cost of an expected output.
_ROWS_A_FACTOR, _COST_OF_OUTPUT = 512, 0.25
# Rows of an ordering in a mean over very many orderings; with fewer features the same orderings,
# and with them the same rows, would come again and again.
_ROWS_OF_A_MEAN, _FEW_FEATURES = 256, 32


class LinkGame(Game):
    """The loss of what an additive predictor on another scale expects of the model's output.

    With η the output on the scale of a link, such as the probit of a probability, and z the basis
    functions of the features, η given a coalition is taken as normal, with the mean and the
    variance of the best linear predictor from z_S:

        m_S(x) = mean of η + b_S' z_S,    v_S = var(η) - b_S' c_S,

    and the output is expected to be the mean of the inverse link under that distribution. For
    cross entropy this is far more similar to the game of a classifier than squared errors are, as
    the probabilities of a classifier stay between 0 and 1 and level off.

    Risks need all rows, not just their second moments, so this is for few rows; `under` is the
    cheaper game whose first level it is.

    Parameters
    ----------
    rows : AdditiveRows
        The predictor of the scaled output, with the evaluation rows.
    scaled : array of shape (n_drawn, n_scaled)
        The scaled outputs for the rows to which the predictor was fitted.
    link : Link
        The link.
    losses : callable
        Maps predictions (n_times, n_rows, ...) and the positions of their rows to weighted losses
        (n_times, n_rows).
    feature_names : sequence of str
        The features.
    weights : array of shape (n_rows,)
        Weights of the rows, with mean one.
    under : Game, optional
        A cheaper game: the first level of this one.
    """

    has_paths = True
    weights: Floats

    def __init__(
        self,
        rows: AdditiveRows,
        scaled: Floats,
        link: Link,
        losses: Callable[[Floats, Rows], Floats],
        feature_names: tuple[str, ...],
        weights: Floats,
        under: Game | None = None,
    ) -> None:
        self.feature_names, self.weights = tuple(feature_names), weights
        self.n_rows = len(weights)
        self._rows, self._link, self._variance = rows, link, scaled.var(axis=0)
        self._least, self._most = scaled.min(axis=0), scaled.max(axis=0)
        self._losses, self._under = losses, under
        n_columns = rows.predictor.basis.n_columns
        is_sampled = len(self.feature_names) > _FEW_FEATURES
        self._n_of_a_mean = min(self.n_rows, _ROWS_OF_A_MEAN) if is_sampled else self.n_rows
        self._shuffled = np.random.default_rng(0).permutation(self.n_rows)
        # Factors of matrices, their products with the rows, and the losses of these.
        n_outputs = self._n_of_a_mean * len(self.feature_names) * scaled.shape[1]
        self.cost = float(n_columns) ** 2 * (1.0 + self._n_of_a_mean / _ROWS_A_FACTOR)
        self.cost += _COST_OF_OUTPUT * n_outputs

    def first_level(self) -> Game | None:
        """Return the cheaper game, if there is one."""
        return self._under

    def risks(self, known: Mask, rows: Rows, epoch: int = 0) -> Floats:  # noqa: ARG002
        """Return the risks of coalitions; see :class:`Game`."""
        Z, predictor = self._rows.Z(rows), self._rows.predictor
        out = np.empty((len(known), len(rows), 1))
        for coefficients, risk in zip(predictor.coefficients(known), out, strict=True):
            explained = (coefficients * predictor.slopes).sum(axis=0)
            path = (Z @ coefficients)[:, None]
            risk[:, 0] = self._risks_of(path, explained[None], rows)[0]
        return out

    def path_risks(self, orders: Orders, rows: Rows, epoch: int, needed: Mask) -> Floats:  # noqa: ARG002
        """Return the risks of all prefixes of orderings; see :class:`Game`."""
        out = np.empty((*needed.shape, len(rows), 1))
        columns, ends = self._rows.predictor.basis.orders(orders)
        Z = self._rows.Z(rows)
        for order, end, risks in zip(columns, ends, out, strict=True):
            risks[:, :, 0] = self._risks_of(*self._rows.along(order, end, Z), rows)
        return out

    def _risks_of(self, path: Floats, explained: Floats, rows: Rows) -> Floats:
        """Return risks (n_prefixes, n_rows) of predictions (n_rows, n_prefixes, n_scaled)."""
        center = np.moveaxis(path, 1, 0) + self._rows.predictor.mean
        np.clip(center, self._least, self._most, out=center)
        variance = np.maximum(self._variance - explained, 0.0)[:, None]
        return self._losses(self._link.mean(center, variance), rows)

    def mean_path_risks(self, orders: Orders) -> Floats:
        """Return the `mean_risks` of all prefixes of orderings, (n_orderings, n_features + 1).

        With many features they are means over a part of the rows, which depends on the ordering as
        if at random: so means over orderings are those over all rows, and take far less time.
        """
        needed = np.ones((1, len(self.feature_names) + 1), dtype=np.bool_)
        means = [
            self.path_risks(order[None], self._some_rows(order), 0, needed)[0].mean((1, 2))
            for order in orders
        ]
        return np.stack(means)

    def _some_rows(self, order: Rows) -> Rows:
        """Return the rows of an ordering: each row has the same chance."""
        if self._n_of_a_mean == self.n_rows:
            return np.arange(self.n_rows)
        start = crc32(np.ascontiguousarray(order, dtype=np.int64).tobytes()) % self.n_rows
        at = np.arange(start, start + self._n_of_a_mean) % self.n_rows
        return np.sort(self._shuffled[at])
