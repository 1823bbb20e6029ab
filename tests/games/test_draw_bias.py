"""The bias of risks from few draws, as a game."""

import numpy as np
import pytest

from dsage.games import LossGame
from dsage.games.draw_bias import DrawBias, share_left
from dsage.models import as_loss
from dsage.samplers import Gaussian
from given import all_coalitions

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 3))
SAMPLER = Gaussian.from_moments(np.zeros(3), np.eye(3), list("abc"))
EVERY, ROWS = all_coalitions(3), np.array([4, 9, 2, 25])


def bent(rows):
    rows = np.asarray(rows)
    return np.abs(rows[:, 0]) + rows[:, 1] * rows[:, 2]


def two(rows):
    return np.stack([bent(rows), np.asarray(rows)[:, 2] ** 2], axis=1)


def game_of(predict=bent, loss="absolute_error", **options):
    options = {"random_state": 0, "n_draws": 6, "n_replicates": 3} | options
    return LossGame(predict, SAMPLER, X, predict(X), loss=loss, **options)


@pytest.mark.parametrize("n_replicates", [2, 3, 8])
@pytest.mark.parametrize("is_corrected", [False, True])
def test_the_share_that_is_left_is_that_of_a_bias_like_the_root_of_the_draws(
    n_replicates, is_corrected
):
    def bias(n):
        return 1.7 / np.sqrt(n)

    def jackknifed(n):
        return n * bias(n) - (n - 1) * bias(n - 1)

    left = jackknifed(n_replicates) if is_corrected else bias(n_replicates)
    seen = bias(1) - bias(n_replicates)
    found = share_left(n_replicates, is_corrected=is_corrected)
    np.testing.assert_allclose(found, left / seen, rtol=1e-12)


def test_biases_come_from_the_difference_of_one_and_all_replicates():
    game = game_of()
    bias, plain = game.draw_bias(), as_loss("absolute_error")
    y = bent(X)[ROWS]
    means = game._means(EVERY[:7], ROWS, 0)
    whole = plain.many(y, means.mean(axis=2))
    each = np.stack([plain.many(y, means[:, :, g]) for g in range(3)], axis=2)
    expected = share_left(3, is_corrected=True) * (each - whole[:, :, None])
    np.testing.assert_allclose(bias.risks(EVERY[:7], ROWS), expected, atol=1e-12)
    assert bias.n_replicates == 3
    assert bias.risks(EVERY[7:], ROWS).tolist() == np.zeros((1, 4, 3)).tolist()
    assert bias.apart() is None


def test_prefixes_of_orderings_have_biases_too():
    game = game_of()
    bias = game.draw_bias()
    assert bias.has_paths == game.has_paths
    orders, needed = np.array([[2, 0, 1]]), np.ones((1, 4), dtype=bool)
    found = bias.path_risks(orders, ROWS, 0, needed)
    assert found.shape == (1, 4, 4, 3)
    assert (found[:, 3] == 0).all()
    assert (found[:, :3] != 0).any(axis=(0, 2, 3)).all()


def test_losses_with_jumps_are_not_corrected_by_the_jackknife():
    def jump(y, predicted):
        return (np.abs(y - predicted) > 0.5).astype(float)

    game = game_of(loss=as_loss(jump, curve="jump"))
    bias = game.draw_bias()
    assert isinstance(bias, DrawBias)
    means = game._means(EVERY[:7], ROWS, 0)
    y = bent(X)[ROWS][None, :, None]
    differences = jump(y, means) - jump(y, means.mean(axis=2, keepdims=True))
    expected = share_left(3, is_corrected=False) * differences
    np.testing.assert_allclose(bias.risks(EVERY[:7], ROWS), expected, atol=1e-12)
    assert expected.any()


def test_outputs_apart_have_their_own_biases_which_add_up():
    game = game_of(two)
    bias = game.draw_bias()
    apart = bias.apart()
    assert (apart.n_outputs, apart.n_replicates) == (2, 6)
    assert apart.apart() is None
    means = game._means(EVERY[:7], ROWS, 0)
    y = two(X)[ROWS][None, :, None]
    differences = np.abs(y - means) - np.abs(y - means.mean(axis=2, keepdims=True))
    # Replicates of the first output, then of the second, each doubled: the mean is that of the sum.
    expected = np.moveaxis(2 * share_left(3, is_corrected=True) * differences, 3, 2)
    found = apart.risks(EVERY[:7], ROWS).reshape(7, 4, 2, 3)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    whole = bias.risks(EVERY[:7], ROWS)
    np.testing.assert_allclose(found.mean(axis=2), whole, atol=1e-12)
    assert (apart.risks(EVERY[7:], ROWS) == 0).all()


def test_a_single_replicate_tells_nothing_about_the_bias():
    assert game_of(n_replicates=1).draw_bias() is None
    assert game_of(n_replicates=2).draw_bias().n_replicates == 2
    assert game_of(loss="squared_error").draw_bias() is None
