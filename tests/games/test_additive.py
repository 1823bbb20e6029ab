"""Coefficients of additive predictors along orderings: those of each prefix alone."""

import numpy as np
import pytest

from dsage.games.additive import AdditiveRows, coefficients_along
from dsage.games.functions import Functions
from dsage.games.linear import LinearPredictor

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 5)) @ (np.eye(5) + 0.3)
FUNCTIONS = Functions.fit(X, np.zeros(5, dtype=np.intp), 3)


@pytest.mark.parametrize("n_outputs", [1, 2, 12])
def test_predictions_of_prefixes_are_those_of_their_coalitions(n_outputs):
    outputs = np.sin(X @ RNG.normal(size=(5, n_outputs)))
    predictor = LinearPredictor(FUNCTIONS(X), outputs, np.ones(len(X)))
    rows = AdditiveRows(predictor, FUNCTIONS, X[:30])
    order = np.array([3, 0, 4, 1, 2])
    columns, ends = (each[0] for each in predictor.basis.orders(order[None]))
    known = np.argsort(order) < np.arange(6)[:, None]
    wanted = predictor.coefficients(known)
    factor = predictor.factors(columns[None])[0]
    gains = predictor.solve(factor, predictor.slopes[columns])
    found = coefficients_along(factor, gains, columns, ends)
    np.testing.assert_allclose(found, wanted.transpose(0, 2, 1), atol=1e-9)
    Z = rows.Z(np.arange(30))
    path, explained = rows.along(columns, ends, Z)
    np.testing.assert_allclose(path, np.einsum("rf,pfo->rpo", Z, wanted), atol=1e-9)
    sums = (wanted * predictor.slopes).sum(axis=1)
    np.testing.assert_allclose(explained, sums, atol=1e-9)
