"""What `explain` refuses, and when."""

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.linear_model import LinearRegression, LogisticRegression

import dsage
from dsage.samplers import Gaussian
from explain_case import QUIET, chain, mixed


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"graph": "lern"}, ValueError, "Did you mean 'learn'"),
        ({"graph": 3}, TypeError, "graph must be a dsage.Graph"),
        ({"sampler": "gausian"}, ValueError, "Did you mean 'gaussian'"),
        ({"sampler": Gaussian}, TypeError, r"Make an instance: Gaussian\(\)"),
        ({"loss": "squared_eror"}, ValueError, "Did you mean 'squared_error'"),
        ({"estimand": "dsage"}, ValueError, "Did you mean 'd-sage'"),
        ({"tolerence": 0.1}, ValueError, "Did you mean 'tolerance'"),
        ({"n_samples": 3}, ValueError, "each option must be one of the options of explain"),
        ({"tolerance": 2}, ValueError, r"tolerance must be in \(0, 1\]"),
        ({"n_resamples": -1}, ValueError, "n_resamples must be at least 0"),
        ({"groups": {"g": ["z"]}}, ValueError, "z"),
        ({"target": 3}, TypeError, "target must be a name"),
        ({"target": "a"}, ValueError, "name of the target must be .* features; got 'a'"),
        ({"discrete": "z"}, ValueError, "discrete must be one of the columns"),
        ({"random_state": "x"}, TypeError, "random_state"),
        ({"checkpoint": "/nowhere/at/all/run.npz"}, ValueError, "in a folder that exists"),
    ],
)  # fmt: skip
def test_a_bad_option_is_named(model, rows, change, error, text):
    with pytest.raises(error, match=text):
        dsage.explain(model, *rows, **{"sampler": "gaussian", **QUIET, **change})


def test_a_graph_without_the_target_is_refused(model, rows):
    graph = nx.DiGraph([("a", "b"), ("b", "c"), ("c", "z"), ("d", "z")])
    with pytest.raises(ValueError, match="one that has the target 'y'"):
        dsage.explain(model, *rows, graph=graph, **QUIET)


@pytest.mark.parametrize("at", [0, 2])
def test_sparse_data_are_refused_with_the_way_out(model, rows, at):
    given = list(rows)
    name = ("X_train", "", "X_test")[at]
    given[at] = sparse.csr_matrix(rows[at])
    with pytest.raises(TypeError, match=rf"{name} must be dense.*{name}\.toarray\(\)"):
        dsage.explain(model, *given, **QUIET)
    given[at] = rows[at].astype({"b": pd.SparseDtype("float64", 0.0)})
    with pytest.raises(TypeError, match=rf"dense columns; got \['b'\].*{name}\.sparse"):
        dsage.explain(model, *given, **QUIET)


def test_what_is_no_data_is_refused(model, rows):
    with pytest.raises(TypeError, match=r"X_train and X_test must be of one kind; got .'int'"):
        dsage.explain(model, 3, *rows[1:], **QUIET)
    with pytest.raises(FileNotFoundError, match=r"must be a file or folder that exists.*data\.csv"):
        dsage.explain(model, "data.csv", *rows[1:], **QUIET)


def test_lengths_that_differ_are_named(model, rows):
    with pytest.raises(ValueError, match="y_train must be of 200 rows, as X_train is; got 100"):
        dsage.explain(model, rows[0], rows[3], *rows[2:], **QUIET)
    with pytest.raises(ValueError, match="y_test must be of 100 rows, as X_test is; got 200"):
        dsage.explain(model, *rows[:3], rows[1], **QUIET)


@pytest.mark.parametrize("name", ["X_train", "y_train", "X_test", "y_test"])
def test_infinite_features_and_missing_targets_are_named_with_their_argument(model, rows, name):
    given = dict(zip(["X_train", "y_train", "X_test", "y_test"], rows, strict=True))
    broken = given[name].copy()
    if name.startswith("X"):
        broken.loc[broken.index[3], "b"] = np.inf
    else:
        broken.iloc[3] = np.nan
    given[name] = broken
    with pytest.raises(ValueError, match="must be finite") as caught:
        dsage.explain(model, *given.values(), **QUIET)
    assert f"This is about {name}." in caught.value.__notes__
    if name.startswith("X"):
        assert "b" in str(caught.value)


@pytest.mark.parametrize("name", ["y_train", "y_test"])
def test_targets_in_another_order_than_their_rows_are_refused(model, rows, name):
    given = dict(zip(["X_train", "y_train", "X_test", "y_test"], rows, strict=True))
    given[name] = given[name].sample(frac=1.0, random_state=0)
    with pytest.raises(ValueError, match=rf"{name}.loc\[X{name[1:]}.index\]"):
        dsage.explain(model, *given.values(), **QUIET)
    # Labels of their own are no sign of another order.
    given[name] = given[name].reset_index(drop=True)
    given[name].index += 10_000
    dsage.explain(model, *given.values(), graph=None, sampler="gaussian", n_orderings=4, **QUIET)


