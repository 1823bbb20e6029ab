"""What the base class of games declares, and how users' games use it."""

import numpy as np
import pytest

from dsage.estimate import run
from dsage.games import Difference, Game, MomentGame, Wrapped, as_game
from dsage.samplers import Gaussian
from small_games import TableGame, gaussian_case, gaussian_game
from tables import PathTable, Table

N_ROWS = 200
WEIGHTS = np.random.default_rng(0).exponential(size=N_ROWS)
WEIGHTS /= WEIGHTS.mean()
SURPLUSES = np.random.default_rng(1).normal([3.0, 1.0], 0.5, size=(N_ROWS, 2))


class Members:
    """Exactly the four basic members: every known feature lowers the weighted risk of a row."""

    feature_names, n_rows, n_replicates = ("a", "b"), N_ROWS, 1

    def risks(self, known, rows, epoch=0):
        return (WEIGHTS * (4.0 - known @ SURPLUSES.T))[:, rows, None]


class Subclass(Game):
    feature_names, n_rows, weights = ("a", "b"), N_ROWS, WEIGHTS
    risks = Members.risks


class WithWeights(Members):
    weights = WEIGHTS


class Around(Wrapped):
    def risks(self, known, rows, epoch=0):
        return self.game.risks(known, rows, epoch)


def se_of_a_weighted_mean(rows):
    """The standard error of ``sum of w x / sum of w``, a ratio."""
    values = (WEIGHTS[:, None] * rows).mean(axis=0)
    return (WEIGHTS[:, None] * (rows - values)).std(axis=0, ddof=1) / np.sqrt(N_ROWS)


@pytest.mark.parametrize("make", [Subclass, WithWeights, lambda: Around(Subclass())])
def test_declared_weights_count_in_the_error_of_the_rows(make):
    found = run(make())
    np.testing.assert_allclose(found.values, (WEIGHTS[:, None] * SURPLUSES).mean(axis=0))
    np.testing.assert_allclose(found.se_rows, se_of_a_weighted_mean(SURPLUSES), rtol=1e-9)
    # Without them, heavy rows would seem to differ from the others.
    assert (run(Members()).se_rows > 1.2 * found.se_rows).all()


@pytest.mark.parametrize("sample_weight", [None, WEIGHTS])
def test_a_users_game_around_a_model_has_the_errors_of_the_models_game(sample_weight):
    case = gaussian_case()
    X, y = case.sample(N_ROWS, np.random.default_rng(0))
    game = gaussian_game(case, X, y, is_drawn=True, random_state=0, sample_weight=sample_weight)
    found, expected = (run(each, exact="always", random_state=0) for each in (Around(game), game))
    np.testing.assert_allclose(found.values, expected.values, rtol=1e-9)
    np.testing.assert_allclose(found.se_rows, expected.se_rows, rtol=1e-9)
    assert found.df_rows == expected.df_rows


def test_an_object_with_the_four_basic_members_is_a_game_of_equal_weights():
    class Unweighted:
        feature_names, n_rows, n_replicates = ("a", "b"), N_ROWS, 1

        def risks(self, known, rows, epoch=0):
            return (4.0 - known @ SURPLUSES.T)[:, rows, None]

    found = run(Unweighted())
    np.testing.assert_allclose(found.values, SURPLUSES.mean(axis=0))
    expected = SURPLUSES.std(axis=0, ddof=1) / np.sqrt(N_ROWS)
    np.testing.assert_allclose(found.se_rows, expected, rtol=1e-9)


def test_a_moment_game_declares_its_weights():
    X = np.random.default_rng(0).normal(size=(N_ROWS, 2))
    game = MomentGame(X, X[:, 0], X.sum(axis=1), ("a", "b"), sample_weight=WEIGHTS)
    np.testing.assert_allclose(game.weights, WEIGHTS)
    with pytest.raises(ValueError, match="the sample weights of a"):
        Difference(game, MomentGame(X, X[:, 0], X.sum(axis=1), ("a", "b")))


def test_the_defaults_are_those_of_a_game_without_draws_paths_or_a_first_level():
    game = TableGame(np.zeros((4, 3)))
    assert (game.n_replicates, game.is_drawn, game.weights) == (1, False, None)
    assert (game.has_paths, game.first_level(), game.n_predicted) == (False, None, 0)
    assert (game.members, game.inner, game.parts) == (None, {}, (game,))
    assert Table().is_drawn
    with pytest.raises(TypeError, match="game must be one with path_risks"):
        game.path_risks(np.array([[0, 1]]), np.arange(3), 0, np.ones((1, 3), dtype=bool))


def test_mean_risks_are_means_over_all_rows_and_replicates():
    game = Table()
    known = np.random.default_rng(0).random((150, 4)) < 0.5
    expected = game.risks(known, np.arange(6)).mean(axis=(1, 2))
    np.testing.assert_allclose(game.mean_risks(known), expected, rtol=1e-12)
    assert game.mean_risks(known[:0]).shape == (0,)
    order = np.array([[2, 0, 3, 1]])
    prefixes = np.array([[j in order[0, :size] for j in range(4)] for size in range(5)])
    expected = game.mean_risks(prefixes)
    np.testing.assert_allclose(game.mean_path_risks(order)[0], expected, rtol=1e-12)


def test_a_wrapped_game_has_the_description_of_the_game():
    game = Around(PathTable())
    table = game.game
    assert (game.feature_names, game.n_rows, game.n_replicates) == (table.feature_names, 6, 2)
    assert (game.is_drawn, game.members, game.inner) == (True, None, {"game": table})
    assert not game.has_paths  # a wrapper may change risks: it has to say how paths change
    assert Difference(game, Table(seed=1)).parts[0] is table


@pytest.mark.parametrize("wrong", [3, Members, Gaussian()])
def test_objects_that_are_not_games_are_refused(wrong):
    with pytest.raises(TypeError, match=r"game must be a game; .*LossGame"):
        as_game(wrong)
    with pytest.raises(TypeError, match="game must be a game"):
        run(wrong)


def test_games_are_returned_as_they_are():
    game = Table()
    assert as_game(game) is game
