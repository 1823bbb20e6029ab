"""The engine against exact values: linear-Gaussian models and discrete ones, by enumeration."""

import warnings

import numpy as np
import pandas as pd
import pytest

from dsage.datasets import paper_graph
from dsage.estimate.running.run import run
from dsage.estimate.running.stopping import NOrderings, as_stopping
from exact_values import BinaryCase, LinearGaussianCase
from small_games import (
    FEATURES,
    ORACLE,
    binary_case_of_rows,
    binary_game,
    gaussian_case,
    gaussian_game,
    suboptimal_gaussian_case,
)

GAUSSIAN = suboptimal_gaussian_case()
ROWS = GAUSSIAN.sample(300, np.random.default_rng(0))
LINEAR = gaussian_game(GAUSSIAN, *ROWS)

CLASSIFIER = np.random.default_rng(5).uniform(0.05, 0.95, size=(2,) * 4)
TABLE, LABELS, BINARY = binary_case_of_rows(1000, classifier=CLASSIFIER)
FEW = (TABLE[:80], LABELS[:80])
DISCRETE = binary_game(BINARY, TABLE, *FEW, n_draws=64, random_state=11)

# What to estimate, with which oracle, and how separated surpluses are treated.
WAYS = {
    "plain": (None, "sage", "boundary"),
    "d-sage, boundary": (ORACLE, "d-sage", "boundary"),
    "d-sage, skip": (ORACLE, "d-sage", "skip"),
    "sage, boundary": (ORACLE, "sage", "boundary"),
    "sage, skip": (ORACLE, "sage", "skip"),
}
every_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


def estimate(game, way, **options):
    """Run quietly: d-SAGE of a model that is not optimal warns, as it should."""
    oracle, estimand, semantics = way
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Skipping by separation")
        return run(game, oracle=oracle, estimand=estimand, semantics=semantics, **options)


def exact_values(case, way, data):
    oracle, estimand, semantics = way
    return case.values(None if estimand == "sage" else oracle, semantics, data=data)


def assert_within(found, truth, *, at_most, n_se=4.5):
    """Within so many standard errors, which are small; rounding where there is none."""
    assert found.se.max() < at_most
    assert (np.abs(found.values - truth) <= n_se * found.se + 1e-9).all()


@pytest.mark.parametrize("levels", ["auto", "none"])
@pytest.mark.parametrize("way", list(WAYS.values())[:3], ids=list(WAYS)[:3])
def test_all_orderings_of_a_linear_model_give_the_exact_values(way, levels):
    found = estimate(LINEAR, way, exact="always", first_level=levels)
    np.testing.assert_allclose(found.values, exact_values(GAUSSIAN, way, ROWS), atol=1e-10)
    assert not LINEAR.is_drawn
    assert found.is_exact
    assert (found.se == 0).all()
    assert found.n_orderings == 24


@every_way
@pytest.mark.parametrize(
    ("orderings", "levels"),
    [("uniform", "none"), ("antithetic", "auto"), ("stratified", "none"), ("balanced", "auto")],
)
def test_sampled_orderings_of_a_linear_model_come_to_the_exact_values(way, levels, orderings):
    found = estimate(
        LINEAR,
        way,
        exact="never",
        first_level=levels,
        orderings=orderings,
        stopping=NOrderings(96),
        random_state=1,
    )
    truth = exact_values(GAUSSIAN, way, ROWS)
    assert_within(found, truth, at_most=0.1 * np.ptp(truth))
    assert not found.is_exact


@pytest.mark.parametrize("levels", ["auto", "none"])
@pytest.mark.parametrize("semantics", ["boundary", "skip"])
def test_all_orderings_of_dsage_and_a_sampled_correction_give_sage(semantics, levels):
    way = (ORACLE, "sage", semantics)
    truth = exact_values(GAUSSIAN, way, ROWS)
    rule = as_stopping(absolute=0.01 * np.ptp(truth))
    found = estimate(LINEAR, way, exact="always", first_level=levels, stopping=rule, random_state=2)
    assert_within(found, truth, at_most=0.01 * np.ptp(truth))
    np.testing.assert_allclose(
        found.values - found.audit.values, GAUSSIAN.values(ORACLE, semantics, data=ROWS), atol=1e-10
    )
    assert found.se.max() > 0
    assert not found.is_exact  # only one of its two terms is


