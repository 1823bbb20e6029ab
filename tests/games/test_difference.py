import pickle
import warnings

import numpy as np
import pandas as pd
import pytest

from dsage.estimate import as_stopping, run
from dsage.games import Boundary, Difference, Grouped, LossGame, MomentGame
from dsage.graphs import NoSeparation
from dsage.models import as_model
from exact_values import LinearGaussianCase, shapley, tabulated
from given import all_coalitions
from small_games import (
    FEATURES,
    ORACLE,
    TableGame,
    exact_sampler,
    gaussian_case,
    gaussian_game,
    suboptimal_gaussian_case,
)
from tables import NAMES, PathTable, Table

EVERY = all_coalitions(4)
ROWS = np.array([0, 3, 4])
CASE = suboptimal_gaussian_case()
X, Y = CASE.sample(120, np.random.default_rng(0))
OTHER = gaussian_case(weights=[0.1, -0.5, 0.6, 0.2], intercept=0.2)


def other_game(X=X, y=Y, *, is_drawn=True, loss="squared_error", **options):
    """Another model than that of `CASE`, with the sampler of that."""
    model = OTHER.predict if is_drawn else as_model(OTHER.predict, loss, affine=True)
    options = {"random_state": 0} | options
    return LossGame(model, exact_sampler(CASE), X, y, loss=loss, **options)


def drawn_game(**options):
    return gaussian_game(CASE, X, Y, is_drawn=True, **{"random_state": 0} | options)


def test_risks_are_differences():
    a, b = Table(), Table(seed=1)
    game = Difference(a, b)
    assert (game.feature_names, game.n_rows, game.n_replicates) == (NAMES, 6, 2)
    expected = a.risks(EVERY, ROWS, 1) - b.risks(EVERY, ROWS, 1)
    np.testing.assert_array_equal(game.risks(EVERY, ROWS, 1), expected)


def test_prefixes_are_differences_where_both_games_have_them():
    orders, needed = np.array([[1, 0, 3, 2]]), np.array([[True, True, False, True, True]])
    a, b = PathTable(), PathTable(seed=1)
    for one, other in ((a, Table()), (Table(), a)):
        assert not Difference(one, other).has_paths
    game = Difference(a, b)
    assert game.has_paths
    found = game.path_risks(orders, ROWS, 2, needed)[needed]
    expected = [game.path_risks(orders, ROWS, 2, needed)[needed] for game in (a, b)]
    np.testing.assert_array_equal(found, expected[0] - expected[1])


def test_a_game_without_draws_can_be_compared_with_one_that_draws():
    exact, drawn = gaussian_game(CASE, X, Y), other_game(n_replicates=2)
    rows = np.arange(len(X))
    for a, b in ((exact, drawn), (drawn, exact)):
        game = Difference(a, b)
        assert (game.n_replicates, game.is_drawn) == (2, True)
        found = game.risks(EVERY, rows)
        assert found.shape == (16, len(X), 2)
        np.testing.assert_array_equal(found, a.risks(EVERY, rows) - b.risks(EVERY, rows))
    both = Difference(exact, other_game(is_drawn=False))
    assert (both.n_replicates, both.is_drawn) == (1, False)


def test_the_description_of_the_game_is_forwarded():
    weights = np.linspace(1.0, 2.0, len(X))
    a, b = drawn_game(sample_weight=weights), other_game(sample_weight=weights)
    game = Difference(a, Boundary(b, ORACLE))
    np.testing.assert_array_equal(game.weights, a.weights)
    game.risks(EVERY, ROWS)
    assert game.n_predicted == a.n_predicted + b.n_predicted > 2 * len(X)
    assert Difference(Table(), Table()).n_predicted == 0
    assert game.risk_scale == a.risk_scale + b.risk_scale > max(a.risk_scale, b.risk_scale)


