import pickle
import subprocess
import sys

import lightgbm as lgb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import xgboost as xgb
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from dsage.games import LossGame, OutputGame
from dsage.models import as_model
from dsage.models.boosters import as_booster
from dsage.models.losses import as_loss, choose_loss, gives_classes
from dsage.samplers import Marginal

NAMES = ["age", "dose", "weight"]
QUIET = {"verbosity": -1, "num_threads": 1}


def numbers(n_rows=120):
    random = np.random.default_rng(0)
    X = pd.DataFrame(random.normal(size=(n_rows, 3)), columns=NAMES)
    return X, (2 * X["age"] - X["dose"] + random.normal(0, 0.1, n_rows)).to_numpy()


def mixed(n_rows=120):
    X, y = numbers(n_rows)
    kind = np.random.default_rng(1).choice(["mild", "strong", "none"], n_rows)
    X["kind"] = pd.Categorical(kind, ["none", "mild", "strong"])
    X["old"] = X["age"] > 0
    return X, y + 3 * (kind == "strong")


def codes(y, n_classes):
    return np.digitize(y, np.quantile(y, np.arange(1, n_classes) / n_classes))


def xgboost(X, y, objective="reg:squarederror", **options):
    data = xgb.DMatrix(X, label=y, enable_categorical=True)
    return xgb.train({"objective": objective, "nthread": 1, **options}, data, 4)


def lightgbm(X, y, objective="regression", **options):
    return lgb.train({"objective": objective, **QUIET, **options}, lgb.Dataset(X, label=y), 4)


TRAIN = {"xgboost": xgboost, "lightgbm": lightgbm}


def native(booster, X):
    """The booster's own predictions."""
    if isinstance(booster, lgb.Booster):
        return booster.predict(X)
    return booster.predict(xgb.DMatrix(X, enable_categorical=True))


CONTAINERS = {
    "numpy": lambda X: X.to_numpy(),
    "pandas": lambda X: X,
    "polars": pl.from_pandas,
    "pyarrow": pa.Table.from_pandas,
}


# Boosters of numbers


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("package", TRAIN)
def test_a_booster_of_numbers_predicts_as_it_does_itself_in_any_container(package, container):
    X, y = numbers()
    booster = TRAIN[package](X, y)
    assert choose_loss(booster, y).name == "squared_error"
    model = as_model(booster, "squared_error")
    assert model.name == f"{package}.Booster"
    assert model.classes is None
    np.testing.assert_array_equal(model.predict(CONTAINERS[container](X)), native(booster, X))


@pytest.mark.parametrize("package", TRAIN)
def test_columns_are_found_by_name_in_any_order(package):
    X, y = numbers()
    booster = TRAIN[package](X, y)
    predicted = as_model(booster, "squared_error").predict(X[["weight", "age", "dose"]])
    np.testing.assert_array_equal(predicted, native(booster, X))


def test_names_with_spaces_are_found_though_lightgbm_writes_them_otherwise():
    X, y = numbers()
    X = X.rename(columns={"age": "age in years"})
    booster = lightgbm(X, y)
    assert booster.feature_name()[0] == "age_in_years"
    predicted = as_model(booster, "squared_error").predict(X[["dose", "age in years", "weight"]])
    np.testing.assert_array_equal(predicted, booster.predict(X))


@pytest.mark.parametrize("package", TRAIN)
def test_a_booster_trained_on_an_array_takes_columns_by_position(package):
    X, y = numbers()
    booster = TRAIN[package](X.to_numpy(), y)
    model = as_model(booster, "squared_error")
    np.testing.assert_array_equal(model.predict(X), native(booster, X.to_numpy()))


@pytest.mark.parametrize("package", TRAIN)
@pytest.mark.parametrize("container", ["pandas", "polars", "pyarrow"])
def test_categories_and_booleans_are_those_of_the_training(package, container):
    X, y = mixed()
    booster = TRAIN[package](X, y)
    model = as_model(booster, "squared_error")
    expected = native(booster, X)
    assert len(np.unique(expected)) > 3
    np.testing.assert_array_equal(model.predict(CONTAINERS[container](X)), expected)


@pytest.mark.parametrize("package", TRAIN)
def test_strings_become_the_categories_that_the_booster_keeps(package):
    X, y = mixed()
    booster = TRAIN[package](X, y)
    some = X[X["kind"] != "none"]  # so that codes of these strings alone would be others
    texts = some.astype({"kind": str})
    np.testing.assert_array_equal(
        as_model(booster, "squared_error").predict(texts), native(booster, some)
    )


