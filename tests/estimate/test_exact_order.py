import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsage import Graph
from dsage.datasets import paper_graph
from dsage.estimate import enumerate_boundaries, enumerate_extensions
from dsage.graphs import NoSeparation
from dsage.orderings import Order
from exact_values import (
    LinearGaussianCase,
    coalitions,
    extensions,
    is_separated,
    tabulated,
    values_over,
)
from given import graphs

SEMANTICS = ["boundary", "skip"]


def random_risks(n_features, seed=0):
    rng = np.random.default_rng(seed)
    return {coalition: rng.standard_normal() for coalition in coalitions(n_features)}.__getitem__


def risks_of(enumeration, risk):
    return np.array([risk(frozenset(np.flatnonzero(row))) for row in enumeration.coalitions])


def brute(order):
    return extensions(len(order.feature_names), np.argwhere(order.before).tolist())


def random_order(labels, seed):
    rng = np.random.default_rng(seed)
    sequence = rng.permutation(len(labels)).tolist()
    share = rng.random()
    pairs = [
        (labels[one], labels[other])
        for at, one in enumerate(sequence)
        for other in sequence[at + 1 :]
        if rng.random() < share
    ]
    return Order(labels, pairs)


@given(graph=graphs(max_nodes=7), seed=st.integers(0, 999))
@settings(max_examples=50, deadline=None)
@pytest.mark.parametrize("semantics", SEMANTICS)
def test_any_game_gets_its_mean_over_the_extensions(semantics, graph, seed):
    oracle = graph.oracle(graph.names[seed % len(graph)])
    order = random_order(oracle.feature_names, seed)
    n_features = len(oracle.feature_names)
    risk = random_risks(n_features, seed)
    enumeration = enumerate_extensions(oracle, order, semantics=semantics)
    np.testing.assert_allclose(
        enumeration.values(risks_of(enumeration, risk)),
        values_over(brute(order), risk, n_features, oracle, semantics),
        rtol=0,
        atol=1e-12,
    )
    np.testing.assert_allclose(enumeration.coefficients.sum(axis=1), 0, atol=1e-12)


@given(graph=graphs(max_nodes=6), seed=st.integers(0, 999))
@settings(max_examples=30, deadline=None)
@pytest.mark.parametrize("semantics", SEMANTICS)
def test_the_share_of_separated_surpluses_is_that_of_the_extensions(semantics, graph, seed):
    oracle = graph.oracle(graph.names[0])
    order = random_order(oracle.feature_names, seed)
    every = brute(order)
    shares = np.zeros(len(oracle.feature_names))
    for ordering in every:
        for at, feature in enumerate(ordering):
            shares[feature] += is_separated(oracle, frozenset(ordering[:at]), feature)
    found = enumerate_extensions(oracle, order, semantics=semantics).skipped
    np.testing.assert_allclose(found, shares / len(every), atol=1e-12)


@pytest.mark.parametrize("semantics", SEMANTICS)
def test_without_pairs_it_is_the_average_over_all_orderings(semantics):
    oracle = paper_graph("dag_s(2)").graph.oracle("X8")
    order = Order(oracle.feature_names)
    ours = enumerate_extensions(oracle, order, semantics=semantics)
    theirs = enumerate_boundaries(oracle, semantics=semantics)
    risk = random_risks(len(oracle.feature_names))
    np.testing.assert_allclose(
        ours.values(risks_of(ours, risk)), theirs.values(risks_of(theirs, risk)), atol=1e-12
    )
    assert ours.n_coalitions == theirs.n_coalitions
    np.testing.assert_allclose(ours.skipped, theirs.skipped, atol=1e-12)


@pytest.mark.parametrize("direction", ["distal", "proximate"])
@pytest.mark.parametrize("name", ["dag_s(3)", "dag_s(4)"])
def test_causal_orders_of_the_paper_graphs_give_the_mean_over_their_extensions(name, direction):
    data = paper_graph(name)
    case = LinearGaussianCase.of(data, data.target)
    features = tuple(each for each in data.graph.names if each != data.target)
    order = Order.from_graph(data.graph, features, direction=direction)
    risk = tabulated(case.risk, case.n_features)
    enumeration = enumerate_extensions(NoSeparation(features), order)
    every = brute(order)
    assert order.n_extensions == len(every)
    np.testing.assert_allclose(
        enumeration.values(risks_of(enumeration, risk)),
        values_over(every, risk, case.n_features),
        atol=1e-9,
    )


def test_an_order_in_another_sequence_is_the_same():
    oracle = NoSeparation(["a", "b", "c"])
    one = enumerate_extensions(oracle, Order(["a", "b", "c"], [("c", "a")]))
    other = enumerate_extensions(oracle, Order(["c", "b", "a"], [("c", "a")]))
    np.testing.assert_array_equal(one.coefficients, other.coefficients)


def test_too_many_ideals_or_coalitions_are_left_to_sampling():
    oracle, order = NoSeparation(list("abc")), Order(list("abc"), [("a", "b")])
    assert enumerate_extensions(oracle, order, max_ideals=6).n_coalitions == 6
    assert enumerate_extensions(oracle, order, max_ideals=5) is None
    assert enumerate_extensions(oracle, order, max_coalitions=6) is not None
    assert enumerate_extensions(oracle, order, max_coalitions=5) is None


@pytest.mark.parametrize("semantics", SEMANTICS)
def test_where_everything_is_separated_only_the_empty_coalition_is_needed(semantics):
    oracle = Graph(["a", "b", "y"], [("a", "b")]).oracle("y")
    order = Order(["a", "b"], [("a", "b")])
    enumeration = enumerate_extensions(oracle, order, semantics=semantics)
    np.testing.assert_array_equal(enumeration.coalitions, [[False, False]])
    np.testing.assert_array_equal(enumeration.coefficients, [[0.0], [0.0]])
    np.testing.assert_array_equal(enumeration.skipped, [1.0, 1.0])


def test_many_features_in_few_sequences_are_exact():
    """Two chains of 40 features: numbers of orderings near 1e23 do not hurt."""
    labels = [f"{row}{k:02}" for row in "ab" for k in range(40)]
    pairs = [(f"{row}{k:02}", f"{row}{k + 1:02}") for row in "ab" for k in range(39)]
    enumeration = enumerate_extensions(NoSeparation(labels), Order(labels, pairs))
    assert enumeration.n_coalitions == 41 * 41
    worth = np.arange(80.0)
    risks = -(enumeration.coalitions @ worth)
    np.testing.assert_allclose(enumeration.values(risks), worth, rtol=1e-12)


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"semantics": "skipp"}, ValueError, "Did you mean 'skip'"),
        ({"max_coalitions": 0}, ValueError, "max_coalitions must be at least 1"),
        ({"max_ideals": 0}, ValueError, "max_ideals must be at least 1"),
        ({"order": "a"}, TypeError, "order must be an Order; got 'a'"),
        ({"order": Order(["a"])}, ValueError, r"those of the order; got \['b'\]"),
    ],
)
def test_wrong_orders_and_limits_are_refused(options, error, text):
    given_options = {"order": Order(["a", "b"]), **options}
    with pytest.raises(error, match=text):
        enumerate_extensions(NoSeparation(["a", "b"]), **given_options)
