import pickle
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dsage._random import Streams
from dsage.orderings import Extensions, Order, Orderings, as_orderings
from dsage.orderings.partial.chain import Chain
from dsage.orderings.partial.ideals import chances, n_paths, ranks_of
from dsage.orderings.partial.parts import Mixed, decompose
from exact_values import extensions
from given import names, orders

# The letter N cannot be taken apart: a < c, b < c, b < e.
N = Order(["a", "b", "c", "e"], [("a", "c"), ("b", "c"), ("b", "e")])
# One of everything: the N before two chains side by side, and a feature by itself.
ALL = Order(
    list("abcefghi"),
    [*N.pairs, *((one, other) for one in "ce" for other in "fg"), ("f", "h")],
)
SHAPES = {
    "open": Order(list("abce")),
    "total": Order(list("abc"), [("c", "a"), ("a", "b")]),
    "tiers": Order.tiers([["a", "b", "c"], ["e", "f"]]),
    "two chains": Order(list("abcef"), [("a", "b"), ("b", "c"), ("e", "f")]),
    "tree": Order(list("abcef"), [("a", "b"), ("a", "c"), ("c", "e"), ("c", "f")]),
    "N": N,
}


def brute(order):
    return extensions(len(order.feature_names), np.argwhere(order.before).tolist())


def p_value(drawn, every):
    counts = Counter(map(tuple, np.asarray(drawn).tolist()))
    assert set(counts) <= set(every)
    if len(every) == 1:
        return 1.0
    return stats.chisquare([counts[each] for each in every]).pvalue


@pytest.mark.parametrize("shape", SHAPES)
def test_both_orderings_of_a_batch_are_uniform_over_the_extensions(shape):
    order = SHAPES[shape]
    orderings = Extensions(order, Streams(2))
    assert orderings.is_exact
    batches = np.array([orderings.batch(number) for number in range(2500)])
    for row in range(2):
        assert p_value(batches[:, row], brute(order)) > 1e-3


def test_an_order_of_every_shape_has_uniform_extensions():
    every = brute(ALL)
    batches = np.array(
        [Extensions(ALL, Streams(0)).batch(number) for number in range(40 * len(every))]
    )
    for row in range(2):
        assert p_value(batches[:, row], every) > 1e-3


@given(orders(max_features=9), st.integers(0, 2**40))
@settings(max_examples=80, deadline=None)
def test_every_ordering_of_every_batch_keeps_the_order(case, number):
    labels = names(case[0])
    order = Order(labels, [(labels[one], labels[other]) for one, other in case[1]])
    for ordering in Extensions(order, Streams(1)).batch(number):
        assert order.is_consistent(ordering)


def test_without_pairs_batches_are_antithetic():
    for number in range(5):
        forth, back = Extensions(Order(names(9)), Streams(4)).batch(number)
        np.testing.assert_array_equal(forth, back[::-1])


def test_the_partner_reverses_every_tier():
    order = Order.tiers([list("abc"), list("efgh"), list("i")])
    forth, mirrored = Extensions(order, Streams(0)).batch(0)
    expected = np.concatenate([forth[:3][::-1], forth[3:7][::-1], forth[7:]])
    np.testing.assert_array_equal(mirrored, expected)


@pytest.mark.parametrize("order", [N, ALL, SHAPES["tiers"]], ids=["N", "all", "tiers"])
def test_a_batch_depends_on_seed_and_number_alone(order):
    orderings = Extensions(order, Streams(0))
    forth = [orderings.batch(number) for number in range(12)]
    again = pickle.loads(pickle.dumps(orderings))
    back = [again.batch(number) for number in reversed(range(12))][::-1]
    np.testing.assert_array_equal(forth, back)
    assert len({block.tobytes() for block in forth}) > 1
    other = [Extensions(order, Streams(1)).batch(number) for number in range(12)]
    assert not np.array_equal(forth, other)


@given(orders(max_features=6))
@settings(max_examples=60, deadline=None)
def test_steps_through_ideals_have_the_shares_of_the_extensions(case):
    """Count, for every ideal, how many extensions pass it, and how they go on."""
    n_features, pairs = case
    before = np.zeros((n_features, n_features), dtype=bool)
    every = extensions(n_features, pairs)
    places = np.argsort(every, axis=1)
    before[:] = (places[:, :, None] < places[:, None, :]).all(axis=0)
    ranks = ranks_of(before)
    assert n_paths(ranks) == len(every)
    for rank, chance in zip(ranks, chances(ranks), strict=False):
        size = int(rank.ideals[0].sum())
        passed = Counter(frozenset(ordering[:size]) for ordering in every)
        stepped = Counter((frozenset(ordering[:size]), ordering[size]) for ordering in every)
        found = {
            (frozenset(np.flatnonzero(rank.ideals[source]).tolist()), feature): share
            for source, feature, share in zip(
                rank.source, rank.feature.tolist(), chance, strict=True
            )
        }
        assert set(found) == set(stepped)
        for step, share in found.items():
            assert share == pytest.approx(stepped[step] / passed[step[0]])


