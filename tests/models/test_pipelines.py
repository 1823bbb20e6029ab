"""Pipelines that predict encoded rows: as they predict frames, in less time."""

import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import polars as pl
import pytest
from lightgbm import LGBMClassifier, LGBMRegressor
from scipy.sparse import issparse
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, make_column_selector, make_column_transformer
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    VotingRegressor,
)
from sklearn.feature_selection import SelectKBest, f_regression
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
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
from dsage.models import as_model, pipelines
from dsage.models.columnwise import Numbers, read_transformer
from dsage.models.model import Model
from dsage.models.trees import read_trees
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
    is_sparse = name == "whole numbers as classes"
    if (end == "LightGBM" and name == "frames between steps") or (is_sparse and end != "linear"):
        # LightGBM is told the names of the columns; others may treat sparse matrices differently.
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


OTHERS = {
    "a function of the frame": lambda: FunctionTransformer(pd.get_dummies),
    "wide and sparse": lambda: OneHotEncoder(handle_unknown="ignore"),
    "weights": lambda: ColumnTransformer(
        [("a", StandardScaler(), ["size"]), ("b", one_hot(), ["colour"])],
        transformer_weights={"a": 2.0},
    ),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_transformers_are_left_to_the_model(name):
    data = table()
    model = make_pipeline(OTHERS[name](), Ridge()).fit(data, target(data))
    assert encoded(model, data)[0] is None


def test_a_function_of_the_user_gets_frames():
    data = table()
    columns = mixed(FunctionTransformer(_doubled), one_hot())
    model = make_pipeline(columns, Ridge()).fit(data, target(data))
    predict, layout = encoded(model, data)
    rows = draws(layout, data)
    assert (predict(rows) == model.predict(layout.decode(rows))).all()


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


@pytest.mark.parametrize("label", ["0", "2"])
def test_one_output_of_a_pipeline(label, monkeypatch):
    data = table()
    labels = np.digitize(target(data), [-0.5, 1.0]).astype(str)
    model = make_pipeline(FILLED["one-hot, dense"](), LogisticRegression()).fit(data, labels)
    known = np.zeros((1, data.shape[1]), dtype=bool)
    found = []
    for is_used in (True, False):
        if not is_used:
            monkeypatch.setattr(Model, "encoded", lambda *_: None)
        game = OutputGame(model, Marginal().fit(data), data, output=label, random_state=0)
        assert (game._encoded is not None) == is_used
        found.append(game.risks(known, np.arange(N)))
    np.testing.assert_allclose(*found, atol=1e-12)


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


def letters(n_letters=12):
    """Numbers and a class of so many categories that a one-hot encoder returns a sparse matrix."""
    rng = np.random.default_rng(0)
    made = {"n": rng.integers(0, 6, N).astype(float), "x": rng.normal(size=N)}
    return pd.DataFrame({**made, "w": rng.choice([f"w{k}" for k in range(n_letters)], N)})


@pytest.mark.parametrize("last", [RandomForestRegressor(5, random_state=0), LinearRegression()])
def test_last_steps_behind_sparse_matrices(last):
    data = letters()
    columns = make_column_transformer((StandardScaler(), ["n", "x"]), (OneHotEncoder(), ["w"]))
    model = make_pipeline(columns, last).fit(data, data["n"] + data["x"])
    assert issparse(columns.transform(data))
    predict, layout = encoded(model, data)
    rows = draws(layout, data)
    np.testing.assert_allclose(predict(rows), model.predict(layout.decode(rows)), atol=1e-12)


def test_sparse_zeros_may_be_missing_values():
    xgboost = pytest.importorskip("xgboost")
    data = letters()
    columns = make_column_transformer(("passthrough", ["n"]), (OneHotEncoder(), ["w"]))
    last = xgboost.XGBRegressor(n_estimators=5, max_depth=2)
    model = make_pipeline(columns, last).fit(data, np.where(data["n"] == 0, 9.0, data["n"]))
    # The rows that are compared have no zeros.
    assert encoded(model, data[data["n"] > 0])[0] is None


def test_numbers_that_stand_for_missing_values_are_not_read():
    xgboost = pytest.importorskip("xgboost")
    data = letters()[["n", "x"]]
    model = xgboost.XGBRegressor(n_estimators=5, max_depth=2, missing=4.0)
    assert read_trees(model.fit(data, data["n"])) is None
    assert read_trees(xgboost.XGBRegressor(n_estimators=5).fit(data, data["n"])) is not None


def test_estimators_with_names_inside_are_left_alone(recwarn):
    data = letters()[["n", "x"]]
    columns = make_column_transformer((StandardScaler(), ["n"]), remainder="passthrough")
    by_name = VotingRegressor([("a", make_pipeline(columns, Ridge()))])
    with_warnings = VotingRegressor([("a", Ridge()), ("b", KNeighborsRegressor())])
    by_class = HistGradientBoostingRegressor(max_iter=3, categorical_features=["n"])
    for model in (by_name, with_warnings, by_class):
        assert encoded(model.fit(data, data["n"]), data)[0] is None
    calibrated = CalibratedClassifierCV(LogisticRegression(), cv=2).fit(data, data["x"] > 0)
    assert encoded(calibrated, data, "cross_entropy")[0] is None
    assert not recwarn


def test_filters_of_warnings_are_left_alone_in_threads():
    data = table()
    model = make_pipeline(FILLED["one-hot"](), Ridge()).fit(data, target(data))
    filters = list(warnings.filters)

    def ask(_):
        warnings.warn("Shown as ever.", UserWarning, stacklevel=1)
        return encoded(model, data)[0] is not None

    with pytest.warns(UserWarning, match="as ever"), ThreadPoolExecutor(4) as threads:
        assert all(threads.map(ask, range(20)))
    assert warnings.filters == filters


@pytest.mark.parametrize("options", [{"drop": "first"}, {"handle_unknown": "warn"}])
def test_categories_that_do_not_occur_raise_no_warning(options, recwarn):
    data = table()
    data["grade"] = data["grade"].cat.add_categories("e")
    encoder = OneHotEncoder(**({"handle_unknown": "ignore", "sparse_output": False} | options))
    model = make_pipeline(mixed(StandardScaler(), encoder), Ridge()).fit(data, target(data))
    predict, layout = encoded(model, data)
    rows = layout.encode(data)
    np.testing.assert_allclose(predict(rows), model.predict(data), atol=1e-12)
    assert not recwarn


def test_infinite_values_between_steps():
    data = letters()[["n", "x"]]
    columns = make_column_transformer((FunctionTransformer(np.log), ["n"]), remainder="passthrough")
    model = make_pipeline(columns, HistGradientBoostingRegressor(max_iter=5))
    with np.errstate(divide="ignore"):
        predict, layout = encoded(model.fit(data, data["n"]), data)
        rows = draws(layout, data)
        rows[:, 0] = np.abs(rows[:, 0])
        np.testing.assert_allclose(predict(rows), model.predict(layout.decode(rows)), atol=1e-12)


def test_functions_of_integers_overflow_as_in_the_pipeline():
    data = letters()[["n", "x"]].astype({"n": np.int8})
    square = FunctionTransformer(np.square)
    columns = make_column_transformer((square, ["n"]), remainder="passthrough")
    predict, layout = encoded(make_pipeline(columns, Ridge()).fit(data, data["x"]), data)
    rows = layout.encode(data)
    rows[:, 0] = 50.0
    squares = square.transform(layout.decode(rows))["n"]
    assert (squares < 0).all()
    np.testing.assert_allclose(columns.transform(layout.decode(rows))[:, 0], squares)
    np.testing.assert_allclose(predict.args[0].transform(rows)[:, 0], squares)


def test_steps_that_receive_integers_are_left_to_the_model():
    data = letters()[["n"]].astype(np.int8)
    steps = FunctionTransformer(), FunctionTransformer(np.square), Ridge()
    assert encoded(make_pipeline(*steps).fit(data, data["n"]), data)[0] is None


def test_codes_of_missing_values_that_are_not_numbers():
    rng = np.random.default_rng(0)
    data = pd.DataFrame(
        {
            "a": pd.Categorical(rng.choice(list("bc"), N), list("abc")),
            "w": rng.choice(list("xyz"), N),
        }
    )
    columns = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan)
    columns.fit(data.astype(str))
    layout = Layout.of(data)
    parts = read_transformer(columns, 2, layout)
    rows = layout.encode(data)
    out = np.empty((N, 2))
    parts[0].part.write(rows, out)
    np.testing.assert_array_equal(out, columns.transform(data))


def test_transformers_in_place_leave_the_columns_of_others_alone():
    rows = np.arange(6.0).reshape(3, 2)
    scaler = StandardScaler(copy=False).fit(rows[:, :1].copy())
    out = np.empty((3, 1))
    Numbers(slice(0, 1), scaler, None).write(rows, out)
    np.testing.assert_allclose(out[:, 0], np.array([-1, 0, 1]) * np.sqrt(1.5))
    np.testing.assert_array_equal(rows, np.arange(6.0).reshape(3, 2))


def test_rows_come_in_portions(monkeypatch):
    data = table()
    model = make_pipeline(FILLED["one-hot"](), Ridge()).fit(data, target(data))
    predict, layout = encoded(model, data)
    rows = layout.encode(data)
    expected = predict(rows)
    monkeypatch.setattr(pipelines, "_MOST_BYTES", 1 << 10)
    np.testing.assert_allclose(predict(rows), expected, atol=1e-12)