@pytest.mark.parametrize("package", TRAIN)
def test_strings_are_refused_by_name_where_the_booster_keeps_no_categories(package):
    X, y = numbers()
    texts = X.assign(dose="much")
    with pytest.raises(TypeError, match=r"must be of numbers, .* got \['dose'\]"):
        as_model(TRAIN[package](X, y), "squared_error").predict(texts)


@pytest.mark.parametrize("package", TRAIN)
def test_columns_that_are_missing_or_unknown_are_named(package):
    X, y = numbers()
    model = as_model(TRAIN[package](X, y), "squared_error")
    with pytest.raises(ValueError, match=r"exactly 'age', .* These are missing: 'dose'"):
        model.predict(X.drop(columns="dose"))
    with pytest.raises(ValueError, match=r"Drop 'height'"):
        model.predict(X.assign(height=1.0))
    with pytest.raises(
        ValueError, match=r"of shape \(n_rows, 3\); got \(120, 2\)\. Its columns are 'age'"
    ):
        model.predict(X.to_numpy()[:, :2])


@pytest.mark.parametrize("package", TRAIN)
def test_predictions_are_the_same_bits_in_any_batch_and_number_of_threads(package):
    X, y = numbers(1000)
    booster = TRAIN[package](X, y)
    model = as_model(booster, "squared_error")
    whole = model.predict(X)
    parts = np.concatenate([model.predict(X[at : at + 7]) for at in range(0, 1000, 7)])
    np.testing.assert_array_equal(whole, parts)
    if package == "xgboost":
        booster.set_param({"nthread": 2})
        np.testing.assert_array_equal(whole, model.predict(X))
    else:
        np.testing.assert_array_equal(whole, booster.predict(X, num_threads=2))


# Boosters of classes


@pytest.mark.parametrize(
    ("package", "objective"),
    [("xgboost", "binary:logistic"), ("xgboost", "binary:logitraw"), ("lightgbm", "binary")],
)
def test_a_booster_of_two_classes_gives_both_probabilities(package, objective):
    X, y = numbers()
    labels = codes(y, 2)
    booster = TRAIN[package](X, labels, objective)
    assert gives_classes(booster)
    assert choose_loss(booster, labels).name == "cross_entropy"
    predicted = as_model(booster, "cross_entropy").predict(X)
    second = native(booster, X).astype(float)
    if objective == "binary:logitraw":
        assert second.min() < 0
        second = 1 / (1 + np.exp(-second))
    np.testing.assert_allclose(predicted, np.stack((1 - second, second), axis=1), rtol=1e-6)
    assert (predicted.argmax(axis=1) == labels).mean() > 0.8


@pytest.mark.parametrize(
    ("package", "objective"),
    [
        ("xgboost", "multi:softprob"),
        ("xgboost", "multi:softmax"),
        ("lightgbm", "multiclass"),
        ("lightgbm", "multiclassova"),
    ],
)
def test_a_booster_of_several_classes_gives_probabilities_that_sum_to_one(package, objective):
    X, y = numbers()
    labels = codes(y, 3)
    booster = TRAIN[package](X, labels, objective, num_class=3)
    predicted = as_model(booster, "cross_entropy").predict(X)
    as_loss("cross_entropy").check(predicted)
    np.testing.assert_allclose(predicted.sum(axis=1), 1, rtol=1e-12)
    if objective == "multi:softmax":
        same = xgboost(X, labels, "multi:softprob", num_class=3)
        np.testing.assert_allclose(predicted, native(same, X), rtol=1e-5)
        np.testing.assert_array_equal(predicted.argmax(axis=1), native(booster, X))
    else:
        own = native(booster, X)
        np.testing.assert_allclose(predicted, own / own.sum(axis=1, keepdims=True), rtol=1e-6)


@pytest.mark.parametrize("package", TRAIN)
def test_labels_of_the_target_are_sorted_for_the_columns(package):
    X, y = numbers()
    objective = {"xgboost": "binary:logistic", "lightgbm": "binary"}[package]
    labels = codes(y, 2)
    booster = TRAIN[package](X, labels, objective)
    named = np.where(labels == 1, "sick", "healthy")
    game = LossGame(booster, Marginal().fit(X), X, named, random_state=0)
    assert game.loss.name == "cross_entropy"
    np.testing.assert_array_equal(game.target, labels)
    full = game.risks(np.ones((1, 3), bool), np.arange(len(X)))
    assert full.mean() < 0.6
    output = OutputGame(booster, Marginal().fit(X), X[:5], output=1)
    assert output.n_rows == 5