def test_the_first_level_is_the_difference_of_the_first_levels():
    a, b = drawn_game(), other_game()
    cheap = Difference(a, b).first_level()
    one, other = a.first_level(), b.first_level()
    np.testing.assert_allclose(
        cheap.mean_risks(EVERY), one.mean_risks(EVERY) - other.mean_risks(EVERY)
    )
    orders = np.array([[1, 0, 3, 2]])
    np.testing.assert_allclose(
        cheap.mean_path_risks(orders), one.mean_path_risks(orders) - other.mean_path_risks(orders)
    )
    rows = np.arange(len(X))
    np.testing.assert_allclose(
        cheap.risks(EVERY, rows).mean(axis=(1, 2)), cheap.mean_risks(EVERY), atol=1e-12
    )
    assert Difference(Table(FEATURES, n_rows=120), b).first_level() is None
    assert Difference(b, Table(FEATURES, n_rows=120)).first_level() is None
    assert isinstance(one, MomentGame)


@pytest.mark.parametrize("oracle", [None, ORACLE])
@pytest.mark.parametrize("exact", ["always", "never"])
def test_values_are_the_differences_of_the_values(oracle, exact):
    """Exactly over all orderings, and over the same sampled ones: values are linear."""
    rng = np.random.default_rng(0)
    a, b = (TableGame(rng.normal(size=(16, 3)), FEATURES) for _ in range(2))
    options = {"oracle": oracle, "exact": exact, "audit": False, "random_state": 0}
    options["stopping"] = as_stopping(n_orderings=60)
    found = [run(game, **options).values for game in (Difference(a, b), a, b)]
    np.testing.assert_allclose(found[0], found[1] - found[2], atol=1e-12)
    if exact == "always":
        truths = [shapley(tabulated(game.risk, 4), 4, oracle) for game in (a, b)]
        np.testing.assert_allclose(found[0], truths[0] - truths[1], atol=1e-12)


@pytest.mark.parametrize("oracle", [None, ORACLE])
def test_the_difference_of_two_models_agrees_with_the_definition(oracle):
    found = run(
        Difference(drawn_game(), other_game()),
        oracle=oracle,
        audit=False,
        exact="never",
        stopping=as_stopping(n_orderings=400),
        random_state=1,
    )
    case = LinearGaussianCase(CASE.mean, CASE.covariance, OTHER.intercept, OTHER.weights)
    truth = CASE.values(oracle, data=(X, Y)) - case.values(oracle, data=(X, Y))
    assert (np.abs(found.values - truth) <= 4.5 * found.se + 1e-9).all()
    assert (found.se <= 0.05 * np.ptp(truth)).all()
    assert (found.se > 0).all()


def test_a_game_does_not_differ_from_itself():
    found = run(Difference(drawn_game(), drawn_game()), stopping=as_stopping(n_orderings=60))
    np.testing.assert_array_equal(found.values, 0.0)
    np.testing.assert_array_equal(found.se, 0.0)


@pytest.mark.parametrize(
    "options",
    [{"random_state": 1}, {"n_draws": 4}, {"noise": "independent"}, {"random_state": None}],
)
def test_other_noise_is_warned_of(options):
    with pytest.warns(UserWarning, match=r"different noise.*same random_state"):
        Difference(drawn_game(), Boundary(other_game(**options), ORACLE))


def test_noise_that_is_not_used_may_differ():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Difference(drawn_game(), other_game(is_drawn=False, random_state=1))
        Difference(gaussian_game(CASE, X, Y), other_game(is_drawn=False))
        Difference(Table(), Table(seed=1))
        Difference(drawn_game(), other_game())


def test_models_may_explain_their_own_outputs():
    own = other_game(y=None)
    game = Difference(LossGame(CASE.predict, exact_sampler(CASE), X, None, random_state=0), own)
    assert game.n_rows == len(X)


def changed(column):
    frame = X.copy()
    frame[3, column] += 1.0
    return frame


