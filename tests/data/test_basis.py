"""Tests of the basis columns of numbers and classes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from dsage.data.basis import NumberBasis, distribution, indicators, is_heavy, level_places

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("leads", [("value",), ("score",), ("score", "value")])
@pytest.mark.parametrize("values", [RNG.normal(size=500), RNG.exponential(size=500) ** 2])
def test_functions_are_orthonormal(values, leads):
    functions = NumberBasis.fit(values, 8, leads=leads)(values)
    assert functions.shape == (500, 8)
    np.testing.assert_allclose(functions.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(functions.T @ functions / 500, np.eye(8), atol=1e-9)


def test_the_first_function_is_the_lead():
    values = RNG.exponential(size=400)
    of_value = NumberBasis.fit(values, 4, leads=("value",))(values)[:, 0]
    np.testing.assert_allclose(of_value, (values - values.mean()) / values.std())
    score = NumberBasis.fit(values, 4, leads=("score", "value")).evaluate(values)
    ranks = values.argsort().argsort()
    np.testing.assert_allclose(score[2], norm.ppf((ranks + 0.5) / 400))
    assert abs(np.corrcoef(score[0][:, 0], score[2])[0, 1]) == pytest.approx(1.0)


def test_polynomials_and_waves_are_in_the_span():
    values = RNG.uniform(-1, 1, size=2000)
    functions = NumberBasis.fit(values, 8)(values)
    for target in (values**2, values**3, np.sin(4 * values)):
        centered = target - target.mean()
        left = centered - functions @ (functions.T @ centered) / 2000
        assert left.var() < 2e-3 * target.var()


@pytest.mark.parametrize("n_values", [1, 2, 3, 5])
def test_numbers_with_few_values_have_few_functions(n_values):
    values = np.repeat(np.arange(float(n_values)), 20)
    assert NumberBasis.fit(values, 8)(values).shape[1] == n_values - 1


def test_a_missing_value_has_zero_in_all_functions():
    values = RNG.normal(size=300)
    holes = values.copy()
    holes[::3] = np.nan
    basis = NumberBasis.fit(holes, 6)
    functions, value, score = basis.evaluate(holes)
    assert not functions[::3].any()
    assert not value[::3].any()
    assert not score[::3].any()
    present = np.delete(np.arange(300), np.s_[::3])
    same = NumberBasis.fit(values[present], 6)(values[present])
    np.testing.assert_allclose(functions[present], same)


def test_new_values_are_placed_between_those_that_were_seen():
    basis = NumberBasis.fit(np.arange(100.0), 3)
    inside, outside = basis(np.array([10.5, 99.0])), basis(np.array([1e9]))
    assert basis(np.array([10.0]))[0, 0] < inside[0, 0] < basis(np.array([11.0]))[0, 0]
    assert np.isfinite(outside).all()


def test_tails_are_heavy_if_few_values_have_most_of_the_variance():
    assert not is_heavy(RNG.normal(size=1000))
    assert not is_heavy(RNG.exponential(size=1000))
    assert not is_heavy(np.ones(10))
    assert is_heavy(np.exp(3 * RNG.normal(size=1000)))


def test_the_tail_is_a_function_of_values_that_are_far_outside():
    values = np.append(np.linspace(-1, 1, 500), [50.0, 60.0, 1000.0])
    assert is_heavy(values)
    center, scale = values.mean(), values.std()
    basis = NumberBasis.fit(values, 3, leads=("tail", "value"))
    cut = np.clip((values - center) / scale, -3, 3)
    np.testing.assert_allclose(basis(values)[:, 0], (cut - cut.mean()) / cut.std(), atol=1e-9)
    # Beyond the cut it does not change.
    first, second = basis(np.array([5_000.0, 6_000.0]))[:, 0]
    assert first == second


def test_many_values_have_fewer_knots():
    values = RNG.normal(size=50_000)
    knots, levels = distribution(values)
    assert len(knots) < len(values)
    assert knots[0] == values.min()
    assert knots[-1] == values.max()
    np.testing.assert_allclose(levels, norm.cdf(knots), atol=0.01)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 40), min_size=1, max_size=200))
def test_levels_are_numbered_by_how_often_they_occur(codes):
    levels = level_places(np.bincount(codes))[codes]
    counts = np.bincount(levels)
    n_distinct = len(set(codes))
    assert len(counts) == min(n_distinct, 17)
    assert counts[0] == max(codes.count(code) for code in codes)
    if n_distinct <= 17:
        assert len({(code, level) for code, level in zip(codes, levels, strict=True)}) == n_distinct
        assert (np.diff(counts) <= 0).all()
    assert indicators(levels).shape == (len(codes), len(counts) - 1)
    np.testing.assert_array_equal(indicators(levels).sum(axis=1), levels > 0)
