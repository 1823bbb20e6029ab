"""Games on rows with missing values, and with categories that training lacks."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression

from dsage.games import Difference, LossGame, OutputGame
from dsage.samplers import Gaussian, Marginal, Sequential
from given import all_coalitions
from mix_stand_in import near_rows  # noqa: F401

N_TRAIN, ROWS = 200, np.arange(30)


def table(n_rows=N_TRAIN, seed=0):
    rng = np.random.default_rng(seed)
    a = rng.standard_normal(n_rows)
    a[rng.random(n_rows) < 0.3] = np.nan
    word = np.where(rng.random(n_rows) < 0.2, None, np.where(rng.random(n_rows) < 0.5, "x", "y"))
    frame = pd.DataFrame({"a": a, "word": word, "b": rng.standard_normal(n_rows)})
    return frame, np.nan_to_num(a, nan=2.0) + (word == "x") + frame["b"].to_numpy()


X, Y = table()
TEST, Y_TEST = table(30, 1)


class Seen:
    """A model of frames that keeps what it was given."""

    def __init__(self):
        self.frames = []

    def __call__(self, frame):
        self.frames.append(frame)
        frame = pd.DataFrame(frame) if isinstance(frame, np.ndarray) else frame
        frame = frame.to_pandas() if isinstance(frame, pl.DataFrame) else frame
        words = frame["word"].map({"x": 1.0, "y": 2.0, "new": 30.0}).fillna(100.0)
        return (frame["a"].fillna(1000.0) + words + frame["b"].fillna(-5.0)).to_numpy(float)


@pytest.mark.parametrize("convert", [pd.DataFrame, pl.from_pandas], ids=["pandas", "polars"])
def test_the_model_receives_missing_values_of_its_own_kind_and_categories_that_training_lacks(
    convert,
):
    test = TEST.assign(word=[*["new"] * 3, *TEST["word"][3:]], b=[*[np.nan] * 3, *TEST["b"][3:]])
    model = Seen()
    game = LossGame(model, Marginal().fit(convert(X)), convert(test), Y_TEST, loss="squared_error")
    np.testing.assert_array_equal(game.predictions, Seen()(test))
    game.risks(all_coalitions(3)[:-1], ROWS)
    for frame in model.frames:
        assert type(frame) is type(convert(X))
        got = frame.to_pandas() if convert is pl.from_pandas else frame
        assert set(got["word"].dropna()) <= {"x", "y", "new"}
        assert got["a"].dtype == float
        if convert is pl.from_pandas:
            assert frame.schema == convert(X).schema


def test_marginal_risks_are_those_of_the_training_rows_with_their_gaps():
    model, noise = Seen(), {"n_draws": 4096, "n_replicates": 2}
    game = OutputGame(model, Marginal().fit(X), TEST, random_state=0, **noise)
    known = np.array([[True, False, False], [False, True, True]])
    outputs = -game.risks(known, ROWS[:5]).mean(axis=2)
    for coalition, got in zip(known, outputs, strict=True):
        for row in range(5):
            mixed = X.copy()
            for at in np.flatnonzero(coalition):
                mixed[mixed.columns[at]] = TEST.iloc[row, at]
            assert got[row] == pytest.approx(Seen()(mixed).mean(), rel=0.01)


@pytest.mark.usefixtures("near_rows")
def test_games_with_a_sampler_that_takes_no_missing_values_draw_by_coalition():
    train, test = X[["a", "b"]], TEST[["a", "b"]]
    model = HistGradientBoostingRegressor(max_iter=20).fit(train, Y)
    game = LossGame(model, Gaussian().fit(train), test, Y_TEST)
    assert not game.has_paths
    risks = game.risks(all_coalitions(2), ROWS)
    assert np.isfinite(risks).all()
    assert risks[0].mean() > risks[-1].mean()


@pytest.mark.usefixtures("near_rows")
def test_mixed_rows_with_everything_missing_somewhere_are_drawn():
    game = LossGame(Seen(), Sequential().fit(X), TEST, Y_TEST, loss="squared_error")
    assert np.isfinite(game.risks(all_coalitions(3), ROWS)).all()


def test_new_missing_values_are_not_drawn_along_orderings():
    full = X[["a", "b"]].dropna()
    test = TEST[["a", "b"]]
    model = HistGradientBoostingRegressor(max_iter=20).fit(full, np.arange(len(full)))
    assert LossGame(
        model, Gaussian().fit(full), test.dropna(), Y_TEST[: len(test.dropna())]
    ).has_paths
    game = LossGame(model, Gaussian().fit(full), test, Y_TEST)
    assert not game.has_paths
    assert np.isfinite(game.risks(all_coalitions(2), ROWS)).all()


def test_classes_in_arrays_are_drawn_and_may_be_new():
    rng = np.random.default_rng(0)
    train = np.column_stack([rng.choice([1.0, 2.0, 5.0], 100), rng.standard_normal(100)])
    test = train[:20].copy()
    test[:4, 0], test[4:6, 0] = 7.0, 3.0
    seen = []

    def model(array):
        seen.append(array)
        return array.sum(axis=1)

    sampler = Sequential(discrete=["X1"], random_state=0).fit(train)
    game = OutputGame(model, sampler, test, random_state=0, max_bytes=2000)
    game.risks(all_coalitions(2)[1:2], np.arange(20)[::-1])
    assert all(np.isin(array[:, 0], [1.0, 2.0, 3.0, 5.0, 7.0]).all() for array in seen)
    game.risks(np.array([[True, False]]), np.array([4]))
    assert (seen[-1][:, 0] == 3.0).all()


def test_the_first_level_takes_missing_values_for_means():
    game = LossGame(Seen(), Sequential().fit(X), TEST, Y_TEST, loss="squared_error")
    first = game.first_level()
    assert np.isfinite(first.risks(all_coalitions(3), ROWS)).all()


def test_two_games_of_the_same_rows_with_gaps_can_be_compared():
    games = [
        LossGame(Seen(), Marginal().fit(X), TEST, Y_TEST, loss="squared_error", random_state=0)
        for _ in range(2)
    ]
    assert (Difference(*games).risks(all_coalitions(3), ROWS) == 0).all()


def test_affine_models_are_drawn_where_a_mean_does_not_exist():
    full = X[["b"]].assign(c=X["b"] ** 2)
    model = LinearRegression().fit(full, Y)
    game = LossGame(model, Marginal().fit(full), full[:9], Y[:9])
    assert not game.is_drawn
    gaps = full.assign(c=full["c"].where(full["c"] < 1))
    imputing = HistGradientBoostingRegressor(max_iter=5).fit(gaps, Y)
    assert LossGame(imputing.predict, Marginal().fit(gaps), gaps[:9], Y[:9]).is_drawn
