"""Partial graphs claim only separations that all their members have."""

import itertools
from enum import Enum
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression

import dsage
from ancestral import ancestral_edges, collider_ends, with_circles
from dsage import Graph
from dsage.estimate import enumerate_boundaries
from dsage.graphs import PartialGraph, as_graph, compare_graphs, is_oracle
from explain_case import QUIET, chain
from given import all_coalitions, dags


@st.composite
def hidden_worlds(draw):
    """A DAG as networkx knows it, and its observed nodes, the last of which is the target."""
    graph = draw(dags(min_nodes=3, max_nodes=8))
    n_latent = draw(st.integers(0, min(3, len(graph) - 2)))
    observed = draw(st.permutations(graph.names))[n_latent:]
    return graph.to_networkx(), list(observed)


def true_answers(dag, observed):
    """Which features networkx separates from the target given each coalition."""
    *features, target = observed
    known = all_coalitions(len(features))
    answers = np.zeros_like(known)
    for at, feature in np.argwhere(~known):
        inside = {name for name, is_known in zip(features, known[at], strict=True) if is_known}
        answers[at, feature] = nx.is_d_separator(dag, {features[feature]}, {target}, inside)
    return known, answers


@given(hidden_worlds())
def test_without_circles_the_separations_are_those_of_the_dag(world):
    dag, observed = world
    known, expected = true_answers(dag, observed)
    graph = PartialGraph(observed, ancestral_edges(dag, observed))
    np.testing.assert_array_equal(graph.oracle(observed[-1]).separated(known), expected)


@given(hidden_worlds(), st.data(), st.booleans())
def test_with_circles_no_separation_is_invented(world, data, colliders_marked):
    dag, observed = world
    edges = ancestral_edges(dag, observed)
    ends = {(number, node) for number, (a, _, b) in enumerate(edges) for node in (a, b)}
    if colliders_marked:
        ends -= collider_ends(edges)
    circled = data.draw(st.sets(st.sampled_from(sorted(ends)))) if ends else set()
    graph = PartialGraph(observed, with_circles(edges, circled), colliders_marked=colliders_marked)
    known, possible = true_answers(dag, observed)
    oracle = graph.oracle(observed[-1])
    claimed = oracle.separated(known)
    assert not (claimed & ~possible).any()
    exact = PartialGraph(observed, edges).oracle(observed[-1])
    assert not (exact.boundary(known) & ~oracle.boundary(known)).any()


@given(hidden_worlds(), st.data())
def test_a_feature_is_separated_where_it_leaves_the_boundary_as_it_is(world, data):
    dag, observed = world
    edges = ancestral_edges(dag, observed)
    ends = {(number, node) for number, (a, _, b) in enumerate(edges) for node in (a, b)}
    circled = data.draw(st.sets(st.sampled_from(sorted(ends)))) if ends else set()
    oracle = PartialGraph(observed, with_circles(edges, circled)).oracle(observed[-1])
    known = all_coalitions(len(observed) - 1)
    separated, boundary = oracle.separated(known), oracle.boundary(known)
    for feature in range(known.shape[1]):
        larger = known.copy()
        larger[:, feature] = True
        same = (oracle.boundary(larger) == boundary).all(axis=1)
        outside = ~known[:, feature]
        np.testing.assert_array_equal(separated[outside, feature], same[outside])
    # Hence the boundary of a boundary is itself, and null players can be left out.
    np.testing.assert_array_equal(oracle.boundary(boundary), boundary)
    assert oracle.is_of_graph
    assert enumerate_boundaries(oracle).coalitions.shape[1] == known.shape[1]


class TestByHand:
    """The textbook example of FCI, a o-> c <-o b and c --> d, and small variations."""

    @pytest.fixture
    def graph(self):
        edges = [("a", "o->", "c"), ("b", "o->", "c"), ("c", "-->", "d")]
        return PartialGraph(list("abcd"), edges)

    def test_causes_are_separated_until_the_effect_is_known(self, graph):
        assert graph.is_separated("a", "b")
        assert not graph.is_separated("a", "b", given="c")
        assert not graph.is_separated("a", "b", given="d")

    def test_a_known_non_collider_separates(self, graph):
        assert graph.is_separated(["a", "b"], "d", given="c")
        assert not graph.is_separated("a", "d")
        assert graph.markov_blanket("d") == ("c",)

    def test_features_in_any_order_and_unobserved_nodes(self, graph):
        oracle = graph.oracle("d", ["b", "a"])
        assert oracle.feature_names == ("b", "a")
        assert not oracle.separated(all_coalitions(2)).any()

    def test_marked_colliders_decide_unshielded_triples_of_circles(self):
        edges = [("a", "o-o", "b"), ("b", "o-o", "c")]
        assert PartialGraph(list("abc"), edges).is_separated("a", "c", given="b")
        assert not PartialGraph(list("abc"), edges).is_separated("a", "c")
        undecided = PartialGraph(list("abc"), edges, colliders_marked=False)
        assert not undecided.is_separated("a", "c", given="b")
        assert not undecided.is_separated("a", "c")

    def test_shielded_triples_remain_undecided(self):
        edges = [("a", "o-o", "b"), ("b", "o-o", "c"), ("a", "o-o", "c"), ("c", "o-o", "d")]
        graph = PartialGraph(list("abcd"), edges)
        assert graph.is_separated("a", "d", given="c")
        assert not graph.is_separated("a", "d", given="b")

    def test_a_possible_descendant_opens_a_collider(self):
        edges = [("a", "-->", "c"), ("b", "-->", "c"), ("c", "o-o", "d"), ("d", "o-o", "e")]
        graph = PartialGraph(list("abcde"), edges, colliders_marked=False)
        assert graph.is_separated("a", "b")
        assert not graph.is_separated("a", "b", given="e")

    def test_selected_rows(self):
        graph = PartialGraph(list("abc"), [("a", "---", "b"), ("b", "---", "c")])
        assert not graph.is_separated("a", "c")
        assert graph.is_separated("a", "c", given="b")


