"""Random graphs and random linear-Gaussian models, for experiments."""

from __future__ import annotations

from typing import Literal

import networkx as nx
import numpy as np

from dsage._check import check_count, check_member, check_real, refusal
from dsage._random import RandomState, RngLike, Streams, one_seed
from dsage.graphs.graph import Graph, check_graph
from dsage.graphs.linear_gaussian import LinearGaussian

_KINDS = ("erdos-renyi", "scale-free")


def random_dag(
    n_nodes: int,
    average_degree: float,
    *,
    kind: Literal["erdos-renyi", "scale-free"] = "erdos-renyi",
    random_state: RandomState = None,
    rng: RngLike = None,
) -> Graph:
    """Draw a random DAG with nodes X1, X2, ...

    The edges of a random undirected graph are directed along a random order of its nodes, so the
    names do not reveal the causal order.

    Parameters
    ----------
    n_nodes : int
        Number of nodes, at least two.
    average_degree : float
        Expected number of edges at a node, counting both directions: twice the edges per node.
    kind : {"erdos-renyi", "scale-free"}, default="erdos-renyi"
        Every pair of nodes is joined with the same probability, or new nodes prefer old ones with
        many edges (Barabási & Albert).
    random_state : int, numpy Generator or None, default=None
        Seed.
    rng : int, numpy Generator, SeedSequence, BitGenerator or None, default=None
        Another name for `random_state`; pass only one of the two.

    Examples
    --------
    >>> random_dag(4, 2, random_state=0)
    Graph(4 nodes, 5 edges: X1 -> X2, X3 -> X2, X3 -> X4, X4 -> X1, X4 -> X2)
    """
    n_nodes = check_count(n_nodes, "n_nodes", minimum=2)
    kind = check_member(kind, _KINDS, "kind", "the kinds of random graphs")  # type: ignore[assignment]
    # A graph grown by attachment is at least a tree, and has m (n - m) <= n^2 / 4 edges.
    low, high = (2 - 2 / n_nodes, n_nodes / 2) if kind == "scale-free" else (0.0, n_nodes - 1.0)
    average_degree = check_real(average_degree, "average_degree", low=low, high=high)
    generator = Streams(one_seed(random_state, rng))("random-dag")
    if kind == "erdos-renyi":
        chance = average_degree / (n_nodes - 1)
        tails, heads = np.nonzero(np.triu(generator.random((n_nodes, n_nodes)) < chance, k=1))
        pairs = zip(tails.tolist(), heads.tolist(), strict=True)
    else:
        pairs = _preferential_attachment(n_nodes, average_degree, generator).edges()
    rank = generator.permutation(n_nodes)
    names = [f"X{number}" for number in range(1, n_nodes + 1)]
    edges = [(one, other) if rank[one] < rank[other] else (other, one) for one, other in pairs]
    return Graph(names, [(names[tail], names[head]) for tail, head in edges])


def _preferential_attachment(
    n_nodes: int, average_degree: float, generator: np.random.Generator
) -> nx.Graph:
    """Grow a graph with ``n_nodes * average_degree / 2`` edges, in expectation.

    It starts as a star of m edges, and each further node adds m: m (n - m) edges in all. For a
    fractional m, some nodes add one edge more than others.
    """
    n_edges = n_nodes * average_degree / 2
    attached = (n_nodes - np.sqrt(max(n_nodes**2 - 4 * n_edges, 0.0))) / 2
    fewer, more = max(int(np.floor(attached + 1e-9)), 1), max(int(np.ceil(attached - 1e-9)), 1)
    mean = (n_edges - more) / max(n_nodes - more - 1, 1)
    share = min(max(more - mean, 0.0), 1.0) if more > fewer else 1.0
    return nx.dual_barabasi_albert_graph(n_nodes, fewer, more, share, generator)


def random_linear_gaussian(
    graph: Graph,
    *,
    weight_range: tuple[float, float] = (0.5, 2.0),
    error_variance_range: tuple[float, float] = (1.0, 2.0),
    random_state: RandomState = None,
    rng: RngLike = None,
) -> LinearGaussian:
    """Draw weights for a DAG and standardize all variables to population variance one.

    Absolute weights are uniform in `weight_range`, with random signs; error variances are
    uniform in `error_variance_range`; then every variable is divided by its population standard
    deviation. The defaults are consistent with all weights of the d-SAGE paper's twelve graphs.

    Parameters
    ----------
    graph : Graph
        A DAG.
    weight_range, error_variance_range : (float, float)
        Bounds before standardization.
    random_state : int, numpy Generator or None, default=None
        Seed.
    rng : int, numpy Generator, SeedSequence, BitGenerator or None, default=None
        Another name for `random_state`; pass only one of the two.

    Examples
    --------
    >>> model = random_linear_gaussian(random_dag(20, 3, random_state=1), random_state=2)
    >>> bool(np.allclose(np.diag(model.covariance()), 1))
    True
    """
    generator = Streams(one_seed(random_state, rng))("random-linear-gaussian")
    for parameter, bounds in (
        ("weight_range", weight_range),
        ("error_variance_range", error_variance_range),
    ):
        if np.shape(bounds) != (2,) or not 0 < bounds[0] <= bounds[1] < np.inf:
            raise refusal(parameter, "0 < low <= high", bounds, "Pass two positive bounds in order")
    n_edges = len(check_graph(graph).edges)
    weights = generator.uniform(*weight_range, n_edges) * generator.choice([-1.0, 1.0], n_edges)
    variances = generator.uniform(*error_variance_range, len(graph))
    return LinearGaussian(
        graph,
        dict(zip(graph.edges, weights.tolist(), strict=True)),
        dict(zip(graph.names, variances.tolist(), strict=True)),
    ).standardized()
