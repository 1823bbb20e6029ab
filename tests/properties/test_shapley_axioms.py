"""The axioms of Shapley values, for tables of risks and random graphs, and for models."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsage.estimate.running.run import run
from dsage.estimate.running.stopping import NOrderings, as_stopping
from dsage.games import LossGame
from dsage.models import as_model
from dsage.samplers import Gaussian
from exact_values import boundary, shapley, tabulated
from given import random_graph
from small_games import (
    FEATURES,
    ORACLE,
    TableGame,
    additive_table,
    exact_sampler,
    gaussian_game,
    suboptimal_gaussian_case,
)

KINDS = ["uniform", "antithetic", "stratified", "balanced"]
quickly = settings(max_examples=20, deadline=None)
seeds = st.integers(0, 2**32 - 1)
sizes = st.integers(1, 5)
exactness = st.sampled_from(["always", "never"])
ways = st.sampled_from(["plain", "boundary", "skip"])


def random_table(rng, n_features, n_rows=3):
    return rng.normal(size=(1 << n_features, n_rows))


def random_oracle(rng, n_features):
    """Of a random DAG over the features of a `TableGame` and its target."""
    graph = random_graph(rng, n_features + 1, directed=0.5)
    features = graph.names[1:]
    return graph.oracle(graph.names[0], features=features)


def few_orderings(game, oracle=None, **options):
    """All orderings, or as few as possible: the axioms hold for every single one."""
    options = {"audit": False, "random_state": 0, "stopping": NOrderings(1)} | options
    return run(game, oracle=oracle, **options)


def without(n_features, feature):
    """The codes of all coalitions without a feature."""
    codes = np.arange(1 << n_features)
    return codes[codes & (1 << feature) == 0]


@quickly
@given(seed=seeds, n_features=sizes, way=ways)
def test_all_orderings_give_shapley_values_of_any_table(seed, n_features, way):
    rng = np.random.default_rng(seed)
    game = TableGame(random_table(rng, n_features))
    oracle = None if way == "plain" else random_oracle(rng, n_features)
    semantics = "skip" if way == "skip" else "boundary"
    found = few_orderings(game, oracle, semantics=semantics, exact="always")
    risk = tabulated(game.risk, n_features)
    truth = shapley(risk, n_features, oracle, semantics)
    np.testing.assert_allclose(found.values, truth, rtol=0, atol=1e-12)


@quickly
@given(
    seed=seeds,
    n_features=sizes,
    has_oracle=st.booleans(),
    exact=exactness,
    kind=st.sampled_from(KINDS),
)
def test_values_sum_to_what_all_features_are_worth(seed, n_features, has_oracle, exact, kind):
    rng = np.random.default_rng(seed)
    game = TableGame(random_table(rng, n_features))
    oracle = random_oracle(rng, n_features) if has_oracle else None
    found = few_orderings(game, oracle, exact=exact, orderings=kind)
    everything = frozenset(range(n_features))
    most = everything if oracle is None else boundary(oracle, everything)
    worth = game.risk(frozenset()) - game.risk(most)
    assert found.values.sum() == pytest.approx(worth, abs=1e-12)


@quickly
@given(seed=seeds, n_features=sizes, exact=exactness)
def test_the_corrected_estimate_is_efficient_for_the_model_itself(seed, n_features, exact):
    """The correction gives back what the boundary of everything leaves out."""
    rng = np.random.default_rng(seed)
    game = TableGame(random_table(rng, n_features))
    found = few_orderings(game, random_oracle(rng, n_features), estimand="sage", exact=exact)
    worth = game.risk(frozenset()) - game.risk(range(n_features))
    assert found.values.sum() == pytest.approx(worth, abs=1e-12)


@quickly
@given(seed=seeds, n_features=st.integers(2, 5))
def test_features_that_do_the_same_get_the_same(seed, n_features):
    rng = np.random.default_rng(seed)
    table = random_table(rng, n_features)
    codes = np.arange(1 << n_features)
    swapped = codes & ~3 | (codes & 1) << 1 | (codes & 2) >> 1
    game = TableGame(table + table[swapped])
    values = few_orderings(game, exact="always").values
    assert values[0] == pytest.approx(values[1], abs=1e-12)


@quickly
@given(seed=seeds, n_features=sizes, exact=exactness, kind=st.sampled_from(KINDS))
def test_a_feature_that_does_nothing_gets_exactly_zero(seed, n_features, exact, kind):
    rng = np.random.default_rng(seed)
    table = random_table(rng, n_features)
    dummy = int(rng.integers(n_features))
    before = without(n_features, dummy)
    table[before | 1 << dummy] = table[before]
    found = few_orderings(TableGame(table), exact=exact, orderings=kind)
    # Sampled surpluses are differences of a number with itself; the exact sum is of many terms.
    assert abs(found.values[dummy]) <= (1e-14 if exact == "always" else 0.0)


@quickly
@given(seed=seeds, n_features=sizes, exact=exactness, kind=st.sampled_from(KINDS))
def test_what_adds_the_same_to_every_coalition_is_worth_that(seed, n_features, exact, kind):
    rng = np.random.default_rng(seed)
    worth = rng.normal(size=n_features)
    game = TableGame(additive_table(worth, rng))
    found = few_orderings(game, exact=exact, orderings=kind)
    np.testing.assert_allclose(found.values, worth, atol=1e-12)


@quickly
@given(seed=seeds, n_features=sizes, exact=exactness, way=ways)
def test_a_feature_that_adds_more_everywhere_is_worth_more(seed, n_features, exact, way):
    """Young's monotonicity, ordering by ordering."""
    rng = np.random.default_rng(seed)
    table = random_table(rng, n_features)
    feature = int(rng.integers(n_features))
    better = table.copy()
    better[without(n_features, feature) | 1 << feature] -= rng.random((1 << n_features - 1, 1))
    oracle = None if way == "plain" else random_oracle(rng, n_features)
    semantics = "skip" if way == "skip" else "boundary"
    low, high = (
        few_orderings(TableGame(each), oracle, semantics=semantics, exact=exact).values[feature]
        for each in (table, better)
    )
    assert low <= high + 1e-12


