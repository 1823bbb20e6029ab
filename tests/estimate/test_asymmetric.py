"""Runs over the orderings that keep a partial order: asymmetric SAGE."""

import numpy as np
import pytest

from dsage.estimate.loop import Estimation
from dsage.estimate.plan import Plan
from dsage.estimate.running.fingerprint import fingerprint
from dsage.estimate.running.run import run
from dsage.estimate.running.stopping import NOrderings
from dsage.games import Game
from dsage.graphs import NoSeparation
from dsage.orderings import Order
from exact_values import extensions, tabulated, values_over
from small_games import (
    FEATURES,
    GRAPH,
    ORACLE,
    TableGame,
    gaussian_case,
    gaussian_game,
    suboptimal_gaussian_case,
)

CASE = suboptimal_gaussian_case()
DISTAL = Order.from_graph(GRAPH, FEATURES)
# c and e are free, and nothing is exact in one unit.
LOOSE = Order(FEATURES, [("c", "a")])
QUIET = pytest.mark.filterwarnings("ignore:Skipping by separation")


def exact_values(order, X, y, oracle=None, semantics="boundary"):
    risk = tabulated(CASE.risk_on(X, y), CASE.n_features)
    every = extensions(CASE.n_features, np.argwhere(order.arranged(FEATURES).before).tolist())
    return values_over(every, risk, CASE.n_features, oracle, semantics)


def rows(n_rows=80):
    return CASE.sample(n_rows, np.random.default_rng(0))


@QUIET
@pytest.mark.parametrize("semantics", ["boundary", "skip"])
@pytest.mark.parametrize("oracle", [None, ORACLE], ids=["SAGE", "d-SAGE"])
@pytest.mark.parametrize("order", [DISTAL, LOOSE], ids=["distal", "loose"])
def test_few_coalitions_are_averaged_over_exactly(order, oracle, semantics):
    X, y = rows()
    result = run(
        gaussian_game(CASE, X, y),
        oracle=oracle,
        semantics=semantics,
        orderings=order,
        random_state=0,
    )
    assert result.is_exact
    assert result.n_orderings == order.n_extensions
    np.testing.assert_allclose(
        result.values, exact_values(order, X, y, oracle, semantics), rtol=0, atol=1e-10
    )


@QUIET
@pytest.mark.parametrize("first_level", ["auto", "none"])
@pytest.mark.parametrize("is_drawn", [False, True], ids=["affine", "drawn"])
@pytest.mark.parametrize("oracle", [None, ORACLE], ids=["SAGE", "d-SAGE"])
def test_sampled_values_are_those_of_the_extensions(oracle, is_drawn, first_level):
    X, y = rows()
    result = run(
        gaussian_game(CASE, X, y, is_drawn=is_drawn, random_state=3),
        oracle=oracle,
        orderings=LOOSE,
        exact="never",
        first_level=first_level,
        stopping=NOrderings(300),
        audit=False,
        random_state=0,
    )
    assert not result.is_exact
    exact = exact_values(LOOSE, X, y, oracle)
    assert (np.abs(result.values - exact) < 4 * result.se + 1e-9).all()
    # The average over all orderings is another one.
    other = exact_values(Order(FEATURES), X, y, oracle)
    assert (np.abs(result.values - other) > 4 * result.se).any()


@QUIET
def test_the_corrected_estimate_is_plain_asymmetric_sage():
    X, y = rows()
    result = run(
        gaussian_game(CASE, X, y),
        oracle=ORACLE,
        estimand="sage",
        orderings=LOOSE,
        stopping=NOrderings(400),
        random_state=0,
    )
    exact = exact_values(LOOSE, X, y)
    assert (np.abs(result.values - exact) < 4 * result.se + 1e-9).all()


def test_an_order_in_another_sequence_gives_the_same_run():
    X, y = rows()
    one, other = (
        run(gaussian_game(CASE, X, y), orderings=order, exact="never", random_state=0)
        for order in (LOOSE, LOOSE.arranged(FEATURES[::-1]))
    )
    np.testing.assert_array_equal(one.values, other.values)


def test_a_root_cause_gets_the_credit_for_what_it_does_through_others():
    """The chain a -> b -> y: distal a has all that it tells, proximate it has nothing."""
    case = gaussian_case()
    X, y = case.sample(4000, np.random.default_rng(1))
    values = {
        direction: run(
            gaussian_game(case, X, y),
            oracle=ORACLE,
            orderings=Order.from_graph(GRAPH, FEATURES, direction),
            audit=False,
            random_state=0,
        ).values
        for direction in ("distal", "proximate")
    }
    alone = case.risk(frozenset()) - case.risk(frozenset([0]))
    assert values["distal"][0] == pytest.approx(alone, rel=0.1)
    assert values["proximate"][0] == pytest.approx(0, abs=1e-12)


class Backwards:
    """User-defined orderings: always the last feature first."""

    n_features, batch_size, n_batches = 3, 1, None

    def batch(self, number):
        return np.array([[2, 1, 0]])


def test_user_defined_orderings_are_not_enumerated():
    game = TableGame(np.random.default_rng(0).standard_normal((8, 5)))
    result = run(game, orderings=Backwards(), stopping=NOrderings(40), random_state=0)
    risk = tabulated(game.risk, 3)
    np.testing.assert_allclose(result.values, values_over([(2, 1, 0)], risk, 3), atol=1e-12)
    with pytest.raises(ValueError, match="exact must be 'auto' or 'never' for given orderings"):
        run(game, orderings=Backwards(), exact="always")


def wide_case():
    names = [f"{row}{k}" for row in "ab" for k in range(20)]
    return names, Order(names, [(f"a{k}", f"b{(k + s) % 20}") for k in range(20) for s in (0, 1)])


def test_orders_that_take_a_chain_have_no_first_level():
    names, order = wide_case()

    class Additive(Game):
        feature_names, n_rows, n_replicates = tuple(names), 4, 1

        def risks(self, known, rows, epoch=0):
            return np.repeat(-known.sum(axis=1, dtype=float)[:, None], len(rows), axis=1)[..., None]

        def first_level(self):
            raise RuntimeError("nobody should ask")

    estimation = Estimation(Additive(), orderings=order, random_state=0)
    assert estimation.plan.control is None
    assert estimation.plan.enumeration is None
    np.testing.assert_allclose(next(estimation.steps()).values, 1.0)
    with pytest.raises(ValueError, match="40 features have too many coalitions"):
        Estimation(Additive(), orderings=order, exact="always", oracle=NoSeparation(names))


def test_runs_with_other_orders_are_told_apart():
    """Orders that differ after what is shown of them."""
    game = TableGame(np.zeros((1 << 9, 2)))
    names = game.feature_names
    pairs = [(names[0], name) for name in names[1:]]
    one, same, other = (
        fingerprint(Plan(game, orderings=Order(names, each), random_state=0))
        for each in (pairs, pairs[::-1], [*pairs, (names[7], names[8])])
    )
    assert one.differences(same) == []
    assert "the order of the features" in one.differences(other)
