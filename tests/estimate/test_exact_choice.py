import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from dsage.estimate import Estimation
from dsage.games import Game, LossGame
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
