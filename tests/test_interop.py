import itertools
import sys
import warnings
from math import comb, factorial

import numpy as np
import pytest

from dsage import Graph
from dsage.datasets import paper_graph
from dsage.estimate import run
from dsage.games import LossGame
from dsage.interop import to_shapiq
from exact_values import coalitions, shapley, tabulated
from given import all_coalitions
from small_games import (
    FEATURES,
    ORACLE,
    TableGame,
    exact_sampler,
    gaussian_game,
    suboptimal_gaussian_case,
)

with warnings.catch_warnings():
    # Its dependencies warn when they are imported.
    warnings.simplefilter("ignore")
    shapiq = pytest.importorskip("shapiq")

EVERY = all_coalitions(4)
PAIRS = list(itertools.combinations(range(4), 2))


@pytest.fixture
def table():
    return TableGame(np.random.default_rng(0).normal(size=(16, 5)), FEATURES)


def value(game, oracle=None):
    """v(S) = L(empty) - L(S) by definition, at boundaries where there is a graph."""

    def risk(members):
        if oracle is not None:
            known = np.isin(np.arange(4), list(members))[None]
            members = np.flatnonzero(oracle.boundary(known)[0])
        return game.risk(members)

    return tabulated(lambda members: risk(frozenset()) - risk(members), 4)


def second_difference(v, pair, rest):
    """What two features add together beyond what each adds alone, given others."""
    i, j = pair
    return v(rest | {i, j}) - v(rest | {i}) - v(rest | {j}) + v(rest)


def interactions(v, weight):
    """The weighted second differences of all pairs."""
    return {
        pair: sum(
            weight(len(rest)) * second_difference(v, pair, rest)
            for rest in coalitions(4)
            if not rest & set(pair)
        )
        for pair in PAIRS
    }


def sii(v):
    """The Shapley interaction index of pairs (Grabisch & Roubens 1999)."""
    return interactions(v, lambda t: factorial(4 - t - 2) * factorial(t) / factorial(4 - 1))


def stii(v):
    """The Shapley-Taylor index of pairs (Sundararajan et al. 2020), of order two."""
    return interactions(v, lambda t: 2 / 4 / comb(4 - 1, t))


def fsii(v):
    """The faithful Shapley interaction index (Tsai et al. 2023): a constrained regression."""
    sets = [s for s in coalitions(4) if 0 < len(s) <= 2]
    middle = [s for s in coalitions(4) if 0 < len(s) < 4]
    design = np.array([[float(part <= s) for part in sets] for s in middle])
    weights = np.array([1 / (comb(4, len(s)) * len(s) * (4 - len(s))) for s in middle])
    gram = design.T * weights @ design
    ones = np.ones(len(sets))
    system = np.block([[gram, ones[:, None]], [ones[None], np.zeros((1, 1))]])
    right = np.append(design.T @ (weights * [v(s) for s in middle]), v(frozenset(range(4))))
    solved = np.linalg.solve(system, right)
    return {tuple(sorted(s)): x for s, x in zip(sets, solved[:-1], strict=True) if len(s) == 2}


@pytest.mark.parametrize("oracle", [None, ORACLE])
def test_values_are_reductions_of_the_risk(table, oracle):
    game = to_shapiq(table, oracle)
    v = value(table, oracle)
    expected = [v(frozenset(np.flatnonzero(row).tolist())) for row in EVERY]
    np.testing.assert_allclose(game(EVERY), expected, atol=1e-12)
    np.testing.assert_allclose(game(EVERY.astype(int)), expected, atol=1e-12)
    assert game.n_players == 4
    assert game([("b", "e")])[0] == pytest.approx(v(frozenset([1, 3])), abs=1e-12)


def test_the_game_is_normalized(table):
    game = to_shapiq(table)
    assert game.normalization_value == 0.0
    assert game.is_normalized
    assert game(game.empty_coalition)[0] == 0.0


@pytest.mark.parametrize("oracle", [None, ORACLE])
def test_first_order_values_are_those_of_a_run(table, oracle):
    found = shapiq.ExactComputer(to_shapiq(table, oracle))("SV")
    singles = [found[(player,)] for player in range(4)]
    expected = run(table, oracle=oracle, exact="always", audit=False).values
    np.testing.assert_allclose(singles, expected, atol=1e-10)
    np.testing.assert_allclose(expected, shapley(tabulated(table.risk, 4), 4, oracle), atol=1e-10)


