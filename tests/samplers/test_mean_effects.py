"""Expectations of affine functions, as functions of the known features."""

import numpy as np
import pytest

from dsage.games import LossGame
from dsage.models.model import as_model
from dsage.samplers import Gaussian, GaussianCopula, Marginal

N_FEATURES = 7


def rows(*, is_singular):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, N_FEATURES)) @ rng.normal(size=(N_FEATURES, N_FEATURES)) + 3.0
    if is_singular:
        X[:, 3] = 2.0 * X[:, 1]
        X[:, 5] = 1.0
    return X


@pytest.mark.filterwarnings("ignore::dsage._check.DsageWarning")
@pytest.mark.parametrize("is_singular", [False, True])
@pytest.mark.parametrize("kind", [Gaussian, Marginal])
def test_effects_give_the_same_expectations_as_means(kind, is_singular):
    X, rng = rows(is_singular=is_singular), np.random.default_rng(1)
    sampler, weights = kind().fit(X), rng.normal(size=(N_FEATURES, 2))
    for size in range(N_FEATURES + 1):
        known = np.isin(np.arange(N_FEATURES), rng.permutation(N_FEATURES)[:size])
        intercept, effects = sampler.mean_effects(known, weights)
        expected = sampler.mean(X, known) @ weights
        np.testing.assert_allclose(intercept + X @ effects, expected, rtol=1e-7, atol=1e-7)
        assert not effects[~known].any()


class Shifted(Gaussian):
    """A sampler with means of its own."""

    def _mean(self, X, known):
        return super()._mean(X, known) + 1.0


def test_samplers_without_such_effects_say_so():
    X, known = rows(is_singular=False), np.arange(N_FEATURES) < 2
    weights = np.ones((N_FEATURES, 1))
    assert Shifted().fit(X).mean_effects(known, weights) is None
    assert GaussianCopula().fit(X).mean_effects(known, weights) is None


def test_games_of_affine_models_use_the_means_that_a_sampler_has():
    X = rows(is_singular=False)
    y = X @ np.arange(N_FEATURES) + np.random.default_rng(2).normal(size=len(X))
    model = as_model(lambda X: X @ np.arange(7.0), "squared_error", affine=True)
    known = np.tril(np.ones((N_FEATURES, N_FEATURES), dtype=bool))
    found = {
        kind: LossGame(model, kind().fit(X), X, y, loss="squared_error").risks(known, np.arange(20))
        for kind in (Gaussian, Shifted)
    }
    gap = np.abs(found[Gaussian] - found[Shifted]).max(axis=(1, 2))
    # The last coalition is the full one, where nothing is expected.
    assert (gap[:-1] > 1e-6).all()
    assert gap[-1] == 0.0
