"""Results of statsmodels as models."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LinearRegression

import dsage
from dsage.data.layout import Layout
from dsage.models import as_model, choose_loss
from dsage.models.affine import is_affine_type
from dsage.models.losses import gives_classes
from dsage.models.statsmodels_results import as_results
from explain_case import QUIET, chain
from opaque_models import OpaqueLogisticRegression

sm = pytest.importorskip("statsmodels.api")
smf = pytest.importorskip("statsmodels.formula.api")

OPTIONS = {"graph": None, "sampler": "gaussian", **QUIET}
X, Y = chain()
CODES = (Y > 0).astype(int)
TABLE = X.assign(y=Y, z=CODES, k=np.resize(["u", "v", "w"], len(X)), n=np.arange(len(X)) % 4)
NAMES = list(X.columns)


def with_constant(rows=X):
    return sm.add_constant(rows, has_constant="add")


def rows(X=X, y=Y):
    return X[:200], y[:200], X[200:], y[200:]


def plain_formula(target):
    return f"{target} ~ a + b + c + d"


# Linear regressions


def test_ols_has_the_values_of_a_linear_regression():
    expected = dsage.explain(LinearRegression().fit(X[:200], Y[:200]), *rows(), **OPTIONS)
    table = TABLE[:200]
    for results in (
        smf.ols(plain_formula("y"), table).fit(),
        smf.glm(plain_formula("y"), table, family=sm.families.Gaussian()).fit(),
    ):
        found = dsage.explain(results, *rows(), **OPTIONS)
        np.testing.assert_allclose(found.values, expected.values, rtol=1e-6)
        assert found.choices.loss.name == "squared_error"
        assert found.choices.model.name in ("OLS", "GLM")
        assert "statsmodels" in found.choices.versions


def test_a_constant_is_a_column_that_is_worth_nothing():
    expected = dsage.explain(LinearRegression().fit(X[:200], Y[:200]), *rows(), **OPTIONS)
    results = sm.OLS(Y[:200], with_constant(X[:200])).fit()
    with pytest.warns(UserWarning, match="const"):
        found = dsage.explain(results, *rows(with_constant()), **{**OPTIONS, "sampler": "gaussian"})
    values = dict(zip(found.feature_names, found.values, strict=True))
    assert abs(values["const"]) < 1e-9
    np.testing.assert_allclose([values[name] for name in NAMES], expected.values, rtol=1e-6)


def test_the_remedy_that_the_error_names_works():
    results = sm.OLS(Y[:200], with_constant(X[:200])).fit()
    found = dsage.explain(lambda X: results.predict(with_constant(X)), *rows(), **OPTIONS)
    alike = LinearRegression().fit(X[:200], Y[:200])
    expected = dsage.explain(alike.predict, *rows(), **OPTIONS)
    np.testing.assert_allclose(found.values, expected.values, rtol=1e-6)


@pytest.mark.parametrize("container", ["pandas", "numpy"])
def test_rows_without_the_constant_are_refused_with_the_remedy(container):
    features = X if container == "pandas" else X.to_numpy()
    results = sm.OLS(Y, with_constant(features)).fit()
    with pytest.raises(ValueError, match=r"constant column 'const'.*add_constant\(X, has_constant"):
        dsage.explain(results, *rows(features), **OPTIONS)


def test_other_columns_than_those_of_the_fit_are_refused():
    named = sm.OLS(Y, X).fit()
    with pytest.raises(ValueError, match="These are missing: 'b'"):
        as_model(named, "squared_error").predict(X.drop(columns="b"))
    with pytest.raises(ValueError, match="Drop 'e'"):
        as_model(named, "squared_error").predict(X.assign(e=0.0))
    unnamed = sm.OLS(Y, X.to_numpy()).fit()
    with pytest.raises(ValueError, match="of 4 columns, as OLS was fitted to; got 2"):
        as_model(unnamed, "squared_error").predict(X.to_numpy()[:, :2])


def test_columns_are_matched_by_name_in_any_order():
    results = sm.OLS(Y, with_constant()).fit()
    model = as_model(results, "squared_error")
    shuffled = with_constant()[["c", "const", "a", "d", "b"]]
    np.testing.assert_array_equal(model.predict(shuffled), results.predict(with_constant()))


@pytest.mark.parametrize("container", [pl.from_pandas, lambda frame: frame.to_numpy()])
def test_rows_of_other_containers_are_converted(container):
    results = sm.OLS(Y, X).fit()
    model = as_model(results, "squared_error")
    np.testing.assert_allclose(model.predict(container(X)), results.predict(X))


def test_a_formula_gets_the_frame_that_it_names_columns_of():
    results = smf.ols("y ~ np.tanh(a) + b * C(k)", TABLE).fit()
    model = as_model(results, "squared_error")
    features = TABLE[["a", "b", "k"]]
    np.testing.assert_allclose(model.predict(features), results.predict(features))
    np.testing.assert_allclose(model.predict(pl.from_pandas(features)), results.predict(features))
    with pytest.raises(TypeError, match=r"a data frame for OLS; got 'ndarray'.*y ~ np.tanh\(a\)"):
        model.predict(X.to_numpy())


def test_a_formula_with_classes_is_explained():
    table = TABLE.assign(y=Y + 2 * (TABLE["k"] == "v"))
    results = smf.ols("y ~ c + C(k)", table[:200]).fit()
    found = dsage.explain(
        results, *rows(table[["c", "k"]], table["y"]), graph=None, sampler="marginal",
        n_orderings=8, **QUIET,
    )  # fmt: skip
    assert found.to_frame()["feature"].tolist() == ["c", "k"]
    assert (found.values > 0.1).all()


@pytest.mark.parametrize("sampler", ["gaussian", "mix"])
def test_a_formula_of_coded_numbers_meets_no_other_code(sampler):
    code = np.where(TABLE["c"] + np.arange(len(TABLE)) % 3 > 1, 9, 5)
    table = TABLE.assign(code=code, y=Y + code)
    results = smf.ols("y ~ c + C(code)", table[:200]).fit()
    found = dsage.explain(
        results, *rows(table[["c", "code"]], table["y"]), graph=None, sampler=sampler,
        n_orderings=8, **QUIET,
    )  # fmt: skip
    assert (found.values > 0.1).all()


@pytest.mark.parametrize(
    ("make", "is_affine"),
    [
        (lambda: sm.OLS(Y, with_constant()), True),
        (lambda: sm.WLS(Y, with_constant(), weights=1 + X["a"] ** 2), True),
        (lambda: smf.ols("y ~ a + b", TABLE), True),
        (lambda: smf.glm("y ~ a", TABLE), True),
        (lambda: smf.ols("y ~ a + np.tanh(b)", TABLE), False),
        (lambda: smf.ols("y ~ a * b", TABLE), False),
        (lambda: smf.ols("y ~ a + C(k)", TABLE), False),
        (lambda: smf.glm("n ~ a", TABLE, family=sm.families.Poisson()), False),
    ],
)
def test_linear_models_are_affine_unless_their_formula_is_not(make, is_affine):
    assert is_affine_type(as_results(make().fit())) == is_affine


def test_the_map_of_an_affine_model_is_found():
    results = smf.ols(plain_formula("y"), TABLE).fit()
    found = as_model(results, "squared_error").affine(Layout.of(X), X)
    np.testing.assert_allclose(found.weights[:, 0], results.params[NAMES], rtol=1e-8)
    np.testing.assert_allclose(found.intercept, results.params["Intercept"], rtol=1e-8)


# Classes


@pytest.mark.parametrize("kind", ["logit", "glm"])
@pytest.mark.parametrize("labels", ["codes", "booleans"])
def test_a_logistic_regression_has_the_values_of_that_of_scikit_learn(kind, labels):
    if kind == "logit":
        results = smf.logit(plain_formula("z"), TABLE[:200]).fit(disp=0)
    else:
        results = smf.glm(plain_formula("z"), TABLE[:200], family=sm.families.Binomial()).fit()
    y = CODES if labels == "codes" else CODES == 1
    alike = OpaqueLogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(X[:200], y[:200])
    # Both have the same orderings and draws, so few of them do.
    options = {**OPTIONS, "n_orderings": 2}
    found = dsage.explain(results, *rows(y=y), **options)
    expected = dsage.explain(alike, *rows(y=y), **options)
    np.testing.assert_allclose(found.values, expected.values, rtol=1e-3, atol=1e-5)
    assert found.choices.loss.name == "cross_entropy"
    assert found.choices.model.classes == (0, 1)


def test_labels_that_the_model_was_not_fitted_to_are_refused():
    results = smf.logit(plain_formula("z"), TABLE).fit(disp=0)
    names = np.where(CODES, "yes", "no")
    with pytest.raises(ValueError, match=r"of the model's classes \(0, 1\)"):
        dsage.explain(results, *rows(y=names), **OPTIONS)


def test_several_classes_are_those_of_the_target():
    levels = np.digitize(Y, [-1, 1])
    results = sm.MNLogit(levels, with_constant()).fit(disp=0)
    assert gives_classes(results)
    model = as_model(results, "cross_entropy")
    np.testing.assert_allclose(
        model.predict(with_constant()), np.asarray(results.predict(with_constant()))
    )
    assert model.classes is None


def test_shares_are_numbers():
    share = 1 / (1 + np.exp(-Y))
    results = sm.GLM(share, with_constant(), family=sm.families.Binomial()).fit()
    assert not gives_classes(results)
    assert choose_loss(results, share).name == "squared_error"


# Others


def test_a_time_series_is_refused():
    arima = pytest.importorskip("statsmodels.tsa.arima.model")
    with pytest.warns(UserWarning, match="onverge"):
        results = arima.ARIMA(Y.to_numpy()[:40], order=(1, 0, 0)).fit(method_kwargs={"maxiter": 1})
    with pytest.raises(TypeError, match="predicts from the features of a row; got 'ARIMA'"):
        as_model(results, "squared_error")


def test_results_can_be_pickled():
    model = as_model(smf.ols(plain_formula("y"), TABLE).fit(), "squared_error")
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_other_models_stay_as_they_are():
    model = LinearRegression()
    assert as_results(model) is model
    frame = pd.DataFrame()
    assert as_results(frame) is frame
