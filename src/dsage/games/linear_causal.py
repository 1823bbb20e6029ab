"""A cheap game of interventions: linear structural equations and a linear model, from moments."""

from __future__ import annotations

import numpy as np

from dsage.games.base import Floats, Game, Mask, Rows
from dsage.games.linear import RIDGE
from dsage.graphs.interventions import Interventions

# Coalitions whose coefficients are in memory at a time.
_AT_ONCE = 1 << 12


class LinearCausal(Game):
    """The squared error of a linear model if features are set in linear structural equations.

    Each variable is regressed on those that its mechanism depends on, and the model's output on the
    features. With S set and the values of T received, the expected output is then a linear function
    of the row, whose coefficients follow from the weights of the model, passed on from effects to
    causes. Mean risks need the second moments of the rows alone. It is the first level of causal
    values: cheap and similar, not exact.

    Parameters
    ----------
    interventions : Interventions
        What setting features changes.
    X : array of shape (n_rows, n_features)
        Evaluation rows, classes as codes; missing numbers count as the mean.
    output, target : arrays of shape (n_rows, n_outputs)
        The model's predictions, and the targets.
    weights : array of shape (n_rows,)
        Weights of the rows.

    Examples
    --------
    >>> from dsage import Graph
    >>> rng = np.random.default_rng(0)
    >>> a = rng.normal(size=(1000, 1))
    >>> X = np.concatenate([a, a + rng.normal(size=(1000, 1))], axis=1)
    >>> chain = Interventions(Graph(["a", "b"], [("a", "b")]), ["a", "b"])
    >>> game = LinearCausal(chain, X, X[:, 1:], X[:, 1:], np.ones(1000))
    >>> game.mean_risks(np.array([[False, False], [True, False], [False, True]])).round(1)
    array([2.1, 1. , 0. ])
    """

    weights: Floats

    def __init__(
        self,
        interventions: Interventions,
        X: Floats,
        output: Floats,
        target: Floats,
        weights: Floats,
    ) -> None:
        self.interventions: Interventions = interventions
        self.feature_names = interventions.features
        self.n_rows, self.weights = len(X), weights
        shares = weights / weights.sum()
        variables = np.concatenate([X, target[:, :1]], axis=1)
        present = np.where(np.isnan(variables), 0.0, shares[:, None])
        center = (present * np.nan_to_num(variables)).sum(axis=0)
        center /= np.maximum(present.sum(axis=0), 1e-300)
        centered = np.where(np.isnan(variables), 0.0, variables - center)
        scale = np.sqrt(shares @ centered**2)
        columns = centered / np.where(scale > 0, scale, 1.0)
        moments = (columns * shares[:, None]).T @ columns
        self._slopes = [
            _regress(moments, list(each.given), each.node) for each in interventions.mechanisms
        ]
        self._Z: Floats = columns[:, :-1]
        self._moments: Floats = moments[:-1, :-1]
        mean = shares @ output
        crossed = (self._Z * shares[:, None]).T @ (output - mean)
        ridge = RIDGE * np.eye(len(crossed))
        self._model: Floats = np.linalg.solve(self._moments + ridge, crossed)
        self._rest: Floats = target - mean
        self._effects: Floats = (self._Z * shares[:, None]).T @ self._rest
        self._start = float(shares @ (self._rest**2).sum(axis=1))
        self.cost = float(len(crossed)) ** 2

    def coefficients(self, known: Mask) -> Floats:
        """Return the coefficients of coalitions, (n_coalitions, n_features, n_outputs)."""
        n_features = len(self.feature_names)
        fixed, inputs = known[:, :n_features], known[:, -n_features:]
        shape = (len(self.interventions.names), len(known), self._model.shape[1])
        actual, natural = np.zeros(shape), np.zeros(shape)
        actual[:n_features] = np.where(inputs.T[:, :, None], 0.0, self._model[:, None])
        for mechanism, slopes in zip(
            reversed(self.interventions.mechanisms), reversed(self._slopes), strict=True
        ):
            node, given, are_natural = mechanism
            passed = actual[node]
            if node < n_features:
                passed = np.where(fixed[:, node, None], 0.0, passed)
            own = natural[node] + passed
            for slope, each, is_natural in zip(slopes, given, are_natural, strict=True):
                (natural if is_natural else actual)[each] += slope * own
        set_ones = np.where(fixed.T[:, :, None], actual[:n_features], 0.0)
        received = np.where(inputs.T[:, :, None], self._model[:, None], 0.0)
        return np.moveaxis(set_ones + received, 0, 1)

    def risks(self, known: Mask, rows: Rows, epoch: int = 0) -> Floats:  # noqa: ARG002
        """Return the risks of coalitions, (n_coalitions, n_rows, 1); see :class:`Game`."""
        Z, rest = self._Z[rows], self._rest[rows]
        out = np.empty((len(known), len(rows), 1))
        for coefficients, risk in zip(self.coefficients(known), out, strict=True):
            # One product per coalition, so that its rounding does not depend on the others.
            left = rest - Z @ coefficients
            risk[:, 0] = self.weights[rows] * (left * left).sum(axis=1)
        return out

    def mean_risks(self, known: Mask) -> Floats:
        """Return the means over all rows of the risks of coalitions, (n_coalitions,)."""
        risks = np.empty(len(known))
        for start in range(0, len(known), _AT_ONCE):
            at = slice(start, start + _AT_ONCE)
            found = self.coefficients(known[at])
            crossed = np.einsum("cfo,fo->c", found, self._effects)
            squared = np.einsum("cfo,cfo->c", found, self._moments @ found)
            risks[at] = self._start - 2.0 * crossed + squared
        return risks


def _regress(moments: Floats, given: list[int], node: int) -> Floats:
    """Return the slopes of a variable on others, from second moments."""
    ridge = RIDGE * np.eye(len(given))
    found = np.linalg.solve(moments[np.ix_(given, given)] + ridge, moments[given, node])
    return np.asarray(found, dtype=np.float64)