def test_too_many_ideals_are_not_listed():
    before = np.zeros((8, 8), dtype=bool)
    assert ranks_of(before, 255) is None
    assert sum(len(rank.ideals) for rank in ranks_of(before, 256)) == 256


def test_the_chain_is_uniform_within_its_tolerance():
    every = brute(N)
    chain = Chain(N.before, 1e-4)
    drawn = np.array([chain.draw(Streams(0)("x", number), 2) for number in range(1500)])
    assert p_value(drawn[:, 0], every) > 1e-3
    assert p_value(drawn[:, 1], every) > 1e-3


LARGER_N = Order(list("abcef"), [("a", "c"), ("b", "c"), ("b", "e")])


def moves(order, every):
    """The transition matrix of Bubley and Dyer between all extensions, from its definition."""
    n = len(order.feature_names)
    cell = {ordering: at for at, ordering in enumerate(every)}
    matrix = np.zeros((len(every), len(every)))
    for ordering, at in cell.items():
        for p in range(1, n):
            exchanged = list(ordering)
            exchanged[p - 1 : p + 1] = exchanged[p - 1 : p + 1][::-1]
            to = cell.get(tuple(exchanged), at)
            weight = p * (n - p) / ((n**3 - n) / 6)
            matrix[at, to] += weight / 2
            matrix[at, at] += weight / 2
    return matrix


@pytest.mark.parametrize("tolerance", [0.1, 1e-3])
def test_the_chain_is_as_close_to_uniform_as_its_bound_says(tolerance):
    every = brute(LARGER_N)
    n_steps = Chain(LARGER_N.before, tolerance).n_steps
    law = np.linalg.matrix_power(moves(LARGER_N, every), n_steps)
    assert np.abs(law - 1 / len(every)).sum(axis=1).max() / 2 <= tolerance


def test_draws_have_the_law_of_the_chain_after_its_steps():
    """So few steps that the law is not yet uniform: it tells how many were made, and which."""
    every = brute(LARGER_N)
    chain = Chain(LARGER_N.before, 4.0)
    assert chain.n_steps < 15
    drawn = np.array([chain.draw(Streams(0)("x", number), 2) for number in range(4000)])
    matrix = moves(LARGER_N, every)
    start = every.index((0, 1, 4, 3, 2))
    for state, n_steps in enumerate((chain.n_steps, chain.n_steps + -(-chain.n_steps // 4))):
        law = np.linalg.matrix_power(matrix, n_steps)[start]
        counts = Counter(map(tuple, drawn[:, state].tolist()))
        found = np.array([counts[each] for each in every])
        assert stats.chisquare(found, 4000 * law).pvalue > 1e-3
        assert stats.chisquare(found).pvalue < 1e-6


def test_a_chain_of_a_total_order_makes_no_step():
    chain = Chain(SHAPES["total"].before, 1e-3)
    assert chain.n_steps == 0
    assert chain.draw(np.random.default_rng(0), 2) == [[2, 0, 1]] * 2


def wide_order():
    """Twenty features, each below two of twenty others: far too many ideals."""
    pairs = [(f"a{k}", f"b{(k + shift) % 20}") for k in range(20) for shift in (0, 1)]
    return Order([f"{row}{k}" for row in "ab" for k in range(20)], pairs)


def test_an_order_with_too_many_ideals_is_drawn_by_a_chain():
    order = wide_order()
    orderings = Extensions(order, Streams(0))
    assert not orderings.is_exact
    batches = np.array([orderings.batch(number) for number in range(20)])
    np.testing.assert_array_equal(orderings.batch(3), batches[3])
    for ordering in batches.reshape(40, -1):
        assert order.is_consistent(ordering)
    # By symmetry all of the first row have one mean place, and the others mirror it.
    place = np.argsort(batches.reshape(40, -1), axis=1)
    early, late = place[:, :20].mean(), place[:, 20:].mean()
    assert early + late == 39
    assert len({tuple(ordering) for ordering in batches.reshape(40, -1)}) == 40


def test_the_parts_that_a_chain_draws_share_the_tolerance():
    before = np.zeros((41, 41), dtype=bool)
    before[:40, :40] = wide_order().before
    part = decompose(before, tolerance=0.41)
    (mixed,) = [each for each in part._parts if isinstance(each, Mixed)]
    assert mixed._chain.n_steps == Chain(wide_order().before, 0.40).n_steps


def test_orders_are_taken_as_orderings_in_the_order_of_the_features():
    orderings = as_orderings(
        Order(["b", "c", "a"], [("c", "a"), ("a", "b")]), list("abc"), Streams(0)
    )
    assert isinstance(orderings, Extensions)
    assert isinstance(orderings, Orderings)
    assert orderings.n_batches is None
    assert orderings.batch(0).tolist() == [[2, 0, 1], [2, 0, 1]]


def test_orders_without_some_feature_are_refused():
    with pytest.raises(ValueError, match=r"those of the order; got \['c'\]"):
        as_orderings(Order(["a", "b"]), ["a", "b", "c"], Streams(0))


def test_objects_that_are_not_orders_are_refused():
    with pytest.raises(TypeError, match="order must be an Order; got 'a < b'"):
        Extensions("a < b", Streams(0))
