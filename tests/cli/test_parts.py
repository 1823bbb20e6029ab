"""The parts that the commands are made of."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

from dsage._check import Setting, Text, refusal
from dsage.cli.explain import parse_time, read_graph
from dsage.cli.models import align_columns, make_model
from dsage.cli.output import one_line, word_setting


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (
            refusal("n_jobs", "positive", 0, Text(["Use ", Setting("n_jobs", -1)])),
            "--jobs must be positive; got 0. Use --jobs -1.",
        ),
        (ValueError("a must be\n  b"), "a must be b"),
        (KeyError("a"), "KeyError: 'a'. Add --debug to see where it happened."),
    ],
)
def test_an_error_is_one_line_in_terms_of_the_options(error, line):
    assert one_line(error) == line


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        (Setting("estimand", "sage"), "--estimand sage"),
        (Setting("trust_pickle", True), "--trust-pickle"),
        (Setting("drop", ["age", "a b"]), "--drop age --drop 'a b'"),
        (Setting("n_draws", 8), "n_draws=8"),
    ],
)
def test_a_setting_is_worded_as_it_is_typed(setting, words):
    assert word_setting(setting) == words


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90.0), ("90s", 90.0), ("1.5m", 90.0), ("1h30m", 5400.0)]
)
def test_times_have_units(text, seconds):
    assert parse_time(text) == seconds


def test_a_graph_is_a_name_or_none():
    assert (read_graph("learn"), read_graph("none")) == ("learn", None)


def test_a_linear_model_scales_the_numbers():
    model = make_model("lm", [], is_classification=False, seed=0)
    assert model.steps[0][0] == "standardscaler"


@pytest.mark.parametrize("fit", ["lm", "logistic", "rf", "hgb"])
def test_models_take_missing_values_dates_and_categories_that_training_lacks(fit):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "size": rng.normal(size=300),
            "none": np.full(300, np.nan),
            "sort": rng.choice(["u", "v", None], 300),
            "flag": rng.choice(np.array([True, False, None], object), 300),
            "name": [f"name {number}" for number in range(300)],
            "level": rng.choice([1.0, 2.0, np.nan], 300),
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 50, 300), "D"),
        }
    )
    y = X["size"].to_numpy() + 0.1 * X["day"].dt.day > 1.5
    X.loc[::7, ["size", "day"]] = None
    new = X[:20].assign(sort="w", level=7.0, day=pd.Timestamp("2030-01-01"))
    new.loc[0] = None
    is_classification = fit != "lm"
    model = make_model(
        fit, ["sort", "flag", "name", "level"], ["day"],
        has_gaps=True, is_classification=is_classification, seed=0,
    )  # fmt: skip
    model.fit(X, y if is_classification else y * 1.0)
    assert model.score(X, y) > 0.3
    assert len(model.predict(new)) == 20


def test_linear_models_know_what_is_missing():
    x = np.array([1.0, 2.0, np.nan, np.nan] * 20)
    y = np.where(np.isnan(x), 7.0, x)
    model = make_model("lm", [], has_gaps=True, is_classification=False, seed=0)
    assert model.fit(pd.DataFrame({"x": x}), y).score(pd.DataFrame({"x": x}), y) > 0.999


def test_columns_get_the_order_of_the_model():
    X = pd.DataFrame({"a": [0.0, 1.0], "b": [1.0, 1.0]})
    model = LinearRegression().fit(X, [1.0, 2.0])
    assert align_columns(model, X[["b", "a"]]).columns.tolist() == ["a", "b"]
