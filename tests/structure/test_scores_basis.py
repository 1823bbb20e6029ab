"""Tests of the basis score, its parts, and the graphs that it finds."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.special import gammaln
from scipy.stats import multinomial
from sklearn.linear_model import LinearRegression, LogisticRegression

import dsage
from dsage.data.table import Table, normal_scores
from dsage.graphs import Graph, compare_graphs, random_dag, random_linear_gaussian
from dsage.structure import search_graph
from dsage.structure.blocks import Blocks, negentropy
from dsage.structure.scores.approximation import Approximation, default_penalty
from dsage.structure.scores.basis import BasisScore
from dsage.structure.scores.block_gaussian import BlockRegressions
from dsage.structure.scores.choose import choose_score
from dsage.structure.scores.noise import _tilt_gain, shape_gain
from dsage.structure.scores.products import ProductRegressions, near_pairs, parent_pairs
from dsage.structure.scores.softmax import softmax_likelihood

N_ROWS = 2_000


def make(n_rows=N_ROWS, seed=0):
    """Return numbers and a class that depend on each other by curves."""
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, n_rows))
    c = np.cos(2 * a) + 0.3 * rng.normal(size=n_rows)
    d = a + a * b + 0.3 * rng.normal(size=n_rows)
    odds = np.stack([np.zeros(n_rows), 2 * c, 2 * b], axis=1) + rng.gumbel(size=(n_rows, 3))
    return pd.DataFrame(
        {"a": a, "b": b, "c": c, "d": d, "k": np.array(list("uvw"))[odds.argmax(1)]}
    )


@pytest.fixture(scope="module")
def score():
    table = Table(make())
    return BasisScore(table, Blocks.from_table(table))


class TestRegressions:
    """The determinants of block regressions, against least squares."""

    @pytest.fixture
    def blocks(self):
        return Blocks.from_table(Table(make(400)))

    @pytest.fixture
    def regressions(self, blocks):
        return BlockRegressions(blocks.correlation, [blocks.columns(node) for node in range(5)])

    @staticmethod
    def expected(blocks, response, columns):
        y = blocks.sample[:, response]
        if not len(columns):
            return np.linalg.slogdet(y.T @ y / len(y))[1]
        left = y - LinearRegression().fit(blocks.sample[:, columns], y).predict(
            blocks.sample[:, columns]
        )
        return np.linalg.slogdet(np.atleast_2d(left.T @ left / len(y)))[1]

    @pytest.mark.parametrize("parents", [(), (1,), (1, 2), (1, 2, 3)])
    def test_what_is_left_of_a_number_and_of_a_class(self, blocks, regressions, parents):
        columns = [column for parent in parents for column in blocks.columns(parent)]
        for response in (blocks.responses[0, :1], blocks.columns(4)):
            expected = self.expected(blocks, response, columns)
            assert regressions.left(response, parents) == pytest.approx(expected, abs=1e-4)

    @pytest.mark.parametrize("parents", [(), (1,), (2, 3)])
    def test_additions_are_what_is_left_with_one_parent_more(self, regressions, blocks, parents):
        for response in (blocks.responses[0, :1], blocks.columns(4)):
            left = regressions.left_with(response, parents)
            for other in set(range(1, 4)) - set(parents):
                both = tuple(sorted((*parents, other)))
                fresh = BlockRegressions(
                    blocks.correlation, [blocks.columns(node) for node in range(5)]
                )
                assert left[other] == pytest.approx(fresh.left(response, both), abs=1e-4)

    @pytest.mark.parametrize("parents", [(1,), (2, 3), (1, 2, 3)])
    def test_removals_are_what_is_left_with_one_parent_fewer(self, regressions, blocks, parents):
        for response in (blocks.responses[0, :1], blocks.columns(4)):
            left = regressions.left_without(response, parents)
            fewer = [tuple(each for each in parents if each != gone) for gone in parents]
            expected = [regressions.left(response, others) for others in fewer]
            np.testing.assert_allclose(left, expected, atol=1e-4)

    def test_two_responses_at_once_are_each_on_its_own(self, regressions, blocks):
        both = blocks.responses[:, 0]
        for found in (regressions.left, regressions.left_with, regressions.left_without):
            joint = found(both, (1, 2), each=True)
            apart = [found(both[place : place + 1], (1, 2)) for place in (0, 1)]
            np.testing.assert_allclose(joint, np.concatenate(apart, axis=-1), atol=1e-6)

    def test_the_order_in_which_parents_are_added_does_not_matter(self, blocks):
        one, other = (
            BlockRegressions(blocks.correlation, [blocks.columns(node) for node in range(5)])
            for _ in range(2)
        )
        response = blocks.responses[0, :1]
        for parents in ((1,), (1, 2), (1, 2, 3)):
            one.left_with(response, parents)
        for parents in ((3,), (2, 3), (1, 2, 3)):
            other.left_with(response, parents)
        np.testing.assert_allclose(
            one.left_with(response, (1, 2, 3)), other.left_with(response, (1, 2, 3)), atol=1e-4
        )

    def test_products_explain_what_sums_cannot(self, blocks):
        products = ProductRegressions(blocks, 0, itertools.combinations(range(4), 2))
        response = blocks.responses[0, 3:4]
        alone, n_alone = products.columns((0,))
        both, n_both = products.columns((0, 1))
        assert (n_alone, n_both) == (0, 1)
        assert products.left(response, both) < products.left(response, alone) - 1.0
        left, n_products = products.left_with(response, (0,))
        assert left[1] == pytest.approx(products.left(response, both), abs=1e-5)
        assert n_products[1] == 1
        three, _ = products.columns((0, 1, 2))
        left, n_products = products.left_with(response, (0, 1))
        assert left[2] == pytest.approx(products.left(response, three), abs=1e-5)
        assert n_products[2] == 2
        left, n_products = products.left_without(response, (0, 1, 2))
        for at, fewer in enumerate([(1, 2), (0, 2), (0, 1)]):
            columns, n_expected = products.columns(fewer)
            assert left[at] == pytest.approx(products.left(response, columns), abs=1e-5)
            assert n_products[at] == n_expected
        residuals = products.residuals(int(response[0]), both)
        assert np.log(residuals.var()) == pytest.approx(products.left(response, both), abs=1e-4)


class TestSoftmax:
    def test_the_likelihood_is_that_of_scikit_learn(self):
        frame = make()
        X = np.column_stack([frame[name] for name in "abcd"])
        levels = np.searchsorted(list("uvw"), frame["k"])
        model = LogisticRegression(C=1e6, max_iter=1000).fit(X, levels)
        expected = np.log(model.predict_proba(X)[np.arange(len(X)), levels]).sum()
        assert softmax_likelihood(X, levels) == pytest.approx(expected, abs=0.5)

    def test_without_columns_it_is_that_of_the_shares(self):
        levels = np.repeat([0, 1, 2], [50, 30, 20])
        counts = np.array([50, 30, 20])
        exact = multinomial.logpmf(counts, 100, counts / 100) - _log_orders(counts)
        assert softmax_likelihood(np.empty((100, 0)), levels) == pytest.approx(exact)

    def test_a_class_that_is_determined_has_likelihood_one(self):
        x = np.linspace(-1, 1, 200)[:, None]
        assert softmax_likelihood(x, (x[:, 0] > 0).astype(int)) > -5.0


def _log_orders(counts):
    return gammaln(counts.sum() + 1) - gammaln(counts + 1).sum()


class TestShape:
    def test_normal_residuals_gain_nothing(self):
        made = (np.random.default_rng(seed).normal(size=500) for seed in range(200))
        gains = [shape_gain(each, sharp=True) for each in made]
        # Two coefficients at log(n) / 2 each: a normal sample rarely gains.
        assert np.mean(np.array(gains) > 0) < 0.05

    def test_the_gain_is_most_of_the_negentropy(self):
        n_rows = 20_000
        z = np.random.default_rng(0).gamma(2.0, size=n_rows)
        # 1/2 log(2 pi e var) - entropy of Gamma(2, 1), which is 2 + log(1) - digamma(2).
        exact = 0.5 * np.log(2 * np.pi * np.e * 2.0) - (2.0 - (1 - np.euler_gamma))
        # A polynomial of degree 6 does not follow the sharp edge at 0, spacings nearly do.
        assert 0.65 * exact < shape_gain(z) / n_rows < 0.8 * exact
        assert 0.9 * exact < shape_gain(z, sharp=True) / n_rows < exact

    def test_a_density_is_told_as_well_as_that_of_a_margin(self):
        z = np.random.default_rng(0).gamma(2.0, size=1_000)
        margin = len(z) * negentropy(z, normal_scores(z))
        assert shape_gain(z, sharp=True) == pytest.approx(margin, rel=0.01)

    def test_nearly_normal_residuals_gain_at_most_twice_what_a_tilt_gains(self):
        for seed in range(20):
            z = np.random.default_rng(seed).gamma(40.0, size=1_000)
            tilted = _tilt_gain((z - z.mean()) / z.std())
            assert tilted <= shape_gain(z, sharp=True) <= 2 * tilted

    def test_equal_residuals_have_no_spacings(self):
        z = np.random.default_rng(0).poisson(1.0, size=1_000).astype(float)
        assert shape_gain(z, sharp=True) == _tilt_gain((z - z.mean()) / z.std())

    def test_constant_residuals_gain_nothing(self):
        assert shape_gain(np.zeros(10)) == 0.0


def test_linear_normal_families_score_as_with_the_extended_bic():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(1000, 4)) @ np.triu(np.ones((4, 4)))
    frame = pd.DataFrame(X, columns=list("abcd"))
    linear = choose_score(frame, "ebic", gamma=0.5)
    near = Approximation(Blocks.from_table(Table(frame)), penalty=1.0, gamma=0.5)
    for node, parents in ((3, (0, 1)), (2, (0, 1, 3)), (1, ())):
        # Up to the scale of the columns, and the price of the mean and the variance.
        found = near.family(node, parents) - near.family(node, ())
        assert found == pytest.approx(
            linear.family(node, parents) - linear.family(node, ()), abs=0.02
        )


def test_curves_and_classes_are_explained(score):
    names = score.names
    place = {name: node for node, name in enumerate(names)}
    assert score.family(place["c"], (place["a"],)) > score.family(place["c"], ()) + 100
    assert score.family(place["k"], (place["b"],)) > score.family(place["k"], ()) + 50


def test_the_best_removal_is_exact_and_no_other_is_larger(score):
    for node in range(5):
        parents = tuple(other for other in range(5) if other != node)
        removed = score.removals(node, parents)
        best = int(removed.argmax())
        fewer = tuple(parent for parent in parents if parent != best)
        assert removed[best] == score.family(node, fewer)
        assert removed[node] == -np.inf
        assert (score.additions(node, parents) == -np.inf).all()


def test_removals_are_not_computed_exactly_if_every_parent_clearly_matters(score, monkeypatch):
    asked, family = [], score.family
    monkeypatch.setattr(score, "family", lambda *each: asked.append(each) or family(*each))
    # c is a curve in a, which explains more than 0.05 nats of each row; b has nothing to do with it.
    assert score.removals(2, (0,))[0] < family(2, (0,)) - 0.05 * N_ROWS
    assert (2, ()) not in asked
    score.removals(2, (0, 1))
    assert (2, (0,)) in asked


def test_products_are_used_where_they_explain_something(score):
    empty = [()] * 5
    parents = [(), (), (0,), (0, 1), (1, 2)]
    assert not score.near(empty)._products
    near = score.near(parents)
    assert near._products
    assert near.family(3, (0, 1)) > score.family(3, (0, 1)) + 100
    assert near.family(4, (1, 2)) == score.family(4, (1, 2))
    assert near.additions(3, (0,))[1] > score.additions(3, (0,))[1] + 100


def make_switched(n_rows: int = 1_500) -> pd.DataFrame:
    """Draw a number whose slope depends on a class, and a class whose odds do."""
    rng = np.random.default_rng(1)
    group = rng.choice(["u", "v", "w"], size=n_rows)
    slope = pd.Series(group).map({"u": 1.0, "v": -1.0, "w": 0.0}).to_numpy()
    x, z = rng.normal(size=(2, n_rows))
    y = (slope + 0.5) * x + slope + 0.5 * rng.normal(size=n_rows)
    odds = 3.0 * slope * z + 2.0 * z + 2.0 * slope
    answer = np.where(odds + rng.logistic(size=n_rows) > 0, "yes", "no")
    return pd.DataFrame({"group": group, "x": x, "z": z, "y": y, "answer": answer})


class TestProductsWithClasses:
    @pytest.fixture
    def switched(self):
        table = Table(make_switched())
        return BasisScore(table, Blocks.from_table(table))

    def test_a_slope_that_depends_on_a_class_is_a_product(self, switched):
        parents = [(), (), (), (0, 1), (0, 2)]
        near = switched.near(parents)
        assert near._products
        assert near.family(3, (0, 1)) > switched.family(3, (0, 1)) + 100
        assert near.family(4, (0, 2)) > switched.family(4, (0, 2)) + 100
        assert near.additions(3, (0,))[1] > near.family(3, (0,)) + 100

    def test_the_regression_is_that_on_all_products(self, switched):
        products = ProductRegressions(switched._blocks, 0, [(0, 1)])
        columns, n_products = products.columns((0, 1))
        assert n_products == 2
        response = switched._blocks.responses[0, 3:4]
        rows, correlation = products.rows_of(columns)
        np.testing.assert_allclose(rows.T @ rows / len(rows), correlation, atol=1e-7)
        outcome = switched._blocks.sample[:, response[0]]
        left = outcome - rows @ np.linalg.lstsq(rows, outcome, rcond=None)[0]
        assert products.left(response, columns) == pytest.approx(np.log(np.mean(left**2)), abs=1e-6)
        with_each, added = products.left_with(response, (0,))
        assert with_each[1] == pytest.approx(products.left(response, columns), abs=1e-6)
        assert added.tolist() == [0, 2, 0, 0, 0]

    def test_both_parents_are_found(self):
        graph = dsage.learn_graph(make_switched())
        joined = {frozenset(edge) for edge in graph.edges}
        assert {frozenset(("x", "y")), frozenset(("group", "y"))} <= joined
        assert {frozenset(("z", "answer")), frozenset(("group", "answer"))} <= joined

    def test_effects_that_add_up_need_no_products(self):
        rng = np.random.default_rng(2)
        frame = make_switched().assign(y=lambda frame: np.cos(2 * frame["x"]))
        frame["y"] += (frame["group"] == "u") + 0.5 * rng.normal(size=len(frame))
        odds = 2.0 * frame["z"] + 2.0 * (frame["group"] == "u")
        frame["answer"] = np.where(odds + rng.logistic(size=len(frame)) > 0, "yes", "no")
        table = Table(frame)
        score = BasisScore(table, Blocks.from_table(table))
        assert score.near([(), (), (), (0, 1), (0, 2)]) is score

    def test_classes_of_many_levels_and_pairs_of_classes_have_no_products(self):
        rng = np.random.default_rng(0)
        many, few = rng.choice(list("abcdefgh"), size=400), rng.choice(list("pq"), size=400)
        frame = pd.DataFrame({"many": many, "few": few, "x": rng.normal(size=400)})
        made = Blocks.from_table(Table(frame))
        assert near_pairs(made, [()] * 3) == [(1, 2)]
        assert parent_pairs(made, [(), (), (0, 1)]) == []


def test_with_few_rows_the_likelihood_itself_chooses_the_number_of_functions(monkeypatch):
    rng = np.random.default_rng(0)
    x = rng.normal(size=400)
    k = np.where(2.0 * np.abs(x) - 1.5 + rng.logistic(size=400) > 0, "yes", "no")
    table = Table(pd.DataFrame({"x": x, "k": k}))
    made = Blocks.from_table(table)
    score = BasisScore(table, made)
    levels, price = made.levels[1], score._near.price
    tried = []
    for columns in (made.responses[0, :1], made.columns(0, 4), made.columns(0, 8)):
        likelihood = softmax_likelihood(made.sample[:, columns], levels)
        tried.append(likelihood - price * (len(columns) + 1) - score._near.extra)
    # Two functions are enough for a bend, and cheaper.
    assert score.family(1, (0,)) > max(tried) + price
    monkeypatch.setattr("dsage.structure.scores.basis._FEW_ROWS", 100)
    assert BasisScore(table, made).family(1, (0,)) <= score.family(1, (0,))


def test_pairs_of_many_numbers_are_those_near_each_other():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(300, 40)))
    frame.columns = frame.columns.astype(str)
    table = Table(frame)
    score = BasisScore(table, Blocks.from_table(table))
    parents = [()] * 40
    parents[3] = (0, 1, 2)
    assert set(near_pairs(score._blocks, parents)) == {(0, 1), (0, 2), (1, 2)}


def test_the_graph_of_curved_and_mixed_data_is_found():
    graph = dsage.learn_graph(make(), target="k")
    true = Graph(list("abcdk"), [tuple(pair) for pair in ("ac", "ad", "bd", "ck", "bk")])
    found = compare_graphs(true, graph, "k")
    assert found.fp == 0
    assert found.f1 > 0.9


def test_a_linear_score_sees_none_of_it():
    numbers = make().drop(columns="k")
    found = {frozenset(edge) for edge in dsage.learn_graph(numbers, score="ebic").edges}
    assert frozenset("ac") not in found


class TestAuto:
    def test_linear_data_keep_the_extended_bic(self):
        model = random_linear_gaussian(random_dag(12, 3, random_state=0), random_state=0)
        frame = model.sample(1000, random_state=0)
        result = search_graph(frame)
        assert (result.score_name, result.curved) == ("ebic", ())
        assert result.graph == search_graph(frame, score="ebic").graph

    def test_curved_data_get_the_basis_score(self):
        result = search_graph(make().drop(columns="k"))
        assert result.score_name == "basis"
        assert "c" in result.curved

    def test_skewed_data_get_the_basis_score(self):
        model = random_linear_gaussian(random_dag(10, 2, random_state=1), random_state=1)
        result = search_graph(np.exp(model.sample(1000, random_state=0)))
        assert result.score_name == "basis"
        linear = search_graph(model.sample(1000, random_state=0)).graph
        target = max(linear.names, key=lambda name: len(linear.markov_blanket(name)))
        assert compare_graphs(linear, result.graph, target).f1 > 0.95

    def test_mixed_data_get_the_basis_score_and_moments_the_extended_bic(self):
        assert search_graph(make()).score_name == "basis"
        numbers = make().drop(columns="k")
        assert search_graph(dsage.structure.Moments.from_frame(numbers)).score_name == "ebic"

    def test_strict_keeps_to_what_the_data_show(self):
        for frame in (make(300), make(300).drop(columns="k")):
            strict = search_graph(frame, strict=True)
            assert strict.score_name == "basis"
            assert len(strict.graph.edges) >= len(search_graph(frame, gamma=1.0).graph.edges)
        with pytest.raises(ValueError, match="strict must be left out with gamma"):
            search_graph(make(300), strict=True, gamma=0.5)

    @pytest.mark.parametrize("options", [{"gamma": 1.0}, {"penalty": 2.0}])
    def test_options_reach_the_score(self, options):
        few = len(search_graph(make(300), **dict.fromkeys(options, 0.0)).graph.edges)
        assert len(search_graph(make(300), **options).graph.edges) <= few


def test_identical_columns_constants_and_few_rows_are_borne():
    frame = make(40)
    frame["again"] = frame["a"]
    frame["constant"] = 1.0
    frame["noisy"] = frame["a"] + 1e-9 * frame["b"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        graph = dsage.learn_graph(frame, score="basis")
    assert graph.names[:8] == tuple(frame.columns)


def test_the_penalty_grows_from_a_thousand_to_ten_thousand_rows():
    found = [default_penalty(n_rows) for n_rows in (0, 500, 1_000, 10_000, 10**6)]
    assert found == pytest.approx([0.7, 0.7, 0.7, 1.0, 1.0])
    assert default_penalty(3_162) == pytest.approx(0.85, abs=1e-4)


def test_removals_from_a_family_are_the_families_of_the_approximation():
    near = Approximation(Blocks.from_table(Table(make())))
    for node in range(5):
        parents = tuple(other for other in range(4) if other != node)[:3]
        found = near.removals(node, parents)
        for gone in parents:
            fewer = tuple(parent for parent in parents if parent != gone)
            assert found[gone] == pytest.approx(near.family(node, fewer), abs=1e-3)
        assert np.isneginf(np.delete(found, parents)).all()
    assert np.isneginf(near.removals(0, ())).all()


def test_no_regression_has_more_columns_than_rows():
    near = Approximation(Blocks.from_table(Table(make())))
    n_rows = near.blocks.n_rows
    worth = near.worth(np.full(2, -1.0), np.array([3, n_rows]), 2, 0)
    assert np.isfinite(worth).tolist() == [True, False]


def test_products_are_used_in_tables_of_numbers_too():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(600, 2)), columns=["a", "b"])
    frame["c"] = frame["a"] * frame["b"] + 0.3 * rng.normal(size=600)
    table = Table(frame)
    score = BasisScore(table, Blocks.from_table(table))
    near = score.near([(), (), (0, 1)])
    assert near.family(2, (0, 1)) > score.family(2, (0, 1)) + 100


@pytest.mark.parametrize(("steepness", "effect", "n_far"), [(2.5, 1.5, 38), (3.0, 2.0, 23)])
def test_an_effect_of_few_extreme_values_is_found(steepness, effect, n_far):
    rng = np.random.default_rng(3)
    a = np.exp(steepness * rng.normal(size=10_000))
    is_far = a > a.mean() + 2 * a.std()
    assert is_far.sum() == n_far
    b = rng.normal(size=10_000) + effect * is_far
    frame = pd.DataFrame({"a": a, "b": b, "c": rng.normal(size=10_000)})
    assert set(dsage.learn_graph(frame, score="basis").edges) == {("a", "b")}
