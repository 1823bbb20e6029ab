"""The likelihood of classes: its derivatives, the steps to its maximum, and the maximum."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize

from dsage.structure.scores import softmax
from dsage.structure.scores.softmax import (
    _direction,
    _Fit,
    _orthonormal,
    softmax_fit,
    softmax_likelihood,
    softmax_near,
)


def case(n_levels=3, n_rows=200, n_columns=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_columns)) @ np.triu(np.ones((n_columns, n_columns)))
    X -= X.mean(axis=0)
    odds = X @ rng.normal(size=(n_columns, n_levels)) + rng.gumbel(size=(n_rows, n_levels))
    return X, odds.argmax(axis=1)


def fit_of(X, levels):
    return _Fit(_orthonormal(X, None)[0], levels, np.bincount(levels))


def exact_loss(weights, X, levels):
    """The negative log-likelihood with the price of weights, in double precision."""
    fit = fit_of(X, levels)
    basis = np.asarray(fit._basis, dtype=np.float64)
    odds = np.vstack([np.zeros(len(X)), weights.reshape(fit._shape) @ basis])
    chosen = odds[levels, np.arange(len(levels))]
    loss = np.logaddexp.reduce(odds, axis=0) - chosen
    return loss.sum() + 0.5 * softmax._RIDGE * weights @ weights


def test_columns_are_made_uncorrelated_beside_a_constant():
    X, _ = case()
    for correlation in (None, X.T @ X / len(X)):
        basis, root = _orthonormal(X, correlation)
        np.testing.assert_allclose(basis @ basis.T / len(X), np.eye(3), atol=1e-4)
        np.testing.assert_array_equal(basis[0], 1.0)
        np.testing.assert_allclose(basis[1:], root @ X.T, atol=1e-5)


@pytest.mark.parametrize("n_levels", [2, 4])
def test_the_loss_and_its_slope_are_those_of_the_likelihood(n_levels):
    X, levels = case(n_levels)
    fit = fit_of(X, levels)
    weights = np.random.default_rng(1).normal(size=3 * (n_levels - 1))
    value, slope = fit._loss(weights)
    # Sums of single precision.
    assert value == pytest.approx(exact_loss(weights, X, levels), rel=1e-5)
    expected = approx_fprime(weights, exact_loss, 1e-5, X, levels)
    np.testing.assert_allclose(slope, expected, rtol=1e-3, atol=0.01)


def curvature_at(fit, weights):
    """The second derivatives, from slopes."""
    step = 0.01
    ends = [fit._loss(weights + step * each)[1] for each in np.eye(len(weights))]
    starts = [fit._loss(weights - step * each)[1] for each in np.eye(len(weights))]
    return (np.array(ends) - np.array(starts)) / (2 * step)


@pytest.mark.parametrize("n_levels", [2, 4])
def test_steps_divide_by_the_second_derivatives(n_levels):
    X, levels = case(n_levels)
    fit = fit_of(X, levels)
    start = np.zeros(fit._shape)
    start[:, 0] = np.log(fit._shares[1:] / fit._shares[0])
    slope = np.random.default_rng(2).normal(size=start.size)
    for weights, solve in (
        (start.ravel(), fit._start_curvature()),
        (start.ravel() + 0.3, fit._curvature(start.ravel() + 0.3)),
    ):
        expected = np.linalg.solve(curvature_at(fit, weights), slope)
        # Second derivatives are damped by 1 % of their mean.
        found = solve(slope)
        scale = np.abs(expected).max()
        np.testing.assert_allclose(found, expected, atol=0.1 * scale)


def test_with_many_weights_steps_are_bounded(monkeypatch):
    monkeypatch.setattr(softmax, "_MAX_CURVED", 5)
    X, levels = case(4)
    fit = fit_of(X, levels)
    solve = fit._start_curvature()
    bound = np.linalg.inv(np.array([solve(each) for each in np.eye(9)]))
    for seed in range(3):
        weights = np.random.default_rng(seed).normal(size=9)
        assert np.linalg.eigvalsh(bound - curvature_at(fit, weights)).min() > -0.5
    # It is the bound of Boehning, which equal shares of two levels attain.
    pair = fit_of(X[:100], np.arange(100) % 2)
    monkeypatch.setattr(softmax, "_MAX_CURVED", 2)
    solve = pair._start_curvature()
    found = np.array([solve(each) for each in np.eye(3)])
    np.testing.assert_allclose(
        found, np.linalg.inv(curvature_at(pair, np.zeros(3))), rtol=0.02, atol=1e-3
    )


@pytest.mark.parametrize("most", [0, 400])
@pytest.mark.parametrize("n_levels", [2, 4])
def test_the_likelihood_is_the_largest_one(n_levels, most, monkeypatch):
    monkeypatch.setattr(softmax, "_MAX_CURVED", most)
    X, levels = case(n_levels, n_rows=500, n_columns=3)
    start = np.zeros(4 * (n_levels - 1))
    best = minimize(exact_loss, start, (X, levels), method="BFGS")
    value, odds = softmax_fit(X, levels)
    # An accuracy of 0.05 nats.
    assert value == pytest.approx(-best.fun, abs=0.06)
    basis = np.asarray(fit_of(X, levels)._basis, dtype=np.float64)
    expected = best.x.reshape(-1, 4) @ basis
    assert np.sqrt(np.mean((odds - expected) ** 2)) < 0.1


def test_directions_are_those_of_bfgs():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(4, 4))
    hessian = root @ root.T + np.eye(4)
    steps = []
    inverse = np.diag([1.0, 2.0, 3.0, 4.0])
    start = inverse.copy()
    for change in rng.normal(size=(3, 4)):
        bend = hessian @ change
        steps.append((change, bend, 1.0 / float(change @ bend)))
        left = np.eye(4) - np.outer(change, bend) / (change @ bend)
        inverse = left @ inverse @ left.T + np.outer(change, change) / (change @ bend)
    slope = rng.normal(size=4)
    found = _direction(slope, steps, lambda each: start @ each)
    np.testing.assert_allclose(found, inverse @ slope, rtol=1e-9)


def test_levels_without_columns_have_the_odds_of_their_shares():
    levels = np.array([0, 1, 1, 2, 2, 2])
    value, odds = softmax_fit(np.empty((6, 0)), levels)
    shares = np.array([1, 2, 3]) / 6
    assert value == pytest.approx(6 * (shares * np.log(shares)).sum())
    np.testing.assert_allclose(odds, np.log([[2.0] * 6, [3.0] * 6]))


def test_second_derivatives_are_computed_up_to_the_largest_number_of_weights(monkeypatch):
    X, levels = case(3, n_rows=100, n_columns=2)
    fit = fit_of(X, levels)
    slope = np.arange(1.0, 7.0)
    shares = np.bincount(levels) / 100
    exact = np.linalg.inv(np.diag(shares[1:]) - np.outer(shares[1:], shares[1:]))
    bound = 2 * (np.eye(2) + 1.0)
    for most, inverse in ((6, exact), (5, bound)):
        monkeypatch.setattr(softmax, "_MAX_CURVED", most)
        expected = (inverse @ slope.reshape(2, 3) / 100).ravel()
        np.testing.assert_allclose(fit._start_curvature()(slope), expected, rtol=1e-9)


@pytest.mark.parametrize("n_columns", [0, 2])
def test_a_single_level_is_certain(n_columns):
    X = np.random.default_rng(0).normal(size=(20, n_columns))
    value, odds = softmax_fit(X, np.zeros(20, np.intp))
    assert value == 0.0
    assert odds.shape == (0, 20)


def _standard(X):
    return X / X.std(axis=0)


@pytest.mark.parametrize("n_levels", [2, 4])
def test_a_start_changes_the_way_and_not_the_maximum(n_levels, monkeypatch):
    X, levels = case(n_levels, n_rows=1000, n_columns=4)
    X = _standard(X)
    correlation = X.T @ X / len(X)
    value, weights = softmax_near(X, levels, correlation, None)
    assert value == pytest.approx(softmax_likelihood(X, levels, correlation), abs=0.2)
    odds = weights[:, :1] + weights[:, 1:] @ X.T
    exact = softmax_fit(X, levels, correlation)[1]
    assert np.sqrt(np.mean((odds - exact) ** 2)) < 0.1
    # Without the last column, from where the regression with it ends, and from a bad start.
    fewer = X[:, :3]
    known = np.concatenate([weights[:, :1], weights[:, 1:] @ correlation[:, :3]], axis=1)
    inner = correlation[:3, :3]
    expected = softmax_likelihood(fewer, levels, inner)
    asked = []
    ask = _Fit._loss
    monkeypatch.setattr(_Fit, "_loss", lambda self, at: asked.append(0) or ask(self, at))
    for start, most in ((None, 20), (known, 4), (100 * known, 20)):
        asked.clear()
        found, _ = softmax_near(fewer, levels, inner, start)
        assert found == pytest.approx(expected, abs=0.2)
        assert len(asked) <= most


def test_no_columns_and_a_single_level_have_known_weights():
    levels = np.array([0, 1, 1])
    value, weights = softmax_near(np.empty((3, 0)), levels, np.empty((0, 0)), None)
    assert value == pytest.approx(2 * np.log(2 / 3) + np.log(1 / 3))
    np.testing.assert_allclose(weights, [[np.log(2)]])
    value, weights = softmax_near(np.ones((3, 1)), np.zeros(3, np.intp), np.ones((1, 1)), None)
    assert value == 0.0
    assert weights.shape == (0, 2)


def test_large_log_odds_do_not_overflow():
    basis = np.ones((1, 4), dtype=np.float32)
    for odds in (79.0, 81.0, 500.0):
        shares, value = _Fit._chances(np.array([[odds], [odds - 1.0]]), basis)
        exact = np.exp([0.0, -1.0]) / (1.0 + np.exp(-1.0))
        np.testing.assert_allclose(shares, np.tile(exact[:, None], 4), rtol=1e-5)
        assert value == pytest.approx(4 * (odds + np.log1p(np.exp(-1.0))), rel=1e-6)
