import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestClassifier
from sklearn.linear_model import LinearRegression
from sklearn.multioutput import MultiOutputRegressor

from dsage.estimate import NOrderings, as_stopping, run
from dsage.games import LossGame
from dsage.games.base import prefixes
from dsage.games.block_game import BlockGame
from dsage.games.functions import Functions
from dsage.games.linear import LinearPredictor
from dsage.games.moment import MomentGame
from dsage.samplers import Gaussian, Marginal, Mix


def curved(n_rows=600, seed=0, n_features=4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features)) @ (np.eye(n_features) + 0.5)
    y = X[:, 0] ** 2 + np.abs(X[:, 1]) + X[:, 2] + 0.3 * rng.normal(size=n_rows)
    return X, y


def make_block_game(seed=0):
    X, y = curved(seed=seed)
    fit, _ = curved(2000, seed + 100)
    output = fit[:, 0] ** 2 + fit[:, 1] * fit[:, 2]
    functions = Functions.fit(fit, np.zeros(4, dtype=np.intp), 3)
    outputs = np.column_stack([output, fit[:, 3]])
    predictor = LinearPredictor(functions(fit), outputs, np.ones(len(fit)), ridge=1e-3)
    weights = np.random.default_rng(3).uniform(0.5, 1.5, size=len(X))
    targets = np.column_stack([y, X[:, 3]])
    names = ("a", "b", "c", "d")
    return BlockGame(predictor, functions, X, targets, names, weights / weights.mean())


def test_mean_risks_are_the_means_of_the_risks_of_rows():
    game = make_block_game()
    known = np.array([[0, 0, 0, 0], [1, 0, 1, 0], [1, 1, 1, 1]], dtype=bool)
    risks = game.risks(known, np.arange(game.n_rows))
    assert np.allclose(game.mean_risks(known), risks.mean(axis=(1, 2)))


def test_risks_along_orderings_are_those_of_the_coalitions():
    game = make_block_game()
    orders = np.array([[2, 0, 3, 1], [0, 1, 2, 3], [3, 2, 1, 0]])
    rows = np.arange(5, 40)
    along = game.path_risks(orders, rows, 0, np.ones((3, 5), dtype=bool))
    known = prefixes(orders)
    single = game.risks(known.reshape(-1, 4), rows).reshape(along.shape)
    assert np.allclose(along, single)
    assert np.allclose(
        game.mean_path_risks(orders), game.mean_risks(known.reshape(-1, 4)).reshape(3, 5)
    )


def test_with_functions_of_degree_one_it_is_the_game_of_the_linear_predictor():
    X, y = curved()
    functions = Functions.fit(X, np.zeros(4, dtype=np.intp), 1)
    output = X @ [1.0, 2.0, 0.0, -1.0]
    predictor = LinearPredictor(functions(X), output[:, None], np.ones(len(X)))
    names = ("a", "b", "c", "d")
    game = BlockGame(predictor, functions, X, y, names, np.ones(len(X)))
    other = MomentGame(X, output, y, names)
    orders = np.array([[2, 0, 3, 1], [0, 1, 2, 3]])
    assert np.allclose(game.mean_path_risks(orders), other.mean_path_risks(orders))


def test_columns_of_a_class_are_indicators_and_new_levels_are_the_commonest():
    X = np.array([[0.0], [0.0], [1.0], [2.0], [0.0], [1.0]])
    basis = Functions.fit(X, np.array([3]), 4)(np.array([[0.0], [1.0], [2.0], [7.0]]))
    assert basis.columns.tolist() == [[0, 0], [1, 0], [0, 1], [0, 0]]


def test_missing_values_have_a_column_of_their_own():
    X = np.random.default_rng(0).normal(size=(50, 1))
    X[:10] = np.nan
    columns = Functions.fit(X, np.array([0]), 2)(X).columns
    assert columns.shape == (50, 3)
    assert (columns[:, 2] == np.isnan(X[:, 0])).all()
    assert (columns[:10, :2] == 0).all()


@pytest.mark.parametrize("value", [3.0, np.nan])
def test_a_constant_feature_has_a_column(value):
    X = np.full((20, 1), value)
    assert Functions.fit(X, np.array([0]), 4)(X).columns.shape[1] == 1


def test_a_curved_model_gets_the_additive_first_level_and_a_linear_one_the_linear():
    X, y = curved()
    sampler = Gaussian().fit(X)
    forest = HistGradientBoostingRegressor(max_iter=20, random_state=0).fit(X, y)
    assert isinstance(LossGame(forest, sampler, X, y, random_state=0).first_level(), BlockGame)
    linear = LinearRegression().fit(X, y)

    def predict(rows):
        """Predict; a function is not recognised as affine, and is drawn for."""
        return linear.predict(rows)

    drawn = LossGame(predict, sampler, X, y, random_state=0)
    assert drawn.is_drawn
    assert isinstance(drawn.first_level(), MomentGame)


