"""Exact means and a first level of classifiers with a marginal sampler."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dsage import explain, explain_rows
from dsage._random import Streams
from dsage.data.layout import Layout
from dsage.estimate import as_stopping, run
from dsage.games import LossGame, OutputGame, first_level
from dsage.games.score_draws import ScoreDraws
from dsage.games.score_game import ScoreGame, count_rows
from dsage.games.score_means import ScoreMeans
from dsage.models import as_model
from dsage.samplers import Marginal
from dsage.samplers.noise import Noise

N_FEATURES = 6
RNG = np.random.default_rng(2)
X = RNG.normal(size=(260, N_FEATURES))
SCORE = 2 * X[:, 0] - X[:, 1] + np.sin(2 * X[:, 2]) + 0.5 * RNG.logistic(size=260)
LABELS = {2: (SCORE > 0).astype(int), 3: np.digitize(SCORE, [-1, 1])}
TRAIN, TEST = slice(0, 150), slice(150, 260)


def boosting(n_classes=2):
    model = HistGradientBoostingClassifier(max_iter=8, min_samples_leaf=5)
    return model.fit(X[TRAIN], LABELS[n_classes][TRAIN])


def game_of(model, n_classes=2, **options):
    given = {"loss": "cross_entropy", "random_state": 0, **options}
    return LossGame(model, Marginal().fit(X[:40]), X[TEST], LABELS[n_classes][TEST], **given)


def true_risks(model, known, n_classes):
    labels = LABELS[n_classes][TEST]
    mixed = np.where(known, X[TEST][:, None], X[:40])
    means = model.predict_proba(mixed.reshape(-1, N_FEATURES)).reshape(len(labels), 40, -1).mean(1)
    return -np.log(means[np.arange(len(labels)), labels])


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("make", [boosting, None])
def test_risks_are_exact_over_all_training_rows(make, n_classes):
    labels = LABELS[n_classes][TRAIN]
    model = LogisticRegression().fit(X[TRAIN], labels) if make is None else make(n_classes)
    game = game_of(model, n_classes)
    assert not game.is_drawn
    assert game.has_dear_rows
    rows = np.arange(game.n_rows)
    order = np.array([[4, 1, 0, 5, 2, 3]])
    along = game.path_risks(order, rows, 0, np.ones((1, N_FEATURES + 1), dtype=bool))[0, ..., 0]
    for length, risks in enumerate(along):
        known = np.isin(np.arange(N_FEATURES), order[0, :length])
        np.testing.assert_allclose(risks, true_risks(model, known, n_classes), atol=1e-12)
        alone = game.risks(known[None], rows)[0, :, 0]
        np.testing.assert_allclose(risks, alone, atol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("make", [boosting, None])
def test_the_risk_of_a_row_does_not_depend_on_the_rows_beside_it(make, n_classes):
    labels = LABELS[n_classes][TRAIN]
    model = LogisticRegression().fit(X[TRAIN], labels) if make is None else make(n_classes)
    game, known = game_of(model, n_classes), RNG.random((5, N_FEATURES)) < 0.5
    orders = np.array([RNG.permutation(N_FEATURES) for _ in range(3)])
    needed = np.ones((3, N_FEATURES + 1), dtype=bool)
    for size in (1, 2, 4, 20):
        rows = RNG.permutation(60)
        some = np.split(rows, 60 // size)
        alone = [game.path_risks(orders, each, 0, needed) for each in some]
        assert np.array_equal(
            game.path_risks(orders, rows, 0, needed), np.concatenate(alone, axis=2)
        )
        alone = [game.risks(known, each) for each in some]
        assert np.array_equal(game.risks(known, rows), np.concatenate(alone, axis=1))


def test_many_training_rows_are_drawn_from():
    scores = as_model(boosting(), "cross_entropy").scores(Layout.of(X), X)
    assert ScoreMeans.pays(scores, 500)
    assert not ScoreMeans.pays(scores, 100_000)


@pytest.mark.parametrize(("n_steps", "most"), [(2, 2**13), (14, 2**11), (0, 2**14)])
def test_all_training_rows_pay_up_to_a_number_of_lookups(n_steps, most):
    scores = SimpleNamespace(n_steps=n_steps)
    assert ScoreMeans.pays(scores, most)
    assert not ScoreMeans.pays(scores, most + 1)


@pytest.mark.parametrize(
    ("n_background", "sizes"), [(2**12, [2, 2, 1]), (2**14, [1] * 5), (9, [5])]
)
def test_rows_are_treated_in_portions(n_background, sizes):
    seen = []

    class Scores:
        n_scores = n_steps = 1

        def encode(self, rows):
            return rows

        def means(self, known, x, background):
            seen.append(len(x))
            return x[:, :1] + known.sum()

        def path_means(self, order, x, background):
            seen.append(len(x))
            return np.stack([x[:, :1]] * len(order))

    matrix = np.arange(14.0).reshape(7, 2)
    means = ScoreMeans(Scores(), np.zeros((n_background, 2)), matrix)
    rows = np.array([6, 0, 3, 2, 5])
    found = means.means(np.array([[True, False], [True, True]]), rows)
    np.testing.assert_array_equal(found[:, :, 0], matrix[rows, 0] + [[1], [2]])
    assert seen == [size for size in sizes for _ in range(2)]
    np.testing.assert_array_equal(
        means.path_means(np.array([1, 0]), rows)[1, :, 0], matrix[rows, 0]
    )
    assert seen[2 * len(sizes) :] == sizes


def test_the_output_of_a_class_is_exact_too():
    model = boosting(3)
    game = OutputGame(model, Marginal().fit(X[:40]), X[TEST], output=2, random_state=0)
    known = np.array([True, False, True, False, False, True])
    mixed = np.where(known, X[TEST][:, None], X[:40]).reshape(-1, N_FEATURES)
    wanted = model.predict_proba(mixed)[:, 2].reshape(-1, 40).mean(axis=1)
    found = -game.risks(known[None], np.arange(game.n_rows))[0, :, 0]
    np.testing.assert_allclose(found, wanted, atol=1e-12)
    rows = explain_rows(
        model, X[:40], LABELS[3][:40], X[150:153], sampler="marginal", output=2, random_state=0,
        progress=False,
    )  # fmt: skip
    np.testing.assert_allclose(
        rows.values.sum(axis=1) + rows.base_values,
        model.predict_proba(X[150:153])[:, 2],
        atol=1e-10,
    )


def breast_cancer(make):
    """Eight features, 60 evaluation rows and 30 rows to draw from."""
    rows, labels = load_breast_cancer(return_X_y=True)
    rows = rows[:, [0, 1, 4, 7, 20, 21, 24, 27]]
    model = make().fit(rows[:300], labels[:300])
    sampler = Marginal().fit(rows[:30])
    options = {"loss": "cross_entropy", "random_state": 0}
    return LossGame(model, sampler, rows[300:360], labels[300:360], **options)


MODELS = {
    "boosting": lambda: HistGradientBoostingClassifier(max_iter=30),
    "logistic": lambda: make_pipeline(StandardScaler(), LogisticRegression()),
    "network": lambda: make_pipeline(
        StandardScaler(), MLPClassifier((8,), alpha=1.0, max_iter=3000, random_state=0)
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_the_first_level_lowers_the_error_and_keeps_the_values(name):
    game = breast_cancer(MODELS[name])
    assert game.is_drawn == (name == "network")
    level = game.first_level()
    assert isinstance(level, ScoreGame)
    options = {"stopping": as_stopping(n_orderings=200), "random_state": 0}
    with_level = run(game, exact="never", **options)
    without = run(game, exact="never", first_level="none", **options)
    truth = run(game, exact="always", stopping=as_stopping(n_orderings=400), random_state=1)
    for found in (with_level, without):
        off = np.abs(found.values - truth.values)
        assert (off <= 4.5 * np.hypot(found.se, truth.se)).all()
    variances = [np.square(found.se_orderings).sum() for found in (with_level, without)]
    assert variances[0] < variances[1] / 2


def test_coalitions_and_orderings_of_the_first_level_agree():
    level = breast_cancer(MODELS["boosting"]).first_level()
    order = np.array([[3, 1, 0, 2, 7, 6, 5, 4]])
    rows, needed = np.arange(20), np.ones((1, 9), dtype=bool)
    along = level.path_risks(order, rows, 0, needed)[0]
    known = np.array([np.isin(np.arange(8), order[0, :k]) for k in range(9)])
    np.testing.assert_allclose(along, level.risks(known, rows), atol=1e-12)
    means = level.mean_path_risks(order)[0]
    np.testing.assert_allclose(means, level.mean_risks(known), atol=1e-12)


def exact_values(model, n_classes):
    """The values by all coalitions, from predictions alone."""
    masks = np.array(list(itertools.product([False, True], repeat=N_FEATURES)))
    risks = {tuple(known): true_risks(model, known, n_classes).mean() for known in masks}
    values = np.zeros(N_FEATURES)
    orders = list(itertools.permutations(range(N_FEATURES)))
    for order in orders:
        known = np.zeros(N_FEATURES, dtype=bool)
        for feature in order:
            before = risks[tuple(known)]
            known[feature] = True
            values[feature] += before - risks[tuple(known)]
    return values / len(orders)


def test_squared_error_has_no_first_level_with_a_marginal_sampler():
    model = boosting()
    game = LossGame(
        lambda rows: model.predict_proba(rows)[:, 1], Marginal().fit(X[:40]), X[TEST],
        LABELS[2][TEST].astype(float), loss="squared_error", random_state=0,
    )  # fmt: skip
    assert game.first_level() is None


def test_marginal_values_of_a_classifier_need_few_predictions():
    found = explain(
        boosting(), X[:40], LABELS[2][:40], X[TEST], LABELS[2][TEST], sampler="marginal",
        random_state=0, progress=False,
    )  # fmt: skip
    assert np.abs(found.values - exact_values(boosting(), 2)).max() <= 4.5 * max(
        found.se.max(), 1e-9
    )
    assert found.estimate.se_draws.max() == 0.0


def test_terms_of_very_many_rows_are_not_kept():
    # Eight bytes each, 64 MiB in all.
    assert ScoreGame.fits(2**20, 4, 2)
    assert not ScoreGame.fits(2**20 + 1, 4, 2)
    assert not ScoreGame.fits(2**20, 5, 2)
    assert not ScoreGame.fits(2**20, 4, 3)


def test_other_noise_gives_other_draws_of_scores():
    draws, rows = ScoreDraws(2), np.arange(1)
    found = {
        draws.steps(rows, 0, Noise(Streams(seed), 3, n_replicates=1, n_draws=2)).tobytes()
        for seed in range(150)
    }
    assert len(found) == 150
    noise = Noise(Streams(0), 3, n_replicates=2, n_draws=4)
    steps = draws.steps(np.arange(5), 0, noise)
    assert steps.shape == (5, 2 * 4 * 4, 2)
    np.testing.assert_array_equal(steps, draws.steps(np.arange(5), 0, noise))
    assert (steps != draws.steps(np.arange(5), 1, noise)).any()


def test_very_many_columns_have_no_first_level_on_the_scale_of_a_link():
    wide = np.random.default_rng(0).normal(size=(30, 241))

    def chance(rows):
        p = 1 / (1 + np.exp(-np.asarray(rows)[:, :3].sum(axis=1)))
        return np.stack([1 - p, p], axis=1)

    labels = (wide[:, 0] > 0).astype(int)
    model = as_model(chance, "cross_entropy", classes=[0, 1])
    options = {"loss": "cross_entropy", "random_state": 0}
    for n_columns in (6, 241):
        some = wide[:, :n_columns]
        game = LossGame(model, Marginal().fit(some), some, labels, **options)
        assert (game.first_level() is None) == (n_columns == 241)


@pytest.mark.parametrize(
    ("share", "ratio", "saves"),
    [(0.1, 0.0, True), (0.1, 0.3, True), (0.1, 1.0, False), (0.64, 0.3, False), (0.9, 0.0, False)],
)
def test_a_first_level_must_be_worth_its_time(share, ratio, saves):
    level = SimpleNamespace(cost_of_prefix=3.0 * ratio * 64 * 50, feature_names=["a"])
    game = SimpleNamespace(cost_of_means=50.0, n_rows=100, rows_of_unit=64)
    assert first_level._saves(level, share, game) is saves
    # Without balanced orderings it must be three times as cheap.
    level = SimpleNamespace(cost_of_prefix=ratio * 64 * 50, feature_names=["a"] * 33)
    assert first_level._saves(level, share, game) is saves
    game.cost_of_means = 0.0
    assert first_level._saves(level, share, game)


def test_scores_are_fitted_to_as_many_rows_as_they_need():
    numbers, classes = np.zeros(20, dtype=np.intp), np.full(200, 3)
    assert count_rows(numbers[:2]) == 1024
    assert count_rows(numbers) == 32 * 80
    assert count_rows(np.concatenate([numbers, classes])) == 32 * 240
