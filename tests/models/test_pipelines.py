"""Pipelines that predict encoded rows: as they predict frames, in less time."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from lightgbm import LGBMClassifier, LGBMRegressor
from sklearn.compose import ColumnTransformer, make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_selection import SelectKBest, f_regression
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsRegressor
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    StandardScaler,
    TargetEncoder,
)
from sklearn.svm import SVC

from dsage.data.layout import Layout
from dsage.games import LossGame, OutputGame
from dsage.models import as_model
from dsage.models.model import Model
from dsage.samplers import Marginal

N = 300


def table(*, has_gaps=False):
    """Numbers, whole numbers and classes of several types; with gaps on request."""
    rng = np.random.default_rng(0)
    data = pd.DataFrame(
        {
            "size": rng.normal(size=N),
            "count": rng.poisson(3, size=N),
            "colour": rng.choice(["red", "green", "blue"], size=N),
            "price": np.exp(rng.normal(size=N)),
            "grade": pd.Categorical(rng.choice(list("abcd"), size=N), ordered=True),
            "is_new": rng.random(N) < 0.3,
        }
    )
    if has_gaps:
        data.loc[::7, "size"] = np.nan
        data.loc[::5, "colour"] = None
    return data


def target(data):
    effect = data["size"].fillna(0.3) + (data["colour"] == "red") - 0.3 * data["count"]
    return effect + (data["grade"] == "a") * data["price"]


NUMBERS = make_column_selector(dtype_include=float)
CLASSES = ["colour", "grade", "is_new"]


def one_hot(**options):
    return OneHotEncoder(handle_unknown="ignore", **options)


def mixed(numbers, classes, *, remainder="passthrough"):
    return make_column_transformer((numbers, NUMBERS), (classes, CLASSES), remainder=remainder)


FILLED = {
    "one-hot": lambda: mixed(StandardScaler(), one_hot()),
    "one-hot, dense": lambda: mixed(StandardScaler(), one_hot(sparse_output=False, drop="first")),
    "ordinal": lambda: mixed(PowerTransformer(), OrdinalEncoder()),
    "by target": lambda: mixed(KBinsDiscretizer(4), TargetEncoder()),
    "dropped": lambda: mixed(FunctionTransformer(np.arctan), one_hot(), remainder="drop"),
    "products": lambda: mixed(PolynomialFeatures(2), one_hot()),
    "several steps": lambda: make_pipeline(
        mixed(StandardScaler(), one_hot()),
        SelectKBest(f_regression, k=5),
        StandardScaler(with_mean=False),
    ),
    "frames between steps": lambda: mixed(
        StandardScaler(), one_hot(sparse_output=False)
    ).set_output(transform="pandas"),
    "union": lambda: mixed(
        FeatureUnion([("a", StandardScaler()), ("b", PowerTransformer())]), one_hot()
    ),
    "whole numbers as classes": lambda: make_column_transformer(
        (one_hot(), ["count"]), (one_hot(), ["colour"]), remainder="drop"
    ),
    "numbers of columns": lambda: ColumnTransformer(
        [("a", StandardScaler(), slice(0, 2)), ("b", one_hot(), [2]), ("c", "passthrough", [3])]
    ),
}
WITH_GAPS = {
    "imputed": lambda: mixed(
        make_pipeline(SimpleImputer(strategy="median"), StandardScaler()),
        make_pipeline(SimpleImputer(strategy="most_frequent"), one_hot()),
    ),
    "flagged": lambda: mixed(SimpleImputer(add_indicator=True), one_hot()),
    "unknown": lambda: mixed(
        SimpleImputer(), OrdinalEncoder(encoded_missing_value=-1), remainder="drop"
    ),
}
ENDS = {
    "linear": Ridge,
    "neighbours": KNeighborsRegressor,
    "LightGBM": lambda: LGBMRegressor(n_estimators=10, verbose=-1, n_jobs=1),
}


def encoded(model, data, loss="squared_error"):
    layout = Layout.of(data)
    return as_model(model, loss).encoded(layout, layout.encode(data)), layout


def draws(layout, data):
    """Rows that mix features of all rows, with numbers between the observed ones."""
    rng = np.random.default_rng(1)
    rows = rng.permuted(layout.encode(data), axis=0)
    is_number = layout.n_categories == 0
    rows[:, is_number] += 0.3 * rng.normal(size=(len(rows), int(is_number.sum())))
    return rows


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("name", [*FILLED, *WITH_GAPS])
def test_predictions_are_those_of_the_pipeline(name, end):
    data = table(has_gaps=name in WITH_GAPS)
    model = make_pipeline((FILLED | WITH_GAPS)[name](), ENDS[end]()).fit(data, target(data))
    predict, layout = encoded(model, data)
    if end == "LightGBM" and name == "frames between steps":
        # LightGBM is told the names of the columns.
        assert predict is None
        return
    rows = draws(layout, data)
    np.testing.assert_allclose(predict(rows), model.predict(layout.decode(rows)), atol=1e-12)


@pytest.mark.parametrize(
    "end",
    [
        LogisticRegression,
        lambda: RandomForestClassifier(10, random_state=0),
        lambda: HistGradientBoostingClassifier(max_iter=5),
    ],
)
def test_probabilities_are_those_of_the_pipeline(end):
    data = table()
    labels = np.digitize(target(data), [-0.5, 1.0]).astype(str)
    model = make_pipeline(FILLED["one-hot, dense"](), end()).fit(data, labels)
    predict, layout = encoded(model, data, "cross_entropy")
    rows = draws(layout, data)
    np.testing.assert_allclose(predict(rows), model.predict_proba(layout.decode(rows)), atol=1e-12)


@pytest.mark.parametrize("end", [HistGradientBoostingClassifier, LGBMClassifier])
def test_small_trees_are_not_called(end, monkeypatch):
    data = table(has_gaps=True)
    last = (
        end(max_iter=5)
        if end is HistGradientBoostingClassifier
        else end(n_estimators=5, verbose=-1)
    )
    columns = mixed(StandardScaler(), one_hot(sparse_output=False))
    model = make_pipeline(columns, last).fit(data, target(data) > 0)
    predict, layout = encoded(model, data, "cross_entropy")
    rows = draws(layout, data)
    expected = model.predict_proba(layout.decode(rows))
    monkeypatch.setattr(end, "predict_proba", None)
    np.testing.assert_allclose(predict(rows), expected, atol=1e-12)


def test_labels_are_votes():
    data = table()
    labels = np.where(target(data) > 0, "high", "low")
    model = make_pipeline(FILLED["one-hot"](), SVC()).fit(data, labels)
    predict, layout = encoded(model, data, "zero_one")
    rows = draws(layout, data)
    assert (predict(rows)[:, 0] == (model.predict(layout.decode(rows)) == "high")).all()


def test_a_search_predicts_as_its_best_pipeline():
    data = table()
    search = GridSearchCV(
        make_pipeline(FILLED["one-hot"](), Ridge()), {"ridge__alpha": [0.1, 1.0]}, cv=2
    ).fit(data, target(data))
    predict, layout = encoded(search, data)
    rows = draws(layout, data)
    np.testing.assert_allclose(predict(rows), search.predict(layout.decode(rows)), atol=1e-12)


def test_an_estimator_of_numbers_gets_arrays():
    data = table()[["size", "price", "count"]]
    model = MLPClassifier((5,), max_iter=500, tol=0.01, random_state=0).fit(data, data["size"] > 0)
    predict, layout = encoded(model, data, "cross_entropy")
    rows = draws(layout, data)
    np.testing.assert_allclose(predict(rows), model.predict_proba(layout.decode(rows)), atol=1e-12)
    # The estimator itself still knows its columns.
    assert list(model.feature_names_in_) == list(data)


def test_polars():
    data = pl.from_pandas(table().astype({"grade": str}))
    model = make_pipeline(
        make_column_transformer(
            (StandardScaler(), ["size", "price"]), (one_hot(), ["colour", "grade"])
        ),
        Ridge(),
    ).fit(data, target(table()))
    predict, layout = encoded(model, data)
    rows = draws(layout, data.to_pandas())
    np.testing.assert_allclose(predict(rows), model.predict(layout.decode(rows)), atol=1e-12)


def test_arrays():
    data = table()[["size", "count", "price"]].to_numpy()
    columns = make_column_transformer((StandardScaler(), [0, 2]), (one_hot(), [1]))
    model = make_pipeline(columns, Ridge()).fit(data, target(table()))
    predict, layout = encoded(model, data)
    rows = layout.encode(data)[::-1]
    np.testing.assert_allclose(predict(rows), model.predict(layout.decode(rows)), atol=1e-12)


def _doubled(X):
    return 2 * X


def _doubled(X):
    return 2 * X


OTHERS = {
    "a function": lambda: mixed(FunctionTransformer(_doubled), one_hot()),
    "a function of the frame": lambda: FunctionTransformer(pd.get_dummies),
    "weights": lambda: ColumnTransformer(
        [("a", StandardScaler(), ["size"]), ("b", one_hot(), ["colour"])],
        transformer_weights={"a": 2.0},
    ),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_transformers_are_left_to_the_model(name):
    data = table()
    model = make_pipeline(OTHERS[name](), Ridge()).fit(data, target(data))
    predict, layout = encoded(model, data)
    if name == "a function":
        # It gets frames; the classes have a table.
        rows = draws(layout, data)
        assert (predict(rows) == model.predict(layout.decode(rows))).all()
    else:
        assert predict is None


def test_a_function_has_no_steps():
    assert encoded(lambda X: np.zeros(len(X)), table())[0] is None


def test_a_replaced_method_is_left_to_the_model():
    data = table()
    columns = mixed(StandardScaler(), one_hot())
    model = make_pipeline(columns, Ridge()).fit(data, target(data))
    columns.transform = columns.transform
    assert encoded(model, data)[0] is None


def _values(model, data, monkeypatch, *, is_used):
    if not is_used:
        monkeypatch.setattr(Model, "encoded", lambda *_: None)
    game = LossGame(model, Marginal().fit(data), data, target(data), random_state=0)
    known = np.random.default_rng(0).random((4, data.shape[1])) < 0.5
    return game.risks(known, np.arange(N))


def test_risks_are_the_same(monkeypatch):
    data = table(has_gaps=True)
    model = make_pipeline(WITH_GAPS["imputed"](), KNeighborsRegressor()).fit(data, target(data))
    quick = _values(model, data, monkeypatch, is_used=True)
    np.testing.assert_allclose(quick, _values(model, data, monkeypatch, is_used=False), atol=1e-12)


def test_a_pipeline_is_not_called_for_draws(monkeypatch):
    data = table()
    model = make_pipeline(FILLED["one-hot"](), KNeighborsRegressor()).fit(data, target(data))
    game = LossGame(model, Marginal().fit(data), data, target(data), random_state=0)
    monkeypatch.setattr(Model, "predict", None)
    game.risks(np.zeros((1, data.shape[1]), dtype=bool), np.arange(N))


def test_one_output_of_a_pipeline():
    data = table()
    labels = np.digitize(target(data), [-0.5, 1.0]).astype(str)
    model = make_pipeline(FILLED["one-hot, dense"](), LogisticRegression())
    game = OutputGame(
        model.fit(data, labels), Marginal().fit(data), data, output="1", random_state=0
    )
    known = np.zeros((1, data.shape[1]), dtype=bool)
    predicted = model.predict_proba(data)[:, 1]
    # The mean over all rows of the mean prediction.
    assert abs(-game.risks(known, np.arange(N)).mean() - predicted.mean()) < 0.05


def test_it_can_be_pickled():
    data = table()
    model = make_pipeline(FILLED["one-hot"](), Ridge()).fit(data, target(data))
    predict, layout = encoded(model, data)
    rows = layout.encode(data)
    assert (pickle.loads(pickle.dumps(predict))(rows) == predict(rows)).all()


def test_predictions_are_checked():
    data = table()
    model = make_pipeline(FILLED["one-hot"](), Ridge()).fit(data, target(data))
    predict, layout = encoded(model, data)
    model[-1].coef_[:] = np.nan
    with pytest.raises(ValueError, match="prediction of Pipeline"):
        predict(layout.encode(data))
