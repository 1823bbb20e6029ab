import copy
import pickle

import numpy as np
import pytest

from dsage import Graph
from dsage.datasets import PAPER_GRAPHS, paper_graph


@pytest.fixture
def graph():
    """a -> b -> y -> c, d -> c, y <-> e."""
    edges = [("a", "b"), ("b", "y"), ("y", "c"), ("d", "c")]
    return Graph(["a", "b", "c", "d", "e", "y"], edges, [("y", "e")])


def test_relatives(graph):
    assert graph.parents("c") == ("d", "y")
    assert graph.children("y") == ("c",)
    assert graph.ancestors("c") == ("a", "b", "d", "y")
    assert graph.descendants("b") == ("c", "y")
    assert graph.ancestors("a") == ()


def test_members_of_a_cycle_are_not_their_own_ancestors():
    graph = Graph(["a", "b", "c"], [("a", "b"), ("b", "a"), ("b", "c")])
    assert graph.ancestors("a") == ("b",)
    assert graph.descendants("a") == ("b", "c")


def test_markov_blanket_of_a_dag_is_parents_children_and_their_other_parents():
    for name in PAPER_GRAPHS:
        graph = paper_graph(name).graph
        for node in graph.names[:10]:
            expected = {*graph.parents(node), *graph.children(node)}
            for child in graph.children(node):
                expected |= set(graph.parents(child))
            assert set(graph.markov_blanket(node)) == expected - {node}


def test_markov_blanket_follows_bidirected_edges_and_the_parents_behind_them():
    graph = Graph(list("abcy"), [("a", "b"), ("c", "a")], [("y", "b")])
    assert graph.markov_blanket("y") == ("a", "b")


def test_topological_order_puts_causes_first(graph):
    order = graph.topological_order()
    assert sorted(order) == sorted(graph.names)
    assert all(order.index(tail) < order.index(head) for tail, head in graph.edges)


def test_a_cycle_is_known_and_shown_where_an_order_is_asked_for():
    graph = Graph(list("abcd"), [("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")])
    assert not graph.is_acyclic
    assert not graph.is_dag
    assert graph.cycles == (("a", "b", "c"),)
    with pytest.raises(
        ValueError,
        match=r"graph must be acyclic; got '(a -> b -> c -> a|b -> c -> a -> b|c -> a -> b -> c)'",
    ):
        graph.topological_order()


def test_an_acyclic_graph_with_bidirected_edges_is_no_dag(graph):
    assert graph.is_acyclic
    assert not graph.is_dag
    assert graph.cycles == ()
    assert Graph(graph.names, graph.edges).is_dag


def test_equality_and_hash_ignore_the_order_of_nodes_and_edges(graph):
    same = Graph(reversed(graph.names), reversed(graph.edges), [("e", "y")])
    assert same == graph
    assert hash(same) == hash(graph)
    assert Graph(graph.names, graph.edges) != graph
    assert Graph([*graph.names, "z"], graph.edges, graph.bidirected) != graph
    assert graph != "graph"


def test_repeated_edges_count_once():
    graph = Graph(["a", "b"], [("a", "b"), ("a", "b")], [("a", "b"), ("b", "a")])
    assert graph.edges == (("a", "b"),)
    assert graph.bidirected == (("a", "b"),)


def test_names_of_numpy_become_plain_strings():
    graph = Graph(np.array(["a", "b"]), [("a", "b")])
    assert [type(name) for name in graph.names] == [str, str]
    assert repr(graph) == "Graph(2 nodes, 1 edge: a -> b)"


def test_repr_helps(graph):
    assert repr(graph) == (
        "Graph(6 nodes, 4 edges, 1 bidirected: a -> b, b -> y, d -> c, y -> c, e <-> y)"
    )
    assert repr(Graph(["a"], [])) == "Graph(1 node, 0 edges)"
    assert "cyclic" in repr(Graph(["a", "b"], [("a", "b"), ("b", "a")]))
    assert repr(paper_graph("dag_l(4)").graph).endswith(", ...)")


def test_length_and_membership(graph):
    assert len(graph) == 6
    assert "y" in graph
    assert "z" not in graph


def test_nothing_can_be_changed(graph):
    with pytest.raises(AttributeError):
        graph.names = ("a",)
    with pytest.raises(AttributeError):
        graph.other = 1
    before = pickle.dumps(graph)
    frame = graph.to_adjacency()
    frame.iloc[:] = True
    graph.to_networkx().add_edge("c", "a")
    assert graph == pickle.loads(before)


def test_survives_pickle_and_copy_with_its_oracle(graph):
    oracle = graph.oracle("y")
    known = np.eye(5, dtype=bool)
    for again in (pickle.loads(pickle.dumps(graph)), copy.deepcopy(graph)):
        assert again == graph
        np.testing.assert_array_equal(again.oracle("y").separated(known), oracle.separated(known))
    again = pickle.loads(pickle.dumps(oracle))
    np.testing.assert_array_equal(again.boundary(known), oracle.boundary(known))


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ((["a", "a"], []), ValueError, "names must be distinct; got 'a'"),
        ((["a", ""], []), ValueError, "names must be non-empty strings"),
        ((["a", 1], []), TypeError, "names must be strings; got 1"),
        (("ab", []), TypeError, "names must be an iterable of strings; got 'ab'"),
        ((["a", "b"], [("a", "a")]), ValueError, r"edges must be of two different names; got \('a', 'a'\)"),
        ((["a", "b"], [("a", "c")]), ValueError, r"an end of \('a', 'c'\) must be one of the nodes of the graph; got 'c'"),
        ((["a", "b"], ["ab"]), ValueError, "edges must be pairs of names; got 'ab'"),
        ((["a", "b"], [("a", "b", "c")]), ValueError, "edges must be pairs of names"),
        ((["a", "b"], [{"a", "b"}]), ValueError, "edges must be pairs of names"),
        ((["a", "b"], [(["a"], "b")]), ValueError, "must be one of the nodes of the graph"),
        ((["a", "b"], None), TypeError, "edges must be an iterable of pairs; got None"),
        ((["a"], [], 1), TypeError, "bidirected must be an iterable of pairs; got 1"),
        (([], [("a", "b")]), ValueError, "got 'a'. There are none."),
        ((["a", "b"], [], [("b", "b")]), ValueError, "bidirected must be of two different"),
        ((["a", "b"], [], [("b", "z")]), ValueError, r"an end of \('b', 'z'\) must be one of"),
    ],
)  # fmt: skip
def test_bad_graphs_are_refused_with_the_culprit(arguments, error, text):
    with pytest.raises(error, match=text):
        Graph(*arguments)


@pytest.mark.parametrize(
    "method", ["parents", "children", "ancestors", "descendants", "markov_blanket", "oracle"]
)
def test_an_unknown_node_is_named_and_the_likely_one_suggested(method):
    graph = Graph(["income", "age"], [("age", "income")])
    with pytest.raises(ValueError, match=r"got 'incme'\. Did you mean 'income'\?$"):
        getattr(graph, method)("incme")
