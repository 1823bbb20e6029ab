import itertools
import math

import numpy as np
import pytest
from scipy.stats import norm

from dsage.samplers.energy import column_means, column_scales, energy_scores, has_gaps


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


def plain_distance(a, b, n_categories, center, scale):
    total = 0.0
    for at, n in enumerate(n_categories):
        if n:
            total += 2.0 * (a[at] != b[at])
            continue
        one, other = (
            (0.0, 1.0) if math.isnan(v[at]) else ((v[at] - center[at]) / scale[at], 0.0)
            for v in (a, b)
        )
        total += (one[0] - other[0]) ** 2 + (one[1] - other[1]) ** 2
    return math.sqrt(total)


@pytest.mark.parametrize("in_two_sets", [False, True])
@pytest.mark.parametrize("has_center", [False, True])
@pytest.mark.parametrize("chunk", [1, 40, 2**22])
def test_energy_scores_are_means_of_distances(in_two_sets, has_center, chunk, monkeypatch):
    monkeypatch.setattr("dsage.samplers.energy._CHUNK", chunk)
    rng = np.random.default_rng(0)
    n_rows, n_draws = 5, 4
    n_categories = np.array([0, 3, 0, 2, 0])

    def values(*shape):
        found = rng.normal(size=(*shape, 5))
        found[..., [0, 2]][rng.random((*shape, 2)) < 0.3] = np.nan
        found[..., 2] = np.where(rng.random(shape) < 0.3, np.nan, found[..., 2])
        found[..., 1], found[..., 3] = rng.integers(3, size=shape), rng.integers(2, size=shape)
        return found

    X, draws = values(n_rows), values(n_rows, n_draws)
    scale, center = np.array([2.0, 1.0, 0.5, 1.0, 3.0]), np.array([0.3, 0.0, -1.0, 0.0, 0.1])
    middle = center if has_center else np.nanmean(X, axis=0)
    for features in ([0, 1, 2, 3, 4], [2], [1, 3], [4, 2]):
        at = np.array(features)

        def apart(a, b, at=at):
            return plain_distance(a[at], b[at], n_categories[at], middle[at], scale[at])

        found = energy_scores(
            X, draws, at, n_categories, scale,
            in_two_sets=in_two_sets, center=center if has_center else None,
        )  # fmt: skip
        for row in range(n_rows):
            own = draws[row]
            to_row = np.mean([apart(y, X[row]) for y in own])
            if in_two_sets:
                pairs = itertools.product(own[:2], own[2:])
            else:
                pairs = itertools.permutations(own, 2)
            among = np.mean([apart(a, b) for a, b in pairs]) / 2
            expected = (to_row - among) / math.sqrt(len(features))
            assert found[row] == pytest.approx(expected, rel=1e-7, abs=1e-7)


def test_the_mean_of_a_column_without_numbers_is_zero():
    X = np.array([[np.nan, 1.0, np.nan], [np.nan, 3.0, 5.0]])
    np.testing.assert_array_equal(column_means(X), [0.0, 2.0, 5.0])
