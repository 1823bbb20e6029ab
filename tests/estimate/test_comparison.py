import functools

import numpy as np
import pytest
from scipy import stats

from dsage import Graph
from dsage.estimate import StopKind, as_stopping, compare_games, comparison, holm, run
from dsage.estimate.comparison import TOLERANCE
from dsage.games import Boundary, Difference, LossGame
from exact_values import LinearGaussianCase, shapley, tabulated
from small_games import (
    FEATURES,
    ORACLE,
    TableGame,
    exact_sampler,
    gaussian_case,
    gaussian_game,
    suboptimal_gaussian_case,
)

CASE = suboptimal_gaussian_case()
CLOSE = gaussian_case(weights=[1.0, -0.2, 0.25, 0.4], intercept=CASE.intercept)
# The same model under the law of the other.
CLOSE_LAW = LinearGaussianCase(CASE.mean, CASE.covariance, CLOSE.intercept, CLOSE.weights)
X, Y = CASE.sample(200, np.random.default_rng(0))
# Another graph: a causes y itself, and e has nothing to do with it.
GRAPH = Graph([*FEATURES, "y"], [("a", "b"), ("a", "y"), ("b", "y"), ("c", "y"), ("c", "e")])

EVERY = np.array([[code >> bit & 1 for bit in range(4)] for code in range(16)], dtype=bool)


def games(seed=0, other_seed=0, **options):
    """Two models, nobody is told that they are affine, with the same sampler."""
    a = gaussian_game(CASE, X, Y, is_drawn=True, random_state=seed, **options)
    b = LossGame(
        CLOSE.predict,
        exact_sampler(CASE),
        X,
        Y,
        loss="squared_error",
        random_state=other_seed,
        **options,
    )
    return a, b


def tables():
    rng = np.random.default_rng(0)
    return tuple(TableGame(rng.normal(size=(16, 3)), FEATURES) for _ in range(2))


def test_differences_are_those_of_the_values():
    a, b = tables()
    frame = compare_games(a, b, exact="always").to_frame().set_index("feature")
    truth = [shapley(tabulated(game.risk, 4), 4) for game in (a, b)]
    found = frame.loc[list(FEATURES), "difference"]
    np.testing.assert_allclose(found, truth[0] - truth[1], atol=1e-12)
    assert frame["difference"].abs().is_monotonic_decreasing
    assert list(frame.columns[:4]) == ["difference", "se", "lower", "upper"]


@pytest.mark.parametrize("exact", ["always", "never"])
@pytest.mark.parametrize("pair", [(ORACLE, GRAPH), (ORACLE, None), (None, GRAPH), (None, None)])
def test_each_game_may_have_its_own_graph(pair, exact):
    a, b = tables()
    oracles = tuple(one.oracle("y") if isinstance(one, Graph) else one for one in pair)
    truth = [
        shapley(tabulated(game.risk, 4), 4, oracle)
        for game, oracle in zip((a, b), oracles, strict=True)
    ]
    stopping = as_stopping(n_orderings=1500)
    found = compare_games(
        a, b, oracle=oracles, exact=exact, stopping=stopping, random_state=0
    ).difference
    off = np.abs(found.values - (truth[0] - truth[1]))
    assert (off <= 4.5 * found.se + 1e-12).all()
    assert found.is_exact == (exact == "always")
    assert (found.se < 0.1).all()
    assert found.audit is None


def test_two_graphs_share_what_both_of_them_share():
    """The difference is asked for at unions of boundaries only, to the same values."""
    a, b = tables()
    oracles = (ORACLE, Graph([*FEATURES, "y"], [("a", "b"), ("b", "y"), ("c", "e")]).oracle("y"))
    shared = compare_games(a, b, oracle=oracles, exact="always").difference
    n_unions = len(np.unique(oracles[0].boundary(EVERY) | oracles[1].boundary(EVERY), axis=0))
    plain = run(Difference(Boundary(a, oracles[0]), Boundary(b, oracles[1])), exact="always")
    np.testing.assert_allclose(shared.values, plain.values, atol=1e-12)
    assert shared.n_evaluated == n_unions * 3 < plain.n_evaluated


def test_one_graph_for_both_is_audited():
    game = TableGame(
        np.array([[8.0 - 3.0 * (code & 1) - (code >> 2 & 1)] * 4 for code in range(16)]), FEATURES
    )
    nothing = TableGame(np.zeros((16, 4)), FEATURES)
    blind = Graph([*FEATURES, "y"], [("c", "y")]).oracle("y")
    with pytest.warns(UserWarning, match=r"changes the values of \['a'\]"):
        found = compare_games(game, nothing, oracle=blind).difference
    np.testing.assert_allclose(found.audit_frame()["difference"], [-3.0, 0, 0, 0], atol=1e-12)
    corrected = compare_games(game, nothing, oracle=blind, estimand="sage").difference
    np.testing.assert_allclose(corrected.values, [3.0, 0.0, 1.0, 0.0], atol=1e-12)


SHORT = {"exact": "never", "audit": False, "stopping": as_stopping(n_orderings=8)}


@functools.cache
def compared(oracle, seed):
    return compare_games(*games(seed, seed), oracle=oracle, random_state=seed, **SHORT)


