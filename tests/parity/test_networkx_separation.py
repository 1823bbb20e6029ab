"""networkx's d-separation is the oracle for d-separation, and on canonical DAGs for m-separation."""

import networkx as nx
import numpy as np
import pytest

from given import random_graph


def disagreements(graph, rng, n_coalitions):
    """Compare all features of random coalitions, for a random target; return (asked, differing)."""
    order = rng.permutation(graph.names).tolist()
    target, features = order[0], order[1 : 1 + int(rng.integers(1, len(order)))]
    oracle = graph.oracle(target, features)  # in any order; the others are unobserved
    names = np.array(oracle.feature_names)
    known = rng.random((n_coalitions, len(names))) < rng.uniform(0.1, 0.7)
    separated = oracle.separated(known)
    assert not (separated & known).any()
    reference = graph.to_networkx()
    asked = differing = 0
    for row, answer in zip(known, separated, strict=True):
        for feature in np.flatnonzero(~row):
            expected = nx.is_d_separator(reference, names[feature], target, set(names[row]))
            asked += 1
            differing += expected != answer[feature]
    return asked, differing


@pytest.mark.parametrize("seed", range(8))
def test_d_separation_agrees_on_random_dags(seed):
    rng = np.random.default_rng(seed)
    asked = differing = 0
    for _ in range(250):
        n_nodes = int(rng.integers(2, 12))
        graph = random_graph(rng, n_nodes, directed=rng.uniform(0.1, 0.6))
        counts = disagreements(graph, rng, n_coalitions=6)
        asked, differing = asked + counts[0], differing + counts[1]
    assert differing == 0
    assert asked > 2000


@pytest.mark.parametrize("seed", range(4))
def test_d_separation_agrees_on_larger_dags(seed):
    rng = np.random.default_rng(100 + seed)
    graph = random_graph(rng, 60, directed=rng.uniform(0.02, 0.08))
    asked, differing = disagreements(graph, rng, n_coalitions=30)
    assert differing == 0
    assert asked > 100


@pytest.mark.parametrize("seed", range(4))
def test_m_separation_agrees_with_d_separation_in_the_canonical_dag(seed):
    rng = np.random.default_rng(200 + seed)
    asked = differing = 0
    for _ in range(150):
        n_nodes = int(rng.integers(2, 10))
        graph = random_graph(
            rng, n_nodes, directed=rng.uniform(0.1, 0.5), bidirected=rng.uniform(0.05, 0.5)
        )
        counts = disagreements(graph, rng, n_coalitions=8)
        asked, differing = asked + counts[0], differing + counts[1]
    assert differing == 0
    assert asked > 1000


@pytest.mark.parametrize("bidirected", [0.0, 0.3])
def test_sets_are_separated_as_in_networkx(bidirected):
    rng = np.random.default_rng(300)
    answers = []
    for _ in range(600):
        graph = random_graph(rng, 7, directed=0.3, bidirected=bidirected)
        sides = rng.choice(4, size=7, p=[0.2, 0.2, 0.35, 0.25])
        x, y, given = ({graph.names[i] for i in np.flatnonzero(sides == k)} for k in range(3))
        if x and y:
            answer = graph.is_separated(x, y, given)
            assert answer == nx.is_d_separator(graph.to_networkx(), x, y, given)
            answers.append(answer)
    assert 20 < sum(answers) < len(answers) - 20
