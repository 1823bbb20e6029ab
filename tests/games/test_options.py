import numpy as np
import pytest

from dsage.games import GameOptions, LossGame, OutputGame
from dsage.games.options import check_weights
from dsage.models import as_loss
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


def test_the_number_of_draws_is_what_the_loss_needs_unless_it_is_given():
    y = X[:, 0]
    labels = (y > 0).astype(int)

    def model(rows):
        return 1 / (1 + np.exp(-rows.sum(axis=1)))

    def n_draws(loss, **options):
        noise = LossGame(model, SAMPLER, X, labels, loss=loss, **options).noise
        return noise.n_replicates * noise.n_draws

    expected = {"squared_error": 8, "brier": 8, "linear": 8, "cross_entropy": 16,
                "absolute_error": 32, "pinball(0.9)": 32, "zero_one": 128}  # fmt: skip
    assert {loss: n_draws(loss) for loss in expected} == expected
    assert n_draws(lambda y, p: (y - p) ** 4) == 32
    assert n_draws(as_loss(lambda y, p: (y - p) ** 4, curve="smooth")) == 16
    assert n_draws("cross_entropy", n_draws=6) == 6
    assert n_draws("squared_error", n_replicates=3) == 9
    assert OutputGame(model, SAMPLER, X).noise.n_draws == 4


def test_options_know_their_draws_only_when_they_are_decided():
    with pytest.raises(ValueError, match="n_draws must be known; got None"):
        GameOptions().n_draws_each  # noqa: B018
