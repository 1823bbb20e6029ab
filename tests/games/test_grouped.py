import itertools
import pickle

import numpy as np
import pytest

from dsage import Graph
from dsage.estimate import as_stopping, run
from dsage.games import Grouped, LossGame, MomentGame
from dsage.graphs import GroupedOracle
from dsage.models import as_model
from exact_values import shapley, tabulated
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

GROUPS = {"ends": ["d", "a"]}
MEMBERS = [(0, 3), (1,), (2,)]
ROWS = np.array([0, 3, 4])


def members(known, of=MEMBERS):
    """The features of a coalition of players, by their positions."""
    chosen = [features for features, is_in in zip(of, known, strict=True) if is_in]
    return tuple(sorted(itertools.chain(*chosen)))


def test_the_risk_of_groups_is_that_of_their_members():
    game = Grouped(Table(), GROUPS)
    assert (game.feature_names, game.n_rows, game.n_replicates) == (("ends", "b", "c"), 6, 2)
    known = all_coalitions(3)
    expected = [Table().risk(members(row), ROWS, 1) for row in known]
    np.testing.assert_array_equal(game.risks(known, ROWS, 1), expected)


def test_paths_are_asked_for_only_where_a_group_ends():
    assert not Grouped(Table(), GROUPS).has_paths
    inner = PathTable()
    game = Grouped(inner, GROUPS)
    assert game.has_paths
    orders = np.array([[1, 0, 2], [0, 2, 1]])
    needed = np.array([[True, True, True, False], [True, True, False, True]])
    risks = game.path_risks(orders, ROWS, 2, needed)
    assert risks.shape == (2, 4, 3, 2)
    for order, wanted, found in zip(orders, needed, risks, strict=True):
        for k in np.flatnonzero(wanted):
            known = np.isin(np.arange(3), order[:k])
            np.testing.assert_array_equal(found[k], Table().risk(members(known), ROWS, 2))
    assert sorted(inner.asked) == [(), (), (0, 1, 2, 3), (0, 1, 3), (0, 3), (1,)]


def test_the_description_of_the_game_is_forwarded():
    case = gaussian_case()
    X, y = case.sample(50, np.random.default_rng(0))
    weights = np.linspace(1.0, 2.0, 50)
    for is_drawn in (False, True):
        game = gaussian_game(case, X, y, is_drawn=is_drawn, n_replicates=1, sample_weight=weights)
        grouped = Grouped(game, {"ab": ["a", "b"]})
        assert grouped.is_drawn is is_drawn
        np.testing.assert_array_equal(grouped.weights, game.weights)
        grouped.risks(all_coalitions(3), np.arange(50))
        assert grouped.n_predicted == game.n_predicted >= 50
    table = Grouped(Table(), GROUPS)
    assert (table.is_drawn, table.weights, table.n_predicted) == (True, None, 0)
    assert table.first_level() is None


def test_the_first_level_of_groups_is_that_of_their_members():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 4)) @ rng.normal(size=(4, 4))
    cheap = MomentGame(X, X.sum(axis=1), X[:, 0], NAMES)

    class WithMoments(Table):
        def first_level(self):
            return cheap

    game = Grouped(WithMoments(), GROUPS).first_level()
    known, orders = all_coalitions(3), np.array(list(itertools.permutations(range(3))))
    expanded = np.array([np.isin(np.arange(4), members(row)) for row in known])
    np.testing.assert_allclose(game.mean_risks(known), cheap.mean_risks(expanded), rtol=1e-12)
    np.testing.assert_array_equal(game.risks(known, ROWS), cheap.risks(expanded, ROWS))
    paths = game.mean_path_risks(orders)
    for order, path in zip(orders, paths, strict=True):
        prefixes = np.array([np.isin(np.arange(3), order[:k]) for k in range(4)])
        np.testing.assert_allclose(path, game.mean_risks(prefixes), rtol=1e-9)


def test_groups_are_read_once_and_kept():
    class WithMoments(Table):
        def first_level(self):
            return Table()

    groups = {"ends": iter(["d", "a"])}
    game = Grouped(WithMoments(), groups)
    groups.clear()
    assert game.first_level().feature_names == game.feature_names == ("ends", "b", "c")


def test_a_game_of_groups_can_be_sent_to_a_worker():
    game = Grouped(PathTable(), GROUPS)
    sent = pickle.loads(pickle.dumps(game))
    known, orders = all_coalitions(3), np.array([[1, 0, 2]])
    np.testing.assert_array_equal(sent.risks(known, ROWS), game.risks(known, ROWS))
    needed = np.ones((1, 4), dtype=bool)
    found = sent.path_risks(orders, ROWS, 0, needed)
    np.testing.assert_array_equal(found, game.path_risks(orders, ROWS, 0, needed))


def test_objects_that_are_not_games_are_refused():
    with pytest.raises(TypeError, match=r"game must be a game; got 'int'. Make one with LossGame"):
        Grouped(3, GROUPS)
    with pytest.raises(ValueError, match=r"groups\['g'\] must be one of the features; got 'z'"):
        Grouped(Table(), {"g": ["z"]})


# Runs

