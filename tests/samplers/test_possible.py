"""Draws are values that can occur, whatever the sampler's distribution."""

import numpy as np
import pandas as pd
import pytest

from dsage.samplers import BaseSampler, Gaussian, GaussianCopula, normal_scores


def whole_numbers(n_rows=300):
    """Numbers, whole numbers, codes and a one-hot class, all dependent."""
    rng = np.random.default_rng(0)
    a = rng.standard_normal(n_rows)
    species = np.digitize(a + rng.standard_normal(n_rows), [-0.5, 0.5])
    return pd.DataFrame(
        {
            "a": a,
            "count": rng.poisson(np.exp(1 + a)),
            "grade": np.digitize(a + rng.standard_normal(n_rows), [-1, 1]) * 5.0,
            **{f"is_{k}": (species == k).astype(int) for k in range(3)},
        }
    )


X = whole_numbers()
NOISE = np.random.default_rng(1).random((40, 6, X.shape[1]))


def coalitions(n_features, n_random=12):
    masks = np.random.default_rng(2).random((n_random, n_features)) < 0.5
    return [np.zeros(n_features, bool), np.ones(n_features, bool), *masks]


def assert_possible(draws):
    count, grade, species = draws[..., 1], draws[..., 2], draws[..., 3:]
    assert (count == np.rint(count)).all()
    assert count.min() >= X["count"].min()
    assert count.max() <= X["count"].max()
    assert np.isin(grade, [0.0, 5.0, 10.0]).all()
    assert np.isin(species, [0.0, 1.0]).all()
    assert (species.sum(axis=-1) == 1).all()


@pytest.mark.parametrize("kind", [Gaussian, GaussianCopula])
@pytest.mark.filterwarnings("ignore:The columns:UserWarning")
def test_parametric_draws_are_moved_to_possible_values(kind):
    sampler = kind().fit(X)
    for known in coalitions(6):
        draws = sampler.draw(X[:40], known, NOISE)
        assert_possible(draws)
        np.testing.assert_array_equal(
            draws[:, :, known], np.repeat(X.to_numpy()[:40, None, known], 6, axis=1)
        )


@pytest.mark.filterwarnings("ignore:The columns:UserWarning")
def test_draws_from_scores_are_moved_in_the_same_way():
    sampler = Gaussian().fit(X)
    for known in coalitions(6):
        scores = normal_scores(NOISE)
        np.testing.assert_array_equal(
            sampler.draw_scores(X[:40], known, scores), sampler.draw(X[:40], known, NOISE)
        )


@pytest.mark.filterwarnings("ignore:The columns:UserWarning")
def test_draws_along_an_ordering_are_moved_but_the_next_step_goes_on_from_those_that_are_not():
    sampler = Gaussian().fit(X)
    free = Gaussian.from_moments(sampler.mean_, sampler.covariance_, list(X.columns))
    order, scores = [4, 0, 2, 3, 1, 5], normal_scores(NOISE)
    steps = zip(
        sampler.ordering(order).prefixes(X[:40], scores),
        free.ordering(order).prefixes(X[:40].astype(float), scores),
        strict=True,
    )
    for (length, moved), (_, as_they_are) in steps:
        known = np.isin(np.arange(6), order[:length])
        assert_possible(moved)
        expected = as_they_are.copy()
        sampler.layout_.possible.snap(expected, known)
        np.testing.assert_allclose(moved, expected, rtol=0, atol=1e-12)
        assert not moved.flags.writeable


class Between(BaseSampler):
    """Draws that lie just above the middle of two codes."""

    def _fit(self, X):
        pass

    def _draw(self, X, known, noise):
        return np.full((*noise.shape[:2], int((~known).sum())), 0.5 + 2.0**-40)


def test_draws_are_moved_before_they_are_rounded_to_single_precision():
    codes = np.repeat([[0.0], [1.0]], 20, axis=0)
    draws = (
        Between(dtype=np.float32).fit(codes).draw(codes[:1], np.zeros(1, bool), NOISE[:1, :1, :1])
    )
    assert draws.dtype == np.float32
    assert draws.item() == 1.0


@pytest.mark.filterwarnings("ignore:The columns:UserWarning")
def test_the_mean_is_that_of_the_distribution():
    sampler = Gaussian().fit(X)
    nothing = np.zeros(6, bool)
    np.testing.assert_allclose(sampler.mean(X[:1], nothing)[0], X.mean())


@pytest.mark.filterwarnings("ignore:The columns:UserWarning")
def test_draws_that_have_to_be_moved_are_not_made_on_a_device():
    assert Gaussian().fit(X[["a"]].to_numpy()).draws_on_device
    sampler = Gaussian().fit(X)
    assert not sampler.draws_on_device
    with pytest.raises(TypeError, match="sampler must be one that draws on a device"):
        sampler.on_device("cpu", None)
