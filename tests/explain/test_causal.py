"""`explain` and `explain_rows` with features that are set."""

import dataclasses
import itertools
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

import dsage
from dsage import Graph, explain, explain_rows
from dsage._check import DsageWarning, GraphWarning
from dsage.data.inputs import check_inputs
from dsage.graphs import PartialGraph, cpdag
from dsage.report import report_data
from dsage.samplers import Gaussian
from dsage.structure import stability
from dsage.structure.causes import find_causes
from dsage.structure.knowledge import Knowledge
from explain_case import QUIET, chain

CAUSAL = {**QUIET, "estimand": "causal", "sampler": "gaussian"}
GRAPH = Graph(["a", "b", "c", "d", "y"], [("a", "b"), ("b", "c"), ("c", "y")])
TIERS = [["a"], ["b"], ["c", "d"], ["y"]]


@pytest.fixture(scope="module")
def rows():
    X, y = chain()
    return X[:200], y[:200], X[200:], y[200:]


@pytest.fixture(scope="module")
def model(rows):
    return LinearRegression().fit(*rows[:2])


@pytest.fixture(scope="module")
def given(model, rows):
    return explain(model, *rows, graph=GRAPH, **CAUSAL)


def test_a_given_graph_is_taken_as_it_is(given):
    assert given.estimate.estimand == "causal"
    assert given.range_graph is None
    np.testing.assert_allclose(given.direct + given.indirect, given.values)
    assert given.indirect[0] > 0.3 * given.values[0]  # a acts through b and c
    assert given.indirect[2] == given.indirect[3] == 0.0
    assert str(given).startswith("causal SAGE values of LinearRegression")
    assert "direct" in str(given)


def test_a_file_has_the_parts_and_the_range(model, rows, tmp_path):
    learned = explain(model, *rows, **CAUSAL)
    again = dsage.load(learned.save(tmp_path / "run.dsage"))
    pd.testing.assert_frame_equal(again.to_frame(), learned.to_frame())
    np.testing.assert_array_equal(again.indirect, learned.indirect)
    assert again.range_graph.graphs == learned.range_graph.graphs
    assert "over graphs" in str(again)
    assert learned.range_graph.n_members == 1 + len(learned.range_graph.graphs)
    lowest, highest = learned.range_graph.lowest, learned.range_graph.highest
    assert ((lowest <= learned.values) & (learned.values <= highest)).all()


def test_the_range_is_that_of_the_members_of_the_class(model, rows):
    options = {**CAUSAL, "graph": cpdag(GRAPH)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GraphWarning)
        found = explain(model, *rows, **options)
    members = [explain(model, *rows, **{**CAUSAL, "graph": each}) for each in _members()]
    values = np.stack([each.values for each in members])
    np.testing.assert_allclose(found.range_graph.lowest, values.min(axis=0), atol=1e-9)
    np.testing.assert_allclose(found.range_graph.highest, values.max(axis=0), atol=1e-9)
    np.testing.assert_allclose(found.range_graph.means, values.mean(axis=0), atol=1e-9)


def _members():
    directions = [
        [("a", "b"), ("b", "c"), ("c", "y")],
        [("b", "a"), ("b", "c"), ("c", "y")],
        [("b", "a"), ("c", "b"), ("c", "y")],
        [("b", "a"), ("c", "b"), ("y", "c")],
    ]
    return [Graph(GRAPH.names, edges) for edges in directions]


def test_what_is_known_about_causes_excludes_graphs(model, rows, given):
    found = explain(model, *rows, tiers=TIERS, **CAUSAL)
    assert found.range_graph is None
    assert found.graph == GRAPH
    np.testing.assert_allclose(found.values, given.values)
    other = explain(
        model, *rows, required=[("b", "a")], forbidden=[("y", "c"), ("c", "b")], **CAUSAL
    )
    assert ("b", "a") in other.graph.edges
    assert other.range_graph is None


def test_graphs_of_resamples_are_part_of_the_range(model, rows):
    options = {**CAUSAL, "tiers": TIERS, "n_resamples": 3}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GraphWarning)
        found = explain(model, *rows, **options)
    assert sum(found.range_graph.are_resampled) == 3
    data = report_data(found)
    assert any("resampled" in text for text in data["causal"]["sentences"])


