"""Blocks of columns: a feature is known when all its columns are."""

import numpy as np
import pytest

from dsage.estimate.walk import prefixes
from dsage.games import LinearOutput, MomentGame
from dsage.games.blocks import Basis
from given import all_coalitions

NAMES = tuple("abcd")
EVERY = all_coalitions(4)
ROWS = np.array([30, 2, 7])


def holed(n_rows=60, seed=0):
    """Rows in which two features have missing values, and outputs and targets that show it."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 4)) @ rng.normal(size=(4, 4)) * [1, 10, 0.1, 3] + 5
    output = X @ rng.normal(size=4) / X.std()
    for feature in (1, 3):
        absent = rng.random(n_rows) < 0.4
        output[absent] += feature
        X[absent, feature] = np.nan
    return X, output, output + rng.normal(size=n_rows)


def design(X, coalition):
    """An intercept, and for each known feature its present values and where they are missing."""
    columns = [np.ones(len(X))]
    for feature in np.flatnonzero(coalition):
        absent = np.isnan(X[:, feature])
        columns += [np.where(absent, 0.0, X[:, feature]), absent.astype(float)]
    return np.column_stack(columns)


def fitted(X, output, coalition):
    made = design(X, coalition)
    return made @ np.linalg.lstsq(made, output, rcond=None)[0]


def test_without_missing_values_each_column_is_a_feature():
    X = np.random.default_rng(0).normal(size=(5, 3))
    basis = Basis.linear(X)
    assert basis.is_plain
    assert basis.columns is X
    orders = np.array([[2, 0, 1]])
    found, ends = basis.orders(orders)
    assert found is orders
    assert ends.tolist() == [[0, 1, 2, 3]]
    np.testing.assert_array_equal(basis.expanded(EVERY[:, :3]), EVERY[:, :3])


def test_missing_values_are_the_mean_and_a_column_that_tells_where():
    X, *_ = holed()
    basis = Basis.linear(X)
    assert (basis.n_features, basis.n_columns, basis.is_plain) == (4, 6, False)
    assert basis.owner.tolist() == [0, 1, 2, 3, 1, 3]
    assert np.isfinite(basis.columns).all()
    correlation = np.corrcoef(basis.columns, rowvar=False)
    np.testing.assert_allclose(correlation[[1, 3], [4, 5]], 0.0, atol=1e-12)
    np.testing.assert_array_equal(basis.columns[:, 4], np.isnan(X[:, 1]))


def test_a_feature_that_is_always_missing_tells_nothing():
    X, output, target = holed()
    X[:, 0] = np.nan
    game = MomentGame(X, output, target, NAMES)
    risks = game.mean_risks(EVERY)
    np.testing.assert_allclose(risks[EVERY[:, 0]], risks[~EVERY[:, 0]], rtol=1e-12)


def test_orderings_of_features_are_orderings_of_their_columns():
    basis = Basis(np.zeros((1, 5)), [[3, 0], [1], [2, 4]])
    columns, ends = basis.orders(np.array([[2, 0, 1], [1, 2, 0]]))
    assert columns.tolist() == [[2, 4, 0, 3, 1], [1, 2, 4, 0, 3]]
    assert ends.tolist() == [[0, 2, 4, 5], [0, 1, 3, 5]]
    assert basis.expanded(np.array([[True, False, False]])).tolist() == [
        [True, False, False, True, False]
    ]


@pytest.mark.parametrize("blocks", [[[0], []], [[0]], [[0, 1], [1]], [[0], [2]]])
def test_blocks_that_are_no_partition_are_refused(blocks):
    with pytest.raises(ValueError, match="blocks must be a partition of the 2 columns"):
        Basis(np.zeros((3, 2)), blocks)


def test_risks_are_those_of_least_squares_with_what_is_missing():
    X, output, target = holed()
    game = MomentGame(X, output, target, NAMES)
    risks = game.risks(EVERY, np.arange(60))[:, :, 0]
    for coalition, risk in zip(EVERY, risks, strict=True):
        expected = (target - fitted(X, output, coalition)) ** 2
        assert risk.mean() == pytest.approx(expected.mean(), rel=1e-4)
    np.testing.assert_allclose(game.mean_risks(EVERY), risks.mean(axis=1), rtol=1e-9)
    orders = np.array([np.random.default_rng(seed).permutation(4) for seed in range(9)])
    expected = game.mean_risks(prefixes(orders).reshape(-1, 4)).reshape(9, 5)
    np.testing.assert_allclose(game.mean_path_risks(orders), expected, rtol=1e-9)


def test_outputs_are_those_of_least_squares_with_what_is_missing():
    X, output, _ = holed()
    game = LinearOutput(X, output, NAMES)
    assert game.n_columns == 6
    outputs = -game.risks(EVERY, ROWS)[:, :, 0]
    for coalition, each in zip(EVERY, outputs, strict=True):
        np.testing.assert_allclose(each, fitted(X, output, coalition)[ROWS], atol=1e-3)
    orders = np.array([[0, 1, 2, 3], [3, 0, 1, 2]])
    known = prefixes(orders).reshape(-1, 4)
    found = game.path_risks(orders, ROWS, 0, np.ones((2, 5), dtype=bool))
    np.testing.assert_allclose(found, game.risks(known, ROWS).reshape(found.shape), atol=1e-9)
    expected = np.diff(game.coefficients(known).reshape(2, 5, 6), axis=1)
    np.testing.assert_allclose(game.path_coefficients(orders), expected, atol=1e-10)


def test_features_of_several_columns_can_be_given():
    X, output, target = holed()
    curved = np.nan_to_num(X[:, 0])
    basis = Basis(np.column_stack([curved, X[:, 2], curved**2]), [[0, 2], [1]])
    game = MomentGame(basis, output, target, ("a", "c"))
    risk = game.mean_risks(np.array([[True, False]]))[0]
    made = np.column_stack([np.ones(60), curved, curved**2])
    expected = made @ np.linalg.lstsq(made, output, rcond=None)[0]
    assert risk == pytest.approx(((target - expected) ** 2).mean(), rel=1e-4)
