"""Models of every kind that `explain` takes, end to end."""

import warnings

import numpy as np
import pytest
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV

import dsage
from dsage.models import LossReason
from explain_case import SHORT, chain
from opaque_models import OpaqueLogisticRegression

OPTIONS = {"graph": None, "sampler": "gaussian", "n_orderings": 8, **SHORT}


def numbers():
    X, y = chain()
    return X[:200], y[:200], X[200:], y[200:]


def classes():
    X, y = chain()
    labels = (y > 0).astype(int)
    return X[:200], labels[:200], X[200:], labels[200:]


def check(model, rows, loss):
    found = dsage.explain(model, *rows, **OPTIONS)
    assert found.choices.loss.name == loss
    assert found.values.sum() > 0
    # b tells most of what c does; a model of few rows may prefer it.
    assert found.to_frame()["feature"][0] in ("b", "c")
    return found


@pytest.mark.parametrize(
    "make",
    [
        lambda: HistGradientBoostingRegressor(max_iter=20),
        lambda: GridSearchCV(Ridge(), {"alpha": [0.1, 1.0]}, cv=3),
    ],
)
def test_estimators_of_scikit_learn(make):
    rows = numbers()
    check(make().fit(*rows[:2]), rows, "squared_error")


@pytest.mark.parametrize("package", ["xgboost", "lightgbm"])
@pytest.mark.parametrize("kind", ["numbers", "classes"])
def test_boosters_with_the_interface_of_scikit_learn_and_native_ones(package, kind):
    module = pytest.importorskip(package)
    rows = numbers() if kind == "numbers" else classes()
    loss = "squared_error" if kind == "numbers" else "cross_entropy"
    X, y = rows[:2]
    name = {"xgboost": "XGB", "lightgbm": "LGBM"}[package]
    suffix = "Regressor" if kind == "numbers" else "Classifier"
    options = {"n_estimators": 20, **({"verbose": -1} if package == "lightgbm" else {})}
    model = getattr(module, f"{name}{suffix}")(**options).fit(X, y)
    check(model, rows, loss)
    if package == "xgboost":
        objective = "reg:squarederror" if kind == "numbers" else "binary:logistic"
        native = module.train({"objective": objective}, module.DMatrix(X, y), 20)
    else:
        objective = "regression" if kind == "numbers" else "binary"
        native = module.train(
            {"objective": objective, "verbose": -1}, module.Dataset(X, y), num_boost_round=20
        )
    check(native, rows, loss)


def test_a_module_of_pytorch():
    torch = pytest.importorskip("torch")
    rows = numbers()
    module = torch.nn.Linear(4, 1, dtype=torch.float64)
    fitted = Ridge().fit(*rows[:2])
    with torch.no_grad():
        module.weight[:] = torch.as_tensor(fitted.coef_)
        module.bias[:] = float(fitted.intercept_)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = dsage.explain(module, *rows, **OPTIONS)
    alike = dsage.explain(fitted, *rows, **OPTIONS)
    np.testing.assert_allclose(found.values.sum(), alike.values.sum(), rtol=0.2)
    assert found.to_frame()["feature"][0] == "c"
    assert "torch" in found.choices.versions


def test_any_function():
    rows = numbers()
    check(lambda X: 2 * X["c"].to_numpy(), rows, "squared_error")


@pytest.mark.parametrize("base", [Ridge(), HistGradientBoostingRegressor(max_iter=20)])
def test_a_regressor_of_a_transformed_target_is_judged_on_the_scale_of_the_target(base):
    X_train, y_train, X_test, y_test = numbers()
    low = min(y_train.min(), y_test.min()) - 1
    rows = (X_train, y_train - low, X_test, y_test - low)
    model = TransformedTargetRegressor(base, func=np.log, inverse_func=np.exp).fit(*rows[:2])
    found = check(model, rows, "squared_error")
    inner = model.regressor_
    same = dsage.explain(lambda X: np.exp(inner.predict(X)), *rows, **OPTIONS)
    np.testing.assert_allclose(found.values, same.values, rtol=1e-9)


def test_probabilities_of_a_function_are_told_in_the_choices():
    rows = classes()
    fitted = OpaqueLogisticRegression().fit(*rows[:2])
    expected = dsage.explain(fitted, *rows, **OPTIONS)
    functions = (
        fitted.predict_proba,
        lambda X: fitted.predict_proba(X)[:, 1],
        lambda X: fitted.predict_proba(X)[:, [1]],
    )
    for function in functions:
        found = dsage.explain(function, *rows, **OPTIONS)
        np.testing.assert_allclose(found.values, expected.values, rtol=1e-9)
        assert found.choices.loss.reason is LossReason.PROBABILITIES
        assert "the model returns probabilities of the target's classes" in repr(found.choices)
    boolean = (rows[0], rows[1] == 1, rows[2], rows[3] == 1)
    found = dsage.explain(fitted.predict_proba, *boolean, **OPTIONS)
    np.testing.assert_allclose(found.values, expected.values, rtol=1e-9)
