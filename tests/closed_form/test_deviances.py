"""Three independent normals, ``f = exp(0.6 (x0 + x1 + x2))``, whose means are log-normal."""

import numpy as np
import pytest

from dsage.estimate import as_stopping, intervals, run
from dsage.games import LossGame
from dsage.models import as_loss
from dsage.samplers import Gaussian
from exact_values import shapley
from given import all_coalitions

RNG = np.random.default_rng(0)
SLOPE = 0.6
X = RNG.normal(size=(200, 3))
Y = np.exp(SLOPE * X.sum(axis=1)) * RNG.gamma(3.0, 1 / 3, size=200)
COUNTS = RNG.poisson(np.exp(SLOPE * X.sum(axis=1))).astype(float)
SAMPLER = Gaussian.from_moments(np.zeros(3), np.eye(3))
EVERY, ROWS = all_coalitions(3), np.arange(200)
LOSSES = {
    "poisson": COUNTS,
    "gamma": Y,
    "tweedie(1.5)": COUNTS,
    "squared_log_error": Y,
    "huber(0.7)": Y,
}


def predict(rows):
    return np.exp(SLOPE * np.asarray(rows).sum(axis=1))


def game_of(loss, seed=0, **options):
    return LossGame(predict, SAMPLER, X, LOSSES[loss], loss=loss, random_state=seed, **options)


def risk_of(loss):
    """The exact risk, as a function of a coalition."""

    def risk(coalition):
        known = sorted(coalition)
        spread = SLOPE**2 * (3 - len(known)) / 2
        mean = np.exp(SLOPE * X[:, known].sum(axis=1) + spread)
        return as_loss(loss)(LOSSES[loss], mean).mean()

    return risk


@pytest.mark.parametrize("loss", LOSSES)
def test_the_default_draws_leave_next_to_no_bias_of_any_risk(loss):
    game = game_of(loss)
    risks = np.array([game.risks(EVERY, ROWS, epoch).mean(axis=(1, 2)) for epoch in range(25)])
    exact = np.array([risk_of(loss)(np.flatnonzero(known)) for known in EVERY])
    se = risks.std(axis=0, ddof=1) / np.sqrt(len(risks))
    worth = exact[0] - exact[-1]
    assert (np.abs(risks.mean(axis=0) - exact) < 4 * se + 0.005 * worth).all()
    assert se.max() < 0.015 * worth


@pytest.mark.parametrize("loss", LOSSES)
def test_intervals_cover_the_exact_values(loss):
    exact = shapley(risk_of(loss), 3)
    rule = as_stopping(tolerance=0.1)
    found = run(game_of(loss), stopping=rule, random_state=0)
    low, high = intervals(found.values, found.se, df=found.df, confidence=0.999)
    assert ((low <= exact) & (exact <= high)).all()
