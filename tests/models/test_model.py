import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.ensemble import RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import SelectKBest, f_regression
from sklearn.impute import SimpleImputer
from sklearn.linear_model import (
    Lasso,
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    RANSACRegressor,
    Ridge,
    RidgeClassifier,
    TweedieRegressor,
)
from sklearn.model_selection import GridSearchCV
from sklearn.multioutput import MultiOutputClassifier
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    SplineTransformer,
    StandardScaler,
)
from sklearn.svm import SVR, LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils import all_estimators

from dsage.data.layout import Layout
from dsage.models import Model, as_model
from dsage.models.affine import _REGRESSORS, Affine, is_affine_type
from dsage.models.losses import as_loss

NAMES = ["age", "dose", "weight"]


def numbers(n_rows=40, dtype=np.float64):
    random = np.random.default_rng(0)
    X = random.normal([0.0, 5.0, -300.0], [1.0, 0.1, 40.0], (n_rows, 3)).astype(dtype)
    y = 3.0 + X @ [1.0, -20.0, 0.01] + random.normal(0, 0.1, n_rows)
    return X, y


def labels(n_rows=40):
    X, y = numbers(n_rows)
    return X, np.where(y > np.median(y), "yes", "no")


CONTAINERS = {
    "numpy": lambda X: X,
    "pandas": lambda X: pd.DataFrame(X, columns=NAMES),
    "polars": lambda X: pl.DataFrame(X, schema=NAMES),
    "pyarrow": lambda X: pa.table({name: X[:, i] for i, name in enumerate(NAMES)}),
}


def assert_affine(model, X, rtol=1e-9):
    """The map found gives the predictions, at the rows and far from them."""
    layout = Layout.of(X)
    made = as_model(model, "squared_error")
    affine = made.affine(layout, X)
    assert isinstance(affine, Affine)
    assert affine.weights.shape == (len(layout.names), 1)
    matrix = layout.encode(X)
    far = np.vstack((matrix, 3 * matrix - 2 * matrix[::-1])).astype(matrix.dtype)
    expected = made.predict(layout.decode(far))
    np.testing.assert_allclose(affine.predict(far), expected, rtol, 10 * rtol * abs(expected).max())


def assert_not_affine(model, X):
    assert as_model(model, "squared_error").affine(Layout.of(X), X) is None


# Predictions


@pytest.mark.parametrize("container", CONTAINERS)
def test_the_model_is_given_the_container_of_the_user_and_gives_floats(container):
    seen = []

    def function(X):
        seen.append(X)
        return np.arange(len(X))

    X = CONTAINERS[container](numbers()[0])
    model = as_model(function, "squared_error")
    predicted = model.predict(X)
    assert type(seen[0]) is type(X)
    model.predict(X, is_disposable=True)
    assert seen[1] is X
    assert predicted.dtype == np.float64
    assert predicted.tolist() == list(range(40))


@pytest.mark.parametrize("container", ["numpy", "pandas", "polars"])
def test_estimators_predict_as_they_do_themselves(container):
    X, y = numbers()
    X = CONTAINERS[container](X)
    ridge = Ridge().fit(X, y)
    # The order in memory, which decides how products are rounded, may be another one in a copy.
    predicted = as_model(ridge, "squared_error").predict(X)
    np.testing.assert_allclose(predicted, ridge.predict(X), rtol=1e-14)
    tree = DecisionTreeClassifier(max_depth=2).fit(X, labels()[1])
    model = as_model(tree, "cross_entropy")
    np.testing.assert_array_equal(model.predict(X), tree.predict_proba(X))
    assert model.classes.tolist() == ["no", "yes"]


def test_classifiers_inside_pipelines_and_searches_give_probabilities():
    X, y = labels()
    for estimator in (
        make_pipeline(StandardScaler(), LogisticRegression()),
        GridSearchCV(LogisticRegression(), {"C": [1.0]}),
    ):
        model = as_model(estimator.fit(X, y), "brier")
        assert model.classes.tolist() == ["no", "yes"]
        np.testing.assert_array_equal(model.predict(X), estimator.predict_proba(X))


