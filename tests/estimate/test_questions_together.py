"""Groups, comparisons, orders and rules used together."""

import itertools

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression

from dsage import Graph
from dsage._random import Streams
from dsage.estimate import StopKind, as_stopping, compare_games, run
from dsage.games import Difference, Grouped, LossGame
from dsage.graphs import Consensus, GroupedOracle
from dsage.orderings import Order, Orthogonal
from dsage.samplers import Gaussian

NAMES = ("X1", "X2", "X3", "X4")
X = np.random.default_rng(0).normal(size=(200, 4)) @ np.array(
    [[1, 0.5, 0, 0.2], [0, 1, 0.4, 0], [0, 0, 1, 0.3], [0, 0, 0, 1]]
)
Y = X @ [1.0, 0.5, -1.0, 0.2] + np.random.default_rng(1).normal(size=200)
ORACLE = Graph([*NAMES, "y"], [("X1", "y"), ("X2", "X1"), ("X3", "y"), ("y", "X4")]).oracle("y")


def linear_game():
    return LossGame(LinearRegression().fit(X, Y), Gaussian().fit(X), X, Y, random_state=0)


def test_a_number_of_orderings_ends_a_run_whose_main_term_is_known_at_once():
    found = run(
        linear_game(),
        oracle=ORACLE,
        estimand="sage",
        exact="never",
        stopping=as_stopping(n_orderings=200),
        random_state=0,
    )
    assert 200 <= found.n_orderings < 300
    assert max(level.n_orderings for level in found.terms[1:]) == found.n_orderings


@pytest.mark.parametrize(
    "orderings",
    [Order(NAMES), Order(NAMES, [("X1", "X2")]), Orthogonal(4, Streams(0))],
    ids=["no pairs", "a pair", "an object"],
)
def test_equal_models_are_compared_with_the_same_rule_whatever_the_orderings(orderings):
    models = [HistGradientBoostingRegressor(max_iter=n).fit(X, Y) for n in (10, 11)]
    a, b = (LossGame(model, Gaussian().fit(X), X, Y, random_state=0) for model in models)
    found = compare_games(a, b, orderings=orderings, exact="never", random_state=0).difference
    assert found.reason.kind is StopKind.ABSOLUTE
    worth = abs(float((a.risks(np.zeros((1, 4), bool), np.arange(200))).mean()))
    assert 0 < found.se.max() < 0.01 * worth
    assert found.n_orderings < 5000


def test_two_graphs_are_compared_rightly_also_where_one_is_a_vote():
    generator = np.random.default_rng(0)
    names = [f"f{number}" for number in range(5)]
    table = generator.normal(size=(60, 5)) @ generator.normal(size=(5, 5))
    frame = pd.DataFrame(table, columns=names)
    target = table.sum(axis=1) + generator.normal(size=60)
    model = LinearRegression().fit(frame, target)
    game = LossGame(model, Gaussian().fit(frame), frame, target, random_state=0)

    def oracle():
        order = generator.permutation([*names, "y"]).tolist()
        pairs = itertools.combinations(order, 2)
        edges = [pair for pair in pairs if generator.random() < 0.35]
        return Graph(order, edges).oracle("y", features=names)

    rule = as_stopping(n_orderings=1)
    for _ in range(12):
        vote, other = Consensus([oracle() for _ in range(3)], share=0.6), oracle()
        one, two = (
            run(game, oracle=each, exact="always", audit=False).values for each in (vote, other)
        )
        found = compare_games(game, game, oracle=(vote, other), exact="always", stopping=rule)
        np.testing.assert_allclose(found.difference.values, one - two, atol=1e-10)


def test_groups_of_other_members_are_refused():
    game = Grouped(linear_game(), {"g": NAMES[:2], "h": NAMES[2:]})
    swapped = {"g": NAMES[2:], "h": NAMES[:2]}
    with pytest.raises(ValueError, match="oracle must be of the groups of the game"):
        run(game, oracle=GroupedOracle(ORACLE, swapped))
    with pytest.raises(ValueError, match="the groups of a"):
        Difference(game, Grouped(linear_game(), swapped))


def test_two_codings_of_a_column_are_compared_as_groups():
    rounded = np.round(X[:, 2])
    one_hot = np.column_stack([X[:, :2], rounded == 0, rounded > 0]).astype(float)
    coded = np.column_stack([X[:, :2], rounded])
    games = []
    for table, names in ((one_hot, ["X1", "X2", "zero", "positive"]), (coded, ["X1", "X2", "c"])):
        frame = pd.DataFrame(table, columns=names)
        model = LinearRegression().fit(frame, Y)
        games.append(LossGame(model, Gaussian().fit(frame), frame, Y, random_state=0))
    grouped = Grouped(games[0], {"c": ["zero", "positive"]})
    plain = Grouped(games[1], {"c": ["c"]})
    found = compare_games(grouped, plain, exact="always").difference
    expected = run(grouped, exact="always").values - run(plain, exact="always").values
    assert found.feature_names == ("c", "X1", "X2")
    np.testing.assert_allclose(found.values, expected, atol=1e-10)
