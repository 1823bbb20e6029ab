"""`explain` end to end, on data so small that a run takes a fraction of a second."""

import logging
import sys
import warnings

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.compose import make_column_transformer
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import dsage
from dsage.estimate import Checkpoint, enumerate_boundaries
from dsage.games import LossGame
from dsage.graphs import NoSeparation
from dsage.orderings import Order
from dsage.samplers import Gaussian, Marginal
from dsage.structure import SearchResult, stability

QUIET = {"progress": False, "random_state": 0}


def chain(n_rows=300, seed=0):
    """A causes b causes c; the target is caused by c; d is noise."""
    generator = np.random.default_rng(seed)
    a = generator.normal(size=n_rows)
    b = a + 0.5 * generator.normal(size=n_rows)
    c = b + 0.5 * generator.normal(size=n_rows)
    frame = pd.DataFrame({"a": a, "b": b, "c": c, "d": generator.normal(size=n_rows)})
    return frame, pd.Series(2 * c + generator.normal(size=n_rows), name="y")


@pytest.fixture(scope="module")
def rows():
    X, y = chain()
    return X[:200], y[:200], X[200:], y[200:]


@pytest.fixture(scope="module")
def model(rows):
    return LinearRegression().fit(*rows[:2])


@pytest.fixture(scope="module")
def explanation(model, rows):
    return dsage.explain(model, *rows, sampler="gaussian", **QUIET)


def exact_values(model, rows, graph=None):
    """All coalitions, without the engine."""
    game = LossGame(model, Gaussian().fit(rows[0]), rows[2], rows[3], random_state=0)
    names = list(rows[0].columns)
    oracle = NoSeparation(names) if graph is None else graph.oracle("y", features=names)
    enumeration = enumerate_boundaries(oracle)
    risks = game.risks(enumeration.coalitions, np.arange(game.n_rows)).mean(axis=(1, 2))
    return enumeration.values(risks)


def test_the_values_are_those_of_all_orderings_with_the_learned_graph(explanation, model, rows):
    assert explanation.feature_names == ("a", "b", "c", "d")
    assert explanation.target == "y"
    np.testing.assert_allclose(explanation.values, exact_values(model, rows, explanation.graph))
    assert explanation.estimate.estimand == "d-sage"
    assert explanation.estimate.audit is not None


def test_without_a_graph_the_values_are_plain_sage(model, rows):
    plain = dsage.explain(model, *rows, graph=None, sampler="gaussian", **QUIET)
    np.testing.assert_allclose(plain.values, exact_values(model, rows))
    assert plain.graph is None
    assert plain.estimate.estimand == "sage"
    assert plain.choices["graph"]["source"] == "none: nothing is skipped"


@pytest.mark.parametrize(
    "make",
    [
        lambda graph: graph,
        lambda graph: graph.to_networkx(),
        lambda graph: graph.to_adjacency(),
        lambda graph: graph.oracle("y", features=["a", "b", "c", "d"]),
    ],
    ids=["Graph", "networkx", "adjacency", "oracle"],
)
def test_a_graph_can_be_given_as_any_kind(model, rows, make):
    graph = dsage.Graph(["a", "b", "c", "d", "y"], [("a", "b"), ("b", "c"), ("c", "y")])
    found = dsage.explain(model, *rows, graph=make(graph), sampler="gaussian", **QUIET)
    np.testing.assert_allclose(found.values, exact_values(model, rows, graph))
    assert "given" in found.choices["graph"]["source"]
    assert found.edge_strength is None


def test_a_vote_of_graphs_can_be_given(model, rows):
    found = stability(rows[0].assign(y=rows[1]), 6, random_state=0)
    voted = dsage.explain(model, *rows, graph=found, sampler="gaussian", **QUIET)
    assert voted.choices["graph"]["source"] == "given: a vote of 6 graphs"
    assert voted.edge_strength is not None


def test_a_method_of_learning_can_be_named(model, rows):
    found = dsage.explain(model, *rows, graph="hc", sampler="gaussian", n_resamples=0, **QUIET)
    assert found.choices["graph"]["method"] == "hc"
    assert found.choices["graph"]["score"] == "ebic"
    assert found.edge_strength is None


