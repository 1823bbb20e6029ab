"""Flows along edges against their definition: linear-Gaussian graphs, and a discrete network."""

import numpy as np
import pandas as pd
import pytest

import dsage
from dsage.estimate.running.stopping import NOrderings
from dsage.flow import FlowGame, Network, estimate_flow, fit_mechanisms
from dsage.flow.blocks import Column
from dsage.models import as_loss, as_model
from dsage.samplers import Marginal
from exact_flows import Discrete, Linear
from exact_values import shapley

N_TRAIN, N_TEST = 4000, 120
# Slopes of each node's parents, in a topological order; the model's weights; the target last.
CASES = {
    "chain": {"a": {}, "b": {"a": 0.8}, "y": {"a": 1.0, "b": 1.0}},
    "fork": {"z": {}, "a": {"z": 1.0}, "b": {"z": -0.5}, "y": {"a": 1.0, "b": 2.0}},
    "collider": {"a": {}, "b": {}, "c": {"a": 1.0, "b": 0.5}, "y": {"c": 1.0}},
    "through the target": {"a": {}, "y": {"a": 1.0}, "b": {"y": 0.7, "a": 0.3}},
}
WEIGHTS = {
    "chain": {"a": 1.0, "b": 1.0},
    "fork": {"z": 0.2, "a": 1.0, "b": 1.5},
    "collider": {"a": 0.3, "b": -0.1, "c": 0.5},
    "through the target": {"a": 0.5, "b": 0.6},
}


def simulate(case, n_rows, seed):
    rng = np.random.default_rng(seed)
    columns = {}
    for node, slopes in CASES[case].items():
        columns[node] = rng.normal(size=n_rows) + sum(b * columns[p] for p, b in slopes.items())
    return pd.DataFrame(columns)


class Case:
    """A linear-Gaussian graph with a fixed model: the flow, and the truth for the same rows."""

    def __init__(self, name, seed=0, n_test=N_TEST):
        self.train, self.test = simulate(name, N_TRAIN, 1), simulate(name, n_test, 100 + seed)
        edges = [(p, node) for node, slopes in CASES[name].items() for p in slopes]
        self.graph = dsage.Graph(list(CASES[name]), edges)
        self.weights, self.seed = WEIGHTS[name], seed
        self.features = list(self.weights)

    def predict(self, X):
        return sum(weight * np.asarray(X[name]) for name, weight in self.weights.items())

    def explain(self, **options):
        rows = self.train[self.features], self.train["y"], self.test[self.features], self.test["y"]
        options = {"n_orderings": 60, "random_state": self.seed, "progress": False} | options
        return dsage.explain_flow(
            self.predict, *rows, graph=self.graph, loss="squared_error", target="y", **options
        )

    def exact(self, *, is_set=False):
        """The linear flow with the least-squares slopes of the training rows."""
        reach = [name for name in self.graph.topological_order() if name in self.features]
        if set(self.graph.descendants("y")) & set(self.features):
            reach = list(self.graph.topological_order())
        parents, noise, middle = {}, {}, {}
        for node in reach:
            names = list(self.graph.parents(node))
            x, y = self.train[names].to_numpy(), self.train[node].to_numpy()
            slopes = np.linalg.lstsq(x - x.mean(axis=0), y - y.mean(), rcond=None)[0]
            parents[node] = dict(zip(names, slopes, strict=True))
            noise[node] = self.test[node].to_numpy() - self.test[names].to_numpy() @ slopes
            middle[node] = float(y.mean() - x.mean(axis=0) @ slopes) if names else float(y.mean())
        return Linear(
            parents, noise, middle, self.weights, self.test["y"].to_numpy(), is_set=is_set
        )


def assert_agree(found, exact, n_errors=4.5):
    frame = found.to_frame()
    assert (found.mechanisms["terms"] <= 1).all()  # else the mechanisms are not linear
    for line in frame.itertuples():
        truth = exact.get((line.source, line.target), 0.0)
        assert abs(line.value - truth) <= n_errors * line.se + 1e-9, (line.source, line.target)


@pytest.mark.parametrize("case", CASES)
def test_flow_of_linear_mechanisms_matches_all_orderings(case):
    one = Case(case)
    assert_agree(one.explain(), one.exact().flows())


@pytest.mark.parametrize("case", CASES)
def test_flow_of_features_that_are_set_matches_all_orderings(case):
    one = Case(case)
    found = one.explain(sources="do", model_first=True)
    assert_agree(found, one.exact(is_set=True).flows(model_first=True))


def population(found):
    frame = found.to_frame()
    return {(line.source, line.target): line for line in frame.itertuples()}


def assert_near(line, value):
    assert abs(line.value - value) <= 4.5 * np.hypot(line.se, line.se_rows)


