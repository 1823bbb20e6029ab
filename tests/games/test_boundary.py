import itertools

import numpy as np
import pytest

from dsage import Graph
from dsage.estimate import run
from dsage.games import Boundary, Cached, Grouped
from exact_values import shapley, tabulated
from given import all_coalitions
from small_games import ORACLE, TableGame, gaussian_case, gaussian_game, suboptimal_gaussian_case
from tables import NAMES, PathTable, Table

EVERY = all_coalitions(4)
ROWS = np.arange(3)
CHAIN = Graph([*NAMES, "y"], [("a", "b"), ("b", "c"), ("c", "y"), ("y", "d")]).oracle("y")


@pytest.mark.parametrize("is_drawn", [False, True])
def test_the_description_of_the_game_is_forwarded(is_drawn):
    case = gaussian_case()
    X, y = case.sample(30, np.random.default_rng(0))
    weights = np.linspace(1.0, 2.0, 30)
    game = gaussian_game(case, X, y, is_drawn=is_drawn, n_replicates=1, sample_weight=weights)
    boundary = Boundary(game, ORACLE)
    assert boundary.is_drawn is is_drawn
    np.testing.assert_array_equal(boundary.weights, game.weights)
    boundary.risks(EVERY, ROWS)
    assert boundary.n_predicted == game.n_predicted >= 30
    table = Boundary(TableGame(np.zeros((16, 2)), tuple("abce")), ORACLE)
    assert (table.is_drawn, table.weights, table.n_predicted) == (False, None, 0)
    assert table.first_level() is None


def test_boundaries_are_evaluated_once_per_call():
    table = Table(tuple("abce"))
    risks = Boundary(table, ORACLE).risks(EVERY, ROWS, 1)
    assert len(table.asked) == len(set(table.asked)) < 16
    np.testing.assert_array_equal(risks, table.risks(ORACLE.boundary(EVERY), ROWS, 1))


def test_the_first_level_is_evaluated_at_the_same_boundaries():
    case = suboptimal_gaussian_case()
    X, y = case.sample(60, np.random.default_rng(0))
    game = gaussian_game(case, X, y)
    cheap, plain = Boundary(game, ORACLE).first_level(), game.first_level()
    boundaries = ORACLE.boundary(EVERY)
    np.testing.assert_allclose(cheap.mean_risks(EVERY), plain.mean_risks(boundaries), rtol=1e-12)
    orders = np.array(list(itertools.permutations(range(4)))[::5])
    for order, path in zip(orders, cheap.mean_path_risks(orders), strict=True):
        prefixes = np.array([np.isin(np.arange(4), order[:k]) for k in range(5)])
        np.testing.assert_allclose(path, cheap.mean_risks(prefixes), rtol=1e-12)


@pytest.mark.parametrize("exact", ["always", "never"])
def test_a_game_at_boundaries_has_the_values_of_a_run_with_the_graph(exact):
    case = suboptimal_gaussian_case()
    X, y = case.sample(200, np.random.default_rng(1))
    found = run(Boundary(gaussian_game(case, X, y), ORACLE), exact=exact, random_state=0)
    truth = shapley(tabulated(case.risk_on(X, y), 4), 4, ORACLE)
    assert (np.abs(found.values - truth) <= 4.5 * found.se + 1e-9).all()
    assert (found.se <= 0.02 * np.ptp(truth)).all()


def test_wrappers_can_be_nested():
    game = Grouped(Boundary(Table(tuple("abce")), ORACLE), {"g": ["a", "e"]})
    known = np.array([[True, True, False]])
    expected = Table().risks(ORACLE.boundary(np.array([[True, True, False, True]])), ROWS)
    np.testing.assert_array_equal(game.risks(known, ROWS), expected)


def test_the_risk_at_a_boundary_is_that_of_the_boundary():
    game = Boundary(Table(), CHAIN)
    assert (game.feature_names, game.n_rows, game.n_replicates) == (NAMES, 6, 2)
    expected = Table().risks(CHAIN.boundary(EVERY), ROWS, 1)
    np.testing.assert_array_equal(game.risks(EVERY, ROWS, 1), expected)
    assert not np.array_equal(expected, Table().risks(EVERY, ROWS, 1))


def test_boundaries_of_a_game_with_a_memory_are_shared():
    table = Table()
    Boundary(Cached(table), CHAIN).risks(EVERY, ROWS)
    assert len(table.asked) == len(np.unique(CHAIN.boundary(EVERY), axis=0)) < 16


def test_a_game_at_boundaries_offers_no_paths_of_the_coalitions_themselves():
    assert not Boundary(PathTable(), CHAIN).has_paths


@pytest.mark.parametrize("names", ["abdc", "abc", "abcz"])
def test_an_oracle_about_other_features_is_refused(names):
    oracle = Graph([*names, "y"], []).oracle("y")
    with pytest.raises(ValueError, match="oracle must be about the features of the game"):
        Boundary(Table(), oracle)
