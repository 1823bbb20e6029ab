"""`explain_flow`: conservation, zeros, symmetry, reproducible runs, refusals, files."""

import dataclasses
from functools import cache

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression

import dsage
from dsage.graphs import PartialGraph, cpdag

N = 400


@cache
def table():
    """Numbers, whole numbers with gaps, an ordered class, a class and a boolean, with a target."""
    rng = np.random.default_rng(0)
    age = rng.integers(20, 80, N).astype(float)
    is_old = age > 50
    city = np.array(["north", "south", "west"])[rng.integers(0, 3, N)]
    level = np.clip((age / 25 + rng.normal(size=N)).round(), 0, 3).astype(int)
    income = 10 + 0.3 * age + 5 * (city == "south") + 4 * level + 3 * rng.normal(size=N)
    smokes = rng.random(N) < 0.2 + 0.3 * is_old
    sick = rng.random(N) < 1 / (1 + np.exp(3 - 0.05 * age - smokes + 0.05 * income))
    cough = np.where(sick, 2.0, 0.0) + rng.normal(size=N)
    X = pd.DataFrame(
        {
            "age": np.where(rng.random(N) < 0.1, np.nan, age),
            "city": pd.Categorical(city),
            "level": pd.Categorical(level, categories=range(4), ordered=True),
            "income": income,
            "smokes": smokes,
            "cough": cough,
        }
    )
    return X, pd.Series(np.where(sick, "sick", "well"), name="health")


EDGES = [
    ("age", "level"), ("age", "income"), ("city", "income"), ("level", "income"), ("age", "smokes"),
    ("age", "health"), ("smokes", "health"), ("income", "health"), ("health", "cough"),
]  # fmt: skip


class Forest:
    """A forest of codes: it takes the frames as they are."""

    def __init__(self, X, y):
        self.forest = RandomForestClassifier(10, max_depth=5, random_state=0)
        self.forest.fit(self.encode(X), y)
        self.classes_ = self.forest.classes_

    @staticmethod
    def encode(X):
        coded = X.assign(city=X["city"].cat.codes, level=X["level"].cat.codes)
        return coded.astype(float).to_numpy()

    def predict(self, X):
        return self.forest.predict(self.encode(X))

    def predict_proba(self, X):
        return self.forest.predict_proba(self.encode(X))


@cache
def mixed(sources="noise", **options):
    X, y = table()
    model = Forest(X[:200], y[:200])
    graph = dsage.Graph([*X.columns, "health"], EDGES)
    rows = X[:300], y[:300], X[300:], y[300:]
    options = {"n_orderings": 1, "random_state": 0, "progress": False, "n_draws": 8} | options
    return dsage.explain_flow(model, *rows, graph=graph, sources=sources, loss="brier", **options)


@pytest.mark.parametrize("sources", ["noise", "do"])
def test_what_flows_into_a_node_flows_out(sources):
    found = mixed(sources)
    frame = found.to_frame()
    for node in found.nodes:
        into = frame.loc[frame["target"] == node, "value"].sum()
        out = frame.loc[frame["source"] == node, "value"].sum()
        assert into == pytest.approx(out, abs=1e-12)
    sums = frame.groupby("kind")["value"].sum()
    assert sums["source"] == pytest.approx(found.reduction, abs=1e-12)
    assert sums["model"] == pytest.approx(found.reduction, abs=1e-12)


@pytest.mark.parametrize("sources", ["noise", "do"])
def test_parts_of_nodes_and_sources_add_up(sources):
    found = mixed(sources)
    parts = found.node_table()
    np.testing.assert_allclose(parts["own"], parts["direct"] + parts["indirect"], atol=1e-12)
    frame = found.to_frame()
    out = frame[frame["kind"] != "source"].groupby("source")["value"].sum()
    np.testing.assert_allclose((parts["own"] + parts["through"])[out.index], out, atol=1e-12)
    by_source = found.by_source()
    lines = frame.set_index(["kind", "source", "target"])["value"]
    np.testing.assert_allclose(by_source.sum(axis=1), lines[by_source.index], atol=1e-12)
    assert (by_source.columns == list(found.nodes)).all()


