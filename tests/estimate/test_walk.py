import itertools

import numpy as np
import pytest

from dsage import Graph
from dsage.estimate.walk import Boundaries, Prefixes, play
from dsage.games import Cached
from dsage.games.base import by_feature, prefixes
from dsage.graphs import NoSeparation
from exact_values import boundary, is_separated
from tables import NAMES, PathTable, Table

# a -> b -> c -> y -> d: c separates a and b from y, b separates a, and nothing separates d.
CHAIN = Graph([*NAMES, "y"], [("a", "b"), ("b", "c"), ("c", "y"), ("y", "d")]).oracle("y")
APART = Graph([*NAMES, "y"], []).oracle("y")
ORDERS = np.array(list(itertools.permutations(range(4))))
ROWS = np.array([4, 0, 5])


def naive(game, orders, rows, epoch, *, risk_of=None, skips=None):
    """Surpluses by the definition, one ordering, one step at a time."""
    risk_of = (lambda coalition: coalition) if risk_of is None else risk_of
    values = np.zeros((len(orders), len(rows), game.n_replicates, orders.shape[1]))
    for number, order in enumerate(orders):
        for position, feature in enumerate(order):
            before = frozenset(order[:position].tolist())
            if skips is not None and skips(before, feature):
                continue
            after = before | {int(feature)}
            values[number, :, :, feature] = game.risk(risk_of(before), rows, epoch) - game.risk(
                risk_of(after), rows, epoch
            )
    return values


def separated(oracle):
    return np.array(
        [
            [
                is_separated(oracle, frozenset(order[: order.index(feature)]), feature)
                for feature in range(4)
            ]
            for order in ORDERS.tolist()
        ]
    )


# Orderings as coalitions


def test_prefixes_hold_the_features_before_each_position():
    known = prefixes(np.array([[2, 0, 1], [1, 2, 0]]))
    expected = [[set(), {2}, {0, 2}, {0, 1, 2}], [set(), {1}, {1, 2}, {0, 1, 2}]]
    assert [[set(np.flatnonzero(each)) for each in ordering] for ordering in known] == expected


def test_values_by_position_are_reordered_by_feature():
    steps = np.array([[10.0, 20.0, 30.0]])
    np.testing.assert_array_equal(by_feature(steps, np.array([[2, 0, 1]])), [[20.0, 30.0, 10.0]])


# Prefixes


@pytest.mark.parametrize("kind", [Table, PathTable])
@pytest.mark.parametrize("epoch", [0, 2])
def test_plain_surpluses_are_differences_along_each_ordering(kind, epoch):
    game = kind()
    values, skipped = play(Prefixes(game)(ORDERS, ROWS, epoch), game)
    np.testing.assert_array_equal(values, naive(game, ORDERS, ROWS, epoch))
    assert not skipped.any()
    total = game.risk((), ROWS, epoch) - game.risk((0, 1, 2, 3), ROWS, epoch)
    np.testing.assert_allclose(values.sum(axis=3), np.broadcast_to(total, values.shape[:3]))


@pytest.mark.parametrize("kind", [Table, PathTable])
def test_an_oracle_that_separates_nothing_changes_nothing(kind):
    game = kind()
    plain = play(Prefixes(game)(ORDERS, ROWS, 0), game)
    asked = play(Prefixes(game, NoSeparation(NAMES))(ORDERS, ROWS, 0), game)
    np.testing.assert_array_equal(plain.values, asked.values)
    np.testing.assert_array_equal(plain.skipped, asked.skipped)


@pytest.mark.parametrize("kind", [Table, PathTable])
def test_separated_surpluses_are_zero_and_the_others_as_without_the_oracle_to_the_bit(kind):
    game = kind()
    plain = play(Prefixes(game)(ORDERS, ROWS, 1), game).values
    values, skipped = play(Prefixes(game, CHAIN)(ORDERS, ROWS, 1), game)
    np.testing.assert_array_equal(skipped, separated(CHAIN))
    assert 0 < skipped.mean() < 1
    at = np.broadcast_to(skipped[:, None, None, :], values.shape)
    np.testing.assert_array_equal(values[at], 0.0)
    np.testing.assert_array_equal(values[~at], plain[~at])
    expected = naive(game, ORDERS, ROWS, 1, skips=lambda s, j: is_separated(CHAIN, s, j))
    np.testing.assert_array_equal(values, expected)


@pytest.mark.parametrize("kind", [Table, PathTable])
def test_a_prefix_is_evaluated_only_where_a_surplus_needs_it(kind):
    for order in ORDERS.tolist():
        game = kind()
        _, skipped = play(Prefixes(game, CHAIN)(np.array([order]), ROWS, 0), game)
        needed = set()
        for position, feature in enumerate(order):
            if not skipped[0, feature]:
                needed |= {position, position + 1}
        assert game.asked == [tuple(sorted(order[:length])) for length in sorted(needed)]


