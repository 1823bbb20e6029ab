import itertools

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsage import Graph
from dsage.graphs import Consensus, GroupedOracle, NoSeparation, Oracle, random_linear_gaussian
from exact_values import LinearGaussianCase
from given import all_coalitions, dags, graphs

quickly = settings(max_examples=40, deadline=None)


@st.composite
def grouped(draw, kind):
    """A graph, the oracle of a target of it, groups of its features, and the oracle of these."""
    graph = draw(kind)
    target, *features = graph.names
    owner = draw(st.lists(st.integers(0, 3), min_size=len(features), max_size=len(features)))
    groups = {}
    for name, at in zip(features, owner, strict=True):
        if at:
            groups.setdefault(f"g{at}", []).append(name)
    oracle = graph.oracle(target)
    return graph, oracle, groups, GroupedOracle(oracle, groups)


def union(groups, names, known):
    """The members of the known players."""
    chosen = [groups.get(name, [name]) for name, is_in in zip(names, known, strict=True) if is_in]
    return set(itertools.chain(*chosen))


@quickly
@given(grouped(graphs(min_nodes=3)))
def test_a_group_is_separated_exactly_where_the_boundary_stays_as_it_was(case):
    *_, oracle = case
    known = all_coalitions(len(oracle.feature_names))
    boundary, separated = oracle.boundary(known), oracle.separated(known)
    for player in range(known.shape[1]):
        larger = known.copy()
        larger[:, player] = True
        same = (oracle.boundary(larger) == boundary).all(axis=1)
        np.testing.assert_array_equal(separated[:, player], same & ~known[:, player])


@quickly
@given(grouped(dags(min_nodes=3)))
def test_separation_of_groups_is_that_of_sets_in_networkx(case):
    graph, _, groups, oracle = case
    reference, names = graph.to_networkx(), oracle.feature_names
    known = all_coalitions(len(names))
    for row, separated in zip(known, oracle.separated(known), strict=True):
        given_ = union(groups, names, row)
        for at in np.flatnonzero(~row):
            members = set(groups.get(names[at], [names[at]]))
            expected = nx.is_d_separator(reference, members, {graph.names[0]}, given_)
            assert separated[at] == expected


@quickly
@given(grouped(graphs(min_nodes=3)))
def test_the_boundary_is_the_smallest_set_of_groups_that_separates_the_others(case):
    graph, _, groups, oracle = case
    target, names = graph.names[0], oracle.feature_names
    known = all_coalitions(len(names))
    for row, boundary in zip(known, oracle.boundary(known), strict=True):
        inside = union(groups, names, row)
        for smaller in known[(known <= row).all(axis=1)]:
            chosen = union(groups, names, smaller)
            left = inside - chosen
            is_enough = not left or graph.is_separated(target, left, chosen)
            assert is_enough == (boundary <= smaller).all()


@quickly
@given(grouped(dags(min_nodes=3, max_nodes=6)), st.integers(0, 2**32 - 1))
def test_an_optimal_model_has_the_same_risk_at_the_boundary(case, seed):
    graph, _, groups, oracle = case
    law = LinearGaussianCase.of(random_linear_gaussian(graph, random_state=seed), graph.names[0])
    features, names = list(graph.names[1:]), oracle.feature_names
    known = all_coalitions(len(names))
    for row, boundary in zip(known, oracle.boundary(known), strict=True):
        whole, part = (
            [features.index(name) for name in union(groups, names, each)]
            for each in (row, boundary)
        )
        assert law.risk(whole) == pytest.approx(law.risk(part), rel=1e-6, abs=1e-9)


def test_without_groups_nothing_changes():
    oracle = Graph(["a", "b", "c", "y"], [("a", "b"), ("b", "y"), ("y", "c")]).oracle("y")
    grouped_oracle, known = GroupedOracle(oracle, {}), all_coalitions(3)
    assert grouped_oracle.feature_names == oracle.feature_names
    np.testing.assert_array_equal(grouped_oracle.separated(known), oracle.separated(known))
    np.testing.assert_array_equal(grouped_oracle.boundary(known), oracle.boundary(known))


def test_an_oracle_of_groups_is_an_oracle():
    chain = Graph(["a", "b", "y"], [("a", "b"), ("b", "y")]).oracle("y")
    oracle = GroupedOracle(chain, {"g": ["a"]})
    assert isinstance(oracle, Oracle)
    assert oracle.target == "y"
    assert GroupedOracle(NoSeparation(["a", "b"]), {}).target is None
    assert Consensus([oracle, oracle]).separated(np.array([[False, True]])).tolist() == [
        [True, False]
    ]
    assert "n_players=2" in repr(oracle)


def test_what_is_no_oracle_or_no_coalition_of_groups_is_refused():
    graph = Graph(["a", "b", "y"], [("a", "b"), ("b", "y")])
    with pytest.raises(TypeError, match=r"oracle must be .*; got 'Graph'. Make one with"):
        GroupedOracle(graph, {"g": ["a"]})
    with pytest.raises(ValueError, match=r"groups\['g'\] must be one of the features; got 'z'"):
        GroupedOracle(graph.oracle("y"), {"g": ["z"]})
    with pytest.raises(ValueError, match="known must be"):
        GroupedOracle(graph.oracle("y"), {"g": ["a", "b"]}).separated(np.ones((1, 2), dtype=bool))
