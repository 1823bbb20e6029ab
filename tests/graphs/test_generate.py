import math

import networkx as nx
import numpy as np
import pytest

from dsage.graphs import random_dag, random_linear_gaussian


@pytest.mark.parametrize("kind", ["erdos-renyi", "scale-free"])
def test_same_seed_same_graph_and_it_is_a_dag(kind):
    graph = random_dag(30, 4, kind=kind, random_state=5)
    assert graph == random_dag(30, 4, kind=kind, random_state=5)
    assert graph != random_dag(30, 4, kind=kind, random_state=6)
    assert graph.is_dag
    assert graph.names[:2] == ("X1", "X2")


@pytest.mark.parametrize("average_degree", [1.0, 2.0, 3.5])
def test_erdos_renyi_has_the_average_degree(average_degree):
    n_nodes, n_graphs = 40, 200
    n_edges = [
        len(random_dag(n_nodes, average_degree, random_state=seed).edges)
        for seed in range(n_graphs)
    ]
    expected = n_nodes * average_degree / 2
    n_pairs = n_nodes * (n_nodes - 1) / 2
    chance = expected / n_pairs
    error = math.sqrt(n_pairs * chance * (1 - chance) / n_graphs)
    assert abs(np.mean(n_edges) - expected) <= 4 * error


@pytest.mark.parametrize(
    ("n_nodes", "average_degree"),
    [(2, 1), (4, 1.5), (4, 2), (50, 2), (50, 3), (50, 10), (50, 24.5), (50, 25)],
)
def test_scale_free_has_the_average_degree(n_nodes, average_degree):
    n_graphs = 30
    n_edges = [
        len(random_dag(n_nodes, average_degree, kind="scale-free", random_state=seed).edges)
        for seed in range(n_graphs)
    ]
    # Each node brings one of two consecutive numbers of edges: variance at most 1 / 4.
    error = math.sqrt(n_nodes / 4 / n_graphs)
    assert abs(np.mean(n_edges) - n_nodes * average_degree / 2) <= 4 * error


def test_scale_free_has_hubs():
    graph = random_dag(400, 4, kind="scale-free", random_state=0)
    degrees = [len(graph.parents(name)) + len(graph.children(name)) for name in graph.names]
    # A random graph of this size and degree has no node with more than about 14 edges.
    assert max(degrees) > 20


def test_names_tell_nothing_about_the_causal_order():
    forward = []  # the share of edges from a smaller to a larger number, by graph
    for seed in range(60):
        edges = random_dag(20, 4, random_state=seed).edges
        forward.append(np.mean([int(tail[1:]) < int(head[1:]) for tail, head in edges]))
    error = np.std(forward, ddof=1) / math.sqrt(len(forward))
    assert abs(np.mean(forward) - 0.5) <= 4 * error


@pytest.mark.parametrize("seed", range(5))
def test_random_models_are_standardised_with_weights_in_range(seed):
    graph = random_dag(25, 3, random_state=seed)
    model = random_linear_gaussian(graph, error_variance_range=(1.0, 1.0), random_state=seed)
    np.testing.assert_allclose(np.diag(model.covariance()), 1.0, rtol=1e-12)
    # Undo the standardisation: with raw error variance one, the scale of a node is 1 / sqrt(error).
    scale = {name: 1 / math.sqrt(value) for name, value in model.error_variances.items()}
    raw = [weight * scale[j] / scale[i] for (i, j), weight in model.weights.items()]
    assert all(0.5 - 1e-9 <= abs(weight) <= 2 + 1e-9 for weight in raw)
    assert {weight > 0 for weight in raw} == {True, False}


def test_default_ranges_are_used_to_their_bounds():
    graph = random_dag(60, 40, random_state=0)
    same_noise = random_linear_gaussian(graph, error_variance_range=(1.0, 1.0), random_state=0)
    scale = {name: 1 / math.sqrt(value) for name, value in same_noise.error_variances.items()}
    raw = [abs(w) * scale[j] / scale[i] for (i, j), w in same_noise.weights.items()]
    # Of more than a thousand uniform weights the extremes come within 1 % of the bounds.
    assert (min(raw), max(raw)) == pytest.approx((0.5, 2.0), abs=0.015)
    # Same seed, same raw weights: what differs is the noise, whose variance is in [1, 2].
    model = random_linear_gaussian(graph, random_state=0)
    ratios = [
        model.weights[i, j]
        / same_noise.weights[i, j]
        * math.sqrt(model.error_variances[i] / same_noise.error_variances[i])
        / math.sqrt(model.error_variances[j] / same_noise.error_variances[j])
        for i, j in graph.edges
    ]  # sqrt(raw variance of i / raw variance of j)
    assert max(ratios) <= math.sqrt(2) + 1e-9
    assert max(ratios) == pytest.approx(math.sqrt(2), abs=0.06)


