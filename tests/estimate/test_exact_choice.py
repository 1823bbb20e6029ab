import itertools
from functools import cache

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from dsage._random import Streams
from dsage.estimate import Estimation
from dsage.estimate.exact import enumerate_boundaries
from dsage.estimate.exact_choice import enumeration_pays
from dsage.estimate.walk import Prefixes
from dsage.games import Game, LossGame
from dsage.games.cached import Cached
from dsage.graphs import NoSeparation
from dsage.orderings import as_orderings
from dsage.samplers import Gaussian

NAMES = tuple("abcde")


class Noisy(Game):
    """Risks of a quadratic game, with noise of a given size and effects of orderings of another."""

    n_replicates = 2

    def __init__(self, noise, interaction, n_rows=100):
        self.feature_names, self.n_rows = NAMES, n_rows
        self._noise, self._interaction = noise, interaction

    def risks(self, known, rows, epoch=0):
        n_known = known.sum(axis=1)
        # Third order: averaging over both directions of an ordering does not remove it.
        values = known @ np.arange(5.0) + self._interaction * np.where(known[:, 0], n_known**2, 0)
        noise = np.stack(
            [
                np.random.default_rng([epoch, row]).normal(size=(2, 5)) @ known.T.astype(float)
                for row in rows
            ],
            axis=1,
        )
        return 100.0 - values[:, None, None] + self._noise * np.moveaxis(noise, 2, 0).swapaxes(1, 2)


def is_enumerated(game, **options):
    return Estimation(game, random_state=0, **options).plan.enumeration is not None


def test_orderings_are_enumerated_where_they_matter_more_than_draws():
    assert is_enumerated(Noisy(noise=0.01, interaction=1.0))
    assert not is_enumerated(Noisy(noise=1.0, interaction=0.01))


def test_few_rows_are_enumerated_without_a_trial():
    assert is_enumerated(Noisy(noise=1.0, interaction=0.01, n_rows=30))


@pytest.mark.parametrize("noise", [0.01, 1.0])
def test_the_choice_can_be_made_by_the_user(noise):
    game = Noisy(noise=noise, interaction=1.0 - noise)
    assert is_enumerated(game, exact="always")
    assert not is_enumerated(game, exact="never")


def test_without_draws_few_coalitions_are_enumerated():
    generator = np.random.default_rng(0)
    X = generator.normal(size=(50, 5))
    y = X.sum(axis=1)
    sampler = Gaussian().fit(X)
    game = LossGame(LinearRegression().fit(X, y), sampler, X, y)
    assert not game.is_drawn
    assert is_enumerated(game)


def test_the_pilot_is_not_part_of_the_estimate():
    one, other = (
        next(Estimation(Noisy(1.0, 0.01), random_state=0, exact=exact).steps())
        for exact in ("auto", "never")
    )
    np.testing.assert_array_equal(one.values, other.values)


@cache
def _slopes(epoch, row):
    return np.random.default_rng([epoch, row]).normal(size=(6, 5))


class Effects(Game):
    """Effects of orderings of a given size, and noise of each row, replicate and epoch."""

    feature_names = tuple("abcd")

    def __init__(self, size, n_rows=40, n_outputs=1):
        self.n_rows, self.n_outputs, self.n_replicates = n_rows, n_outputs, 2 * n_outputs
        self._effects = size * np.random.default_rng(5).normal(size=(16, n_rows, 1))

    def risks(self, known, rows, epoch=0):
        codes = known @ (1 << np.arange(4))
        slopes = np.stack([_slopes(epoch, int(row))[: self.n_replicates] for row in rows])
        noise = np.einsum(
            "rgf,cf->crg", slopes, np.column_stack([known, known[:, 0] & known[:, 1]])
        )
        return self._effects[codes][:, rows] + noise


