"""Draws under interventions, against the truncated factorization by enumeration."""

import itertools

import numpy as np
import pandas as pd
import pytest

from dsage import Graph
from dsage.samplers import (
    SAMPLERS,
    FunctionSampler,
    Gaussian,
    Interventional,
    Marginal,
    Mix,
    Sequential,
)
from interventional_world import DiscreteWorld, Frequencies, LinearWorld, grid, random_dag


def all_coalitions(n_features):
    return [np.array(mask) for mask in itertools.product((False, True), repeat=n_features)]


@pytest.mark.parametrize("seed", range(6))
def test_draws_have_the_law_of_the_truncated_factorization(seed):
    rng = np.random.default_rng(seed)
    world = DiscreteWorld.random(random_dag(4, 0.6, rng), rng)
    target, features = "d", ["a", "b", "c"]
    table = world.population()
    sampler = Interventional(sampler=Frequencies(), graph=world.graph, target=target)
    sampler.fit(table[features], table[target])
    X = np.array(list(itertools.product((0.0, 1.0), repeat=3)))
    noise = grid(3 + sampler.n_hidden)
    for known in all_coalitions(3):
        for row in np.unique(np.where(known, X, 0), axis=0):
            draws = sampler.draw(row[None], known, noise)[0].astype(int)
            fixed = {features[at]: int(row[at]) for at in np.flatnonzero(known)}
            law = np.zeros((2, 2, 2))
            for values, chance in world.law(fixed):
                law[tuple(values[name] for name in features)] += chance
            found = np.zeros((2, 2, 2))
            np.add.at(found, tuple(draws.T), 1 / len(draws))
            np.testing.assert_allclose(found, law, atol=1e-12)


def numbers(features):
    """Rows for a sampler whose moments are given: their columns alone matter."""
    rows = np.random.default_rng(0).normal(size=(30, len(features)))
    return pd.DataFrame(rows, columns=features)


def moments_under(sampler, known, row, n_draws=4096):
    """Means and covariances of draws, from a net of normal scores."""
    rng = np.random.default_rng(0)
    noise = rng.uniform(1e-6, 1 - 1e-6, (1, n_draws, len(known) + sampler.n_hidden))
    draws = sampler.draw(row[None], known, noise)[0]
    return draws.mean(axis=0), np.cov(draws.T)


CONFOUNDED = {
    "pair": (("h", "a", "b"), {("h", "a"): 1.0, ("h", "b"): 2.0}),
    "front door": (("h", "a", "c", "b"), {
        ("h", "a"): 1.0, ("h", "b"): 1.5, ("a", "c"): 0.8, ("c", "b"): -0.7,
    }),
    "chain of districts": (("h", "k", "a", "b", "c", "e"), {
        ("h", "a"): 1.0, ("h", "b"): 1.0, ("k", "b"): 0.7, ("k", "c"): 1.2, ("e", "a"): 0.5,
        ("e", "c"): -0.6,
    }),
    "napkin without its bow": (("h", "w", "z", "x"), {
        ("h", "w"): 1.0, ("h", "x"): 0.9, ("w", "z"): 0.8, ("z", "x"): 0.6,
    }),
}  # fmt: skip


@pytest.mark.parametrize("name", CONFOUNDED)
def test_hidden_causes_are_handled_as_by_the_structural_equations(name):
    names, weights = CONFOUNDED[name]
    hidden = tuple(each for each in names if each in ("h", "k"))
    world = LinearWorld(names, weights, hidden)
    features = [each for each in names if each not in hidden]
    seen = Gaussian.from_moments(np.zeros(len(features)), world.covariance(features), features)
    sampler = Interventional(sampler=seen, graph=world.graph).fit(numbers(features))
    row = np.linspace(-1.0, 1.5, len(features))
    for known in all_coalitions(len(features)):
        fixed = np.flatnonzero(known)
        truth = world.mean_under(features, fixed, row[None])[0]
        found = sampler.mean(row[None], known)[0]
        np.testing.assert_allclose(found, truth, atol=1e-9)
        spread = world.covariance(features, [features[at] for at in fixed])
        mean, covariance = moments_under(sampler, known, row)
        np.testing.assert_allclose(mean, truth, atol=0.12)
        np.testing.assert_allclose(covariance, spread, atol=0.3)


def test_what_is_not_an_effect_keeps_its_draws_to_the_bit():
    rng = np.random.default_rng(0)
    graph = Graph(list("abcde"), [("a", "b"), ("b", "c"), ("a", "d")], [("c", "e")])
    X = pd.DataFrame(rng.normal(size=(200, 5)), columns=list("abcde"))
    noise = rng.uniform(0.01, 0.99, (20, 4, 5))
    for inner in (Gaussian(), Sequential(), Mix()):
        sampler = Interventional(sampler=inner, graph=graph).fit(X)
        nothing = sampler.draw(X[:20], np.zeros(5, bool), noise)
        known = np.array([False, True, False, False, False])
        draws = sampler.draw(X[:20], known, noise)
        for at in (0, 3, 4):
            np.testing.assert_array_equal(draws[:, :, at], nothing[:, :, at])
        assert (draws[:, :, 2] != nothing[:, :, 2]).any()


