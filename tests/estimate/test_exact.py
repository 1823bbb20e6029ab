import tracemalloc
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsage import Graph
from dsage.datasets import paper_graph
from dsage.estimate.exact import enumerate_boundaries
from dsage.graphs import Consensus, NoSeparation
from exact_values import LinearGaussianCase, coalitions, shapley, tabulated
from given import graphs

SEMANTICS = ["boundary", "skip"]


def random_risks(n_features, seed=0):
    """A game without any structure, as a risk function of frozensets."""
    rng = np.random.default_rng(seed)
    table = {coalition: rng.standard_normal() for coalition in coalitions(n_features)}
    return table.__getitem__


def risks_of(enumeration, risk):
    return np.array([risk(frozenset(np.flatnonzero(row))) for row in enumeration.coalitions])


@given(graph=graphs(max_nodes=7), seed=st.integers(0, 99))
@settings(max_examples=60, deadline=None)
@pytest.mark.parametrize("semantics", SEMANTICS)
def test_any_game_gets_its_shapley_values_by_definition(semantics, graph, seed):
    oracle = graph.oracle(graph.names[seed % len(graph)])
    n_features = len(graph) - 1
    risk = random_risks(n_features, seed)
    enumeration = enumerate_boundaries(oracle, semantics=semantics)
    np.testing.assert_allclose(
        enumeration.values(risks_of(enumeration, risk)),
        shapley(risk, n_features, oracle, semantics),
        rtol=0,
        atol=1e-12,
    )


@given(graph=graphs(max_nodes=7), seed=st.integers(0, 99))
@settings(max_examples=40, deadline=None)
def test_unobserved_nodes_and_features_in_any_order_are_allowed(graph, seed):
    rng = np.random.default_rng(seed)
    target, *others = rng.permutation(graph.names).tolist()
    features = others[: rng.integers(1, len(others) + 1)]
    oracle = graph.oracle(target, features)
    risk = random_risks(len(features), seed)
    enumeration = enumerate_boundaries(oracle)
    np.testing.assert_allclose(
        enumeration.values(risks_of(enumeration, risk)),
        shapley(risk, len(features), oracle),
        rtol=0,
        atol=1e-12,
    )


@pytest.mark.parametrize("name", ["dag_s(2)", "dag_s(3)", "dag_s(4)"])
@pytest.mark.parametrize("semantics", SEMANTICS)
def test_linear_gaussian_values_are_those_of_the_closed_form(name, semantics):
    model = paper_graph(name)
    oracle = model.graph.oracle(model.target)
    weights = np.random.default_rng(0).standard_normal(9)  # far from optimal
    case = LinearGaussianCase.of(model, model.target, weights=weights)
    enumeration = enumerate_boundaries(oracle, semantics=semantics)
    np.testing.assert_allclose(
        enumeration.values(risks_of(enumeration, tabulated(case.risk, 9))),
        case.values(oracle, semantics),
        rtol=0,
        atol=1e-12,
    )


def test_the_coalitions_are_the_distinct_boundaries():
    model = paper_graph("dag_s(3)")
    oracle = model.graph.oracle(model.target)
    known = enumerate_boundaries(NoSeparation(oracle.feature_names)).coalitions
    assert len(known) == 512
    enumeration = enumerate_boundaries(oracle)
    assert {row.tobytes() for row in enumeration.coalitions} == {
        row.tobytes() for row in oracle.boundary(known)
    }
    assert len(enumeration.coalitions) == len({row.tobytes() for row in enumeration.coalitions})


@pytest.mark.parametrize("semantics", SEMANTICS)
def test_a_constant_risk_has_no_values(semantics):
    model = paper_graph("dag_sm(3)")
    enumeration = enumerate_boundaries(model.graph.oracle(model.target), semantics=semantics)
    np.testing.assert_allclose(enumeration.coefficients.sum(axis=1), 0.0, atol=1e-15)