class Similar(Game):
    """A first level that has about half of the effects."""

    feature_names, n_replicates = tuple("abcd"), 1

    def __init__(self, game):
        self.n_rows = game.n_rows
        own = np.random.default_rng(6).normal(size=game._effects.shape)
        self._effects = 3.0 * game._effects + own * game._effects.std()

    def risks(self, known, rows, epoch=0):
        return self._effects[known @ (1 << np.arange(4))][:, rows]


def surpluses_of(game, orders, rows, epoch):
    """By ordering, row, pseudo-value and feature, one coalition after the other."""
    found = np.zeros((len(orders), len(rows), game.n_replicates, 4))
    for values, order in zip(found, orders, strict=True):
        for at, feature in enumerate(order):
            before = np.isin(np.arange(4), order[:at])[None]
            after = np.isin(np.arange(4), order[: at + 1])[None]
            values[..., feature] = (
                game.risks(before, rows, epoch) - game.risks(after, rows, epoch)
            )[0]
    return found


def ratio_by_hand(game, orderings, cheap):
    """Cost times variance of all orderings, over cost times variance of a batch."""
    epoch, batches = 1 << 39, [(3 << 41) + number for number in range(4)]
    rows = np.array([int(each) for each in np.linspace(0, game.n_rows - 1, 16)])
    drawn = [
        surpluses_of(game, orderings.batch(batch), rows, epoch + 1 + number).mean(axis=(0, 2))
        for number, batch in enumerate(batches)
    ]
    x = np.stack(drawn) - np.mean(drawn, axis=0)
    if cheap is not None:
        like = [
            surpluses_of(cheap, orderings.batch(at), rows, 0).mean(axis=(0, 2)) for at in batches
        ]
        c = np.stack(like) - np.mean(like, axis=0)
        x = x - (x * c).sum() / (c * c).sum() * c
    varied = np.square(x).sum(axis=0).mean(axis=0).sum() / 3
    distinct = [
        len({frozenset(order[:k]) for order in orderings.batch(at).tolist() for k in range(5)})
        for at in batches
    ]
    orders = np.array(list(itertools.permutations(range(4))))
    every = surpluses_of(game, orders, rows, epoch).mean(axis=0)
    # Pseudo-values of outputs stand one after the other, and their mean is the value.
    every = every.reshape(16, game.n_outputs, 2, 4).mean(axis=1)
    exact = np.square(every[:, 0] - every[:, 1]).sum(axis=1).mean() / 4
    return 16 * exact / (np.mean(distinct) * varied)


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("has_control", [False, True])
def test_all_orderings_pay_if_their_cost_times_variance_is_lower(has_control, n_outputs):
    orderings = as_orderings("antithetic", tuple("abcd"), Streams(0))
    enumeration = enumerate_boundaries(NoSeparation(tuple("abcd")))

    def case(size, n_rows=200):
        game = Effects(size, n_rows, n_outputs)
        return game, Similar(game) if has_control else None

    low, high = 0.1, 20.0
    while high / low > 1.005:
        middle = np.sqrt(low * high)
        game, cheap = case(middle)
        is_low = ratio_by_hand(game, orderings, cheap) > 1.0
        low, high = (middle, high) if is_low else (low, middle)
    for size, pays in ((0.99 * low, False), (1.01 * high, True)):
        game, cheap = case(size)
        cached = Cached(game, max_bytes=1 << 20)
        control = None if cheap is None else (cheap, Prefixes(cheap))
        found = enumeration_pays(cached, enumeration, orderings, Prefixes(cached), control)
        assert found == pays
        # Nothing of it is kept.
        assert not len(cached.state()["coalitions"])
    # With few rows a trial would cost as much: 4 batches of 2 orderings, with 5 prefixes each.
    for n_rows, pays in ((16 * (40 + 16) // 16, True), (16 * (40 + 16) // 16 + 1, False)):
        game, cheap = case(0.1 * low, n_rows)
        cached = Cached(game, max_bytes=1 << 20)
        found = enumeration_pays(cached, enumeration, orderings, Prefixes(cached), None)
        assert found == pays
        assert (cached.n_distinct == 0) == pays
