"""The columns that functions of features make of rows."""

import numpy as np
import pytest

from dsage.games.functions import Functions

RNG = np.random.default_rng(0)


def columns_of(values, n_levels, n_functions=3):
    functions = Functions.fit(values[:, None], np.array([n_levels]), n_functions)
    made = functions(values[:, None]).columns
    assert made.shape[1] == functions.n_columns
    return functions, made


def test_classes_have_indicators_of_all_levels_but_the_most_frequent():
    codes = np.array([2.0, 1.0, 2.0, 0.0, 2.0, 1.0])
    _, made = columns_of(codes, 3)
    np.testing.assert_array_equal(made, np.column_stack([codes == 1, codes == 0]))


@pytest.mark.parametrize("n_levels", [2, 12, 13, 14, 20])
def test_twelve_levels_have_an_indicator_of_their_own(n_levels):
    # Level 0 is the most frequent, and so on.
    codes = np.repeat(np.arange(n_levels), np.arange(n_levels, 0, -1)).astype(float)
    _, made = columns_of(codes, n_levels)
    assert made.shape[1] == min(n_levels - 1, 12)
    for level in range(n_levels):
        expected = np.zeros(made.shape[1])
        if 0 < level <= 12:
            expected[level - 1] = 1.0
        np.testing.assert_array_equal(made[codes == level], [expected] * (n_levels - level))


def test_a_missing_class_is_a_level():
    codes = np.array([0.0, np.nan, 0.0, 1.0, np.nan, 0.0])
    _, made = columns_of(codes, 2)
    np.testing.assert_array_equal(made[:, 0], np.isnan(codes))
    np.testing.assert_array_equal(made[:, 1], codes == 1)


def test_a_class_of_one_level_has_an_empty_column():
    _, made = columns_of(np.zeros(5), 1)
    np.testing.assert_array_equal(made, np.zeros((5, 1)))


def test_numbers_have_an_indicator_of_what_is_missing():
    values = RNG.normal(size=50)
    _, whole = columns_of(values, 0)
    assert whole.shape[1] == 3
    values[::7] = np.nan
    functions, made = columns_of(values, 0)
    assert made.shape[1] == 4
    np.testing.assert_array_equal(made[:, 3], np.isnan(values))
    assert np.isfinite(made).all()
    _, none = columns_of(np.full(5, np.nan), 0)
    np.testing.assert_array_equal(none, np.ones((5, 1)))
    assert functions.first(1).n_columns == 2


@pytest.mark.parametrize("n_functions", [1, 2, 3])
def test_the_columns_of_fewer_functions_are_among_those_of_more(n_functions):
    rows = np.column_stack([RNG.normal(size=60), np.arange(60) % 3, RNG.normal(size=60)])
    rows[::5, 2] = np.nan
    functions = Functions.fit(rows, np.array([0, 3, 0]), 3)
    chosen = functions.select(functions(rows), n_functions)
    fewer = functions.first(n_functions)(rows)
    np.testing.assert_allclose(chosen.columns, fewer.columns, atol=1e-12)
    np.testing.assert_array_equal(chosen.owner, fewer.owner)
    assert chosen.owner.tolist() == [0] * n_functions + [1] * 2 + [2] * (n_functions + 1)