@pytest.mark.parametrize("oracle", [None, ORACLE])
def test_the_difference_is_far_better_known_than_from_two_runs(oracle):
    """The spread of the differences over seeds, with the same evaluations on both sides."""
    options = {"oracle": oracle, **SHORT}
    n_seeds = 12
    paired, separate = np.empty((2, n_seeds, 4))
    for seed in range(n_seeds):
        paired[seed] = compared(oracle, seed).difference.values
        a, b = games(seed, 100 + seed)
        one, other = (
            run(a, random_state=seed, **options),
            run(b, random_state=100 + seed, **options),
        )
        separate[seed] = one.values - other.values
    truth = CASE.values(oracle, data=(X, Y)) - CLOSE_LAW.values(oracle, data=(X, Y))
    error = [((found - truth) ** 2).sum() for found in (paired, separate)]
    # The ratio of two variances, each with at least n_seeds degrees of freedom, is within a factor
    # of 4.2 of what it is, except once in a hundred times.
    assert stats.f.isf(0.01, n_seeds, n_seeds) < 4.2
    assert error[0] * 4.2 < error[1] / 4.0


@pytest.mark.parametrize("oracle", [None, ORACLE])
def test_intervals_hold_the_difference(oracle):
    truth = CASE.values(oracle, data=(X, Y)) - CLOSE_LAW.values(oracle, data=(X, Y))
    held = []
    for seed in range(8):
        frame = compared(oracle, seed).to_frame().set_index("feature").loc[list(FEATURES)]
        held.append((frame["lower"] <= truth) & (truth <= frame["upper"]))
        assert (
            (frame["lower_all"] <= frame["lower"]) & (frame["upper"] <= frame["upper_all"])
        ).all()
    # 32 intervals, about 8 of them independent.
    assert np.mean(held) >= 0.8


def test_the_default_rule_holds_errors_against_the_worth_of_all_features():
    a, b = games()
    found = compare_games(a, b, random_state=0).difference
    risks = [law.risk_on(X, Y) for law in (CASE, CLOSE_LAW)]
    worth = max(abs(risk(frozenset()) - risk(frozenset(range(4)))) for risk in risks)
    # The risk of nothing is drawn for, so the rule knows the worth with a small error.
    limit = found.reason.numbers["allowed"]
    assert limit == pytest.approx(TOLERANCE * worth, rel=0.1)
    assert found.se.max() <= limit
    same = compare_games(a, a, random_state=0).difference
    np.testing.assert_array_equal(same.values, 0.0)
    assert same.reason.kind is StopKind.ABSOLUTE
    assert same.reason.numbers["se"] == 0.0


def test_p_values_are_two_sided_and_count_the_rows():
    comparison = compare_games(*games(), random_state=0, stopping=as_stopping(n_orderings=60))
    known = comparison.difference
    frame = comparison.to_frame().set_index("feature").loc[list(FEATURES)]
    t = np.abs(known.values) / known.se_total
    np.testing.assert_allclose(frame["p_value"], holm(2 * stats.t.sf(t, known.df_total)))
    flipped = compare_games(*games()[::-1], random_state=0, stopping=as_stopping(n_orderings=60))
    again = flipped.to_frame().set_index("feature").loc[list(FEATURES)]
    np.testing.assert_allclose(again["difference"], -frame["difference"], rtol=1e-9)
    np.testing.assert_allclose(again["p_value"], frame["p_value"], rtol=1e-9)


def test_p_values_of_equal_games_are_one():
    a, _ = games()
    np.testing.assert_array_equal(compare_games(a, a, random_state=0).to_frame()["p_value"], 1.0)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"estimand": "sage"}, "estimand must be 'd-sage' if each game has its own graph"),
        ({"semantics": "skip"}, "semantics must be 'boundary' if each game"),
        ({"audit": True}, "audit must be False if each game"),
    ],
)
def test_what_two_graphs_do_not_have_is_refused(options, text):
    with pytest.raises(ValueError, match=text):
        compare_games(*tables(), oracle=(ORACLE, None), **options)


def test_a_pair_has_two():
    with pytest.raises(ValueError, match="oracle must be one oracle, or a pair of them"):
        compare_games(*tables(), oracle=(ORACLE,))


def test_games_whose_total_values_are_zero_need_a_rule():
    nothing = TableGame(np.ones((16, 3)), FEATURES)
    with pytest.raises(ValueError, match="stopping must be given if the total values"):
        compare_games(nothing, nothing)
    found = compare_games(nothing, nothing, stopping=as_stopping(absolute=0.1))
    np.testing.assert_array_equal(found.difference.values, 0.0)


def test_given_orderings_are_all_used():
    a, b = tables()
    orderings = [["a", "b", "c", "e"], ["e", "c", "b", "a"]]
    found = compare_games(a, b, orderings=orderings).difference
    assert found.n_orderings == 2


@pytest.mark.parametrize("n_rows", [1, 7, 2600])
def test_the_scale_of_a_comparison_is_the_larger_total_value(n_rows):
    rng = np.random.default_rng(n_rows)
    tables = rng.normal(size=(2, 4, n_rows))
    tables[0, 0] += 5.0
    rows = np.unique(np.linspace(0, n_rows - 1, min(n_rows, 1024)).astype(int))
    worth = np.abs((tables[:, 0] - tables[:, 3])[:, rows].mean(axis=1)).max()
    for one, other in (tables, tables[::-1]):
        game = Difference(TableGame(one), TableGame(other))
        assert comparison._scale(game) == pytest.approx(worth)


def test_two_sided_p_values_are_those_of_student():
    values, se, df = np.array([1.0, -2.0, 0.0, 3.0, 0.0]), np.array([0.5, 1.0, 1.0, 0.0, 0.0]), 7.0
    found = comparison.two_sided(values, se, np.full(5, df))
    expected = [2 * stats.t.sf(2.0, df), 2 * stats.t.sf(2.0, df), 1.0, 0.0, 1.0]
    np.testing.assert_allclose(found, expected)
