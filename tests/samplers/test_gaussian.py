import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtri
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from dsage.graphs import random_dag, random_linear_gaussian
from dsage.samplers.conditioning import exact_factor, grid_scores, normal_scores
from dsage.samplers.gaussian import Gaussian


def model(n_features=6, seed=0):
    return random_linear_gaussian(random_dag(n_features, 3, random_state=seed), random_state=seed)


def some_sampler(n_features=6, seed=0):
    return Gaussian.from_moments(np.arange(float(n_features)), model(n_features, seed).covariance())


def mask(n_features, *known):
    flags = np.zeros(n_features, bool)
    flags[list(known)] = True
    return flags


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_rows_and_draws_are_the_same_to_the_bit_in_any_split(data):
    n_features = data.draw(st.sampled_from([1, 2, 6, 37]))
    n_rows, n_draws = data.draw(st.integers(1, 150)), data.draw(st.integers(1, 12))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    factor = rng.standard_normal((n_features, n_features + 2))
    sampler = Gaussian.from_moments(rng.standard_normal(n_features), factor @ factor.T)
    X = rng.standard_normal((n_rows, n_features))
    noise = rng.random((n_rows, n_draws, n_features))
    known = rng.random(n_features) < rng.random()
    whole = sampler.draw(X, known, noise)
    means = sampler.mean(X, known)
    cuts = sorted(data.draw(st.sets(st.integers(1, max(n_rows - 1, 1)), max_size=6)))
    for rows in np.split(np.arange(n_rows), cuts):
        assert np.array_equal(sampler.draw(X[rows], known, noise[rows]), whole[rows])
        assert np.array_equal(sampler.mean(X[rows], known), means[rows])
    for draw in {0, n_draws - 1}:
        alone = sampler.draw(X, known, noise[:, draw : draw + 1])
        assert np.array_equal(alone[:, 0], whole[:, draw])


def test_a_small_byte_budget_and_threads_change_nothing():
    sampler = some_sampler()
    rng = np.random.default_rng(0)
    X, noise = rng.standard_normal((50, 6)), rng.random((50, 7, 6))
    coalitions = rng.random((40, 6)) < 0.5
    expected = [sampler.draw(X, known, noise) for known in coalitions]
    fresh = some_sampler().set_params(max_bytes=1)
    with ThreadPoolExecutor(4) as pool:
        got = list(pool.map(lambda known: fresh.draw(X, known, noise), coalitions))
    assert all(np.array_equal(one, other) for one, other in zip(got, expected, strict=True))


def test_known_features_keep_their_values_and_unknown_ones_are_not_looked_at():
    sampler, rng = some_sampler(), np.random.default_rng(1)
    X, noise, known = rng.standard_normal((9, 6)), rng.random((9, 4, 6)), mask(6, 0, 3)
    drawn = sampler.draw(X, known, noise)
    assert np.array_equal(drawn[:, :, known], np.repeat(X[:, None, known], 4, axis=1))
    other = np.where(known, X, np.nan)
    assert np.array_equal(sampler.draw(other, known, noise), drawn)
    assert np.array_equal(sampler.draw(X, mask(6, *range(6)), noise), np.repeat(X[:, None], 4, 1))


def test_draws_from_scores_are_the_draws_from_noise():
    sampler, rng = some_sampler(), np.random.default_rng(2)
    X, noise, known = rng.standard_normal((9, 6)), rng.random((9, 4, 6)), mask(6, 1, 2)
    expected = sampler.draw(X, known, noise)
    assert np.array_equal(sampler.draw_scores(X, known, normal_scores(noise)), expected)
    with pytest.raises(ValueError, match=r"scores must be of shape \(9, n_draws, 6\)"):
        sampler.draw_scores(X, known, normal_scores(noise[:, :, 1:]))
    with pytest.raises(ValueError, match=r"scores must be within 8\.3 of 0; got 9\.0"):
        sampler.draw_scores(X, known, np.full((9, 1, 6), 9.0))


def test_half_of_the_noise_gives_the_conditional_mean():
    sampler, rng = some_sampler(), np.random.default_rng(3)
    X, known = rng.standard_normal((9, 6)), mask(6, 4)
    drawn = sampler.draw(X, known, np.full((9, 1, 6), 0.5))
    assert np.array_equal(drawn[:, 0], sampler.mean(X, known))