def test_an_object_with_predict_alone_will_do():
    class Booster:
        def predict(self, X):
            return np.full(len(X), 0.25)

    model = as_model(Booster(), "cross_entropy", classes=["a", "b"])
    assert model.name == "Booster"
    assert model.classes.tolist() == ["a", "b"]
    assert as_loss("cross_entropy").check(model.predict([[1], [2]]), model.classes).shape == (2,)


@pytest.mark.parametrize(
    "convert",
    [
        list,
        lambda p: p.astype(np.float32),
        lambda p: p.astype(np.int64),
        lambda p: p.astype(object),
        lambda p: p[:, None],
        pd.Series,
        lambda p: pd.DataFrame({"p": p}),
        pl.Series,
        lambda p: pl.DataFrame({"p": p}),
        pa.array,
        lambda p: pa.chunked_array([p]),
    ],
)
def test_predictions_of_any_container_become_a_vector_of_floats(convert):
    model = as_model(lambda X: convert(np.array([1.0, 2.0])), "squared_error")
    predicted = model.predict(np.zeros((2, 1)))
    assert type(predicted) is np.ndarray
    assert predicted.dtype == np.float64
    assert predicted.tolist() == [1, 2]


def test_several_outputs_stay_a_matrix():
    model = as_model(lambda X: np.ones((len(X), 3)), lambda y, p: p[:, 0])
    assert model.predict(np.zeros((2, 1))).shape == (2, 3)


def test_no_rows_give_no_predictions():
    model = as_model(lambda X: X[:, 0], "squared_error")
    assert model.predict(np.zeros((0, 2))).shape == (0,)


def test_a_classifier_without_probabilities_votes_for_zero_one():
    X, y = labels()
    for estimator in (LinearSVC().fit(X, y), RidgeClassifier().fit(X, y)):
        model = as_model(estimator, "zero_one")
        votes = model.predict(X)
        assert model.classes[votes.argmax(axis=1)].tolist() == estimator.predict(X).tolist()
        assert votes.sum(axis=1).tolist() == [1] * len(X)
        assert set(np.unique(votes)) == {0, 1}


def test_a_function_may_vote_with_zero_and_one():
    model = as_model(lambda X: np.array([1, 0]), "zero_one")
    assert model.predict(np.zeros((2, 1))).tolist() == [1, 0]


def test_certain_probabilities_may_be_whole_numbers():
    model = as_model(lambda X: np.array([[1, 0], [0, 1]]), "cross_entropy")
    assert model.predict(np.zeros((2, 1))).tolist() == [[1, 0], [0, 1]]


def test_a_function_loss_takes_the_probabilities_of_a_classifier():
    X, y = labels()
    model = as_model(LogisticRegression().fit(X, y), lambda y, p: p[:, 0])
    assert model.predict(X).shape == (40, 2)


def test_a_model_is_itself():
    model = as_model(lambda X: X, "squared_error")
    assert as_model(model, "squared_error") is model
    with pytest.raises(TypeError, match="classes and affine must be given with an estimator"):
        as_model(model, "squared_error", affine=True)


def test_models_survive_pickling():
    X, y = labels()
    for estimator, loss in ((LogisticRegression(), "brier"), (LinearSVC(), "zero_one")):
        model = as_model(estimator.fit(X, y), loss)
        copy = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(copy.predict(X), model.predict(X))
        assert copy.classes.tolist() == model.classes.tolist()


def test_models_have_names():
    def forecast(X):
        return X

    class Object:
        def __call__(self, X):
            return X

    named = [Ridge(), forecast, lambda X: X, Object()]
    made = [as_model(model, "squared_error") for model in named]
    assert [model.name for model in made] == ["Ridge", "forecast", "the function", "Object"]
    assert repr(made[0]) == "Model(Ridge, loss='squared_error')"


# Models that fail


