"""Forests that are asked tree by tree predict what they predict themselves."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from dsage.models import forests
from dsage.models.forests import TreeByTree, ask_trees
from dsage.models.model import as_model


def table(n_rows=80):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(n_rows, 3)), columns=list("abc"))
    X["d"] = rng.choice(["low", "high"], size=n_rows)
    return X, X["a"] + (X["d"] == "low") + 0.1 * rng.normal(size=n_rows)


def encoded(forest, *, sparse=True):
    encoder = OneHotEncoder(sparse_output=sparse)
    return make_pipeline(
        make_column_transformer((encoder, ["d"]), remainder=StandardScaler()), forest
    )


@pytest.mark.parametrize("kind", [RandomForestRegressor, ExtraTreesRegressor])
def test_forests_of_numbers_predict_the_same_to_the_bit(kind):
    X, y = table()
    forest = kind(7, random_state=0).fit(X[list("abc")], y)
    predict = ask_trees(forest.predict, forest)
    assert isinstance(predict, TreeByTree)
    assert np.array_equal(predict(X[list("abc")]), forest.predict(X[list("abc")]))
    assert predict.is_same


@pytest.mark.parametrize("kind", [RandomForestClassifier, ExtraTreesClassifier])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_forests_of_classes_predict_the_same_to_the_bit(kind, n_classes):
    X, y = table()
    X = X[list("abc")].to_numpy()
    forest = kind(7, random_state=0).fit(X, np.arange(len(y)) % n_classes)
    predict = ask_trees(forest.predict_proba, forest)
    assert np.array_equal(predict(X), forest.predict_proba(X))
    assert predict.is_same


@pytest.mark.parametrize("sparse", [True, False])
def test_pipelines_that_end_in_a_forest_predict_the_same_to_the_bit(sparse):
    X, y = table()
    model = encoded(RandomForestRegressor(7, random_state=0), sparse=sparse).fit(X, y)
    predict = ask_trees(model.predict, model)
    assert np.array_equal(predict(X), model.predict(X))
    assert predict.is_same


def test_models_use_the_trees_and_can_be_pickled():
    X, y = table()
    X = X[list("abc")]
    forest = RandomForestClassifier(7, random_state=0).fit(X, y > 0)
    model = pickle.loads(pickle.dumps(as_model(forest, "cross_entropy")))
    assert isinstance(model._function, TreeByTree)
    assert np.array_equal(model.predict(X), forest.predict_proba(X))


class Shifted(RandomForestRegressor):
    """A forest of another kind."""

    def predict(self, X):
        return super().predict(X) + 1.0


def test_other_kinds_of_forests_are_left_alone():
    X, y = table()
    X = X[list("abc")].to_numpy()
    shifted = Shifted(3, random_state=0).fit(X, y)
    assert ask_trees(shifted.predict, shifted) == shifted.predict
    several = RandomForestRegressor(3, random_state=0).fit(X, X[:, :2])
    assert ask_trees(several.predict, several) == several.predict
    votes = RandomForestClassifier(3, random_state=0).fit(X, y > 0)
    assert ask_trees(votes.predict, votes) == votes.predict
    changed = RandomForestRegressor(3, random_state=0).fit(X, y)
    changed.predict = lambda X: np.zeros(len(X))
    assert ask_trees(changed.predict, changed) is changed.predict


def test_a_forest_that_does_not_average_its_trees_predicts_itself():
    X, y = table()
    X = X[list("abc")].to_numpy()
    forest = RandomForestRegressor(3, random_state=0).fit(X, y)
    predict = TreeByTree(lambda X: forest.predict(X) + 1.0, forest)
    assert np.array_equal(predict(X), forest.predict(X) + 1.0)
    assert predict.is_same is False


def test_errors_of_a_forest_are_its_own():
    X, y = table()
    X = X[list("abc")]
    forest = RandomForestRegressor(3, random_state=0).fit(X, y)
    model = as_model(forest, "squared_error")
    model.predict(X)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(X.rename(columns={"a": "other"}))
    with pytest.raises(ValueError, match="infinity"):
        model.predict(X.assign(a=np.inf))


def test_threads_do_not_change_predictions(monkeypatch):
    X, y = table()
    X = X[list("abc")]
    forest = RandomForestClassifier(7, random_state=0).fit(X, y > 0)
    many = pd.concat([X] * 50)
    monkeypatch.setattr(forests, "count_threads", lambda: 3)
    predict = ask_trees(forest.predict_proba, forest)
    assert np.array_equal(predict(many), forest.predict_proba(many))


def test_there_is_one_thread_without_openmp(monkeypatch):
    assert forests.count_threads() >= 1
    monkeypatch.delitem(forests.sys.modules, "sklearn.utils._openmp_helpers")
    assert forests.count_threads() == 1


def _infinite(X):
    return X.assign(a=np.inf)


def _too_large(X):
    return X.assign(b=1e300)


def _in_another_order(X):
    return X[list("cba")]


@pytest.mark.parametrize("change", [_infinite, _too_large, _in_another_order])
def test_rows_that_the_forest_refuses_are_refused(change):
    X, y = table()
    X = X[list("abc")]
    forest = RandomForestRegressor(3, random_state=0).fit(X, y)
    predict = ask_trees(forest.predict, forest)
    predict(X)
    message = r"infinity|too large|feature names"
    with np.errstate(over="ignore"), pytest.raises(ValueError, match=message):
        predict(change(X))


def test_rows_that_are_in_order_are_not_checked_again(monkeypatch):
    X, y = table()
    X = X[list("abc")]
    forest = RandomForestRegressor(3, random_state=0).fit(X, y)
    predict = ask_trees(forest.predict, forest)
    expected = forest.predict(X)
    predict(X)
    monkeypatch.setattr(type(forest), "_validate_X_predict", None)
    assert np.array_equal(predict(X), expected)
