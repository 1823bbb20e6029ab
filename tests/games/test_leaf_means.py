import itertools
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from lightgbm import LGBMRegressor
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from dsage import explain
from dsage.data.layout import Layout
from dsage.games import LossGame, leaf_means
from dsage.games.leaf_means import LeafMeans
from dsage.models import as_model
from dsage.samplers import Gaussian, Marginal

N_FEATURES = 4


def rows():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(120, N_FEATURES))
    return X, X[:, 0] + X[:, 1] * X[:, 2]


def forest(**options):
    X, y = rows()
    return RandomForestRegressor(5, random_state=0, **options).fit(X[:80], y[:80])


def game_of(model, sampler, y, **options):
    X, _ = rows()
    return LossGame(model, sampler, X[80:], y[80:], random_state=0, **options)


def all_coalitions():
    return np.array(list(itertools.product([False, True], repeat=N_FEATURES)))


def test_risks_of_a_forest_are_exact_over_all_training_rows():
    X, y = rows()
    model, background = forest(), X[:30]
    game = game_of(model, Marginal().fit(background), y)
    assert not game.is_drawn
    known = all_coalitions()
    got = game.risks(known, np.arange(40))[:, :, 0]
    for coalition, risks in zip(known, got, strict=True):
        mixed = np.where(coalition, X[80:, None], background)
        means = model.predict(mixed.reshape(-1, N_FEATURES)).reshape(40, 30).mean(axis=1)
        np.testing.assert_allclose(risks, (y[80:] - means) ** 2, atol=1e-12)


def test_probabilities_of_a_forest_are_exact_over_all_training_rows():
    X, y = rows()
    labels = np.digitize(y, [-0.5, 0.5])
    model = RandomForestClassifier(5, max_depth=3, random_state=0).fit(X[:80], labels[:80])
    game = game_of(model, Marginal().fit(X[:30]), labels, loss="brier")
    coalition = np.array([[True, False, True, False]])
    mixed = np.where(coalition[0], X[80:, None], X[:30]).reshape(-1, N_FEATURES)
    means = model.predict_proba(mixed).reshape(40, 30, 3).mean(axis=1)
    wanted = ((np.eye(3)[labels[80:]] - means) ** 2).sum(axis=1)
    found = game.risks(coalition, np.arange(40))[0, :, 0]
    np.testing.assert_allclose(found, wanted, atol=1e-12)


def test_the_risk_of_a_row_does_not_depend_on_the_rows_beside_it():
    X, y = rows()
    game = game_of(forest(), Marginal().fit(X[:30]), y)
    together = game.risks(all_coalitions(), np.arange(40))
    alone = [game.risks(all_coalitions(), np.array([at])) for at in range(40)]
    assert np.array_equal(together, np.concatenate(alone, axis=1))


@pytest.mark.parametrize("case", ["conditional", "features apart", "function", "memory"])
def test_draws_are_made_where_means_are_not_known(case):
    X, y = rows()
    model, sampler, options = forest(), Marginal().fit(X[:30]), {}
    if case == "conditional":
        sampler = Gaussian().fit(X[:30])
    elif case == "features apart":
        sampler = Marginal(joint=False).fit(X[:30])
    elif case == "function":
        model = model.predict
    else:
        options = {"max_bytes": 1_000}
    assert game_of(model, sampler, y, **options).is_drawn


def test_too_many_training_rows_do_not_pay():
    X, y = rows()
    leaves = game_of(forest(), Marginal().fit(X[:30]), y)._exact._leaves
    assert LeafMeans.pays(leaves, 1_000, 1_000, 2**28)
    assert not LeafMeans.pays(leaves, 10_000_000, 1_000, 2**60)


@pytest.mark.parametrize("n_leaves", [1, 30])
def test_conditions_are_kept_up_to_their_memory_and_number(n_leaves):
    leaves = SimpleNamespace(values=np.zeros((n_leaves, 2)), all_bits=np.zeros(3, np.uint32))
    assert LeafMeans.pays(leaves, 700, 300, 4000 * n_leaves)
    assert not LeafMeans.pays(leaves, 700, 300, 4000 * n_leaves - 1)
    most = 30_000_000 // n_leaves
    assert LeafMeans.pays(leaves, most, 1, 2**60)
    assert not LeafMeans.pays(leaves, most + 1, 1, 2**60)


def test_exact_marginal_values_agree_with_drawn_ones():
    X, y = rows()
    model = forest()
    options = {"sampler": "marginal", "random_state": 0, "progress": False}
    exact = explain(model, X[:30], y[:30], X[80:], y[80:], **options)
    drawn = explain(model.predict, X[:30], y[:30], X[80:], y[80:], **options, tolerance=0.05)
    assert exact.se.max() == 0.0
    assert np.all(np.abs(exact.values - drawn.values) <= 4 * drawn.se)


def means_of(n_background, *, with_gaps=False):
    """The means of a boosted model over rows of which some lack values."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, N_FEATURES))
    y = X[:, 0] * X[:, 1] + np.abs(X[:, 2])
    if with_gaps:
        X[rng.random(X.shape) < 0.2] = np.nan
    model = LGBMRegressor(n_estimators=10, min_child_samples=5, verbose=-1, n_jobs=1).fit(X, y)
    leaves = as_model(model, "squared_error").leaves(Layout.of(X), X)
    background, matrix = X[:n_background], X[200:]
    return model, LeafMeans(leaves, background, matrix), background, matrix


@pytest.mark.parametrize("with_gaps", [False, True])
@pytest.mark.parametrize("n_background", [1, 63, 64, 65, 130])
def test_means_along_an_ordering_are_those_of_its_coalitions(n_background, with_gaps):
    model, means, background, matrix = means_of(n_background, with_gaps=with_gaps)
    order, rows = np.array([2, 0, 3, 1]), np.array([7, 3, 50, 99])
    along = means.path_means(order, rows)
    known = np.tril(np.ones((N_FEATURES, N_FEATURES), dtype=bool), -1)[:, np.argsort(order)]
    assert np.array_equal(along, means.means(known, rows))
    mixed = np.where(known[:, None, None], matrix[rows][:, None], background)
    predicted = model.predict(mixed.reshape(-1, N_FEATURES)).reshape(mixed.shape[:3])
    np.testing.assert_allclose(along[..., 0], predicted.mean(axis=2), atol=1e-12)


@pytest.mark.parametrize("most", [1, 1000])
def test_means_do_not_depend_on_portions_of_rows(most, monkeypatch):
    order, rows = np.array([2, 0, 3, 1]), np.arange(40)
    whole = means_of(50)[1].path_means(order, rows)
    monkeypatch.setattr(leaf_means, "_PAIRS_AT_ONCE", most)
    means = means_of(50)[1]
    assert np.array_equal(means.path_means(order, rows), whole)
    alone = [means.path_means(order, rows[at : at + 1]) for at in range(40)]
    assert np.array_equal(np.concatenate(alone, axis=1), whole)


def test_leaves_with_huge_and_tiny_values_are_summed():
    _, means, background, matrix = means_of(20)
    order, rows = np.array([2, 0, 3, 1]), np.arange(40)
    usual = means.path_means(order, rows) - means._leaves.intercept
    for factor in (1e200, 1e-200):
        scaled = replace(means._leaves, values=factor * means._leaves.values)
        found = LeafMeans(scaled, background, matrix).path_means(order, rows)
        np.testing.assert_allclose((found - scaled.intercept) / factor, usual, atol=1e-12)
