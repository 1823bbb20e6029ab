"""What `explain` chooses, takes and tells."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import dsage
from dsage.estimate import Checkpoint
from dsage.models import LossReason, LossSource
from dsage.orderings import Order
from dsage.result.run_info import LossInfo
from dsage.samplers import Gaussian, Marginal
from dsage.samplers.info import SamplerSource
from dsage.structure import stability
from dsage.structure.info import GraphSource
from explain_case import QUIET, chain, exact_values, mixed


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
    assert plain.choices.graph.source is GraphSource.NONE


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
    assert found.choices.graph.source is GraphSource.GIVEN
    assert found.edge_strength is None


def test_a_vote_of_graphs_can_be_given(model, rows):
    found = stability(rows[0].assign(y=rows[1]), 6, random_state=0)
    voted = dsage.explain(model, *rows, graph=found, sampler="gaussian", **QUIET)
    assert voted.choices.graph.source is GraphSource.VOTE
    assert voted.choices.graph.n_graphs == 6
    assert voted.edge_strength is not None


def test_the_graph_is_learned_again_to_tell_how_sure_its_edges_are(model, rows, explanation):
    assert explanation.choices.graph.n_resamples == 0
    assert explanation.edge_strength is None
    again = dsage.explain(
        model,
        *rows,
        sampler="gaussian",
        n_orderings=4,
        n_resamples=20,
        **QUIET,
    )
    strength = again.edge_strength.set_index(["from", "to"])
    assert again.choices.graph.n_resamples == 20
    assert all(strength.loc[edge, "share"] > 0 for edge in again.graph.edges)


@pytest.mark.parametrize(
    "sampler", ["gaussian", "copula", "mix", "mixture", "neighbors", "sequential", "marginal"]
)
def test_a_sampler_can_be_named_and_is_scored(model, rows, sampler):
    found = dsage.explain(
        model, *rows, sampler=sampler, n_orderings=8, n_resamples=0, audit=False, **QUIET
    )
    info = found.choices.sampler
    assert info.source is SamplerSource.NAMED
    assert info.energy_score > 0
    assert info.energy_score_of_independence > 0
    assert info.name in found.sampler_scores["sampler"].tolist()


def test_a_sampler_is_chosen_by_its_score(model, rows):
    found = dsage.explain(model, *rows, n_resamples=0, n_orderings=8, **QUIET)
    best = found.sampler_scores.set_index("sampler")["energy_score"].drop("Marginal").idxmin()
    assert found.choices.sampler.name in ("Gaussian", best)
    assert found.choices.sampler.source is SamplerSource.CHOSEN
    assert found.choices.sampler.decision.chosen == found.choices.sampler.name


def test_a_fitted_sampler_is_taken_as_it_is_and_scored_on_the_evaluation_rows(model, rows):
    sampler = Gaussian().fit(rows[0][:50])
    found = dsage.explain(model, *rows, graph=None, sampler=sampler, **QUIET)
    np.testing.assert_allclose(found.values, exact_values(model, rows, sampler=sampler))
    scores = found.sampler_scores.set_index("sampler")
    assert scores.loc["Gaussian", "energy_score"] < scores.loc["Marginal", "energy_score"]
    assert scores.loc["Marginal", "difference"] > 0
    unfitted = dsage.explain(model, *rows, graph=None, sampler=Gaussian(), **QUIET)
    assert not np.allclose(found.values, unfitted.values)


def test_an_unfitted_sampler_is_not_changed(model, rows):
    sampler = Marginal()
    dsage.explain(model, *rows, graph=None, sampler=sampler, n_orderings=8, **QUIET)
    assert not sampler.is_fitted


def test_every_choice_is_recorded(explanation):
    choices = explanation.choices
    assert choices.model.name == "LinearRegression"
    assert choices.loss == LossInfo("squared_error", LossSource.CHOSEN, LossReason.REGRESSOR)
    assert (choices.data.n_rows_train, choices.data.n_rows_evaluation) == (200, 100)
    assert (choices.graph.source, choices.graph.method) == (GraphSource.LEARNED, "auto")
    assert choices.graph.markov_blanket == ("c",)
    assert choices.estimate.stopped_because == str(explanation.estimate.reason)
    assert choices.estimate.semantics == "boundary"
    assert choices.seconds.total >= choices.seconds.estimate
    assert choices.versions["dsage"] == dsage.__version__
    assert "scikit-learn" in choices.versions
    assert choices.run.random_state == "0"


def test_the_record_shows_as_a_listing_and_as_plain_data(explanation):
    choices = explanation.choices
    listing = choices.listing()
    assert list(listing) == [
        "model", "data", "graph", "sampler", "loss", "estimate", "evaluations", "seconds",
        "versions", "run",
    ]  # fmt: skip
    assert listing["data"]["n_rows_train"] == "200"
    assert "n_groups" not in listing["data"]
    lines = str(choices).splitlines()
    assert all(f"  {name} " in str(lines) for section in listing.values() for name in section)
    plain = choices.to_dict()
    assert plain["graph"]["source"] == "learned"
    assert plain["data"]["n_groups"] is None
    json.dumps(plain, allow_nan=False)


def test_kinds_are_recorded_and_can_be_given(model, rows):
    options = {"graph": None, "sampler": "marginal", "n_orderings": 8, **QUIET}
    rounded = [
        each.assign(b=each["b"].round().clip(-1, 1)) if hasattr(each, "assign") else each
        for each in rows
    ]
    found = dsage.explain(model, *rounded, **options).choices
    assert [str(kind) for kind in found.data.kinds.values()] == [
        "number",
        "codes",
        "number",
        "number",
    ]
    assert set(found.data.share_missing.values()) == {0.0}
    assert found.listing()["data"]["kinds"] == "number: a, c, d; codes: b"
    assert "share_missing" not in found.listing()["data"]
    given = dsage.explain(model, *rounded, kinds={"b": "class"}, **options).choices.data
    assert (str(given.kinds["b"]), given.class_numbers) == ("class", ("b",))
    with pytest.raises(ValueError, match=r"kinds\['b'\] must be one of the kinds; got 'colour'"):
        dsage.explain(model, *rounded, kinds={"b": "colour"}, **options)


def test_the_seed_of_a_run_without_one_repeats_it(model, rows):
    options = {
        "sampler": "mix",
        "n_resamples": 0,
        "n_orderings": 8,
        "progress": False,
        "audit": False,
        "sampler_check": False,
    }
    first = dsage.explain(model, *rows, **options)
    seed = int(first.choices.run.random_state)
    again = dsage.explain(model, *rows, **options, random_state=seed)
    np.testing.assert_array_equal(first.values, again.values)


def test_runs_tell_whether_they_were_evaluated_on_the_same_rows(explanation, model, rows):
    options = {"sampler": "gaussian", "graph": None, "n_orderings": 4, **QUIET}
    mark = dsage.explain(model, *rows, **options).choices.data.digest
    assert mark == explanation.choices.data.digest
    for other in ((rows[2][1:], rows[3][1:]), (rows[2], rows[3] + 1.0)):
        found = dsage.explain(model, *rows[:2], *other, **options)
        assert found.choices.data.digest != mark


def test_a_checkpoint_is_gone_on_with_also_without_a_seed(model, rows, tmp_path):
    path = tmp_path / "run.npz"
    options = {
        "graph": None, "sampler": "gaussian", "sampler_check": False, "exact": "never",
        "progress": False,
    }  # fmt: skip
    model = model.predict  # of which draws are needed
    rough = dsage.explain(model, *rows, **options, n_orderings=16, checkpoint=path)
    fine = dsage.explain(model, *rows, **options, n_orderings=64, checkpoint=Checkpoint(path))
    assert fine.choices.run.random_state == rough.choices.run.random_state
    assert len(fine.estimate.history) > len(rough.estimate.history)
    np.testing.assert_array_equal(fine.estimate.history.values[0], rough.estimate.history.values[0])
    whole = dsage.explain(
        model, *rows, **options, n_orderings=64,
        random_state=int(rough.choices.run.random_state),
    )  # fmt: skip
    np.testing.assert_array_equal(fine.values, whole.values)
    np.testing.assert_array_equal(fine.estimate.history.se, whole.estimate.history.se)


def test_numbers_that_are_classes_are_so_in_the_graph_too():
    X, y = mixed()
    labels = (y == "heavy").astype(int)
    model = LogisticRegression().fit(X[["size"]][:160], labels[:160])
    found = dsage.explain(
        model, X[["size"]][:160], labels[:160], X[["size"]][160:], labels[160:],
        sampler="gaussian", n_orderings=4, n_resamples=0, **QUIET,
    )  # fmt: skip
    assert len(found.graph.edges) == 1
    assert found.choices.graph.score == "basis"


def test_classes_that_only_the_training_rows_have_are_known():
    generator = np.random.default_rng(0)
    X = pd.DataFrame({"a": generator.normal(size=90)})
    y = np.repeat([0, 1, 2], 30)
    fitted = LogisticRegression().fit(X, y)
    found = dsage.explain(
        fitted.predict_proba, X, y, X[:60], y[:60], loss="cross_entropy", graph=None,
        sampler="gaussian", n_orderings=4, **QUIET,
    )  # fmt: skip
    assert found.choices.model.classes == (0, 1, 2)


def test_numbers_of_numpy_can_be_saved_as_options(model, rows, tmp_path):
    found = dsage.explain(
        model, *rows, graph=None, sampler="gaussian", n_jobs=np.int64(1), n_draws=np.int64(16),
        n_orderings=4, **QUIET,
    )  # fmt: skip
    again = dsage.load(found.save(tmp_path / "run.dsage"))
    assert again.choices.run.n_jobs == 1
    assert again.choices.estimate.n_draws == 16


def test_a_partial_order_is_told_in_the_headline_and_in_the_choices(model, rows):
    order = Order(["a", "b", "c", "d"], [("a", "b")])
    found = dsage.explain(model, *rows, orderings=order, sampler="gaussian", graph=None, **QUIET)
    assert found.choices.estimate.orderings == repr(order)
    assert found.choices.estimate.is_asymmetric
    assert repr(found).startswith("asymmetric SAGE values")


def test_steps_of_a_pipeline_are_told(rows):
    model = make_pipeline(StandardScaler(), LinearRegression()).fit(*rows[:2])
    found = dsage.explain(model, *rows, graph=None, sampler="gaussian", **QUIET)
    assert found.choices.model.steps == ("StandardScaler", "LinearRegression")


def test_a_target_of_no_name_gets_one_that_is_free():
    X, y = chain(60)
    X = X.rename(columns={"a": "target"})
    model = LinearRegression().fit(X, y)
    found = dsage.explain(
        model, X, y.to_numpy(), X, y.to_numpy(), sampler="gaussian", n_resamples=0, **QUIET
    )
    assert found.target == "target_"
