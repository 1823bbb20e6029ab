"""Factors, regressions and exact products of covariances, against plain linear algebra."""

import numpy as np
import pytest

from dsage.samplers import conditioning
from dsage.samplers.conditioning import (
    BOUND,
    GRID,
    TOLERANCE,
    Normal,
    as_grid,
    check_scores,
    combine,
    exact_factor,
    grid_scores,
    lanes,
    lower_factor,
    normal_scores,
    solve_known,
    sweep,
    whiten,
)
from given import all_coalitions


def correlations(n=5, seed=0):
    rng = np.random.default_rng(seed)
    factor = rng.normal(size=(n, n + 1))
    cov = factor @ factor.T
    scale = np.sqrt(np.diag(cov))
    return cov / np.outer(scale, scale)


def with_relations():
    """The fourth is a sum of the first two, the fifth a copy, the sixth constant."""
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(50, 3))
    Z = np.column_stack([Z, Z[:, 0] + Z[:, 1], Z[:, 2], np.zeros(50)])
    cov = np.cov(Z.T)
    scale = np.where(np.diag(cov) > 0, np.sqrt(np.diag(cov)), 1.0)
    return cov / np.outer(scale, scale)


def test_known_features_are_swept_out():
    matrix = correlations()
    for known in all_coalitions(5):
        at, rest = np.flatnonzero(known), np.flatnonzero(~known)
        slopes, left = sweep(matrix, known)
        expected = matrix[np.ix_(rest, at)] @ np.linalg.inv(matrix[np.ix_(at, at)])
        np.testing.assert_allclose(slopes, expected, atol=1e-10)
        expected = matrix[np.ix_(rest, rest)] - expected @ matrix[np.ix_(at, rest)]
        np.testing.assert_allclose(left, expected, atol=1e-10)
    assert (matrix == correlations()).all()


def test_known_features_that_follow_from_others_have_no_slopes():
    matrix = with_relations()
    for known in all_coalitions(6):
        at, rest = np.flatnonzero(known), np.flatnonzero(~known)
        slopes, left = sweep(matrix, known)
        inner = matrix[np.ix_(at, at)]
        gain = matrix[np.ix_(rest, at)] @ np.linalg.pinv(inner, rcond=1e-8)
        expected = matrix[np.ix_(rest, rest)] - gain @ matrix[np.ix_(at, rest)]
        np.testing.assert_allclose(left, expected, atol=1e-8)
        # They explain as much as all of the known features.
        np.testing.assert_allclose(slopes @ inner, gain @ inner, atol=1e-8)
        used = (slopes != 0).any(axis=0).sum()
        assert used <= np.linalg.matrix_rank(inner, tol=1e-8) if len(at) else used == 0


@pytest.mark.parametrize("large", [2, 200])
@pytest.mark.parametrize(("factor", "is_used"), [(0.99, False), (1.01, True)])
def test_what_is_left_must_exceed_the_tolerance(factor, is_used, large, monkeypatch):
    monkeypatch.setattr(conditioning, "_LARGE", large)
    left = factor * TOLERANCE
    r = np.sqrt(1.0 - left)
    matrix = np.array([[1.0, r, 0.5], [r, 1.0, 0.5], [0.5, 0.5, 1.0]])
    slopes, _ = sweep(matrix, np.array([True, True, False]), tolerance=TOLERANCE)
    assert (slopes[0, 1] != 0) == is_used
    assert (lower_factor(matrix)[1, 1] > 0) == is_used
    solved = solve_known(matrix[:2, :2], matrix[:2, 2:])
    assert (solved[:, 0] != 0).all() == is_used


