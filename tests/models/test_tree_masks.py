"""Predictions from masks of leaves: those of the model, in less time."""

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier, LGBMRegressor
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LinearRegression

from dsage.data.layout import Layout
from dsage.games import LossGame, OutputGame
from dsage.models import as_model, tree_masks
from dsage.models.tree_masks import TreeMasks
from dsage.models.trees import count_leaves, read_trees
from dsage.samplers import Gaussian

N_FEATURES = 5
RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, N_FEATURES))
SIGNAL = 2 * np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * RNG.normal(size=300)
LABELS = {n: np.digitize(SIGNAL, np.quantile(SIGNAL, np.arange(1, n) / n)) for n in (2, 3)}


def xgboost(kind):
    package = pytest.importorskip("xgboost")
    return getattr(package, kind)(n_estimators=20, max_depth=3)


REGRESSORS = {
    "HistGradientBoosting": lambda: HistGradientBoostingRegressor(max_iter=20),
    "GradientBoosting": lambda: GradientBoostingRegressor(n_estimators=20),
    "stumps": lambda: GradientBoostingRegressor(n_estimators=30, max_depth=1),
    "LightGBM": lambda: LGBMRegressor(n_estimators=20, verbose=-1, n_jobs=1),
    "forest": lambda: RandomForestRegressor(20, max_leaf_nodes=20, random_state=0),
    "XGBoost": lambda: xgboost("XGBRegressor"),
}
CLASSIFIERS = {
    "HistGradientBoosting": lambda: HistGradientBoostingClassifier(max_iter=20),
    "GradientBoosting": lambda: GradientBoostingClassifier(n_estimators=20),
    "LightGBM": lambda: LGBMClassifier(n_estimators=20, verbose=-1, n_jobs=1),
    "forest": lambda: RandomForestClassifier(20, max_leaf_nodes=20, random_state=0),
    "XGBoost": lambda: xgboost("XGBClassifier"),
}


def masks_of(model, rows=X, loss="squared_error"):
    return as_model(model, loss).tree_masks(Layout.of(rows), np.asarray(rows, dtype=float))


def some_draws(rows=X, n_known=2):
    """Draws of two sets of rows: the first features are the same in all draws for a row."""
    draws = np.random.default_rng(1).permuted(np.tile(rows[:240], (4, 1)), axis=0)
    draws = draws.reshape(2, 60, 8, N_FEATURES)
    draws[1, :, :, :n_known] = draws[1, :, :1, :n_known]
    return draws


def predictions(predict, draws):
    return predict(draws.reshape(-1, N_FEATURES)).reshape(*draws.shape[:3], -1)


@pytest.mark.parametrize("name", REGRESSORS)
def test_predictions_are_those_of_a_regressor(name):
    model, draws = REGRESSORS[name]().fit(X, SIGNAL), some_draws()
    # XGBoost computes in single precision.
    tolerance = 1e-5 if name == "XGBoost" else 1e-12
    found = masks_of(model).predict(draws)
    np.testing.assert_allclose(found, predictions(model.predict, draws), atol=tolerance)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_predictions_are_those_of_a_classifier(name, n_classes):
    model, draws = CLASSIFIERS[name]().fit(X, LABELS[n_classes]), some_draws()
    tolerance = 1e-5 if name == "XGBoost" else 1e-12
    masks = masks_of(model, loss="cross_entropy")
    wanted = predictions(model.predict_proba, draws)
    assert masks.n_outputs == n_classes
    np.testing.assert_allclose(masks.predict(draws), wanted, atol=tolerance)
    np.testing.assert_allclose(masks.pick(1).predict(draws), wanted[..., [1]], atol=tolerance)


@pytest.mark.parametrize("name", ["HistGradientBoosting", "LightGBM", "XGBoost"])
def test_missing_values_go_where_the_model_sends_them(name):
    rows = X.copy()
    rows[np.random.default_rng(2).random(X.shape) < 0.2] = np.nan
    model, draws = REGRESSORS[name]().fit(rows, SIGNAL), some_draws(rows)
    found = masks_of(model, rows).predict(draws)
    np.testing.assert_allclose(found, predictions(model.predict, draws), atol=1e-5)


def test_thresholds_are_compared_in_the_precision_of_the_model():
    model = GradientBoostingRegressor(n_estimators=20).fit(X, SIGNAL)
    ends = [tree.tree_.threshold[tree.tree_.feature == 0] for tree in model.estimators_.ravel()]
    draws = np.tile(X[0], (1, 1, len(np.concatenate(ends)), 1))
    draws[..., 0] = np.nextafter(np.concatenate(ends), np.inf)
    found = masks_of(model).predict(draws)
    np.testing.assert_allclose(found, predictions(model.predict, draws), atol=1e-12)


@pytest.mark.parametrize("most", [1, 100, 1 << 17])
@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_predictions_do_not_depend_on_portions_and_threads(monkeypatch, most, n_threads, n_classes):
    model = LGBMClassifier(n_estimators=21, verbose=-1, n_jobs=1).fit(X, LABELS[n_classes])
    masks, draws = masks_of(model, loss="cross_entropy"), some_draws()
    whole = masks.predict(draws)
    monkeypatch.setattr(tree_masks, "_MASKS_AT_ONCE", most)
    monkeypatch.setattr(tree_masks, "_FEWEST_ROWS", 3)
    monkeypatch.setattr(tree_masks, "_DRAWS_A_THREAD", 10)
    monkeypatch.setattr(tree_masks, "count_threads", lambda: n_threads)
    assert np.array_equal(masks.predict(draws), whole)
    alone = [masks.predict(draws[:, [at]]) for at in range(draws.shape[1])]
    assert np.array_equal(np.concatenate(alone, axis=1), whole)
    single = [masks.predict(draws[:, :, [at]]) for at in range(draws.shape[2])]
    assert np.array_equal(np.concatenate(single, axis=2), whole)
    monkeypatch.setattr(tree_masks, "_FEW_PLACES", 0)
    assert np.array_equal(masks.predict(draws), whole)