def test_loss_of_all_features_is_that_of_the_model():
    found = mixed()
    X, y = table()
    predicted = Forest(X[:200], y[:200]).predict_proba(X[300:])
    truth = (y[300:].to_numpy()[:, None] == ["sick", "well"]) * 1.0
    assert found.estimate.risk == pytest.approx(((predicted - truth) ** 2).mean())


def test_target_has_a_source_only_if_noise_flows():
    kinds = mixed().to_frame().set_index(["source", "target"])
    assert ("noise", "health") in kinds.index
    assert mixed()["health", "cough"]["value"] > 0
    assert ("do", "health") not in mixed("do").to_frame().set_index(["source", "target"]).index


def linear(weights=(1.0, 1.0, 0.0), edges=(("a", "c"),), **options):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(500, 3))
    X[:, 2] += X[:, 0]
    X = pd.DataFrame(X, columns=list("abc"))
    y = pd.Series(X["a"] + X["b"] + rng.normal(size=500), name="y")
    model = LinearRegression().fit(X, X @ np.array(weights))
    model.coef_ = np.array(weights)
    options = {"graph": dsage.Graph([*"abc", "y"], edges)} | options
    options = {"n_orderings": 40, "random_state": 0, "progress": False} | options
    return dsage.explain_flow(model, X[:300], y[:300], X[300:], y[300:], **options)


def test_edges_to_what_the_model_ignores_carry_exactly_nothing():
    frame = linear().to_frame().set_index(["source", "target"])
    for edge in [("c", "model"), ("a", "c"), ("noise", "c")]:
        assert frame.loc[edge, "value"] == 0.0
        assert frame.loc[edge, "se"] == 0.0
        assert frame.loc[edge, "se_rows"] == 0.0


def test_edges_that_do_not_lead_to_the_model_are_listed_with_zero():
    found = linear(edges=[("a", "y"), ("a", "c")])
    assert found["a", "y"]["value"] == 0.0
    assert found["a", "y"]["upper_total"] == 0.0


def test_exchangeable_features_have_the_same_flow():
    rng = np.random.default_rng(0)
    z = rng.normal(size=400)
    noise = rng.normal(size=(400, 2))
    # For each row, one with the noises of a and b exchanged.
    X = pd.DataFrame({"z": z, "a": z + noise[:, 0], "b": z + noise[:, 1]})
    X = pd.concat([X, X.rename(columns={"a": "b", "b": "a"})[["z", "a", "b"]]], ignore_index=True)
    y = pd.Series(X["a"] * X["b"], name="y")
    graph = dsage.Graph(["z", "a", "b", "y"], [("z", "a"), ("z", "b")])
    found = dsage.explain_flow(
        lambda X: X["a"] * X["b"], X, y, X, y, graph=graph, loss="squared_error",
        n_orderings=60, random_state=0, progress=False,
    )  # fmt: skip
    for one, other in [(("z", "a"), ("z", "b")), (("a", "model"), ("b", "model"))]:
        first, second = found[one], found[other]
        error = np.hypot(first["se"], second["se"])
        assert abs(first["value"] - second["value"]) <= 4.5 * error


def test_runs_can_be_repeated_with_any_number_of_jobs_and_bytes():
    found = linear().to_frame()
    pd.testing.assert_frame_equal(found, linear().to_frame())
    pd.testing.assert_frame_equal(found, linear(max_bytes=10**5).to_frame())
    with joblib.parallel_config(backend="threading"):
        pd.testing.assert_frame_equal(found, linear(n_jobs=2).to_frame())
    assert not found.equals(linear(random_state=1).to_frame())


def test_weights_of_rows_count():
    weights = np.r_[np.ones(100), np.zeros(100)]
    weighted = linear(sample_weight=weights)
    assert weighted.reduction != pytest.approx(linear().reduction, rel=1e-3)
    assert weighted.estimate.risk > 0


def test_default_stops_when_computing_hardly_matters():
    found = linear(n_orderings=None)
    assert found.estimate.n_pairs >= 12
    frame = found.to_frame()
    value = frame["value"]
    allowed = np.maximum(frame["se_rows"] / 3, 0.01 * (value.max() - value.min()))
    assert (frame["se"] <= allowed + 1e-12).all()
    assert linear(n_orderings=None, seconds=1e-9).estimate.n_pairs == 2