def test_objectives_of_scores_are_refused():
    X, y = numbers()
    rank = lgb.train(
        {"objective": "lambdarank", **QUIET}, lgb.Dataset(X, codes(y, 3), group=[120]), 2
    )
    for booster, name in (
        (xgboost(X, codes(y, 2), "binary:hinge"), "binary:hinge"),
        (xgboost(X, codes(y, 2), "rank:pairwise"), "rank:pairwise"),
        (rank, "lambdarank"),
    ):
        with pytest.raises(ValueError, match=f"of numbers or of probabilities; got '{name}'"):
            choose_loss(booster, y)
        with pytest.raises(ValueError, match="pass a function from rows to predictions"):
            as_model(booster, "squared_error")


def test_an_objective_of_the_users_own_gives_numbers():
    X, y = numbers()
    booster = lightgbm(X, y, lambda raw, data: (raw - data.get_label(), np.ones_like(raw)))
    assert as_booster(booster).objective == "regression"
    assert choose_loss(booster, y).name == "squared_error"


@pytest.mark.parametrize("package", TRAIN)
def test_a_booster_can_be_sent_to_workers(package):
    X, y = numbers()
    wrapped = as_booster(TRAIN[package](X, y))
    np.testing.assert_array_equal(
        pickle.loads(pickle.dumps(wrapped)).predict(X), wrapped.predict(X)
    )


# The API of scikit-learn


@pytest.mark.parametrize("container", ["numpy", "pandas", "polars"])
@pytest.mark.parametrize(
    "make",
    [
        lambda: xgb.XGBRegressor(n_estimators=4, n_jobs=1),
        lambda: lgb.LGBMRegressor(n_estimators=4, verbosity=-1, n_jobs=1),
        lambda: make_pipeline(StandardScaler(), xgb.XGBRegressor(n_estimators=4, n_jobs=1)),
    ],
)
def test_regressors_of_the_sklearn_api_are_regressors(make, container):
    X, y = numbers()
    X = CONTAINERS[container](X)
    model = make().fit(X, y)
    assert choose_loss(model, y).name == "squared_error"
    game = LossGame(model, Marginal().fit(X), X, y, random_state=0)
    np.testing.assert_array_equal(game.predictions, model.predict(X))
    # The leaves of a bare model are read, so nothing is drawn.
    n_replicates = 2 if isinstance(model, Pipeline) else 1
    assert game.risks(np.zeros((1, 3), bool), np.arange(5)).shape == (1, 5, n_replicates)


@pytest.mark.parametrize("container", ["numpy", "pandas", "polars"])
@pytest.mark.parametrize(
    ("make", "classes"),
    [
        (lambda: xgb.XGBClassifier(n_estimators=4, n_jobs=1), [0, 1, 2]),
        (
            lambda: lgb.LGBMClassifier(n_estimators=4, verbosity=-1, n_jobs=1),
            ["high", "low", "middle"],
        ),
        (
            lambda: make_pipeline(
                StandardScaler().set_output(transform="pandas"),
                lgb.LGBMClassifier(n_estimators=4, verbosity=-1, n_jobs=1),
            ),
            ["high", "low", "middle"],
        ),
    ],
)
def test_classifiers_of_the_sklearn_api_know_their_classes(make, classes, container):
    X, y = numbers()
    X = CONTAINERS[container](X)
    labels = np.array(classes)[codes(y, 3)]
    model = make().fit(X, labels)
    assert choose_loss(model, labels).name == "cross_entropy"
    game = LossGame(model, Marginal().fit(X), X, labels, random_state=0)
    assert game.model.classes.tolist() == classes
    np.testing.assert_array_equal(game.target, codes(y, 3))


@pytest.mark.parametrize("package", TRAIN)
def test_categories_reach_models_of_the_sklearn_api(package):
    X, y = mixed()
    model = {
        "xgboost": lambda: xgb.XGBRegressor(n_estimators=4, n_jobs=1, enable_categorical=True),
        "lightgbm": lambda: lgb.LGBMRegressor(n_estimators=4, verbosity=-1, n_jobs=1),
    }[package]().fit(X, y)
    game = LossGame(model, Marginal().fit(X), X, y, random_state=0)
    np.testing.assert_array_equal(game.predictions, model.predict(X))
    assert np.isfinite(game.risks(np.zeros((1, 5), bool), np.arange(5))).all()


def test_neither_package_is_imported_before_a_booster_is_given():
    use = """
import sys
from dsage.models.boosters import as_booster
as_booster(len)
sys.exit(int(bool({"xgboost", "lightgbm"} & set(sys.modules))))
"""
    done = subprocess.run([sys.executable, "-c", use], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