def test_what_a_model_raises_is_passed_on_with_a_note():
    def broken(X):
        raise KeyError("dose")

    model = as_model(broken, "squared_error")
    with pytest.raises(KeyError, match="dose") as caught:
        model.predict(pd.DataFrame({"a": [1.0, 2.0]}))
    assert caught.value.__notes__ == [
        "Raised by broken when dsage asked it for predictions of 2 rows, passed as pandas.DataFrame."
    ]


def test_a_model_that_is_not_fitted_says_so():
    with pytest.raises(NotFittedError) as caught:
        as_model(Ridge(), "squared_error").predict(np.zeros((3, 1)))
    assert "Ridge" in caught.value.__notes__[0]


@pytest.mark.interrupts
def test_an_interrupt_passes_unchanged():
    def interrupted(X):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        as_model(interrupted, "squared_error").predict(np.zeros((3, 1)))
    assert not hasattr(caught.value, "__notes__")


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("shape", [(5,), (5, 2)])
def test_predictions_that_are_not_finite_are_counted(bad, shape):
    def function(X):
        predicted = np.zeros(shape)
        predicted.reshape(5, -1)[3:, 0] = bad
        return predicted

    model = as_model(function, lambda y, p: p)
    with pytest.raises(ValueError, match=r"function must be finite; got '2 of 5 rows .* Row 3 is"):
        model.predict(np.zeros((5, 1)))


@pytest.mark.parametrize("shape", [(4,), (6,), (1, 5), (4, 2), (0,)])
def test_predictions_of_the_wrong_length_are_refused(shape):
    model = as_model(lambda X: np.zeros(shape), lambda y, p: p)
    with pytest.raises(ValueError, match=r"the function must be of 5 rows, as X is; got 'shape \("):
        model.predict(np.zeros((5, 1)))


@pytest.mark.parametrize("shape", [(), (5, 2, 2)])
def test_predictions_of_the_wrong_shape_are_refused(shape):
    model = as_model(lambda X: np.zeros(shape), lambda y, p: p)
    with pytest.raises(
        ValueError, match=r"function must be of shape \(n_rows,\) or \(n_rows, n_out"
    ):
        model.predict(np.zeros((5, 1)))


@pytest.mark.parametrize(
    "predicted", [["a", "b"], [1, 0], [True, False], np.array(["a", 1], object)]
)
def test_labels_are_no_probabilities(predicted):
    model = as_model(lambda X: predicted, "cross_entropy")
    with pytest.raises(
        TypeError, match=r"must be probabilities for cross_entropy; got .labels, such"
    ):
        model.predict(np.zeros((2, 1)))


def test_labels_are_no_numbers():
    model = as_model(lambda X: np.array(["a", "b"]), "squared_error")
    with pytest.raises(
        TypeError, match=r"must be numbers for squared_error; got .*'cross_entropy'"
    ):
        model.predict(np.zeros((2, 1)))


@pytest.mark.parametrize("model", [3, "ridge", None])
def test_a_model_predicts_or_is_a_function(model):
    with pytest.raises(TypeError, match="model must be callable, or an object with predict"):
        as_model(model, "squared_error")


def test_a_class_is_no_model():
    with pytest.raises(TypeError, match=r"Fit an instance: Ridge\(\)\.fit\(X, y\)"):
        as_model(Ridge, "squared_error")


def test_a_classifier_is_not_judged_by_a_loss_of_numbers():
    with pytest.raises(
        TypeError, match=r"loss must be one of classes for the classifier LogisticReg"
    ):
        as_model(LogisticRegression(), "squared_error")


@pytest.mark.parametrize("loss", ["cross_entropy", "brier", lambda y, p: p])
def test_a_classifier_without_probabilities_is_refused(loss):
    X, y = labels()
    with pytest.raises(TypeError, match=r"with predict_proba for .*; got 'LinearSVC'. Wrap it in"):
        as_model(LinearSVC().fit(X, y), loss)


