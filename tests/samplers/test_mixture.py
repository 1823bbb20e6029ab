import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn.mixture
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kstest
from sklearn.base import clone

from dsage.data import pools
from dsage.samplers.gaussian import Gaussian
from dsage.samplers.mixture import GaussianMixture


def two_modes(n_rows=600, n_features=3, seed=0):
    rng = np.random.default_rng(seed)
    side = rng.choice([-1.0, 1.0], n_rows)
    return 3 * side[:, None] + rng.standard_normal((n_rows, n_features))


@pytest.fixture(scope="module")
def sampler():
    return GaussianMixture(n_components=3).fit(two_modes())


def test_the_first_feature_is_normal_within_the_component_that_its_noise_chose():
    sampler = GaussianMixture(n_components=2).fit(two_modes(4_000))
    noise = np.random.default_rng(1).random((1, 4_000, 3))
    drawn = sampler.draw(np.zeros((1, 3)), np.zeros(3, bool), noise)[0]
    for side in (drawn[drawn[:, 1] < 0], drawn[drawn[:, 1] > 0]):
        assert kstest((side[:, 0] - side[:, 0].mean()) / side[:, 0].std(), "norm").pvalue > 1e-4
        assert side[:, 0].std() == pytest.approx(1.0, abs=0.1)


def test_there_may_be_as_many_components_as_distinct_rows():
    X = np.repeat([[0.0, 1.0], [3.0, 9.0], [5.0, -4.0]], 10, axis=0)
    sampler = GaussianMixture(n_components=3).fit(X)
    assert sampler.responsibilities(X, np.ones(2, bool)).shape[1] == 3
    with pytest.raises(ValueError, match="n_components must be at most 3, the distinct rows"):
        GaussianMixture(n_components=4).fit(X)


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_rows_and_draws_are_the_same_to_the_bit_in_any_split(sampler, data):
    n_rows, n_draws = data.draw(st.integers(1, 150)), data.draw(st.integers(1, 6))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    X, noise = 3 * rng.standard_normal((n_rows, 3)), rng.random((n_rows, n_draws, 3))
    known = rng.random(3) < 0.5
    whole, means = sampler.draw(X, known, noise), sampler.mean(X, known)
    cuts = sorted(data.draw(st.sets(st.integers(1, max(n_rows - 1, 1)), max_size=5)))
    for rows in np.split(np.arange(n_rows), cuts):
        assert np.array_equal(sampler.draw(X[rows], known, noise[rows]), whole[rows])
        assert np.array_equal(sampler.mean(X[rows], known), means[rows])
    assert np.array_equal(sampler.draw(X, known, noise[:, :1])[:, 0], whole[:, 0])


def test_bic_finds_the_number_of_modes():
    auto = GaussianMixture(max_components=4).fit(two_modes())
    assert sorted(auto.bic_) == [1, 2, 3, 4]
    assert len(auto.weights_) == min(auto.bic_, key=auto.bic_.get) == 2
    np.testing.assert_allclose(np.sort(auto.means_[:, 0]), [-3, 3], atol=5 / np.sqrt(300))


@pytest.mark.parametrize(("n_rows", "n_features"), [(8, 3), (20, 3), (30, 5), (60, 10), (100, 20)])
def test_few_rows_of_one_normal_get_one_component(n_rows, n_features):
    # Components around a few rows have the smallest BIC, and no spread but the regularisation's.
    X = np.random.default_rng(0).standard_normal((n_rows, n_features))
    sampler = GaussianMixture().fit(X)
    assert len(sampler.weights_) == 1
    assert all(
        n_rows / n_components >= 2 * (n_features + 1)
        for n_components in sampler.bic_
        if n_components > 1
    )


def test_a_component_of_too_few_rows_is_told():
    X = np.random.default_rng(0).standard_normal((12, 3))
    with pytest.warns(UserWarning, match=r"smallest of 5 components has about \d rows, .* needs 4"):
        GaussianMixture(n_components=5).fit(X)


def test_columns_of_few_values_are_modes_without_a_complaint():
    X = np.random.default_rng(0).integers(0, 2, (300, 2)).astype(float)
    sampler = GaussianMixture().fit(X)
    assert sorted(map(tuple, sampler.means_.round(6).tolist())) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    with pytest.raises(
        ValueError, match="n_components must be at most 4, the distinct rows; got 5"
    ):
        GaussianMixture(n_components=5).fit(X)


