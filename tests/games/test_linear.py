import numpy as np
import pytest

from dsage.data.portions import row_slices
from dsage.estimate.walk import prefixes
from dsage.games import LinearOutput, OutputGame
from dsage.games.blocks import Basis
from dsage.games.linear import LinearPredictor
from dsage.samplers import Gaussian
from given import all_coalitions

NAMES = tuple("abcd")
EVERY = all_coalitions(4)
GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(60, 4)) @ GENERATOR.normal(size=(4, 4)) * [1, 10, 0.1, 3] + 5
OUTPUT = np.tanh(X @ GENERATOR.normal(size=4)) + X @ GENERATOR.normal(size=4)
GAME = LinearOutput(X, OUTPUT, NAMES)
ROWS = np.array([30, 2, 7])


def test_outputs_are_those_of_least_squares():
    outputs = -GAME.risks(EVERY, ROWS)
    assert outputs.shape == (16, 3, 1)
    for coalition, output in zip(EVERY, outputs[..., 0], strict=True):
        design = np.column_stack([np.ones(60), X[:, coalition]])
        fitted = design @ np.linalg.lstsq(design, OUTPUT, rcond=None)[0]
        # Up to the ridge, which is not to be seen.
        np.testing.assert_allclose(output, fitted[ROWS], atol=1e-3 * OUTPUT.std())


def test_outputs_are_the_mean_plus_the_coefficients_of_the_known():
    centred = (X - X.mean(axis=0)) / X.std(axis=0)
    coefficients = GAME.coefficients(EVERY)
    assert (coefficients[~EVERY] == 0).all()
    expected = OUTPUT.mean() + coefficients @ centred[ROWS].T
    np.testing.assert_allclose(-GAME.risks(EVERY, ROWS)[..., 0], expected, rtol=1e-10)
    np.testing.assert_allclose(
        GAME.outputs(coefficients, ROWS), coefficients @ centred[ROWS].T, rtol=1e-10
    )


def test_paths_are_the_risks_of_prefixes():
    assert GAME.has_paths
    orders = np.array([[0, 1, 2, 3], [2, 0, 3, 1]])
    found = GAME.path_risks(orders, ROWS, 0, np.ones((2, 5), dtype=bool))
    expected = GAME.risks(prefixes(orders).reshape(-1, 4), ROWS).reshape(found.shape)
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-8)


def test_coefficients_along_orderings_are_those_of_prefixes():
    orders = np.array([[0, 1, 2, 3], [2, 0, 3, 1]])
    known = prefixes(orders)
    expected = np.diff(GAME.coefficients(known.reshape(-1, 4)).reshape(2, 5, 4), axis=1)
    np.testing.assert_allclose(GAME.path_coefficients(orders), expected, rtol=1e-8, atol=1e-10)


def test_a_row_does_not_depend_on_other_rows_to_the_bit():
    whole = GAME.risks(EVERY, np.arange(60))
    np.testing.assert_array_equal(GAME.risks(EVERY, ROWS), whole[:, ROWS])
    orders, needed = np.array([[2, 0, 3, 1]]), np.ones((1, 5), dtype=bool)
    whole = GAME.path_risks(orders, np.arange(60), 0, needed)
    np.testing.assert_array_equal(GAME.path_risks(orders, ROWS, 0, needed), whole[:, :, ROWS])


@pytest.mark.parametrize("n_rows", [1, 3])
def test_fewer_rows_than_features_are_allowed(n_rows):
    game = LinearOutput(X[:n_rows], OUTPUT[:n_rows], NAMES)
    assert np.isfinite(game.risks(EVERY, np.arange(n_rows))).all()


def test_the_linear_game_of_an_output_game_resembles_it():
    sampler = Gaussian().fit(X)
    game = OutputGame(lambda rows: rows @ [1.0, 0.2, 3.0, -1.0], sampler, X, n_draws=256)
    cheap = game.linear_game()
    assert cheap.feature_names == game.feature_names
    exact, rough = (each.risks(EVERY, ROWS).mean(axis=2) for each in (game, cheap))
    assert np.corrcoef(exact.ravel(), rough.ravel())[0, 1] > 0.99


def test_moments_of_large_tables_are_added_up_portion_by_portion(monkeypatch):
    rng = np.random.default_rng(3)
    X, weights = rng.normal(size=(101, 3)) + 5.0, rng.uniform(0.5, 1.5, 101)
    weights[:10] = 0.0
    weights /= weights.mean()
    output = X @ [[1.0], [0.0], [2.0]]
    whole = LinearPredictor(Basis.linear(X), output, weights)
    monkeypatch.setattr(
        "dsage.games.linear.row_slices", lambda n_rows, _: row_slices(n_rows, 1, max_bytes=10)
    )
    parts = LinearPredictor(Basis.linear(X), output, weights)
    for name in ("moments", "correlation", "slopes", "mean"):
        np.testing.assert_allclose(getattr(parts, name), getattr(whole, name), rtol=1e-12)
    np.testing.assert_allclose(parts.Z(np.arange(5)), whole.Z(np.arange(5)), rtol=1e-12)


def test_other_rows_are_put_on_the_scale_of_those_of_the_fit():
    linear = LinearPredictor(Basis(X), OUTPUT[:, None], np.ones(len(X)))
    other = X[:7] * 2 - 3
    expected = (other - X.mean(axis=0)) / X.std(axis=0)
    np.testing.assert_allclose(linear.standardize(other), expected, rtol=1e-10)
    np.testing.assert_allclose(linear.standardize(X), linear.Z(np.arange(len(X))), rtol=1e-10)
