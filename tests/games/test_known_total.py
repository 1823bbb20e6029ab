"""What all features together lower the risk by, known apart from orderings."""

import numpy as np
import pytest

from dsage.estimate import as_stopping, run
from dsage.games import Grouped, LossGame
from dsage.games.difference import Difference
from dsage.models import as_model
from dsage.samplers import Gaussian

NAMES = tuple("abcdef")
WEIGHTS = np.array([2.0, 1.5, 0.4, 0.3, 0.2, 0.1])
COVARIANCE = np.full((6, 6), 0.4) + 0.6 * np.eye(6)


def linear_game(seed=0, scale=1.0, **options):
    """A linear-Gaussian problem; the model is passed as a function, so that it needs draws."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(200, 6)) @ np.linalg.cholesky(COVARIANCE).T
    y = X @ WEIGHTS + rng.normal(size=200)
    model = as_model(lambda rows: scale * (np.asarray(rows) @ WEIGHTS), "squared_error")
    sampler = Gaussian.from_moments(np.zeros(6), COVARIANCE, NAMES)
    return LossGame(model, sampler, X, y, draw_control="none", random_state=seed, **options), X, y


def exact_total(X, y, weights=None):
    return np.average(y**2 - (y - X @ WEIGHTS) ** 2, weights=weights)


def test_it_is_that_of_the_closed_form():
    game, X, y = linear_game()
    total, se = game.known_total()
    assert total == pytest.approx(exact_total(X, y), rel=1e-3)
    assert 0 < se < 1e-3 * total


def test_weights_count():
    weights = np.random.default_rng(1).uniform(0.5, 2.0, 200)
    game, X, y = linear_game(sample_weight=weights)
    assert game.known_total()[0] == pytest.approx(exact_total(X, y, weights), rel=1e-3)


def test_games_of_groups_and_differences_have_it():
    game, *_ = linear_game()
    other, *_ = linear_game(scale=0.5)
    assert Grouped(game, {"g": ["a", "b"]}).known_total() == game.known_total()
    expected = game.known_total()[0] - other.known_total()[0]
    assert Difference(game, other).known_total()[0] == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(4))
def test_values_of_a_run_that_leaves_features_out_add_up_to_it(seed):
    game, X, y = linear_game(seed)
    rule = as_stopping(tolerance=0.003)
    found = run(game, stopping=rule, exact="never", first_level="none", random_state=seed)
    assert found.n_evaluated + found.n_shared < 0.9 * found.n_orderings * 7 * 50
    assert found.values.sum() == pytest.approx(game.known_total()[0], rel=1e-12)
    assert found.values.sum() == pytest.approx(exact_total(X, y), rel=1e-3)
