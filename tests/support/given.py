"""Random graphs for tests: hypothesis strategies, and seeded generators for bulk comparisons."""

import itertools

import numpy as np
from hypothesis import strategies as st

from dsage import Graph


def names(n_nodes):
    return [f"v{number}" for number in range(n_nodes)]


def random_graph(rng, n_nodes, *, directed, bidirected=0.0, cyclic=False):
    """A graph whose pairs of nodes are joined with the given probabilities."""
    order = rng.permutation(n_nodes)
    labels = names(n_nodes)
    edges = []
    both = []
    for i, j in itertools.combinations(range(n_nodes), 2):
        one, other = labels[order[i]], labels[order[j]]
        if rng.random() < directed:
            edges.append((one, other))
        if cyclic and rng.random() < directed:
            edges.append((other, one))
        if rng.random() < bidirected:
            both.append((one, other))
    return Graph(labels, edges, both)


def all_coalitions(n_features):
    """Every coalition, as a boolean array (2 ** n_features, n_features)."""
    return np.array(list(itertools.product([False, True], repeat=n_features)), dtype=bool).reshape(
        2**n_features, n_features
    )


def subsets(items):
    items = list(items)
    return [set(c) for size in range(len(items) + 1) for c in itertools.combinations(items, size)]


@st.composite
def graphs(draw, *, min_nodes=2, max_nodes=7, bidirected=True, cyclic=True):
    """Any graph: a DAG, an ADMG, or a cyclic mixed graph."""
    n_nodes = draw(st.integers(min_nodes, max_nodes))
    kind = draw(st.sampled_from(["dag", *["mixed"] * bidirected, *["cyclic"] * cyclic]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return random_graph(
        rng,
        n_nodes,
        directed=draw(st.floats(0.1, 0.7)),
        bidirected=0.0 if kind == "dag" else draw(st.floats(0.0, 0.4)),
        cyclic=kind == "cyclic",
    )


@st.composite
def dags(draw, **options):
    return draw(graphs(bidirected=False, cyclic=False, **options))


@st.composite
def disjoint_sets(draw, labels, n_sets):
    """Disjoint sets of labels; the first two are not empty."""
    places = draw(
        st.lists(st.integers(0, n_sets), min_size=len(labels), max_size=len(labels)).filter(
            lambda p: 0 in p and 1 in p
        )
    )
    return [
        [name for name, at in zip(labels, places, strict=True) if at == k] for k in range(n_sets)
    ]


@st.composite
def orders(draw, *, min_features=1, max_features=6):
    """A number of features and pairs (a, b), a before b, without a cycle."""
    n_features = draw(st.integers(min_features, max_features))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    sequence = rng.permutation(n_features).tolist()
    share = draw(st.floats(0.0, 0.8))
    return n_features, [
        pair for pair in itertools.combinations(sequence, 2) if rng.random() < share
    ]
