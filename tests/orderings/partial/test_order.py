import pickle

import numpy as np
import pytest
from hypothesis import given, settings

from dsage import Graph
from dsage.datasets import paper_graph
from dsage.graphs import cpdag
from dsage.orderings import Order
from exact_values import extensions
from given import graphs, names, orders


def order_of(n_features, pairs):
    labels = names(n_features)
    return Order(labels, [(labels[one], labels[other]) for one, other in pairs])


@given(orders())
@settings(max_examples=80, deadline=None)
def test_an_ordering_is_consistent_exactly_when_it_keeps_every_pair(case):
    n_features, pairs = case
    order = order_of(*case)
    kept = set(extensions(n_features, pairs))
    for ordering in extensions(n_features, []):
        assert order.is_consistent(ordering) == (ordering in kept)


@given(orders())
@settings(max_examples=80, deadline=None)
def test_extensions_are_counted(case):
    assert order_of(*case).n_extensions == len(extensions(*case))


@given(orders())
@settings(max_examples=80, deadline=None)
def test_what_comes_before_is_what_comes_first_in_every_extension(case):
    places = np.argsort(extensions(*case), axis=1)
    np.testing.assert_array_equal(
        order_of(*case).before, (places[:, :, None] < places[:, None, :]).all(axis=0)
    )


@given(orders())
@settings(max_examples=40, deadline=None)
def test_the_pairs_are_the_fewest_that_imply_the_order(case):
    order = order_of(*case)
    assert Order(order.feature_names, order.pairs) == order
    for left_out in order.pairs:
        others = [pair for pair in order.pairs if pair != left_out]
        assert Order(order.feature_names, others) != order


def test_large_orders_of_simple_shape_are_counted_exactly():
    chains = [(f"a{k}", f"a{k + 1}") for k in range(29)] + [
        (f"b{k}", f"b{k + 1}") for k in range(29)
    ]
    every = [f"{letter}{k}" for letter in "ab" for k in range(30)]
    assert Order(every, chains).n_extensions == 118264581564861424  # 60! / 30!^2
    assert Order(names(25)).n_extensions == 15511210043330985984000000  # 25!


def test_an_order_that_is_too_large_is_not_counted():
    """Every feature of the second row needs two of the first: 2^20 ideals and more."""
    pairs = [(f"a{k}", f"b{k}") for k in range(20)] + [
        (f"a{k}", f"b{(k + 1) % 20}") for k in range(20)
    ]
    assert Order([f"{row}{k}" for row in "ab" for k in range(20)], pairs).n_extensions is None


def test_tiers_come_one_after_the_other():
    order = Order.tiers([["b", "a"], [], ["c"], ["f", "e"]])
    assert order.feature_names == ("b", "a", "c", "f", "e")
    assert order.n_extensions == 4
    assert order.is_consistent(["a", "b", "c", "e", "f"])
    assert not order.is_consistent(["a", "c", "b", "e", "f"])


def test_orders_made_from_different_pairs_can_be_equal():
    one = Order(["a", "b", "c"], [("a", "b"), ("b", "c")])
    other = Order(["c", "a", "b"], [("b", "c"), ("a", "c"), ("a", "b")])
    assert one == other
    assert hash(one) == hash(other)
    assert one != Order(["a", "b", "c"], [("a", "b")])
    assert one != Order(["a", "b", "c", "e"], [("a", "b"), ("b", "c")])
    assert one != "a < b < c"


def test_an_order_survives_pickling_without_what_was_computed():
    order = Order(names(14), [("v0", "v1"), ("v1", "v2"), ("v0", "v3"), ("v4", "v3")])
    size = len(pickle.dumps(order))
    order.n_extensions  # noqa: B018
    assert len(pickle.dumps(order)) == size
    assert pickle.loads(pickle.dumps(order)) == order


def test_features_can_be_rearranged():
    order = Order(["a", "b", "c"], [("a", "b")])
    other = order.arranged(["c", "b", "a"])
    assert other == order
    assert other.is_consistent([2, 0, 1])
    assert not other.is_consistent([1, 2, 0])


def test_the_array_of_what_comes_before_cannot_change_the_order():
    order = Order(["a", "b"], [("a", "b")])
    order.before[:] = False
    assert order.pairs == (("a", "b"),)


GRAPH = Graph(
    ["a", "h", "b", "y", "c", "e"], [("a", "h"), ("h", "b"), ("b", "y"), ("y", "c")], [("a", "e")]
)


