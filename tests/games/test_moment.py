import numpy as np
import pytest

from dsage.estimate.walk import prefixes
from dsage.games import MomentGame
from given import all_coalitions

NAMES = tuple("abcd")
EVERY = all_coalitions(4)
RIDGE = 1e-6


def data(n_rows=60, n_outputs=None, seed=0):
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n_rows, 4)) @ generator.normal(size=(4, 4)) * [1, 10, 0.1, 3] + 5
    shape = (4,) if n_outputs is None else (4, n_outputs)
    output = np.tanh(X @ generator.normal(size=shape)) + X @ generator.normal(size=shape)
    target = output + generator.normal(size=output.shape)
    return X, output, target


def naive(X, output, target, coalition, weights=None):
    """Weighted least squares of the output on standardised features, with ridge and penalty."""
    weights = np.ones(len(X)) if weights is None else weights / weights.mean()
    output, target = output.reshape(len(X), -1), target.reshape(len(X), -1)
    center = np.average(X, axis=0, weights=weights)
    scale = np.sqrt(np.average((X - center) ** 2, axis=0, weights=weights))
    Z = ((X - center) / np.where(scale > 0, scale, 1.0))[:, coalition]
    mean = np.average(output, axis=0, weights=weights)
    n_known = int(coalition.sum())
    root = np.sqrt(weights)[:, None]
    # Least squares with the ridge as further rows.
    above = np.vstack([root * Z, np.sqrt(RIDGE * len(X)) * np.eye(n_known)])
    below = np.vstack([root * (output - mean), np.zeros((n_known, output.shape[1]))])
    b = np.linalg.lstsq(above, below, rcond=None)[0]
    return weights * (((target - mean - Z @ b) ** 2).sum(axis=1) + RIDGE * (b**2).sum())