def test_the_target_is_drawn_along_from_noise_of_its_own():
    world = LinearWorld(("a", "y", "c"), {("a", "y"): 1.0, ("y", "c"): 2.0})
    seen = Gaussian.from_moments(np.zeros(3), world.covariance(["a", "c", "y"]), ["a", "c", "y"])
    sampler = Interventional(sampler=seen, graph=world.graph, target="y").fit(numbers(["a", "c"]))
    assert sampler.n_hidden == 1
    assert sampler.name == "Gaussian"
    X = np.array([[3.0, -1.0]])
    np.testing.assert_allclose(sampler.mean(X, np.array([True, False])), [[3.0, 6.0]])
    np.testing.assert_allclose(sampler.mean(X, np.array([False, True])), [[0.0, -1.0]])
    _, covariance = moments_under(sampler, np.array([True, False]), X[0])
    assert covariance[1, 1] == pytest.approx(5.0, rel=0.1)  # of y and of its own
    with pytest.raises(ValueError, match="noise must be"):
        sampler.draw(X, np.array([True, False]), np.full((1, 3, 2), 0.5))


def test_a_target_that_is_a_class_is_drawn_as_one():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 400)
    X = pd.DataFrame({"a": rng.normal(size=400), "c": 3.0 * y + 0.1 * rng.normal(size=400)})
    graph = Graph(["a", "c", "y"], [("y", "c")])
    sampler = Interventional(sampler=Sequential(), graph=graph, target="y", is_class=True)
    sampler.fit(X, y)
    draws = sampler.draw(X[:50], np.zeros(2, bool), rng.uniform(0.01, 0.99, (50, 8, 3)))
    assert ((np.abs(draws[:, :, 1]) < 1) | (np.abs(draws[:, :, 1] - 3) < 1)).all()


def test_another_graph_shares_the_mechanisms():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(100, 3)), columns=list("abc"))
    one = Graph(list("abc"), [("a", "b"), ("b", "c")])
    other = Graph(list("abc"), [("b", "a"), ("b", "c")])
    sampler = Interventional(sampler=Sequential(), graph=one).fit(X)
    again = sampler.with_graph(other)
    alone = Interventional(sampler=Sequential(), graph=other).fit(X)
    noise = rng.uniform(0.01, 0.99, (10, 2, 3))
    for known in all_coalitions(3):
        np.testing.assert_array_equal(
            again.draw(X[:10], known, noise), alone.draw(X[:10], known, noise)
        )


CONDITIONAL = [name for name in SAMPLERS if not SAMPLERS[name]().is_marginal]


@pytest.mark.parametrize("name", CONDITIONAL)
def test_every_sampler_keeps_the_spread_of_an_effect_given_its_cause(name):
    # Given its cause, the effect has two peaks. Samplers that first choose a component, or a row,
    # must choose it anew for each draw.
    fits = SAMPLERS.traits(name)["fits"]
    rng = np.random.default_rng(0)
    cause = rng.integers(0, 2, 400)
    peak = rng.integers(0, 2, 400)
    if "numbers" in fits:
        effect = 3.0 * peak + cause + 0.2 * rng.normal(size=400)
        X = pd.DataFrame({"cause": cause + 0.2 * rng.normal(size=400), "effect": effect})
    else:
        X = pd.DataFrame({"cause": cause, "effect": 2 * peak + cause}).astype("category")
    options = {"random_state": 0} if "random_state" in SAMPLERS[name]().get_params() else {}
    sampler = Interventional(
        sampler=SAMPLERS[name](**options), graph=Graph(["cause", "effect"], [("cause", "effect")])
    ).fit(X)
    noise = rng.uniform(1e-6, 1 - 1e-6, (200, 8, 2))
    for known in all_coalitions(2)[:3:2]:
        draws = sampler.draw(X[:200], known, noise)[:, :, 1].astype(float)
        seen = X["effect"][:200].astype(float)
        assert draws.mean() == pytest.approx(seen.mean(), abs=0.3)
        assert draws.std() == pytest.approx(seen.std(), rel=0.15)


