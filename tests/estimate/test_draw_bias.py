"""What few draws leave of the bias of losses with kinks or jumps is part of the error."""

import numpy as np
import pytest

from dsage.estimate import as_stopping, compare_games, run
from dsage.games import Difference, Grouped, LossGame
from dsage.games.draw_bias import DrawBias
from dsage.graphs import NoSeparation
from dsage.models import as_loss
from dsage.samplers import Gaussian
from given import all_coalitions

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
SAMPLER = Gaussian.from_moments(np.zeros(3), np.eye(3), list("abc"))
EVERY, ROWS = all_coalitions(3), np.arange(60)
FEW = pytest.mark.filterwarnings("ignore:With .* few draws may leave a bias")


def bent(rows):
    rows = np.asarray(rows)
    return np.abs(rows[:, 0]) + rows[:, 1] * rows[:, 2]


Y = bent(X)


def game_of(loss="absolute_error", y=Y, **options):
    return LossGame(bent, SAMPLER, X, y, loss=loss, **{"random_state": 0} | options)


@pytest.mark.parametrize(
    "loss", ["squared_error", as_loss(lambda y, p: (y - p) ** 4, curve="smooth")]
)
def test_smooth_losses_have_none(loss):
    assert game_of(loss).draw_bias() is None


def test_a_single_replicate_and_affine_models_have_none():
    assert game_of(n_replicates=1).draw_bias() is None


def test_games_made_of_games_pass_it_on():
    game = game_of(n_draws=4)
    grouped = Grouped(game, {"two": ["a", "b"]}).draw_bias()
    assert isinstance(grouped, Grouped)
    assert isinstance(grouped.game, DrawBias)
    difference = Difference(game, game_of(n_draws=4)).draw_bias()
    assert (difference.risks(EVERY, ROWS) == 0).all()


@FEW
def test_a_perfect_model_with_absolute_error_is_covered_where_all_biases_have_one_sign():
    """Every error of a mean adds to the loss of a model that is always right."""
    rule = as_stopping(n_orderings=200)
    truth = run(game_of(n_draws=2048, random_state=1), exact="always", stopping=rule).values
    for n_draws in (2, 8):
        game = game_of(n_draws=n_draws)
        found = run(game, exact="always", stopping=as_stopping(tolerance=0.05), random_state=0)
        assert (np.abs(found.values - truth) < 3 * found.se).all()


@FEW
def test_the_stopping_rule_does_not_wait_for_it():
    rule = as_stopping(tolerance=0.05)
    found = run(game_of(n_draws=2), stopping=rule, random_state=0)
    assert found.reason.kind.name == "TOLERANCE"
    assert found.se.max() > 0.05 * np.ptp(found.values)
    assert found.history.se[-1].max() <= 0.05 * np.ptp(found.values)


def test_values_are_those_of_a_run_without_it():
    """The bias is a matter of errors: values do not change."""
    rule = as_stopping(n_orderings=40)
    found = run(game_of(n_draws=32), stopping=rule, random_state=0)
    class_of = type("Plain", (LossGame,), {"draw_bias": lambda self: None})
    plain = class_of(bent, SAMPLER, X, Y, loss="absolute_error", n_draws=32, random_state=0)
    without = run(plain, stopping=rule, random_state=0)
    np.testing.assert_array_equal(found.values, without.values)
    assert (found.se_draws >= without.se_draws).all()
    assert (found.se_draws > without.se_draws).any()


@FEW
def test_outputs_apart_have_their_own():
    def two(rows):
        return np.stack([bent(rows), np.asarray(rows)[:, 2]], axis=1)

    y = np.stack([Y, X[:, 2]], axis=1)
    game = LossGame(two, SAMPLER, X, y, loss="absolute_error", n_draws=4, random_state=0)
    found = run(game, stopping=as_stopping(n_orderings=40), random_state=0)
    class_of = type("Plain", (LossGame,), {"draw_bias": lambda self: None})
    plain = class_of(two, SAMPLER, X, y, loss="absolute_error", n_draws=4, random_state=0)
    without = run(plain, stopping=as_stopping(n_orderings=40), random_state=0)
    assert (found.outputs.se_draws[0] > without.outputs.se_draws[0]).any()
    assert found.outputs.se_draws.shape == (2, 3)


@FEW
@pytest.mark.parametrize("options", [{"n_jobs": 1}, {"oracle": NoSeparation(list("abc"))}])
def test_options_of_the_run_are_kept(options):
    rule = as_stopping(n_orderings=20)
    found = run(game_of(n_draws=4), stopping=rule, random_state=0, **options)
    assert np.isfinite(found.se).all()


@FEW
def test_comparisons_include_it():
    def other(rows):
        return 1.5 * bent(rows)

    games = game_of(n_draws=4), LossGame(other, SAMPLER, X, Y, loss="absolute_error",
                                         n_draws=4, random_state=0)  # fmt: skip
    found = compare_games(*games, stopping=as_stopping(n_orderings=20), random_state=0)
    assert (found.to_frame()["se"] > 0).all()
