from itertools import permutations

import numpy as np
import pytest
from scipy import stats

from dsage._random import Streams
from dsage.orderings import (
    KINDS,
    Given,
    Orderings,
    Uniform,
    as_orderings,
)
from exact_values import shapley

NAMES = ["a", "b", "c", "e"]


def make(kind, n_features=4, seed=0):
    return as_orderings(kind, [f"v{j}" for j in range(n_features)], Streams(seed))


def test_the_kinds_have_names_and_summaries():
    kinds = {"uniform", "antithetic", "stratified", "balanced", "orthogonal", "herding"}
    assert kinds <= set(KINDS)
    assert all(KINDS.summary(kind) for kind in KINDS)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_features", [1, 2, 5, 12])
def test_a_batch_holds_permutations(kind, n_features):
    orderings = make(kind, n_features)
    assert isinstance(orderings, Orderings)
    assert (orderings.n_features, orderings.n_batches) == (n_features, None)
    batch = orderings.batch(3)
    assert batch.shape == (orderings.batch_size, n_features)
    assert batch.dtype == np.intp
    np.testing.assert_array_equal(
        np.sort(batch, axis=1), np.tile(np.arange(n_features), (len(batch), 1))
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_depends_on_seed_and_number_alone(kind):
    orderings = make(kind, 20)
    forth = [orderings.batch(number) for number in range(5)]
    back = [make(kind, 20).batch(number) for number in reversed(range(5))]
    for one, other in zip(forth, reversed(back), strict=True):
        np.testing.assert_array_equal(one, other)
    assert not np.array_equal(orderings.batch(0), orderings.batch(1))
    assert not np.array_equal(orderings.batch(0), make(kind, 20, seed=1).batch(0))


def test_all_kinds_start_a_batch_with_the_same_ordering():
    for number in range(5):
        first = [make(kind, 9).batch(number)[0] for kind in KINDS]
        np.testing.assert_array_equal(first, np.tile(first[0], (len(KINDS), 1)))


def test_an_antithetic_batch_is_an_ordering_and_its_reverse():
    forth, back = make("antithetic", 7).batch(0)
    np.testing.assert_array_equal(forth, back[::-1])


@pytest.mark.parametrize("n_features", [1, 2, 3, 8, 11])
def test_a_stratified_batch_has_each_feature_once_at_each_position(n_features):
    square = make("stratified", n_features).batch(2)
    every = np.tile(np.arange(n_features)[:, None], (1, n_features))
    np.testing.assert_array_equal(np.sort(square, axis=0), every)


@pytest.mark.parametrize("n_features", [1, 2, 3, 8, 11])
def test_a_balanced_batch_holds_the_reverses_and_each_feature_equally_often_at_each_position(
    n_features,
):
    batch = make("balanced", n_features).batch(2)
    times = len(batch) // n_features
    assert times == (1 if n_features % 2 == 0 else 2)
    every = np.tile(np.repeat(np.arange(n_features), times)[:, None], (1, n_features))
    np.testing.assert_array_equal(np.sort(batch, axis=0), every)
    half = len(batch) // 2
    np.testing.assert_array_equal(batch[half:], batch[:half, ::-1])


def mean_surpluses(orderings, risk, number=0):
    """The mean over a batch of the surplus of each feature; risk is a function of a boolean mask."""
    batch = orderings.batch(number)
    total = np.zeros(orderings.n_features)
    for ordering in batch:
        known = np.zeros(orderings.n_features, dtype=bool)
        for feature in ordering:
            before = risk(known)
            known[feature] = True
            total[feature] += before - risk(known)
    return total / len(batch)


@pytest.mark.parametrize("n_features", [6, 7])
@pytest.mark.parametrize("kind", ["stratified", "balanced"])
def test_a_risk_of_the_size_alone_is_exact_within_a_batch(kind, n_features):
    values = mean_surpluses(make(kind, n_features), lambda known: np.exp(-known.sum()))
    np.testing.assert_allclose(values, (1 - np.exp(-n_features)) / n_features, rtol=1e-12)


@pytest.mark.parametrize("n_features", [6, 7])
@pytest.mark.parametrize("kind", ["antithetic", "balanced"])
def test_interactions_of_pairs_are_exact_within_a_batch(kind, n_features):
    """For the risk x'Ax, each pair's interaction is shared equally by the two."""
    matrix = np.random.default_rng(0).standard_normal((n_features, n_features))
    matrix += matrix.T
    values = mean_surpluses(make(kind, n_features), lambda known: known @ matrix @ known)
    np.testing.assert_allclose(values, -matrix.sum(axis=1), rtol=1e-10)


def test_a_stratified_batch_is_not_a_rotation_of_one_ordering():
    square = make("stratified", 12).batch(0)
    rotations = {tuple(np.roll(square[0], -shift)) for shift in range(12)}
    assert {tuple(row) for row in square} != rotations


@pytest.mark.parametrize("kind", KINDS)
def test_every_ordering_of_a_batch_is_uniform_by_itself(kind):
    """Chi-squared for all 24 orderings of four features, for each row of the batch."""
    orderings = make(kind)
    batches = np.array([orderings.batch(number) for number in range(6000)])
    cell = {ordering: at for at, ordering in enumerate(permutations(range(4)))}
    for row in range(orderings.batch_size):
        counts = np.bincount([cell[tuple(o)] for o in batches[:, row].tolist()], minlength=24)
        assert stats.chisquare(counts).pvalue > 1e-3


def test_stratified_batches_hold_all_pairs_of_orderings_that_share_no_position():
    """Not only rotations: any ordering that disagrees everywhere with the first may be second."""
    orderings = make("stratified")
    seen = set()
    for number in range(3000):
        square = orderings.batch(number)
        place = np.argsort(square[0])
        seen |= {tuple(place[row].tolist()) for row in square[1:]}
    derangements = {p for p in permutations(range(4)) if all(p[k] != k for k in range(4))}
    assert seen == derangements


def test_orderings_are_taken_by_names_and_by_positions():
    given = as_orderings(
        [["b", "a", "e", "c"], (0, 1, 2, 3), np.array([3, 2, 1, 0])], NAMES, Streams(0)
    )
    assert (given.n_batches, given.batch_size, given.n_features) == (3, 1, 4)
    batches = [given.batch(number).tolist() for number in range(3)]
    assert batches == [[[1, 0, 3, 2]], [[0, 1, 2, 3]], [[3, 2, 1, 0]]]
    matrix = as_orderings(np.array([[3, 2, 1, 0]]), NAMES, Streams(0))
    assert matrix.batch(0).tolist() == [[3, 2, 1, 0]]


def test_a_batch_that_is_changed_does_not_change_the_list():
    given = Given([[0, 1, 2, 3]], NAMES)
    given.batch(0)[:] = 0
    assert given.batch(0).tolist() == [[0, 1, 2, 3]]


def test_a_registered_kind_is_available_by_name():
    KINDS.register("toy", summary="as uniform")(Uniform)
    try:
        assert make("toy").batch(2).tolist() == make("uniform").batch(2).tolist()
    finally:
        KINDS.remove("toy")


def test_objects_with_the_members_are_used_as_they_are():
    orderings = Uniform(4, Streams(5))
    assert as_orderings(orderings, NAMES, Streams(0)) is orderings


def test_orderings_of_another_number_of_features_are_refused():
    with pytest.raises(ValueError, match="orderings must be of 4 features; got 5"):
        as_orderings(Uniform(5, Streams(0)), NAMES, Streams(0))


@pytest.mark.parametrize(
    ("orderings", "error", "text"),
    [
        ("uniforn", ValueError, "Did you mean 'uniform'"),
        ([], ValueError, "orderings must be at least one"),
        (["a", "b", "c", "e"], TypeError, "Put one ordering into a list"),
        ([0, 1, 2, 3], TypeError, "Put one ordering into a list"),
        ([["a", "b", "c"]], ValueError, "permutations of the 4 features, each once.*Missing: e"),
        ([["a", "b", "c", "c"]], ValueError, "Missing: e"),
        ([[0, 1, 2, 4]], ValueError, "Missing: e; positions count from 0"),
        ([[0, 1, 2, -1]], ValueError, "Missing: e"),
        ([[0, 1, 2, 3, 3]], ValueError, "Missing: none"),
        ([["a", "b", "c", "d"]], ValueError, "orderings must be one of the features; got 'd'"),
        ([[0.0, 1.0, 2.0, 3.0]], TypeError, "of names or positions; got 0.0"),
        (3, TypeError, "a kind, an Order, a list or an Orderings; got 3"),
    ],
)
def test_invalid_orderings_are_refused(orderings, error, text):
    with pytest.raises(error, match=text):
        as_orderings(orderings, NAMES, Streams(0))


def test_batches_beyond_the_list_and_below_zero_are_refused():
    given = Given([[0, 1, 2, 3]], NAMES)
    with pytest.raises(ValueError, match="number must be below 1; got 1"):
        given.batch(1)
    for orderings in (given, make("uniform")):
        with pytest.raises(ValueError, match="number must be at least 0"):
            orderings.batch(-1)


def test_an_empty_list_of_features_is_refused():
    with pytest.raises(ValueError, match="feature_names must be at least one"):
        as_orderings("uniform", [], Streams(0))


@pytest.mark.parametrize("kind", KINDS)
def test_the_mean_over_batches_is_unbiased(kind):
    """A game without structure: the exact values are within four standard errors."""
    n_features = 5
    table = np.random.default_rng(7).standard_normal(1 << n_features)

    def risk(known):
        return table[int(known @ (1 << np.arange(n_features)))]

    orderings = make(kind, n_features, seed=11)
    batches = [mean_surpluses(orderings, risk, number) for number in range(1200 // len(KINDS))]
    se = np.std(batches, axis=0, ddof=1) / np.sqrt(len(batches))
    exact = shapley(lambda coalition: table[sum(1 << feature for feature in coalition)], n_features)
    assert (se > 0).all()
    assert (np.abs(np.mean(batches, axis=0) - exact) < 4 * se).all()
