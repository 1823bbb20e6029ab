import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMRegressor
from sklearn.ensemble import (
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeClassifier

from dsage.data.layout import Layout
from dsage.models import as_model

N_FEATURES = 5


def rows(*, with_gaps=False):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, N_FEATURES))
    y = 2 * np.sin(X[:, 0]) + X[:, 1] * X[:, 2]
    if with_gaps:
        X[rng.random(X.shape) < 0.1] = np.nan
    return X, y


def boosters():
    xgboost = pytest.importorskip("xgboost")
    return xgboost.XGBRegressor(n_estimators=8, max_depth=4)


REGRESSORS = {
    "forest": lambda: RandomForestRegressor(5, random_state=0),
    "extra trees": lambda: ExtraTreesRegressor(5, random_state=0),
    "boosting": lambda: HistGradientBoostingRegressor(max_iter=8, min_samples_leaf=5),
    "LightGBM": lambda: LGBMRegressor(n_estimators=8, min_child_samples=5, verbose=-1, n_jobs=1),
    "XGBoost": boosters,
}


def leaves_of(model, X, loss="squared_error"):
    return as_model(model, loss).leaves(Layout.of(X), np.asarray(X, dtype=float))


@pytest.mark.parametrize("with_gaps", [False, True])
@pytest.mark.parametrize("name", REGRESSORS)
def test_the_sum_over_leaves_is_the_prediction_with_missing_values_too(name, with_gaps):
    X, y = rows(with_gaps=with_gaps)
    model = REGRESSORS[name]().fit(X[:100], y[:100])
    leaves = leaves_of(model, X)
    # XGBoost computes in single precision.
    tolerance = 1e-5 if name == "XGBoost" else 1e-12
    np.testing.assert_allclose(leaves.predict(X)[:, 0], model.predict(X), atol=tolerance)


def test_gradient_boosting_is_read_with_its_learning_rate():
    X, y = rows()
    model = GradientBoostingRegressor(n_estimators=8, learning_rate=0.3).fit(X, y)
    np.testing.assert_allclose(leaves_of(model, X).predict(X)[:, 0], model.predict(X), atol=1e-12)


@pytest.mark.parametrize("make", [DecisionTreeClassifier, RandomForestClassifier])
def test_probabilities_of_trees_and_forests_are_sums_over_leaves(make):
    X, y = rows()
    model = make(max_depth=4, random_state=0).fit(X, np.digitize(y, [-1, 1]))
    leaves = leaves_of(model, X, "cross_entropy")
    np.testing.assert_allclose(leaves.predict(X), model.predict_proba(X), atol=1e-12)


def test_models_whose_predictions_are_no_sums_over_leaves_have_none():
    X, y = rows()
    assert leaves_of(LinearRegression().fit(X, y), X) is None
    classifier = HistGradientBoostingClassifier(max_iter=3).fit(X, y > 0)
    assert leaves_of(classifier, X, "cross_entropy") is None
    poisson = HistGradientBoostingRegressor(loss="poisson", max_iter=3).fit(X, np.exp(y))
    assert leaves_of(poisson, X) is None


def test_splits_of_classes_are_not_read():
    X, y = rows()
    table = pd.DataFrame(X).rename(columns=str)
    table["0"] = pd.Categorical(np.digitize(X[:, 0], [-1, 0, 1]).astype(str))
    model = LGBMRegressor(n_estimators=3, verbose=-1, n_jobs=1).fit(table, y)
    assert as_model(model, "squared_error").leaves(Layout.of(table), X) is None


def test_a_model_that_predicts_something_else_than_its_trees_is_not_read():
    class Doubled(RandomForestRegressor):
        def predict(self, X):
            return 2 * super().predict(X)

    X, y = rows()
    model = Doubled(3, random_state=0).fit(X, y)
    assert leaves_of(model, X) is None
    plain = RandomForestRegressor(3, random_state=0).fit(X, y)
    own = plain.predict
    plain.predict = lambda X: own(X) ** 2
    assert leaves_of(plain, X) is None
