"""Members of classes of DAGs whose edges are all undirected, against their definition."""

import itertools
import math
from collections import Counter

import networkx as nx
import numpy as np
import pytest

from dsage.graphs import CPDAG
from dsage.graphs.class_members import ClassMembers


def chordal_graphs():
    """All connected chordal graphs of two to five nodes, and some of six and seven."""
    atlas = nx.graph_atlas_g()
    found = [each for each in atlas if len(each) > 1 and nx.is_connected(each)]
    chordal = [each for each in found if nx.is_chordal(each)]
    small = [each for each in chordal if len(each) <= 5]
    return [*small, *[each for each in chordal if len(each) == 6][::6]]


def directions(graph):
    """Return the edges of all DAGs with this skeleton and without v-structures.

    Every DAG has the edges of an ordering of its nodes.
    """
    found = set()
    for order in itertools.permutations(graph):
        rank = {node: at for at, node in enumerate(order)}
        edges = {(a, b) if rank[a] < rank[b] else (b, a) for a, b in graph.edges}
        parents = {node: [tail for tail, head in edges if head == node] for node in graph}
        pairs = (pair for each in parents.values() for pair in itertools.combinations(each, 2))
        if all(graph.has_edge(*pair) for pair in pairs):
            found.add(frozenset(edges))
    return found


def undirected_class(graph, rng):
    """Return the class with this skeleton, with its nodes in a random order, and their names."""
    names = {
        node: f"n{number}" for node, number in zip(graph, rng.permutation(len(graph)), strict=True)
    }
    order = [names[node] for node in rng.permutation(list(graph)).tolist()]
    pairs = frozenset(frozenset(names[node] for node in edge) for edge in graph.edges)
    return CPDAG(tuple(order), frozenset(), pairs), nx.relabel_nodes(graph, names)


def test_members_are_all_directions_without_v_structures():
    rng = np.random.default_rng(0)
    for graph in chordal_graphs():
        of_class, named = undirected_class(graph, rng)
        expected = directions(named)
        members = ClassMembers(of_class)
        listed = [frozenset(member.edges) for member in members]
        assert len(members) == len(listed)
        assert set(listed) == expected
        assert len(expected) == len(listed)
        assert frozenset(members.draw(rng).edges) in expected


@pytest.mark.parametrize("number", [0, 1, 2])
def test_members_of_uneven_components_are_drawn_with_equal_probabilities(number):
    """Sources of a component leave different numbers of members, so that they must be weighed."""
    edges = [
        [(0, 1), (0, 2), (0, 3), (1, 2), (3, 4)],
        [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3), (3, 4)],
        [(0, 1), (1, 2), (3, 4)],
    ][number]
    rng = np.random.default_rng(number)
    of_class, named = undirected_class(nx.Graph(edges), rng)
    members = ClassMembers(of_class)
    assert len(members) == len(directions(named))
    n_draws = 100 * len(members)
    counts = Counter(members.draw(rng) for _ in range(n_draws))
    assert len(counts) == len(members)
    # Chi-squared, with its mean and variance.
    distance = sum((count - 100) ** 2 / 100 for count in counts.values())
    free = len(members) - 1
    assert distance < free + 5 * (2 * free) ** 0.5


def test_a_class_with_more_members_than_a_machine_integer_is_counted_and_drawn_from():
    # The directions of a complete graph are the orderings of its nodes.
    blocks = [[f"{block}{number}" for number in range(8)] for block in range(5)]
    pairs = [frozenset(pair) for block in blocks for pair in itertools.combinations(block, 2)]
    names = tuple(itertools.chain(*blocks))
    members = ClassMembers(CPDAG(names, frozenset(), frozenset(pairs)))
    assert members.n_members == math.factorial(8) ** 5 > 2**63
    some = members.some(2, np.random.default_rng(0))
    assert [len(each.edges) for each in some] == [140, 140]


def test_nodes_alone_are_no_components():
    pairs = frozenset({frozenset("ab"), frozenset("cd"), frozenset("bd")})
    members = ClassMembers(CPDAG(tuple("eabcdf"), frozenset({("e", "f")}), pairs))
    assert members._parts == [frozenset("abcd")]
    assert members.n_members == 4
    # Once the source is chosen, all of a path follows.
    for root in "abcd":
        assert members._split(frozenset("abcd"), root)[1] == []
