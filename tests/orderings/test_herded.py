from itertools import permutations

import numpy as np
import pytest

from dsage._random import Streams
from dsage.orderings import Herded
from dsage.orderings.herded import mallows_kernel


def every(n_features):
    return np.array(list(permutations(range(n_features))))


def discrepancy(orderings):
    """The squared distance to all orderings in the space of the kernel (MMD^2).

    It is the mean of the kernel over pairs of the set, less its mean over all orderings: 1 / d!
    times the generating function of the number of inversions.
    """
    n_features = orderings.shape[1]
    q = np.exp(-4 / max(n_features * (n_features - 1) / 2, 1))
    sizes = np.arange(1, n_features + 1)
    mean = np.prod((1 - q**sizes) / ((1 - q) * sizes))
    return mallows_kernel(orderings, orderings).mean() - mean


def test_the_kernel_counts_pairs_in_another_order():
    orderings = every(4)
    for s, row in zip(orderings[:5], mallows_kernel(orderings[:5], orderings), strict=True):
        for t, found in zip(orderings, row, strict=True):
            place, other = np.argsort(s), np.argsort(t)
            n_dis = sum(
                (place[i] < place[j]) != (other[i] < other[j]) for i in range(4) for j in range(i)
            )
            assert found == pytest.approx(np.exp(-4 * n_dis / 6))


@pytest.mark.parametrize("n_features", [1, 2, 3, 5])
def test_all_orderings_have_no_discrepancy(n_features):
    assert discrepancy(every(n_features)) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("n_features", [4, 9, 19])
def test_herding_lowers_the_discrepancy_below_that_of_any_independent_sample(n_features):
    herded = discrepancy(Herded(n_features, Streams(1), n_orderings=12).batch(0))
    independent = [
        discrepancy(np.array([Streams(k)("x", i).permutation(n_features) for i in range(12)]))
        for k in range(200)
    ]
    assert herded < min(independent)


def test_renaming_leaves_the_discrepancy_of_every_batch_alone():
    orderings = Herded(7, Streams(0))
    found = [discrepancy(orderings.batch(number)) for number in range(5)]
    np.testing.assert_allclose(found, found[0], rtol=1e-12)


def test_the_second_ordering_reverses_the_first_one():
    batch = Herded(9, Streams(0)).batch(3)
    np.testing.assert_array_equal(batch[1], batch[0, ::-1])


def test_a_longer_herd_begins_like_a_shorter_one():
    short, long = (Herded(8, Streams(5), n_orderings=m) for m in (4, 20))
    np.testing.assert_array_equal(long.batch(2)[:4], short.batch(2))


@pytest.mark.parametrize("option", ["n_orderings", "n_candidates"])
def test_empty_herds_are_refused(option):
    with pytest.raises(ValueError, match=f"{option} must be at least 1; got 0"):
        Herded(5, Streams(0), **{option: 0})