@pytest.mark.parametrize("oracle", [None, ORACLE])
@pytest.mark.parametrize(
    ("index", "by_hand"), [("SII", sii), ("k-SII", sii), ("STII", stii), ("FSII", fsii)]
)
def test_exact_interactions_of_pairs_are_those_computed_by_hand(table, index, by_hand, oracle):
    found = shapiq.ExactComputer(to_shapiq(table, oracle))(index, order=2)
    for pair, expected in by_hand(value(table, oracle)).items():
        assert found[pair] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("make", "by_hand"),
    [
        (lambda: shapiq.KernelSHAPIQ(4, max_order=2, index="k-SII", random_state=0), sii),
        (lambda: shapiq.RegressionFSII(4, max_order=2, random_state=0), fsii),
        (lambda: shapiq.SHAPIQ(4, max_order=2, index="STII", random_state=0), stii),
    ],
)
def test_approximators_that_see_all_coalitions_are_exact(table, make, by_hand):
    found = make().approximate(16, to_shapiq(table, ORACLE))
    for pair, expected in by_hand(value(table, ORACLE)).items():
        assert found[pair] == pytest.approx(expected, abs=1e-6)


def test_coalitions_that_share_a_boundary_are_evaluated_once(table):
    game = to_shapiq(table, ORACLE)
    for _ in range(2):
        game(EVERY)
    n_boundaries = len(np.unique(ORACLE.boundary(EVERY), axis=0))
    assert game.n_evaluated == n_boundaries * 5
    assert len(table.asked) == len(set(table.asked)) == n_boundaries < 16


def test_with_a_graph_far_fewer_evaluations_are_made():
    """Nine features of a sparse graph: a few boundaries stand for hundreds of coalitions."""
    law = paper_graph("dag_s(2)")
    oracle = law.graph.oracle(law.target)
    game = TableGame(np.random.default_rng(0).normal(size=(1 << 9, 1)), oracle.feature_names)
    with_graph, without = to_shapiq(game, oracle), to_shapiq(game)
    for each in (with_graph, without):
        shapiq.ExactComputer(each)("k-SII", order=2)
    assert without.n_evaluated == 1 << 9
    assert with_graph.n_evaluated * 10 < without.n_evaluated


def test_rows_are_averaged_over_as_asked(table):
    rows = np.array([4, 1])
    expected = table.table[0, rows].mean() - table.table[:, rows].mean(axis=1)
    codes = EVERY @ (1 << np.arange(4))
    np.testing.assert_allclose(to_shapiq(table, rows=rows)(EVERY), expected[codes], atol=1e-12)
    np.testing.assert_allclose(to_shapiq(table, rows=[4, 1])(EVERY), expected[codes], atol=1e-12)


def test_many_coalitions_are_evaluated_in_chunks(table, monkeypatch):
    expected = to_shapiq(table)(EVERY)
    table.asked.clear()
    monkeypatch.setattr(sys.modules[to_shapiq.__module__], "_AT_ONCE", 3)
    np.testing.assert_array_equal(to_shapiq(table)(EVERY), expected)
    assert len(table.asked) == 16


def test_a_model_is_handed_over_with_draws_and_without():
    case = suboptimal_gaussian_case()
    X, y = case.sample(100, np.random.default_rng(0))
    truth = sii(tabulated(lambda s: case.risk_on(X, y)(frozenset()) - case.risk_on(X, y)(s), 4))
    affine = shapiq.ExactComputer(to_shapiq(gaussian_game(case, X, y)))("SII", order=2)
    drawn = LossGame(case.predict, exact_sampler(case), X, y, n_draws=64, random_state=0)
    epochs = [
        shapiq.ExactComputer(to_shapiq(drawn, epoch=epoch))("SII", order=2) for epoch in range(4)
    ]
    for pair, expected in truth.items():
        assert affine[pair] == pytest.approx(expected, abs=1e-9)
        found = np.array([each[pair] for each in epochs])
        # Student's distribution with three degrees of freedom, for six pairs.
        assert abs(found.mean() - expected) < 12.0 * found.std(ddof=1) / 2.0
        assert found.std(ddof=1) < 0.05


@pytest.mark.parametrize(
    ("rows", "error", "text"),
    [
        ([0, 5], ValueError, "rows must be from 0 to 4; got 5"),
        ([-1], ValueError, "rows must be from 0 to 4; got -1"),
        ([], TypeError, "rows must be positions of rows, at least one"),
        ([0.5], TypeError, "rows must be positions of rows, at least one"),
        ([[0]], TypeError, "rows must be positions of rows, at least one"),
    ],
)
def test_rows_outside_the_data_are_refused(table, rows, error, text):
    with pytest.raises(error, match=text):
        to_shapiq(table, rows=rows)


def test_objects_that_are_not_games_or_fitting_oracles_are_refused(table):
    with pytest.raises(TypeError, match="game must be a game; got 'int'"):
        to_shapiq(3)
    with pytest.raises(ValueError, match="oracle must be about the features of the game"):
        to_shapiq(table, Graph(["x", "y"], []).oracle("y"))
    with pytest.raises(ValueError, match="epoch must be"):
        to_shapiq(table, epoch=-1)


def test_without_shapiq_the_extra_is_named(table, monkeypatch):
    monkeypatch.setitem(sys.modules, "shapiq", None)
    with pytest.raises(ImportError, match=r"pip install 'dsage\[shapiq\]'"):
        to_shapiq(table)
