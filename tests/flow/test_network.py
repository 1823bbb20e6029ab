"""The network of a graph: nodes, edges, paths, orderings, and graphs that are refused."""

from itertools import pairwise

import numpy as np
import pytest

from dsage import Graph
from dsage.flow import Network
from dsage.flow.network import MODEL

DIAMOND = Graph(
    ["a", "b", "c", "d", "y"],
    [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d"), ("d", "y"), ("a", "y")],
)


def test_edges_that_do_not_lead_to_the_model_are_idle():
    network = Network(DIAMOND, list("abcd"), "y")
    assert network.nodes == tuple("abcd")
    assert set(network.idle) == {("d", "y"), ("a", "y")}


def test_target_is_a_node_if_a_feature_descends_from_it():
    graph = Graph(["a", "y", "b"], [("a", "y"), ("y", "b")])
    network = Network(graph, ["a", "b"], "y")
    assert network.nodes == ("a", "y", "b")
    assert network.columns == (0, -1, 1)
    assert network.idle == ()
    # It is never set.
    assert Network(graph, ["a", "b"], "y", is_set=True).sources == (0, 2)


def test_paths_are_counted():
    # From a: to the model itself, through b, through c, and through both on the way to d.
    network = Network(DIAMOND, list("abcd"), "y")
    assert network.n_paths == (1 + 2 + 2) + 2 + 2 + 1


def test_orderings_hold_every_source_and_edge_once():
    network = Network(DIAMOND, list("abcd"), "y")
    ordering = network.draw(np.random.default_rng(0))
    assert sorted(ordering.sources) == [0, 1, 2, 3]
    edges = [edge for each in ordering.leaving for edge in each]
    assert sorted(edges) == list(range(4, network.n_edges))
    back = network.reverse(ordering)
    assert back.sources == ordering.sources[::-1]
    assert back.leaving[0] == ordering.leaving[0][::-1]


def test_model_comes_first_also_in_reversed_orderings():
    network = Network(DIAMOND, list("abcd"), "y", model_first=True)
    ordering = network.draw(np.random.default_rng(0))
    for each in (ordering, network.reverse(ordering)):
        assert all(network.heads[edges[0]] == MODEL for edges in each.leaving)


def test_indicators_of_missing_values_are_merged_with_their_features():
    graph = Graph(["a", "no a", "b", "y"], [("no a", "b"), ("b", "y")], indicators={"no a": ["a"]})
    network = Network(graph, ["a", "b"], "y")
    assert network.nodes == ("a", "b")
    assert network.names(2) == ("edge", "a", "b")


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (Graph(list("aby"), [("a", "b"), ("b", "a")]), r"acyclic; got \[\['a', 'b'\]\]"),
        (Graph(list("aby"), [], [("a", "b")]), r"bidirected edges; got \['a <-> b'\]"),
        (Graph(list("ay"), []), "all features; got .* Add 'b' as nodes"),
        (Graph(list("abhy"), [("h", "a")]), r"features and the target; got \['h'\]"),
        (
            Graph(["a", "no a", "b", "y"], [("no a", "b"), ("b", "a")], (), {"no a": ["a"]}),
            "indicator of its missing values as one node",
        ),
    ],
)
def test_graphs_without_a_flow_are_refused_by_name(graph, message):
    with pytest.raises(ValueError, match=message):
        Network(graph, ["a", "b"], "y")


def test_nodes_that_act_on_nothing_may_be_hidden():
    graph = Graph(["a", "b", "h", "y"], [("a", "h")])
    assert Network(graph, ["a", "b"], "y").idle == (("a", "h"),)


def test_too_many_paths_are_refused():
    names = [f"x{at}" for at in range(18)]
    edges = [(one, other) for at, one in enumerate(names) for other in names[at + 1 :]]
    with pytest.raises(ValueError, match="at most 20,000 paths"):
        Network(Graph([*names, "y"], edges), names, "y")
    Network(Graph([*names, "y"], list(pairwise(names))), names, "y")