def test_boundary_values_are_efficient():
    """Column sums are 1 for the empty coalition, -1 for the boundary of all, and else 0."""
    model = paper_graph("dag_sm(3)")
    oracle = model.graph.oracle(model.target)
    enumeration = enumerate_boundaries(oracle)
    blanket = oracle.boundary(np.ones((1, 19), dtype=bool))[0]
    expected = np.zeros(enumeration.n_coalitions)
    expected[~enumeration.coalitions.any(axis=1)] = 1.0
    expected[(enumeration.coalitions == blanket).all(axis=1)] = -1.0
    np.testing.assert_allclose(enumeration.coefficients.sum(axis=0), expected, atol=1e-14)


def test_skipped_is_the_share_of_orderings_with_a_separated_surplus():
    graph = Graph(["a", "b", "y", "u"], [("a", "b"), ("b", "y")])
    for semantics in SEMANTICS:
        enumeration = enumerate_boundaries(graph.oracle("y"), semantics=semantics)
        np.testing.assert_array_equal(enumeration.skipped, [0.5, 0.0, 1.0])


def test_skip_needs_every_coalition_as_soon_as_one_feature_matters():
    """b joins at every set of the others; without b nothing but the risk of nothing is needed."""
    related = Graph(["b", "u", "v", "y"], [("b", "y")])
    enumeration = enumerate_boundaries(related.oracle("y"), semantics="skip")
    assert enumeration.n_coalitions == 8
    unrelated = Graph(["u", "v", "y"], [("u", "v")])
    for semantics in SEMANTICS:
        enumeration = enumerate_boundaries(unrelated.oracle("y"), semantics=semantics)
        assert enumeration.coalitions.tolist() == [[False, False]]
        np.testing.assert_array_equal(enumeration.coefficients, [[0.0], [0.0]])


def collider_chain(n_null):
    """A target with seven features around it, in turns with a chain that never touches it."""
    chain = [f"n{number}" for number in range(n_null)]
    near = [("v0", "y"), ("v1", "v0"), ("v2", "v0"), ("y", "v3"), ("v4", "v3"), ("v4", "v5")]
    names = [name for k in range(7) for name in (f"v{k}", chain[k])]
    return Graph(["y", *names, *chain[7:]], [*near, ("v6", "v5"), *pairwise(chain)])


def test_null_players_do_not_count_and_do_not_change_the_others():
    graph = collider_chain(60)
    oracle = graph.oracle("y")
    enumeration = enumerate_boundaries(oracle, max_features=7)
    near = [k for k, name in enumerate(oracle.feature_names) if name.startswith("v")]
    far = [k for k, name in enumerate(oracle.feature_names) if name.startswith("n")]
    assert (len(near), len(far)) == (7, 60)
    assert not enumeration.coalitions[:, far].any()
    assert not enumeration.coefficients[far].any()
    assert (enumeration.skipped[far] == 1.0).all()
    small = enumerate_boundaries(graph.oracle("y", [oracle.feature_names[k] for k in near]))
    np.testing.assert_array_equal(enumeration.coalitions[:, near], small.coalitions)
    np.testing.assert_array_equal(enumeration.coefficients[near], small.coefficients)
    assert enumerate_boundaries(oracle, max_features=6) is None


def test_a_feature_that_matters_for_one_coalition_alone_is_found(monkeypatch):
    """Behind four colliders in a row, u3 matters only if all c are known and no other u is."""
    monkeypatch.setattr("dsage.estimate.exact._PROBES", 1)
    path = ["y", "c0", "u0", "c1", "u1", "c2", "u2", "c3", "u3"]
    edges = [(cause, f"c{k}") for k in range(4) for cause in (path[2 * k], f"u{k}")]
    oracle = Graph(path, edges).oracle("y")
    risk = random_risks(8)
    enumeration = enumerate_boundaries(oracle)
    # u3 comes last of all but the other three u, in 1 / (8 * C(7, 4)) of the orderings.
    assert enumeration.skipped[7] == pytest.approx(1 - 1 / 280, abs=1e-15)
    np.testing.assert_allclose(
        enumeration.values(risks_of(enumeration, risk)), shapley(risk, 8, oracle), atol=1e-13
    )


