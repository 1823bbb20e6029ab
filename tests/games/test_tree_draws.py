"""Draws that are predicted from masks of the leaves of trees."""

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from dsage.games import Grouped, LossGame, expected
from dsage.games.cached import Cached
from dsage.samplers import Gaussian

RNG = np.random.default_rng(3)
X = RNG.normal(size=(120, 4))
Y = X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2])
MODEL = HistGradientBoostingRegressor(max_iter=15, random_state=0).fit(X, Y)
SAMPLER = Gaussian().fit(X)
KNOWN = RNG.random((6, 4)) < 0.5
ORDERS = np.array([[2, 0, 3, 1], [1, 3, 0, 2]])


def game(model=MODEL):
    return LossGame(model, SAMPLER, X, Y, n_draws=8, random_state=0)


def risks(of):
    rows = np.arange(of.n_rows)
    along = of.path_risks(ORDERS, rows, 0, np.ones((2, 5), dtype=bool))
    return of.risks(KNOWN, rows), along


def test_trees_predict_many_draws_as_the_model_does(monkeypatch):
    # Two orderings of all rows and features are 2 * 120 * 4 * 8 draws: "many" by one.
    monkeypatch.setattr(expected, "_MANY_DRAWS", 2 * 120 * 4 * 8)
    with_trees = game()
    assert with_trees._trees is not None
    calls = []

    def predict(frame):
        calls.append(len(frame))
        return MODEL.predict(frame)

    plain = game(predict)
    assert plain._trees is None
    for one, other in zip(risks(with_trees), risks(plain), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)
    assert with_trees.n_predicted == plain.n_predicted
    assert sum(calls) >= plain.n_predicted > 0


def test_few_draws_are_predicted_by_the_model(monkeypatch):
    monkeypatch.setattr(expected, "_MANY_DRAWS", 2 * 120 * 4 * 8 + 1)
    assert game()._trees is None


@pytest.mark.parametrize("kind", ["exact", "linear"])
def test_what_is_not_drawn_has_no_trees(monkeypatch, kind):
    from sklearn.linear_model import LinearRegression

    from dsage.samplers import Marginal

    monkeypatch.setattr(expected, "_MANY_DRAWS", 1)
    model = MODEL if kind == "exact" else LinearRegression().fit(X, Y)
    sampler = Marginal().fit(X[:30]) if kind == "exact" else SAMPLER
    found = LossGame(model, sampler, X, Y, random_state=0)
    assert not found.is_drawn
    assert found._trees is None


@pytest.mark.parametrize(("n_trees", "n_rows"), [(15, 64), (80, 32)])
def test_units_of_few_trees_have_more_rows(monkeypatch, n_trees, n_rows):
    """Calls cost more than predictions; but not those of many trees, or of the model itself."""
    labels = (Y > 0).astype(int)
    # Trees of so many leaves are not put together.
    model = HistGradientBoostingClassifier(max_iter=n_trees, min_samples_leaf=5, random_state=0)
    model.fit(X, labels)
    monkeypatch.setattr(expected, "_MANY_DRAWS", 1)
    found = LossGame(model, SAMPLER, X, labels, random_state=0)
    assert found._trees.n_trees == n_trees
    for each in (found, Grouped(found, {"ab": found.feature_names[:2]}), Cached(found)):
        assert each.rows_of_unit == n_rows
    plain = LossGame(model.predict_proba, SAMPLER, X, labels, loss="cross_entropy", random_state=0)
    assert plain.rows_of_unit == 32