def test_a_fit_that_does_not_converge_is_told(monkeypatch):
    fit = sklearn.mixture.GaussianMixture.fit
    monkeypatch.setattr(
        sklearn.mixture.GaussianMixture, "fit", lambda self, X: fit(self.set_params(max_iter=1), X)
    )
    with pytest.warns(UserWarning, match="3 components did not converge in 1 steps"):
        GaussianMixture(n_components=3).fit(two_modes())


def test_blas_is_limited_with_other_threads_while_scikit_learn_fits(monkeypatch):
    """k-means lifts its own limit to what it found, which may be that of another thread."""
    fit, held = sklearn.mixture.GaussianMixture.fit, []

    def watched(self, X, y=None):
        held.append(pools._pools._n_inside)
        return fit(self, X, y)

    monkeypatch.setattr(sklearn.mixture.GaussianMixture, "fit", watched)
    GaussianMixture(n_components=2).fit(np.random.default_rng(0).normal(size=(60, 2)))
    assert held == [1]
    assert pools._pools._n_inside == 0


def test_one_component_is_the_gaussian_sampler():
    X = two_modes()
    one = GaussianMixture(n_components=1).fit(X)
    gaussian = Gaussian.from_moments(one.means_[0], one.covariances_[0])
    noise, known = np.random.default_rng(0).random((20, 5, 3)), np.array([False, True, False])
    np.testing.assert_allclose(
        one.draw(X[:20], known, noise), gaussian.draw(X[:20], known, noise), atol=1e-5
    )
    np.testing.assert_allclose(one.mean(X[:20], known), gaussian.mean(X[:20], known))


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
def test_all_types_of_covariances_become_full_ones(kind):
    X = two_modes()
    fitted = GaussianMixture(n_components=2, covariance_type=kind).fit(X)
    assert fitted.covariances_.shape == (2, 3, 3)
    # Of each mode alone the variances are 1, with a standard error of sqrt(2 / 300).
    variances = np.diagonal(fitted.covariances_, axis1=1, axis2=2)
    np.testing.assert_allclose(variances, 1, atol=5 * np.sqrt(2 / 300))
    if kind in ("diag", "spherical"):
        assert (fitted.covariances_[:, ~np.eye(3, dtype=bool)] == 0).all()


def test_one_known_feature_tells_the_mode(sampler):
    noise = np.random.default_rng(1).random((2, 200, 3))
    X, known = np.array([[3.0, 0, 0], [-3.0, 0, 0]]), np.array([True, False, False])
    drawn = sampler.draw(X, known, noise)
    assert (drawn[0, :, 1:] > -1.5).all()
    assert (drawn[1, :, 1:] < 1.5).all()


@pytest.mark.parametrize("far", [1e6, -1e80, 1e160, 1e300, -1.7e308])
def test_a_row_far_from_all_components_still_has_probabilities(sampler, far):
    X, known = np.array([[far, 0.0, 0.0]]), np.array([True, False, False])
    shares = sampler.responsibilities(X, known)
    assert shares.sum() == pytest.approx(1)
    # That of the widest one decides.
    assert shares.argmax() == sampler.covariances_[:, 0, 0].argmax()
    assert np.isfinite(sampler.draw(X, known, np.full((1, 1, 3), 0.5))).all()
    assert np.isfinite(sampler.mean(X, known)).all()


def test_the_same_component_is_chosen_in_every_coalition_that_says_the_same():
    sampler = GaussianMixture.from_parameters(
        [0.5, 0.5], [[-50.0, 0.0, 0.0], [50.0, 0.0, 0.0]], np.repeat(np.eye(3)[None], 2, axis=0)
    )
    noise = np.random.default_rng(0).random((1, 500, 3))
    X = np.zeros((1, 3))
    drawn = [
        sampler.draw(X, np.array(known), noise)[0, :, 0]
        for known in ([False] * 3, [False, True, False], [False, True, True])
    ]
    assert all(np.array_equal(one > 0, drawn[0] > 0) for one in drawn)
    assert 150 < (drawn[0] > 0).sum() < 350


def test_weights_count_by_their_share_of_the_sum():
    sampler = GaussianMixture.from_parameters([1.0, 3.0], [[-2.0], [2.0]], np.ones((2, 1, 1)))
    np.testing.assert_allclose(sampler.weights_, [0.25, 0.75])
    np.testing.assert_allclose(sampler.mean(np.zeros((1, 1)), np.array([False])), [[1.0]])


