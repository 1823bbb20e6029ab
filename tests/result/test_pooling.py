"""Statistics of several estimates, against closed forms and simulations."""

import numpy as np
import pytest

from dsage.result.pooling import corrected_error, number_repeats, random_effects


def test_equal_errors_and_no_spread_give_the_plain_mean():
    found = random_effects(np.array([[1.0], [1.1], [0.9], [1.0]]), np.full((4, 1), 0.5))
    np.testing.assert_allclose(found.values, 1.0)
    np.testing.assert_allclose(found.se, 0.25)
    np.testing.assert_array_equal(found.spread, 0.0)
    assert found.p_spread[0] > 0.9


def test_the_spread_of_equal_errors_is_the_variance_beyond_them():
    values = np.array([[1.0], [2.0], [4.0]])
    found = random_effects(values, np.full((3, 1), 0.3))
    np.testing.assert_allclose(found.spread**2, values.var(ddof=1) - 0.09)
    np.testing.assert_allclose(found.values, values.mean())
    np.testing.assert_allclose(found.se, values.std(ddof=1) / np.sqrt(3))


def test_more_precise_estimates_weigh_more():
    found = random_effects(np.array([[1.0], [2.0]]), np.array([[0.5], [1.0]]))
    np.testing.assert_allclose(found.values, (1.0 / 0.25 + 2.0) / (1 / 0.25 + 1))


def test_exact_estimates_are_pooled_without_errors():
    same = random_effects(np.ones((3, 1)), np.zeros((3, 1)))
    assert (same.values[0], same.se[0], same.spread[0]) == (1.0, 0.0, 0.0)
    other = random_effects(np.array([[1.0], [3.0]]), np.zeros((2, 1)))
    np.testing.assert_allclose(other.spread, np.sqrt(2.0), rtol=1e-6)
    np.testing.assert_allclose(other.values, 2.0)


def test_random_effects_cover_the_mean():
    generator, n_runs = np.random.default_rng(0), 2_000
    se = np.array([0.3, 0.6, 0.4, 0.5, 0.2, 0.3])[:, None] * np.ones(n_runs)
    true = 1.0 + 0.5 * generator.normal(size=se.shape)
    found = random_effects(true + se * generator.normal(size=se.shape), se)
    half = 2.5706 * found.se  # the quantile of Student with 5 degrees of freedom
    share = np.mean(np.abs(found.values - 1.0) <= half)
    assert share == pytest.approx(0.95, abs=4 * np.sqrt(0.95 * 0.05 / n_runs) + 0.01)


def test_overlapping_training_rows_enlarge_the_error():
    values = np.arange(10.0)[:, None]
    equal, ones = np.full(10, 0.1), np.ones(10)
    naive = values.std(ddof=1) / np.sqrt(10)
    np.testing.assert_allclose(corrected_error(values, equal, ones, 0 * ones), naive)
    wide = corrected_error(values, equal, 90 * ones, 10 * ones)
    np.testing.assert_allclose(wide, naive * np.sqrt(1 + 10 / 9))


def test_a_repeat_ends_where_a_row_comes_again():
    rows = np.arange(6)
    assert number_repeats([rows[:3], rows[3:], rows[:2], rows[2:4], rows[4:]]) == (1, 1, 2, 2, 2)
    assert number_repeats([rows, rows]) == (1, 2)