@quickly
@given(seed=seeds, n_features=sizes, exact=exactness, way=ways, factor=st.floats(-3, 3))
def test_values_are_linear_in_the_game(seed, n_features, exact, way, factor):
    rng = np.random.default_rng(seed)
    one, other = random_table(rng, n_features), random_table(rng, n_features)
    oracle = None if way == "plain" else random_oracle(rng, n_features)
    semantics = "skip" if way == "skip" else "boundary"
    values = [
        few_orderings(TableGame(table), oracle, semantics=semantics, exact=exact).values
        for table in (one, other, one + factor * other)
    ]
    np.testing.assert_allclose(values[2], values[0] + factor * values[1], atol=1e-12)


@quickly
@given(seed=seeds, n_features=st.integers(2, 5))
def test_the_order_of_the_columns_does_not_matter(seed, n_features):
    rng = np.random.default_rng(seed)
    table = random_table(rng, n_features)
    order = rng.permutation(n_features)
    codes = np.arange(1 << n_features)
    moved = sum(((codes >> new) & 1) << int(old) for new, old in enumerate(order))
    values = few_orderings(TableGame(table), exact="always").values
    permuted = few_orderings(TableGame(table[moved]), exact="always").values
    np.testing.assert_allclose(permuted, values[order], atol=1e-12)


class Mapped:
    """A sampler in other coordinates: feature j is seen as ``forth[j]`` of what it was."""

    def __init__(self, sampler, forth, back):
        self.sampler, self.forth, self.back = sampler, forth, back

    def fit(self, X):
        return self

    def draw(self, X, known, noise):
        return mapped(self.sampler.draw(mapped(X, self.back), known, noise), self.forth)


def mapped(X, functions):
    return np.stack([f(X[..., j]) for j, f in enumerate(functions)], axis=-1)


