"""Mechanisms: their noise has the law of training, and that of a row gives back its value."""

import numpy as np
import pytest

from dsage.data.possible import Range
from dsage.flow import fit_mechanisms
from dsage.flow.blocks import Column, classify, regress
from dsage.flow.mechanisms import Gaps, Levels, Nominal, Number

RNG = np.random.default_rng(0)
N = 2000
X = RNG.normal(size=N)
NUMBER = 0.5 * X**2 + 0.3 * RNG.normal(size=N)
FLAG = (RNG.random(N) < 1 / (1 + np.exp(-1.5 * X))) * 1.0
SHARES = np.exp(np.stack([0 * X, X, -X], axis=1))
SHARES /= SHARES.sum(axis=1, keepdims=True)
CLASS = (RNG.random(N)[:, None] > np.cumsum(SHARES, axis=1)).sum(axis=1) * 1.0
GAPS = np.where(RNG.random(N) < 1 / (1 + np.exp(2 - X)), np.nan, X + RNG.normal(size=N))
PARENT = [Column(X, False)]
MADE = {
    "number": (Number(NUMBER, PARENT), NUMBER),
    "whole number": (Number(np.rint(5 * X), PARENT, Range(-30, 30)), np.rint(5 * X)),
    "levels": (Levels(FLAG, PARENT), FLAG),
    "class": (Nominal(CLASS, PARENT), CLASS),
    "gaps": (Gaps(GAPS, PARENT), GAPS),
    "root": (Number(NUMBER, []), NUMBER),
    "root class": (Nominal(CLASS, []), CLASS),
}


@pytest.fixture
def rng():
    """Noise that does not depend on the tests before."""
    return np.random.default_rng(1)


def lines_of(mechanism, x=X):
    lines = mechanism.effects.lines([x])
    return np.broadcast_to(lines, (len(x), lines.shape[-1]))


@pytest.mark.parametrize("name", MADE)
def test_noise_of_rows_gives_back_their_values(name, rng):
    mechanism, values = MADE[name]
    lines = lines_of(mechanism)
    noise = mechanism.abduct(values, lines, rng.random((N, 3, mechanism.n_uniforms)))
    again = mechanism.value(np.broadcast_to(lines[:, None], (N, 3, lines.shape[1])), noise)
    np.testing.assert_allclose(again, np.repeat(values[:, None], 3, axis=1), atol=1e-9)
    exact = mechanism.value_of_rows(values, lines, np.repeat(lines[:, None], 3, axis=1), noise)
    np.testing.assert_array_equal(exact, np.repeat(values[:, None], 3, axis=1))


@pytest.mark.parametrize("name", MADE)
def test_noise_of_rows_has_the_law_of_background_noise(name, rng):
    # Averaged over rows of training, what is abducted is what is drawn.
    mechanism, values = MADE[name]
    uniforms = rng.random((2, N, 1, mechanism.n_uniforms))
    drawn = mechanism.draw(uniforms[0]).reshape(N, -1)
    abducted = mechanism.abduct(values, lines_of(mechanism), uniforms[1]).reshape(N, -1)
    for one, other in zip(drawn.T, abducted.T, strict=True):
        ranks = np.searchsorted(np.sort(one), np.quantile(other, [0.1, 0.25, 0.5, 0.75, 0.9])) / N
        # Both have errors of about 1 %, and whole numbers have ties.
        np.testing.assert_allclose(ranks, [0.1, 0.25, 0.5, 0.75, 0.9], atol=0.05)


def test_draws_of_a_class_have_its_probabilities(rng):
    mechanism = MADE["class"][0]
    for x in (-1.0, 1.0):
        lines = lines_of(mechanism, np.full(4000, x))
        drawn = mechanism.value(lines, mechanism.draw(rng.random((4000, mechanism.n_uniforms))))
        shares = np.exp([0.0, x, -x])
        found = [(drawn == code).mean() for code in range(3)]
        np.testing.assert_allclose(found, shares / shares.sum(), atol=0.06)


def test_class_whose_probability_rises_is_kept(rng):
    # Gumbel noise: a change that makes the class of a row likelier, relative to all others, cannot
    # move it to another one.
    mechanism = MADE["class"][0]
    lines = lines_of(mechanism)
    noise = mechanism.abduct(CLASS, lines, rng.random((N, 1, mechanism.n_uniforms)))
    code = int(mechanism.value(lines[:1], noise[:1, 0])[0])
    level = mechanism._level[code]
    raised = lines.copy()
    raised[:, level] += 0.7
    moved = mechanism.value(raised[:, None], noise)[:, 0]
    assert (moved[code == CLASS] == code).all()
    assert (moved[code != CLASS] == code).any()


def test_rare_categories_share_a_level_and_keep_their_shares(rng):
    codes = np.repeat(np.arange(40.0), np.r_[np.full(15, 60), np.full(25, 4)])
    mechanism = Nominal(codes, [Column(rng.normal(size=len(codes)), False)])
    assert len(mechanism.effects.intercept) == 17
    lines = np.broadcast_to(mechanism.effects.lines([np.zeros(1)]), (20000, 17))
    drawn = mechanism.value(lines, mechanism.draw(rng.random((20000, mechanism.n_uniforms))))
    assert (drawn >= 15).mean() == pytest.approx(0.1, abs=0.03)
    assert len(np.unique(drawn)) == 40


def test_curved_dependence_is_found_and_straight_one_stays_straight(rng):
    assert regress(NUMBER, PARENT)[2] > 1
    effects, errors, n_terms = regress(2 * X + rng.normal(size=N), PARENT)
    assert n_terms == 1
    grid = np.array([-1.0, 0.0, 1.0])
    np.testing.assert_allclose(np.diff(effects.add(0, grid)[:, 0]), 2.0, atol=0.1)
    assert abs(errors.mean()) < 1e-12


def test_slopes_are_shrunk_with_few_rows(rng):
    wide = [Column(rng.normal(size=30), False) for _ in range(20)]
    y = rng.normal(size=30)
    effects, errors, _ = regress(y, wide)
    total = effects.lines([each.values for each in wide])[:, 0]
    # Least squares would explain two thirds of the variance.
    assert total.var() < 0.5 * y.var()
    assert np.isfinite(errors).all()


def test_levels_that_the_fitted_rows_lack_are_possible(rng):
    levels = np.zeros(30000, dtype=np.intp)
    levels[1::2] = 1
    levels[7] = 2
    effects, _ = classify(levels, 3, [Column(rng.normal(size=30000), False)])
    assert np.isfinite(effects.lines([np.zeros(1)])).all()


def test_mechanisms_suit_their_columns():
    constant, empty = np.ones(N), np.full(N, np.nan)
    columns = [
        Column(X, False),
        Column(NUMBER, False),
        Column(FLAG, True),
        Column(CLASS, True),
        Column(GAPS, False),
        Column(constant, False),
        Column(empty, False),
        Column(CLASS, True),
    ]
    parents = [[], [0], [0], [0], [0], [0], [0], [0]]
    order = [False] * 7 + [True]
    made = fit_mechanisms(columns, parents, has_order=order, whole=[None] * 8)
    kinds = [each.kind for each in made]
    assert kinds == [
        "number", "number", "levels", "class", "number with gaps", "levels", "levels", "levels",
    ]  # fmt: skip
    assert made[1].explained > 0.8
    assert 0.1 < made[2].explained < 0.5
    for at in (5, 6):
        value = made[at].value(made[at].effects.intercept[None], np.array([[0.5]]))
        np.testing.assert_array_equal(value, columns[at].values[:1])