@every_way
@pytest.mark.parametrize("exact", ["always", "never"])
def test_draws_of_a_linear_model_come_to_the_exact_values(way, exact):
    game = gaussian_game(GAUSSIAN, *ROWS, is_drawn=True, random_state=3)
    truth = exact_values(GAUSSIAN, way, ROWS)
    rule = as_stopping(absolute=0.03 * np.ptp(truth))
    found = estimate(game, way, exact=exact, stopping=rule, random_state=3)
    assert game.is_drawn
    assert_within(found, truth, at_most=0.03 * np.ptp(truth))
    assert (found.se_draws > 0).all()


@every_way
@pytest.mark.parametrize(
    ("exact", "levels"), [("always", "auto"), ("never", "auto"), ("never", "none")]
)
def test_a_discrete_model_comes_to_the_exact_values(way, exact, levels):
    truth = exact_values(BINARY, way, FEW)
    rule = as_stopping(absolute=0.03 * np.ptp(truth))
    found = estimate(DISCRETE, way, exact=exact, first_level=levels, stopping=rule, random_state=4)
    assert_within(found, truth, at_most=0.03 * np.ptp(truth))
    assert found.is_exact == (exact == "always" and way[:2] != (ORACLE, "sage"))


@pytest.mark.parametrize("semantics", ["boundary", "skip"])
def test_theorem_1_the_optimal_linear_model_has_no_separated_surplus_on_any_row(semantics):
    case = gaussian_case()
    X, y = case.sample(200, np.random.default_rng(6))
    found = run(
        gaussian_game(case, X, y), oracle=ORACLE, semantics=semantics, exact="never", random_state=7
    )
    skipped = found.skipped_surpluses
    assert set(skipped["feature"]) == {"a"}
    assert skipped["surplus"].abs().max() < 1e-12
    assert np.abs(found.audit.values).max() < 1e-12
    assert np.ptp(found.values) > 0.1


@pytest.mark.parametrize("semantics", ["boundary", "skip"])
def test_theorem_1_the_bayes_classifier_has_no_separated_surplus(semantics):
    X, y, case = factorised_case()
    game = binary_game(case, X, X[:100], y[:100], n_draws=32, random_state=9)
    rule = NOrderings(200)
    found = run(
        game, oracle=ORACLE, semantics=semantics, exact="never", stopping=rule, random_state=9
    )
    assert set(found.skipped_surpluses["feature"]) == {"a"}
    assert found.audit.se.max() < 0.02 * np.ptp(found.values)
    assert (np.abs(found.audit.values) <= 4 * found.audit.se + 1e-12).all()
    assert np.abs(found.values).max() > 10 * found.audit.se.max()


def factorised_case():
    """A table of 4,000 rows whose frequencies have the graph's independences, exactly."""
    half, fifths = np.array([0.5, 0.5]), np.array([[0.8, 0.2], [0.2, 0.8]])
    y_given = np.array([[[0.9, 0.1], [0.5, 0.5]], [[0.4, 0.6], [0.2, 0.8]]])
    joint = np.einsum("a,ab,c,bcy,ye->abcey", half, fifths, half, y_given, fifths[::-1])
    counts = np.round(joint * 4000).astype(int)
    np.testing.assert_allclose(counts, joint * 4000, atol=1e-9)
    states = np.array(list(np.ndindex(*joint.shape)))
    rows = np.repeat(states, counts.ravel(), axis=0)
    rows = np.random.default_rng(10).permutation(rows)
    case = BinaryCase(joint, joint[..., 1] / joint.sum(axis=-1))
    return pd.DataFrame(rows[:, :-1], columns=FEATURES), rows[:, -1], case


def test_the_paper_s_graph_is_averaged_over_all_orderings_exactly():
    model = paper_graph("dag_s(2)")
    case = LinearGaussianCase.of(model, model.target)
    X, y = case.sample(100, np.random.default_rng(8))
    oracle = model.graph.oracle(model.target)
    game = gaussian_game(case, X, y, names=oracle.feature_names)
    found = run(game, oracle=oracle, audit=False)
    assert found.is_exact
    assert found.n_orderings == 362_880
    np.testing.assert_allclose(found.values, case.values(oracle, data=(X, y)), atol=1e-10)
    np.testing.assert_allclose(found.values, case.values(data=(X, y)), atol=1e-10)
