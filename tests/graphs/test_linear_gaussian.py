import math
from itertools import pairwise

import numpy as np
import pytest

from dsage import Graph
from dsage.graphs import LinearGaussian, random_dag, random_linear_gaussian


@pytest.fixture
def model():
    """a -> b -> c and a -> c."""
    graph = Graph(list("cba"), [("a", "b"), ("b", "c"), ("a", "c")])
    weights = {("a", "b"): 2.0, ("b", "c"): -1.0, ("a", "c"): 0.5}
    return LinearGaussian(graph, weights, {"a": 1.0, "b": 4.0, "c": 0.25})


def test_covariance_by_hand(model):
    # Var b = 4 + 4; Cov(a, c) = -2 + 0.5; Cov(b, c) = -8 + 0.5 * 2; Var c = 8 + 0.25 - 2 + 0.25.
    expected = [[6.5, -7.0, -1.5], [-7.0, 8.0, 2.0], [-1.5, 2.0, 1.0]]
    covariance = model.covariance()
    assert list(covariance.columns) == list(covariance.index) == ["c", "b", "a"]
    np.testing.assert_allclose(covariance, expected, rtol=1e-12)


def test_samples_have_the_covariance(model):
    n_rows = 200_000
    sample = model.sample(n_rows, random_state=0)
    assert list(sample.columns) == ["c", "b", "a"]
    exact = model.covariance().to_numpy()
    variances = np.diag(exact)
    error = np.sqrt((exact**2 + np.outer(variances, variances)) / n_rows)
    assert (np.abs(sample.cov() - exact) <= 4 * error).all(axis=None)
    assert (np.abs(sample.mean()) <= 4 * np.sqrt(variances / n_rows)).all()


def test_sampling_is_reproducible(model):
    one = model.sample(10, random_state=1)
    assert one.equals(model.sample(10, random_state=1))
    assert not one.equals(model.sample(10, random_state=2))


def test_standardising_leaves_correlations_and_noise_shares():
    model = random_linear_gaussian(random_dag(12, 3, random_state=0), random_state=0)
    scaled = LinearGaussian(
        model.graph,
        {(i, j): 3 * w if j == "X1" else w / 3 if i == "X1" else w for (i, j), w in model.weights.items()},
        {name: 9 * v if name == "X1" else v for name, v in model.error_variances.items()},
    )  # fmt: skip
    assert math.isclose(scaled.covariance().loc["X1", "X1"], 9.0)
    again = scaled.standardized()
    np.testing.assert_allclose(again.covariance(), model.covariance(), rtol=1e-10, atol=1e-12)
    assert again.weights == pytest.approx(model.weights)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"graph": Graph(["a", "b"], [("a", "b"), ("b", "a")])}, "graph must be a DAG"),
        ({"graph": Graph(["a", "b"], [("a", "b")], [("a", "b")])}, "graph must be a DAG"),
        ({"weights": {}}, r"given for exactly the edges of the graph; got \[\('a', 'b'\)\]"),
        ({"weights": {("a", "b"): "x"}}, r"weights must be finite; got \(\('a', 'b'\), 'x'\)"),
        ({"weights": {"ab": 1.0}}, r"given for exactly the edges of the graph; got \[\('a', 'b'\), 'ab'\]"),
        ({"weights": {("a", "b"): math.nan}}, r"weights must be finite; got \(\('a', 'b'\), nan\)"),
        ({"error_variances": {"a": 1.0}}, r"given for exactly the nodes of the graph; got \['b'\]"),
        ({"error_variances": {"a": 1.0, "b": 0.0}}, r"error_variances must be positive; got \('b', 0.0\)"),
    ],
)  # fmt: skip
def test_bad_models_are_refused(change, text):
    arguments = {
        "graph": Graph(["a", "b"], [("a", "b")]),
        "weights": {("a", "b"): 1.0},
        "error_variances": {"a": 1.0, "b": 1.0},
    }
    with pytest.raises(ValueError, match=text):
        LinearGaussian(**(arguments | change))


def test_other_types_are_refused(model):
    with pytest.raises(
        TypeError, match=r"error_variances must be a dict from the nodes to numbers"
    ):
        LinearGaussian(model.graph, model.weights, 1.0)
    with pytest.raises(TypeError, match=r"graph must be a dsage\.Graph; got 'DiGraph'"):
        LinearGaussian(model.graph.to_networkx(), model.weights, model.error_variances)


def test_variances_beyond_floating_point_are_refused():
    names = [f"v{i}" for i in range(1000)]
    graph = Graph(names, list(pairwise(names)))
    model = LinearGaussian(graph, dict.fromkeys(graph.edges, 2.0), dict.fromkeys(names, 1.0))
    with pytest.raises(ValueError, match="weights must be small enough for finite variances"):
        model.covariance()


@pytest.mark.parametrize("weight", [0.9e150, 1.1e150])
def test_standard_deviations_are_at_most_1e150(weight):
    graph = Graph(["a", "b"], [("a", "b")])
    model = LinearGaussian(graph, {("a", "b"): weight}, {"a": 1.0, "b": 1.0})
    if weight < 1e150:
        assert model.covariance().loc["b", "b"] == pytest.approx(weight**2)
    else:
        with pytest.raises(ValueError, match="small enough for finite variances; got 'b'"):
            model.covariance()


def test_a_sample_has_at_least_one_row(model):
    with pytest.raises(ValueError, match="n_rows must be at least 1; got 0"):
        model.sample(0)
