"""Sigma-separation, checked against its definition on walks (Forré & Mooij; Bongers et al. 2021).

A walk between two nodes is sigma-open given C when every collider on it is in C, and every other
inner node is outside C or points, along the walk, only to nodes of its own strongly connected
component. (For walks, "in C" and "an ancestor of C" are equivalent for colliders.) The search below
goes over (node, how the walk arrived), and knows nothing of acyclifications or bit rows.
"""

import networkx as nx
import numpy as np
import pytest

from dsage import Graph
from given import random_graph, subsets


def steps(graph):
    """Every way to cross an edge: from, to, arrowhead at from, arrowhead at to."""
    for tail, head in graph.edges:
        yield tail, head, False, True
        yield head, tail, True, False
    for one, other in graph.bidirected:
        yield one, other, True, True
        yield other, one, True, True


def sigma_connected(graph, start, end, given):
    crossings = {name: [] for name in graph.names}
    for step in steps(graph):
        crossings[step[0]].append(step)
    directed = nx.DiGraph(list(graph.edges))
    directed.add_nodes_from(graph.names)
    component = {}
    for part in nx.strongly_connected_components(directed):
        component.update(dict.fromkeys(part, frozenset(part)))

    def open_at(node, came_from, head_in, head_out, goes_to):
        if head_in and head_out:
            return node in given
        if node not in given:
            return True
        # A known non-collider blocks unless what it points to, on the walk, shares its component.
        pointed = [other for head, other in ((head_in, came_from), (head_out, goes_to)) if not head]
        return all(other in component[node] for other in pointed)

    waiting = list(crossings[start])
    seen = set(waiting)
    while waiting:
        came_from, node, _, head_in = waiting.pop()
        if node == end:
            return True
        for step in crossings[node]:
            _, goes_to, head_out, _ = step
            if step not in seen and open_at(node, came_from, head_in, head_out, goes_to):
                seen.add(step)
                waiting.append(step)
    return False


@pytest.mark.parametrize("seed", range(60))
def test_all_separations_of_small_cyclic_graphs_follow_the_definition(seed):
    rng = np.random.default_rng(seed)
    graph = random_graph(
        rng,
        int(rng.integers(3, 6)),
        directed=rng.uniform(0.15, 0.5),
        bidirected=rng.choice([0.0, 0.2]),
        cyclic=True,
    )
    target = graph.names[0]
    oracle = graph.oracle(target)
    for given in subsets(oracle.feature_names):
        known = np.array([[name in given for name in oracle.feature_names]])
        separated = oracle.separated(known)[0]
        for feature, answer in zip(oracle.feature_names, separated, strict=True):
            if feature not in given:
                assert answer == (not sigma_connected(graph, target, feature, given))


def test_the_definition_above_is_d_separation_without_cycles():
    rng = np.random.default_rng(0)
    for _ in range(40):
        graph = random_graph(rng, 5, directed=0.4)
        for given in subsets(graph.names[2:]):
            expected = nx.is_d_separator(graph.to_networkx(), "v0", "v1", given)
            assert expected == (not sigma_connected(graph, "v0", "v1", given))


def test_a_cycle_blocks_less_than_d_separation_would():
    """a -> b <-> c (a two-cycle) -> d: given b, d-separation would cut a from c; sigma does not."""
    graph = Graph(list("abcd"), [("a", "b"), ("b", "c"), ("c", "b"), ("c", "d")])
    assert not graph.is_separated("a", "c", given="b")
    assert graph.is_separated("a", "d", given="c")