def test_chain_by_hand():
    # y = a + b = 1.8 n_a + n_b. With 1.8 n_a unexplained, the message to the model explains n_a of
    # it, that through b 0.8 n_a: 1.8^2 - 0.8^2 and 0.8^2 in one order, 1 and 1.8^2 - 1 in the other.
    lines = population(Case("chain", n_test=1500).explain(n_orderings=48))
    truth = {("noise", "a"): 3.24, ("noise", "b"): 1.0, ("a", "b"): 1.44, ("a", "model"): 1.8}
    for edge, value in {**truth, ("b", "model"): 2.44}.items():
        assert_near(lines[edge], value)


def test_collider_by_hand():
    # y = c = n_a + n_b / 2 + n_c, and the model has c / 2, + 0.3 a, - 0.1 b. Of t n, it explains
    # t^2 - (t - p)^2, if p n is what it predicts.
    case = Case("collider", n_test=1500)
    case.weights = {"a": 0.0, "b": 0.0, "c": 0.5}
    lines = population(case.explain(n_orderings=48))
    for node, t in {"a": 1.0, "b": 0.5, "c": 1.0}.items():
        assert_near(lines["noise", node], t**2 - (t / 2) ** 2)
    assert_near(lines["a", "c"], 0.75)
    # Edges to a model that does not look are not nearly zero, but zero.
    assert lines["a", "model"].value == 0.0
    assert lines["a", "model"].se == 0.0


def test_fork_by_hand():
    # y = a + 2 b = (1 - 1) z + n_a + 2 n_b: the two ways of z cancel each other.
    case = Case("fork", n_test=1500)
    case.weights = {"z": 0.0, "a": 1.0, "b": 2.0}
    lines = population(case.explain(n_orderings=48))
    # -t_a p_a + ... : whichever comes first does harm of 1, and the other one mends it.
    for edge in (("noise", "z"), ("z", "a"), ("z", "b")):
        assert_near(lines[edge], 0.0)
    assert_near(lines["noise", "a"], 1.0)
    assert_near(lines["noise", "b"], 4.0)


@pytest.mark.parametrize("case", CASES)
def test_sources_that_are_set_have_causal_sage_values(case):
    one = Case(case)
    exact = one.exact(is_set=True)
    names = one.features
    values = shapley(lambda known: exact.set_risk({names[at] for at in known}), len(names))
    flows = exact.flows()
    np.testing.assert_allclose([flows["do", name] for name in names], values, atol=1e-12)


@pytest.mark.parametrize("case", ["chain", "through the target"])
def test_flow_agrees_with_causal_sage(case):
    # Another implementation: coalitions and a sampler instead of messages and mechanisms.
    one = Case(case)
    rows = one.train[one.features], one.train["y"], one.test[one.features], one.test["y"]
    options = {"loss": "squared_error", "target": "y", "random_state": 0, "progress": False}
    causal = dsage.explain(
        one.predict,
        *rows,
        graph=one.graph,
        estimand="causal",
        sampler="gaussian",
        tolerance=0.02,
        sampler_check=False,
        **options,
    )
    found = one.explain(sources="do", model_first=True).node_frame().set_index(["node", "part"])
    frame = causal.to_frame().set_index("feature")
    for name in one.features:
        for part, value, se in [("own", "value", "se"), ("direct", "direct", "se_direct")]:
            line = found.loc[(name, part)]
            # Half a percent for a Gaussian in place of the residuals.
            error = 4.5 * np.hypot(line["se"], frame.loc[name, se]) + 0.005
            assert abs(line["value"] - frame.loc[name, value]) <= error


def test_direct_parts_are_direct_effects_where_the_model_comes_first():
    # Heskes et al. (2020): set x_j in the model's inputs alone, the others as they were.
    one = Case("chain")
    exact = one.exact(is_set=True)
    found = one.explain(sources="do", model_first=True)
    mean, rows = exact.middle["a"], exact.rows
    follows = exact.middle["b"] + exact.parents["b"]["a"] * mean
    first = exact.loss({"a": mean, "b": follows}) - exact.loss({"a": rows["a"], "b": follows})
    last = exact.loss({"a": mean, "b": rows["b"]}) - exact.loss(rows)
    lines = found.node_frame().set_index(["node", "part"])
    direct = lines.loc[("a", "direct")]
    assert abs(direct["value"] - (first + last) / 2) <= 4.5 * direct["se"] + 1e-9


