"""Additive scores of a model with a link, and the training rows that represent all."""

import itertools

import numpy as np
import pytest
from scipy.special import expit, softmax

from dsage.games.score_game import ScoreGame, _choose_points, fit_scores

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(600, 3))
NUMBERS = np.zeros(3, dtype=np.intp)
WEIGHTS = np.array([[1.0, -0.5, 0.3], [0.2, 0.8, 0.0], [-0.7, 0.1, 0.4]])


def predictions(kind):
    """Predictions of additive scores for the rows."""
    scores = 0.5 * ROWS @ WEIGHTS.T
    if kind == "exp":
        return np.exp(scores[:, 0])
    if kind == "softmax":
        return softmax(scores, axis=1)
    p = expit(scores[:, 0])
    return p if kind == "one" else np.stack([1 - p, p], axis=1)


@pytest.mark.parametrize("kind", ["one", "two", "softmax", "exp"])
def test_additive_scores_give_the_predictions_of_mixed_rows(kind):
    predicted = predictions(kind)
    link = {"one": "logistic", "two": "logistic"}.get(kind, kind)
    scores = fit_scores(link, ROWS, predicted, NUMBERS)
    assert scores.link == link
    assert scores.output == (1 if kind == "one" else None)
    x, b = scores.encode(ROWS[:20]), scores.encode(ROWS[20:60])
    full = scores.means(np.ones(3, dtype=bool), x, b)
    expected = predicted[:20].reshape(20, -1)
    np.testing.assert_allclose(full, expected, rtol=0.02, atol=0.01)
    if kind == "two":
        np.testing.assert_allclose(full.sum(axis=1), 1.0)
    # Of a mixture of two rows, from all pairs of rows.
    known = np.array([True, False, True])
    found = scores.means(known, x, b)
    mixed = np.where(known, ROWS[:20, None], ROWS[20:60])
    score = 0.5 * mixed @ WEIGHTS.T
    own = {"exp": np.exp(score[..., :1]), "softmax": softmax(score, axis=-1)}
    p = expit(score[..., 0])
    own |= {"one": p[..., None], "two": np.stack([1 - p, p], axis=-1)}
    np.testing.assert_allclose(found, own[kind].mean(axis=1), rtol=0.03, atol=0.01)


@pytest.mark.parametrize("kind", ["one", "two", "exp"])
def test_the_most_extreme_predictions_count_as_less_extreme(kind):
    predicted = predictions(kind)
    low, high = predicted.copy(), predicted.copy()
    if kind == "exp":
        low[:3] = 0.0
        high[:3] = 1e-3 * low.mean()
    else:
        low[:3], low[3:6] = (0.0, 1.0) if kind == "one" else ([1.0, 0.0], [0.0, 1.0])
        high[:3], high[3:6] = (0.001, 0.999) if kind == "one" else ([0.999, 0.001], [0.001, 0.999])
    link = "exp" if kind == "exp" else "logistic"
    one, other = (fit_scores(link, ROWS, each, NUMBERS) for each in (low, high))
    # A few small numbers hardly change the mean that they are compared with.
    atol = 1e-4 if kind == "exp" else 1e-9
    np.testing.assert_allclose(one.encode(ROWS), other.encode(ROWS), rtol=0.0, atol=atol)


def test_functions_are_as_many_as_columns_are_allowed(monkeypatch):
    monkeypatch.setattr("dsage.games.score_game._MOST_COLUMNS", 12)

    def n_functions(n_features):
        rows = np.random.default_rng(n_features).normal(size=(100, n_features))
        p = expit(rows[:, 0] ** 2 - 1)
        scores = fit_scores("logistic", rows, p, np.zeros(n_features, dtype=np.intp))
        return None if scores is None else int(scores._terms.n_columns.max())

    found = [n_functions(n) for n in (3, 4, 5, 6, 7, 12, 13)]
    assert found == [4, 3, 2, 2, 1, 1, None]


@pytest.mark.parametrize("n_rows", [1, 5, 16, 48, 240])
@pytest.mark.parametrize("n_scores", [1, 3])
def test_points_are_spread_evenly_over_the_first_principal_component(n_rows, n_scores):
    terms = RNG.normal(size=(4, n_scores, n_rows)) * 3.0 ** -np.arange(n_scores)[:, None] + 7.0
    scores = terms.sum(axis=0).T
    covariance = np.cov(scores.T, bias=True).reshape(n_scores, n_scores)
    component = scores @ np.linalg.eigh(covariance)[1][:, -1]
    # Ranks in the middle of sixteen groups of equal size.
    size = max(n_rows / 16, 1)
    middles = [int(size * (number + 0.5)) for number in range(min(n_rows, 16))]
    chosen = sorted(np.argsort(component)[middles].tolist())
    np.testing.assert_array_equal(_choose_points(terms), terms[:, :, chosen])


@pytest.mark.parametrize("kind", ["one", "softmax"])
def test_risks_are_the_losses_of_means_over_the_points(kind):
    scores = fit_scores("logistic" if kind == "one" else kind, ROWS, predictions(kind), NUMBERS)
    target, weights = RNG.integers(0, 2, size=30), RNG.uniform(0.5, 1.5, size=30)

    def losses(means, rows):
        chosen = np.where(target[rows], means, 1 - means) if means.ndim == 2 else means[..., 1]
        return -weights[rows] * np.log(chosen)

    game = ScoreGame(scores, ROWS[100:148], ROWS[:30], losses, ("a", "b", "c"), weights)
    points = _choose_points(scores.encode(ROWS[100:148]))
    assert points.shape[2] == 16
    assert game.cost_of_prefix == 30 * 16 * scores.n_scores
    assert game.cost == pytest.approx(0.02 * 3 * game.cost_of_prefix)
    rows = np.array([7, 2, 29])
    for members in itertools.product([False, True], repeat=3):
        known = np.array(members)
        means = scores.means(known, scores.encode(ROWS[rows]), points)
        expected = losses(means[None, :, 0] if kind == "one" else means[None], rows)[0]
        np.testing.assert_allclose(game.risks(known[None], rows)[0, :, 0], expected)
    order, needed = np.array([[2, 0, 1], [1, 2, 0]]), np.ones((2, 4), dtype=bool)
    along = game.path_risks(order, rows, 0, needed)
    for one, risks in zip(order, along, strict=True):
        known = np.array([np.isin(np.arange(3), one[:size]) for size in range(4)])
        np.testing.assert_allclose(risks, game.risks(known, rows), atol=1e-12)
    everywhere = game.path_risks(order, np.arange(30), 0, needed).mean(axis=(2, 3))
    np.testing.assert_allclose(game.mean_path_risks(order), everywhere)
