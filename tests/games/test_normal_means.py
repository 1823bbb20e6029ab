"""Mean predictions of linear scores behind a link, whose law a Gaussian sampler knows."""

import functools
import itertools
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression, PoissonRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dsage import explain, explain_rows
from dsage.estimate import as_stopping, run
from dsage.games import LossGame, OutputGame
from dsage.games.normal_means import NormalDraws, NormalMeans
from dsage.samplers import Gaussian, GaussianCopula, Mix

N_FEATURES = 5
RNG = np.random.default_rng(3)
MIXING = RNG.normal(size=(N_FEATURES, N_FEATURES))
X = RNG.normal(size=(400, N_FEATURES)) @ MIXING + RNG.normal(size=N_FEATURES)
SCORE = X @ [1.0, -1.0, 0.5, 0.0, 0.3] + RNG.logistic(size=400)
SCORE = (SCORE - SCORE.mean()) / SCORE.std()
TARGETS = {
    "two": (SCORE > 0).astype(int),
    "three": np.digitize(SCORE, [-0.5, 0.5]),
    "counts": RNG.poisson(np.exp(0.7 * SCORE)),
}
TRAIN, TEST = slice(0, 300), slice(300, 400)
MODELS = {
    "two": make_pipeline(StandardScaler(), LogisticRegression(C=10.0)),
    "three": LogisticRegression(),
    "counts": make_pipeline(StandardScaler(), PoissonRegressor(alpha=1e-3)),
}
LOSSES = {"two": "cross_entropy", "three": "cross_entropy", "counts": "poisson"}
SAMPLER = Gaussian().fit(X[TRAIN])


@functools.cache
def model_of(kind):
    return clone(MODELS[kind]).fit(X[TRAIN], TARGETS[kind][TRAIN])


def game_of(kind, model=None, sampler=SAMPLER, **options):
    given = {"loss": LOSSES[kind], "random_state": 0, **options}
    model = model_of(kind) if model is None else model
    return LossGame(model, sampler, X[TEST], TARGETS[kind][TEST], **given)


def outputs_of(kind):
    """The predictions as a function, of which nothing is known."""
    model = model_of(kind)
    return model.predict if kind == "counts" else model.predict_proba


def coalitions():
    return np.array(list(itertools.product([False, True], repeat=N_FEATURES)))


def drawn_mean(kind, known, n_draws=1 << 15):
    """The mean predictions given a coalition, from independent draws, and their errors."""
    rng, unknown = np.random.default_rng(0), ~known
    mean, covariance = SAMPLER.mean_, SAMPLER.covariance_
    slopes = covariance[np.ix_(unknown, known)] @ np.linalg.inv(covariance[np.ix_(known, known)])
    rest = covariance[np.ix_(unknown, unknown)] - slopes @ covariance[np.ix_(known, unknown)]
    noise = rng.multivariate_normal(np.zeros(unknown.sum()), rest, n_draws)
    means, errors = [], []
    for row in X[TEST][:8]:
        rows = np.tile(row, (n_draws, 1))
        rows[:, unknown] = mean[unknown] + slopes @ (row - mean)[known] + noise
        predicted = outputs_of(kind)(rows)
        means.append(predicted.mean(axis=0))
        errors.append(predicted.std(axis=0) / np.sqrt(n_draws))
    return np.array(means), np.array(errors)


@pytest.mark.parametrize("kind", ["two", "counts"])
def test_a_single_score_needs_no_draws(kind):
    game = game_of(kind)
    assert not game.is_drawn
    assert not game.has_dear_rows
    assert game.n_replicates == 1
    assert game.n_predicted == game.n_rows


@pytest.mark.parametrize("kind", ["two", "three", "counts"])
def test_means_are_those_of_draws(kind):
    game, rows = game_of(kind, n_draws=64), np.arange(8)
    for known in np.array([[0, 1, 0, 0, 0], [1, 1, 0, 1, 0], [0, 1, 1, 1, 1]], dtype=bool):
        found = game._means(known[None], rows, 0)[0].mean(axis=1)
        wanted, errors = drawn_mean(kind, known)
        # A normal is within 4.5 standard errors; scores of several classes are drawn themselves.
        slack = 0.01 if kind == "three" else 1e-9
        assert (np.abs(found - wanted) <= 4.5 * errors + slack).all()


@pytest.mark.parametrize("kind", ["two", "three", "counts"])
def test_coalitions_and_orderings_agree(kind):
    game, rows = game_of(kind), np.arange(20)
    order = np.array([[4, 1, 0, 2, 3]])
    along = game.path_risks(order, rows, 0, np.ones((1, N_FEATURES + 1), dtype=bool))[0]
    known = np.array([np.isin(np.arange(N_FEATURES), order[0, :k]) for k in range(N_FEATURES + 1)])
    # The factors of several scores are rounded to eight digits.
    np.testing.assert_allclose(
        along, game.risks(known, rows), rtol=1e-5 if kind == "three" else 1e-9
    )


