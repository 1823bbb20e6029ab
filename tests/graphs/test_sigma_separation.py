"""Sigma-separation, checked against its definition on walks."""

import networkx as nx
import numpy as np
import pytest

from dsage import Graph
from given import random_graph, subsets
from walks import sigma_connected


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
