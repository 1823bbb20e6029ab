"""Gaussian scores: bnlearn's numbers, regressions done in full, degenerate data."""

from __future__ import annotations

import itertools
import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.datasets import load_diabetes

from dsage.graphs import Graph, cpdag, random_dag
from dsage.structure.moments import Moments
from dsage.structure.scores.gaussian import GaussianScore

SEEDS = st.integers(0, 2**32 - 1)


def data(seed: int, n_rows: int = 60, n_nodes: int = 6) -> np.ndarray:
    generator = np.random.default_rng(seed)
    mixing = np.eye(n_nodes) + np.triu(generator.normal(size=(n_nodes, n_nodes)), 1)
    return generator.normal(size=(n_rows, n_nodes)) @ mixing + generator.normal(size=n_nodes)


def gaussian(X: np.ndarray, **options: float) -> GaussianScore:
    names = [f"X{place}" for place in range(X.shape[1])]
    return GaussianScore(Moments.from_array(X, names), **({"penalty": 1.5} | options))


def random_family(seed: int, n_nodes: int) -> tuple[int, tuple[int, ...]]:
    generator = np.random.default_rng(seed)
    node, *others = generator.permutation(n_nodes).tolist()
    return node, tuple(sorted(others[: generator.integers(n_nodes)]))


def total(score: GaussianScore, graph: Graph) -> float:
    place = {name: index for index, name in enumerate(score.names)}
    return math.fsum(
        score.family(place[name], tuple(sorted(place[parent] for parent in graph.parents(name))))
        for name in graph.names
    )


@pytest.mark.parametrize(
    ("penalty", "reference"),
    [(0.0, 5173.9894672009), (math.log(442) / 2, 5091.7567837929), (1.0, 5146.9894672009)],
    ids=["loglik-g", "bic-g", "aic-g"],
)
def test_fixed_structure_scores_as_in_bnlearn_5_2_1(penalty, reference):
    frame = load_diabetes(as_frame=True).frame
    edges = [("bmi", "target"), ("s5", "target"), ("bp", "target"), ("age", "bp"), ("s1", "s2")]
    score = GaussianScore(Moments.from_frame(frame), penalty=penalty)
    # The reference has ten decimals.
    assert total(score, Graph(frame.columns, edges)) == pytest.approx(reference, abs=1e-9)


@given(SEEDS)
@settings(max_examples=30, deadline=None)
def test_family_is_the_log_density_of_the_regression_residuals(seed):
    X = data(seed)
    node, parents = random_family(seed, X.shape[1])
    design = np.column_stack([np.ones(len(X)), X[:, parents]])
    residuals = X[:, node] - design @ np.linalg.lstsq(design, X[:, node])[0]
    deviation = math.sqrt(residuals @ residuals / (len(X) - 1 - len(parents)))
    log_likelihood = stats.norm.logpdf(residuals, scale=deviation).sum()
    expected = log_likelihood - 1.5 * (len(parents) + 2)
    assert gaussian(X).family(node, parents) == pytest.approx(expected, rel=1e-9)


@given(SEEDS, st.sampled_from([0.0, 3.0]))
@settings(max_examples=30, deadline=None)
def test_ceilings_bound_the_scores_with_parents_before_a_place(seed, penalty):
    score = gaussian(data(seed, n_rows=15), penalty=penalty)
    order = np.random.default_rng(seed).permutation(6).tolist()
    ceilings = score.ceilings(order)
    for rank, node in enumerate(order):
        bounds = ceilings.of(rank)
        assert bounds.shape == (7,)
        for place, bound in enumerate(bounds):
            before = sorted(set(order[:place]) - {node})
            subsets = [c for k in range(6) for c in itertools.combinations(before, k)]
            best = max(score.family(node, parents) for parents in subsets)
            assert best <= bound + 1e-9 * abs(bound)
            # Nothing is lost but what the parents cost: the bound is that of all, were they free.
            free = score.family(node, tuple(before)) + cost(15, len(before), penalty)
            assert bound == pytest.approx(free, rel=1e-9)