def test_causes_count_through_all_nodes_and_bidirected_edges_do_not():
    features = ["a", "b", "c", "e"]
    distal = Order.from_graph(GRAPH, features)
    assert distal == Order(features, [("a", "b"), ("b", "c")])
    proximate = Order.from_graph(GRAPH, features, direction="proximate")
    assert proximate == Order(features, [("c", "b"), ("b", "a")])


@given(graphs(cyclic=False))
@settings(max_examples=40, deadline=None)
def test_distal_orders_have_causes_first_and_proximate_ones_reverse_them(graph):
    features = graph.names[::2]
    distal = Order.from_graph(graph, features)
    for at, name in enumerate(features):
        causes = {features[other] for other in np.flatnonzero(distal.before[:, at])}
        assert causes == set(graph.ancestors(name)) & set(features)
    proximate = Order.from_graph(graph, features, direction="proximate")
    np.testing.assert_array_equal(proximate.before, distal.before.T)


@pytest.mark.parametrize("name", ["dag_s(2)", "dag_s(3)", "dag_s(4)"])
def test_topological_orders_of_the_paper_graphs_keep_their_order(name):
    graph = paper_graph(name).graph
    order = Order.from_graph(graph, graph.names)
    assert order.is_consistent(graph.topological_order())
    assert not order.is_consistent(graph.topological_order()[::-1])


def test_a_cycle_through_one_feature_only_orders_it():
    graph = Graph(["a", "h", "b"], [("a", "h"), ("h", "a"), ("h", "b")])
    assert Order.from_graph(graph, ["a", "b"]) == Order(["a", "b"], [("a", "b")])


@pytest.mark.parametrize(
    ("pairs", "error", "text"),
    [
        (
            [("a", "b"), ("b", "c"), ("c", "a")],
            ValueError,
            "pairs must be without a cycle; got '. < . < . < .'",
        ),
        ([("a", "a")], ValueError, "pairs must be of two different names"),
        ([("a", "x")], ValueError, "one of the features; got 'x'"),
        (["ab"], ValueError, "pairs must be pairs of names; got 'ab'"),
        ([("a", "b", "c")], ValueError, "pairs must be pairs of names"),
        (3, TypeError, "pairs must be an iterable of pairs; got 3"),
    ],
)
def test_invalid_pairs_are_refused(pairs, error, text):
    with pytest.raises(error, match=text):
        Order(["a", "b", "c"], pairs)


def test_orders_without_features_are_refused():
    with pytest.raises(ValueError, match="feature_names must be at least one"):
        Order([])


@pytest.mark.parametrize(
    ("tiers", "error", "text"),
    [
        ("ab", TypeError, "tiers must be a list of lists; got 'ab'"),
        (["a", "b"], TypeError, "each of tiers must be an iterable of strings; got 'a'"),
        ([["a"], ["b", "a"]], ValueError, "tiers must be distinct; got 'a'"),
    ],
)
def test_invalid_tiers_are_refused(tiers, error, text):
    with pytest.raises(error, match=text):
        Order.tiers(tiers)


def test_unmatched_features_are_named():
    order = Order(["a", "b"], [("a", "b")])
    with pytest.raises(ValueError, match=r"features must be those of the order; got \['c'\]"):
        order.arranged(["a", "b", "c"])
    with pytest.raises(ValueError, match=r"features must be those of the order; got \['b'\]"):
        order.arranged(["a"])


@pytest.mark.parametrize(
    ("graph", "options", "error", "text"),
    [
        (
            cpdag(Graph(["a", "b"], [("a", "b")])),
            {},
            TypeError,
            "graph must be a dsage.Graph; got 'CPDAG'",
        ),
        (
            GRAPH,
            {"features": ["a", "x"]},
            ValueError,
            "features must be one of the nodes of the graph; got 'x'",
        ),
        (GRAPH, {"direction": "distl"}, ValueError, "Did you mean 'distal'"),
        (
            Graph(["a", "b"], [("a", "b"), ("b", "a")]),
            {},
            ValueError,
            "graph must be without a cycle through two features; got '. -> . -> .'",
        ),
    ],
)
def test_invalid_graphs_and_options_are_refused(graph, options, error, text):
    with pytest.raises(error, match=text):
        Order.from_graph(graph, **{"features": ["a", "b"], **options})
