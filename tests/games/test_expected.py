"""What a game asks its model for: how much, of which rows, and in which portions."""

import pickle

import numpy as np
import pytest

from dsage.games import LossGame, OutputGame
from dsage.games.model_game import ModelGame
from dsage.games.options import GameOptions
from dsage.models import as_model
from dsage.samplers import Gaussian, Marginal

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 3)) @ RNG.normal(size=(3, 3))
GAUSSIAN, MARGINAL = Gaussian().fit(X), Marginal().fit(X[:20])
KNOWN = np.array([[False] * 3, [True, False, True], [True] * 3])


def bent(rows):
    rows = np.asarray(rows)
    return np.abs(rows[:, 0]) + rows[:, 1] * rows[:, 2]


def two(rows):
    return np.stack([bent(rows), np.asarray(rows)[:, 0]], axis=1)


def game_of(predict=bent, sampler=GAUSSIAN, **options):
    given = {"random_state": 0, "draw_control": "none", "n_draws": 6, "n_replicates": 3} | options
    return LossGame(predict, sampler, X, predict(X), loss="squared_error", **given)


@pytest.mark.parametrize("sampler", [GAUSSIAN, MARGINAL], ids=["gaussian", "marginal"])
@pytest.mark.parametrize("max_bytes", [1, 2000, 2**28])
def test_every_prediction_counts_once(sampler, max_bytes):
    asked = []

    def predict(rows):
        asked.append(len(rows))
        return bent(rows)

    game = game_of(predict, sampler, max_bytes=max_bytes)
    assert game.n_predicted == 30
    before = sum(asked)
    game.risks(KNOWN, np.arange(7), 2)
    # With all features known nothing is predicted again.
    assert sum(asked) - before == game.n_predicted - 30 == 2 * 7 * 6
    if game.has_paths:
        needed = np.array([[True, False, True, True]])
        game.path_risks(np.array([[2, 0, 1]]), np.arange(7), 2, needed)
        assert sum(asked) - before == game.n_predicted - 30 == 4 * 7 * 6


def test_draws_fit_the_memory_that_they_may_take():
    sizes = []

    def predict(rows):
        sizes.append(len(rows))
        return bent(rows)

    # A row has six draws of three features, six copies of each, and two of the prediction.
    n_bytes = 8 * 6 * (6 * 3 + 2)
    for n_pairs in (1, 4, 20, 60):
        for more in (0, n_bytes - 1):
            game = game_of(predict, max_bytes=n_pairs * n_bytes + more)
            sizes.clear()
            game.risks(KNOWN[[0, 1, 1]], np.arange(30))
            assert max(sizes) == 6 * min(n_pairs, 30) * max(1, min(n_pairs // 30, 3))
    both = game_of(two, max_bytes=8 * 6 * (6 * 3 + 4) * 5)
    assert both._bytes_per_row() == 8 * 6 * (6 * 3 + 4)


def test_a_copy_has_predicted_nothing_but_its_rows():
    game = OutputGame(CALLED, GAUSSIAN, X, random_state=0, draw_control="none")
    game.risks(KNOWN, np.arange(5))
    assert game.n_predicted > 30
    assert pickle.loads(pickle.dumps(game)).n_predicted == 30


CALLED = as_model(bent, "squared_error")


@pytest.mark.parametrize("predict", [bent, two])
def test_rows_are_drawn_with_no_feature_known(predict):
    game = game_of(predict)
    rows, predicted = game.draw_unknown(20_000)
    np.testing.assert_allclose(predicted, predict(rows))
    assert np.abs(rows.mean(axis=0) - X.mean(axis=0)).max() < 0.05 * X.std()
    np.testing.assert_allclose(np.cov(rows.T), np.cov(X.T), rtol=0.1, atol=0.05)
    again, _ = game.draw_unknown(20_000)
    np.testing.assert_array_equal(rows, again)
    # The prediction with nothing known, from many draws.
    np.testing.assert_allclose(game._mean(), predict(game.draw_unknown(4096)[0]).mean(axis=0))


def test_mixed_rows_have_features_of_two_rows():
    game = game_of(sampler=MARGINAL)
    background = X[:20] + 100.0
    mixed, predicted = game.mix_rows(background, 3000)
    assert mixed.shape == (3000, 3)
    np.testing.assert_allclose(predicted, bent(mixed))
    own = (mixed[:, None] == X).argmax(axis=1)
    other = (mixed[:, None] == background).argmax(axis=1)
    is_other = mixed > 50
    for row in range(50):
        # All features of one kind are of the same row.
        assert len(set(own[row][~is_other[row]])) <= 1
        assert len(set(other[row][is_other[row]])) <= 1
    # How many are known is uniform: none, one, two and three features are equally frequent.
    counts = np.bincount((~is_other).sum(axis=1), minlength=4) / 3000
    np.testing.assert_allclose(counts, 0.25, atol=4.5 * np.sqrt(0.25 * 0.75 / 3000))
    assert len(np.unique(own[~is_other])) == 30
    assert len(np.unique(other[is_other])) == 20


class Plain(ModelGame):
    """The mean prediction itself, for a model and its options."""

    def _to_risks(self, means, rows):
        return means

    @property
    def _full(self):
        return self.predictions


def test_noise_is_subtracted_only_by_games_that_say_how():
    options = GameOptions(random_state=0).with_draws(4)
    game = Plain(CALLED, GAUSSIAN, X, options)
    assert not game.corrects_means
    assert game.outputs_of(np.arange(3)) is None
    assert (game._find_control(), game._find_row_control()) == (None, None)
    marginal = Plain(CALLED, MARGINAL, X, options)
    assert marginal._find_row_control() is None
    means = game.risks(KNOWN, np.arange(30))
    np.testing.assert_allclose(means[2], np.repeat(bent(X)[:, None], 2, axis=1))