@pytest.mark.parametrize("n_right", [1, 3])
def test_systems_are_solved_also_if_features_follow_from_others(n_right):
    right = np.random.default_rng(0).normal(size=(5, n_right))
    np.testing.assert_allclose(
        solve_known(correlations(), right), np.linalg.solve(correlations(), right), rtol=1e-9
    )
    matrix = with_relations()
    right = matrix[:, :n_right].copy()
    solved = solve_known(matrix, right)
    np.testing.assert_allclose(matrix @ solved, right, atol=1e-8)
    assert (solved[5] == 0).all()
    assert solve_known(np.empty((0, 0)), right[:0]).shape == (0, n_right)


@pytest.mark.parametrize("large", [3, 200])
def test_factors_are_those_of_cholesky_with_zeros_for_what_is_determined(large, monkeypatch):
    monkeypatch.setattr(conditioning, "_LARGE", large)
    np.testing.assert_allclose(lower_factor(correlations()), np.linalg.cholesky(correlations()))
    matrix = with_relations()
    factor = lower_factor(matrix)
    assert (np.diag(factor) == 0).tolist() == [False, False, False, True, True, True]
    assert (factor[:, 3:] == 0).all()
    assert (np.triu(factor, 1) == 0).all()
    np.testing.assert_allclose(factor @ factor.T, matrix, atol=1e-9)
    assert factor.flags.c_contiguous
    z = whiten(factor, np.ones((2, 6)))
    assert (z[3:] == 0).all()
    np.testing.assert_allclose(factor[:3, :3] @ z[:3], 1.0)


def test_sums_are_those_of_a_product_and_lanes_are_padded():
    rng = np.random.default_rng(0)
    for n_rows in (0, 1, 63, 64, 65, 200):
        X, weights = rng.normal(size=(n_rows, 3)), rng.normal(size=(4, 3))
        columns = lanes(X)
        assert columns.shape == (3, {0: 64, 1: 64, 63: 64, 64: 64, 65: 128, 200: 256}[n_rows])
        assert (columns[:, :n_rows] == X.T).all()
        assert (columns[:, n_rows:] == 0).all()
        np.testing.assert_allclose(combine(weights, columns)[:, :n_rows], weights @ X.T, atol=1e-12)
    assert (combine(np.empty((2, 0)), np.empty((0, 64))) == 0).all()


@pytest.mark.parametrize("n_noise", [1, 4, 5, 64, 1000])
def test_factors_are_rounded_to_as_many_digits_as_sums_can_hold(n_noise):
    rng = np.random.default_rng(n_noise)
    factor = rng.normal(size=(3, n_noise)) * [[1.0], [1e-6], [1e9]]
    rounded = exact_factor(factor)
    assert rounded.shape == (n_noise, 3)
    norms = np.sqrt((factor**2).sum(axis=1))
    off = np.abs(rounded.T / GRID - factor)
    assert (off.max(axis=1) < 7e-8 * norms).all()
    # In steps of a power of two, with the largest sum of products below 2**53 of them.
    digits = int(np.floor(52.9 - np.log2(BOUND / GRID) - np.log2(n_noise) / 2))
    step = 2.0 ** (np.floor(np.log2(norms)) + 1 - digits) * GRID
    steps = rounded.T / step[:, None]
    assert (steps == np.rint(steps)).all()
    assert (np.abs(off / step[:, None]) <= 0.5 / GRID + 1e-9).all()
    assert (np.abs(steps).sum(axis=1) * 2 <= 2.0 ** (digits + 1) * np.sqrt(n_noise)).all()
    stacked = exact_factor(np.stack([factor, 2 * factor]))
    np.testing.assert_array_equal(stacked[0], rounded)
    np.testing.assert_array_equal(stacked[1], 2 * rounded)
    assert exact_factor(np.zeros((2, 3))).tolist() == [[0.0, 0.0]] * 3


