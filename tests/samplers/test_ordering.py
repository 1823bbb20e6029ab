import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsage.samplers import ordering as ordering_module
from dsage.samplers.conditioning import normal_scores
from dsage.samplers.gaussian import Gaussian


def random_sampler(n_features, rng):
    factor = rng.standard_normal((n_features, n_features + 2))
    return Gaussian.from_moments(rng.standard_normal(n_features), factor @ factor.T)


def copies(prefixes):
    return {length: draws.copy() for length, draws in prefixes}


def case(n_features=6, n_rows=9, n_draws=4, seed=0):
    rng = np.random.default_rng(seed)
    sampler = random_sampler(n_features, rng)
    X = rng.standard_normal((n_rows, n_features))
    scores = normal_scores(rng.random((n_rows, n_draws, n_features)))
    return sampler, sampler.ordering(rng.permutation(n_features)), X, scores


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_prefixes_are_the_same_to_the_bit_in_any_split_of_the_rows(data):
    _, ordering, X, scores = case(
        data.draw(st.sampled_from([1, 2, 6, 37])),
        data.draw(st.integers(1, 150)),
        data.draw(st.integers(1, 12)),
        data.draw(st.integers(0, 2**32 - 1)),
    )
    whole = copies(ordering.prefixes(X, scores))
    cuts = sorted(data.draw(st.sets(st.integers(1, max(len(X) - 1, 1)), max_size=6)))
    for rows in np.split(np.arange(len(X)), cuts):
        for length, draws in ordering.prefixes(X[rows], scores[rows]):
            assert np.array_equal(draws, whole[length][rows])
    for draw in {0, scores.shape[1] - 1}:
        for length, draws in ordering.prefixes(X, scores[:, draw : draw + 1]):
            assert np.array_equal(draws[:, 0], whole[length][:, draw])


def test_the_size_of_the_chunks_changes_nothing(monkeypatch):
    _, ordering, X, scores = case(n_rows=40)
    expected = copies(ordering.prefixes(X, scores))
    some = copies(ordering.prefixes(X, scores, [1, 4]))
    monkeypatch.setattr(ordering_module, "_CHUNK_CELLS", 30)
    monkeypatch.setattr(ordering_module, "_CHUNK_DRAWS", 7)
    for length, draws in ordering.prefixes(X, scores):
        assert np.array_equal(draws, expected[length])
    for length, draws in ordering.prefixes(X, scores, [1, 4]):
        assert np.array_equal(draws, some[length])


def test_a_prefix_does_not_depend_on_the_lengths_asked_for():
    _, ordering, X, scores = case()
    expected = copies(ordering.prefixes(X, scores))
    assert list(expected) == list(range(7))
    for n_lengths in range(8):
        for lengths in itertools.combinations(range(7), n_lengths):
            got = copies(ordering.prefixes(X, scores, lengths))
            assert tuple(got) == lengths
            assert all(np.array_equal(got[length], expected[length]) for length in lengths)


def test_prefixes_of_many_features_stay_with_the_direct_formula():
    n_features = 99
    sampler, ordering, X, scores = case(n_features, n_rows=20, n_draws=5)
    order, deviation = ordering.order, np.sqrt(sampler.covariance_.diagonal())
    factor = np.linalg.cholesky(sampler.covariance_[np.ix_(order, order)])
    z = np.linalg.solve(factor, (X - sampler.mean_)[:, order].T).T
    for length, draws in ordering.prefixes(X, scores):
        mixed = scores[:, :, order]
        mixed[:, :, :length] = z[:, None, :length]
        direct = np.empty_like(mixed)
        direct[:, :, order] = mixed @ factor.T + sampler.mean_[order]
        assert np.abs((draws - direct) / deviation).max() < 1e-12


def test_known_features_keep_their_values_and_others_are_not_looked_at():
    _, ordering, X, scores = case()
    for length, draws in ordering.prefixes(X, scores):
        known = ordering.order[:length]
        assert np.array_equal(draws[:, :, known], np.repeat(X[:, None, known], 4, axis=1))
    asked = X.copy()
    asked[:, ordering.order[4:]] = np.nan
    expected = copies(ordering.prefixes(X, scores, [2, 4]))
    for length, draws in ordering.prefixes(asked, scores, [2, 4]):
        assert np.array_equal(draws, expected[length])


def test_the_whitened_rows_take_the_place_of_scores():
    sampler, ordering, X, scores = case()
    z = ordering.whitened(X)
    np.testing.assert_allclose(z @ ordering.factor.T, (X - sampler.mean_)[:, ordering.order])
    *_, (_, none) = ordering.prefixes(X, scores, [0])
    np.testing.assert_allclose(
        none[:, :, ordering.order],
        scores[:, :, ordering.order] @ ordering.factor.T + sampler.mean_[ordering.order],
        rtol=0,
        atol=1e-12,
    )


def test_draws_are_a_view_that_cannot_be_written_to():
    _, ordering, X, scores = case()
    steps = ordering.prefixes(X, scores)
    _, first = next(steps)
    before = first.copy()
    with pytest.raises(ValueError, match="read-only"):
        first[0] = 0.0
    _, second = next(steps)
    assert np.shares_memory(first, second)
    assert not np.array_equal(first, before)


