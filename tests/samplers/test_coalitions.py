import math

import numpy as np
import pytest

from dsage._random import Streams
from dsage.games.base import prefixes
from dsage.samplers.coalitions import prefix_coalitions, random_coalitions


@pytest.mark.parametrize("n_players", [1, 2, 3])
def test_all_coalitions_are_taken_where_there_are_few_as_often_as_orderings_give_them(n_players):
    known, weights = prefix_coalitions(n_players, 8, np.random.default_rng(0))
    assert len(known) == 2**n_players - 1
    sizes = known.sum(axis=1)
    for size in range(n_players):
        assert weights[sizes == size].sum() == pytest.approx(1 / n_players)
    assert len(np.unique(weights[sizes == n_players - 1])) == 1


def test_coalitions_have_the_distribution_of_prefixes_of_random_orderings():
    generator = np.random.default_rng(0)
    counts: dict[bytes, float] = {}
    for _ in range(3000):
        known, weights = prefix_coalitions(5, 8, generator)
        assert not known.all(axis=1).any()
        assert weights.sum() == pytest.approx(1.0)
        for mask, weight in zip(known, weights, strict=True):
            counts[mask.tobytes()] = counts.get(mask.tobytes(), 0.0) + weight / 3000
    orders = np.array([np.random.default_rng(seed).permutation(5) for seed in range(200)])
    for mask in prefixes(orders)[:, :-1].reshape(-1, 5):
        exact = 1 / (5 * math.comb(5, int(mask.sum())))
        assert counts[mask.tobytes()] == pytest.approx(exact, rel=0.25)


def test_sizes_are_stratified_where_there_are_many_players():
    known, weights = prefix_coalitions(100, 8, np.random.default_rng(3))
    sizes = np.sort(known.sum(axis=1))
    assert ((sizes >= 12.5 * np.arange(8) - 1) & (sizes < 12.5 * np.arange(1, 9))).all()
    np.testing.assert_allclose(weights, 1 / 8)


def test_few_coalitions_of_many_features_have_sizes_from_none_to_all_but_one():
    sizes = random_coalitions(100, 5, Streams(0)).sum(axis=1)
    assert sizes.tolist() == [0, 25, 50, 74, 99]