def test_the_graph_is_learned_again_to_tell_how_sure_its_edges_are(explanation):
    strength = explanation.edge_strength.set_index(["from", "to"])
    assert explanation.choices["graph"]["resamples"] == 20
    assert all(strength.loc[edge, "share"] > 0 for edge in explanation.graph.edges)


@pytest.mark.parametrize(
    "sampler", ["gaussian", "copula", "mixture", "forest", "neighbors", "sequential", "marginal"]
)
def test_a_sampler_can_be_named_and_is_scored(model, rows, sampler):
    found = dsage.explain(
        model, *rows, sampler=sampler, n_orderings=8, n_resamples=0, audit=False, **QUIET
    )
    described = found.choices["sampler"]
    assert described["source"] == "given by name"
    assert described["energy_score"] > 0
    assert described["energy_score_of_independence"] > 0
    assert described["name"] in found.sampler_scores["sampler"].tolist()


def test_a_sampler_is_chosen_by_its_score(model, rows):
    found = dsage.explain(model, *rows, n_resamples=0, n_orderings=8, **QUIET)
    best = found.sampler_scores.set_index("sampler")["energy_score"].drop("Marginal").idxmin()
    assert found.choices["sampler"]["name"] in ("Gaussian", best)
    assert "held-out" in found.choices["sampler"]["reason"]


def test_a_fitted_sampler_is_taken_as_it_is_and_scored_on_the_evaluation_rows(model, rows):
    sampler = Gaussian().fit(rows[0][:50])
    found = dsage.explain(model, *rows, graph=None, sampler=sampler, **QUIET)
    game = LossGame(model, sampler, rows[2], rows[3])
    alone = game.risks(np.array([[True, False, False, False]]), np.arange(game.n_rows)).mean()
    assert alone > 0
    scores = found.sampler_scores.set_index("sampler")
    assert scores.loc["Gaussian", "energy_score"] < scores.loc["Marginal", "energy_score"]
    assert scores.loc["Marginal", "difference"] > 0
    unfitted = dsage.explain(model, *rows, graph=None, sampler=Gaussian(), **QUIET)
    assert not np.allclose(found.values, unfitted.values)


def test_an_unfitted_sampler_is_not_changed(model, rows):
    sampler = Marginal()
    dsage.explain(model, *rows, graph=None, sampler=sampler, n_orderings=8, **QUIET)
    assert not hasattr(sampler, "layout_")


def test_every_choice_is_told(explanation):
    choices = explanation.choices
    assert set(choices) == {
        "model", "data", "graph", "sampler", "loss", "estimate", "evaluations", "seconds",
        "versions", "run",
    }  # fmt: skip
    assert choices["model"]["name"] == "LinearRegression"
    assert choices["loss"] == {
        "name": "squared_error",
        "source": "chosen for the model and the target",
    }
    assert choices["data"]["rows_train"] == 200
    assert choices["data"]["rows_evaluation"] == 100
    assert choices["graph"]["method"].startswith("auto: tabu")
    assert choices["graph"]["markov_blanket"] == "c"
    assert choices["estimate"]["stopped_because"] == explanation.estimate.reason
    assert choices["seconds"]["total"] >= choices["seconds"]["estimate"]
    assert choices["versions"]["dsage"] == dsage.__version__
    assert choices["run"]["random_state"] == "0"
    text = str(choices)
    assert all(name in text for section in choices.values() for name in section)


def test_the_seed_of_a_run_without_one_repeats_it(model, rows):
    options = {"sampler": "forest", "n_resamples": 0, "n_orderings": 8, "progress": False}
    first = dsage.explain(model, *rows, **options)
    seed = int(first.choices["run"]["random_state"])
    again = dsage.explain(model, *rows, **options, random_state=seed)
    np.testing.assert_array_equal(first.values, again.values)


def test_runs_tell_whether_they_were_evaluated_on_the_same_rows(explanation, model, rows):
    options = {"sampler": "gaussian", "graph": None, "n_orderings": 4, **QUIET}
    mark = dsage.explain(model, *rows, **options).choices["data"]["rows_evaluation_digest"]
    assert mark == explanation.choices["data"]["rows_evaluation_digest"]
    for other in ((rows[2][1:], rows[3][1:]), (rows[2], rows[3] + 1.0)):
        found = dsage.explain(model, *rows[:2], *other, **options)
        assert found.choices["data"]["rows_evaluation_digest"] != mark