def test_trees_with_few_leaves_are_put_together():
    stumps = GradientBoostingRegressor(n_estimators=30, max_depth=1).fit(X, SIGNAL)
    assert len(masks_of(stumps)._first) == 6
    larger = GradientBoostingRegressor(n_estimators=30, max_depth=3).fit(X, SIGNAL)
    assert len(masks_of(larger)._first) == 30


def test_a_model_that_never_splits_predicts_its_constant():
    model = LGBMRegressor(n_estimators=3, min_child_samples=1000, verbose=-1).fit(X, SIGNAL)
    masks = TreeMasks(read_trees(model), N_FEATURES)
    found = masks.predict(some_draws())
    assert np.unique(found).size == 1


@pytest.mark.parametrize(
    "model",
    [
        LinearRegression(),
        RandomForestRegressor(20, random_state=0),
        LGBMRegressor(n_estimators=1, verbose=-1),
        HistGradientBoostingRegressor(loss="poisson", max_iter=20),
    ],
)
def test_other_models_are_called(model):
    assert masks_of(model.fit(X, np.exp(SIGNAL))) is None


def test_many_features_and_large_tables_do_not_pay(monkeypatch):
    model = LGBMRegressor(n_estimators=20, verbose=-1).fit(X, SIGNAL)
    assert TreeMasks.pays(read_trees(model))
    monkeypatch.setattr(tree_masks, "_MOST_BYTES", 1000)
    assert not TreeMasks.pays(read_trees(model))
    monkeypatch.undo()
    wide = np.random.default_rng(0).normal(size=(300, 60))
    model = LGBMRegressor(n_estimators=20, verbose=-1).fit(wide, wide.sum(axis=1))
    assert not TreeMasks.pays(read_trees(model))


def test_large_trees_of_forests_are_not_read(monkeypatch):
    large = RandomForestRegressor(20, random_state=0).fit(X, SIGNAL)
    small = RandomForestRegressor(20, max_leaf_nodes=20, random_state=0).fit(X, SIGNAL)
    assert count_leaves(large) == max(each.tree_.n_leaves for each in large) > 64
    assert count_leaves(small) == 20
    assert count_leaves(LinearRegression()) == 0
    # A forest that was not fitted.
    assert count_leaves(RandomForestRegressor()) == 0
    read = []
    monkeypatch.setattr(tree_masks, "read_trees", read.append)
    assert masks_of(large) is None
    assert not read
    assert masks_of(small) is None
    assert len(read) == 1


@pytest.mark.parametrize("dtype", [np.int64, np.float32])
def test_columns_that_the_model_sees_rounded_are_left_to_it(dtype):
    rows = (10 * X).astype(dtype)
    model = LGBMRegressor(n_estimators=20, verbose=-1).fit(rows, SIGNAL)
    assert masks_of(model, rows) is None


def test_predictions_that_are_not_those_of_the_trees_are_noticed():
    model = LGBMRegressor(n_estimators=20, verbose=-1, n_jobs=1).fit(X, SIGNAL)
    found = tree_masks.find_tree_masks(
        model, lambda rows: model.predict(rows) ** 2, Layout.of(X), X
    )
    assert found is None


@pytest.mark.parametrize("columns", [None, list("abcde")])
def test_risks_with_many_draws_come_from_masks(columns):
    rows = X if columns is None else pd.DataFrame(X, columns=columns)
    model = LGBMRegressor(n_estimators=20, verbose=-1, n_jobs=1).fit(rows, SIGNAL)
    sampler, options = Gaussian().fit(rows), {"random_state": 0}
    fast = LossGame(model, sampler, rows, SIGNAL, n_draws=16, **options)
    slow = LossGame(model.predict, sampler, rows, SIGNAL, n_draws=16, **options)
    assert fast._trees is not None
    assert slow._trees is None
    assert LossGame(model, sampler, rows[:10], SIGNAL[:10], n_draws=16)._trees is None
    orders = np.array([[3, 0, 4, 1, 2]])
    asked = orders, np.arange(50), 0, np.ones((1, N_FEATURES + 1), dtype=bool)
    np.testing.assert_allclose(fast.path_risks(*asked), slow.path_risks(*asked), atol=1e-10)
    known = np.array([[True, False, True, False, False]])
    asked = known, np.arange(50)
    np.testing.assert_allclose(fast.risks(*asked), slow.risks(*asked), atol=1e-10)
    assert fast.n_predicted == slow.n_predicted


@pytest.mark.parametrize("output", [0, 2])
def test_a_single_output_comes_from_masks(output):
    model = LGBMClassifier(n_estimators=20, verbose=-1, n_jobs=1).fit(X, LABELS[3])
    options = {"output": output, "n_draws": 16, "random_state": 0}
    fast = OutputGame(model, Gaussian().fit(X), X, **options)
    assert fast._trees is not None
    known, rows = np.array([[True, False, True, False, False]]), np.arange(50)
    found = fast.risks(known, rows)
    fast._trees = None
    np.testing.assert_allclose(found, fast.risks(known, rows), atol=1e-12)


def test_features_that_are_known_to_be_the_same_change_nothing():
    model = LGBMClassifier(n_estimators=20, verbose=-1, n_jobs=1).fit(X, LABELS[3])
    masks, draws = masks_of(model, loss="cross_entropy"), some_draws()[1:]
    for n_same in range(3):
        found = masks.predict(draws, np.arange(N_FEATURES) < n_same)
        assert np.array_equal(found, masks.predict(draws))
