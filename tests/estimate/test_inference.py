import numpy as np
import pytest

from dsage.estimate.inference import (
    effective_df,
    holm,
    intervals,
    p_values,
    simultaneous_intervals,
)


def test_intervals_have_the_quantiles_of_the_normal_and_of_student():
    low, high = intervals([1.0, 1.0, 1.0], [1.0, 2.0, 1.0], 0.9, df=[np.inf, np.inf, 4])
    half = np.array([1.6448536269514722, 3.2897072539029444, 2.1318467863266495])
    np.testing.assert_allclose(high - 1, half, rtol=1e-12)
    np.testing.assert_allclose(1 - low, half, rtol=1e-12)


def test_simultaneous_intervals_of_one_feature_are_the_plain_ones():
    np.testing.assert_array_equal(simultaneous_intervals([1.0], [0.3]), intervals([1.0], [0.3]))


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.95])
def test_simultaneous_intervals_hold_all_values_at_least_as_often_as_they_say(correlation):
    """Joint coverage of 10 equally correlated estimates; equality where they are independent."""
    rng = np.random.default_rng(0)
    n_runs, n_features = 20_000, 10
    common = rng.standard_normal((n_runs, 1))
    own = rng.standard_normal((n_runs, n_features))
    estimates = np.sqrt(correlation) * common + np.sqrt(1 - correlation) * own
    low, high = simultaneous_intervals(np.zeros(n_features), np.ones(n_features), 0.9)
    coverage = ((estimates > low) & (estimates < high)).all(axis=1).mean()
    se = np.sqrt(0.9 * 0.1 / n_runs)
    assert coverage > 0.9 - 4 * se
    if correlation == 0:
        assert coverage < 0.9 + 4 * se


def test_exact_values_have_intervals_of_width_zero_and_do_not_widen_the_others():
    low, high = simultaneous_intervals([1.0, 2.0, 3.0], [0.0, 0.5, 0.0])
    assert (low[0], high[0]) == (1.0, 1.0)
    alone = intervals([2.0], [0.5])
    assert (low[1], high[1]) == (alone[0][0], alone[1][0])


@pytest.mark.parametrize("unknown", [np.nan, np.inf])
def test_an_error_that_is_not_known_gives_the_whole_line_and_rejects_nothing(unknown):
    for ends in (intervals, simultaneous_intervals):
        low, high = ends([5.0, 1.0], [unknown, 0.1])
        assert (low[0], high[0]) == (-np.inf, np.inf)
        assert np.isfinite([low[1], high[1]]).all()
    assert p_values([5.0, 1.0], [unknown, 0.1])[0] == 1.0


def test_p_values_are_one_sided():
    p = p_values([0.0, 1.6448536269514722, -1.6448536269514722], [1.0, 1.0, 1.0])
    np.testing.assert_allclose(p, [0.5, 0.05, 0.95], rtol=1e-12)
    assert p_values([2.1318467863266495], [1.0], df=4)[0] == pytest.approx(0.05, rel=1e-9)


def test_p_values_of_exact_values_are_zero_or_one():
    np.testing.assert_array_equal(p_values([0.1, 0.0, -0.1], [0.0, 0.0, 0.0]), [0.0, 1.0, 1.0])


def test_p_values_are_uniform_under_the_null():
    rng = np.random.default_rng(0)
    units = rng.standard_normal((5000, 6))
    se = units.std(axis=1, ddof=1) / np.sqrt(6)
    p = p_values(units.mean(axis=1), se, df=5)
    for alpha in (0.01, 0.05, 0.5):
        assert abs((p < alpha).mean() - alpha) < 4 * np.sqrt(alpha * (1 - alpha) / 5000)


def test_holm_multiplies_stepwise_and_keeps_the_order():
    np.testing.assert_allclose(holm([0.04, 0.01, 0.03, 0.5]), [0.09, 0.04, 0.09, 0.5])
    np.testing.assert_allclose(holm([0.6, 0.7]), [1.0, 1.0])
    assert holm([]).shape == (0,)


def test_holm_rejects_a_true_hypothesis_no_more_often_than_it_says():
    """Three true hypotheses, correlated, among two false ones."""
    rng = np.random.default_rng(0)
    n_runs = 4000
    common, own = rng.standard_normal((n_runs, 1)), rng.standard_normal((n_runs, 5))
    true = np.array([0.0, 0.0, 0.0, 3.0, 6.0])
    estimates = true + np.sqrt(0.3) * common + np.sqrt(0.7) * own
    rejected = np.array([holm(p_values(row, np.ones(5))) <= 0.05 for row in estimates])
    assert rejected[:, :3].any(axis=1).mean() < 0.05 + 4 * np.sqrt(0.05 * 0.95 / n_runs)
    assert rejected[:, 4].mean() > 0.9


def test_effective_df_lies_between_the_smallest_part_and_the_sum():
    np.testing.assert_allclose(effective_df([[1.0], [3.0]], [4, 9]), [16 / (1 / 4 + 9 / 9)])
    np.testing.assert_allclose(effective_df([[2.0], [0.0]], [4, 9]), [4.0])
    np.testing.assert_allclose(effective_df([[4.0], [9.0]], [4, 9]), [13.0])
    np.testing.assert_allclose(effective_df([[1e-200], [1e-200]], [4, 4]), [8.0])
    np.testing.assert_allclose(effective_df([[1.0, 1.0]], [[3, 5]]), [3.0, 5.0])


@pytest.mark.parametrize(
    ("values", "se", "options", "text"),
    [
        ([[1.0]], [[1.0]], {}, "values must be a vector of finite numbers"),
        ([np.nan], [1.0], {}, "values must be a vector of finite numbers"),
        ([1.0], [1.0, 2.0], {}, "se must be 1 numbers of 0 or more"),
        ([1.0], [-1.0], {}, "se must be 1 numbers of 0 or more"),
        ([1.0], [1.0], {"df": 0}, "df must be one positive number or 1"),
        ([1.0], [1.0], {"df": [3, 4]}, "df must be one positive number or 1"),
        ([1.0], [1.0], {"confidence": 95}, "confidence must be between 0 and 1; got 95"),
        ([1.0], [1.0], {"confidence": 1.0}, "confidence must be between 0 and 1; got 1.0"),
    ],
)
def test_what_are_not_estimates_with_errors_is_refused(values, se, options, text):
    with pytest.raises(ValueError, match=text):
        intervals(values, se, **options)
    with pytest.raises(ValueError, match=text):
        simultaneous_intervals(values, se, **options)


def test_numbers_that_are_not_p_values_or_variances_are_refused():
    for p in ([1.1], [-0.1], [np.nan], [[0.1]]):
        with pytest.raises(ValueError, match=r"p must be a vector of numbers in \[0, 1\]"):
            holm(p)
    with pytest.raises(ValueError, match="variances must be non-negative"):
        effective_df([[-1.0]], [3])
    with pytest.raises(ValueError, match="df must be positive"):
        effective_df([[1.0]], [3, 4])