def test_frames_and_arrays_are_not_mixed(model, rows):
    X_train, y_train, X_test, y_test = rows
    with pytest.raises(TypeError, match=r"X_train and X_test must be of one kind.*'ndarray'"):
        dsage.explain(model, X_train, y_train, X_test.to_numpy(), y_test, **QUIET)


def test_columns_of_one_name_are_refused(model, rows):
    X_train, y_train, X_test, y_test = rows
    twice = [frame.set_axis(list("aabc"), axis=1) for frame in (X_train, X_test)]
    with pytest.raises(ValueError, match="distinct"):
        dsage.explain(model, twice[0], y_train, twice[1], y_test, **QUIET)


def test_a_label_that_the_classifier_does_not_know_is_named_before_any_work(monkeypatch):
    monkeypatch.setattr("dsage.steps.learning.find_graph", None)
    X, y = mixed()
    X = X[["size"]]
    model = LogisticRegression().fit(X[:160], y[:160])
    other = np.where(np.arange(80) < 3, "huge", y[160:])
    with pytest.raises(ValueError, match="huge") as caught:
        dsage.explain(model, X[:160], y[:160], X[160:], other, **QUIET)
    assert "This is about y_test." in caught.value.__notes__


@pytest.mark.parametrize(
    "change",
    [
        {"estimand": "sag"},
        {"orderings": "antithetc"},
        {"semantics": "skp"},
        {"sampler": "gausian"},
        {"groups": {"g": ["z"]}},
        {"groups": {"body": "ab"}},
        {"groups": [["a", "b"]]},
        {"sample_weight": np.ones(3)},
        {"n_jobs": 0},
        {"exact": "allways"},
        {"rows_per_ordering": 0},
        {"sampler": Gaussian().fit(pd.DataFrame(np.random.default_rng(0).normal(size=(50, 2))).set_axis(["a", "b"], axis=1))},
    ],
)  # fmt: skip
def test_options_are_checked_before_any_work(model, rows, change, monkeypatch):
    monkeypatch.setattr("dsage.steps.learning.find_graph", None)
    with pytest.raises((ValueError, TypeError)) as caught:
        dsage.explain(model, *rows, **QUIET, **change)
    assert next(iter(change)).split("_")[0] in str(caught.value)


def test_columns_that_the_model_does_not_know_are_refused_before_any_work(model, rows, monkeypatch):
    monkeypatch.setattr("dsage.steps.learning.find_graph", None)
    X_train, y_train, X_test, y_test = rows
    with pytest.raises(ValueError, match="feature names") as caught:
        dsage.explain(
            model, X_train.rename(columns={"a": "z"}), y_train, X_test.rename(columns={"a": "z"}),
            y_test, **QUIET,
        )  # fmt: skip
    assert "LinearRegression" in caught.value.__notes__[0]


def test_evaluation_rows_without_a_column_are_refused(model, rows):
    X_train, y_train, X_test, y_test = rows
    with pytest.raises(ValueError, match="These are missing: 'b'"):
        dsage.explain(model, X_train, y_train, X_test.drop(columns="b"), y_test, **QUIET)


def test_few_rows_are_enough_for_a_sampler_that_is_named(rows):
    X, y = chain(12)
    model = LinearRegression().fit(X, y)
    found = dsage.explain(
        model, X, y, X[:3], y[:3], graph=None, sampler="gaussian", n_orderings=4, **QUIET
    )
    assert found.sampler_scores is None
    assert found.choices.sampler.energy_score is None


def test_few_rows_get_the_simplest_sampler_with_a_note(rows):
    X, y = chain(16)
    model = LinearRegression().fit(X, y)
    with pytest.warns(UserWarning, match="16 rows are too few to score samplers: Gaussian"):
        found = dsage.explain(model, X, y, X[:8], y[:8], graph=None, **QUIET)
    assert found.choices.sampler.name == "Gaussian"
    assert "too few rows" in found.choices.sampler.decision.words()
    assert found.sampler_scores is None
    assert any("too few to score samplers" in text for text in found.warnings)
    classes = pd.DataFrame({"kind": list("ab") * 8, "size": np.arange(16.0)})
    with pytest.warns(UserWarning, match="too few to score samplers"):
        dsage.explain(
            lambda rows: rows["size"], classes, y, classes, y, graph=None, n_orderings=4, **QUIET
        )