def test_scores_are_not_changed_and_are_rounded_to_their_grid():
    _, ordering, X, scores = case()
    kept = scores.copy()
    expected = copies(ordering.prefixes(X, scores))
    assert np.array_equal(scores, kept)
    for length, draws in ordering.prefixes(X, scores + 1e-8):
        assert np.array_equal(draws, expected[length])


def test_no_rows_and_frames_with_columns_in_another_order_are_served():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((30, 3)), columns=["a", "b", "c"])
    ordering = Gaussian().fit(frame).ordering([2, 0, 1])
    scores = normal_scores(rng.random((30, 2, 3)))
    expected = copies(ordering.prefixes(frame.to_numpy(), scores))
    for length, draws in ordering.prefixes(frame[["c", "a", "b"]], scores):
        assert np.array_equal(draws, expected[length])
    none = copies(ordering.prefixes(frame[:0], scores[:0]))
    assert [draws.shape for draws in none.values()] == [(0, 2, 3)] * 4


@pytest.mark.filterwarnings("ignore:The columns:UserWarning")
def test_relations_between_columns_hold():
    rng = np.random.default_rng(7)
    a, b = rng.standard_normal((2, 300)) * [[1.0], [50.0]] + [[3.0], [1e4]]
    data = np.column_stack([a, np.full(300, 0.1), b, a, 2 * a - b + 1, rng.random(300)])
    ordering = Gaussian().fit(data).ordering([3, 5, 4, 0, 1, 2])
    scores = normal_scores(rng.random((20, 30, 6)))
    for _, draws in ordering.prefixes(data[:20], scores):
        a, fixed, b, copy, total, _ = np.moveaxis(draws, 2, 0)
        np.testing.assert_allclose(fixed, 0.1)
        np.testing.assert_allclose(copy, a, rtol=0, atol=1e-12)
        np.testing.assert_allclose(total, 2 * a - b + 1, rtol=0, atol=1e-10)


def test_bad_arguments_are_refused_before_the_first_draw():
    sampler, ordering, X, scores = case()
    with pytest.raises(ValueError, match=r"order must be a permutation of 0 \.\. 5; got \[0, 0\]"):
        sampler.ordering([0, 0])
    with pytest.raises(ValueError, match=r"order must be a permutation of 0 \.\. 5; got \[0\.0"):
        sampler.ordering([0.0, 1, 2, 3, 4, 5])
    with pytest.raises(ValueError, match="lengths must be at most 6; got 7"):
        ordering.prefixes(X, scores, [3, 7])
    with pytest.raises(ValueError, match=r"lengths must be at least 0; got -1"):
        ordering.prefixes(X, scores, [-1])
    with pytest.raises(ValueError, match=r"lengths must be ascending; got \[3, 3\]"):
        ordering.prefixes(X, scores, [3, 3])
    with pytest.raises(TypeError, match=r"lengths must be an integer; got 1\.5"):
        ordering.prefixes(X, scores, [1.5])
    with pytest.raises(ValueError, match=r"scores must be of shape \(9, n_draws, 6\)"):
        ordering.prefixes(X, scores[:4])


def conditional(sampler, X, known):
    """The mean and the covariance of all features given some, from the definition."""
    mean, covariance = sampler.mean_, sampler.covariance_
    means, left = np.array(X), np.zeros_like(covariance)
    rest = np.setdiff1d(np.arange(len(mean)), known)
    slopes = covariance[np.ix_(rest, known)] @ np.linalg.inv(covariance[np.ix_(known, known)])
    means[:, rest] = mean[rest] + (X[:, known] - mean[known]) @ slopes.T
    inner = covariance[np.ix_(rest, rest)] - slopes @ covariance[np.ix_(known, rest)]
    left[np.ix_(rest, rest)] = inner
    return means, left


def test_scores_behind_draws_come_with_their_conditional_distributions():
    sampler, ordering, X, scores = case()
    expected = copies(ordering.prefixes(X, scores))
    seen = []
    for length, draws, latent in ordering.latent_prefixes(X, scores, [0, 2, 3, 5, 6]):
        rest = ordering.order[length:]
        np.testing.assert_array_equal(draws, expected[length])
        np.testing.assert_array_equal(latent.variables, rest)
        np.testing.assert_array_equal(latent.scores, draws.transpose(2, 0, 1)[rest])
        means, covariance = conditional(sampler, X, ordering.order[:length])
        np.testing.assert_allclose(latent.centers[:, :, 0], means.T[rest], atol=1e-9)
        spreads = np.sqrt(covariance.diagonal()[rest])
        np.testing.assert_allclose(latent.spreads[:, 0, 0], spreads, rtol=1e-9)
        seen.append(length)
    assert seen == [0, 2, 3, 5, 6]


def test_weighted_sums_have_the_distributions_of_the_coalitions():
    sampler, ordering, X, _ = case()
    weights = np.random.default_rng(5).standard_normal((6, 2))
    laws = list(ordering.sum_laws(X, weights))
    assert len(laws) == 6
    for length, law in enumerate(laws):
        means, covariance = conditional(sampler, X, ordering.order[:length])
        known = np.isin(np.arange(6), ordering.order[:length])
        for found in (law, sampler.sum_law(X, known, weights)):
            np.testing.assert_array_equal(found.shares, np.ones((1, len(X))))
            np.testing.assert_allclose(found.means, (means @ weights)[None], atol=1e-9)
            inner = weights.T @ covariance @ weights
            np.testing.assert_allclose(found.covariances, inner[None], atol=1e-9)
