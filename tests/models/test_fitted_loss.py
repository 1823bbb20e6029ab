"""A regressor is judged by the loss that it was fitted with, where it tells."""

import lightgbm as lgb
import numpy as np
import pytest
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.linear_model import (
    GammaRegressor,
    HuberRegressor,
    LinearRegression,
    PoissonRegressor,
    QuantileRegressor,
    TweedieRegressor,
)
from sklearn.model_selection import GridSearchCV
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import dsage
from dsage.models.adapt import adapt
from dsage.models.fitted_loss import find_fitted_loss
from dsage.models.losses import LossReason, as_loss, decide_loss
from explain_case import SHORT

OPTIONS = {
    "graph": None,
    "sampler": "gaussian",
    "n_orderings": 2,
    "n_draws": 4,
    **SHORT,
}

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 2))
Y = RNG.poisson(np.exp(0.5 * X[:, 0])) + 1.0
HGB = HistGradientBoostingRegressor


def light(**options):
    return lgb.LGBMRegressor(n_estimators=3, verbose=-1, **options)


NAMES = {
    "PoissonRegressor": (PoissonRegressor, "poisson"),
    "GammaRegressor": (GammaRegressor, "gamma"),
    "TweedieRegressor": (lambda: TweedieRegressor(power=1.7), "tweedie(1.7)"),
    "QuantileRegressor": (lambda: QuantileRegressor(quantile=0.3), "pinball(0.3)"),
    "boosting": (lambda: HGB(loss="poisson"), "poisson"),
    "boosting, gamma": (lambda: HGB(loss="gamma"), "gamma"),
    "forest": (lambda: RandomForestRegressor(2, criterion="poisson"), "poisson"),
    "absolute": (lambda: HGB(loss="absolute_error"), "absolute_error"),
    "quantile": (lambda: HGB(loss="quantile", quantile=0.8), "pinball(0.8)"),
    "pipeline": (lambda: make_pipeline(StandardScaler(), PoissonRegressor()), "poisson"),
    "search": (lambda: GridSearchCV(PoissonRegressor(), {"alpha": [1.0]}, cv=2), "poisson"),
    "LightGBM": (lambda: light(objective="poisson"), "poisson"),
    "LightGBM, l1": (lambda: light(objective="mae"), "absolute_error"),
    "LightGBM, quantile": (lambda: light(objective="quantile", alpha=0.7), "pinball(0.7)"),
    "LightGBM, default quantile": (lambda: light(objective="quantile"), "pinball(0.9)"),
    "LightGBM, huber": (lambda: light(objective="huber", alpha=2.0), "huber(2)"),
    "LightGBM, tweedie": (
        lambda: light(objective="tweedie", tweedie_variance_power=1.2),
        "tweedie(1.2)",
    ),
}
UNKNOWN = {
    "transformed": (lambda: TransformedTargetRegressor(PoissonRegressor()), "Poisson"),
    "Huber of scikit-learn": (
        lambda: GradientBoostingRegressor(loss="huber", n_estimators=2),
        "Huber",
    ),
    "LightGBM, mape": (lambda: light(objective="mape"), "percentage"),
}
# fmt: off
SQUARED = {
    "linear": LinearRegression, "normal": lambda: TweedieRegressor(power=0),
    "boosting": HGB, "forest": lambda: RandomForestRegressor(2),
    "LightGBM": light,
    "several": lambda: MultiOutputRegressor(LinearRegression()),
}
# fmt: on


@pytest.mark.parametrize(("make", "name"), NAMES.values(), ids=NAMES)
def test_another_loss_than_squared_error_is_found_and_chosen(make, name):
    model = make().fit(X, Y)
    assert find_fitted_loss(model).name == name
    assert decide_loss(model, Y, X) == (as_loss(name), LossReason.OBJECTIVE)


@pytest.mark.parametrize(("make", "words"), UNKNOWN.values(), ids=UNKNOWN)
def test_a_loss_that_is_not_known_well_enough_is_told(make, words):
    model = make().fit(X, Y)
    assert find_fitted_loss(model).name is None
    assert decide_loss(model, Y, X).reason is LossReason.REGRESSOR
    with pytest.warns(UserWarning, match=f"fitted with the .*{words}|fitted with .*{words}"):
        dsage.explain(model, X, Y, X[:8], Y[:8], **OPTIONS)


