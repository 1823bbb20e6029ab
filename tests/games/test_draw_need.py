"""How many draws a risk needs: more for long tails and overconfident models, and no more for others."""

from time import sleep

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.naive_bayes import GaussianNB

import dsage
from dsage._check import DsageWarning
from dsage.games import LossGame
from dsage.games.draw_need import DrawNeed, find_need, pilot_of
from dsage.samplers import Gaussian, Marginal
from dsage.workflows.ground import Ground

N_TRAIN = 400


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    common = rng.normal(size=(600, 1))
    return 0.6 * common + 0.8 * rng.normal(size=(600, 4))


@pytest.fixture(scope="module")
def amounts(rows):
    return steep(rows) * np.random.default_rng(1).gamma(2, 0.5, 600)


@pytest.fixture(scope="module")
def labels(rows):
    noise = np.random.default_rng(2).normal(size=600)
    return np.where(rows[:, 0] + rows[:, 1] + noise > 0, "yes", "no")


def steep(X):
    """Predictions with a long tail."""
    X = np.asarray(X)
    return np.exp(0.8 * X[:, 0] + 0.6 * X[:, 1] + 0.3 * X[:, 2])


def game(model, rows, y, **options):
    sampler = Marginal().fit(rows[:N_TRAIN])
    return LossGame(model, sampler, rows[N_TRAIN:], y[N_TRAIN:], random_state=0, **options)


def squares_need(noise, explained, n_draws=16, risk=0.0):
    """The need of a risk m^2, whose bias is the variance of the mean m, and the sets drawn."""
    rng, asked = np.random.default_rng(0), []

    def draw(number):
        asked.append(number)
        return rng.normal(0.0, noise, size=(2, 20_000, 2))

    return find_need(draw, lambda means: means**2, n_draws, explained, risk), asked


@pytest.mark.parametrize(
    ("explained", "factor", "n_sets"),
    # One set has a bias of 1 - 1/4 next to all four, and of 1 - 1/8 next to all eight.
    [(100.0, 1, 4), (40.0, 2, 4), (20.0, 4, 8), (5.0, 8, 8)],
)
def test_draws_are_doubled_until_the_bias_does_not_matter(explained, factor, n_sets):
    need, asked = squares_need(1.0, explained)
    assert need.n_draws == 16 * factor
    assert asked == list(range(n_sets))
    assert (need.left <= 0.01) == (factor < 8)


def test_there_is_no_pilot_that_takes_a_large_part_of_the_time():
    asked = []

    def draw(number):
        asked.append(number)
        sleep(0.05)
        return np.random.default_rng(number).normal(size=(2, 50, 2))

    assert find_need(draw, np.square, 16, 1.0, 1.0, seconds=1.0) == DrawNeed(16, 0.0)
    assert asked == [0]
    assert find_need(draw, np.square, 16, 1.0, 1.0, seconds=60.0).n_draws > 16


def test_a_bias_is_compared_with_the_risk_if_little_is_explained():
    assert squares_need(1.0, 0.0, risk=1000.0)[0].n_draws == 16
    assert squares_need(1.0, 0.0, risk=5.0)[0].n_draws == 128
    need, asked = squares_need(1.0, 0.0)
    assert need == DrawNeed(16, 0.0)
    assert not asked


def test_a_pilot_has_coalitions_of_all_sizes_and_distinct_rows():
    known, rows = pilot_of(1000, 16, np.random.default_rng(0))
    assert known.sum(axis=1).tolist() == [2, 6, 10, 14]
    assert all((known[at] <= known[at + 1]).all() for at in range(3))
    assert len(np.unique(rows)) == 256
    known, rows = pilot_of(5, 1, np.random.default_rng(0))
    assert known.tolist() == [[False]]
    np.testing.assert_array_equal(rows, np.arange(5))
    known, _ = pilot_of(5, 16, np.random.default_rng(0), n_orderings=2)
    assert sorted(known.sum(axis=1).tolist()) == [2, 2, 6, 6, 10, 10, 14, 14]


def test_only_smooth_losses_of_drawn_predictions_have_a_pilot(rows, amounts):
    for found in (
        game(steep, rows, amounts, loss="squared_error"),
        game(steep, rows, amounts, loss="absolute_error"),
        game(steep, rows, amounts, loss="gamma", n_replicates=1),
    ):
        before = found.n_predicted
        assert found.draw_need() == DrawNeed(found.draws_per_risk, 0.0)
        assert found.n_predicted == before
    linear = LinearRegression().fit(rows[:N_TRAIN], amounts[:N_TRAIN])
    X, y = rows[N_TRAIN:], amounts[N_TRAIN:]
    affine = LossGame(linear, Gaussian().fit(rows[:N_TRAIN]), X, y)
    assert affine.draw_need().n_draws == affine.draws_per_risk == 0