def test_draws_from_the_margins_have_no_first_level():
    X, y = curved()
    model = HistGradientBoostingRegressor(max_iter=5, random_state=0).fit(X, y)
    assert LossGame(model, Marginal().fit(X), X, y, random_state=0).first_level() is None


def test_the_additive_first_level_lowers_the_error_and_keeps_the_values():
    X, y = curved(200, n_features=8)
    model = HistGradientBoostingRegressor(max_iter=10, random_state=0).fit(X, y)
    sampler = Gaussian().fit(X)
    options = {"stopping": NOrderings(200), "exact": "never", "random_state": 0}

    def estimate(level):
        game = LossGame(model, sampler, X, y, random_state=0)
        return run(game, first_level=level, **options)

    with_level, without = estimate("auto"), estimate("none")
    error = np.hypot(with_level.se, without.se)
    assert (np.abs(with_level.values - without.values) < 4 * error).all()
    # Orderings of half the variance would do; it falls by far more here.
    assert with_level.se_orderings.sum() < 0.7 * without.se_orderings.sum()


def test_classes_missing_values_and_several_outputs_have_additive_first_levels():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {"x": rng.normal(size=300), "c": pd.Categorical(rng.choice(list("abc"), 300))}
    )
    table.loc[::7, "x"] = np.nan
    y = np.where(table["c"] == "a", 1.0, np.abs(table["x"].fillna(3.0)))
    model = HistGradientBoostingRegressor(categorical_features="from_dtype", max_iter=20)
    sampler = Mix(random_state=0).fit(table)
    game = LossGame(model.fit(table, y), sampler, table, y, random_state=0)
    assert np.isfinite(run(game, stopping=as_stopping(n_orderings=40), exact="never").values).all()
    X, y = curved(300)
    many = MultiOutputRegressor(HistGradientBoostingRegressor(max_iter=10)).fit(
        X, np.column_stack([y, X[:, 0] ** 2])
    )
    game = LossGame(many, Gaussian().fit(X), X, np.column_stack([y, X[:, 0] ** 2]), random_state=0)
    assert [type(level) for level in game.first_levels()] == [BlockGame, BlockGame]


def test_probabilities_of_several_classes_have_an_additive_first_level():
    X, y = curved(300)
    label = np.digitize(y, np.quantile(y, [0.3, 0.7]))
    forest = RandomForestClassifier(20, min_samples_leaf=5, random_state=0).fit(X, label)
    game = LossGame(forest, Gaussian().fit(X), X, label, random_state=0)
    assert isinstance(game.first_level(), BlockGame)


def test_columns_of_large_tables_are_made_when_they_are_needed(monkeypatch):
    whole = make_block_game()
    monkeypatch.setattr("dsage.games.additive.KEPT_BYTES", 4 * 8 * 40)
    parts = make_block_game()
    known = np.random.default_rng(0).random((5, 4)) < 0.5
    rows = np.array([3, 500, 40])
    np.testing.assert_allclose(parts.risks(known, rows), whole.risks(known, rows), rtol=1e-10)
    np.testing.assert_allclose(parts.mean_risks(known), whole.mean_risks(known), rtol=1e-10)
    orders = np.stack([np.random.default_rng(seed).permutation(4) for seed in range(3)])
    every = np.ones((3, 5), dtype=bool)
    np.testing.assert_allclose(
        parts.path_risks(orders, rows, 0, every),
        whole.path_risks(orders, rows, 0, every),
        rtol=1e-10,
    )


@pytest.mark.parametrize("n_functions", [1, 2, 3, 4])
def test_fewer_functions_are_the_first_of_more(n_functions):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 6))
    X[:, 1] = X[:, 1] > 0  # a function at most
    X[:, 2] = np.where(X[:, 2] > 1, np.nan, X[:, 2])
    X[:, 3] = rng.integers(0, 4, 300)
    X[:, 4] = 1.0
    n_categories = np.array([0, 0, 0, 4, 0, 0])
    most = Functions.fit(X, n_categories, 4)
    alone = Functions.fit(X, n_categories, n_functions)
    expected, selected = alone(X), most.select(most(X), n_functions)
    assert alone.n_columns == expected.columns.shape[1]
    np.testing.assert_array_equal(selected.owner, expected.owner)
    np.testing.assert_allclose(selected.columns, expected.columns, atol=1e-12)
    np.testing.assert_allclose(most.first(n_functions)(X).columns, expected.columns, atol=1e-12)
