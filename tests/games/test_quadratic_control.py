"""A control of the draws of a mixture: unbiased, and worth its while for smooth models."""

import numpy as np
import pandas as pd
import pytest

from dsage.games import LossGame
from dsage.games.quadratic_control import QuadraticControl
from dsage.samplers import Mix
from dsage.samplers.projections import Projected

GENERATOR = np.random.default_rng(0)
SIDE = GENERATOR.choice([-1.5, 1.5], 600)
CODE = np.where(GENERATOR.random(600) < 0.3 + 0.2 * (SIDE > 0), "a", "b")
NUMBERS = SIDE[:, None] + GENERATOR.normal(size=(600, 3))
GAPS = GENERATOR.random(600) < 0.2
X = pd.DataFrame(NUMBERS, columns=list("xyz")).assign(
    w=np.where(GAPS, np.nan, NUMBERS[:, 0] + GENERATOR.normal(size=600)), code=CODE
)
Y = NUMBERS[:, 0] + GENERATOR.normal(size=600)
MIX = Mix().fit(X)
ORDER = np.array([2, 4, 0, 3, 1])


def smooth(rows):
    """Has interactions, and no effect of a missing number."""
    return rows["x"] * rows["y"] + rows["z"] + 0.5 * rows["w"].fillna(0.0) + (rows["code"] == "a")


def rough(rows):
    return np.sign(np.sin(20.0 * rows["x"]))


def classify(rows):
    p = 1.0 / (1.0 + np.exp(-smooth(rows)))
    return np.column_stack([1.0 - p, p])


def sums_of(scores, weights):
    """Return the sums of scores (n_rows, n_draws, n_scores) from two known components."""
    drawn = np.moveaxis(scores @ weights, 2, 0)
    n_rows = len(scores)
    means = np.stack([np.full((n_rows, 2), [0.3, -1.0]) * each for each in weights.sum(axis=0)])
    variances = np.repeat((weights**2).sum(axis=0)[:, None, None], 2, axis=2)
    return Projected(drawn, np.full((n_rows, 2), [0.25, 0.75]), means, variances)


def test_noise_has_mean_zero_given_what_is_known():
    rng = np.random.default_rng(1)
    scores = rng.normal(size=(4000, 3))
    outputs = np.stack([scores[:, 0] * scores[:, 1] + scores[:, 2], scores[:, 1] ** 2], axis=1)
    control = QuadraticControl.fit(scores, outputs)
    n_draws = 40_000
    centers = rng.choice([0.3, -1.0], size=(1, n_draws, 1), p=[0.25, 0.75])
    drawn = sums_of(centers + rng.normal(size=(1, n_draws, 3)), control._weights)
    noise = control.noise(drawn)
    assert noise.shape == (1, n_draws, 2)
    assert (noise.std(axis=1) > 0.5).all()
    assert (np.abs(noise.mean(axis=1)) < 4.5 * noise.std(axis=1) / np.sqrt(n_draws)).all()
    # One output for each row is the same as that output of all.
    for output in (0, 1):
        np.testing.assert_array_equal(control.noise(drawn, np.array([output])), noise[..., output])


def test_a_quadratic_function_is_followed_exactly():
    scores = np.random.default_rng(1).normal(size=(4000, 3))
    output = 2.0 + scores[:, 0] * scores[:, 1] + scores[:, 2] - 0.5 * scores[:, 2] ** 2
    control = QuadraticControl.fit(3.0 * scores - 1.0, output[:, None])
    sums = sums_of((3.0 * scores - 1.0)[None], control._weights)
    noise = control.noise(sums)[0, :, 0]
    # Up to a constant, and what the penalty of 2 / 4,000 shrinks.
    assert np.std(noise - output) < 2e-3 * np.std(output)


@pytest.mark.parametrize("output", ["rough", "constant"])
def test_what_no_quadratic_function_explains_has_no_control(output):
    scores = np.random.default_rng(1).normal(size=(4000, 3))
    found = np.sign(np.sin(20.0 * scores[:, 0])) if output == "rough" else np.ones(4000)
    assert QuadraticControl.fit(scores, found[:, None]) is None
    # Its noise is zero beside another output that has one.
    both = QuadraticControl.fit(scores, np.stack([found, scores[:, 0]], axis=1))
    noise = both.noise(sums_of(scores[None], both._weights))
    assert not noise[..., 0].any()
    assert noise[..., 1].any()


def test_many_scores_have_products_of_the_strongest_ones_only():
    scores = np.random.default_rng(1).normal(size=(4000, 60))
    output = 3.0 * scores[:, 50] + 3.0 * scores[:, 7] + 2.0 * scores[:, 7] * scores[:, 50]
    control = QuadraticControl.fit(scores, output[:, None])
    noise = control.noise(sums_of(scores[None], control._weights))[0, :, 0]
    assert np.var(noise - output) < 0.05 * np.var(output)
    assert QuadraticControl.fit(scores[:400], output[:400, None]) is None


def test_a_control_lowers_the_noise_and_keeps_the_mean():
    rows, y = X[:40], Y[:40]
    game = LossGame(smooth, MIX, rows, y, random_state=0)
    plain = LossGame(smooth, MIX, rows, y, random_state=0, draw_control="none")
    assert isinstance(game._control, QuadraticControl)
    everything, needed, epochs = np.arange(40), np.ones((1, 6), bool), range(40)
    found, other = (
        np.array([each.path_risks(ORDER[None], everything, at, needed)[0] for at in epochs])
        for each in (game, plain)
    )
    found, other = (risks.mean(axis=3)[:, 1:-1] for risks in (found, other))
    assert found.var(axis=0).mean() < 0.6 * other.var(axis=0).mean()
    se = np.sqrt((found.var(axis=0, ddof=1) + other.var(axis=0, ddof=1)) / len(epochs))
    z = (found.mean(axis=0) - other.mean(axis=0))[se > 0.0] / se[se > 0.0]
    # The risks of a row for the four prefixes are correlated: about 40 are independent.
    assert np.square(z).mean() < 1.0 + 4.5 * np.sqrt(2 / 40)


def test_there_is_none_for_probabilities_and_for_rough_models():
    labels = (Y[:40] > 0).astype(int)
    game = LossGame(classify, MIX, X[:40], labels, loss="cross_entropy", random_state=0)
    assert game._control is None
    assert LossGame(rough, MIX, X[:40], Y[:40], random_state=0)._control is None


def test_risks_do_not_depend_on_chunks_or_other_rows():
    needed = np.ones((1, 6), bool)
    whole = LossGame(smooth, MIX, X[:30], Y[:30], random_state=0)
    small = LossGame(smooth, MIX, X[:30], Y[:30], random_state=0, max_bytes=5_000)
    some = np.array([3, 17, 29])
    one = whole.path_risks(ORDER[None], np.arange(30), 0, needed)
    np.testing.assert_array_equal(one, small.path_risks(ORDER[None], np.arange(30), 0, needed))
    np.testing.assert_array_equal(one[:, :, some], whole.path_risks(ORDER[None], some, 0, needed))
