"""Mean probabilities over draws of normal scores, one draw after the other."""

import numpy as np
import pytest
from scipy.special import softmax

from dsage._random import Streams
from dsage.games.score_draws import ScoreDraws, _root
from dsage.samplers.conditioning import exact_factor, grid_scores
from dsage.samplers.noise import Noise
from dsage.samplers.sums import SumLaw

RNG = np.random.default_rng(0)
MIXING = RNG.normal(size=(3, 3))
COVARIANCES = {
    "regular": MIXING @ MIXING.T,
    "on many scales": np.diag([1e-6, 1.0, 1e6]) @ MIXING @ MIXING.T @ np.diag([1e-6, 1.0, 1e6]),
    "singular": np.outer([1.0, -2.0, 0.5], [1.0, -2.0, 0.5]),
    "with a constant": np.diag([2.0, 0.0, 1.0]),
    "of constants": np.zeros((3, 3)),
}


@pytest.mark.parametrize("kind", COVARIANCES)
def test_a_root_is_a_lower_factor(kind):
    covariance = COVARIANCES[kind]
    root = _root(covariance)
    scale = np.sqrt(np.outer(covariance.diagonal(), covariance.diagonal()))
    assert (np.abs(root @ root.T - covariance) <= 1e-9 * scale).all()
    assert not np.triu(root, 1).any()


@pytest.mark.parametrize("n_replicates", [1, 2, 4])
@pytest.mark.parametrize("n_rows", [1, 5])
def test_means_are_those_of_the_softmax_of_every_draw(monkeypatch, n_rows, n_replicates):
    # Few pairs at a time, so that rows are treated in several portions.
    monkeypatch.setattr("dsage.games.score_draws._PAIRS_AT_ONCE", 20)
    means = [RNG.normal(size=(n_rows, 3)) for _ in range(2)]
    shares = [RNG.uniform(0.2, 0.8, size=n_rows)]
    shares.append(1 - shares[0])
    factors = [COVARIANCES["regular"], COVARIANCES["singular"]]
    steps = grid_scores(RNG.random((n_rows, 8, 3)))
    law = SumLaw(np.array(shares), np.array(means), np.array(factors))
    found = ScoreDraws(3).means(law, steps, n_replicates)
    assert found.shape == (n_rows, n_replicates, 4)
    expected = np.zeros((n_rows, 8, 4))
    for share, mean, covariance in zip(shares, means, factors, strict=True):
        factor = exact_factor(_root(covariance))
        for row in range(n_rows):
            for draw in range(8):
                scores = np.append(0.0, mean[row] + factor.T @ steps[row, draw])
                expected[row, draw] += share[row] * softmax(scores)
    sets = expected.reshape(n_rows, n_replicates, -1, 4).mean(axis=2)
    np.testing.assert_allclose(found, sets, rtol=1e-10)


@pytest.mark.parametrize(("n_draws", "n_replicates", "n_classes"), [(2, 3, 4), (8, 1, 3)])
def test_there_are_four_draws_of_scores_for_each_draw_of_features(n_draws, n_replicates, n_classes):
    noise = Noise(Streams(0), 9, n_replicates=n_replicates, n_draws=n_draws)
    draws = ScoreDraws(n_classes - 1)
    steps = draws.steps(np.arange(5), 0, noise)
    assert steps.shape == (5, 4 * n_draws * n_replicates, n_classes - 1)
    # Four copies of the scores of each draw.
    assert draws.bytes_per_row(noise) == 8 * 4 * n_classes * 4 * n_draws * n_replicates