@pytest.mark.parametrize(("n_nodes", "average_degree"), [(100, 99), (200, 150)])
def test_dense_models_are_standardised_too(n_nodes, average_degree):
    graph = random_dag(n_nodes, average_degree, random_state=0)
    model = random_linear_gaussian(graph, random_state=0)
    np.testing.assert_allclose(np.diag(model.covariance()), 1.0, rtol=1e-8)


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"n_nodes": 1, "average_degree": 0}, ValueError, "n_nodes must be at least 2; got 1"),
        ({"n_nodes": 5, "average_degree": 4.5}, ValueError, r"average_degree must be in \[0, 4\]; got 4.5"),
        ({"n_nodes": 5, "average_degree": -1}, ValueError, r"average_degree must be in \[0, 4\]"),
        ({"n_nodes": 5, "average_degree": 1, "kind": "scale-free"}, ValueError, r"average_degree must be in \[1.6, 2.5\]; got 1"),
        ({"n_nodes": 5, "average_degree": 2, "kind": "erdos"}, ValueError, r"kind must be one of the kinds of random graphs; got 'erdos'\. Did you mean 'erdos-renyi'\?"),
        ({"n_nodes": "5", "average_degree": 2}, TypeError, "n_nodes must be an integer; got '5'"),
    ],
)  # fmt: skip
def test_bad_options_are_refused(options, error, text):
    with pytest.raises(error, match=text):
        random_dag(**options)


def test_bad_ranges_are_refused():
    graph = random_dag(4, 2, random_state=0)
    with pytest.raises(ValueError, match=r"weight_range must be 0 < low <= high; got \(2, 1\)"):
        random_linear_gaussian(graph, weight_range=(2, 1))
    with pytest.raises(ValueError, match="error_variance_range must be 0 < low <= high"):
        random_linear_gaussian(graph, error_variance_range=(0, 1))
    with pytest.raises(ValueError, match="weight_range must be 0 < low <= high; got 2"):
        random_linear_gaussian(graph, weight_range=2)
    with pytest.raises(TypeError, match=r"graph must be a dsage\.Graph; got 'DiGraph'"):
        random_linear_gaussian(graph.to_networkx())


@pytest.mark.parametrize("n_nodes", [2, 3, 4, 5, 8, 13, 40])
def test_attachment_has_the_wanted_number_of_edges_in_expectation(n_nodes, monkeypatch):
    """networkx begins with a star of `more` edges, and adds `fewer` or `more` with each node."""
    grown = []
    make = nx.dual_barabasi_albert_graph

    def spy(n, fewer, more, share, seed):
        grown.append((n, fewer, more, share))
        return make(n, fewer, more, share, seed)

    monkeypatch.setattr(nx, "dual_barabasi_albert_graph", spy)
    low, high = 2 - 2 / n_nodes, n_nodes / 2
    degrees = np.linspace(low, high, 11)
    # Those at which each node brings a whole number of edges.
    whole = [2 * m * (n_nodes - m) / n_nodes for m in range(1, n_nodes // 2 + 1)]
    for degree in [*degrees, *whole]:
        within = min(max(degree, low), high)
        random_dag(n_nodes, within, kind="scale-free", random_state=0)
        n, fewer, more, share = grown.pop()
        assert n == n_nodes
        assert 1 <= fewer <= more <= fewer + 1
        assert 0 <= share <= 1
        expected = more + (n_nodes - more - 1) * (share * fewer + (1 - share) * more)
        assert expected == pytest.approx(n_nodes * degree / 2, abs=0.51 if n_nodes < 6 else 0.3)
        if degree in whole:
            assert fewer == more
            assert more * (n_nodes - more) == pytest.approx(n_nodes * degree / 2)


def test_the_limits_of_the_degree_are_allowed():
    assert len(random_dag(2, 1).edges) == 1
    assert len(random_dag(5, 4, random_state=0).edges) == 10
    assert len(random_dag(5, 0, random_state=0).edges) == 0
    assert len(random_dag(6, 2 - 2 / 6, kind="scale-free", random_state=0).edges) == 5


def test_bounds_may_be_equal_and_weights_have_both_signs_equally_often():
    graph = random_dag(60, 40, random_state=1)
    bounds = {"weight_range": (0.7, 0.7), "error_variance_range": (2.0, 2.0)}
    model = random_linear_gaussian(graph, **bounds, random_state=0)
    scale = {name: math.sqrt(2 / value) for name, value in model.error_variances.items()}
    raw = np.array([w * scale[j] / scale[i] for (i, j), w in model.weights.items()])
    np.testing.assert_allclose(np.abs(raw), 0.7)
    assert abs((raw > 0).mean() - 0.5) <= 4 * 0.5 / math.sqrt(len(raw))


@pytest.mark.parametrize("bounds", [(0.0, 1.0), (1.0, math.inf), (1.0, 0.5), (1.0,), (1, 2, 3)])
@pytest.mark.parametrize("parameter", ["weight_range", "error_variance_range"])
def test_other_ranges_are_refused(parameter, bounds):
    graph = random_dag(4, 2, random_state=0)
    with pytest.raises(ValueError, match=f"{parameter} must be 0 < low <= high"):
        random_linear_gaussian(graph, **{parameter: bounds})
