"""Scores behind a link: read from models, and verified by their predictions."""

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier, LGBMRegressor
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression, PoissonRegressor
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from dsage.data.layout import Layout
from dsage.models import as_model
from dsage.models.link_scores import apply_link, invert_link
from dsage.models.scores import find_scores

N_FEATURES = 5


def rows(n_classes, *, with_gaps=False):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, N_FEATURES))
    y = 2 * np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * rng.normal(size=200)
    if with_gaps:
        X[rng.random(X.shape) < 0.1] = np.nan
    return X, np.digitize(y, np.quantile(y, np.arange(1, n_classes) / n_classes))


def xgboost():
    package = pytest.importorskip("xgboost")
    return package.XGBClassifier(n_estimators=6, max_depth=4)


TREES = {
    "HistGradientBoosting": lambda: HistGradientBoostingClassifier(max_iter=6, min_samples_leaf=5),
    "GradientBoosting": lambda: GradientBoostingClassifier(n_estimators=6, learning_rate=0.3),
    "LightGBM": lambda: LGBMClassifier(n_estimators=6, min_child_samples=5, verbose=-1, n_jobs=1),
    "XGBoost": xgboost,
}
LINEAR = {
    "logistic": LogisticRegression,
    "scaled": lambda: make_pipeline(StandardScaler(), LogisticRegression(C=100.0)),
    "discriminant": LinearDiscriminantAnalysis,
}


def scores_of(model, X, loss="cross_entropy"):
    return as_model(model, loss).scores(Layout.of(X), np.asarray(X, dtype=float))


def means_of(scores, known, X, background):
    return scores.means(known, scores.encode(X), scores.encode(background))


def mixed_means(predict, known, X, background):
    mixed = np.where(known, X[:, None], background)
    predicted = predict(mixed.reshape(-1, N_FEATURES))
    return predicted.reshape(len(X), len(background), -1).mean(axis=1)


def assert_exact(scores, predict, X, tolerance):
    """All prefixes of an ordering, and each of them as a coalition."""
    order = np.array([3, 0, 4, 1, 2])
    x, b = X[:12], X[50:80]
    along = scores.path_means(order, scores.encode(x), scores.encode(b))
    for length, found in enumerate(along):
        known = np.isin(np.arange(N_FEATURES), order[:length])
        wanted = mixed_means(predict, known, x, b)
        np.testing.assert_allclose(found, wanted, atol=tolerance)
        np.testing.assert_allclose(means_of(scores, known, x, b), wanted, atol=tolerance)


@pytest.mark.parametrize("with_gaps", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", TREES)
def test_means_of_boosted_classes_are_those_of_predictions(name, n_classes, with_gaps):
    if with_gaps and name == "GradientBoosting":
        pytest.skip("it refuses missing values")
    X, y = rows(n_classes, with_gaps=with_gaps)
    model = TREES[name]().fit(X, y)
    scores = scores_of(model, X)
    assert scores.link == ("logistic" if n_classes == 2 else "softmax")
    # XGBoost computes in single precision.
    assert_exact(scores, model.predict_proba, X, 1e-6 if name == "XGBoost" else 1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_scores_of_trees_are_sums_that_are_exact(n_classes):
    X, y = rows(n_classes)
    scores = scores_of(TREES["HistGradientBoosting"]().fit(X, y), X)
    order, x, b = np.array([3, 0, 4, 1, 2]), scores.encode(X[:12]), scores.encode(X[50:80])
    along = scores.path_means(order, x, b)
    for length, found in enumerate(along):
        known = np.isin(np.arange(N_FEATURES), order[:length])
        assert np.array_equal(found, scores.means(known, x, b))
    alone = [scores.path_means(order, x[:, [at]], b) for at in range(12)]
    assert np.array_equal(np.concatenate(alone, axis=1), along)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", LINEAR)
def test_means_of_linear_classifiers_are_those_of_predictions(name, n_classes):
    X, y = rows(n_classes)
    model = LINEAR[name]().fit(X, y)
    assert_exact(scores_of(model, X), model.predict_proba, X, 1e-10)


@pytest.mark.parametrize(
    "model",
    [
        PoissonRegressor(),
        HistGradientBoostingRegressor(loss="poisson", max_iter=5),
        LGBMRegressor(objective="poisson", n_estimators=5, verbose=-1, n_jobs=1),
    ],
)
def test_models_of_a_logarithm_have_exponential_scores(model):
    X, y = rows(4)
    model.fit(X, y)
    scores = scores_of(model, X, "poisson")
    assert scores.link == "exp"
    assert_exact(scores, model.predict, X, 1e-10)


def test_models_without_scores_have_none():
    X, y = rows(2)
    frame = pd.DataFrame(X).rename(columns=str).assign(c=pd.Categorical(y.astype(str)))
    curved = make_pipeline(PolynomialFeatures(2), LogisticRegression()).fit(X, y)
    for model in (RandomForestClassifier(3).fit(X, y), curved):
        assert scores_of(model, X) is None
    several = OneVsRestClassifier(LogisticRegression()).fit(*rows(3))
    assert scores_of(several, X) is None
    logistic = LogisticRegression().fit(X, y)
    matrix = np.zeros((len(X), frame.shape[1]))
    assert find_scores(logistic, logistic.predict_proba, Layout.of(frame), matrix) is None


def test_a_model_that_predicts_something_else_than_its_scores_is_not_read():
    X, y = rows(2)
    for make in (LogisticRegression, TREES["HistGradientBoosting"]):
        model = make().fit(X, y)
        own = model.predict_proba
        model.predict_proba = lambda X, own=own: own(X) ** 2 / (own(X) ** 2).sum(1, keepdims=True)
        assert scores_of(model, X) is None


def test_trees_with_more_leaves_than_bits_are_not_read():
    X = np.random.default_rng(0).normal(size=(600, 3))
    y = np.sin(9 * X[:, 0]) + np.sin(9 * X[:, 1]) > 0
    model = LGBMClassifier(n_estimators=2, num_leaves=80, min_child_samples=2, verbose=-1, n_jobs=1)
    model.fit(X, y)
    assert model.booster_.dump_model()["tree_info"][0]["num_leaves"] > 64
    assert scores_of(model, X) is None


def test_extreme_scores_stay_finite():
    X, y = rows(3)
    model = LogisticRegression(C=1e6, max_iter=500).fit(X, y)
    model.coef_ *= 1e4
    scores = scores_of(model, X)
    found = means_of(scores, np.array([True, False, True, False, True]), X[:20], X[50:80])
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    known = np.array([True, False, True, False, True])
    np.testing.assert_allclose(
        found, mixed_means(model.predict_proba, known, X[:20], X[50:80]), atol=1e-9
    )


@pytest.mark.parametrize("link", ["logistic", "softmax", "exp"])
def test_a_link_and_its_inverse_agree(link):
    scores = np.random.default_rng(0).normal(size=(1 if link == "logistic" else 3, 4))
    back = invert_link(link, apply_link(link, scores.copy()))
    off = back - scores
    np.testing.assert_allclose(off - off[:1] * (link == "softmax"), 0.0, atol=1e-12)
