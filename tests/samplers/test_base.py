import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from dsage.samplers import BaseSampler, Gaussian, Marginal, check_sampler
from dsage.samplers.base import check_coalition, check_noise


class Recorder(BaseSampler):
    """Returns its noise and keeps what it was called with."""

    def _fit(self, X):
        self.calls_ = []

    def _draw(self, X, known, noise):
        self.calls_.append((X.copy(), known, noise.shape))
        return noise[:, :, ~known]


class Averager(Recorder):
    def _mean(self, X, known):
        return np.full((len(X), (~known).sum()), 7.0)


FRAME = pd.DataFrame({"a": [1.5, 2.0, 3.0], "b": ["x", "y", "x"], "c": [4.5, 5.5, 6.5]})


def uniforms(n_rows, n_draws, n_features):
    return np.random.default_rng(0).uniform(0.01, 0.99, (n_rows, n_draws, n_features))


def test_the_subclass_draws_unknown_features_only_and_sees_zeros_there():
    sampler = Recorder().fit(FRAME)
    known = np.array([False, True, False])
    noise = uniforms(3, 2, 3)
    draws = sampler.draw(FRAME, known, noise)
    np.testing.assert_array_equal(draws[:, :, ~known], noise[:, :, ~known])
    np.testing.assert_array_equal(draws[:, 0, 1], [0, 1, 0])
    ((X, passed, shape),) = sampler.calls_
    np.testing.assert_array_equal(X, [[0, 0, 0], [0, 1, 0], [0, 0, 0]])
    np.testing.assert_array_equal(passed, known)
    assert shape == (3, 2, 3)


def test_nothing_is_drawn_when_all_is_known():
    sampler = Recorder().fit(FRAME)
    draws = sampler.draw(FRAME, np.ones(3, bool), uniforms(3, 2, 3))
    assert sampler.calls_ == []
    np.testing.assert_array_equal(draws[:, 1], sampler.layout_.encode(FRAME))


@given(st.integers(1, 30), st.integers(1, 4), st.integers(1, 20_000))
def test_chunks_stay_within_the_budget_and_cover_all_rows(n_rows, n_draws, max_bytes):
    X = np.arange(2.0 * n_rows).reshape(n_rows, 2)
    sampler = Recorder(max_bytes=max_bytes).fit(X)
    known = np.array([True, False])
    sampler.draw(X, known, uniforms(n_rows, n_draws, 2))
    sizes = [len(rows) for rows, _, _ in sampler.calls_]
    assert sum(sizes) == n_rows
    assert max(sizes) == 1 or max(sizes) * 4 * 8 * n_draws * 2 <= max_bytes
    np.testing.assert_array_equal(
        np.concatenate([rows[:, 0] for rows, _, _ in sampler.calls_]), X[:, 0]
    )


def test_fitted_attributes_describe_the_features():
    sampler = Recorder(discrete=["c"]).fit(FRAME)
    assert sampler.feature_names_ == ("a", "b", "c")
    assert sampler.n_features_ == 3
    assert sampler.n_categories_.tolist() == [0, 2, 3]


def test_a_mean_exists_only_where_it_is_implemented():
    assert not Recorder().has_mean
    with pytest.raises(TypeError, match="one that knows conditional means; got 'Recorder'"):
        Recorder().fit(FRAME).mean(FRAME, np.ones(3, bool))
    sampler = Averager().fit(FRAME)
    assert sampler.has_mean
    means = sampler.mean(FRAME, np.array([True, True, False]))
    np.testing.assert_array_equal(means, [[1.5, 0, 7], [2, 1, 7], [3, 0, 7]])
    with pytest.raises(ValueError, match=r"got \['b'\]\. Classes have no mean"):
        sampler.mean(FRAME, np.array([True, False, False]))
    np.testing.assert_array_equal(
        sampler.mean(FRAME, np.ones(3, bool)), sampler.layout_.encode(FRAME)
    )


def test_options_are_checked_when_fitting():
    with pytest.raises(ValueError, match="dtype must be float64 or float32"):
        Recorder(dtype=np.int64).fit(FRAME)
    with pytest.raises(TypeError, match="max_bytes must be an integer"):
        Recorder(max_bytes=1e6).fit(FRAME)
    with pytest.raises(ValueError, match="discrete must be one of the columns"):
        Recorder(discrete="z").fit(FRAME)
    with pytest.raises(ValueError, match="X must be of at least one column"):
        Recorder().fit(np.zeros((3, 0)))


def test_options_survive_cloning():
    sampler = Recorder(discrete=("c",), dtype=np.float32, max_bytes=10)
    assert clone(sampler).get_params() == {
        "discrete": ("c",),
        "kinds": None,
        "groups": None,
        "dtype": np.float32,
        "max_bytes": 10,
    }


class Own:
    """A sampler of its own kind, without a base class."""

    def fit(self, X):
        self.feature_names_ = ["a", "b"]
        return self

    def draw(self, X, known, noise):
        return noise