def test_a_known_separator_spares_evaluations():
    # c d | b a: after c both b and a are separated, so nothing but {}, {c} and {c, d} is needed.
    game = Table()
    _, skipped = play(Prefixes(game, CHAIN)(np.array([[2, 3, 1, 0]]), ROWS, 0), game)
    assert game.asked == [(), (2,), (2, 3)]
    np.testing.assert_array_equal(skipped, [[True, True, False, False]])


@pytest.mark.parametrize("kind", [Table, PathTable])
def test_where_everything_is_separated_nothing_is_evaluated(kind):
    game = kind()
    values, skipped = play(Prefixes(game, APART)(ORDERS, ROWS, 0), game)
    np.testing.assert_array_equal(values, 0.0)
    assert skipped.all()
    assert not game.asked


def test_paths_are_not_used_unless_requested():
    game = PathTable()
    game.path_risks = None
    values = play(Prefixes(game, use_paths=False)(ORDERS, ROWS, 0), game).values
    np.testing.assert_array_equal(values, naive(game, ORDERS, ROWS, 0))


def test_orderings_may_come_one_at_a_time():
    game = Table()
    together = play(Prefixes(game, CHAIN)(ORDERS, ROWS, 0), game)
    for number, order in enumerate(ORDERS):
        alone = play(Prefixes(game, CHAIN)(order[None], ROWS, 0), game)
        np.testing.assert_array_equal(alone.values[0], together.values[number])
        np.testing.assert_array_equal(alone.skipped[0], together.skipped[number])


def test_one_feature_is_one_step():
    game = Table(["a"])
    values, _ = play(Prefixes(game)(np.array([[0]]), ROWS, 0), game)
    np.testing.assert_array_equal(values[0, :, :, 0], game.risk((), ROWS) - game.risk((0,), ROWS))


# Boundaries


@pytest.mark.parametrize("epoch", [0, 2])
def test_surpluses_at_boundaries_are_differences_of_their_risks(epoch):
    game = Table()
    values, skipped = play(Boundaries(CHAIN)(ORDERS, ROWS, epoch), Cached(game))
    expected = naive(game, ORDERS, ROWS, epoch, risk_of=lambda s: boundary(CHAIN, s))
    np.testing.assert_array_equal(values, expected)
    np.testing.assert_array_equal(skipped, separated(CHAIN))
    np.testing.assert_array_equal(np.moveaxis(values, 3, 1)[skipped], 0.0)


def test_surpluses_at_boundaries_add_up_along_every_ordering():
    game = Table()
    values, _ = play(Boundaries(CHAIN)(ORDERS, ROWS, 0), Cached(game))
    full = boundary(CHAIN, frozenset(range(4)))
    total = game.risk((), ROWS) - game.risk(full, ROWS)
    np.testing.assert_allclose(values.sum(axis=3), np.broadcast_to(total, values.shape[:3]))


def test_each_distinct_boundary_is_evaluated_once():
    game = Table()
    cached = Cached(game)
    for _ in range(2):
        play(Boundaries(CHAIN)(ORDERS, ROWS, 0), cached)
    every = {
        tuple(sorted(boundary(CHAIN, frozenset(order[:k]))))
        for order in ORDERS.tolist()
        for k in range(5)
    }
    assert len(game.asked) == len(every) < 16
    assert set(game.asked) == every


def test_boundaries_without_separation_are_plain_surpluses():
    game = Table()
    at_boundaries = play(Boundaries(NoSeparation(NAMES))(ORDERS, ROWS, 0), game)
    plain = play(Prefixes(game)(ORDERS, ROWS, 0), game)
    np.testing.assert_array_equal(at_boundaries.values, plain.values)
    np.testing.assert_array_equal(at_boundaries.skipped, plain.skipped)


# Some features only


@pytest.mark.parametrize("make", [Table, PathTable])
@pytest.mark.parametrize("wanted", [[1, 0, 0, 0], [0, 1, 0, 1], [1, 1, 1, 1]])
@pytest.mark.parametrize("kind", ["plain", "skipped", "boundaries"])
def test_surpluses_of_wanted_features_are_those_of_all(make, wanted, kind):
    game = make()
    walks = {
        "plain": Prefixes(game),
        "skipped": Prefixes(game, CHAIN),
        "boundaries": Boundaries(CHAIN),
    }
    mask = np.array(wanted, dtype=bool)
    every = play(walks[kind](ORDERS, ROWS, 1), game)
    some = play(walks[kind](ORDERS, ROWS, 1, mask), game)
    np.testing.assert_array_equal(some.values[..., mask], every.values[..., mask])
    np.testing.assert_array_equal(some.skipped, every.skipped)


def test_one_wanted_feature_takes_two_risks_of_an_ordering():
    game = Cached(Table())
    orders = np.array([[0, 1, 2, 3]])
    play(Prefixes(game)(orders, ROWS, 0, np.array([False, True, False, False])), game)
    assert game.n_evaluated == 2 * len(ROWS)