def test_the_report_says_what_set_means(given, tmp_path):
    data = report_data(given)
    assert {each["term"] for each in data["causal"]["terms"]} >= {
        "Set, not observed",
        "Direct part",
    }
    assert data["audit"]["verdicts"] == []
    assert "causal SAGE" in data["subtitle"]
    names = [each["name"] for each in data["assumptions"]]
    assert "directions" in names[0]
    assert given.report(tmp_path / "report.html").exists()
    plain = dataclasses.replace(given.estimate, estimand="sage", parts=None)
    assert report_data(dataclasses.replace(given, estimate=plain))["causal"] is None


def test_values_of_rows_add_up_and_have_parts(model, rows, tmp_path):
    found = explain_rows(model, *rows[:2], rows[2][:3], graph=GRAPH, **_without(CAUSAL))
    np.testing.assert_allclose(
        found.base_values + found.values.sum(axis=1), model.predict(rows[2][:3])
    )
    np.testing.assert_allclose(found.direct + found.indirect, found.values)
    assert {"direct", "se_indirect"} <= set(found.to_frame().columns)
    assert str(found).startswith("Causal Shapley values")
    again = dsage.RowExplanation.load(found.save(tmp_path / "rows.dsage"))
    np.testing.assert_array_equal(again.direct, found.direct)
    np.testing.assert_array_equal(found[1:].indirect, found.indirect[1:])


def _without(options):
    return {name: each for name, each in options.items() if name != "sampler_check"}


def test_rows_warn_of_open_directions(model, rows):
    with pytest.warns(DsageWarning, match="data do not determine the directions"):
        explain_rows(model, *rows[:2], rows[2][:2], **_without(CAUSAL))


def test_results_do_not_depend_on_jobs_and_resume_to_the_bit(model, rows, tmp_path):
    options = {**CAUSAL, "graph": GRAPH, "exact": "never", "loss": "squared_error"}
    one = explain(model.predict, *rows, n_orderings=16, **options)
    two = explain(model.predict, *rows, n_orderings=16, n_jobs=2, **options)
    np.testing.assert_array_equal(one.values, two.values)
    kept = {**options, "checkpoint": tmp_path / "state"}
    explain(model.predict, *rows, n_orderings=8, **kept)
    resumed = explain(model.predict, *rows, n_orderings=16, **kept)
    np.testing.assert_array_equal(one.values, resumed.values)
    np.testing.assert_array_equal(one.indirect, resumed.indirect)


def test_an_explainer_keeps_to_what_it_was_fitted_for(model, rows, given):
    explainer = dsage.Explainer(graph=GRAPH, **CAUSAL).fit(*rows[:2])
    np.testing.assert_allclose(explainer.explain(model, *rows[2:]).values, given.values)
    with pytest.raises(ValueError, match="estimand must be 'causal', as in fit"):
        explainer.explain(model, *rows[2:], estimand="sage")


def test_two_models_are_compared_by_causal_values(model, rows):
    options = {name: each for name, each in CAUSAL.items() if name != "sampler_check"}
    other = LinearRegression().fit(rows[0] * [1, 1, 0, 1], rows[1])
    found = dsage.compare({"one": model, "two": other}, *rows, graph=GRAPH, **options)
    assert str(found).startswith("causal SAGE")


def test_explain_warns_where_the_rank_depends_on_the_graph_and_only_there(rows):
    # The model uses b, the middle of a chain: which of a and c acts on it is not known.
    middle = LinearRegression().fit(rows[0] * [0, 1, 0, 0], rows[1])
    with pytest.warns(GraphWarning, match="the order of 'a' and 'c'.* depends? on it"):
        found = explain(middle, *rows, **{**CAUSAL, "graph": cpdag(GRAPH)})
    assert ("a", "c") in found.range_graph.changes_rank()
    # c alone matters to this model, whatever causes it.
    alone = LinearRegression().fit(rows[0] * [0, 0, 1, 0], rows[1])
    with warnings.catch_warnings():
        warnings.simplefilter("error", GraphWarning)
        found = explain(alone, *rows, **{**CAUSAL, "graph": cpdag(GRAPH)})
    assert len(found.range_graph.graphs) == 3