def test_missing_values_are_drawn_and_may_be_known():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(300, 2)), columns=["a", "b"])
    X["b"] += X["a"]
    X.loc[rng.random(300) < 0.3, "a"] = np.nan
    graph = Graph(["a", "b"], [("a", "b")])
    noise = rng.uniform(0.01, 0.99, (300, 4, 2))
    for inner in (Gaussian(), Mix()):
        sampler = Interventional(sampler=inner, graph=graph).fit(X)
        assert not sampler.has_mean
        share = np.isnan(sampler.draw(X, np.zeros(2, bool), noise)[:, :, 0]).mean()
        assert share == pytest.approx(0.3, abs=0.06)
        draws = sampler.draw(X, np.array([True, False]), noise)
        assert np.isfinite(draws[:, :, 1]).all()
        np.testing.assert_array_equal(draws[:, 0, 0], X["a"])


class TestRefusals:
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(50, 2)), columns=["a", "b"])

    def refuse(self, graph, match, sampler=None, target=None):
        made = Interventional(sampler=sampler or Gaussian(), graph=graph, target=target)
        with pytest.raises((ValueError, TypeError), match=match):
            made.fit(self.X)
        assert not made.is_fitted

    def test_a_cycle_is_named(self):
        self.refuse(Graph(["a", "b"], [("a", "b"), ("b", "a")]), r"directed cycles.*\['a', 'b'\]")

    def test_a_bow_is_named(self):
        self.refuse(Graph(["a", "b"], [("a", "b")], [("a", "b")]), "identified; got 'a -> b'")

    def test_a_feature_that_is_not_in_the_graph_is_named(self):
        self.refuse(Graph(["a"], []), r"all features and the target; got \['b'\]")

    def test_marginal_draws_are_no_mechanism(self):
        self.refuse(Graph(["a", "b"], []), "sampler must be a conditional one", Marginal())

    def test_a_function_of_all_columns_is_no_mechanism(self):
        function = FunctionSampler(lambda x, known, rng: rng.normal(size=(len(x), 1)))
        self.refuse(Graph(["a", "b"], []), "fitted to some columns", function)

    def test_a_target_with_effects_needs_values(self):
        self.refuse(Graph(["a", "b", "y"], [("y", "a")]), "y must be given", target="y")

    def test_moments_of_other_columns_are_refused(self):
        other = Gaussian.from_moments([0.0], [[1.0]], ["a"])
        self.refuse(Graph(["a", "b"], []), r"fitted to \['a', 'b'\]", other)


def test_a_target_that_is_passed_but_not_named_is_not_used():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=50)})
    X["b"] = X["a"] + rng.normal(size=50)
    graph = Graph(["a", "b"], [("a", "b")])
    known, noise = np.array([True, False]), rng.random((5, 3, 2))
    for base in (Gaussian(), Sequential()):
        found = Interventional(sampler=base, graph=graph).fit(X, rng.normal(size=50))
        assert found.n_hidden == 0
        alone = Interventional(sampler=base, graph=graph).fit(X)
        np.testing.assert_array_equal(
            found.draw(X[:5], known, noise), alone.draw(X[:5], known, noise)
        )


def test_values_of_a_named_target_are_needed_only_if_features_depend_on_it():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=50), "b": rng.normal(size=50)})
    effect = Graph(["a", "b", "y"], [("a", "b"), ("a", "y")])
    assert Interventional(sampler=Gaussian(), graph=effect, target="y").fit(X).n_hidden == 0
    cause = Graph(["a", "b", "y"], [("y", "b")])
    sampler = Interventional(sampler=Gaussian(), graph=cause, target="y")
    with pytest.raises(TypeError, match="y must be given"):
        sampler.fit(X)
    assert not sampler.is_fitted
    assert sampler.fit(X, rng.normal(size=50)).n_hidden == 1
    with pytest.raises(ValueError, match="y must be of shape"):
        sampler.fit(X, rng.normal(size=49))
    # A fit that fails leaves the sampler as it was.
    assert sampler.is_fitted


def test_given_moments_of_the_target_too_serve_other_graphs_in_which_features_depend_on_it():
    world = LinearWorld(("a", "y", "b"), {("a", "y"): 1.0, ("y", "b"): 2.0})
    names = ["a", "b", "y"]
    base = Gaussian.from_moments(np.zeros(3), world.covariance(names), names)
    X = numbers(["a", "b"])
    first = Graph(names, [("a", "y"), ("y", "b"), ("a", "b")])
    sampler = Interventional(sampler=base, graph=first, target="y").fit(X)
    again = sampler.with_graph(world.graph)
    assert again.n_hidden == 1
    known = np.array([True, False])
    np.testing.assert_allclose(again.mean(X, known)[:, 1], 2.0 * X["a"])
    # Without the target among them, they do not.
    own = Gaussian.from_moments(np.zeros(2), world.covariance(["a", "b"]), ["a", "b"])
    sampler = Interventional(sampler=own, graph=Graph(["a", "b"], []), target="y").fit(X)
    with pytest.raises(ValueError, match="one without causes among the targets; got 'y'"):
        sampler.with_graph(world.graph)
