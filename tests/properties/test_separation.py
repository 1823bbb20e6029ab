"""Properties that separation has in every graph."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from given import all_coalitions, dags, disjoint_sets, graphs


@given(dags(max_nodes=9), st.data())
def test_markov_condition(graph, data):
    """Given its parents, a node is separated from everything that it does not cause."""
    node = data.draw(st.sampled_from(graph.names))
    parents = set(graph.parents(node))
    others = set(graph.names) - parents - set(graph.descendants(node)) - {node}
    assert graph.is_separated(node, others, parents)


@given(graphs(max_nodes=9), st.data())
def test_markov_blanket_separates_from_all_others(graph, data):
    node = data.draw(st.sampled_from(graph.names))
    blanket = set(graph.markov_blanket(node))
    assert graph.is_separated(node, set(graph.names) - blanket - {node}, blanket)
    for member in blanket:
        assert not graph.is_separated(node, member, blanket - {member})


@given(graphs(min_nodes=3), st.data())
def test_symmetry(graph, data):
    x, y, z = data.draw(disjoint_sets(graph.names, 3))
    assert graph.is_separated(x, y, z) == graph.is_separated(y, x, z)


@given(graphs(min_nodes=3), st.data())
def test_decomposition_and_composition(graph, data):
    """Sets are separated exactly when all pairs of their members are."""
    x, y, z = data.draw(disjoint_sets(graph.names, 3))
    pairs = all(graph.is_separated(one, other, z) for one in x for other in y)
    assert graph.is_separated(x, y, z) == pairs


@given(graphs(min_nodes=4), st.data())
def test_weak_union_contraction_and_intersection(graph, data):
    x, y, z, w = data.draw(disjoint_sets(graph.names, 4))
    both = graph.is_separated(x, y + w, z)
    if both:
        assert graph.is_separated(x, y, z + w)
    if graph.is_separated(x, y, z) and graph.is_separated(x, w, z + y):
        assert both
    if graph.is_separated(x, y, z + w) and graph.is_separated(x, w, z + y):
        assert both


@given(graphs(max_nodes=7))
def test_boundary_is_a_subset_and_its_own_boundary(graph):
    oracle = graph.oracle(graph.names[0])
    known = all_coalitions(len(graph) - 1)
    boundary = oracle.boundary(known)
    assert not (boundary & ~known).any()
    np.testing.assert_array_equal(oracle.boundary(boundary), boundary)


@given(dags(max_nodes=7), st.data())
def test_adjacent_nodes_are_never_separated(graph, data):
    if graph.edges:
        one, other = data.draw(st.sampled_from(graph.edges))
        rest = [name for name in graph.names if name not in (one, other)]
        given_ = data.draw(st.lists(st.sampled_from(rest), unique=True)) if rest else []
        assert not graph.is_separated(one, other, given_)