@pytest.mark.parametrize("kind", ["two", "three", "counts"])
def test_the_risk_of_a_row_does_not_depend_on_the_batch(kind):
    game = game_of(kind)
    known, rows = coalitions()[:-1], np.arange(7)
    together = game.risks(known, rows, 3)
    alone = [
        np.concatenate([game.risks(each[None], rows[at : at + 1], 3) for at in rows], axis=1)
        for each in known
    ]
    assert np.array_equal(together, np.concatenate(alone))
    orders = np.array([[0, 1, 2, 3, 4], [4, 2, 0, 1, 3]])
    needed = np.ones((2, N_FEATURES + 1), dtype=bool)
    both = game.path_risks(orders, rows, 3, needed)
    for at, order in enumerate(orders):
        for row in rows:
            one = game.path_risks(order[None], np.array([row]), 3, needed[:1])
            assert np.array_equal(both[at, :, row], one[0, :, 0])


@functools.cache
def exact_values(kind):
    """Values by all coalitions, from a game with many draws of features."""
    game = game_of(kind, outputs_of(kind), n_draws=512)
    assert game.is_drawn
    masks = coalitions()
    risks = {tuple(known): risk for known, risk in zip(masks, game.mean_risks(masks), strict=True)}
    values, orders = np.zeros(N_FEATURES), list(itertools.permutations(range(N_FEATURES)))
    for order in orders:
        known = np.zeros(N_FEATURES, dtype=bool)
        for feature in order:
            before = risks[tuple(known)]
            known[feature] = True
            values[feature] += before - risks[tuple(known)]
    return values / len(orders)


@pytest.mark.parametrize("kind", ["two", "three"])
def test_values_are_those_of_many_draws_of_features(kind):
    found = run(game_of(kind), exact="always", stopping=as_stopping(n_orderings=64), random_state=0)
    np.testing.assert_allclose(found.values, exact_values(kind), atol=3e-3)
    if kind == "two":
        assert found.se_draws.max() == 0.0
        assert found.se_orderings.max() == 0.0


def test_few_draws_of_several_scores_have_honest_errors():
    truth = run(game_of("three", n_draws=512), exact="always", stopping=as_stopping(n_orderings=64))
    z = []
    for seed in range(12):
        game = game_of("three", n_draws=4, random_state=seed)
        found = run(game, exact="always", stopping=as_stopping(n_orderings=64), random_state=seed)
        z.append((found.values - truth.values) / np.hypot(found.se, truth.se))
    assert 0.3 < np.square(z).mean() < 3.0


@pytest.mark.parametrize(
    "model",
    [
        LinearDiscriminantAnalysis(),
        make_pipeline(StandardScaler(), PCA(3), LogisticRegression()),
    ],
)
def test_discriminants_and_projections_are_recognized(model):
    game = game_of("two", model.fit(X[TRAIN], TARGETS["two"][TRAIN]))
    assert isinstance(game._exact, NormalMeans)


def test_row_weights_multiply_risks():
    weights = np.linspace(0.5, 1.5, 100)
    known, rows = coalitions()[[3, 9]], np.arange(100)
    plain, weighted = (
        game_of("two", sample_weight=each).risks(known, rows) for each in (None, weights)
    )
    np.testing.assert_allclose(weighted[..., 0], plain[..., 0] * weights / weights.mean())


def test_a_copied_column_is_no_problem():
    doubled = np.column_stack([X, X[:, 0]])
    with pytest.warns(UserWarning, match="follow from"):
        sampler = Gaussian().fit(doubled[TRAIN])
    model = LogisticRegression().fit(doubled[TRAIN], TARGETS["two"][TRAIN])
    game = LossGame(
        model, sampler, doubled[TEST], TARGETS["two"][TEST], loss="cross_entropy", random_state=0
    )
    assert isinstance(game._exact, NormalMeans)
    known = np.zeros((3, 6), dtype=bool)
    known[0, 0] = known[1, 5] = known[2, [0, 5]] = True
    risks = game.risks(known, np.arange(20))
    np.testing.assert_allclose(risks[1], risks[0], rtol=1e-8)
    np.testing.assert_allclose(risks[2], risks[0], rtol=1e-8)


def test_draws_that_are_moved_to_possible_values_are_drawn():
    whole = X.copy()
    whole[:, 2] = np.rint(3.0 * whole[:, 2])
    model = LogisticRegression().fit(whole[TRAIN], TARGETS["two"][TRAIN])
    sampler = Gaussian().fit(whole[TRAIN])
    assert not sampler.has_sums
    game = LossGame(
        model, sampler, whole[TEST], TARGETS["two"][TEST], loss="cross_entropy", random_state=0
    )
    assert game.is_drawn


def test_rows_with_missing_values_are_drawn():
    rows = X[TEST].copy()
    rows[0, 0] = np.nan
    model = make_pipeline(StandardScaler(), LogisticRegression())
    model.fit(X[TRAIN], TARGETS["two"][TRAIN])

    def filled(given):
        return model.predict_proba(np.nan_to_num(np.asarray(given)))

    game = LossGame(
        filled, SAMPLER, rows, TARGETS["two"][TEST], loss="cross_entropy", random_state=0
    )
    assert game.is_drawn


