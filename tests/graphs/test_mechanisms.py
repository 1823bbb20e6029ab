"""Hidden nodes, districts and mechanisms, against their definitions in networkx."""

import itertools

import networkx as nx
import numpy as np
import pytest

from dsage import Graph
from dsage.graphs.interventions import Interventions, project
from given import random_graph


def observed_below(graph, kept, start):
    """Return the kept nodes that directed paths through hidden nodes lead to."""
    found, left, seen = set(), list(graph.children(start)), set()
    while left:
        node = left.pop()
        if node in kept:
            found.add(node)
        elif node not in seen:
            seen.add(node)
            left += graph.children(node)
    return found


@pytest.mark.parametrize("seed", range(30))
def test_projection_has_the_edges_of_its_definition(seed):
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, int(rng.integers(3, 9)), directed=0.35, bidirected=0.15)
    kept = rng.permutation(graph.names)[: rng.integers(2, len(graph) + 1)].tolist()
    hidden = set(graph.names) - set(kept)
    edges = [(name, to) for name in kept for to in observed_below(graph, kept, name)]
    # What varies with a hidden node, or with one end of a bidirected edge.
    reach = {
        name: observed_below(graph, kept, name) if name in hidden else {name}
        for name in graph.names
    }
    both = {pair for name in hidden for pair in itertools.permutations(reach[name], 2)}
    for one, other in graph.bidirected:
        pairs = itertools.product(reach[one], reach[other])
        both |= {pair for pair in pairs if pair[0] != pair[1]}
    found = project(graph, kept)
    assert found == Graph(kept, edges, both)
    assert found.names == tuple(kept)


def districts(graph, among):
    """Return the sets of nodes that bidirected edges connect within a set."""
    joined = nx.Graph(list(graph.bidirected)).subgraph(among).copy()
    joined.add_nodes_from(among)
    return list(nx.connected_components(joined))


def is_identified(graph, target):
    found = districts(graph, graph.names)
    return not any(
        tail != target and any({tail, head} <= each for each in found) for tail, head in graph.edges
    )


def identified(seed):
    """Return a graph with bidirected edges in which all effects are identified, and its target."""
    rng = np.random.default_rng(seed)
    while True:
        graph = random_graph(rng, int(rng.integers(2, 7)), directed=0.4, bidirected=0.25)
        target = graph.names[-1] if rng.random() < 0.7 else None
        if target is not None and not graph.children(target):
            continue
        if is_identified(graph, target):
            return graph, target, rng


def test_graphs_are_refused_exactly_where_an_effect_stays_in_its_district():
    n_refused = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        graph = random_graph(rng, 4, directed=0.5, bidirected=0.25)
        if is_identified(graph, None):
            Interventions(graph, graph.names)
        else:
            n_refused += 1
            with pytest.raises(ValueError, match="the effect of every feature is identified"):
                Interventions(graph, graph.names)
    assert 10 < n_refused < 50


@pytest.mark.parametrize("seed", range(30))
def test_a_variable_depends_on_its_parents_and_on_its_district_before_it(seed):
    graph, target, _ = identified(seed)
    features = [name for name in graph.names if name != target]
    found = Interventions(graph, features, target)
    names = found.names
    assert names == (*features, *([] if target is None else [target]))
    order = [names[each.node] for each in found.mechanisms]
    assert sorted(order) == sorted(names)
    for at, (name, each) in enumerate(zip(order, found.mechanisms, strict=True)):
        assert set(graph.parents(name)) <= set(order[:at])
        (own,) = (part for part in districts(graph, order[: at + 1]) if name in part)
        given = (own | {parent for member in own for parent in graph.parents(member)}) - {name}
        assert [names[place] for place in each.given] == sorted(given, key=names.index)
        assert list(each.natural) == [names[place] in own for place in each.given]


@pytest.mark.parametrize("seed", range(30))
def test_set_features_are_kept_where_their_values_reach_an_unknown_input(seed):
    """Each variable is two nodes: as it would have been, and as it is, which may be set."""
    graph, target, rng = identified(seed)
    interventions = Interventions(graph, [name for name in graph.names if name != target], target)
    n_features = interventions.n_features
    inputs = rng.random((20, n_features)) < 0.6
    fixed = inputs & (rng.random(inputs.shape) < 0.6)
    kept = interventions.reduced(fixed, inputs)
    for is_fixed, is_input, is_kept in zip(fixed, inputs, kept, strict=True):
        flow = nx.DiGraph()
        for node, given, natural in interventions.mechanisms:
            flow.add_nodes_from([(node, True), (node, False)])
            flow.add_edges_from(
                ((each, is_natural), (node, True))
                for each, is_natural in zip(given, natural, strict=True)
            )
            if node >= n_features or not is_fixed[node]:
                flow.add_edge((node, True), (node, False))
        unknown = {(int(at), False) for at in np.flatnonzero(~is_input)}
        for at in range(n_features):
            reaches = bool(nx.descendants(flow, (at, False)) & unknown)
            assert is_kept[at] == (is_fixed[at] and reaches)


def test_the_reason_names_what_connects_cause_and_effect_in_the_order_of_the_features():
    edges = [("c", "a")]
    both = [("a", "d"), ("d", "b"), ("b", "c"), ("e", "f")]
    graph = Graph(list("abcdef"), edges, both)
    with pytest.raises(ValueError, match=r"got 'c -> a'.*by way of \['d', 'b'\]: leave one"):
        Interventions(graph, list("fedcba"))
    with pytest.raises(ValueError, match=r"connect the two: leave one of them out"):
        Interventions(Graph(["a", "b"], [("a", "b")], [("b", "a")]), ["a", "b"])


def test_a_cycle_is_refused_with_its_nodes():
    graph = Graph(list("abc"), [("a", "b"), ("b", "a"), ("b", "c")])
    with pytest.raises(ValueError, match=r"without directed cycles.*got \[\['a', 'b'\]\]"):
        Interventions(graph, list("abc"))
