"""`explain` end to end: its values."""

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.compose import make_column_transformer
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import dsage
from dsage.games import LossGame
from dsage.orderings import Order
from dsage.samplers import Gaussian
from explain_case import QUIET, mixed


def test_a_method_of_learning_can_be_named(model, rows):
    found = dsage.explain(model, *rows, graph="hc", sampler="gaussian", n_resamples=0, **QUIET)
    assert found.choices.graph.method == "hc"
    assert found.choices.graph.score == "ebic"
    assert found.edge_strength is None


def test_jobs_change_nothing(model, rows):
    options = {"sampler": "mix", "n_resamples": 4, "n_orderings": 8, **QUIET}
    one = dsage.explain(model, *rows, **options)
    with joblib.parallel_config(backend="threading"):
        two = dsage.explain(model, *rows, **options, n_jobs=2)
    np.testing.assert_array_equal(one.values, two.values)
    pd.testing.assert_frame_equal(one.edge_strength, two.edge_strength)


@pytest.mark.parametrize("wrap", [pl.from_pandas, pa.Table.from_pandas, np.asarray])
def test_other_containers_give_the_same_values(explanation, rows, wrap):
    X_train, y_train, X_test, y_test = rows
    model = LinearRegression().fit(np.asarray(X_train), y_train)

    def predict(X):
        if isinstance(X, (pl.DataFrame, pa.Table)):
            X = X.to_pandas()
        return model.predict(np.asarray(X))

    found = dsage.explain(
        dsage.models.as_model(predict, "squared_error", affine=True),
        wrap(X_train), y_train.to_numpy(), wrap(X_test), y_test.to_numpy(),
        sampler="gaussian", **QUIET,
    )  # fmt: skip
    np.testing.assert_allclose(found.values, explanation.values)
    assert found.target == "target"


def test_a_pipeline_on_mixed_data_with_labels_of_text():
    X, y = mixed()
    encoder = make_column_transformer(
        (OneHotEncoder(), ["colour"]), (StandardScaler(), ["size"]), remainder="passthrough"
    )
    model = make_pipeline(encoder, LogisticRegression()).fit(X[:160], y[:160])
    found = dsage.explain(
        model, X[:160], y[:160], X[160:], y[160:], tolerance=0.1, n_resamples=2, **QUIET
    )
    assert found.choices.loss.name == "cross_entropy"
    assert found.choices.model.classes == ("heavy", "light")
    assert found.to_frame()["feature"][0] == "size"
    assert found.choices.graph.score == "basis"
    assert found.choices.data.n_class_features == 2


def test_groups_are_explained_together(model, rows):
    groups = {"first": ["a", "b"]}
    options = {"graph": "learn", "sampler": "gaussian", **QUIET}
    found = dsage.explain(model, *rows, groups=groups, **options)
    assert found.feature_names == ("first", "c", "d")
    assert found.groups == {"first": ("a", "b")}
    assert found.values.sum() == pytest.approx(dsage.explain(model, *rows, **options).values.sum())


def test_a_partial_order_is_kept(model, rows):
    order = Order.tiers([["a"], ["b"], ["c"], ["d"]])
    found = dsage.explain(model, *rows, graph=None, orderings=order, sampler="gaussian", **QUIET)
    game = LossGame(model, Gaussian().fit(rows[0]), rows[2], rows[3], random_state=0)
    prefixes = np.tri(5, 4, -1, dtype=bool)
    risks = game.risks(prefixes, np.arange(game.n_rows)).mean(axis=(1, 2))
    np.testing.assert_allclose(found.values, -np.diff(risks))


def test_options_reach_the_game_and_the_plan(model, rows):
    weights = np.r_[np.ones(50), np.zeros(50)]
    found = dsage.explain(
        model, *rows, graph=None, sampler="gaussian", sample_weight=weights, semantics="skip",
        **QUIET,
    )  # fmt: skip
    half = (*rows[:2], rows[2][:50], rows[3][:50])
    alone = dsage.explain(model, *half, graph=None, sampler="gaussian", **QUIET)
    np.testing.assert_allclose(found.values, alone.values)
    assert found.choices.estimate.semantics == "skip"
    assert found.choices.estimate.is_weighted


def test_a_single_evaluation_row_gets_values_without_an_error_of_rows(model, rows):
    found = dsage.explain(
        model, rows[0], rows[1], rows[2][:1], rows[3][:1], graph=None, sampler="gaussian", **QUIET
    )
    assert np.isnan(found.estimate.se_rows).all()
    assert "too few rows" in repr(found)
    assert found.to_frame()["lower_total"].isna().all()


def test_a_model_that_knows_nothing_has_values_of_zero(rows):
    model = DummyRegressor().fit(*rows[:2])
    found = dsage.explain(model, *rows, sampler="gaussian", n_orderings=8, **QUIET)
    np.testing.assert_allclose(found.values, 0.0, atol=1e-12)
    assert found.to_frame()["share"].isna().all()
    assert "LinearRegression" not in repr(found)


def test_a_regressor_has_numbers_to_predict_whatever_the_target_is(rows):
    X_train, y_train, X_test, y_test = rows
    yes = LinearRegression().fit(X_train, y_train > 0)
    found = dsage.explain(
        yes, X_train, y_train > 0, X_test, y_test > 0, graph=None, sampler="gaussian", **QUIET
    )
    assert found.choices.loss.name == "squared_error"
    objects = dsage.explain(
        LinearRegression().fit(X_train, y_train), X_train, y_train.astype(object), X_test,
        y_test.astype(object), sampler="gaussian", n_resamples=0, **QUIET,
    )  # fmt: skip
    assert objects.graph.markov_blanket("y") == ("c",)


def test_dates_and_durations_reach_the_model_as_they_are():
    generator = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "day": pd.Timestamp("2024-01-01")
            + pd.to_timedelta(generator.integers(0, 90, 120), "D"),
            "wait": pd.to_timedelta(generator.integers(1, 50, 120), "h"),
        }
    )
    y = (X["day"].dt.day_of_year + generator.normal(size=120)).rename("y")
    seen = set()

    def model(rows):
        seen.update(rows.dtypes.astype(str))
        assert (rows["day"] == rows["day"].dt.normalize()).all()
        return rows["day"].dt.day_of_year

    options = {"graph": None, "n_orderings": 8, **QUIET}
    found = dsage.explain(model, X[:80], y[:80], X[80:], y[80:], **options)
    assert seen == set(X.dtypes.astype(str))
    assert found.values[0] > 100 * abs(found.values[1])
