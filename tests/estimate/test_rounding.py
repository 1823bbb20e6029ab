"""Values that are nothing but rounding errors are zero, in every table."""

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeRegressor

import dsage
from dsage.estimate import as_stopping, compare_games, run
from dsage.games import LossGame
from dsage.models import as_model
from dsage.samplers import Gaussian, Marginal

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(300, 4)), columns=list("abcd"))
Y = 0.1 + 2 * X["a"] + X["b"] + 0.3 * RNG.normal(size=300)
TREE = DecisionTreeRegressor(max_depth=4, random_state=0).fit(X[["a", "b"]], Y)
UNUSED = ["c", "d"]


def tree(rows):
    """A model that ignores two of its four features."""
    return TREE.predict(rows[["a", "b"]])


def linear(rows):
    return 0.1 + np.asarray(rows) @ [2.0, 1.0, 0.0, 0.0]


def assert_nothing(frame):
    unused = frame.set_index("feature").loc[UNUSED]
    zero = ("value", "se", "se_orderings", "se_draws", "se_rows", "lower", "upper", "share")
    numbers = unused[[name for name in zero if name in unused]]
    assert {"value", "se", "lower", "upper"} <= set(numbers)
    assert (numbers == 0).all(axis=None), numbers
    assert (unused["p_value"] == 1).all()


@pytest.mark.parametrize("exact", ["always", "never"])
@pytest.mark.parametrize("loss", ["squared_error", "absolute_error"])
def test_features_that_a_tree_ignores_are_worth_exactly_nothing(exact, loss):
    """They had values of 5e-17 with p = 0.026."""
    game = LossGame(tree, Marginal().fit(X), X, Y, loss=loss, random_state=0)
    found = run(game, exact=exact, stopping=as_stopping(n_orderings=40), random_state=0)
    assert_nothing(found.to_frame())
    assert (found.history.values[-1, 2:] == 0).all()
    assert (found.values[:2] > 0).all()


@pytest.mark.parametrize("exact", ["always", "never"])
def test_features_that_are_independent_of_an_affine_model_are_worth_exactly_nothing(exact):
    """Without draws, p-values went down to 1e-113."""
    sampler = Gaussian.from_moments(np.full(4, 0.1), np.eye(4) / 3, list("abcd"))
    model = as_model(linear, "squared_error", affine=True)
    game = LossGame(model, sampler, X, Y, loss="squared_error", random_state=0)
    found = run(game, exact=exact, stopping=as_stopping(n_orderings=40), random_state=0)
    assert_nothing(found.to_frame())


def test_the_report_and_the_tables_of_a_run_agree():
    found = dsage.explain(
        tree, X, Y, X, Y, graph=None, sampler="marginal", random_state=0, progress=False,
        n_orderings=40,
    )  # fmt: skip
    assert_nothing(found.to_frame())
    assert (found.estimate.values[2:] == 0).all()


def test_small_values_of_a_large_risk_are_kept():
    """One part in a million of the risk is not rounding."""
    y = Y + 1e3
    weights = np.array([1e-3, 1e-4, 0.0, 0.0])
    game = LossGame(lambda rows: np.asarray(rows) @ weights, Marginal().fit(X), X, y,
                    loss="squared_error", random_state=0)  # fmt: skip
    found = run(game, stopping=as_stopping(n_orderings=40), random_state=0)
    assert (found.values[:2] != 0).all()
    assert (found.se_rows[:2] > 0).all()


def test_games_that_differ_by_rounding_have_no_significant_difference():
    a = LossGame(tree, Marginal().fit(X), X, Y, loss="squared_error", random_state=0)

    def same(rows):
        return tree(rows) * 3.0 / 3.0 + 1e-16

    b = LossGame(same, Marginal().fit(X), X, Y, loss="squared_error", random_state=0)
    frame = compare_games(a, b, stopping=as_stopping(n_orderings=20), random_state=0).to_frame()
    assert (frame["difference"] == 0).all()
    assert (frame["p_value"] == 1).all()
