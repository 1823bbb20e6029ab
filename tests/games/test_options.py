import numpy as np
import pytest

from dsage.games import GameOptions, LossGame, OutputGame
from dsage.games.options import check_weights
from dsage.samplers import Gaussian

X = np.random.default_rng(0).normal(size=(20, 2))
SAMPLER = Gaussian().fit(X)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"n_draws": 0}, "n_draws must be at least 1"),
        ({"n_replicates": 0}, "n_replicates must be at least 1"),
        ({"n_draws": 9, "n_replicates": 2}, "n_draws must be a multiple of n_replicates, 2; got 9"),
        ({"noise": "sobl"}, "noise must be .* Did you mean 'sobol'"),
        ({"max_bytes": 0}, "max_bytes must be at least 1"),
    ],
)
def test_options_are_checked_without_a_game(options, text):
    with pytest.raises(ValueError, match=text):
        GameOptions(**options)


def test_unknown_options_of_games_are_refused_by_name():
    text = "each option must be one of the options of a game; got 'n_draw'. Did you mean 'n_draws'"
    with pytest.raises(ValueError, match=text):
        LossGame(np.sum, SAMPLER, X, X[:, 0], n_draw=8)
    with pytest.raises(ValueError, match=text):
        OutputGame(np.sum, SAMPLER, X, n_draw=8)


def test_weights_are_refused_where_every_row_is_explained_on_its_own():
    with pytest.raises(ValueError, match="sample_weight must be left out"):
        OutputGame(lambda rows: rows[:, 0], SAMPLER, X, sample_weight=np.ones(20))


def test_weights_have_mean_one_and_are_equal_by_default():
    np.testing.assert_array_equal(check_weights(None, 3), 1.0)
    np.testing.assert_allclose(check_weights([1, 2, 3], 3), [0.5, 1.0, 1.5])


@pytest.mark.parametrize(
    ("weights", "text"),
    [
        ([1.0, 2.0], r"of shape \(3,\); got \(2,\)"),
        ([[1.0], [1.0], [1.0]], r"of shape \(3,\)"),
        ([1.0, -2.0, 1.0], "not negative, not all 0; got -2.0"),
        ([1.0, np.nan, 1.0], "finite, not negative, not all 0; got nan"),
        ([1.0, np.inf, 1.0], "got inf"),
        ([0.0, 0.0, 0.0], "not all 0; got 0.0"),
    ],
)
def test_impossible_weights_are_refused(weights, text):
    with pytest.raises(ValueError, match=f"sample_weight must be .*{text}"):
        GameOptions(sample_weight=weights).row_weights(3)
