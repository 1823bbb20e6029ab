"""The game in which each draw has a loss of its own."""

import numpy as np
import pytest

from dsage.games.redrawn import Redrawn
from dsage.models import as_loss
from dsage.models.model import as_model
from dsage.samplers import Gaussian
from given import all_coalitions

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 2))
ROWS = np.array([5, 0, 17])
SAMPLER = Gaussian.from_moments([0.0, 1.0], [[1.0, 0.5], [0.5, 2.0]], ["a", "b"])


def curved(rows):
    rows = np.asarray(rows)
    return rows[:, 0] * rows[:, 1]


def make_game(loss="squared_error", predict=curved, y=None, classes=None, n_draws=6):
    y, loss = X[:, 0] if y is None else y, as_loss(loss)
    model = as_model(predict, loss, classes=classes, affine=predict is not curved or None)
    return Redrawn(model, SAMPLER, X, y, loss=loss, n_draws=n_draws, random_state=0), y


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error"])
def test_each_replicate_is_the_loss_of_one_draw(loss):
    game, y = make_game(loss)
    known = all_coalitions(2)
    # The mean predictions of replicates of a single draw are the predictions themselves.
    drawn = game._means(known[:3], ROWS, 0)
    risks = game.risks(known, ROWS)
    assert drawn.shape == (3, 3, 6)
    error = y[ROWS][None, :, None] - drawn
    expected = error**2 if loss == "squared_error" else np.abs(error)
    np.testing.assert_allclose(risks[:3], expected, rtol=1e-12)
    whole = game.risks(known[3:], ROWS)[0]
    at = y[ROWS] - curved(X[ROWS])
    truth = at**2 if loss == "squared_error" else np.abs(at)
    np.testing.assert_allclose(whole, np.repeat(truth[:, None], 6, axis=1), rtol=1e-12)


def test_the_risk_adds_the_variance_of_the_draws_also_if_the_model_is_affine():
    game, y = make_game(predict=lambda rows: 2.0 * np.asarray(rows)[:, 0], n_draws=500)
    found = game.mean_risks(np.array([[False, False]]))[0]
    # (y - 2 a)^2 with a standard normal, for given y: y^2 + 4; its variance is 16 y^2 + 32.
    expected = (y**2).mean() + 4.0
    se = np.sqrt((16 * y**2 + 32).mean() / (500 * 40))
    assert abs(found - expected) < 5 * se
    assert game.is_drawn


def test_losses_of_classes_know_the_classes():
    def chance(rows):
        p = 1 / (1 + np.exp(-np.asarray(rows)[:, 0]))
        return np.stack([1 - p, p], axis=1)

    labels = np.where(X[:, 1] > 0, "yes", "no")
    game, _ = make_game("brier", chance, y=labels, classes=["no", "yes"])
    risks = game.risks(np.array([[True, True]]), np.arange(40))[0, :, 0]
    p = chance(X)[:, 1]
    np.testing.assert_allclose(risks, ((labels == "yes") - p) ** 2, rtol=1e-9)


def test_it_has_neither_a_bias_of_draws_nor_a_first_level():
    game, _ = make_game("absolute_error")
    assert game.draw_bias() is None
    assert game.first_level() is None
    assert game.first_levels() == ()