def singular(n_rows=300):
    X = two_modes(n_rows, 2)
    return pd.DataFrame(
        {"fixed": 7.0, "a": X[:, 0], "b": X[:, 1], "copy": X[:, 0], "sum": X[:, 0] - 2 * X[:, 1]}
    )


@pytest.mark.parametrize("known", [(), (0,), (1,), (3,), (4,), (1, 3), (3, 4)])
def test_relations_between_columns_hold_in_draws(known):
    with pytest.warns(
        UserWarning, match=r"\['fixed'\] are constant|\['copy', 'sum'\] follow"
    ) as told:
        sampler = GaussianMixture(n_components=2).fit(singular())
    assert len(told) == 2
    flags = np.isin(np.arange(5), known)
    X = singular().head(20)
    drawn = sampler.draw(X, flags, np.random.default_rng(0).random((20, 30, 5)))
    fixed, a, b, copy, total = np.moveaxis(drawn, 2, 0)
    assert (fixed == 7.0).all()
    np.testing.assert_allclose(copy, a, rtol=0, atol=1e-6)
    np.testing.assert_allclose(total, a - 2 * b, rtol=0, atol=1e-5)
    if set(known) & {1, 3}:
        likelier = sampler.responsibilities(X, flags).argmax(axis=1)
        sides = X["a"].to_numpy() > 0
        assert len(set(likelier[sides])) == len(set(likelier[~sides])) == 1
        assert len(set(likelier)) == 2


def test_constant_data_are_drawn_as_constants():
    X = np.full((10, 2), 3.0)
    with pytest.warns(UserWarning, match=r"\['X1', 'X2'\] are constant"):
        sampler = GaussianMixture().fit(X)
    drawn = sampler.draw(X, np.array([True, False]), np.full((10, 2, 2), 0.2))
    assert (drawn == 3.0).all()


def test_pickles_and_clones_and_is_reproducible():
    X = two_modes(200)
    sampler = GaussianMixture(n_components=2, random_state=3).fit(X)
    noise, known = np.random.default_rng(0).random((200, 2, 3)), np.array([True, False, False])
    expected = sampler.draw(X, known, noise)
    for other in (pickle.loads(pickle.dumps(sampler)), clone(sampler).fit(X)):
        assert np.array_equal(other.draw(X, known, noise), expected)
    tight = clone(sampler).set_params(max_bytes=1).fit(X)
    assert np.array_equal(tight.draw(X, known, noise), expected)


@pytest.mark.parametrize(
    ("options", "error", "told"),
    [
        ({"n_components": 0}, ValueError, "n_components must be at least 1"),
        ({"n_components": "bic"}, TypeError, "n_components must be an integer"),
        ({"n_components": 11}, ValueError, "n_components must be at most 10, the distinct rows"),
        ({"max_components": 0}, ValueError, "max_components must be at least 1"),
        ({"covariance_type": "round"}, ValueError, "covariance_type must be one of"),
        ({"random_state": "a"}, TypeError, "random_state must be an int"),
    ],
)
def test_bad_options_are_refused(options, error, told):
    with pytest.raises(error, match=told):
        GaussianMixture(**options).fit(two_modes(10))


def test_bad_parameters_are_refused():
    eye = np.eye(2)[None]
    with pytest.raises(ValueError, match="weights must be positive numbers"):
        GaussianMixture.from_parameters([0.0], [[0.0, 0.0]], eye)
    with pytest.raises(ValueError, match="weights must be positive numbers"):
        GaussianMixture.from_parameters([np.inf], [[0.0, 0.0]], eye)
    with pytest.raises(ValueError, match="means must be finite"):
        GaussianMixture.from_parameters([1.0], [[0.0, np.nan]], eye)
    with pytest.raises(ValueError, match=r"means must be of shape \(2, n_features\); got \(1, 2\)"):
        GaussianMixture.from_parameters([0.5, 0.5], [[0.0, 0.0]], eye)
    with pytest.raises(ValueError, match="positive semidefinite"):
        GaussianMixture.from_parameters([1.0], [[0.0, 0.0]], -eye)
    with pytest.raises(TypeError, match=r"continuous columns for GaussianMixture; got \['c'\]"):
        GaussianMixture().fit(pd.DataFrame({"c": ["x", "y"], "d": [1.0, 2.0]}))