def test_jobs_change_nothing(model, rows):
    options = {"sampler": "forest", "n_resamples": 4, "n_orderings": 8, **QUIET}
    one = dsage.explain(model, *rows, **options)
    two = dsage.explain(model, *rows, **options, n_jobs=2)
    np.testing.assert_array_equal(one.values, two.values)
    pd.testing.assert_frame_equal(one.edge_strength, two.edge_strength)


def test_a_checkpoint_is_gone_on_with_also_without_a_seed(model, rows, tmp_path):
    path = tmp_path / "run.npz"
    options = {
        "graph": None, "sampler": "gaussian", "loss": "absolute_error", "exact": "never",
        "progress": False,
    }  # fmt: skip
    rough = dsage.explain(model, *rows, **options, n_orderings=16, checkpoint=path)
    fine = dsage.explain(model, *rows, **options, n_orderings=64, checkpoint=Checkpoint(path))
    assert fine.choices["run"]["random_state"] == rough.choices["run"]["random_state"]
    assert len(fine.estimate.history) > len(rough.estimate.history)
    np.testing.assert_array_equal(fine.estimate.history.values[0], rough.estimate.history.values[0])
    whole = dsage.explain(
        model, *rows, **options, n_orderings=64,
        random_state=int(rough.choices["run"]["random_state"]),
    )  # fmt: skip
    np.testing.assert_array_equal(fine.values, whole.values)
    np.testing.assert_array_equal(fine.estimate.history.se, whole.estimate.history.se)


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


def mixed(n_rows=240, seed=0):
    generator = np.random.default_rng(seed)
    colour = generator.choice(["red", "green", "blue"], n_rows)
    size = generator.normal(size=n_rows) + (colour == "red")
    heavy = size + generator.normal(size=n_rows) > 0.5
    X = pd.DataFrame({"colour": colour, "size": size, "is_new": generator.random(n_rows) < 0.5})
    return X, np.where(heavy, "heavy", "light")


def test_a_pipeline_on_mixed_data_with_labels_of_text():
    X, y = mixed()
    encoder = make_column_transformer(
        (OneHotEncoder(), ["colour"]), (StandardScaler(), ["size"]), remainder="passthrough"
    )
    model = make_pipeline(encoder, LogisticRegression()).fit(X[:160], y[:160])
    found = dsage.explain(
        model, X[:160], y[:160], X[160:], y[160:], tolerance=0.1, n_resamples=2, **QUIET
    )
    assert found.choices["loss"]["name"] == "cross_entropy"
    assert found.choices["model"]["classes"] == "'heavy', 'light'"
    assert found.to_frame()["feature"][0] == "size"
    assert found.choices["graph"]["score"] == "bic"
    assert found.choices["data"]["features_of_classes"] == 2


def test_numbers_that_are_classes_are_so_in_the_graph_too():
    X, y = mixed()
    labels = (y == "heavy").astype(int)
    model = LogisticRegression().fit(X[["size"]][:160], labels[:160])
    found = dsage.explain(
        model, X[["size"]][:160], labels[:160], X[["size"]][160:], labels[160:],
        sampler="gaussian", n_orderings=4, n_resamples=0, **QUIET,
    )  # fmt: skip
    # A number cannot cause a class in a mixed graph, so the edge points the other way.
    assert found.graph.edges == (("target", "size"),)


def test_groups_are_explained_together(model, rows):
    groups = {"first": ["a", "b"]}
    found = dsage.explain(model, *rows, groups=groups, sampler="gaussian", **QUIET)
    assert found.feature_names == ("first", "c", "d")
    assert found.groups == {"first": ("a", "b")}
    assert found.values.sum() == pytest.approx(
        dsage.explain(model, *rows, sampler="gaussian", **QUIET).values.sum()
    )


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
    assert found.choices["estimate"]["semantics"] == "skip"
    assert found.choices["estimate"]["sample_weight"] == "numpy.ndarray"