def test_scores_are_whole_steps_of_the_grid_and_symmetric():
    u = np.array([2.0**-60, 1e-9, 0.2, 0.5, 0.8, 1 - 1e-9, 1 - 2.0**-53])
    steps = grid_scores(u.copy())
    assert (steps == np.rint(steps)).all()
    np.testing.assert_array_equal(normal_scores(u), steps * GRID)
    assert steps[3] == 0
    assert steps[2] == -steps[4]
    # Smaller uniforms than 2**-54 count as that.
    assert normal_scores(np.array([2.0**-54]))[0] == normal_scores(u)[0]
    assert -BOUND < normal_scores(u)[0] < -8.2
    assert as_grid(np.array([GRID, 2.4 * GRID, -0.6 * GRID])).tolist() == [1.0, 2.0, -1.0]


def test_scores_are_bounded():
    scores = np.zeros((2, 3, 4))
    scores[0, 0, 0], scores[1, 2, 3] = BOUND, -BOUND
    assert check_scores(scores, 2, 4) is scores
    assert check_scores(np.empty((0, 2, 4)), 0, 4).size == 0
    for bad in (8.31, -8.31, np.nan, np.inf):
        wrong = scores.copy()
        wrong[1, 1, 1] = bad
        with pytest.raises(ValueError, match=f"scores must be within 8.3 of 0; got {bad}"):
            check_scores(wrong, 2, 4)
    with pytest.raises(ValueError, match="scores must be of shape"):
        check_scores(scores, 2, 5)


def test_sums_of_features_are_regressed_on_known_ones_in_their_units():
    rng = np.random.default_rng(0)
    scale, mean = np.array([1.0, 100.0, 0.01, 5.0, 0.0]), rng.normal(size=5)
    cov = correlations() * np.outer(scale, scale)
    normal = Normal(mean, cov)
    assert normal.scale.tolist() == pytest.approx(scale.tolist())
    assert np.diag(normal.correlation).tolist() == [1.0, 1.0, 1.0, 1.0, 0.0]
    assert normal.determined().tolist() == [False, False, False, False, True]
    weights, x = rng.normal(size=(5, 2)), mean + scale * rng.normal(size=5)
    for known in all_coalitions(5):
        at, rest = np.flatnonzero(known & (scale > 0)), np.flatnonzero(~known)
        gain = cov[np.ix_(rest, at)] @ np.linalg.inv(cov[np.ix_(at, at)])
        center = x.copy()
        center[rest] = mean[rest] + gain @ (x[at] - mean[at])
        left = cov[np.ix_(rest, rest)] - gain @ cov[np.ix_(at, rest)]
        intercept, effects, spread = normal.regress_sums(known, weights)
        np.testing.assert_allclose(intercept + x @ effects, center @ weights, rtol=1e-7, atol=1e-7)
        expected = weights[rest].T @ left @ weights[rest]
        np.testing.assert_allclose(spread, expected, rtol=1e-6, atol=1e-8)
        assert (effects[~known] == 0).all()
        given = normal.given(known)
        np.testing.assert_allclose(given.mean(x[None, known])[0], center[rest], rtol=1e-7)
        factor = given.factor.T / GRID
        np.testing.assert_allclose(factor @ factor.T, left, rtol=1e-5, atol=1e-7)
        assert given is normal.given(known)


@pytest.mark.parametrize("cells", [1, 40, 2**15])
def test_draws_do_not_depend_on_the_chunks(cells, monkeypatch):
    rng = np.random.default_rng(0)
    normal = Normal(rng.normal(size=5), correlations())
    X, noise = rng.normal(size=(7, 5)), rng.random((7, 3, 5))
    known = np.array([True, False, False, True, False])
    expected = normal.given(known).draw(X[:, known], noise)
    monkeypatch.setattr(conditioning, "_CHUNK_CELLS", cells)
    np.testing.assert_array_equal(normal.given(known).draw(X[:, known], noise), expected)
    out = np.empty((7, 3, 5))
    normal.given(known).fill(out, X, noise, grid_scores)
    np.testing.assert_allclose(out[:, :, ~known], expected, rtol=1e-12)
    assert (out[:, :, known] == X[:, None, known]).all()