def test_the_huber_loss_of_a_linear_model_has_the_scale_that_it_found():
    model = HuberRegressor(epsilon=1.5).fit(X, Y)
    assert find_fitted_loss(model).name == f"huber({1.5 * model.scale_:.6g})"


@pytest.mark.parametrize("make", SQUARED.values(), ids=SQUARED)
def test_squared_error_is_not_told(make):
    model = make()
    y = np.column_stack([Y, Y]) if isinstance(model, MultiOutputRegressor) else Y
    assert find_fitted_loss(model.fit(X, y)) is None


OBJECTIVES = [
    ("reg:gamma", {}, "gamma"),
    ("count:poisson", {}, "poisson"),
    ("reg:tweedie", {"tweedie_variance_power": 1.25}, "tweedie(1.25)"),
    ("reg:quantileerror", {"quantile_alpha": 0.75}, "pinball(0.75)"),
    ("reg:squaredlogerror", {}, "squared_log_error"),
    ("reg:pseudohubererror", {}, None),
]


@pytest.mark.parametrize(("objective", "params", "name"), OBJECTIVES)
@pytest.mark.parametrize("is_native", [False, True])
def test_the_objectives_of_xgboost(objective, params, name, is_native):
    xgboost = pytest.importorskip("xgboost")
    if is_native:
        model = xgboost.train({"objective": objective, **params}, xgboost.DMatrix(X, Y), 2)
    else:
        model = xgboost.XGBRegressor(n_estimators=2, objective=objective, **params).fit(X, Y)
    assert find_fitted_loss(adapt(model)).name == name
    if name is not None:
        assert decide_loss(model, Y, X) == (as_loss(name), LossReason.OBJECTIVE)


def test_the_objectives_of_native_lightgbm():
    for objective, params, name in (
        ("quantile", {"alpha": 0.7}, "pinball(0.7)"),
        ("tweedie", {"tweedie_variance_power": 1.3}, "tweedie(1.3)"),
        ("huber", {}, "huber(0.9)"),
    ):
        options = {"objective": objective, "verbose": -1, **params}
        model = lgb.train(options, lgb.Dataset(X, Y), 2)
        assert find_fitted_loss(adapt(model)).name == name


def test_the_objectives_of_catboost():
    catboost = pytest.importorskip("catboost")
    few = {"iterations": 2, "verbose": False, "allow_writing_files": False}
    for loss, name in (
        ("Poisson", "poisson"),
        ("Tweedie:variance_power=1.7", "tweedie(1.7)"),
        ("Quantile:alpha=0.8", "pinball(0.8)"),
        ("Huber:delta=2.5", "huber(2.5)"),
    ):
        model = catboost.CatBoostRegressor(loss_function=loss, **few).fit(X, Y)
        assert find_fitted_loss(model).name == name


def test_the_families_of_statsmodels():
    sm = pytest.importorskip("statsmodels.api")
    for family, name in (
        (sm.families.Poisson(), "poisson"),
        (sm.families.Gamma(sm.families.links.Log()), "gamma"),
    ):
        fitted = sm.GLM(Y, sm.add_constant(X), family=family).fit()
        assert find_fitted_loss(adapt(fitted)).name == name
    assert find_fitted_loss(adapt(sm.Poisson(Y, X).fit(disp=0))).name == "poisson"
    assert find_fitted_loss(adapt(sm.GLM(Y, X).fit())) is None


def test_the_result_says_why_the_loss_was_chosen():
    model = PoissonRegressor().fit(X, Y)
    found = dsage.explain(model, X, Y, X, Y, **OPTIONS)
    assert found.choices.loss.name == "poisson"
    assert found.choices.loss.reason is LossReason.OBJECTIVE
    assert found.choices.listing()["loss"]["reason"] == "the model was fitted with it"
    same = dsage.explain(model, X, Y, X, Y, loss="neg_mean_poisson_deviance", **OPTIONS)
    np.testing.assert_array_equal(found.values, same.values)