FORTH = [np.exp, lambda x: x**3, lambda x: -x, np.arctan]
BACK = [np.log, np.cbrt, lambda x: -x, np.tan]


@pytest.mark.parametrize(
    ("oracle", "semantics"), [(None, "boundary"), (ORACLE, "boundary"), (ORACLE, "skip")]
)
@pytest.mark.parametrize("exact", ["always", "never"])
def test_invertible_maps_of_the_features_change_nothing(oracle, semantics, exact):
    """Appendix B of the paper: risks depend on what the features tell, not on how."""
    case = suboptimal_gaussian_case()
    X, y = case.sample(60, np.random.default_rng(1))
    options = {"loss": "squared_error", "random_state": 2}
    sampler = exact_sampler(case)
    plain = LossGame(case.predict, Mapped(sampler, [np.copy] * 4, [np.copy] * 4), X, y, **options)
    there = LossGame(
        lambda Z: case.predict(mapped(Z, BACK)),
        Mapped(sampler, FORTH, BACK),
        mapped(X, FORTH),
        y,
        **options,
    )
    oracle = None if oracle is None else renamed(oracle, plain.feature_names)
    found, again = (
        run(
            game,
            oracle=oracle,
            semantics=semantics,
            exact=exact,
            first_level="none",
            audit=False,
            stopping=NOrderings(20),
            random_state=3,
        )
        for game in (plain, there)
    )
    np.testing.assert_allclose(again.values, found.values, rtol=0, atol=1e-7)
    np.testing.assert_allclose(again.se, found.se, rtol=1e-4)
    assert np.ptp(found.values) > 0.1


def renamed(oracle, names):
    """The same oracle about features of other names."""

    class Renamed:
        feature_names = names
        separated = staticmethod(oracle.separated)
        boundary = staticmethod(oracle.boundary)

    return Renamed()


@quickly
@given(seed=seeds)
def test_scales_and_locations_of_the_features_change_nothing(seed):
    """The same with no draws at all, so for exact values."""
    case = suboptimal_gaussian_case()
    rng = np.random.default_rng(seed)
    X, y = case.sample(50, rng)
    scale = rng.uniform(0.1, 10.0, 4) * rng.choice([-1, 1], 4)
    shift = rng.normal(scale=5.0, size=4)
    sampler = Gaussian.from_moments(
        case.mean[:-1] * scale + shift, case.covariance[:-1, :-1] * np.outer(scale, scale), FEATURES
    )
    model = as_model(lambda Z: case.predict((Z - shift) / scale), "squared_error", affine=True)
    there = LossGame(model, sampler, X * scale + shift, y, loss="squared_error")
    values = run(gaussian_game(case, X, y), oracle=ORACLE, audit=False).values
    np.testing.assert_allclose(run(there, oracle=ORACLE, audit=False).values, values, atol=1e-8)


def linear(X, weights):
    return np.asarray(X) @ np.asarray(weights)


def test_a_copy_of_a_feature_shares_its_value():
    """What is known twice is known once: the twins are symmetric, and get the same."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(80, 2))
    twice = np.column_stack([X[:, 0], X[:, 0], X[:, 1]])
    covariance = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    with pytest.warns(UserWarning, match="singular"):
        sampler = Gaussian.from_moments(np.zeros(3), covariance, ["a", "copy", "b"])
    y = X @ [1.0, 0.5]
    for weights in ([1.0, 0.0, 0.5], [0.0, 1.0, 0.5]):
        model = partial(linear, weights=weights)
        game = LossGame(
            as_model(model, "squared_error", affine=True), sampler, twice, y, loss="squared_error"
        )
        found = run(game)
        assert found.values[0] == pytest.approx(found.values[1], abs=1e-10)
        assert found.values[0] == pytest.approx((X[:, 0] ** 2).mean() / 2, abs=0.2)
        drawn = LossGame(model, sampler, twice, y, loss="squared_error", random_state=0)
        drawn = run(drawn, stopping=as_stopping(tolerance=0.02), random_state=5)
        assert np.abs(drawn.values - found.values).max() < 4 * drawn.se.max()