def test_a_classifier_of_several_targets_is_refused():
    X, y = labels()
    targets = np.column_stack((y, y))
    for estimator in (DecisionTreeClassifier(), MultiOutputClassifier(LogisticRegression())):
        with pytest.raises(
            ValueError, match=r"model must be a classifier of one target; .*2 targets"
        ):
            as_model(estimator.fit(X, targets), "brier")


def test_classes_that_are_not_those_of_the_model_are_refused():
    X, y = labels()
    fitted = LogisticRegression().fit(X, y)
    assert as_model(fitted, "brier", classes=["no", "yes"]).classes.tolist() == ["no", "yes"]
    with pytest.raises(
        ValueError, match=r"classes must be those of LogisticRegression, in its order"
    ):
        as_model(fitted, "brier", classes=["yes", "no"])


def test_classes_must_be_distinct_and_of_use():
    for classes in (["a", "a"], ["a"]):
        with pytest.raises(ValueError, match="classes must be two or more, each once"):
            as_model(lambda X: X, "brier", classes=classes)
    with pytest.raises(TypeError, match="classes must be left out for squared_error"):
        as_model(lambda X: X, "squared_error", classes=["a", "b"])


# Affine models

TYPES = dict(all_estimators())

WRAPPED = [
    SVR(kernel="linear"),
    RANSACRegressor(random_state=0),
    RANSACRegressor(Ridge(), min_samples=10, random_state=0),
    GridSearchCV(Ridge(), {"alpha": [0.1, 1.0]}),
    GridSearchCV(make_pipeline(StandardScaler(), Lasso()), {"lasso__alpha": [0.1, 1.0]}),
]