def causes_of(graph, features, **options):
    X = np.random.default_rng(0).normal(size=(30, len(features)))
    table = pd.DataFrame(X, columns=features)
    y = pd.Series(X[:, 0], name="y")
    inputs = check_inputs(table[:20], y[:20], table[20:], y[20:])
    options = {"knowledge": Knowledge(), "n_resamples": None} | options
    return find_causes(
        graph,
        inputs,
        is_of_classes=False,
        min_share=None,
        n_jobs=None,
        seed=0,
        progress=False,
        **options,
    )


def test_members_of_large_classes_are_sampled_in_proportion():
    # A chain of 40 nodes has 40 members, one for each source.
    names = [f"x{at}" for at in range(39)]
    chain_of = Graph([*names, "y"], list(itertools.pairwise([*names, "y"])))
    found = causes_of(cpdag(chain_of), names)
    assert found.n_members == 40
    shares = [each.share for each in found.alternatives]
    assert len(shares) <= 12
    # Of 12 draws, those that are the graph of the run itself are not listed.
    np.testing.assert_allclose(np.array(shares) * 12 % 1, 0, atol=1e-9)
    assert 9 / 12 <= sum(shares) <= 1 + 1e-9
    assert not any(each.is_resampled for each in found.alternatives)
    # What is known leaves three of the members, all of which are listed.
    known = Knowledge.read([*names, "y"], forbidden=[("x3", "x2")])
    found = causes_of(cpdag(chain_of), names, knowledge=known)
    assert found.n_members == 3
    assert [each.share for each in found.alternatives] == [1 / 3, 1 / 3]


def test_the_range_does_not_depend_on_jobs(model, rows):
    options = {**CAUSAL, "graph": cpdag(GRAPH), "loss": "squared_error", "n_orderings": 16}
    options["exact"] = "never"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GraphWarning)
        one, two = (explain(model.predict, *rows, n_jobs=n, **options) for n in (1, 2))
    assert one.range_graph.se.max() > 0
    np.testing.assert_array_equal(one.range_graph.differences, two.range_graph.differences)


def test_plots_draw_parts_and_ranges(given):
    pytest.importorskip("matplotlib").use("agg")
    from matplotlib import pyplot as plt

    labels = [text.get_text() for text in given.plot.parts().get_yticklabels()]
    assert labels == given.to_frame()["feature"].tolist()
    with pytest.raises(ValueError, match="one with range_graph"):
        given.plot.graph_range()
    plain = dataclasses.replace(given.estimate, parts=None)
    with pytest.raises(ValueError, match="one of causal values"):
        dataclasses.replace(given, estimate=plain).plot.parts()
    plt.close("all")


class TestRefusals:
    def refuse(self, model, rows, match, **options):
        with pytest.raises((ValueError, TypeError), match=match):
            explain(model, *rows, **{**CAUSAL, **options})

    def test_no_graph(self, model, rows):
        self.refuse(model, rows, "graph must be a graph for causal values", graph=None)

    def test_separations(self, model, rows):
        oracle = GRAPH.oracle("y", features=list("abcd"))
        self.refuse(model, rows, "Separations do not distinguish causes", graph=oracle)
        table = rows[0].assign(y=rows[1])
        votes = stability(table, 2, random_state=0)
        self.refuse(model, rows, "Separations do not distinguish causes", graph=votes)

    def test_circles(self, model, rows):
        graph = PartialGraph(GRAPH.names, [("a", "o->", "b")])
        self.refuse(model, rows, "Not all of its directions", graph=graph)

    def test_a_vote(self, model, rows):
        self.refuse(model, rows, "min_share must be left out", min_share=0.9)

    def test_marginal_draws(self, model, rows):
        self.refuse(model, rows, "a conditional one", graph=GRAPH, sampler="marginal")

    def test_knowledge_beside_a_graph(self, model, rows):
        self.refuse(model, rows, "left out unless the graph is learned", graph=GRAPH, tiers=TIERS)

    def test_tiers_that_are_names(self, model, rows):
        self.refuse(model, rows, "tiers must be a list of lists", tiers=["a", "b"])

    def test_knowledge_that_no_member_has(self, model, rows):
        known = {"required": [("y", "a")]}
        self.refuse(model, rows, "agrees with what is known", graph=cpdag(GRAPH), **known)

    def test_a_sampler_of_other_columns(self, model, rows):
        sampler = Gaussian().fit(rows[0][["a", "b"]])
        self.refuse(model, rows, "sampler must be", graph=GRAPH, sampler=sampler)
