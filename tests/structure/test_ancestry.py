"""The ancestor relation, kept up to date edge by edge."""

from __future__ import annotations

import networkx as nx
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dsage.structure.searches.ancestry import Ancestry


@given(st.integers(0, 2**32 - 1), st.integers(2, 12))
@settings(max_examples=60, deadline=None)
def test_ancestors_are_right_after_every_change(seed, n_nodes):
    generator = np.random.default_rng(seed)
    order = generator.permutation(n_nodes).tolist()
    graph = nx.DiGraph()
    graph.add_nodes_from(range(n_nodes))
    ancestry = Ancestry([()] * n_nodes)
    for _ in range(40):
        first, second = sorted(generator.choice(n_nodes, size=2, replace=False).tolist())
        edge = order[first], order[second]
        if graph.has_edge(*edge):
            graph.remove_edge(*edge)
            ancestry.remove(*edge)
        else:
            graph.add_edge(*edge)
            ancestry.add(*edge)
        for node in range(n_nodes):
            below = ancestry.members(ancestry.below[node]).tolist()
            assert below == sorted(nx.descendants(graph, node) | {node})
            above = ancestry.members(ancestry.above[node]).tolist()
            assert above == sorted(nx.ancestors(graph, node) | {node})


def test_the_graph_given_at_the_start_is_read():
    ancestry = Ancestry([(), (0,), (0, 1)])
    assert ancestry.has_path(0, 2)
    assert not ancestry.has_path(2, 0)
    assert ancestry.has_other_path(0, 2)
    assert not ancestry.has_other_path(1, 2)