@pytest.mark.parametrize("name", sorted(_REGRESSORS & TYPES.keys()))
def test_every_type_of_linear_regression_is_affine(name):
    X, y = numbers()
    X = StandardScaler().fit_transform(X)
    if name.startswith("MultiTask"):
        y = np.column_stack((y, y**2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of convergence, and of types to be dropped
        estimator = TYPES[name]().fit(X, y)
    model = as_model(estimator, lambda y, p: p)
    affine = model.affine(Layout.of(X), X)
    np.testing.assert_allclose(affine.predict(5 * X), model.predict(5 * X), atol=1e-8)


@pytest.mark.parametrize("estimator", WRAPPED, ids=lambda estimator: type(estimator).__name__)
def test_what_only_passes_on_a_linear_regression_is_affine(estimator):
    X, y = numbers()
    assert_affine(estimator.fit(X, y), X)


PREPARED = {
    "standard": [StandardScaler()],
    "minmax": [MinMaxScaler()],
    "maxabs": [MaxAbsScaler()],
    "robust": [RobustScaler()],
    "pca": [StandardScaler(), PCA(2, whiten=True)],
    "svd": [TruncatedSVD(2)],
    "selection": [SelectKBest(f_regression, k=2)],
    "identity": [FunctionTransformer(), SimpleImputer(), "passthrough"],
    "nested": [make_pipeline(StandardScaler(), MinMaxScaler())],
    "union": [FeatureUnion([("a", StandardScaler()), ("b", PCA(1))])],
    "columns": [
        ColumnTransformer(
            [("a", StandardScaler(), [0]), ("b", "passthrough", [1]), ("c", "drop", [2])]
        )
    ],
    "remainder": [ColumnTransformer([("a", StandardScaler(), [1])], remainder=MinMaxScaler())],
}


@pytest.mark.parametrize("steps", PREPARED.values(), ids=PREPARED)
@pytest.mark.parametrize("last", [LinearRegression(), Ridge()], ids=["ols", "ridge"])
def test_pipelines_of_scalers_and_a_linear_regression_are_affine(steps, last):
    X, y = numbers()
    assert_affine(make_pipeline(*steps, last).fit(X, y), X)


@pytest.mark.parametrize("container", ["numpy", "pandas", "polars"])
def test_affine_models_of_frames_are_found(container):
    X, y = numbers()
    X = CONTAINERS[container](X)
    assert_affine(make_pipeline(StandardScaler(), Ridge()).fit(X, y), X)


def test_affine_models_of_named_columns_are_found():
    X, y = numbers()
    X = pd.DataFrame(X, columns=NAMES)
    columns = ColumnTransformer([("scaled", StandardScaler(), ["dose", "age"])])
    columns.set_output(transform="pandas")
    assert_affine(make_pipeline(columns, LinearRegression()).fit(X, y), X)


@pytest.mark.parametrize("container", ["numpy", "pandas", "polars"])
def test_affine_models_of_single_precision_are_found(container):
    X, y = numbers(dtype=np.float32)
    X = CONTAINERS[container](X)
    for estimator in (LinearRegression(), make_pipeline(StandardScaler(), Ridge())):
        assert_affine(estimator.fit(X, y.astype(np.float32)), X, rtol=1e-5)


def test_rounding_of_the_columns_does_not_reach_the_map():
    X, y = numbers()
    ridge = Ridge().fit(X, y)
    single = X.astype(np.float32)
    affine = as_model(ridge, "squared_error").affine(Layout.of(single), single)
    np.testing.assert_allclose(affine.weights[:, 0], ridge.coef_, rtol=1e-9)


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_features=st.integers(1, 6),
    n_rows=st.integers(1, 30),
    n_outputs=st.integers(1, 3),
    magnitude=st.integers(-6, 6),
)
def test_the_map_that_a_linear_regression_holds_is_found(
    seed, n_features, n_rows, n_outputs, magnitude
):
    random = np.random.default_rng(seed)
    scale = 10.0 ** random.integers(-3, 4, n_features)
    X = random.normal(10.0**magnitude, 1.0, (n_rows, n_features)) * scale
    ridge = Ridge().fit(X, np.zeros(n_rows))
    ridge.coef_ = random.normal(size=(n_outputs, n_features)) / scale
    ridge.intercept_ = random.normal(size=n_outputs)
    affine = as_model(ridge, lambda y, p: p).affine(Layout.of(X), X)
    size = 10.0**magnitude * n_features
    np.testing.assert_allclose(
        affine.weights * scale[:, None], ridge.coef_.T * scale[:, None], atol=1e-12 * max(1.0, size)
    )
    np.testing.assert_allclose(
        affine.predict(X).reshape(n_rows, n_outputs),
        ridge.predict(X).reshape(n_rows, n_outputs),
        atol=1e-12 * max(1.0, size),
    )


def test_rows_may_be_given_as_the_encoded_matrix():
    X, y = numbers()
    frame = pd.DataFrame(X, columns=NAMES)
    model = as_model(Ridge().fit(frame, y), "squared_error")
    found = model.affine(Layout.of(frame), X)
    np.testing.assert_array_equal(found.weights, model.affine(Layout.of(frame), frame).weights)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("constant", [0.0, 0.1, 1e8 / 3, -1e-8 / 3])
def test_a_constant_that_is_no_binary_fraction_is_a_constant(constant, dtype):
    X, y = numbers(37, dtype)
    X[:, 1] = constant
    ridge = Ridge().fit(X, y)
    ridge.coef_[1] = 1.5
    affine = as_model(ridge, "squared_error").affine(Layout.of(X), X)
    np.testing.assert_allclose(affine.weights[1], 1.5, rtol=1e-5)
    np.testing.assert_allclose(affine.predict(X), ridge.predict(X), rtol=1e-5)


def test_no_rows_give_no_map():
    X, y = numbers()
    model = as_model(Ridge().fit(X, y), "squared_error")
    with pytest.raises(ValueError, match=r"X must be of at least one row; got \(0, 3\)"):
        model.affine(Layout.of(X), X[:0])


def test_constant_columns_and_a_single_row_have_a_map():
    X, y = numbers()
    X[:, 1] = 7.0
    assert_affine(LinearRegression().fit(X, y), X)
    model = as_model(LinearRegression().fit(X, y), "squared_error")
    one = model.affine(Layout.of(X), X[:1])
    np.testing.assert_allclose(one.predict(X), model.predict(X), rtol=1e-9)


CURVED = {
    "tree": DecisionTreeRegressor(),
    "forest": RandomForestRegressor(5),
    "neighbours": KNeighborsRegressor(),
    "svr": SVR(kernel="rbf"),
    "poisson": PoissonRegressor(),
    "tweedie identity": TweedieRegressor(link="identity"),
    "log target": TransformedTargetRegressor(Ridge(), func=np.log, inverse_func=np.exp),
    "polynomial": make_pipeline(PolynomialFeatures(2), Ridge()),
    "spline": make_pipeline(SplineTransformer(), Ridge()),
    "quantiles": make_pipeline(QuantileTransformer(n_quantiles=10), Ridge()),
    "power": make_pipeline(PowerTransformer(), Ridge()),
    "clipped minmax": make_pipeline(MinMaxScaler(clip=True), Ridge()),
    "function": make_pipeline(FunctionTransformer(np.tanh), Ridge()),
    "imputed zeros": make_pipeline(SimpleImputer(missing_values=0.0), Ridge()),
    "curved part": make_pipeline(
        ColumnTransformer([("a", PowerTransformer(), [0])], remainder="passthrough"), Ridge()
    ),
    "curved union": make_pipeline(
        FeatureUnion([("a", StandardScaler()), ("b", PolynomialFeatures())]), Ridge()
    ),
    "nested": make_pipeline(make_pipeline(PolynomialFeatures()), Ridge()),
    "search": GridSearchCV(DecisionTreeRegressor(), {"max_depth": [2]}),
    "tree last": make_pipeline(StandardScaler(), DecisionTreeRegressor()),
    "transformer last": make_pipeline(StandardScaler(), "passthrough"),
}


@pytest.mark.parametrize("estimator", CURVED.values(), ids=CURVED)
def test_other_types_are_never_taken_for_affine(estimator):
    assert not is_affine_type(estimator)


def test_other_models_have_no_map():
    X, y = numbers()
    y = y - y.min() + 1
    for name in ("tree", "svr", "poisson", "polynomial", "clipped minmax", "search"):
        assert_not_affine(CURVED[name].fit(X, y), X)


def test_unfitted_compositions_are_not_taken_for_affine():
    columns = ColumnTransformer([("a", StandardScaler(), [0])])
    assert not is_affine_type(make_pipeline(columns, Ridge()))
    assert not is_affine_type(GridSearchCV(Ridge(), {"alpha": [1.0]}))


def test_classifiers_are_not_affine():
    X, y = labels()
    model = as_model(LogisticRegression().fit(X, y), "cross_entropy")
    assert model.affine(Layout.of(X), X) is None


class Clipped(LinearRegression):
    def predict(self, X):
        return np.clip(super().predict(X), -1, 1)


def test_a_subclass_is_not_trusted():
    X, y = numbers()
    assert_not_affine(Clipped().fit(X, y), X)


class Bent(StandardScaler):
    def transform(self, X):
        return np.tanh(super().transform(X))


def test_a_subclass_of_a_scaler_is_not_trusted():
    X, y = numbers()
    assert_not_affine(make_pipeline(Bent(), Ridge()).fit(X, y), X)


def test_an_object_whose_predict_was_replaced_is_not_trusted():
    X, y = numbers()
    model = LinearRegression().fit(X, y)
    model.predict = lambda X: X[:, 0]
    assert_not_affine(model, X)
    scaler = StandardScaler().fit(X)
    scaler.transform = lambda X: X
    assert_not_affine(make_pipeline(scaler, Ridge()).fit(X, y), X)


@pytest.mark.parametrize(
    "curve",
    [
        lambda p, y: np.clip(p, y.min(), y.max()),
        lambda p, y: np.clip(p, y.mean() - 10 * y.std(), y.mean() + 10 * y.std()),
        lambda p, y: np.maximum(p, np.quantile(y, 0.01)),
        lambda p, y: p + 1e-6 * (p - y.mean()) ** 2,
        lambda p, y: np.round(p, 6),
        lambda p, y: p + 1e-5 * y.std() * np.sin(p),
    ],
    ids=["clipped", "clipped far out", "floored", "bent", "rounded", "wavy"],
)
def test_a_trusted_type_that_lies_is_found_out(monkeypatch, curve):
    X, y = numbers()
    honest = LinearRegression.predict
    monkeypatch.setattr(LinearRegression, "predict", lambda self, X: curve(honest(self, X), y))
    model = LinearRegression().fit(X, y)
    assert is_affine_type(model)
    assert_not_affine(model, X)


def test_models_of_integers_and_classes_have_no_map():
    X, y = numbers()
    frame = pd.DataFrame(X, columns=NAMES)
    for column in (np.arange(40), np.arange(40) % 2 == 0, pd.array(range(40), dtype="Int64")):
        mixed = frame.assign(age=column)
        assert_not_affine(Ridge().fit(mixed, y), mixed)
    whole = np.arange(80).reshape(40, 2)
    assert_not_affine(Lasso().fit(whole, y), whole)
    half = X.astype(np.float16)
    assert_not_affine(Ridge().fit(half, y), half)


def test_columns_declared_discrete_have_no_map():
    X, y = numbers()
    X[:, 0] = np.round(X[:, 0])
    model = as_model(Ridge().fit(X, y), "squared_error")
    assert model.affine(Layout.of(X, discrete="X1"), X) is None


def test_a_function_is_affine_only_where_the_user_says_so():
    X, _ = numbers()

    def function(X):
        return 2.0 + X @ np.array([1.0, 0.0, -3.0])

    assert_not_affine(function, X)
    affine = as_model(function, "squared_error", affine=True).affine(Layout.of(X), X)
    np.testing.assert_allclose(affine.weights[:, 0], [1, 0, -3], atol=1e-9)
    np.testing.assert_allclose(affine.intercept, [2], atol=1e-9)


def test_a_function_of_several_outputs_can_be_affine():
    X, _ = numbers()
    weights = np.array([[1.0, 0.0], [0.0, 2.0], [0.5, 0.5]])
    model = as_model(lambda X: X @ weights, lambda y, p: p[:, 0], affine=True)
    affine = model.affine(Layout.of(X), X)
    assert affine.intercept.shape == (2,)
    np.testing.assert_allclose(affine.predict(X), X @ weights, atol=1e-9)


def test_a_function_said_to_be_affine_that_is_not_is_refused():
    X, _ = numbers()
    model = as_model(lambda X: X[:, 0] ** 2, "squared_error", affine=True)
    with pytest.raises(
        ValueError, match=r"affine must be False for the function, which is not aff"
    ):
        model.affine(Layout.of(X), X)


def test_a_function_said_to_be_affine_needs_float_columns():
    X = pd.DataFrame({"a": [0.5, 1.5], "b": [1, 2], "c": ["x", "y"]})
    model = as_model(lambda X: X["a"] + X["b"], "squared_error", affine=True)
    with pytest.raises(ValueError, match=r"classes or integers; got \['b', 'c'\]. Convert"):
        model.affine(Layout.of(X), X)


def test_the_probe_is_the_same_every_time():
    X, y = numbers()
    model = Model(Ridge().fit(X, y).predict, name="m", loss=as_loss("squared_error"), claimed=True)
    first, second = (model.affine(Layout.of(X), X) for _ in range(2))
    np.testing.assert_array_equal(first.weights, second.weights)


def test_a_forest_with_jobs_of_its_own_gives_the_same_bits_each_time():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2_000, 3))
    forest = RandomForestRegressor(50, max_depth=4, random_state=0).fit(
        X[:200], X[:200].sum(axis=1)
    )
    alone = forest.predict(X)
    model = as_model(forest.set_params(n_jobs=4), "squared_error")
    for _ in range(5):
        np.testing.assert_array_equal(model.predict(X), alone)
