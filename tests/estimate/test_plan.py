"""What a plan makes of its options."""

import numpy as np
import pytest

from dsage import Graph
from dsage.estimate.plan import Plan
from dsage.estimate.terms import Enumerated, Sampled
from dsage.games import Game
from dsage.orderings import Order
from pair_games import Pairs
from small_games import TableGame
from tables import NAMES, Table

GRAPH = Graph([*NAMES, "y"], [("a", "b"), ("b", "y"), ("c", "y"), ("y", "d")])
ORACLE = GRAPH.oracle("y")
CHAIN = Graph(list("abcdefghy"), list(zip("abcdefgh", "bcdefghy", strict=True))).oracle("y")


def plan_of(game=None, **options):
    return Plan(
        Table() if game is None else game, **{"exact": "never", "random_state": 0} | options
    )


def exact_game(n_features, n_rows=3):
    table = np.random.default_rng(0).normal(size=(2**n_features, n_rows))
    return TableGame(table, "abcdefghijkl"[:n_features])


@pytest.mark.parametrize(("n_features", "is_enumerated"), [(3, True), (7, True), (8, False)])
def test_few_coalitions_are_averaged_over_at_once(n_features, is_enumerated):
    # As many as 24 orderings would need: 24 * 8 and 24 * 9.
    plan = Plan(exact_game(n_features), random_state=0)
    assert (plan.enumeration is not None) == is_enumerated
    assert isinstance(plan.terms[0], Enumerated if is_enumerated else Sampled)


def test_boundaries_may_be_few_although_coalitions_are_many():
    plan = Plan(exact_game(8), oracle=CHAIN, random_state=0)
    assert plan.enumeration.n_coalitions == 9
    for exact, is_enumerated in (("always", True), ("never", False)):
        plan = Plan(exact_game(8), oracle=CHAIN, exact=exact, random_state=0)
        assert (plan.enumeration is not None) == is_enumerated


@pytest.mark.parametrize(
    ("orderings", "n_all"),
    [
        ("antithetic", 24),
        (Order(NAMES), 24),
        (Order(NAMES, [("a", "b")]), 12),
        (Order(NAMES, [("a", "b"), ("c", "d")]), 6),
        (Order(NAMES, [("a", "b"), ("b", "c"), ("c", "d")]), 1),
    ],
)
def test_the_number_of_all_orderings_is_that_which_keep_the_order(orderings, n_all):
    assert plan_of(exact="always", orderings=orderings).n_all_orderings == n_all


@pytest.mark.parametrize(
    ("options", "can_narrow"),
    [
        ({}, True),
        ({"oracle": ORACLE}, True),
        ({"oracle": ORACLE, "audit": False}, True),
        ({"oracle": ORACLE, "estimand": "sage"}, False),
        ({"exact": "always"}, False),
        ({"orderings": [list("abcd")]}, False),
        ({"game": exact_game(4)}, False),
    ],
)
def test_single_features_are_evaluated_further_only_if_that_is_possible_and_cheaper(
    options, can_narrow
):
    assert plan_of(**options).can_narrow == can_narrow


@pytest.mark.parametrize(
    ("options", "estimand", "n_terms", "shares", "is_audited_only"),
    [
        ({}, "sage", 1, False, False),
        ({"estimand": "sage"}, "sage", 1, False, False),
        ({"oracle": ORACLE}, "d-sage", 2, True, True),
        ({"oracle": ORACLE, "audit": False}, "d-sage", 1, True, False),
        ({"oracle": ORACLE, "estimand": "sage"}, "sage", 2, True, False),
        ({"oracle": ORACLE, "estimand": "sage", "audit": False}, "sage", 2, True, False),
        ({"oracle": ORACLE, "semantics": "skip"}, "d-sage", 2, False, True),
    ],
)
def test_terms_follow_from_the_graph_and_the_estimand(
    options, estimand, n_terms, shares, is_audited_only
):
    plan = plan_of(**options)
    assert (plan.estimand, len(plan.terms), plan.shares) == (estimand, n_terms, shares)
    assert plan.is_audited_only == is_audited_only
    assert plan.described["estimand"] == estimand
    assert plan.described["semantics"] == options.get("semantics", "boundary")
    assert plan.described["audit"] == str(options.get("audit", True))
    assert (plan.described["exact"], plan.described["first_level"]) == ("never", "auto")


class Alone(Game):
    """A game with draws and one replicate, whose errors cannot be known."""

    feature_names, n_rows, is_drawn = ("a", "b"), 4, True

    def __init__(self, n_replicates):
        self.n_replicates = n_replicates

    def risks(self, known, rows, epoch=0):
        return np.zeros((len(known), len(rows), self.n_replicates))


def test_a_single_replicate_tells_no_errors():
    assert not plan_of(Alone(1)).tells_errors
    assert plan_of(Alone(2)).tells_errors
    assert plan_of(exact_game(2)).tells_errors


@pytest.mark.parametrize(
    ("n_features", "options", "is_balanced"),
    [
        (32, {}, True),
        (33, {}, False),
        (5, {"orderings": "uniform"}, True),
        (5, {"orderings": Order([f"x{j}" for j in range(5)], [("x0", "x1")])}, False),
    ],
)
def test_cheap_games_have_balanced_orderings_if_batches_are_small(n_features, options, is_balanced):
    plan = plan_of(Pairs(n_features, 2), **options)
    found = plan._cheap_orderings()
    assert (found is not plan.orderings) == is_balanced
    if is_balanced:
        positions = np.sort(found.batch(0), axis=0)
        # Each feature is equally often at each position.
        assert (positions == positions[:, :1]).all()


@pytest.mark.parametrize(
    ("options", "has_control"),
    [
        ({}, True),
        ({"first_level": "none"}, False),
        ({"orderings": [[0, 1, 2, 3, 4]]}, False),
        ({"exact": "always"}, True),
    ],
)
def test_when_there_is_a_first_level(options, has_control):
    plan = plan_of(Pairs(5, 2), **options)
    assert (plan.control is not None) == has_control
    if has_control:
        # Few coalitions are averaged over in the cheap game.
        assert plan.control.is_exact
        exact = -np.array([
            np.diff(plan.game.game.first_level().mean_path_risks(np.array([order])))[0]
            for order in ([0, 1, 2, 3, 4], [4, 3, 2, 1, 0])
        ]).sum(axis=1)  # fmt: skip
        np.testing.assert_allclose(plan.control.mean.sum(), exact)


def test_a_cheap_game_of_many_coalitions_is_sampled():
    plan = plan_of(Pairs(17, 2))
    assert plan.control is not None
    assert not plan.control.is_exact
    assert plan_of(Pairs(16, 2)).control.is_exact
