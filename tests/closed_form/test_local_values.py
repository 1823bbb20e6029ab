"""Local values against exact ones, and how they tie back to SAGE values."""

import itertools

import numpy as np
import pandas as pd
import pytest

from dsage import Graph
from dsage.estimate import as_stopping, run, run_local
from dsage.games import LossGame, OutputGame
from dsage.models import as_model
from dsage.samplers import Gaussian
from exact_values import BinaryCase, boundary, coalitions, mask, shapley, tabulated
from small_games import (
    FEATURES,
    GRAPH,
    ORACLE,
    EmpiricalTable,
    binary_case_of_rows,
    exact_sampler,
    gaussian_case,
    gaussian_game,
    suboptimal_gaussian_case,
)

OPTIMAL, SUBOPTIMAL = gaussian_case(mean=[1.0, -2.0, 0.5, 0.0, 3.0]), suboptimal_gaussian_case()
X, Y = SUBOPTIMAL.sample(7, np.random.default_rng(3))
WAYS = {
    "plain": (None, "boundary"),
    "boundary": (ORACLE, "boundary"),
    "skip": (ORACLE, "skip"),
}
every_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


def output_game(case, rows=X, *, is_drawn=False, **options):
    """The game of a linear model; where it is drawn, nobody is told that it is affine."""
    model = case.predict if is_drawn else as_model(case.predict, "squared_error", affine=True)
    return OutputGame(model, exact_sampler(case), rows, **options)


def exact_local(case, rows, oracle=None, semantics="boundary"):
    """The definition, row by row: the Shapley values of ``v_x(S) = f_S(x)``."""

    def values(row):
        risk = tabulated(lambda inside: -float(case.predict_given(row[None], inside)[0]), 4)
        return shapley(risk, 4, oracle, semantics)

    return np.array([values(row) for row in np.asarray(rows)])


# Exact values


@every_way
@pytest.mark.parametrize("case", [OPTIMAL, SUBOPTIMAL], ids=["optimal", "suboptimal"])
def test_all_orderings_of_a_linear_model_give_the_exact_values(case, way):
    oracle, semantics = way
    found = run_local(output_game(case), oracle=oracle, semantics=semantics)
    np.testing.assert_allclose(found.values, exact_local(case, X, *way), atol=1e-11)
    assert found.is_exact
    assert (found.se == 0).all()
    assert found.n_orderings == 24


@every_way
@pytest.mark.parametrize("levels", ["auto", "none"])
@pytest.mark.parametrize("orderings", ["uniform", "antithetic"])
def test_sampled_orderings_come_to_the_exact_values(way, levels, orderings):
    oracle, semantics = way
    found = run_local(
        output_game(SUBOPTIMAL),
        oracle=oracle,
        semantics=semantics,
        exact="never",
        first_level=levels,
        orderings=orderings,
        stopping=as_stopping(tolerance=0.02),
        random_state=0,
    )
    truth = exact_local(SUBOPTIMAL, X, *way)
    assert found.se.max() <= 0.02 * np.ptp(found.values)
    assert (np.abs(found.values - truth) <= 4.5 * found.se + 1e-9).all()


@every_way
@pytest.mark.parametrize("exact", ["always", "never"])
def test_draws_come_to_the_exact_values(way, exact):
    oracle, semantics = way
    game = output_game(SUBOPTIMAL, is_drawn=True, random_state=2)
    found = run_local(
        game,
        oracle=oracle,
        semantics=semantics,
        exact=exact,
        random_state=0,
        stopping=as_stopping(tolerance=0.02),
    )
    truth = exact_local(SUBOPTIMAL, X, *way)
    assert found.se.max() <= 0.02 * np.ptp(found.values)
    # Student's errors: the standard errors rest on some 15 independent parts or more.
    assert found.df.min() > 10
    assert (np.abs(found.values - truth) <= 6 * found.se + 1e-9).all()


def test_a_classifier_gives_the_exact_values_of_its_probability():
    table, _, case = binary_case_of_rows(1000)
    model = as_model(case.predict, "cross_entropy", classes=[0, 1])
    sampler = EmpiricalTable(discrete=FEATURES).fit(table)
    game = OutputGame(model, sampler, table[:5], n_draws=64, random_state=1)
    found = run_local(game, exact="always", stopping=as_stopping(tolerance=0.02))
    truth = exact_local(case, table[:5])
    assert (np.abs(found.values - truth) <= 6 * found.se + 1e-9).all()
    assert found.se.max() <= 0.02 * np.ptp(found.values)


# Efficiency


@pytest.mark.parametrize("exact", ["always", "never"])
def test_values_of_a_row_sum_to_its_prediction_less_the_mean(exact):
    found = run_local(output_game(SUBOPTIMAL), exact=exact, random_state=0)
    mean = SUBOPTIMAL.predict(SUBOPTIMAL.mean[None, :4])[0]
    assert found.base_value == pytest.approx(mean)
    np.testing.assert_allclose(found.values.sum(axis=1), SUBOPTIMAL.predict(X) - mean, atol=1e-10)
    np.testing.assert_allclose(found.unexplained, 0.0, atol=1e-10)


def test_values_from_draws_sum_to_the_prediction_less_the_mean_of_these_draws():
    game = output_game(SUBOPTIMAL, is_drawn=True, random_state=2)
    found = run_local(game, exact="always", stopping=as_stopping(n_orderings=1))
    start = -game.risks(mask((), 4), np.arange(7), 0)[0].mean(axis=1)
    np.testing.assert_allclose(found.values.sum(axis=1), game.predictions - start, atol=1e-10)


