"""The logistic regression of samplers: its objective, its gradient, and its steps."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.special import log_softmax

from dsage.samplers.logistic import _minimize, _Problem, _solve, fit_logistic


def case(n_classes, n_rows=50, n_columns=3, seed=0):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n_columns, n_rows))
    y = rng.integers(n_classes, size=n_rows)
    hits = np.zeros((n_classes, n_rows))
    hits[y, np.arange(n_rows)] = 1.0
    first = 1 if n_classes == 2 else 0
    scale = rng.uniform(0.5, 2.0, n_classes - first)
    whitening = np.tril(rng.uniform(0.5, 2.0, (n_columns, n_columns)))
    # The rows stand for three times as many.
    return _Problem(Z, hits[first:], 3.0 * n_rows, scale, whitening), Z, y


@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_objective_is_the_likelihood_and_a_ridge(n_classes, monkeypatch):
    problem, Z, y = case(n_classes)
    monkeypatch.setattr("dsage.samplers.logistic._BLOCK", 7)
    at = np.random.default_rng(1).normal(size=len(problem.scale) * (len(Z) + 1))
    intercepts, slopes = problem.unpack(at)
    lines = intercepts[:, None] + slopes @ Z
    if n_classes == 2:
        lines = np.vstack([np.zeros(len(y)), lines])
    logs = log_softmax(lines, axis=0)[y, np.arange(len(y))]
    value, gradient = problem(at)
    assert value == pytest.approx(-3.0 * logs.sum() + 0.5 * (slopes**2).sum(), rel=1e-12)
    expected = approx_fprime(at, lambda point: problem(point)[0], 1e-6)
    np.testing.assert_allclose(gradient, expected, rtol=1e-4, atol=1e-3)


def test_coordinates_are_those_of_whitened_columns():
    problem, Z, _ = case(4)
    at = np.random.default_rng(2).normal(size=(4, 4))
    intercepts, slopes = problem.unpack(at.ravel())
    np.testing.assert_allclose(intercepts * problem.scale, at[:, 0])
    lines = (slopes * problem.scale[:, None]) @ Z
    np.testing.assert_allclose(lines, at[:, 1:] @ (problem.whitening @ Z))


@pytest.mark.parametrize("n_steps", [0, 1, 4])
def test_steps_follow_the_inverse_hessian_of_bfgs(n_steps):
    rng = np.random.default_rng(n_steps)
    root = rng.normal(size=(5, 5))
    hessian = root @ root.T + np.eye(5)
    memory = [(step, hessian @ step) for step in rng.normal(size=(n_steps, 5))]
    inverse = np.eye(5)
    if memory:
        step, change = memory[-1]
        inverse *= (step @ change) / (change @ change)
    for step, change in memory:
        left = np.eye(5) - np.outer(step, change) / (step @ change)
        inverse = left @ inverse @ left.T + np.outer(step, step) / (step @ change)
    gradient = rng.normal(size=5)
    np.testing.assert_allclose(_solve(gradient, memory), inverse @ gradient, rtol=1e-10)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_fit_has_hardly_any_slope_left(n_classes):
    rng = np.random.default_rng(3)
    Z = rng.normal(size=(3, 400))
    Z[2] += Z[0]
    lines = rng.normal(size=(n_classes, 3)) @ Z + rng.gumbel(size=(n_classes, 400))
    y = lines.argmax(axis=0)
    intercepts, slopes = fit_logistic(Z, Z @ Z.T / 400, y, 400)
    if n_classes == 2:
        assert intercepts[0] == 0.0
        np.testing.assert_array_equal(slopes[0], 0.0)
    shares = np.exp(log_softmax(intercepts[:, None] + slopes @ Z, axis=0))
    left = (np.arange(n_classes)[:, None] == y) - shares
    # What is left of 0.003 nats per parameter: its square over the curvature, n p (1 - p).
    curvature = (shares * (1 - shares)).sum(axis=1)
    assert (left.sum(axis=1) ** 2 / curvature < 2 * 0.003 * 4 * n_classes).all()
    own = slice(1, None) if n_classes == 2 else slice(None)
    pulled = (left @ Z.T - slopes)[own]
    assert (pulled**2 / (curvature[own, None] * (Z**2).mean(axis=1)) < 0.1).all()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_search_starts_at_the_shares_where_curvatures_are_one(n_classes, monkeypatch):
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(3, 300)) * [[1.0], [5.0], [0.2]]
    Z[1] += 3 * Z[0]
    Z -= Z.mean(axis=1, keepdims=True)
    y = np.minimum(rng.integers(4, size=300), n_classes - 1)
    searches = []
    monkeypatch.setattr(
        "dsage.samplers.logistic._minimize", lambda *search: searches.append(search) or search[1]
    )
    # The rows stand for twice as many.
    intercepts, slopes = fit_logistic(Z, Z @ Z.T / 300, y, 600)
    ((problem, start),) = searches
    shares = np.bincount(y) / 300
    assert (slopes == 0).all()
    np.testing.assert_allclose(np.exp(intercepts) / np.exp(intercepts).sum(), shares)
    value, gradient = problem(start)
    assert value == pytest.approx(-600 * shares @ np.log(shares))
    size = len(start) // len(problem.scale)
    np.testing.assert_allclose(gradient[::size], 0.0, atol=1e-9)
    steps = 1e-5 * np.eye(len(start))
    hessian = np.array([(problem(start + s)[1] - problem(start - s)[1]) / 2e-5 for s in steps])
    for at in range(len(problem.scale)):
        block = hessian[at * size : (at + 1) * size, at * size : (at + 1) * size]
        np.testing.assert_allclose(block, np.eye(size), atol=1e-6 if n_classes == 2 else 0.05)


def test_a_search_ends_where_a_step_would_gain_hardly_anything(monkeypatch):
    center, curvature = np.array([3.0, -2.0]), np.array([1.0, 40.0])

    class Bowl:
        n_calls = 0

        def __call__(self, at):
            self.n_calls += 1
            off = at - center
            return 0.5 * float(curvature @ off**2), curvature * off

    bowl = Bowl()
    found = _minimize(bowl, np.zeros(2))
    np.testing.assert_allclose(found, center, atol=0.05)
    assert bowl.n_calls < 25
    near = Bowl()
    start = np.array([3.05, -2.0])
    # Half of 0.0025 is left, less than 0.003 for each of two parameters.
    assert _minimize(near, start) is start
    assert near.n_calls == 1
    monkeypatch.setattr("dsage.samplers.logistic._MAX_STEPS", 1)
    once = Bowl()
    # The first step, along the gradient, is halved until it gains enough.
    gradient = -curvature * center
    length = 1.0
    while 0.5 * curvature @ (-length * gradient - center) ** 2 > (
        0.5 * curvature @ center**2 - 1e-4 * length * gradient @ gradient
    ):
        length /= 2
    np.testing.assert_allclose(_minimize(once, np.zeros(2)), -length * gradient)