def test_warnings_are_kept_and_passed_on(rows):
    X_train, y_train, X_test, y_test = rows
    X_train, X_test = X_train.assign(one=1.0), X_test.assign(one=1.0)
    model = LinearRegression().fit(X_train, y_train)
    with pytest.warns(UserWarning, match="one") as caught:
        found = dsage.explain(
            model, X_train, y_train, X_test, y_test, sampler="gaussian", n_resamples=0, **QUIET
        )
    assert any("one" in text for text in found.warnings)
    assert {str(each.message) for each in caught} >= set(found.warnings)
    assert caught[0].filename == __file__
    assert warnings.showwarning.__module__ != "dsage.explain"


def test_nothing_is_shown_on_request_and_bars_otherwise(model, rows, capsys, caplog):
    with caplog.at_level(logging.INFO, logger="dsage"):
        dsage.explain(model, *rows, sampler="gaussian", n_resamples=2, **QUIET)
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", "")
    assert any("graph: took" in line for line in caplog.messages)
    dsage.explain(
        model, *rows, sampler="forest", n_resamples=2, n_orderings=8, random_state=0, progress=True
    )
    shown = capsys.readouterr()
    assert shown.out == ""
    assert all(word in shown.err for word in ("learning the graph", "resamples", "skipped="))


def test_a_single_evaluation_row_gets_values_without_an_error_of_rows(model, rows):
    found = dsage.explain(
        model, rows[0], rows[1], rows[2][:1], rows[3][:1], graph=None, sampler="gaussian", **QUIET
    )
    assert np.isnan(found.estimate.se_rows).all()
    assert "rows too few" in repr(found)
    assert found.to_frame()["lower_total"].isna().all()


def test_a_model_that_knows_nothing_has_values_of_zero(rows):
    model = DummyRegressor().fit(*rows[:2])
    found = dsage.explain(model, *rows, sampler="gaussian", n_orderings=8, **QUIET)
    np.testing.assert_allclose(found.values, 0.0, atol=1e-12)
    assert found.to_frame()["share"].isna().all()
    assert "LinearRegression" not in repr(found)


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"graph": "lern"}, ValueError, "Did you mean 'learn'"),
        ({"graph": 3}, TypeError, "graph must be a dsage.Graph"),
        ({"sampler": "gausian"}, ValueError, "Did you mean 'gaussian'"),
        ({"sampler": Gaussian}, TypeError, r"Make an instance: Gaussian\(\)"),
        ({"loss": "mse"}, ValueError, "Did you mean 'squared_error'"),
        ({"estimand": "dsage"}, ValueError, "Did you mean 'd-sage'"),
        ({"tolerence": 0.1}, ValueError, "Did you mean 'tolerance'"),
        ({"n_samples": 3}, ValueError, "each option must be one of the options of explain"),
        ({"tolerance": 2}, ValueError, r"tolerance must be in \(0, 1\]"),
        ({"n_resamples": -1}, ValueError, "n_resamples must be at least 0"),
        ({"groups": {"g": ["z"]}}, ValueError, "z"),
        ({"target": 3}, TypeError, "target must be a name"),
        ({"target": "a"}, ValueError, "the target must be no feature; got 'a'"),
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
    with pytest.raises(
        TypeError, match=r"X_train must be a data frame or an array; got 'data\.csv'"
    ):
        dsage.explain(model, "data.csv", *rows[1:], **QUIET)
    with pytest.raises(TypeError, match="X_test must be a data frame or an array; got None"):
        dsage.explain(model, *rows[:2], None, rows[3], **QUIET)


def test_lengths_that_differ_are_named(model, rows):
    with pytest.raises(ValueError, match="y_train must be of 200 rows, as X_train is; got 100"):
        dsage.explain(model, rows[0], rows[3], *rows[2:], **QUIET)
    with pytest.raises(ValueError, match="y_test must be of 100 rows, as X_test is; got 200"):
        dsage.explain(model, *rows[:3], rows[1], **QUIET)


@pytest.mark.parametrize("name", ["X_train", "y_train", "X_test", "y_test"])
def test_missing_values_are_named_with_the_argument_they_are_in(model, rows, name):
    given = dict(zip(["X_train", "y_train", "X_test", "y_test"], rows, strict=True))
    broken = given[name].copy()
    if name.startswith("X"):
        broken.loc[broken.index[3], "b"] = np.nan
    else:
        broken.iloc[3] = np.nan
    given[name] = broken
    with pytest.raises(ValueError, match="missing") as caught:
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