def test_at_boundaries_values_sum_to_what_the_blanket_tells():
    found = run_local(output_game(SUBOPTIMAL), oracle=ORACLE)
    blanket = boundary(ORACLE, frozenset(range(4)))
    told = SUBOPTIMAL.predict_given(X, blanket)
    np.testing.assert_allclose(found.values.sum(axis=1) + found.base_value, told, atol=1e-10)
    np.testing.assert_allclose(found.unexplained, SUBOPTIMAL.predict(X) - told, atol=1e-10)


# Separation


def test_for_an_optimal_model_boundaries_change_nothing():
    """The closing question of the paper: Theorem 1 holds row by row, without the loss."""
    plain = run_local(output_game(OPTIMAL))
    at_boundaries = run_local(output_game(OPTIMAL), oracle=ORACLE)
    np.testing.assert_allclose(at_boundaries.values, plain.values, atol=1e-11)
    assert at_boundaries.n_evaluated < plain.n_evaluated
    other = run_local(output_game(SUBOPTIMAL), oracle=ORACLE).values
    assert np.abs(other - run_local(output_game(SUBOPTIMAL)).values).max() > 0.1


def test_a_bayes_classifier_predicts_the_same_at_boundaries():
    law = BinaryCase.of(GRAPH, "y", np.random.default_rng(5))
    for inside in coalitions(4):
        whole = law.predict_given(law.states, inside)
        np.testing.assert_allclose(law.predict_given(law.states, boundary(ORACLE, inside)), whole)


@pytest.mark.parametrize("is_drawn", [False, True])
def test_a_separated_feature_adds_exactly_nothing(is_drawn):
    """Given b, feature a tells nothing of y."""
    game = output_game(OPTIMAL, is_drawn=is_drawn, random_state=0)
    after = run_local(game, oracle=ORACLE, orderings=[["b", "a", "c", "e"]])
    np.testing.assert_array_equal(after.values[:, 0], 0.0)
    before = run_local(game, oracle=ORACLE, orderings=[["a", "b", "c", "e"]])
    assert (before.values[:, 0] != 0).all()
    if not is_drawn:
        plain = run_local(game, orderings=[["b", "a", "c", "e"]])
        np.testing.assert_allclose(plain.values[:, 0], 0.0, atol=1e-12)


def test_a_feature_in_no_boundary_has_no_local_value():
    names = ["a", "b"]
    oracle = Graph([*names, "y"], [("b", "y")]).oracle("y")
    sampler = Gaussian.from_moments(np.zeros(2), np.eye(2), names)
    rows = pd.DataFrame(X[:, :2], columns=names)
    game = OutputGame(lambda frame: frame["a"] ** 2 + frame["b"], sampler, rows, random_state=0)
    found = run_local(game, oracle=oracle, stopping=as_stopping(n_orderings=10))
    np.testing.assert_array_equal(found.values[:, 0], 0.0)
    assert (found.values[:, 1] != 0).all()
    # The user can see that the model does use it.
    assert np.abs(found.unexplained).max() > 0.5


# Ties to SAGE


def test_the_mean_of_target_times_local_value_is_the_sage_value_of_an_optimal_model():
    """E[(Y - f_S)^2] - E[(Y - f_S+j)^2] = E[Y (f_S+j - f_S)] where f_S = E[Y | x_S].

    Local values of a linear model are linear in the row, so four rows give all of them.
    """
    rows = OPTIMAL.mean[:4] + np.eye(4)
    slopes = run_local(output_game(OPTIMAL, rows)).values
    covariance = OPTIMAL.covariance[:4, 4]
    np.testing.assert_allclose(slopes.T @ covariance, OPTIMAL.values(), atol=1e-10)


def test_loss_reductions_of_local_surpluses_average_to_the_sage_values():
    game = output_game(SUBOPTIMAL)
    total = np.zeros(4)
    for order in itertools.permutations(range(4)):
        surplus = run_local(game, orderings=[list(order)]).values[:, list(order)]
        after = game.predictions[:, None] - surplus.sum(axis=1, keepdims=True)
        after = after + np.cumsum(surplus, axis=1)
        before = after - surplus
        reduction = (Y[:, None] - before) ** 2 - (Y[:, None] - after) ** 2
        total[list(order)] += reduction.mean(axis=0) / 24
    sage = run(gaussian_game(SUBOPTIMAL, X, Y), exact="always")
    np.testing.assert_allclose(total, sage.values, atol=1e-12)


def test_with_the_same_draws_the_loss_reductions_are_those_of_the_loss_game():
    """One group has no jackknife, so the risk is the loss of the mean prediction itself."""
    options = {"n_draws": 4, "n_replicates": 1, "random_state": 5}
    game = output_game(SUBOPTIMAL, is_drawn=True, **options)
    losses = LossGame(
        SUBOPTIMAL.predict, exact_sampler(SUBOPTIMAL), X, Y, loss="squared_error", **options
    )
    order = [2, 0, 3, 1]
    surplus = run_local(game, orderings=[order]).values[:, order]
    after = game.predictions[:, None] - surplus.sum(axis=1, keepdims=True)
    after = after + np.cumsum(surplus, axis=1)
    reduction = (Y[:, None] - (after - surplus)) ** 2 - (Y[:, None] - after) ** 2
    sage = run(losses, orderings=[order])
    np.testing.assert_allclose(reduction.mean(axis=0), sage.values[order], atol=1e-12)