@pytest.mark.parametrize("loss", ["gamma", "poisson"])
def test_long_tails_need_more_draws_which_remove_the_bias(rows, amounts, loss):
    found = game(steep, rows, amounts, loss=loss)
    need = found.draw_need()
    assert need.n_draws > 16
    assert found.draw_need() == need
    enough = game(steep, rows, amounts, loss=loss, n_draws=need.n_draws)
    nothing, every = np.zeros((1, 4), dtype=bool), np.arange(200)
    explained = (found.base_losses - found.losses).mean()

    def bias(of):
        risks = [of.risks(nothing, every, epoch).mean() for epoch in range(60)]
        return np.mean(risks) - found.base_losses.mean(), np.std(risks) / np.sqrt(60)

    few, many = bias(found), bias(enough)
    assert few[0] > 3 * few[1]
    assert few[0] > 0.01 * explained
    assert abs(many[0]) < 0.7 * few[0] + many[1]


def test_predictions_that_vary_little_need_no_more(rows, labels):
    X, y = rows[:N_TRAIN], labels[:N_TRAIN]
    found = game(LogisticRegression().fit(X, y).predict_proba, rows, labels, loss="cross_entropy")
    assert found.draw_need().n_draws == 16


def test_explain_uses_the_draws_that_an_overconfident_model_needs(rows, labels):
    # Columns that are nearly the same make naive Bayes sure of itself.
    X = np.tile(rows[:, :2], 4) + 0.1 * np.random.default_rng(3).normal(size=(600, 8))
    data = X[:N_TRAIN], labels[:N_TRAIN], X[N_TRAIN:], labels[N_TRAIN:]
    model = GaussianNB().fit(*data[:2])
    given = {"sampler": "marginal", "random_state": 0, "progress": False, "n_orderings": 8}
    given["sampler_check"] = False
    found = dsage.explain(model, *data, **given)
    assert found.choices.estimate.n_draws > 16
    fewer = dsage.explain(model, *data, n_draws=16, **given)
    assert fewer.choices.estimate.n_draws == 16
    measures = dsage.explain_measures(
        model, *data, measures=["cfi"], sampler="marginal", random_state=0, progress=False
    )
    assert np.isfinite(measures.averages["cfi"].values).all()


def test_models_and_data_that_are_compared_have_the_same_draws(rows, amounts, monkeypatch):
    data = rows[:N_TRAIN], amounts[:N_TRAIN], rows[N_TRAIN:], amounts[N_TRAIN:]
    given = {"loss": "gamma", "sampler": "marginal", "graph": None, "n_orderings": 4}
    given |= {"random_state": 0, "progress": False}
    made = []
    make_games = Ground.make_games

    def watched(self, *asked):
        made.append([game.draws_per_risk for game in make_games(self, *asked).values()])
        return make_games(self, *asked)

    monkeypatch.setattr(Ground, "make_games", watched)
    dsage.compare({"steep": steep, "flat": lambda X: 2.0 + 0.01 * steep(X)}, *data, **given)
    halves = {"one": (data[2][:100], data[3][:100]), "two": (data[2][100:], data[3][100:])}
    dsage.compare_data(steep, *data[:2], halves, **given)
    dsage.compare_data(steep, *data[:2], halves, n_draws=16, **given)
    assert [len(set(draws)) for draws in made] == [1, 1, 1]
    assert min(made[0][0], made[1][0]) > 16
    assert made[2] == [16, 16]


def test_a_large_bias_that_is_left_is_told():
    with pytest.warns(DsageWarning, match=r"cross_entropy.*128 are used .* loss='brier'"):
        DrawNeed(128, 0.05).warn("cross_entropy", is_of_classes=True)
    with pytest.warns(DsageWarning, match=r"loss='squared_error'"):
        DrawNeed(128, 0.05).warn("gamma", is_of_classes=False)
    DrawNeed(128, 0.02).warn("gamma", is_of_classes=False)


def test_all_orderings_of_a_long_tail_add_up_within_their_errors(rows, amounts):
    data = rows[:N_TRAIN], amounts[:N_TRAIN], rows[N_TRAIN:], amounts[N_TRAIN:]
    found = dsage.explain(
        steep,
        *data,
        loss="gamma",
        sampler="marginal",
        graph=None,
        exact="always",
        seconds=20,
        tolerance=0.03,
        keep_losses=True,
        random_state=1,
        progress=False,
        sampler_check=False,
    )
    explained = found.row_losses["gain"].mean()
    error = np.sqrt((found.se**2).sum())
    assert abs(found.values.sum() - explained) < 3 * error