def cost(n_rows: int, n_parents: int, penalty: float) -> float:
    """Return what the number of parents costs, in the penalty and in degrees of freedom."""
    lost = n_rows / 2 * math.log((n_rows - 1) / (n_rows - 1 - n_parents)) - n_parents / 2
    return lost + penalty * n_parents


def test_singular_correlations_have_no_ceilings():
    X = data(0)
    assert gaussian(np.column_stack([X, X[:, 0] + X[:, 1]])).ceilings(range(7)) is None


@given(SEEDS)
@settings(max_examples=30, deadline=None)
def test_additions_and_removals_are_the_families_with_one_parent_more_and_less(seed):
    X = data(seed)
    node, parents = random_family(seed, X.shape[1])
    score = gaussian(X)
    added, removed = score.additions(node, parents), score.removals(node, parents)
    for other in range(X.shape[1]):
        # A score of its own for each: nothing is remembered from the way to another.
        if other == node or other in parents:
            assert added[other] == -np.inf
        else:
            expected = gaussian(X).family(node, tuple(sorted((*parents, other))))
            assert added[other] == pytest.approx(expected, rel=1e-9)
        if other in parents:
            fewer = tuple(parent for parent in parents if parent != other)
            assert removed[other] == pytest.approx(gaussian(X).family(node, fewer), rel=1e-9)
        else:
            assert removed[other] == -np.inf


@given(SEEDS)
@settings(max_examples=30, deadline=None)
def test_equivalent_graphs_differ_by_bnlearns_degrees_of_freedom_only(seed):
    X = data(seed)
    graph = random_dag(6, 3, random_state=seed)
    names = [f"X{place}" for place in range(1, 7)]
    score = GaussianScore(Moments.from_array(X, names), penalty=2.0)
    other = cpdag(graph).to_dag()
    freedom = [
        sum(math.log(len(X) - 1 - len(dag.parents(name))) for name in names)
        for dag in (graph, other)
    ]
    expected = len(X) / 2 * (freedom[0] - freedom[1])
    assert total(score, graph) - total(score, other) == pytest.approx(expected, abs=1e-8)


def test_a_change_of_units_changes_no_difference():
    X, units = data(3), np.array([1e-6, 1.0, 1e3, 1e8, 2.0, 0.5])
    plain, scaled = gaussian(X), gaussian(X * units)
    for node, parents in ((0, (2, 3)), (4, (0, 1, 5)), (3, ())):
        worth = plain.additions(node, parents) - plain.family(node, parents)
        scaled_worth = scaled.additions(node, parents) - scaled.family(node, parents)
        # Scores around 1e3 with some 1e-16 of relative rounding.
        np.testing.assert_allclose(scaled_worth, worth, atol=1e-9)


def test_penalty_is_paid_once_a_parameter():
    X = data(0)
    dear, free = gaussian(X, penalty=7.0), gaussian(X, penalty=0.0)
    assert free.family(0, (1, 2)) - dear.family(0, (1, 2)) == pytest.approx(7.0 * 4)


def test_what_is_remembered_changes_no_score():
    X = data(1)
    forgetful, score = gaussian(X, cache_bytes=0), gaussian(X)
    for size in range(5):
        for parents in itertools.combinations(range(1, 6), size):
            assert forgetful.family(0, parents) == pytest.approx(score.family(0, parents))
            np.testing.assert_allclose(
                forgetful.additions(0, parents), score.additions(0, parents), rtol=1e-12
            )


