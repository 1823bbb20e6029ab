"""Factors of many features are the same from LAPACK and column by column."""

import numpy as np
import pytest

from dsage.games import LossGame
from dsage.samplers import Gaussian, conditioning


@pytest.mark.parametrize("is_determined", [False, True])
def test_factors_of_many_features_do_not_depend_on_how_they_are_made(monkeypatch, is_determined):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 30)) @ rng.normal(size=(30, 30))
    if is_determined:
        X[:, 7] = X[:, 3] - X[:, 5]
    matrix = np.corrcoef(X.T)
    slow = conditioning.lower_factor(matrix)
    monkeypatch.setattr(conditioning, "_LARGE", 10)
    quick = conditioning.lower_factor(matrix)
    np.testing.assert_allclose(quick, slow, atol=1e-12)
    assert (quick.diagonal() == 0).any() == is_determined
    assert not np.triu(quick, 1).any()
    if is_determined:
        # The column by column factor takes over.
        assert np.array_equal(quick, slow)


def test_an_ordering_in_pieces_is_prepared_once(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 3))
    y = X.sum(axis=1)
    game = LossGame(
        lambda X: X[:, 0] * X[:, 1], Gaussian().fit(X), X, y, loss="squared_error", random_state=0
    )
    made = []
    own = Gaussian.ordering
    monkeypatch.setattr(
        Gaussian, "ordering", lambda self, order: made.append(1) or own(self, order)
    )
    orders, needed = np.array([[2, 0, 1]]), np.ones((1, 4), dtype=bool)
    parts = [game.path_risks(orders, rows, 0, needed) for rows in np.split(np.arange(12), 3)]
    assert len(made) == 1
    whole = game.path_risks(orders, np.arange(12), 0, needed)
    assert np.array_equal(np.concatenate(parts, axis=2), whole)
