"""Positions are drawn with the given weights, row by row."""

from bisect import bisect_right
from fractions import Fraction
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsage.samplers import inversion
from dsage.samplers.inversion import draw_positions


def random_weights(rng, n_rows, n_columns):
    """Weights of few digits, many of them 0, and a 1 in each row."""
    weights = rng.integers(0, 1024, (n_rows, n_columns)) / 1024
    weights *= rng.random((n_rows, n_columns)) < 0.6
    weights[np.arange(n_rows), rng.integers(n_columns, size=n_rows)] = 1.0
    return weights


@given(st.integers(1, 5), st.integers(1, 50), st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_the_distribution_function_is_inverted(n_rows, n_columns, seed):
    rng = np.random.default_rng(seed)
    weights = random_weights(rng, n_rows, n_columns)
    u = rng.uniform(1e-12, 1.0, (n_rows, 7))
    found = draw_positions(weights, u)
    for row, targets, positions in zip(weights, u, found, strict=True):
        sums = list(accumulate(Fraction(each) for each in row))
        expected = [bisect_right(sums, Fraction(target) * sums[-1]) for target in targets]
        assert positions.tolist() == expected


def test_positions_of_a_row_do_not_depend_on_the_others(monkeypatch):
    rng = np.random.default_rng(0)
    weights = np.exp(-10 * rng.random((50, 33)))
    weights /= weights.max(axis=1, keepdims=True)
    u = rng.random((50, 9))
    whole = draw_positions(weights, u)
    for row in range(50):
        alone = draw_positions(weights[row : row + 1], u[row : row + 1])
        np.testing.assert_array_equal(alone[0], whole[row])
    for cells in (1, 100, 1000):
        monkeypatch.setattr(inversion, "CELLS", cells)
        np.testing.assert_array_equal(draw_positions(weights, u), whole)


@pytest.mark.parametrize("n_columns", [3, 3 * inversion.CELLS])
def test_uniforms_at_the_ends_get_the_first_and_the_last_position_with_a_weight(n_columns):
    weights = np.zeros((2, n_columns))
    weights[:, 1:-1] = 1.0
    u = np.array([[2.0**-60, 1.0 - 2.0**-53]] * 2)
    assert draw_positions(weights, u).tolist() == [[1, n_columns - 2]] * 2


def test_frequencies_are_those_of_the_weights_however_many_columns():
    n_columns = 2 * inversion.CELLS
    weights = np.random.default_rng(0).random((1, n_columns))
    weights[0, 5] = 1.0
    u = (np.arange(200_000)[None] + 0.5) / 200_000
    found = draw_positions(weights, u)[0]
    quarters = np.bincount(found * 4 // n_columns, minlength=4) / found.size
    expected = weights.reshape(4, -1).sum(axis=1) / weights.sum()
    # A grid of uniforms is off by at most one point at either end of an interval.
    np.testing.assert_allclose(quarters, expected, atol=2 / 200_000)
