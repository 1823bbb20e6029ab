"""The closed forms that the other tests rely on: checked against axioms, theory and simulation."""

import numpy as np
import pytest

from dsage import Graph
from dsage.datasets import paper_graph
from dsage.graphs import LinearGaussian, NoSeparation
from exact_values import (
    BinaryCase,
    LinearGaussianCase,
    coalitions,
    is_separated,
    shapley,
    shapley_by_orderings,
    tabulated,
)

NAMES = ["a", "b", "c", "e", "y"]
EDGES = [("a", "b"), ("b", "y"), ("c", "y"), ("y", "e")]
GRAPH = Graph(NAMES, EDGES)
ORACLE = GRAPH.oracle("y")


def gaussian_case(**options):
    weights = {("a", "b"): 0.8, ("b", "y"): -0.7, ("c", "y"): 0.5, ("y", "e"): 0.9}
    variances = {"a": 1.0, "b": 0.5, "c": 2.0, "e": 0.4, "y": 0.3}
    return LinearGaussianCase.of(LinearGaussian(GRAPH, weights, variances), "y", **options)


def binary_case(**options):
    return BinaryCase.of(GRAPH, "y", np.random.default_rng(3), **options)


CASES = {
    "gaussian, optimal": gaussian_case(),
    "gaussian, not optimal": gaussian_case(
        weights=[0.9, -0.2, 0.3, 0.4], intercept=0.7, mean=[1.0, -2.0, 0.5, 0.0, 3.0]
    ),
    "binary, optimal": binary_case(),
    "binary, not optimal": binary_case(
        classifier=np.random.default_rng(5).uniform(0.05, 0.95, size=(2,) * 4)
    ),
}
OPTIMAL = [CASES["gaussian, optimal"], CASES["binary, optimal"]]


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
@pytest.mark.parametrize(
    ("oracle", "semantics"), [(None, "boundary"), (ORACLE, "boundary"), (ORACLE, "skip")]
)
def test_the_weighted_sum_over_coalitions_is_the_mean_over_all_orderings(case, oracle, semantics):
    risk = tabulated(case.risk, 4)
    np.testing.assert_allclose(
        shapley(risk, 4, oracle, semantics),
        shapley_by_orderings(risk, 4, oracle, semantics),
        rtol=0,
        atol=1e-13,
    )


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_plain_and_boundary_values_are_efficient(case):
    everything = frozenset(range(4))
    gain = case.risk(frozenset()) - case.risk(everything)
    assert case.values().sum() == pytest.approx(gain, abs=1e-12)
    blanket = frozenset(ORACLE.feature_names.index(name) for name in "bce")
    gain = case.risk(frozenset()) - case.risk(blanket)
    assert case.values(ORACLE).sum() == pytest.approx(gain, abs=1e-12)


@pytest.mark.parametrize("case", OPTIMAL, ids=["gaussian", "binary"])
def test_theorem_1_an_optimal_model_has_surplus_zero_where_the_graph_separates(case):
    n_skipped = 0
    for coalition in coalitions(4):
        for feature in set(range(4)) - coalition:
            gain = case.risk(coalition) - case.risk(coalition | {feature})
            if is_separated(ORACLE, coalition, feature):
                n_skipped += 1
                assert abs(gain) < 1e-12
            else:
                assert gain > 1e-6
    assert n_skipped == 4  # a given any set with b in it


@pytest.mark.parametrize("case", OPTIMAL, ids=["gaussian", "binary"])
def test_all_semantics_agree_for_an_optimal_model(case):
    plain = case.values()
    np.testing.assert_allclose(case.values(ORACLE), plain, rtol=0, atol=1e-12)
    np.testing.assert_allclose(case.values(ORACLE, "skip"), plain, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["gaussian, not optimal", "binary, not optimal"])
def test_all_semantics_differ_for_a_model_that_is_not_optimal(name):
    case = CASES[name]
    plain, boundary, skip = case.values(), case.values(ORACLE), case.values(ORACLE, "skip")
    for one, other in [(plain, boundary), (plain, skip), (boundary, skip)]:
        assert np.abs(one - other).max() > 1e-3


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_an_oracle_that_separates_nothing_gives_the_plain_values(case):
    oracle = NoSeparation(list("abce"))
    for semantics in ("boundary", "skip"):
        np.testing.assert_array_equal(case.values(oracle, semantics), case.values())


@pytest.mark.parametrize("name", CASES)
def test_the_population_values_are_the_limit_of_those_on_rows(name):
    case = CASES[name]
    X, y = case.sample(20_000, np.random.default_rng(1))
    # Independent batches of rows give the standard error of their mean.
    batches = np.array([case.values(data=(X[at::20], y[at::20])) for at in range(20)])
    se = batches.std(axis=0, ddof=1) / np.sqrt(20)
    assert (np.abs(batches.mean(axis=0) - case.values()) < 4.5 * se).all()


def test_a_dummy_gets_zero_and_symmetric_features_get_the_same():
    """Y = X1 + X2 + noise with iid features, and a third that is independent and not used."""
    covariance = np.diag([1.0, 1.0, 1.0, 2.5])
    covariance[-1, :2] = covariance[:2, -1] = 1.0
    case = LinearGaussianCase(np.zeros(4), covariance, 0.0, np.array([1.0, 1.0, 0.0]))
    np.testing.assert_allclose(case.values(), [1.0, 1.0, 0.0], atol=1e-14)


def test_a_duplicate_shares_the_value_of_its_twin():
    """With Y = X and a copy of X, each of the two gets half of what X alone gets."""
    risk = {frozenset(): 1.0}
    twins = lambda coalition: risk.get(coalition, 0.0)  # noqa: E731
    np.testing.assert_allclose(shapley(twins, 2), [0.5, 0.5])


def test_the_optimal_risk_is_the_conditional_variance():
    model = paper_graph("dag_s(3)")
    case = LinearGaussianCase.of(model, model.target)
    precision = np.linalg.inv(case.covariance)
    assert case.risk(frozenset(range(9))) == pytest.approx(1 / precision[-1, -1], rel=1e-12)
    assert case.risk(frozenset()) == pytest.approx(1.0, rel=1e-12)


def test_reduced_predictions_average_the_model_over_the_unknown_features():
    """E[f_S(X_S)] = E[f(X)], and f of all features is the model."""
    case = CASES["binary, not optimal"]
    law = case.joint.sum(axis=-1).ravel()
    mean = law @ case.predict(case.states)
    for coalition in coalitions(4):
        assert law @ case.predict_given(case.states, coalition) == pytest.approx(mean, abs=1e-13)
    np.testing.assert_allclose(
        case.predict_given(case.states, frozenset(range(4))), case.predict(case.states)
    )