@pytest.mark.parametrize("n_outputs", [None, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_risks_are_those_of_least_squares_on_the_output(n_outputs, weighted):
    X, output, target = data(n_outputs=n_outputs)
    weights = np.random.default_rng(1).integers(0, 4, size=60).astype(float) if weighted else None
    game = MomentGame(X, output, target, NAMES, sample_weight=weights)
    risks = game.risks(EVERY, np.arange(60))
    assert risks.shape == (16, 60, 1)
    for coalition, risk in zip(EVERY, risks[:, :, 0], strict=True):
        expected = naive(X, output, target, coalition, weights)
        np.testing.assert_allclose(risk, expected, rtol=1e-8, atol=1e-10)


def test_the_ridge_is_too_small_to_be_seen():
    X, output, target = data()
    game = MomentGame(X, output, target, NAMES)
    for coalition, risk in zip(EVERY, game.mean_risks(EVERY), strict=True):
        design = np.column_stack([np.ones(60), X[:, coalition]])
        fitted = design @ np.linalg.lstsq(design, output, rcond=None)[0]
        assert risk == pytest.approx(((target - fitted) ** 2).mean(), rel=1e-4)


@pytest.mark.parametrize("n_outputs", [None, 1, 2])
@pytest.mark.parametrize("weighted", [False, True])
def test_mean_risks_are_means_of_risks_and_so_are_those_of_paths(n_outputs, weighted):
    X, output, target = data(n_outputs=n_outputs)
    weights = np.random.default_rng(2).random(60) if weighted else None
    game = MomentGame(X, output, target, NAMES, sample_weight=weights)
    means = game.mean_risks(EVERY)
    np.testing.assert_allclose(means, game.risks(EVERY, np.arange(60)).mean(axis=(1, 2)), rtol=1e-9)
    generator = np.random.default_rng(3)
    orders = np.array([generator.permutation(4) for _ in range(9)])
    expected = game.mean_risks(prefixes(orders).reshape(-1, 4)).reshape(9, 5)
    np.testing.assert_allclose(game.mean_path_risks(orders), expected, rtol=1e-9)


def test_many_coalitions_and_orderings_are_evaluated_in_chunks(monkeypatch):
    game = MomentGame(*data(), NAMES)
    orders = np.array([np.random.default_rng(seed).permutation(4) for seed in range(11)])
    whole, paths = game.mean_risks(EVERY), game.mean_path_risks(orders)
    monkeypatch.setattr("dsage.games.moment._AT_ONCE", 3)
    np.testing.assert_allclose(game.mean_risks(EVERY), whole, rtol=1e-12)
    np.testing.assert_allclose(game.mean_path_risks(orders), paths, rtol=1e-12)


def test_risks_do_not_depend_on_what_else_is_asked_for_to_the_bit():
    game = MomentGame(*data(n_outputs=2), NAMES)
    rows = np.array([7, 3, 50, 8])
    together = game.risks(EVERY, rows)
    for at in (0, 5, 9, 15):
        np.testing.assert_array_equal(game.risks(EVERY[[at]], rows)[0], together[at])
    np.testing.assert_array_equal(game.risks(EVERY[::-1], rows), together[::-1])


def test_some_rows_have_the_risks_that_they_have_among_all():
    game = MomentGame(*data(), NAMES)
    rows = np.array([7, 3, 50, 8])
    whole = game.risks(EVERY, np.arange(60))
    np.testing.assert_allclose(game.risks(EVERY, rows, 4), whole[:, rows], rtol=1e-12)


def test_a_copied_or_constant_column_adds_nothing():
    X, output, target = data()
    copied = np.column_stack([X[:, :2], X[:, 1], np.full(60, 2.5)])
    game = MomentGame(copied, output, target, NAMES)
    risks = dict(zip(map(tuple, EVERY.astype(int).tolist()), game.mean_risks(EVERY), strict=True))
    assert all(np.isfinite(risk) for risk in risks.values())
    for first in (0, 1):
        alone = risks[first, 1, 0, 0]
        assert risks[first, 0, 1, 0] == pytest.approx(alone, rel=1e-12)
        # The ridge is shared by the copies: halved, and too small to be seen.
        assert risks[first, 1, 1, 0] == pytest.approx(alone, rel=2e-5)
        assert risks[first, 1, 0, 1] == pytest.approx(alone, rel=1e-12)
    orders = np.array([[0, 1, 2, 3], [2, 3, 1, 0]])
    expected = game.mean_risks(prefixes(orders).reshape(-1, 4)).reshape(2, 5)
    np.testing.assert_allclose(game.mean_path_risks(orders), expected, rtol=1e-7)


@pytest.mark.parametrize("n_rows", [1, 2, 3])
def test_fewer_rows_than_features_are_enough(n_rows):
    X, output, target = data(n_rows)
    game = MomentGame(X, output, target, NAMES)
    means = game.mean_risks(EVERY)
    expected = [naive(X, output, target, coalition).mean() for coalition in EVERY]
    np.testing.assert_allclose(means, expected, rtol=1e-5)
    np.testing.assert_allclose(
        game.mean_path_risks(np.array([[3, 1, 0, 2]]))[0, -1], means[-1], rtol=1e-5
    )


def test_nothing_known_is_the_mean_output():
    X, output, target = data()
    game = MomentGame(X, output, target, NAMES)
    risk = game.risks(EVERY[:1], np.arange(60))[0, :, 0]
    np.testing.assert_allclose(risk, (target - output.mean()) ** 2, rtol=1e-12)


def test_a_linear_model_is_followed_to_the_end():
    X, _, _ = data()
    output = X @ [1.0, -0.2, 3.0, 0.5] + 2
    game = MomentGame(X, output, output, NAMES)
    # Up to the penalty of the ridge.
    assert game.mean_risks(EVERY)[-1] < 1e-6 * output.var()


def test_a_target_of_another_shape_is_refused():
    X, output, _ = data()
    with pytest.raises(ValueError, match=r"target must be of shape \(60, 1\); got \(60, 2\)"):
        MomentGame(X, output, np.zeros((60, 2)), NAMES)
    with pytest.raises(ValueError, match="sample_weight must be"):
        MomentGame(X, output, output, NAMES, sample_weight=[1.0])


def test_with_many_columns_prefixes_are_those_of_single_coalitions():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 70)) @ (np.eye(70) + 0.05)
    output, target = X[:, :3].sum(axis=1), X.sum(axis=1)
    game = MomentGame(X, output, target, [f"x{number}" for number in range(70)])
    assert game.has_paths
    orders, rows = rng.permutation(70)[None], np.array([5, 80])
    found = game.path_risks(orders, rows, 0, np.ones((1, 71), dtype=bool))
    expected = game.risks(prefixes(orders)[0], rows)
    np.testing.assert_allclose(found[0], expected, rtol=1e-8)


@pytest.mark.parametrize("is_singular", [False, True])
def test_with_many_columns_means_along_orderings_are_those_of_rows(is_singular):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(200, 70))
    if is_singular:
        X[:, 69] = X[:, 68]
    y = X[:, :5].sum(axis=1) + X[:, -1]
    game = MomentGame(X, y, y + rng.normal(size=200), [f"x{j}" for j in range(70)])
    orders = np.array([rng.permutation(70) for _ in range(3)])
    everywhere = game.path_risks(orders, np.arange(200), 0, np.ones((3, 71), dtype=np.bool_))
    np.testing.assert_allclose(
        game.mean_path_risks(orders), everywhere.mean(axis=(2, 3)), rtol=1e-9, atol=1e-9
    )
