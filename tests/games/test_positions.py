"""What each feature adds to all prefixes of an ordering."""

from itertools import permutations

import numpy as np
import pytest

from dsage.games import MomentGame
from dsage.games.base import by_feature

NAMES = tuple("abcde")
EVERY = np.array(list(permutations(range(5))))


def make_game(n_rows=100, n_outputs=1, *, is_copied=False, is_weighted=False):
    generator = np.random.default_rng(n_rows)
    X = generator.normal(size=(n_rows, 5)) @ generator.normal(size=(5, 5))
    if is_copied:
        X[:, 4] = X[:, 0]
    output = X @ generator.normal(size=(5, n_outputs))
    target = output + generator.normal(size=output.shape)
    weights = generator.random(n_rows) if is_weighted else None
    return MomentGame(X, output, target, NAMES, sample_weight=weights)


def along(game, orders):
    return by_feature(-np.diff(game.mean_path_risks(orders), axis=1), orders)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"n_outputs": 3, "is_weighted": True},
        {"is_copied": True},
        {"n_rows": 3},
    ],
)
def test_over_all_orderings_they_are_the_values(options):
    game = make_game(**options)
    expected = along(game, EVERY).mean(axis=0)
    np.testing.assert_allclose(game.position_means(EVERY).mean(axis=0), expected, atol=1e-9)


def test_each_is_the_mean_over_coalitions_of_all_sizes():
    game = make_game()
    order = np.array([3, 0, 4, 1, 2])

    def value(members):
        known = np.zeros((1, 5), dtype=bool)
        known[0, list(members)] = True
        return -game.mean_risks(known)[0]

    expected = np.zeros(5)
    for place, feature in enumerate(order):
        for size in range(5):
            # Without the feature, the first ones of the others.
            others = [each for each in order[: size + (place < size)] if each != feature]
            expected[feature] += (value([*others, feature]) - value(others)) / 5
    np.testing.assert_allclose(game.position_means(order[None])[0], expected, rtol=1e-9)


def test_they_vary_less_than_what_features_add_at_their_position():
    game = make_game()
    alone, means = along(game, EVERY), game.position_means(EVERY)
    assert means.var(axis=0).sum() < alone.var(axis=0).sum() / 2


def test_they_do_not_depend_on_how_many_are_computed_at_once(monkeypatch):
    game = make_game(n_outputs=2)
    together = game.position_means(EVERY)
    monkeypatch.setattr("dsage.games.moment._CELLS", 60)
    np.testing.assert_array_equal(game.position_means(EVERY), together)


def test_a_feature_with_several_columns_has_none():
    generator = np.random.default_rng(0)
    X = generator.normal(size=(200, 70))
    output = X.sum(axis=1)
    names = tuple(f"x{at}" for at in range(70))
    assert MomentGame(X, output, output, names).has_position_means
    X[::3, 5] = np.nan
    assert not MomentGame(X, output, output, names).has_position_means
    # With few columns, balanced orderings are as good.
    assert not make_game().has_position_means