def test_normal_scores_are_those_of_scipy_but_for_the_grid():
    rng = np.random.default_rng(0)
    noise = np.concatenate([rng.random(200_000), 2.0 ** -rng.uniform(1, 53, 2000)])
    for u in (noise, 1 - noise):
        assert np.abs(normal_scores(u) - ndtri(u)).max() < 6e-7
    assert np.abs(normal_scores(np.array([5e-324, 1 - 2**-53]))).max() <= 8.3
    assert normal_scores(np.array([0.5]))[0] == 0
    assert (np.diff(normal_scores(np.sort(noise))) >= 0).all()


@pytest.mark.parametrize("n_noise", [1, 5, 99, 700])
def test_products_with_noise_are_exact_in_any_order(n_noise):
    rng = np.random.default_rng(n_noise)
    factor = exact_factor(rng.standard_normal((4, n_noise)) * [[1e-9], [1.0], [3.0], [1e12]])
    noise = rng.random((50, n_noise))
    noise[0], noise[1] = 2.0**-53, 1 - 2.0**-53
    scores = grid_scores(noise)
    product = scores @ factor
    for _ in range(5):
        order = rng.permutation(n_noise)
        assert np.array_equal(scores[:, order] @ factor[order], product)


def test_coalitions_that_share_noise_have_coupled_draws():
    graph = random_dag(12, 3, random_state=5)
    sampler = Gaussian.from_moments(
        np.zeros(12), random_linear_gaussian(graph, random_state=5).covariance()
    )
    rng = np.random.default_rng(0)
    noise = rng.random((1, 4000, 12))
    X, order = rng.standard_normal((1, 12)), rng.permutation(12)
    shared, fresh = [], []
    for size in range(11):
        few, more = mask(12, *order[:size]), mask(12, *order[: size + 1])
        one, other = sampler.draw(X, few, noise)[0], sampler.draw(X, more, noise)[0]
        apart = sampler.draw(X, more, rng.random(noise.shape))[0]
        for at in np.flatnonzero(~more):
            shared.append(np.corrcoef(one[:, at], other[:, at])[0, 1])
            fresh.append(np.corrcoef(one[:, at], apart[:, at])[0, 1])
    assert np.median(shared) > 0.95
    assert np.mean(shared) > 0.8
    assert np.abs(fresh).max() < 5 / np.sqrt(4000)