class OwnWithMean(Own):
    def mean(self, X, known):
        return np.zeros(X.shape)


def test_a_draw_of_its_own_is_used_for_rows_that_were_checked_before():
    class Shifted(Gaussian):
        def draw(self, X, known, noise):
            return super().draw(X, known, noise) + 1.0

    X = np.random.default_rng(0).standard_normal((30, 2))
    sampler, known, noise = Shifted().fit(X), np.array([True, False]), np.full((30, 2, 2), 0.4)
    np.testing.assert_array_equal(sampler.draw_rows(X, known, noise), sampler.draw(X, known, noise))
    adapted = check_sampler(Own().fit(X))
    np.testing.assert_array_equal(adapted.draw_rows(X, known, noise), adapted.draw(X, known, noise))


def test_any_object_with_fit_and_draw_is_a_sampler():
    own = OwnWithMean()
    sampler = check_sampler(own)
    assert (sampler.name, sampler.is_fitted, sampler.feature_names_) == ("OwnWithMean", False, None)
    fitted, X, noise = sampler.clone().fit(np.eye(2)), np.eye(2), uniforms(2, 1, 2)
    assert not hasattr(own, "feature_names_")
    assert fitted.is_fitted
    assert fitted.feature_names_ == ("a", "b")
    assert fitted.layout_ is None
    assert fitted.draw(X, np.zeros(2, bool), noise) is noise
    np.testing.assert_array_equal(fitted.mean(X, np.zeros(2, bool)), np.zeros((2, 2)))
    assert sampler.has_mean
    assert not check_sampler(Own()).has_mean
    assert check_sampler(sampler) is sampler


def test_what_is_not_a_sampler_is_refused():
    with pytest.raises(TypeError, match=r"sampler must be an object with fit and draw; got 3"):
        check_sampler(3)
    with pytest.raises(TypeError, match=r"Make an instance: Marginal\(\)"):
        check_sampler(Marginal)


def test_coalitions_are_checked_by_width_and_type():
    names = ("a", "b")
    assert check_coalition([True, False], names).tolist() == [True, False]
    with pytest.raises(
        ValueError, match=r"known must be of shape \(2,\); got \(1, 2\).*features a, b"
    ):
        check_coalition([[True, False]], names)
    with pytest.raises(TypeError, match="known must be a boolean array; got dtype"):
        check_coalition([0, 1], names)


@pytest.mark.parametrize("bad", [0.0, 1.0, -0.5, np.nan, np.inf])
def test_noise_outside_the_open_interval_is_refused(bad):
    noise = np.full((2, 2, 2), 0.5)
    noise[1, 0, 1] = bad
    with pytest.raises(ValueError, match=r"noise must be strictly between 0 and 1; got "):
        check_noise(noise, 2, 2)


@pytest.mark.parametrize("shape", [(2, 2), (1, 2, 2), (2, 2, 1), (2, 0, 2)])
def test_noise_of_another_shape_is_refused(shape):
    with pytest.raises(
        ValueError, match=r"noise must be of (shape \(2, n_draws, 2\)|at least one)"
    ):
        check_noise(np.full(shape, 0.5), 2, 2)


@pytest.mark.parametrize("factor", [1e160, 1.7e308, 1e-160, 5e-324])
def test_numbers_whose_squares_are_no_floats_are_refused_by_name(factor):
    frame = pd.DataFrame({"good": [0.0, 1.0, 2.0], "odd": [-factor, factor, factor]})
    with pytest.raises(
        ValueError, match=r"stay below 1e\+150 and vary .*; got \['odd'\]. Use other"
    ):
        Marginal().fit(frame)


def test_sizes_of_constants_and_classes_do_not_matter():
    frame = pd.DataFrame({"constant": [1e-300] * 2, "class": [1e300, 1.0], "zero": [0.0, 0.0]})
    assert Marginal(discrete="class").fit(frame).n_features_ == 3


def test_a_fit_that_fails_leaves_the_sampler_as_it_was():
    sampler, X = Gaussian(), np.random.default_rng(0).normal(size=(20, 2))
    with pytest.raises(ValueError, match="at least 2 rows"):
        sampler.fit(X[:1])
    with pytest.raises(NotFittedError):
        sampler.draw(X, np.array([True, False]), np.full((20, 1, 2), 0.5))
    before = sampler.fit(X).draw(X, np.array([True, False]), np.full((20, 1, 2), 0.5))
    with pytest.raises(ValueError, match="at least 2 rows"):
        sampler.fit(np.zeros((1, 3)))
    after = sampler.draw(X, np.array([True, False]), np.full((20, 1, 2), 0.5))
    np.testing.assert_array_equal(after, before)


@pytest.mark.parametrize("dtype", ["junk", "f2", int, 3.5])
def test_types_that_are_neither_of_the_two_are_refused(dtype):
    with pytest.raises(ValueError, match=r"dtype must be float64 or float32; got .*NumPy"):
        Marginal(dtype=dtype).fit(np.eye(3))