def test_flow_of_a_discrete_network_matches_all_combinations():
    rng = np.random.default_rng(0)
    n_rows = 600
    a = (rng.random(n_rows) < 0.4) * 1.0
    b = (rng.random(n_rows) < 0.3 + 0.4 * a) * 1.0
    c = (rng.random(n_rows) < 0.2 + 0.3 * a + 0.3 * b) * 1.0
    X = np.stack([a, b, c], axis=1)
    y = a + 2 * b * c + rng.normal(size=n_rows)
    graph = dsage.Graph([*"abc", "y"], [("a", "b"), ("a", "c"), ("b", "c"), ("c", "y")])
    network = Network(graph, list("abc"), "y")
    columns = [Column(each, True) for each in X.T]
    made = fit_mechanisms(columns, network.parents, has_order=[True] * 3, whole=[None] * 3)
    loss = as_loss("squared_error")
    # Eight rows, of all kinds.
    some = np.unique(X, axis=0, return_index=True)[1]
    game = FlowGame(
        as_model(lambda X: X[:, 0] + 2 * X[:, 1] * X[:, 2], loss),
        Marginal().fit(X),
        X[some],
        y[some],
        network=network,
        mechanisms=made,
        values=X[some],
        loss=loss,
        random_state=0,
        n_draws=64,
    )
    found = estimate_flow(game, NOrderings(200), seed=0)

    def zero(node, values):
        at = "abc".index(node)
        effects = made[at].effects
        lines = effects.lines([np.array([value]) for value in values]).reshape(-1)
        return float(1 / (1 + np.exp(lines[1] - lines[0])))

    exact = Discrete(
        {"a": (), "b": ("a",), "c": ("a", "b")},
        zero,
        lambda row: row["a"] + 2 * row["b"] * row["c"],
        [dict(zip("abc", row, strict=True)) for row in X[some]],
        y[some],
    ).flows()
    for at, edge in enumerate(network.listed):
        truth = exact[network.names(edge)[1:]]
        assert abs(found.edges.values[at] - truth) <= 4.5 * found.edges.se[at]


def test_without_edges_between_features_flow_is_marginal_sage():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(600, 3)), columns=list("abc"))
    y = pd.Series(X["a"] * X["b"] + X["c"] + rng.normal(size=600), name="y")
    rows = X[:400], y[:400], X[400:], y[400:]
    graph = dsage.Graph([*"abc", "y"], [(name, "y") for name in "abc"])

    def model(X):
        return X["a"] * X["b"] + X["c"]

    options = {"loss": "squared_error", "random_state": 0, "progress": False}
    flow = dsage.explain_flow(model, *rows, graph=graph, n_orderings=60, **options)
    plain = dsage.explain(
        model,
        *rows,
        graph=None,
        sampler=Marginal(joint=False),
        sampler_check=False,
        tolerance=0.02,
        **options,
    )
    lines = population(flow)
    for name, value, se in zip(plain.feature_names, plain.values, plain.se, strict=True):
        for edge in (("noise", name), (name, "model")):
            # The flow has draws of its own.
            assert abs(lines[edge].value - value) <= 4.5 * np.hypot(lines[edge].se, se)
    for name in "abc":
        assert lines[name, "y"].value == 0.0


def test_intervals_cover_the_flow_of_the_rows_and_of_the_population():
    inside, inside_all = [], []
    truth = {("noise", "a"): 3.24, ("noise", "b"): 1.0, ("a", "b"): 1.44, ("a", "model"): 1.8}
    truth["b", "model"] = 2.44
    one = Case("chain")
    exact = one.exact()
    network = Network(one.graph, ["a", "b"], "y")
    columns = [Column(one.train[name].to_numpy(), False) for name in "ab"]
    made = fit_mechanisms(columns, network.parents, has_order=[False] * 2, whole=[None] * 2)
    slopes = dict(exact.parents)
    loss = as_loss("squared_error")
    sampler = Marginal().fit(one.train[["a", "b"]].to_numpy())
    for seed in range(60):
        test = simulate("chain", 40, 1000 + seed)
        X, y = test[["a", "b"]].to_numpy(), test["y"].to_numpy()
        game = FlowGame(
            as_model(lambda X: X.sum(axis=1), loss),
            sampler,
            X,
            y,
            network=network,
            mechanisms=made,
            values=X,
            loss=loss,
            random_state=seed,
            noise="independent",
        )
        found = estimate_flow(game, NOrderings(24), seed=seed)
        noise = {"a": X[:, 0], "b": X[:, 1] - slopes["b"]["a"] * X[:, 0]}
        rows = Linear(slopes, noise, exact.middle, one.weights, y).flows()
        for at, edge in enumerate(network.listed):
            ends = network.names(edge)[1:]
            off = found.edges.values[at] - rows[ends]
            # 2.20 and 2.02: Student's quantiles of 11 and about 40 degrees of freedom.
            inside.append(abs(off) <= 2.201 * found.edges.se[at])
            total = np.hypot(found.edges.se[at], found.edges.se_rows[at])
            inside_all.append(abs(found.edges.values[at] - truth[ends]) <= 2.02 * total)
    # Edges of a run are not independent of each other: the effective number of them is at least 60.
    assert 0.95 - 3 * np.sqrt(0.95 * 0.05 / 60) <= np.mean(inside)
    # Means of 40 squares are skewed, so that intervals cover somewhat less than they should.
    assert 0.92 - 3 * np.sqrt(0.95 * 0.05 / 60) <= np.mean(inside_all)