class TestValue:
    def test_edges_are_drawn_in_the_usual_direction(self):
        edges = [("b", "<-o", "a"), ("b", "o-o", "a2"), ("c", "<--", "a"), ("c", "--o", "b")]
        graph = PartialGraph(["a", "a2", "b", "c"], edges)
        assert graph.edges == (
            ("a", "o->", "b"),
            ("a", "-->", "c"),
            ("a2", "o-o", "b"),
            ("b", "o--", "c"),
        )
        assert repr(graph).startswith("PartialGraph(4 nodes, 4 edges: a o-> b, a --> c")
        assert len(graph) == 4
        assert "a2" in graph
        assert "z" not in graph

    def test_equality_ignores_the_order(self):
        one = PartialGraph(["a", "b"], [("a", "o->", "b")])
        assert one == PartialGraph(["b", "a"], [("b", "<-o", "a")])
        assert hash(one) == hash(PartialGraph(["b", "a"], [("b", "<-o", "a")]))
        assert one != PartialGraph(["a", "b"], [("a", "-->", "b")])
        assert one != PartialGraph(["a", "b"], [("a", "o->", "b")], colliders_marked=False)
        assert one != Graph(["a", "b"], [("a", "b")])

    @pytest.mark.parametrize(
        ("edges", "text"),
        [
            ([("a", "->", "b")], "the middle of an edge must be .* got '->'"),
            ([("a", ">-o", "b")], "the middle of an edge"),
            ([("a", 3, "b")], "the middle of an edge"),
            ([("a", "b")], r"Write each as \('a', 'o->', 'b'\)"),
            ([("a", "o->", "z")], "one of the nodes of the graph; got 'z'"),
            ([("a", "o->", "a")], "two different names"),
            ([("a", "o->", "b"), ("b", "o-o", "a")], "one for each pair of nodes"),
            ([("a", "-->", "b"), ("c", "<--", "b"), ("c", "-->", "a")], "directed cycle.*a --> "),
        ],
    )
    def test_wrong_edges_are_refused(self, edges, text):
        with pytest.raises(ValueError, match=text):
            PartialGraph(["a", "b", "c"], edges)

    def test_edges_must_be_iterable(self):
        with pytest.raises(TypeError, match="an iterable of marked edges"):
            PartialGraph(["a", "b"], "a o-> b")

    def test_the_target_is_no_feature(self):
        with pytest.raises(ValueError, match="without the target"):
            PartialGraph(["a", "b"], []).oracle("a", ["a", "b"])


Endpoint = Enum("Endpoint", ["TAIL", "ARROW", "CIRCLE", "TAIL_AND_ARROW"])
ENDS = {
    "-": Endpoint.TAIL,
    "<": Endpoint.ARROW,
    ">": Endpoint.ARROW,
    "o": Endpoint.CIRCLE,
    "+": Endpoint.TAIL_AND_ARROW,
}


def fci_result(names, edges):
    """What `causallearn.search.ConstraintBased.FCI.fci` returns: a graph, and its edges."""
    nodes = {name: SimpleNamespace(get_name=lambda name=name: name) for name in names}

    def edge(one, drawn, other):
        return SimpleNamespace(
            get_node1=lambda: nodes[one],
            get_node2=lambda: nodes[other],
            get_endpoint1=lambda: ENDS[drawn[0]],
            get_endpoint2=lambda: ENDS[drawn[-1]],
        )

    made = [edge(*each) for each in edges]
    graph = SimpleNamespace(get_nodes=lambda: list(nodes.values()), get_graph_edges=lambda: made)
    return graph, made