def test_memory_stays_within_the_bound():
    generator = np.random.default_rng(0)
    score = gaussian(generator.normal(size=(500, 200)), cache_bytes=1 << 20)
    tracemalloc.start()
    for _ in range(2000):
        node, *parents = generator.choice(200, size=5, replace=False).tolist()
        score.family(node, tuple(sorted(parents)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # Without the bound: 2000 sets of 5 parents, of 200 numbers each, 16 MB.
    assert peak < 3 << 20


def test_copies_and_sums_are_refused_as_one_more_parent():
    generator = np.random.default_rng(0)
    a, b, child = generator.normal(size=(3, 100))
    score = gaussian(np.column_stack([a, a, b, a + b, child]))
    assert np.flatnonzero(score.additions(4, (0,)) == -np.inf).tolist() == [0, 1, 4]
    assert np.flatnonzero(score.additions(4, (0, 2)) == -np.inf).tolist() == [0, 1, 2, 3, 4]


def test_superfluous_parents_explain_nothing_and_are_paid_for():
    generator = np.random.default_rng(1)
    a, child = generator.normal(size=(2, 100))
    score = gaussian(np.column_stack([a, -3 * a + 2, child]), penalty=0.0)
    # What is left is sigma2 = rss / (n - 1 - k), with k one larger.
    freedom = 50 * math.log(97 / 98) + 0.5
    expected = score.family(2, (0,)) + freedom
    assert score.family(2, (0, 1)) == pytest.approx(expected)
    assert score.removals(2, (0, 1))[[0, 1]] == pytest.approx(score.family(2, (0,)))


def test_a_sum_among_correlated_parents_explains_nothing():
    generator = np.random.default_rng(3)
    a, b, noise = generator.normal(size=(3, 200))
    b += 2 * a
    c = generator.normal(size=200) - b
    child = a - b + 2 * c + noise
    X = np.column_stack([a, b, a + b, c, child])
    score = gaussian(X, penalty=0.0)
    # One degree of freedom fewer, and the residuals of the other three.
    freedom = 100 * math.log(195 / 196) + 0.5
    expected = score.family(4, (0, 1, 3)) + freedom
    assert gaussian(X, penalty=0.0).family(4, (0, 1, 2, 3)) == pytest.approx(expected)


def test_which_parents_are_superfluous_does_not_depend_on_the_order_of_the_questions():
    generator = np.random.default_rng(2)
    a, b, e, noise = generator.normal(size=(4, 300))
    # The third is a sum of the others but for a little; the child depends on that little.
    X = np.column_stack([a, b, a + b + 1e-6 * e, e + noise])
    asked, at_once = gaussian(X), gaussian(X)
    for parents in ((1, 2), (0, 2), (0, 1, 2)):
        score = asked.family(3, parents)
        assert score == pytest.approx(gaussian(X).family(3, parents), rel=1e-12)
    assert at_once.family(3, (0, 1, 2)) == score


@given(SEEDS, st.integers(2, 12))
@settings(max_examples=60, deadline=None)
def test_scores_of_degenerate_data_are_numbers(seed, n_rows):
    generator = np.random.default_rng(seed)
    X = generator.integers(-1, 2, size=(n_rows, 3)) @ generator.integers(-1, 2, size=(3, 7))
    X = X[:, X.std(axis=0) > 0].astype(float)
    if X.shape[1] < 2:
        return
    score = gaussian(X)
    node, parents = random_family(seed, X.shape[1])
    scores = [score.family(node, parents), *score.additions(node, parents)]
    scores += score.removals(node, parents).tolist()
    assert not any(math.isnan(value) or value == math.inf for value in scores)


def test_more_parents_than_rows_can_bear_score_minus_infinity():
    score = gaussian(np.random.default_rng(0).normal(size=(4, 6)))
    assert score.family(0, (1, 2)) > -np.inf  # one degree of freedom is left
    assert score.family(0, (1, 2, 3)) == -np.inf
    assert (score.additions(0, (1, 2)) == -np.inf).all()
    assert np.isfinite(score.removals(0, (1, 2, 3))[[1, 2, 3]]).all()


def test_constants_are_named():
    X = data(0)
    X[:, 2] = 0.1
    X[:, 4] = 0.0
    with pytest.raises(ValueError, match=r"moments must be of variables that vary; .*'X2', 'X4'"):
        gaussian(X)


@pytest.mark.parametrize(
    ("penalty", "error"), [(-1.0, ValueError), (math.nan, ValueError), ("bic", TypeError)]
)
def test_penalty_must_be_a_number_of_at_least_zero(penalty, error):
    with pytest.raises(error, match="penalty must be"):
        gaussian(data(0), penalty=penalty)


def test_one_row_is_too_few():
    with pytest.raises(ValueError, match="n_rows must be at least 2"):
        GaussianScore(Moments(["a", "b"], 1, [0, 0], np.eye(2)), penalty=1.0)