def test_classes_of_a_function_are_taken_sorted_with_a_warning_or_as_named():
    X, y = mixed()
    X = X[["size"]]
    fitted = LogisticRegression().fit(X[:160], (y == "light")[:160])

    def light(rows):
        return fitted.predict_proba(rows)[:, 1]

    rows = (X[:160], y[:160], X[160:], y[160:])
    options = {"graph": None, "sampler": "gaussian", "n_orderings": 4, **QUIET}
    with pytest.warns(UserWarning, match="taken to be 'heavy', 'light', in this order"):
        right = dsage.explain(light, *rows, **options)
    assert right.values[0] > 0
    assert right.choices["model"]["classes"] == "'heavy', 'light'"
    named = dsage.explain(light, *rows, classes=["heavy", "light"], **options)
    np.testing.assert_array_equal(named.values, right.values)
    swapped = dsage.explain(light, *rows, classes=["light", "heavy"], **options)
    assert swapped.values[0] < 0


def test_classes_that_only_the_training_rows_have_are_known():
    generator = np.random.default_rng(0)
    X = pd.DataFrame({"a": generator.normal(size=90)})
    y = np.repeat([0, 1, 2], 30)
    fitted = LogisticRegression().fit(X, y)
    found = dsage.explain(
        fitted.predict_proba, X, y, X[:60], y[:60], loss="cross_entropy", graph=None,
        sampler="gaussian", n_orderings=4, **QUIET,
    )  # fmt: skip
    assert found.choices["model"]["classes"] == "0, 1, 2"


def test_a_label_that_the_classifier_does_not_know_is_named_before_any_work(monkeypatch):
    monkeypatch.setattr(sys.modules["dsage.explain"], "find_graph", None)
    X, y = mixed()
    X = X[["size"]]
    model = LogisticRegression().fit(X[:160], y[:160])
    other = np.where(np.arange(80) < 3, "huge", y[160:])
    with pytest.raises(ValueError, match="huge") as caught:
        dsage.explain(model, X[:160], y[:160], X[160:], other, **QUIET)
    assert "This is about y_test." in caught.value.__notes__


def test_a_regressor_has_numbers_to_predict_whatever_the_target_is(rows):
    X_train, y_train, X_test, y_test = rows
    yes = LinearRegression().fit(X_train, y_train > 0)
    found = dsage.explain(
        yes, X_train, y_train > 0, X_test, y_test > 0, graph=None, sampler="gaussian", **QUIET
    )
    assert found.choices["loss"]["name"] == "squared_error"
    objects = dsage.explain(
        LinearRegression().fit(X_train, y_train), X_train, y_train.astype(object), X_test,
        y_test.astype(object), sampler="gaussian", n_resamples=0, **QUIET,
    )  # fmt: skip
    assert objects.graph.markov_blanket("y") == ("c",)


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
    monkeypatch.setattr(sys.modules["dsage.explain"], "find_graph", None)
    with pytest.raises((ValueError, TypeError)) as caught:
        dsage.explain(model, *rows, **QUIET, **change)
    assert next(iter(change)).split("_")[0] in str(caught.value)


def test_an_interrupted_search_ends_the_call(model, rows, monkeypatch):
    def interrupted(*_, **__):
        return SearchResult(dsage.Graph(list("abcdy"), []), 0.0, (), 0, 0.0, True, "auto")

    monkeypatch.setattr("dsage.resolve.graph.search_graph", interrupted)
    with pytest.raises(KeyboardInterrupt):
        dsage.explain(model, *rows, **QUIET)


def test_an_interrupt_before_the_first_units_ends_the_call_and_a_later_one_tells(model, rows):
    X_train, y_train, X_test, y_test = rows
    calls = []

    def interrupted_at(number):
        def predict(X):
            calls.append(len(X))
            if len(calls) == number:
                raise KeyboardInterrupt
            return model.predict(X)

        return predict

    options = {"graph": None, "sampler": "gaussian", "rows_per_ordering": 20, **QUIET}
    # The first two calls are for some rows, and for all.
    with pytest.raises(KeyboardInterrupt):
        dsage.explain(interrupted_at(3), *rows, exact="never", **options)
    calls.clear()
    found = dsage.explain(interrupted_at(60), *rows, exact="never", tolerance=1e-6, **options)
    assert found.estimate.interrupted
    assert "interrupted: these are the values so far" in repr(found)
    assert found.choices["estimate"]["interrupted"] is True