def test_a_general_oracle_keeps_all_features():
    """Of other oracles nothing is assumed, so all features count."""
    chain = collider_chain(20).oracle("y")
    assert enumerate_boundaries(Consensus([chain]), max_features=12) is None
    graph = Graph(["a", "b", "c", "y"], [("a", "b"), ("b", "y")])
    other = Graph(["a", "b", "c", "y"], [("a", "y"), ("c", "b")])
    oracle = Consensus([graph.oracle("y"), other.oracle("y")], share=0.5)
    risk = random_risks(3)
    for semantics in SEMANTICS:
        enumeration = enumerate_boundaries(oracle, semantics=semantics)
        np.testing.assert_allclose(
            enumeration.values(risks_of(enumeration, risk)),
            shapley(risk, 3, oracle, semantics),
            atol=1e-13,
        )


def test_chunks_do_not_change_the_result(monkeypatch):
    model = paper_graph("dag_s(4)")
    oracle = model.graph.oracle(model.target)
    whole = {kind: enumerate_boundaries(oracle, semantics=kind) for kind in SEMANTICS}
    monkeypatch.setattr("dsage.estimate.exact._CODES_AT_ONCE", 7)
    for kind in SEMANTICS:
        parts = enumerate_boundaries(oracle, semantics=kind)
        np.testing.assert_array_equal(parts.coalitions, whole[kind].coalitions)
        np.testing.assert_array_equal(parts.coefficients, whole[kind].coefficients)


@pytest.mark.parametrize("semantics", SEMANTICS)
def test_limits_give_none(semantics):
    oracle = NoSeparation([f"v{k}" for k in range(8)])
    options = {"semantics": semantics}
    assert enumerate_boundaries(oracle, max_features=7, **options) is None
    assert enumerate_boundaries(oracle, max_coalitions=255, **options) is None
    assert enumerate_boundaries(oracle, max_bytes=10_000, **options) is None
    assert enumerate_boundaries(oracle, max_bytes=256 * 88 + 48 * 256 - 1, **options) is None
    limits = {"max_features": 8, "max_coalitions": 256, "max_bytes": 256 * 88 + 48 * 256}
    assert enumerate_boundaries(oracle, **limits, **options).n_coalitions == 256


@pytest.mark.parametrize("semantics", SEMANTICS)
def test_memory_stays_within_the_limit(semantics):
    """The tightest limit under which 2^17 coalitions pass, and the chunks of the oracle."""
    oracle = NoSeparation([f"v{k}" for k in range(17)])
    max_bytes = (48 + 9 * 17 + 16) << 17
    tracemalloc.start()
    try:
        enumeration = enumerate_boundaries(oracle, semantics=semantics, max_bytes=max_bytes)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert enumeration.n_coalitions == 1 << 17
    assert peak < max_bytes + (1 << 22)


def test_no_features_and_one_feature():
    enumeration = enumerate_boundaries(NoSeparation([]))
    assert enumeration.coalitions.shape == (1, 0)
    assert enumeration.values(np.array([3.0])).shape == (0,)
    enumeration = enumerate_boundaries(NoSeparation(["a"]))
    np.testing.assert_array_equal(enumeration.values(np.array([3.0, 1.0])), [2.0])


def test_values_take_risks_of_many_rows_at_once():
    enumeration = enumerate_boundaries(NoSeparation(["a", "b"]))
    risk = np.random.default_rng(0).standard_normal((4, 5))
    rows = enumeration.values(risk)
    assert rows.shape == (2, 5)
    np.testing.assert_allclose(rows[:, 2], enumeration.values(risk[:, 2]))
    with pytest.raises(ValueError, match=r"risk must be one number for each of the 4 coalitions"):
        enumeration.values(risk[:3])


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"semantics": "skipped"}, "Did you mean 'skip'"),
        ({"max_features": 31}, "max_features must be at most 30; got 31"),
        ({"max_features": -1}, "max_features must be at least 0; got -1"),
        ({"max_coalitions": 0}, "max_coalitions must be at least 1; got 0"),
        ({"max_bytes": 0}, "max_bytes must be at least 1; got 0"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, text):
    with pytest.raises(ValueError, match=text):
        enumerate_boundaries(NoSeparation(["a"]), **options)