OF_FEATURES = {"bc": ["b", "c"]}
OF_MEMBERS = [(1, 2), (0,), (3,)]
GROUPED_ORACLE = GroupedOracle(ORACLE, OF_FEATURES)
WAYS = {
    "plain": {},
    "d-sage": {"oracle": GROUPED_ORACLE},
    "skip": {"oracle": GROUPED_ORACLE, "semantics": "skip"},
    "sage": {"oracle": GROUPED_ORACLE, "estimand": "sage"},
}


def truth(risk, way):
    """Shapley values of the players by brute force."""

    def risk_of_players(coalition):
        chosen = [OF_MEMBERS[player] for player in coalition]
        return risk(frozenset(itertools.chain(*chosen)))

    options = WAYS[way]
    oracle = None if way == "sage" else options.get("oracle")
    semantics = options.get("semantics", "boundary")
    return shapley(tabulated(risk_of_players, 3), 3, oracle, semantics)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("exact", ["always", "never"])
def test_values_of_groups_are_shapley_values_over_groups(way, exact):
    """On a table that no graph describes: skipped surpluses are not zero."""
    game = TableGame(np.random.default_rng(1).normal(size=(16, 5)), FEATURES)
    found = run(
        Grouped(game, OF_FEATURES),
        exact=exact,
        audit=False,
        stopping=as_stopping(n_orderings=2000),
        random_state=0,
        **WAYS[way],
    )
    expected = truth(game.risk, way)
    if exact == "always" and way != "sage":
        np.testing.assert_allclose(found.values, expected, atol=1e-12)
    else:
        assert (np.abs(found.values - expected) <= 4.5 * found.se + 1e-9).all()
        assert (found.se < 0.1).all()
        assert (found.se > 0).any()
    assert (found.share_skipped > 0).any() == (way != "plain")


@pytest.mark.parametrize("is_drawn", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_values_of_groups_of_a_model_agree_with_the_definition(way, is_drawn):
    case = suboptimal_gaussian_case()
    X, y = case.sample(300, np.random.default_rng(2))
    game = gaussian_game(case, X, y, is_drawn=is_drawn, random_state=0)
    options = {"exact": "never", "audit": False, "random_state": 1} | WAYS[way]
    stopping = as_stopping(tolerance=0.02, n_orderings=4000)
    found = run(Grouped(game, OF_FEATURES), stopping=stopping, **options)
    off = np.abs(found.values - truth(case.risk_on(X, y), way))
    assert (off <= 4.5 * found.se + 1e-9).all()
    assert (found.se <= 0.05 * np.ptp(found.values)).all()


def test_the_first_level_of_groups_saves_evaluations():
    case = suboptimal_gaussian_case()
    X, y = case.sample(300, np.random.default_rng(2))
    errors = {}
    for levels in ("auto", "none"):
        game = gaussian_game(case, X, y, is_drawn=True, random_state=0)
        game = Grouped(game, {"ab": ["a", "b"]})
        stopping = as_stopping(n_orderings=400)
        found = run(game, stopping=stopping, exact="never", first_level=levels, random_state=1)
        errors[levels] = found.se_orderings.max()
    # For a linear model of normal features the cheap game is the game, up to moments of the rows.
    assert errors["auto"] < 0.3 * errors["none"]


def test_an_audit_of_groups_finds_what_the_graph_hides():
    """The graph says that nothing matters but c; the group of the others does."""
    game = TableGame(
        np.array([[8.0 - 3.0 * (code & 1) - (code >> 2 & 1)] * 4 for code in range(16)]), FEATURES
    )
    blind = Graph([*FEATURES, "y"], [("c", "y")]).oracle("y")
    groups = {"others": ["a", "b", "e"]}
    with pytest.warns(UserWarning, match=r"changes the values of \['others'\]"):
        found = run(Grouped(game, groups), oracle=GroupedOracle(blind, groups), random_state=0)
    frame = found.audit_frame().set_index("feature")
    np.testing.assert_allclose(frame["difference"], [-3.0, 0.0], atol=1e-12)
    np.testing.assert_allclose(found.values, [0.0, 1.0], atol=1e-12)


def test_a_separated_group_gets_exactly_zero():
    case = gaussian_case()
    X, y = case.sample(100, np.random.default_rng(3))
    graph = Graph(["a", "b", "c", "e", "y"], [("a", "b"), ("c", "y"), ("y", "e")])
    groups = {"alone": ["a", "b"]}
    game = Grouped(gaussian_game(case, X, y), groups)
    oracle = GroupedOracle(graph.oracle("y"), groups)
    found = run(game, oracle=oracle, audit=False, random_state=0)
    assert found.values[0] == 0.0
    assert found.share_skipped[0] == 1.0


def test_the_sampler_of_a_model_is_asked_for_unions_of_groups_only():
    case = gaussian_case()
    X, y = case.sample(20, np.random.default_rng(0))
    sampler = exact_sampler(case)
    asked = set()
    mean_effects = sampler.mean_effects

    def noted(known, weights):
        asked.add(tuple(np.flatnonzero(known).tolist()))
        return mean_effects(known, weights)

    sampler.mean_effects = noted
    model = as_model(case.predict, "squared_error", affine=True)
    game = LossGame(model, sampler, X, y, loss="squared_error")
    Grouped(game, OF_FEATURES).risks(all_coalitions(3), np.arange(20))
    assert asked == {(), (0,), (3,), (0, 3), (1, 2), (0, 1, 2), (1, 2, 3)}