def test_a_subclass_with_its_own_draws_is_drawn_from():
    class Narrow(Gaussian):
        def _write(self, out, rows, known, noise):
            super()._write(out, rows, known, 0.25 + 0.5 * noise)

    assert not Narrow().fit(X[TRAIN]).has_sums
    assert Gaussian().fit(X[TRAIN]).has_sums
    assert not Gaussian().has_sums


@pytest.mark.parametrize("kind", ["two", "three"])
def test_games_can_be_pickled(kind):
    game = game_of(kind)
    known, rows = coalitions()[[3, 9, 30]], np.arange(9)
    copied = pickle.loads(pickle.dumps(game))
    assert np.array_equal(game.risks(known, rows, 1), copied.risks(known, rows, 1))


@pytest.mark.parametrize(("kind", "output"), [("two", 0), ("two", 1), ("three", 2)])
def test_the_output_of_a_class_adds_up(kind, output):
    game = OutputGame(model_of(kind), SAMPLER, X[TEST], output=output, random_state=0)
    part = game._exact if kind == "two" else game._normal
    assert isinstance(part, NormalMeans if kind == "two" else NormalDraws)
    known = np.array([[False, True, True, False, False]])
    found = -game.risks(known, np.arange(8))[0].mean(axis=1)
    wanted, errors = drawn_mean(kind, known[0])
    assert (np.abs(found - wanted[:, output]) <= 4.5 * errors[:, output] + 0.02).all()
    rows = explain_rows(
        model_of(kind), X[TRAIN], TARGETS[kind][TRAIN], X[300:303], sampler=SAMPLER, output=output,
        random_state=0, progress=False,
    )  # fmt: skip
    total = rows.values.sum(axis=1) + rows.base_values
    atol = 1e-10 if kind == "two" else 0.03
    np.testing.assert_allclose(total, outputs_of(kind)(X[300:303])[:, output], atol=atol)


def test_explain_has_no_errors_from_draws():
    names = list("abcde")
    frame = pd.DataFrame(X, columns=names)
    model = clone(MODELS["two"]).fit(frame[TRAIN], TARGETS["two"][TRAIN])
    given = frame[TRAIN], TARGETS["two"][TRAIN], frame[TEST], TARGETS["two"][TEST]
    found = explain(model, *given, sampler="gaussian", graph=None, random_state=0, progress=False)
    assert found.estimate.se_draws.max() == 0.0
    np.testing.assert_allclose(found.values, exact_values("two"), atol=3e-3)


def test_groups_of_features_are_known_together():
    groups = {"first": ["a", "b"], "others": ["c", "d", "e"]}
    frame = pd.DataFrame(X, columns=list("abcde"))
    model = clone(MODELS["two"]).fit(frame[TRAIN], TARGETS["two"][TRAIN])
    given = frame[TRAIN], TARGETS["two"][TRAIN], frame[TEST], TARGETS["two"][TEST]
    found = explain(
        model, *given, groups=groups, sampler="gaussian", graph=None, random_state=0, progress=False
    )
    game = game_of("two")
    known = np.array([[False] * 5, [True, True, False, False, False], [False] * 2 + [True] * 3])
    none, first, others = game.mean_risks(known)
    whole = game.losses.mean()
    value = ((none - first) + (others - whole)) / 2.0
    assert found.values[0] == pytest.approx(value, abs=1e-9)


@pytest.mark.parametrize("make", [GaussianCopula, Mix])
@pytest.mark.parametrize("kind", ["two", "three"])
def test_draws_of_other_samplers_are_predicted_from_scores(make, kind):
    sampler = make().fit(X[TRAIN])
    direct, asked = (
        game_of(kind, model, sampler, draw_control="none")
        for model in (model_of(kind), outputs_of(kind))
    )
    assert direct.is_drawn
    assert direct._control is None
    known, rows = coalitions()[[0, 5, 18]], np.arange(20)
    np.testing.assert_allclose(direct.risks(known, rows), asked.risks(known, rows), rtol=1e-6)
    orders, needed = np.array([[4, 1, 0, 2, 3]]), np.ones((1, N_FEATURES + 1), dtype=bool)
    along = direct.path_risks(orders, rows, 0, needed)
    np.testing.assert_allclose(along, asked.path_risks(orders, rows, 0, needed), rtol=1e-6)
    alone = [direct.path_risks(orders, rows[at : at + 1], 0, needed) for at in rows]
    assert np.array_equal(along, np.concatenate(alone, axis=2))


def test_the_model_is_not_asked_about_draws():
    n_asked = []

    class Counted(LogisticRegression):
        def predict_proba(self, X):
            n_asked.append(len(X))
            return super().predict_proba(X)

    Counted.__name__, Counted.__module__ = "LogisticRegression", LogisticRegression.__module__
    model = Counted().fit(X[TRAIN], TARGETS["two"][TRAIN])
    game = game_of("two", model, GaussianCopula().fit(X[TRAIN]))
    before = sum(n_asked)
    game.risks(coalitions()[:4], np.arange(50))
    assert before > 0
    assert sum(n_asked) == before
