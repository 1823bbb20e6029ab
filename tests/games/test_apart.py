"""The risks of the outputs of a game, apart."""

import pickle

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from dsage.games import Grouped, LossGame
from dsage.samplers import Gaussian

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
Y = np.column_stack([X[:, 0], X[:, 1] + X[:, 2], RNG.normal(size=40)])
SAMPLER = Gaussian().fit(X)
EVERY = np.array([[bool(code >> bit & 1) for bit in range(3)] for code in range(8)])
ROWS = np.array([3, 1, 30, 7])
ORDERS = np.array([[2, 0, 1], [0, 1, 2]])
WEIGHTS = np.linspace(0.5, 1.5, 40)


def bent(rows):
    rows = np.asarray(rows)
    return np.column_stack([np.tanh(rows[:, 0]), rows[:, 1] * rows[:, 2], rows.sum(axis=1)])


def game_of(at=None, model=bent, **options):
    """The game of all outputs, or of one of them."""
    options = {"loss": "squared_error", "sample_weight": WEIGHTS, "random_state": 0} | options
    if at is None:
        return LossGame(model, SAMPLER, X, Y, **options)
    return LossGame(lambda rows: model(rows)[:, at], SAMPLER, X, Y[:, at], **options)


def split(risks, n_outputs=3):
    """Risks with an axis for the outputs before that of the replicates."""
    return risks.reshape(*risks.shape[:-1], n_outputs, -1) / n_outputs


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error", "pinball(0.8)"])
@pytest.mark.parametrize("n_replicates", [1, 2, 4])
def test_the_risks_of_an_output_are_those_of_a_game_of_its_own(loss, n_replicates):
    options = {"loss": loss, "n_draws": 4, "n_replicates": n_replicates}
    apart = game_of(**options).apart()
    assert (apart.n_outputs, apart.n_replicates) == (3, 3 * n_replicates)
    found = split(apart.risks(EVERY, ROWS, 2))
    for at in range(3):
        expected = game_of(at, **options).risks(EVERY, ROWS, 2)
        np.testing.assert_allclose(found[:, :, at], expected, rtol=1e-12)


def test_the_mean_of_the_pseudo_values_is_the_risk_of_the_sum():
    game = game_of()
    both = [each.risks(EVERY, ROWS).mean(axis=2) for each in (game, game.apart())]
    np.testing.assert_allclose(*both, rtol=1e-12)


def test_the_risks_along_orderings_are_apart_too():
    needed = np.ones((2, 4), dtype=bool)
    found = split(game_of().apart().path_risks(ORDERS, ROWS, 1, needed))
    for at in range(3):
        expected = game_of(at).path_risks(ORDERS, ROWS, 1, needed)
        np.testing.assert_allclose(found[:, :, :, at], expected, rtol=1e-12)


def test_an_affine_model_needs_no_draws():
    model = LinearRegression().fit(X, Y)
    apart = LossGame(model, SAMPLER, X, Y).apart()
    assert not apart.is_drawn
    assert apart.n_replicates == 3


def test_first_levels_are_those_of_the_outputs():
    game = game_of()
    levels = game.apart().first_levels()
    assert len(levels) == 3
    total = sum(level.mean_risks(EVERY) for level in levels)
    np.testing.assert_allclose(total, game.first_level().mean_risks(EVERY), rtol=1e-12)


def test_groups_are_kept():
    grouped = Grouped(game_of(), {"pair": ["X1", "X2"]})
    apart = grouped.apart()
    known = np.array([[True, False], [False, True]])
    members = np.array([[True, True, False], [False, False, True]])
    np.testing.assert_array_equal(apart.risks(known, ROWS), game_of().apart().risks(members, ROWS))
    assert apart.feature_names == ("pair", "X3")
    assert [level.feature_names for level in apart.first_levels()] == [("pair", "X3")] * 3


def test_one_output_is_not_taken_apart():
    assert game_of(0).apart() is None
    assert Grouped(game_of(0), {"pair": ["X1", "X2"]}).apart() is None
    labels = (Y[:, 0] > 0).astype(int)
    probabilities = lambda rows: np.full((len(rows), 2), 0.5)  # noqa: E731
    assert LossGame(probabilities, SAMPLER, X, labels, loss="brier").apart() is None
    own = LossGame(bent, SAMPLER, X, Y, loss=lambda y, p: ((y - p) ** 2).sum(axis=1))
    assert own.apart() is None


def test_it_can_be_pickled():
    model = LinearRegression().fit(X, Y)
    apart = LossGame(model, SAMPLER, X, Y).apart()
    again = pickle.loads(pickle.dumps(apart))
    np.testing.assert_array_equal(again.risks(EVERY, ROWS), apart.risks(EVERY, ROWS))