@pytest.mark.parametrize(
    ("other", "text"),
    [
        (lambda: Table(tuple("abec"), n_rows=120), "features of a, .*; got .'a', 'b', 'e', 'c'"),
        (lambda: Table(FEATURES, n_rows=7), "the 120 rows of a; got 7"),
        (lambda: other_game(X=changed(2)), "the evaluation rows of a; got 'other values of c'"),
        (
            lambda: Boundary(other_game(X=changed(1)), ORACLE),
            "the evaluation rows of a; got 'other values of b'",
        ),
        (lambda: other_game(y=Y + 1.0), "the targets of a; got 'others'"),
        (lambda: other_game(loss="absolute_error"), "loss of a, 'squared_error'; got 'absolute_"),
        (
            lambda: other_game(sample_weight=np.linspace(1.0, 2.0, 120)),
            "the sample weights of a; got 'others'",
        ),
        (lambda: other_game(n_replicates=4), "n_replicates=2, as a has; got 4"),
    ],
)
def test_games_that_cannot_be_compared_are_refused(other, text):
    with pytest.raises(ValueError, match=f"b must be a game with .*{text}.* Make both games"):
        Difference(drawn_game(), other())


def test_a_difference_can_be_sent_to_a_worker():
    game = Difference(PathTable(), Boundary(PathTable(seed=1), NoSeparation(NAMES)))
    both = Difference(PathTable(), PathTable(seed=1))
    for each in (game, both):
        sent = pickle.loads(pickle.dumps(each))
        np.testing.assert_array_equal(sent.risks(EVERY, ROWS), each.risks(EVERY, ROWS))
        assert sent.has_paths == each.has_paths


def test_objects_that_are_not_games_are_refused():
    with pytest.raises(TypeError, match="b must be a game; got 'DataFrame'"):
        Difference(Table(), pd.DataFrame())
    with pytest.raises(TypeError, match="a must be a game; got 'int'"):
        Difference(1, Table())


def test_groups_can_be_compared():
    groups = {"ab": ["a", "b"]}
    a, b = (
        TableGame(np.random.default_rng(seed).normal(size=(16, 3)), FEATURES) for seed in (0, 1)
    )
    found = run(Difference(Grouped(a, groups), Grouped(b, groups)), exact="always")
    one, other = (run(Grouped(game, groups), exact="always") for game in (a, b))
    np.testing.assert_allclose(found.values, one.values - other.values, atol=1e-12)


def test_groups_of_other_members_are_refused():
    game = TableGame(np.random.default_rng(0).normal(size=(16, 3)), FEATURES)
    a, b, c, d = FEATURES
    one, other = ({"x": [a, each], "y": [rest, d]} for each, rest in ((b, c), (c, b)))
    with pytest.raises(ValueError, match="a game with the groups of a"):
        Difference(Grouped(game, one), Grouped(game, other))
    # Each player of the other game is one column: the same names are what counts.
    pair = TableGame(np.random.default_rng(1).normal(size=(4, 3)), ("x", "y"))
    assert Difference(Grouped(game, one), pair).feature_names == ("x", "y")


def test_a_difference_has_the_bias_of_few_draws_of_both_games_or_of_one():
    rng = np.random.default_rng(0)
    tables = [TableGame(rng.normal(size=(4, 3))) for _ in range(4)]
    known, rows = np.array([[True, False], [False, True]]), np.arange(3)
    one, other = tables[:2]
    assert Difference(one, other).draw_bias() is None
    one.draw_bias = lambda: tables[2]
    assert Difference(one, other).draw_bias() is tables[2]
    # The size of a bias counts, not its sign.
    assert Difference(other, one).draw_bias() is tables[2]
    other.draw_bias = lambda: tables[3]
    both = Difference(one, other).draw_bias().risks(known, rows)
    expected = tables[2].risks(known, rows) - tables[3].risks(known, rows)
    np.testing.assert_array_equal(both, expected)
