"""The loss that a regressor was fitted with is told where it is not the loss that judges it."""

import lightgbm as lgb
import numpy as np
import pytest
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import (
    GammaRegressor,
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
from explain_case import QUIET

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 2))
Y = RNG.poisson(np.exp(0.5 * X[:, 0])) + 1.0
HGB = HistGradientBoostingRegressor

WORDS = {
    "PoissonRegressor": (PoissonRegressor, "Poisson"),
    "GammaRegressor": (GammaRegressor, "gamma"),
    "TweedieRegressor": (lambda: TweedieRegressor(power=1.5), "Tweedie"),
    "boosting": (lambda: HGB(loss="poisson"), "Poisson"),
    "forest": (lambda: RandomForestRegressor(2, criterion="poisson"), "Poisson"),
    "absolute": (lambda: HGB(loss="absolute_error"), "absolute error"),
    "quantile": (lambda: HGB(loss="quantile", quantile=0.8), "pinball"),
    "pipeline": (lambda: make_pipeline(StandardScaler(), PoissonRegressor()), "Poisson"),
    "search": (lambda: GridSearchCV(PoissonRegressor(), {"alpha": [1.0]}, cv=2), "Poisson"),
    "transformed": (lambda: TransformedTargetRegressor(PoissonRegressor()), "Poisson"),
    "LightGBM": (
        lambda: lgb.LGBMRegressor(n_estimators=3, objective="poisson", verbose=-1),
        "Poisson",
    ),
    "LightGBM, l1": (
        lambda: lgb.LGBMRegressor(n_estimators=3, objective="mae", verbose=-1),
        "absolute",
    ),
}
# fmt: off
SQUARED = {
    "linear": LinearRegression, "normal": lambda: TweedieRegressor(power=0),
    "boosting": HGB, "forest": lambda: RandomForestRegressor(2),
    "LightGBM": lambda: lgb.LGBMRegressor(n_estimators=3, verbose=-1),
    "several": lambda: MultiOutputRegressor(LinearRegression()),
}
# fmt: on


@pytest.mark.parametrize(("make", "words"), WORDS.values(), ids=WORDS)
def test_another_loss_than_squared_error_is_found(make, words):
    assert words in find_fitted_loss(make().fit(X, Y)).words


@pytest.mark.parametrize("make", SQUARED.values(), ids=SQUARED)
def test_squared_error_is_not_told(make):
    model = make()
    y = np.column_stack([Y, Y]) if isinstance(model, MultiOutputRegressor) else Y
    assert find_fitted_loss(model.fit(X, y)) is None


@pytest.mark.parametrize(("objective", "words"), [("reg:gamma", "gamma"), ("count:poisson", "Poi")])
@pytest.mark.parametrize("is_native", [False, True])
def test_the_objectives_of_xgboost(objective, words, is_native):
    xgboost = pytest.importorskip("xgboost")
    if is_native:
        model = xgboost.train({"objective": objective}, xgboost.DMatrix(X, Y), 2)
    else:
        model = xgboost.XGBRegressor(n_estimators=2, objective=objective).fit(X, Y)
    assert words in find_fitted_loss(adapt(model)).words


def test_the_objectives_of_catboost():
    catboost = pytest.importorskip("catboost")
    few = {"iterations": 2, "verbose": False, "allow_writing_files": False}
    for loss, words in (("Poisson", "Poisson"), ("Tweedie:variance_power=1.5", "Tweedie")):
        model = catboost.CatBoostRegressor(loss_function=loss, **few).fit(X, Y)
        assert words in find_fitted_loss(model).words


def test_the_families_of_statsmodels():
    sm = pytest.importorskip("statsmodels.api")
    for family, words in (
        (sm.families.Poisson(), "Poisson"),
        (sm.families.Gamma(sm.families.links.Log()), "gamma"),
    ):
        assert (
            words
            in find_fitted_loss(adapt(sm.GLM(Y, sm.add_constant(X), family=family).fit())).words
        )
    assert "Poisson" in find_fitted_loss(adapt(sm.Poisson(Y, X).fit(disp=0))).words
    assert find_fitted_loss(adapt(sm.GLM(Y, X).fit())) is None


def test_quantiles_are_named():
    assert find_fitted_loss(HGB(loss="quantile", quantile=0.8)).name == "pinball(0.8)"
    assert find_fitted_loss(QuantileRegressor(quantile=0.3, alpha=0.5)).name == "pinball(0.3)"


def test_the_user_is_told_by_which_loss_the_model_is_judged():
    model = PoissonRegressor().fit(X, Y)
    options = {"graph": None, "sampler": "gaussian", "n_orderings": 4, **QUIET}
    with pytest.warns(UserWarning, match="fitted with the Poisson deviance, but is judged by sq"):
        found = dsage.explain(model, X, Y, X, Y, **options)
    assert found.choices.loss.name == "squared_error"
    same = dsage.explain(model, X, Y, X, Y, loss="squared_error", **options)  # and no warning
    np.testing.assert_array_equal(found.values, same.values)
    with pytest.warns(UserWarning, match="pass loss='absolute_error'"):
        dsage.explain(HGB(loss="absolute_error").fit(X, Y), X, Y, X, Y, **options)
