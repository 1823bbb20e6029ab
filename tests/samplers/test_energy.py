import numpy as np
import pytest
from scipy.stats import norm

from dsage.samplers.energy import column_scales, energy_scores, has_gaps


def test_scores_of_two_sets_have_the_expectation_of_independent_draws():
    rng = np.random.default_rng(0)
    X, draws = rng.standard_normal((4000, 3)), rng.standard_normal((4000, 8, 3))
    arguments = (np.arange(3), np.zeros(3, int), np.ones(3))
    difference = energy_scores(X, draws, *arguments, in_two_sets=True) - energy_scores(
        X, draws, *arguments
    )
    assert abs(difference.mean()) < 4 * difference.std() / np.sqrt(4000)
    # Draws that repeat within a set, as the points of a net are not independent, do no harm.
    paired = np.repeat(draws[:, ::4], 4, axis=1)
    pairs = energy_scores(X, paired, *arguments, in_two_sets=True)
    difference = pairs - energy_scores(X, draws, *arguments)
    assert abs(difference.mean()) < 4 * difference.std() / np.sqrt(4000)


def test_the_score_of_two_sets_is_that_of_the_normal_in_closed_form():
    x = np.array([[0.0], [0.7], [-2.0]])
    draws = np.random.default_rng(0).standard_normal((3, 1500, 1))
    exact = x * (2 * norm.cdf(x) - 1) + 2 * norm.pdf(x) - 1 / np.sqrt(np.pi)
    scores = energy_scores(x, draws, np.array([0]), np.zeros(1), np.ones(1), in_two_sets=True)
    np.testing.assert_allclose(scores, exact[:, 0], atol=4 / np.sqrt(1500))


def test_a_missing_number_is_a_point_of_its_own():
    X = np.array([[np.nan], [1.0], [-1.0]])
    draws = np.array([[[np.nan], [np.nan]], [[np.nan], [np.nan]], [[-1.0], [-1.0]]])
    arguments = (np.array([0]), np.zeros(1, int), np.ones(1))
    scores = energy_scores(X, draws, *arguments)
    # The mean is 0: a missing number is 1 from it, along a coordinate of its own.
    np.testing.assert_allclose(scores, [0.0, np.sqrt(2.0), 0.0])


def test_the_true_share_of_missing_numbers_scores_best():
    rng = np.random.default_rng(0)
    n_rows = 3000

    def with_gaps(values, share):
        return np.where(rng.random(values.shape) < share, np.nan, values)

    X = with_gaps(rng.standard_normal((n_rows, 1)), 0.3)
    means = {
        share: energy_scores(
            X,
            with_gaps(rng.standard_normal((n_rows, 8, 1)), share),
            np.array([0]),
            np.zeros(1, int),
            np.ones(1),
        ).mean()
        for share in (0.0, 0.3, 0.9)
    }
    assert min(means, key=means.get) == 0.3


def test_scales_are_of_what_is_there():
    X = np.array([[1.0, np.nan, 5.0, 1e200], [3.0, 2.0, 5.0, -1e200], [np.nan, 4.0, 5.0, 0.0]])
    expected = [1.0, 1.0, 1.0, 1e200 * np.sqrt(2 / 3)]
    np.testing.assert_allclose(column_scales(X), expected)
    assert has_gaps(X).tolist() == [True, True, False, False]
    assert has_gaps(np.zeros((3, 0))).tolist() == []
    assert energy_scores(
        X[:, :0], X[:, None, :0], np.zeros(0, int), np.zeros(0), np.ones(0)
    ).sum() == pytest.approx(0.0)
