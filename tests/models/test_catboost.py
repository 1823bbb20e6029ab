"""CatBoost: classes in columns, probabilities of the base class, texts and categories."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import dsage
from dsage.models import LossReason, as_model
from dsage.models.catboost_model import as_catboost
from dsage.models.losses import gives_classes
from explain_case import QUIET

catboost = pytest.importorskip("catboost")

FEW = {
    "iterations": 8,
    "depth": 3,
    "verbose": False,
    "allow_writing_files": False,
    "thread_count": 1,
}
RNG = np.random.default_rng(0)
X = pd.DataFrame(
    {"a": RNG.normal(size=240), "b": RNG.normal(size=240), "k": RNG.choice(["u", "v", "w"], 240)}
)
Y = 2 * X["a"] + 2.0 * (X["k"] == "v") + 0.3 * RNG.normal(size=240)
LEVELS = np.array(["lo", "mid", "hi"])[np.digitize(Y, [-1, 1])]
OPTIONS = {"graph": None, "sampler": "marginal", "n_orderings": 8, **QUIET}


def rows(X=X, y=Y):
    return X[:160], y[:160], X[160:], y[160:]


FRAMES = {
    "texts": lambda X: X,
    "categories": lambda X: X.astype({"k": "category"}),
    "polars": pl.from_pandas,
}


@pytest.mark.parametrize("container", FRAMES)
def test_a_regressor_has_the_values_of_its_predictions_as_a_function(container):
    frame = FRAMES[container](X)
    model = catboost.CatBoostRegressor(cat_features=["k"], **FEW).fit(X[:160], Y[:160])
    found = dsage.explain(model, *rows(frame), **OPTIONS)
    same = dsage.explain(model.predict, *rows(frame), **OPTIONS)
    np.testing.assert_array_equal(found.values, same.values)
    assert found.choices.loss.name == "squared_error"
    assert found.choices.loss.reason is LossReason.REGRESSOR
    assert found.to_frame()["feature"].tolist() == ["a", "k", "b"]


@pytest.mark.parametrize("container", ["texts", "categories"])
def test_a_classifier_of_three_has_the_values_of_its_probabilities(container):
    frame = FRAMES[container](X)
    model = catboost.CatBoostClassifier(cat_features=["k"], **FEW).fit(frame[:160], LEVELS[:160])
    found = dsage.explain(model, *rows(frame, LEVELS), **OPTIONS)
    same = dsage.explain(
        model.predict_proba,
        *rows(frame, LEVELS),
        classes=["hi", "lo", "mid"],
        **OPTIONS,
    )
    np.testing.assert_array_equal(found.values, same.values)
    assert found.choices.loss.name == "cross_entropy"
    assert found.choices.model.classes == ("hi", "lo", "mid")


@pytest.mark.parametrize("labels", [Y > 0, (Y > 0).astype(int), np.where(Y > 0, "yes", "no")])
def test_classifiers_of_two(labels):
    model = catboost.CatBoostClassifier(**FEW).fit(X[["a", "b"]][:160], labels[:160])
    found = dsage.explain(model, *rows(X[["a", "b"]], labels), **{**OPTIONS, "sampler": "gaussian"})
    assert found.choices.loss.name == "cross_entropy"
    assert found.values[0] > found.values[1]


@pytest.mark.filterwarnings("ignore:With zero_one, few draws may leave a bias")
def test_its_classes_in_a_column_are_votes():
    model = catboost.CatBoostClassifier(cat_features=["k"], **FEW).fit(X[:160], LEVELS[:160])
    assert model.predict(X).shape == (240, 1)
    with pytest.warns(UserWarning, match="returns classes"):
        found = dsage.explain(model.predict, *rows(y=LEVELS), **OPTIONS)
    assert found.choices.loss.name == "zero_one"
    given = dsage.explain(model.predict, *rows(y=LEVELS), loss="zero_one", **OPTIONS)
    np.testing.assert_array_equal(found.values, given.values)
    wrong = np.mean(model.predict(X[160:])[:, 0] != LEVELS[160:])
    most = np.mean(LEVELS[160:] != "mid")
    assert found.values.sum() < most - wrong + 0.3


@pytest.mark.parametrize(
    ("loss", "labels"), [("Logloss", (Y > 0).astype(int)), ("MultiClass", LEVELS)]
)
def test_the_base_class_is_asked_for_probabilities(loss, labels):
    numbers = X[["a", "b"]]
    model = catboost.CatBoost({"loss_function": loss, **FEW}).fit(numbers, labels)
    assert gives_classes(model)
    found = as_model(model, "cross_entropy")
    expected = model.predict(numbers, prediction_type="Probability")
    np.testing.assert_array_equal(found.predict(numbers), expected)
    assert found.classes.tolist() == sorted(set(labels.tolist()))
    assert found.name == "CatBoost"


def test_the_base_class_of_numbers_stays_as_it_is():
    model = catboost.CatBoost({"loss_function": "RMSE", **FEW}).fit(X[["a", "b"]], Y)
    assert as_catboost(model) is model
    found = as_model(model, "squared_error").predict(X[["a", "b"]])
    np.testing.assert_array_equal(found, model.predict(X[["a", "b"]]))