def test_interrupted_resamples_are_counted_as_they_were(model, rows, monkeypatch):
    monkeypatch.setattr(
        "dsage.resolve.graph.stability",
        lambda table, n, **options: stability(table, 3, random_state=0),
    )
    found = dsage.explain(model, *rows, sampler="gaussian", n_orderings=4, **QUIET)
    assert found.choices["graph"]["resamples"] == 3


def test_what_is_ignored_is_kept_and_what_is_an_error_is_raised(rows):
    X_train, y_train, X_test, y_test = rows
    X_train, X_test = X_train.assign(one=1.0), X_test.assign(one=1.0)
    model = LinearRegression().fit(X_train, y_train)
    options = {"sampler": "gaussian", "n_resamples": 0, **QUIET}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = dsage.explain(model, X_train, y_train, X_test, y_test, **options)
    assert any("one" in text for text in found.warnings)
    with pytest.raises(UserWarning, match="one"):
        dsage.explain(model, X_train, y_train, X_test, y_test, **options)


def test_numbers_of_numpy_can_be_saved_as_options(model, rows, tmp_path):
    found = dsage.explain(
        model, *rows, graph=None, sampler="gaussian", n_jobs=np.int64(1), n_draws=np.int64(16),
        n_orderings=4, **QUIET,
    )  # fmt: skip
    again = dsage.load(found.save(tmp_path / "run.dsage"))
    assert again.choices["run"]["n_jobs"] == 1
    assert again.choices["estimate"]["n_draws"] == 16


def test_a_partial_order_is_told_in_the_headline_and_in_the_choices(model, rows):
    order = Order(["a", "b", "c", "d"], [("a", "b")])
    found = dsage.explain(model, *rows, orderings=order, sampler="gaussian", graph=None, **QUIET)
    assert found.choices["estimate"]["orderings"] == repr(order)
    assert repr(found).startswith("asymmetric SAGE values")


def test_steps_of_a_pipeline_are_told(rows):
    model = make_pipeline(StandardScaler(), LinearRegression()).fit(*rows[:2])
    found = dsage.explain(model, *rows, graph=None, sampler="gaussian", **QUIET)
    assert found.choices["model"]["steps"] == "StandardScaler, LinearRegression"


def test_columns_that_the_model_does_not_know_are_refused_before_any_work(model, rows, monkeypatch):
    monkeypatch.setattr(sys.modules["dsage.explain"], "find_graph", None)
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


def test_several_targets_have_no_graph_to_learn(rows):
    X_train, y_train, X_test, y_test = rows
    both = np.column_stack([y_train, y_train]), np.column_stack([y_test, y_test])
    model = MultiOutputRegressor(LinearRegression()).fit(X_train, both[0])
    with pytest.raises(ValueError, match="one output at a time"):
        dsage.explain(model, X_train, both[0], X_test, both[1], **QUIET)

    def squared(y, prediction):
        return ((y - prediction) ** 2).sum(axis=1)

    with pytest.raises(ValueError, match="A graph is learned for one target"):
        dsage.explain(model, X_train, both[0], X_test, both[1], loss=squared, **QUIET)


def test_few_rows_are_enough_for_a_sampler_that_is_named(rows):
    X, y = chain(12)
    model = LinearRegression().fit(X, y)
    found = dsage.explain(
        model, X, y, X[:3], y[:3], graph=None, sampler="gaussian", n_orderings=4, **QUIET
    )
    assert found.sampler_scores is None
    assert found.choices["sampler"]["energy_score"] is None
    with pytest.raises(ValueError, match="more rows to choose a sampler"):
        dsage.explain(model, X[:8], y[:8], X[:3], y[:3], graph=None, **QUIET)


def test_a_target_of_no_name_gets_one_that_is_free():
    X, y = chain(60)
    X = X.rename(columns={"a": "target"})
    model = LinearRegression().fit(X, y)
    found = dsage.explain(
        model, X, y.to_numpy(), X, y.to_numpy(), sampler="gaussian", n_resamples=0, **QUIET
    )
    assert found.target == "target_"
