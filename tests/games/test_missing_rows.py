"""Games of rows with missing values, and with categories that training lacks."""

import numpy as np
import pandas as pd
import pytest
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline

from dsage.data.layout import Layout
from dsage.estimate import as_stopping, run
from dsage.games import Difference, Grouped, LossGame, OutputGame
from dsage.models.model import as_model
from dsage.samplers import Gaussian, Marginal
from given import all_coalitions

EVERY = all_coalitions(2)


class Bootstrap:
    """Draws training rows, missing values among them; it knows their means, as if none was."""

    def fit(self, X):
        self.layout_ = Layout.of(X)
        self.rows_ = self.layout_.encode(X)
        return self

    def draw(self, X, known, noise):
        rows = self.rows_[(noise[:, :, 0] * len(self.rows_)).astype(int)]
        return np.where(known, np.asarray(X)[:, None], rows)

    def mean(self, X, known):
        return np.where(known, X, np.nanmean(self.rows_, axis=0))


def rows(n_rows=200, seed=0, share=0.3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 2)) + 1
    y = X.sum(axis=1) + rng.normal(size=n_rows)
    X[rng.random(n_rows) < share, 1] = np.nan
    return pd.DataFrame(X, columns=["a", "b"]), y


X, Y = rows()
IMPUTING = make_pipeline(SimpleImputer(strategy="median"), LinearRegression()).fit(X, Y)


def test_a_linear_model_of_imputed_values_is_not_affine():
    game = LossGame(IMPUTING, Bootstrap().fit(X), X, Y, random_state=0)
    assert game.is_drawn
    complete, _ = rows(share=0.0)
    model = make_pipeline(SimpleImputer(), LinearRegression()).fit(complete, Y)
    assert not LossGame(model, Bootstrap().fit(complete), complete, Y).is_drawn


def test_missing_values_of_evaluation_rows_alone_are_enough():
    complete, _ = rows(share=0.0)
    game = LossGame(IMPUTING, Gaussian().fit(complete), X, Y, random_state=0)
    assert game.is_drawn
    assert not game.has_paths
    assert LossGame(IMPUTING, Gaussian().fit(complete), complete, Y).has_paths


def test_missing_values_of_training_rows_alone_are_enough():
    complete, _ = rows(share=0.0)
    assert LossGame(IMPUTING, Bootstrap().fit(X), complete, Y).is_drawn
    array = make_pipeline(SimpleImputer(), LinearRegression()).fit(X.to_numpy(), Y)
    assert LossGame(array, Bootstrap().fit(X), complete.to_numpy(), Y).is_drawn


def test_a_model_that_is_said_to_be_affine_must_have_complete_columns():
    model = as_model(IMPUTING, "squared_error", affine=True)
    with pytest.raises(ValueError, match=r"affine must be False if .* missing values; got \['b'\]"):
        LossGame(model, Bootstrap().fit(X), X, Y)


def test_risks_are_means_over_draws_of_missing_and_present_values():
    game = LossGame(IMPUTING, Bootstrap().fit(X), X, Y, n_draws=2, random_state=0)
    assert np.isnan(game.matrix).any()
    seen = []
    model = as_model(
        lambda frame: (seen.append(frame), IMPUTING.predict(frame))[1], "squared_error"
    )
    again = LossGame(model, Bootstrap().fit(X), X, Y, n_draws=2, random_state=0)
    risks = again.risks(EVERY, np.arange(200))
    np.testing.assert_array_equal(risks, game.risks(EVERY, np.arange(200)))
    assert np.isfinite(risks).all()
    assert all(frame["b"].isna().any() for frame in seen)


def test_games_of_rows_with_missing_values_can_be_compared():
    sampler = Bootstrap().fit(X)
    a, b = (LossGame(IMPUTING, sampler, X, Y, random_state=0) for _ in range(2))
    found = run(Difference(a, b), stopping=as_stopping(n_orderings=8), random_state=0)
    np.testing.assert_array_equal(found.values, 0.0)
    other = X.copy()
    other.loc[X["b"].notna(), "b"] += 1.0
    with pytest.raises(ValueError, match="other values of b"):
        Difference(a, LossGame(IMPUTING, sampler, other, Y, random_state=0))


def test_first_levels_of_groups_take_missing_values():
    game = Grouped(
        LossGame(IMPUTING, Bootstrap().fit(X), X, Y, random_state=0), {"all": ["a", "b"]}
    )
    risks = game.first_level().mean_risks(np.array([[False], [True]]))
    assert np.isfinite(risks).all()
    assert risks[1] < risks[0]


def test_categories_that_training_lacks_are_passed_on_to_the_model():
    train = pd.DataFrame({"s": ["u", "v", "u"], "x": [0.0, 1.0, 2.0]})
    test = pd.DataFrame({"s": ["w", None, "u"], "x": [np.nan, 1.0, 2.0]})
    seen = []

    def model(frame):
        seen.append(frame)
        return np.nan_to_num(frame["x"].to_numpy()) + frame["s"].isna().to_numpy()

    game = OutputGame(model, Bootstrap().fit(train), test, n_draws=2, random_state=0)
    assert game.layout.n_categories.tolist() == [4, 0]
    pd.testing.assert_frame_equal(seen[0], test)
    game.risks(EVERY, np.arange(3))
    (drawn,) = seen[1:]
    assert set(drawn["s"].dropna()) == {"u", "v", "w"}
    assert drawn["s"].isna().sum() == drawn["x"].isna().sum() == 2
    assert np.isfinite(game.linear_game().risks(EVERY, np.arange(3))).all()


def test_classes_of_an_array_may_be_any_numbers():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(1, 4, size=50), rng.normal(size=50)])
    frame = pd.DataFrame(X, columns=["a", "b"])
    risks = []
    for form, name in ((X, "X1"), (frame, "a")):
        sampler = Marginal(discrete=name).fit(form)
        options = {"n_draws": 2, "random_state": 0}
        game = LossGame(lambda rows: np.asarray(rows).sum(axis=1), sampler, form, Y[:50], **options)
        risks.append(game.risks(EVERY, np.arange(50)))
    np.testing.assert_array_equal(*risks)
