"""The `graph` argument of `explain` is resolved into an oracle and a typed record."""

from types import SimpleNamespace

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

import dsage
from dsage.data.inputs import check_inputs
from dsage.graphs import Consensus, Graph, NoSeparation
from dsage.graphs.partial import PartialGraph
from dsage.structure import GraphInfo, GraphSource, stability
from dsage.structure.resolve import find_graph

CHAIN = Graph(["a", "b", "y"], [("a", "b"), ("b", "y")])


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    a = rng.normal(size=120)
    b = a + rng.normal(size=120)
    y = pd.Series(b + rng.normal(size=120), name="y")
    X = pd.DataFrame({"a": a, "b": b})
    return X[:80], y[:80], X[80:], y[80:]


@pytest.fixture(scope="module")
def inputs(rows):
    return check_inputs(*rows, target=None, discrete=())


def resolve(graph, inputs, n_resamples=0, min_share=None):
    return find_graph(
        graph,
        inputs,
        is_of_classes=False,
        n_resamples=n_resamples,
        min_share=min_share,
        n_jobs=None,
        seed=0,
        progress=False,
    )


@pytest.mark.parametrize("graph", [None, NoSeparation(["a", "b"])])
def test_no_graph(inputs, graph):
    found = resolve(graph, inputs)
    assert found.oracle is None
    assert found.info == GraphInfo(GraphSource.NONE)


@pytest.mark.parametrize(("graph", "method"), [("learn", "auto"), ("auto", "auto"), ("hc", "hc")])
def test_a_learned_graph(inputs, graph, method):
    info = resolve(graph, inputs, n_resamples=3).info
    assert (info.source, info.method, info.score) == (GraphSource.LEARNED, method, "ebic")
    assert (info.n_edges, info.markov_blanket, info.n_resamples) == (2, ("b",), 3)
    assert np.isfinite(info.score_value)
    assert info.seconds > 0
    assert info.resampling_seconds > 0


@pytest.mark.parametrize(
    ("graph", "kind"),
    [
        (CHAIN, "dsage.Graph"),
        (nx.DiGraph(list(CHAIN.edges)), "DiGraph"),
        (CHAIN.to_adjacency(), "DataFrame"),
    ],
)
def test_a_given_graph(inputs, graph, kind):
    found = resolve(graph, inputs)
    assert found.graph == CHAIN
    assert found.info == GraphInfo(GraphSource.GIVEN, kind=kind, n_edges=2, markov_blanket=("b",))


def test_a_given_oracle(inputs):
    oracle = CHAIN.oracle("y")
    found = resolve(oracle, inputs)
    assert found.oracle is oracle
    assert found.graph is None
    assert found.info == GraphInfo(GraphSource.GIVEN, kind=type(oracle).__name__)


def test_a_vote(inputs):
    found = resolve(stability(inputs.training_table(), 4, random_state=0), inputs)
    assert found.info == GraphInfo(GraphSource.VOTE, n_graphs=4)
    assert found.strength is not None


class TestCallable:
    def test_it_receives_the_training_rows_with_the_target(self, inputs, rows):
        seen = []

        def learner(table):
            seen.append(table)
            return nx.DiGraph(list(CHAIN.edges))

        found = resolve(learner, inputs, n_resamples=None)
        pd.testing.assert_frame_equal(seen[0], rows[0].assign(y=rows[1]))
        assert len(seen) == 1  # it may be slow, so it is not repeated unless asked for
        assert found.graph == CHAIN
        assert found.info.source == GraphSource.LEARNED
        assert (found.info.method, found.info.score) == ("learner", None)
        assert found.info.score_value is None
        assert found.info.markov_blanket == ("b",)

    def test_it_learns_from_resamples_if_asked_for(self, inputs):
        found = resolve(lambda _: CHAIN, inputs, n_resamples=4)
        assert found.info.n_resamples == 4
        assert found.strength["share"].tolist() == [1.0, 1.0]

    @pytest.mark.parametrize(
        ("learner", "error", "text"),
        [
            (lambda _: 3, TypeError, "graph must be a callable that returns a graph; got 'int'"),
            (
                lambda _: Graph(["a", "b"], []),
                ValueError,
                r"graph must be a callable whose graph is over the columns .* got \['y'\]",
            ),
        ],
    )
    def test_what_is_not_a_graph_of_the_columns_is_refused(self, inputs, learner, error, text):
        with pytest.raises(error, match=text):
            resolve(learner, inputs)

    def test_explain_takes_it(self, rows):
        model = LinearRegression().fit(rows[0], rows[1])
        options = {"sampler": "gaussian", "random_state": 0, "progress": False, "audit": False}
        found = dsage.explain(model, *rows, graph=lambda _: CHAIN, **options)
        same = dsage.explain(model, *rows, graph=CHAIN, **options)
        assert found.graph == CHAIN
        np.testing.assert_array_equal(found.values, same.values)


def test_edges_of_both_kinds_are_counted(inputs):
    hidden = Graph(["a", "b", "y"], [("b", "y")], [("a", "b")])
    assert resolve(hidden, inputs).info.n_edges == 2
    assert resolve(lambda _: hidden, inputs).info.n_edges == 2


def test_a_partial_graph_that_is_learned_is_recorded(inputs):
    circles = PartialGraph(["a", "b", "y"], [("a", "o-o", "b"), ("b", "o->", "y")])
    found = resolve(lambda _: circles, inputs)
    assert found.graph is None
    assert (found.info.kind, found.info.n_edges, found.info.n_resamples) == ("PartialGraph", 2, 0)
    assert found.info.source is GraphSource.LEARNED
    assert found.info.markov_blanket == circles.markov_blanket("y")
    with pytest.raises(ValueError, match="n_resamples must be left out or 0"):
        resolve(lambda _: circles, inputs, n_resamples=1)


def test_names_and_targets_are_checked(inputs):
    with pytest.raises(ValueError, match=r"graph must be .*; got 'taboo'\. Did you mean 'tabu'\?"):
        resolve("taboo", inputs)
    with pytest.raises(ValueError, match=r"one that has the target 'y'.*target="):
        resolve(Graph(["a", "b"], []), inputs)
    with pytest.raises(TypeError, match="graph must be"):
        resolve(SimpleNamespace(), inputs)


def test_only_separations_that_resamples_share_are_used(inputs):
    plain = resolve("learn", inputs)
    sure = resolve("learn", inputs, n_resamples=None, min_share=0.9)
    known = np.array([[False, True]])
    assert plain.oracle.separated(known)[0, 0]
    assert isinstance(sure.oracle, Consensus)
    assert (sure.info.n_resamples, sure.info.min_share) == (20, 0.9)
    # All twenty graphs and the graph itself must agree.
    all_agree = resolve("learn", inputs, n_resamples=4, min_share=1.0)
    assert all_agree.oracle.separated(known)[0, 0] <= plain.oracle.separated(known)[0, 0]


def test_a_share_of_resamples_needs_a_graph_that_is_learned(inputs):
    with pytest.raises(ValueError, match="min_share must be left out with a graph"):
        resolve(Graph(["a", "b", "y"], [("b", "y")]), inputs, min_share=0.9)
    with pytest.raises(ValueError, match="min_share"):
        resolve("learn", inputs, min_share=1.5)
