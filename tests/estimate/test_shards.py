"""How many rows a unit has."""

import numpy as np
import pytest

from dsage import Graph
from dsage.estimate.plan import Plan
from dsage.games import Difference, Game


class Wide(Game):
    """Risks of zero, for any number of features and rows."""

    n_replicates = 2

    draws_per_risk = 0

    def __init__(self, n_features, n_rows, *, is_dear=True, n_draws=0):
        self.feature_names, self.n_rows = tuple(f"x{at}" for at in range(n_features)), n_rows
        self.is_dear, self.draws_per_risk = is_dear, n_draws

    @property
    def has_dear_rows(self):
        return self.is_dear

    def risks(self, known, rows, epoch=0):
        return np.zeros((len(known), len(rows), 2))


def sizes_of(game, **options):
    plan = Plan(game, random_state=0, exact="never", first_level="none", **options)
    rows = np.concatenate(plan.shards)
    assert np.sort(rows).tolist() == list(range(game.n_rows))
    assert all((np.diff(shard) > 0).all() for shard in plan.shards)
    return [len(shard) for shard in plan.shards]


@pytest.mark.parametrize(
    ("n_features", "size"), [(2, 64), (64, 64), (65, 65), (127, 127), (400, 40), (1500, 16)]
)
def test_units_of_drawn_games_have_at_most_so_many_rows(n_features, size):
    assert sizes_of(Wide(n_features, 3 * size)) == [size] * 3
    assert len(sizes_of(Wide(n_features, 3 * size + 1))) == 4


@pytest.mark.parametrize(("n_draws", "size"), [(8, 64), (9, 32), (64, 32)])
def test_units_of_games_with_many_draws_have_fewer_rows(n_draws, size):
    game = Wide(3, 3 * size, n_draws=n_draws)
    assert sizes_of(game) == [size] * 3
    assert Difference(game, game).draws_per_risk == n_draws


def test_units_of_exact_games_have_many_rows():
    assert sizes_of(Wide(3, 2048, is_dear=False)) == [1024, 1024]
    assert len(sizes_of(Wide(3, 2049, is_dear=False))) == 3
    assert sizes_of(Wide(3, 10, is_dear=False)) == [10]


def test_the_rows_of_a_unit_can_be_chosen():
    assert sizes_of(Wide(3, 90), rows_per_ordering=30) == [30] * 3
    assert sizes_of(Wide(3, 90), rows_per_ordering=1000) == [90]
    plan = Plan(Wide(3, 90), random_state=0, exact="never", first_level="none")
    assert [len(shard) for shard in plan.with_rows(45).shards] == [45, 45]
    assert [len(shard) for shard in plan.shards] == [45, 45]
    assert [len(shard) for shard in plan.with_rows(9).shards] == [9] * 10


def test_orderings_that_are_given_are_evaluated_on_all_rows():
    orders = [[f"x{at}" for at in range(3)]]
    assert sizes_of(Wide(3, 500), orderings=orders) == [500]


def test_units_of_an_audit_have_a_sixteenth_of_the_rows():
    oracle = Graph(["x0", "x1", "y"], [("x0", "x1"), ("x1", "y")]).oracle("y")
    plan = Plan(Wide(2, 128), random_state=0, exact="never", first_level="none", oracle=oracle)
    assert [len(shard) for shard in plan.shards_of(0)] == [64, 64]
    assert [len(shard) for shard in plan.shards_of(1)] == [4] * 32
    np.testing.assert_array_equal(
        np.concatenate(plan.shards_of(1)), np.concatenate(plan.shards_of(0))
    )