class TestCausalLearn:
    EDGES = (("a", "o->", "b"), ("b", "<->", "c"), ("d", "o-o", "c"), ("d", "<--", "a"))

    def test_circles_make_a_partial_graph(self):
        expected = PartialGraph(list("abcd"), self.EDGES)
        assert as_graph(fci_result("abcd", self.EDGES)) == expected
        assert as_graph(expected) is expected

    def test_without_circles_it_is_a_plain_graph(self):
        result = fci_result("abc", [("a", "-->", "b"), ("b", "<->", "c")])
        assert as_graph(result) == Graph(list("abc"), [("a", "b")], [("b", "c")])

    def test_background_knowledge_may_hide_colliders(self):
        result = fci_result("abcd", self.EDGES)
        found = PartialGraph.from_causal_learn(result, colliders_marked=False)
        assert found == PartialGraph(list("abcd"), self.EDGES, colliders_marked=False)

    def test_other_ends_are_refused(self):
        with pytest.raises(ValueError, match="a tail, arrow or circle"):
            as_graph(fci_result("ab", [("a", "+-o", "b")]))

    def test_a_plain_graph_cannot_have_circles(self):
        with pytest.raises(ValueError, match=r"got 'a o-> b'.*pass that as graph= to explain"):
            Graph.from_causal_learn(fci_result("abcd", self.EDGES))

    def test_the_result_of_fci_is_read(self):
        """Two causes of an effect, which causes another: FCI finds a o-> c <-o b, c --> d."""
        fci = pytest.importorskip("causallearn.search.ConstraintBased.FCI").fci
        rng = np.random.default_rng(0)
        a, b = rng.normal(size=(2, 2000))
        c = a + b + rng.normal(size=2000)
        X = np.column_stack([a, b, c, c + rng.normal(size=2000)])
        found = as_graph(fci(X, show_progress=False, node_names=list("abcd")))
        edges = [("a", "o->", "c"), ("b", "o->", "c"), ("c", "-->", "d")]
        assert found == PartialGraph(list("abcd"), edges)


@pytest.fixture(scope="module")
def rows():
    X, y = chain()
    return X[:200], y[:200], X[200:], y[200:]


class TestUse:
    # What FCI finds from many rows: d is noise.
    EDGES = (("a", "o-o", "b"), ("b", "o-o", "c"), ("c", "o-o", "y"))

    def explain(self, graph, rows, **options):
        model = LinearRegression().fit(*rows[:2])
        few = {"n_orderings": 4, "sampler": "gaussian", **QUIET}
        return dsage.explain(model, *rows, graph=graph, **few, **options)

    def test_explain_uses_the_separations(self, rows, tmp_path):
        graph = PartialGraph(list("abcdy"), self.EDGES)
        found = self.explain(graph, rows)
        same = self.explain(Graph(list("abcdy"), [("a", "b"), ("b", "c"), ("c", "y")]), rows)
        np.testing.assert_array_equal(found.values, same.values)
        assert found.values[3] == 0.0
        info = found.choices.graph
        assert (info.kind, info.n_edges, info.markov_blanket) == ("PartialGraph", 3, ("c",))
        found.save(tmp_path / "run.dsage")
        assert dsage.load(tmp_path / "run.dsage").choices.graph == info
        found.report(tmp_path / "report.html")

    def test_a_result_of_fci_and_a_function_give_the_same(self, rows):
        result = fci_result("abcdy", self.EDGES)

        def with_fci(frame):
            return fci_result(frame.columns, self.EDGES)

        given_result, learned = self.explain(result, rows), self.explain(with_fci, rows)
        np.testing.assert_array_equal(given_result.values, learned.values)
        assert learned.choices.graph.method == "with_fci"
        assert learned.choices.graph.kind == "PartialGraph"

    def test_resamples_are_refused(self, rows):
        graph = PartialGraph(list("abcdy"), self.EDGES)
        with pytest.raises(ValueError, match="n_resamples must be left out"):
            self.explain(lambda _: graph, rows, n_resamples=2)

    def test_the_target_must_be_a_node(self, rows):
        with pytest.raises(ValueError, match="the target 'y'"):
            self.explain(PartialGraph(list("abcd"), []), rows)

    def test_a_plain_graph_is_required_elsewhere(self, rows):
        graph = PartialGraph(list("abcd"), self.EDGES[:2])
        with pytest.raises(ValueError, match=r"method must be .* no circles.*graph= to explain"):
            dsage.learn_graph(rows[0], method=lambda _: graph)
        with pytest.raises(TypeError, match=r"without circles.*graph= to explain"):
            dsage.score_graph(graph, rows[0])
        assert not is_oracle(graph)

    def test_oracles_can_be_compared(self):
        names = list("abcdy")
        truth = Graph(names, [("a", "b"), ("b", "c"), ("c", "y")])
        oracle = PartialGraph(names, self.EDGES).oracle("y")
        assert compare_graphs(truth, oracle, "y").f1 == 1.0


def test_many_coalitions_at_once_give_the_answers_of_one():
    rng = np.random.default_rng(0)
    names = [f"v{number}" for number in range(12)]
    drawn = ("o-o", "o->", "<->")
    edges = [
        (one, rng.choice(drawn).item(), other)
        for one, other in itertools.combinations(names, 2)
        if rng.random() < 0.25
    ]
    oracle = PartialGraph(names, edges).oracle("v0")
    known = rng.random((200, 11)) < 0.5
    together = oracle.separated(known)
    alone = np.concatenate([oracle.separated(row[None]) for row in known])
    np.testing.assert_array_equal(together, alone)
    assert 0 < together.sum() < (~known).sum()
