"""The first level of causal values: the game of linear structural equations."""

import itertools

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression

from dsage import Graph
from dsage.estimate import run
from dsage.estimate.running.stopping import NOrderings
from dsage.games import Grouped, LossGame
from dsage.games.linear_causal import LinearCausal
from dsage.samplers import Gaussian, Interventional
from interventional_world import LinearWorld

FEATURES = ["a", "b", "c"]
WORLDS = {
    "chain": LinearWorld(
        ("a", "b", "c", "y"), {("a", "b"): 0.8, ("b", "c"): -0.6, ("c", "y"): 1.0}
    ),
    "effect of the target": LinearWorld(
        ("a", "b", "y", "c"), {("a", "y"): 1.0, ("y", "c"): 0.9, ("a", "b"): 0.6}
    ),
    "front door": LinearWorld(
        ("h", "a", "b", "c", "y"),
        {("h", "a"): 1.0, ("h", "c"): 1.3, ("a", "b"): 0.8, ("b", "c"): 0.5, ("c", "y"): 1.0},
        ("h",),
    ),
}


def wide_coalitions():
    """All pairs of what is set and what is received."""
    pairs = []
    for inputs in itertools.product((False, True), repeat=3):
        for fixed in itertools.product(*[(False, True) if each else (False,) for each in inputs]):
            pairs.append([*fixed, *inputs])
    return np.array(pairs)


def game_of(world, model=None, n_rows=200, **options):
    table = world.sample(n_rows, np.random.default_rng(0))
    X, y = table[FEATURES], table["y"].to_numpy()
    sampler = Interventional(sampler=Gaussian(), graph=world.graph, target="y").fit(X, y)
    fitted = (LinearRegression() if model is None else model).fit(X, y)
    return LossGame(fitted, sampler, X, y, **options)


@pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS)
def test_it_is_the_game_itself_for_a_linear_model_and_moments_of_the_same_rows(world):
    game = game_of(world)
    level = game.first_level()
    assert isinstance(level, LinearCausal)
    known, rows = wide_coalitions(), np.arange(game.n_rows)
    np.testing.assert_allclose(level.risks(known, rows), game.risks(known, rows), atol=1e-4)
    means = level.risks(known, rows).mean(axis=(1, 2))
    np.testing.assert_allclose(level.mean_risks(known), means, atol=1e-9)


def test_groups_have_the_first_level_of_their_members():
    game = Grouped(game_of(WORLDS["chain"]), {"ends": ["a", "c"]})
    level = game.first_level()
    known = np.array([[True, False, True, False], [False, False, True, True]])
    means = game.risks(known, np.arange(game.n_rows)).mean(axis=(1, 2))
    np.testing.assert_allclose(level.mean_risks(known), means, atol=1e-4)


def test_it_lowers_the_error_from_orderings_and_keeps_the_values():
    forest = RandomForestRegressor(5, min_samples_leaf=5, random_state=0)
    game = game_of(WORLDS["chain"], forest, n_rows=100, random_state=0)
    options = {"stopping": NOrderings(80), "exact": "never", "rows_per_ordering": 20}
    with_it, without = (
        run(game, first_level=each, random_state=0, **options) for each in ("auto", "none")
    )
    assert (with_it.se_orderings**2).mean() < 0.5 * (without.se_orderings**2).mean()
    slack = 4.5 * np.hypot(with_it.se, without.se)
    assert (np.abs(with_it.values - without.values) <= slack).all()
    np.testing.assert_allclose(with_it.parts.values.sum(axis=0), with_it.values)


def test_missing_values_and_constants_do_no_harm():
    X = np.random.default_rng(0).normal(size=(50, 3))
    X[:10, 0], X[:, 2] = np.nan, 3.0
    graph = Graph(FEATURES, [("a", "b"), ("c", "b")])
    frame = pd.DataFrame(X, columns=FEATURES)
    sampler = Interventional(sampler=Gaussian(), graph=graph).fit(frame)
    y = X[:, 1:2]
    level = LinearCausal(sampler.interventions, X, y, y, np.ones(50))
    assert np.isfinite(level.mean_risks(wide_coalitions())).all()


@pytest.mark.parametrize("n_outputs", [1, 2])
def test_missing_numbers_count_as_the_mean_of_the_others(n_outputs):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(80, 3)) @ rng.normal(size=(3, 3)) + [5.0, -3.0, 1.0]
    weights = rng.integers(1, 5, size=80).astype(float)
    weights /= weights.mean()
    output = rng.normal(size=(80, n_outputs)) + X[:, :1]
    target = output + rng.normal(size=output.shape)
    gaps = X.copy()
    gaps[rng.random(X.shape) < 0.3] = np.nan
    shares = np.where(np.isnan(gaps), 0.0, weights[:, None])
    means = (shares * np.nan_to_num(gaps)).sum(axis=0) / shares.sum(axis=0)
    full = np.where(np.isnan(gaps), means, gaps)
    graph = Graph([*FEATURES, "y"], [("a", "b"), ("c", "b"), ("b", "y")])
    table = pd.DataFrame(X, columns=FEATURES)
    effects = Interventional(sampler=Gaussian(), graph=graph, target="y").fit(table, target[:, 0])
    one, other = (
        LinearCausal(effects.interventions, each, output, target, weights) for each in (gaps, full)
    )
    known = wide_coalitions()
    np.testing.assert_allclose(one.mean_risks(known), other.mean_risks(known), rtol=1e-9)
    np.testing.assert_allclose(
        one.mean_risks(known), one.risks(known, np.arange(80)).mean(axis=(1, 2)), rtol=1e-9
    )
    # With everything received, the model's own regression on the features.
    root = np.sqrt(weights)[:, None]
    design = np.column_stack([np.ones(80), full])
    fitted = design @ np.linalg.lstsq(root * design, root * output, rcond=None)[0]
    everything = np.array([[False] * 3 + [True] * 3])
    expected = (weights[:, None] * (target - fitted) ** 2).sum(axis=1)
    np.testing.assert_allclose(
        one.risks(everything, np.arange(80))[0, :, 0], expected, rtol=1e-4, atol=1e-6
    )
    assert one.cost == 9.0
