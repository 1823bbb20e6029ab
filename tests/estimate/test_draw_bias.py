"""What few draws leave of the bias of losses with kinks or jumps is part of the error."""

import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from dsage import Graph
from dsage.estimate import as_stopping, compare_games, run
from dsage.estimate.draw_bias import _size, _warn
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


def test_a_warning_gives_the_largest_bias_as_a_share_of_the_range():
    found = run(game_of(n_draws=32), stopping=as_stopping(n_orderings=40), random_state=0)
    zero = np.zeros(3)

    def warned(bias, values, se=0.0, losses=("absolute_error",)):
        result = replace(
            found, values=np.array(values), se_orderings=zero[: len(values)] + se,
            se_draws=zero[: len(values)],
        )  # fmt: skip
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            _warn(np.array(bias), result, [as_loss(each) for each in losses])
        return [str(each.message) for each in seen]

    (text,) = warned([0.1, 0.6, 0.2], [1.0, 3.0, 5.0])
    assert "With absolute_error" in text
    assert "up to 15 % of the range" in text
    assert "squared_error" in text
    (text,) = warned([0.2, 0.5], [1.0, 5.0])
    assert "up to 12.5 % of the range" in text
    # Of a single feature, the size of its value.
    (text,) = warned([0.5], [-5.0])
    assert "up to 10 % of the range" in text
    (text,) = warned([0.5], [0.0], losses=["zero_one"])
    assert "up to inf %" in text
    assert "brier" in text
    # A twentieth of the range, and what other errors cover, is not worth one.
    assert warned([0.1, 0.2, 0.1], [1.0, 3.0, 5.0]) == []
    assert len(warned([0.1, 0.21, 0.1], [1.0, 3.0, 5.0])) == 1
    assert warned([0.1, 0.6, 0.2], [1.0, 3.0, 5.0], se=0.6) == []
    assert warned([0.1, 0.6, 0.2], [1.0, 3.0, 5.0], losses=[]) == []


@FEW
def test_a_tenth_of_the_evaluations_are_for_the_bias(monkeypatch):
    asked = []

    def count(self, known, rows, epoch=0):
        asked.append(len(known) * len(rows))
        return plain(self, known, rows, epoch)

    def along(self, orders, rows, epoch, needed):
        asked.append(int(needed.sum()) * len(rows))
        return paths(self, orders, rows, epoch, needed)

    plain, paths = DrawBias.risks, DrawBias.path_risks
    monkeypatch.setattr(DrawBias, "risks", count)
    monkeypatch.setattr(DrawBias, "path_risks", along)
    options = {"exact": "never", "rows_per_ordering": 5, "random_state": 0}
    found = run(game_of(n_draws=4), stopping=as_stopping(n_orderings=1000), **options)
    # A step more than a tenth at most, and steps grow by an eighth.
    assert 0.1 * found.n_evaluated <= sum(asked) < 0.125 * found.n_evaluated


def test_the_size_of_a_bias_is_its_estimate_or_with_jumps_also_the_error_of_an_epoch():
    given = SimpleNamespace(values=np.array([3.0, -2.0, 0.1]), se=np.array([1.5, 0.5, 0.5]))
    drawn = SimpleNamespace(se_draws=np.array([0.5, 1.0, 2.0]))
    np.testing.assert_allclose(_size(given, drawn, 4.0, jumps=False), [3.0, 2.0, 0.1])
    found = _size(given, drawn, 4.0, jumps=True)
    np.testing.assert_allclose(found, np.sqrt([9 - 2.25 + 1, 4 - 0.25 + 4, 0 + 16]))


@FEW
@pytest.mark.parametrize("estimand", ["sage", "d-sage"])
def test_separated_features_have_a_bias_only_if_they_have_a_value(estimand):
    oracle = Graph(["a", "b", "c", "y"], [("a", "y"), ("b", "y")]).oracle("y")
    options = {"oracle": oracle, "estimand": estimand, "audit": False, "exact": "never"}
    found = run(game_of(n_draws=4), stopping=as_stopping(n_orderings=40), random_state=0, **options)
    assert (found.se_draws[:2] > 0).all()
    assert (found.se_draws[2] > 0) == (estimand == "sage")
    if estimand == "d-sage":
        # The bias of the others is that at boundaries, too: c tells nothing there.
        without = run(
            replace_draw_bias(game_of(n_draws=4)), stopping=as_stopping(n_orderings=40),
            random_state=0, **options,
        )  # fmt: skip
        bias = np.sqrt(found.se_draws**2 - without.se_draws**2)
        assert bias[2] == 0
        assert (bias[:2] > 0).all()


def replace_draw_bias(game):
    """The same game without an estimate of its bias."""
    game.draw_bias = lambda: None
    return game