@pytest.mark.interrupts
def test_interrupt_returns_what_is_known():
    calls = []

    class Impatient(LinearRegression):
        def predict(self, X):
            calls.append(len(X))
            if len(calls) > 40:
                raise KeyboardInterrupt
            return super().predict(X)

    rng = np.random.default_rng(0)
    X, y = pd.DataFrame(rng.normal(size=(60, 2)), columns=["a", "b"]), rng.normal(size=60)
    graph = dsage.Graph(["a", "b", "target"], [("a", "b")])
    model = Impatient().fit(X, y)
    found = dsage.explain_flow(model, X, y, X, y, graph=graph, n_orderings=10**6, progress=False)
    assert str(found.estimate.reason) == "it was interrupted"
    assert found.estimate.n_pairs > 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sources": "nosie"}, "sources must be one of the sources"),
        ({"n_drawz": 3}, "Did you mean 'n_draws'"),
        ({"draw_control": "none"}, "each option must be one of the options of a flow"),
        ({"graph": None}, "graph must be a graph; got 'NoneType'"),
        ({"graph": dsage.Graph(list("abc"), [])}, "one that has the target 'y'"),
        ({"graph": cpdag(dsage.Graph([*"abc", "y"], [("a", "b")]))}, r"got \['a - b'\]"),
        ({"graph": PartialGraph([*"abc", "y"], [("a", "o->", "b")])}, "without circles"),
        ({"graph": "lern"}, "Did you mean 'learn'"),
        ({"tolerance": -1.0}, "tolerance must be"),
    ],
)
def test_what_has_no_flow_is_refused(options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        linear(**options)


def test_rows_that_no_mechanism_produces_are_refused():
    X, y = table()
    graph = dsage.Graph([*X.columns, "health"], EDGES)
    model = Forest(X[:200], y[:200])
    few = X[:300][X[:300]["city"] != "west"]
    options = {"graph": graph, "progress": False}
    with pytest.raises(ValueError, match="categories that X_train lacks, in column 'city'"):
        dsage.explain_flow(model, few, y[few.index], X[300:], y[300:], **options)
    gap = X[300:].copy()
    gap.iloc[0, 3] = np.nan
    with (
        pytest.warns(UserWarning, match="income"),
        pytest.raises(ValueError, match="missing values that X_train lacks, in column 'income'"),
    ):
        dsage.explain_flow(model, X[:300], y[:300], gap, y[300:], **options)


def test_learned_graph_warns_of_edges_without_a_direction():
    with pytest.warns(UserWarning, match=r"direction of .* \('a - c'"):
        found = linear(graph="learn")
    assert any("direction" in text for text in found.warnings)
    assert found.graph.is_dag


def test_what_is_known_about_causes_directs_a_learned_graph():
    # The data alone do not tell a -> c from c -> a.
    found = linear(graph="learn", tiers=[["c"], ["a", "b", "y"]])
    assert ("c", "a") in found.graph.edges
    assert found.warnings == ()
    with pytest.raises(ValueError, match="unless the graph is learned"):
        linear(tiers=[["a"]])


def test_files_hold_everything(tmp_path):
    found = mixed()
    again = dsage.FlowExplanation.load(found.save(tmp_path / "flow.dsage"))
    pd.testing.assert_frame_equal(again.to_frame(), found.to_frame())
    pd.testing.assert_frame_equal(again.node_frame(), found.node_frame())
    pd.testing.assert_frame_equal(again.by_source(), found.by_source())
    pd.testing.assert_frame_equal(again.mechanisms, found.mechanisms)
    assert again.graph == found.graph
    assert str(again) == str(found)
    with pytest.raises(ValueError, match=r"Read it with dsage\.FlowExplanation\.load"):
        dsage.load(tmp_path / "flow.dsage")
    bad = dataclasses.replace(found, nodes=found.nodes[1:])
    with pytest.raises(ValueError, match="different shapes"):
        dsage.FlowExplanation.load(bad.save(tmp_path / "bad.dsage"))


def test_edges_are_found_by_their_ends():
    found = mixed()
    assert found["age", "income"]["kind"] == "edge"
    with pytest.raises(KeyError, match="Pass its two ends"):
        found["age", "cough"]
    assert "age" in found._repr_html_()