def test_the_fit_has_the_moments_of_the_data():
    X = model().sample(200, random_state=0)
    sampler = Gaussian().fit(X)
    assert sampler.feature_names_ == tuple(X.columns)
    np.testing.assert_allclose(sampler.mean_, X.mean())
    np.testing.assert_allclose(sampler.covariance_, X.cov(), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("kind", ["ledoit-wolf", "oas"])
def test_shrinkage_does_not_depend_on_units(kind):
    X = model().sample(30, random_state=0).to_numpy()
    units = np.array([1.0, 1e6, 1e-3, 5.0, 1.0, 40.0])
    plain = Gaussian(covariance=kind).fit(X)
    scaled = Gaussian(covariance=kind).fit(X * units)
    np.testing.assert_allclose(scaled.covariance_, plain.covariance_ * np.outer(units, units))
    shrunk = np.abs(np.corrcoef(X.T)) - np.abs(plain._normal.correlation)
    off = ~np.eye(6, dtype=bool)
    assert (shrunk[off] > 0).all()


def test_shrinkage_makes_a_covariance_of_few_rows_regular():
    X = np.random.default_rng(0).standard_normal((5, 12))
    sampler = Gaussian(covariance="ledoit-wolf").fit(X)  # a warning would be an error here
    assert np.linalg.eigvalsh(sampler.covariance_)[0] > 0.01


def singular_data(n_rows=300):
    rng = np.random.default_rng(7)
    a, b = rng.standard_normal((2, n_rows)) * [[1.0], [50.0]] + [[3.0], [1e4]]
    return pd.DataFrame(
        {"a": a, "fixed": 0.1, "b": b, "copy": a, "sum": 2 * a - b + 1, "free": rng.random(n_rows)}
    )


def singular_sampler():
    with pytest.warns(UserWarning, match="the covariance is singular") as caught:
        sampler = Gaussian().fit(singular_data())
    told = [str(warning.message) for warning in caught]
    assert len(told) == 2
    assert "['fixed'] are constant" in told[0]
    assert "['copy', 'sum'] follow from the columns before" in told[1]
    return sampler


@pytest.mark.parametrize("known", [(), (0,), (3,), (4,), (0, 3), (2, 4), (1, 3, 4), (0, 2, 3, 4)])
def test_relations_between_columns_hold_in_draws(known):
    sampler, X = singular_sampler(), singular_data().head(20)
    noise = np.random.default_rng(0).random((20, 30, 6))
    drawn = sampler.draw(X, mask(6, *known), noise)
    a, fixed, b, copy, total, _ = np.moveaxis(drawn, 2, 0)
    assert (fixed == 0.1).all()
    np.testing.assert_allclose(copy, a, rtol=0, atol=1e-6)
    np.testing.assert_allclose(total, 2 * a - b + 1, rtol=0, atol=1e-6 * 50)
    if set(known) & {0, 3}:
        values = X["a"].to_numpy()[:, None]
        np.testing.assert_allclose(copy, values + 0 * copy, rtol=0, atol=1e-12)
    if {2, 4} <= set(known):
        values = (X["sum"] + X["b"] - 1).to_numpy()[:, None] / 2
        np.testing.assert_allclose(a, values + 0 * a, rtol=0, atol=1e-7)


def test_more_features_than_rows_are_drawn_within_the_span_of_the_rows():
    X = np.random.default_rng(0).standard_normal((4, 9))
    with pytest.warns(UserWarning, match=r"'X4'.*'X9'.* follow from the columns before"):
        sampler = Gaussian().fit(X)
    drawn = sampler.draw(X[:1], mask(9), np.random.default_rng(1).random((1, 50, 9)))[0]
    span = np.linalg.svd(X - X.mean(axis=0))[2][:3]
    centred = drawn - X.mean(axis=0)
    np.testing.assert_allclose(centred - centred @ span.T @ span, 0, atol=1e-6)
    assert centred.std() > 0.1


def test_float32_is_the_rounded_float64():
    sampler, rng = some_sampler(), np.random.default_rng(2)
    X, noise, known = rng.standard_normal((9, 6)), rng.random((9, 4, 6)), mask(6, 1, 2)
    expected = sampler.draw(X, known, noise)
    drawn = sampler.set_params(dtype=np.float32).draw(X, known, noise)
    assert drawn.dtype == np.float32
    assert np.array_equal(drawn, expected.astype(np.float32))


def test_pickles_and_clones():
    X = model().sample(50, random_state=0).to_numpy()
    sampler = Gaussian(covariance="oas").fit(X)
    noise, known = np.random.default_rng(0).random((50, 2, 6)), mask(6, 2)
    expected = sampler.draw(X, known, noise)
    assert np.array_equal(pickle.loads(pickle.dumps(sampler)).draw(X, known, noise), expected)
    copy = clone(sampler)
    assert copy.get_params() == sampler.get_params()
    with pytest.raises(NotFittedError):
        copy.draw(X, known, noise)
    assert np.array_equal(copy.fit(X).draw(X, known, noise), expected)


def test_what_is_kept_of_coalitions_is_bounded():
    sampler = some_sampler(6)
    sampler._normal._recent._n_kept = 5
    X, noise = np.zeros((1, 6)), np.full((1, 1, 6), 0.3)
    for number in range(1, 20):
        known = np.array([bool(number >> bit & 1) for bit in range(6)])
        sampler.draw(X, known, noise)
    assert len(sampler._normal._recent._values) == 5


def test_classes_are_refused_by_name():
    frame = pd.DataFrame({"a": [1.0, 2.0], "sex": ["m", "f"]})
    with pytest.raises(TypeError, match=r"continuous columns for Gaussian; got \['sex'\]"):
        Gaussian().fit(frame)


def test_singular_moments_are_taken_as_they_are():
    with pytest.warns(UserWarning, match=r"\['b'\] follow from the columns before"):
        sampler = Gaussian.from_moments([0.0, 1.0], [[1.0, 2.0], [2.0, 4.0]], ["a", "b"])
    drawn = sampler.draw([[3.0, 0.0]], mask(2, 0), np.full((1, 1, 2), 0.9))
    np.testing.assert_allclose(drawn, [[[3.0, 7.0]]])


@pytest.mark.parametrize(
    ("mean", "covariance", "names", "told"),
    [
        ([[0.0]], [[1.0]], None, r"mean must be of shape \(n_features,\)"),
        ([np.nan], [[1.0]], None, r"mean must be finite; got \[nan\]"),
        ([0.0], np.eye(2), None, r"covariance must be of shape \(1, 1\)"),
        ([0.0, 0.0], np.eye(2), ["a"], "names must be 2 names; got 1"),
        ([0.0, 0.0], [[1.0, np.nan], [np.nan, 1.0]], ["a", "b"], "covariance must be finite"),
        ([0.0, 0.0], [[1.0, 0.5], [0.4, 1.0]], None, "covariance must be symmetric"),
        ([0.0, 0.0], [[1.0, 2.0], [2.0, 1.0]], None, "covariance must be positive semidefinite"),
        ([0.0, 0.0], [[-1.0, 0.0], [0.0, 1.0]], None, "covariance must be positive semidefinite"),
    ],
)
def test_bad_moments_are_refused(mean, covariance, names, told):
    with pytest.raises(ValueError, match=told):
        Gaussian.from_moments(mean, covariance, names)


def test_bad_options_are_refused():
    X = np.random.default_rng(0).random((5, 2))
    with pytest.raises(ValueError, match=r"Did you mean 'ledoit-wolf'"):
        Gaussian(covariance="ledoit_wolf").fit(X)
    with pytest.raises(ValueError, match="X must be of at least 2 rows; got 1"):
        Gaussian().fit(X[:1])


def test_ten_constant_columns_are_all_named_and_of_more_the_number():
    for n_columns, more in ((10, ""), (11, " and 1 more"), (13, " and 3 more")):
        names = [f"x{number}" for number in range(n_columns)]
        frame = pd.DataFrame(np.ones((20, n_columns)), columns=names)
        with pytest.warns(UserWarning, match="are constant") as told:
            Gaussian().fit(frame.assign(free=np.arange(20.0)))
        assert f"{names[:10]}{more} are constant" in str(told[0].message)


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_a_covariance_is_checked_on_the_scale_of_its_correlations(scale):
    for wrong, word in (
        ([[1.0, 0.5], [0.4, 1.0]], "symmetric"),
        ([[1.0, 2.0], [2.0, 1.0]], "positive semidefinite"),
    ):
        with pytest.raises(ValueError, match=f"covariance must be {word}"):
            Gaussian.from_moments(np.zeros(2), scale * np.array(wrong))
    right = scale * np.array([[1.0, 0.5], [0.5, 1.0]])
    assert Gaussian.from_moments(np.zeros(2), right).feature_names_


def test_a_subclass_with_other_means_has_no_expectations_in_closed_form():
    class Shifted(Gaussian):
        def _mean(self, X, known):
            return super()._mean(X, known) + 1.0

    known, weights = np.array([True, False]), np.eye(2)
    moments = [0.0, 0.0], [[1.0, 0.5], [0.5, 1.0]]
    assert Gaussian.from_moments(*moments).mean_effects(known, weights) is not None
    shifted = Shifted.from_moments(*moments)
    assert shifted.mean_effects(known, weights) is None
    assert shifted.mean(np.zeros((1, 2)), known).tolist() == [[0.0, 1.0]]
    assert shifted.has_sums

    class Clipped(Gaussian):
        def _write(self, out, rows, known, noise):
            super()._write(out, rows, known, noise)
            np.clip(out, -1.0, 1.0, out=out)

    class Late(Gaussian):
        def draw(self, X, known, noise):
            return super().draw(X, known, noise)

    assert not Clipped.from_moments(*moments).has_sums
    assert not Late.from_moments(*moments).has_sums
    assert not Gaussian().has_sums
