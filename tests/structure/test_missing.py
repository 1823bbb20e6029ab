"""Graphs of tables with missing values: further nodes, and the separations of features."""

import itertools

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.special import expit

import dsage
from dsage import Graph
from dsage.data.inputs import check_inputs
from dsage.graphs import compare_graphs, random_dag, random_linear_gaussian
from dsage.structure import Score, search_graph, stability
from dsage.structure.resolve import find_graph

N_ROWS = 2_000


class FewestParents(Score):
    """A score that knows nothing but its variables."""

    def __init__(self, names):
        self.names = tuple(names)

    def family(self, node, parents):
        return -float(len(parents))


def chain(share=0.3, seed=0):
    """The chain x -> w -> y, in which w is missing at random."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=N_ROWS)
    w = x + rng.normal(size=N_ROWS)
    y = w + rng.normal(size=N_ROWS)
    w[rng.random(N_ROWS) < share] = np.nan
    return pd.DataFrame({"x": x, "w": w, "y": y})


def is_separated(graph, feature, target="y", given=()):
    """Whether a feature, with its indicators, is separated given others, with theirs."""
    features = [name for name in graph.names if name not in (target, *graph.indicators)]
    known = np.array([[name in given for name in features]])
    return bool(graph.oracle(target, features).separated(known)[0, features.index(feature)])


# Which separations are true


def holed(graph, rows, holes, drivers, target):
    """Make values of some columns missing, depending on others; return the rows and the truth.

    In the true graph, a column with missing values is unobserved itself, and a cause of what is
    recorded, which also depends on whether it is missing.
    """
    rng = np.random.default_rng(len(graph.edges))
    frame, edges, indicators = rows.copy(), list(graph.edges), {}
    for name, driver in zip(holes, drivers, strict=True):
        score = 0.0 if driver is None else 1.5 * (rows[driver] - rows[driver].mean())
        score = score if driver is None else score / rows[driver].std()
        frame.loc[rng.random(len(rows)) < expit(score - 0.85), name] = np.nan
        whole, missing = f"{name}*", f"{name} is missing"
        edges = [tuple(whole if end == name else end for end in edge) for edge in edges]
        edges += [(whole, name), (missing, name)] + [(driver, missing)] * (driver is not None)
        indicators[missing] = [name]
    nodes = [*graph.names, *indicators, *(f"{name}*" for name in holes)]
    return frame, Graph(nodes, edges, indicators=indicators)


def curved(graph, seed):
    """Draw numbers that are sums of sines of their causes, and noise."""
    rng, rows = np.random.default_rng(seed), {}
    for name in graph.topological_order():
        effects = [np.sin(1.5 * rows[cause] + rng.uniform(0, 6)) for cause in graph.parents(name)]
        rows[name] = sum(effects) + 0.6 * rng.normal(size=N_ROWS)
    return pd.DataFrame(rows)[list(graph.names)]


def compare(kind, seed, *, is_linear=True):
    """Learn the graph of eight numbers of which three have missing values; compare separations."""
    graph = random_dag(8, 2.0, random_state=seed)
    model = random_linear_gaussian(graph, random_state=seed)
    rows = model.sample(N_ROWS, random_state=seed) if is_linear else curved(graph, seed)
    target = max(graph.names, key=lambda name: len(graph.markov_blanket(name)))
    features = [name for name in graph.names if name != target]
    rng = np.random.default_rng(seed)
    *holes, other, _, _, _ = rng.permutation(features).tolist()
    drivers = 3 * [{"anywhere": None, "by a feature": other, "by the target": target}[kind]]
    frame, truth = holed(graph, rows, holes, drivers, target)
    found = dsage.learn_graph(frame)
    oracles = (each.oracle(target, features) for each in (truth, found))
    return compare_graphs(*oracles, target)


@pytest.mark.parametrize("kind", ["anywhere", "by a feature", "by the target"])
def test_separations_are_right_whatever_makes_values_missing(kind):
    found = [compare(kind, seed) for seed in range(6)]
    tp, fp, fn = (sum(getattr(each, name) for each in found) for name in ("tp", "fp", "fn"))
    assert fp <= 0.03 * (tp + fp)
    assert tp >= 0.8 * (tp + fn)


def test_separations_are_right_if_effects_are_curved():
    found = [compare("by a feature", seed, is_linear=False) for seed in range(6)]
    tp, fp, fn = (sum(getattr(each, name) for each in found) for name in ("tp", "fp", "fn"))
    assert fp <= 0.03 * (tp + fp)
    assert tp >= 0.7 * (tp + fn)


def test_a_column_separates_only_where_it_is_never_missing():
    assert not is_separated(dsage.learn_graph(chain()), "x", given=["w"])
    assert is_separated(dsage.learn_graph(chain(share=0.0)), "x", given=["w"])
    # Missing values of the cause change nothing.
    frame = chain(share=0.0)
    frame.loc[np.random.default_rng(1).random(N_ROWS) < 0.3, "x"] = np.nan
    assert is_separated(dsage.learn_graph(frame), "x", given=["w"])


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_numbers_beside_classes_separate_only_where_they_are_never_missing(share):
    frame = chain(share)
    noise = np.random.default_rng(2).normal(size=N_ROWS)
    frame["sex"] = np.where(frame["x"] > noise, "f", "m")
    graph = dsage.learn_graph(frame)
    assert is_separated(graph, "x", given=["sex", "w"]) == (share == 0.0)


@pytest.mark.parametrize("as_class", [False, True])
def test_missingness_that_depends_on_the_target_is_informative(as_class):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(N_ROWS, 4)), columns=list("abcy"))
    frame["b"] += frame["a"]
    frame.loc[rng.random(N_ROWS) < expit(frame["y"] - 1), "b"] = np.nan
    frame.loc[rng.random(N_ROWS) < 0.2, "c"] = np.nan
    if as_class:
        frame["y"] = np.where(frame["y"] > 0, "yes", "no")
    graph = dsage.learn_graph(frame)
    assert "b is missing" in graph.markov_blanket("y")
    assert not is_separated(graph, "b")
    assert not is_separated(graph, "b", given=["a", "c"])
    assert is_separated(graph, "a")
    # A mixed score also sees that the spread of the filled column depends on the class.
    assert is_separated(graph, "a", given=["b"]) or as_class
    assert is_separated(graph, "c", given=["a", "b"])


def test_a_missing_class_is_a_category():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=N_ROWS)
    frame = pd.DataFrame({"s": np.where(rng.random(N_ROWS) < 0.5, "u", "v"), "y": y.astype(str)})
    frame["t"] = np.where(rng.random(N_ROWS) < 0.5, "u", None)
    frame.loc[rng.random(N_ROWS) < 0.1 + 0.4 * y, "s"] = None
    graph = dsage.learn_graph(frame)
    assert graph.indicators == {}
    assert set(graph.names) == {"s", "t", "y"}
    assert not is_separated(graph, "s")
    assert is_separated(graph, "t", given=["s"])


# Nodes


def test_indicators_are_nodes_of_the_graph():
    graph = dsage.learn_graph(chain())
    assert graph.names == ("x", "w", "y", "w is missing")
    assert graph.indicators == {"w is missing": ("w",)}


def test_columns_that_are_missing_together_share_an_indicator():
    frame = chain()
    frame["v"] = np.where(frame["w"].isna(), np.nan, frame["x"] ** 2)
    graph = dsage.learn_graph(frame)
    assert graph.indicators == {"w and v are missing": ("w", "v")}


def test_few_missing_values_have_no_indicator():
    frame = chain(share=0.0)
    frame.loc[:3, "w"] = np.nan
    graph = dsage.learn_graph(frame)
    assert graph.names == ("x", "w", "y")
    assert is_separated(graph, "x", given=["w"])
    with pytest.warns(UserWarning, match="constant and stay isolated in the graph: 'w'"):
        graph = dsage.learn_graph(frame.assign(w=np.nan))
    assert graph.indicators == {}


def test_an_indicator_that_repeats_a_column_is_not_complained_about():
    frame = chain()
    frame["measured"] = frame["w"].notna().astype(float)
    graph = dsage.learn_graph(frame)
    assert ("measured", "w is missing") in graph.edges


def test_every_library_gives_the_same_graph():
    frame = chain()
    graph = dsage.learn_graph(frame)
    assert dsage.learn_graph(pl.from_pandas(frame)) == graph
    assert dsage.learn_graph(frame.convert_dtypes()) == graph
    array = dsage.learn_graph(frame.to_numpy())
    assert array.indicators == {"X2 is missing": ("X2",)}
    assert len(array.edges) == len(graph.edges)


def test_dates_are_numbers():
    frame = chain(share=0.0)
    days = pd.to_timedelta((1000 * frame["w"]).round(), unit="D")
    dated = frame.assign(w=pd.Timestamp("2020-01-01") + days)
    assert dsage.learn_graph(dated) == dsage.learn_graph(frame)
    dated.loc[:99, "w"] = pd.NaT
    assert dsage.learn_graph(dated).indicators == {"w is missing": ("w",)}


# Options


def test_ranks_and_other_scores_take_missing_values():
    for options in ({"transform": "rank"}, {"score": "bge"}, {"strict": True}, {"method": "hc"}):
        graph = dsage.learn_graph(chain(), **options)
        assert graph.indicators == {"w is missing": ("w",)}
        assert not is_separated(graph, "x", given=["w"])


def test_tiers_hold_for_indicators_too():
    frame = chain()
    frame.loc[np.random.default_rng(1).random(N_ROWS) < expit(frame["y"]), "w"] = np.nan
    free = dsage.learn_graph(frame)
    assert "w is missing" in free.children("y") or "w is missing" in free.parents("y")
    tiered = dsage.learn_graph(frame, tiers=[["x", "w"], ["y"]])
    assert "w is missing" in tiered.parents("y")
    given = dsage.learn_graph(frame, tiers=[["x", "w"], ["y"], ["w is missing"]])
    assert "w is missing" in given.children("y")
    required = [("w is missing", "x")]
    assert required[0] in dsage.learn_graph(frame, required=required).edges


def test_the_score_of_a_graph_covers_its_indicators():
    result = search_graph(chain())
    assert dsage.score_graph(result.graph, chain()) == pytest.approx(result.score)


def test_scores_and_learners_of_ones_own():
    frame, received = chain(), []

    def make(columns):
        received.append(columns)
        return FewestParents(columns.columns)

    graph = dsage.learn_graph(frame, score=make)
    assert graph.indicators == {"w is missing": ("w",)}
    assert received[0].columns.tolist() == ["x", "w", "y", "w is missing"]
    assert received[0].notna().all(axis=None)
    found = stability(frame, 2, score=make, random_state=0)
    assert found.graphs[0].indicators == {"w is missing": ("w",)}
    assert len(received[-1]) == N_ROWS // 2
    # A score or a learner that knows the columns itself has no further nodes.
    assert dsage.learn_graph(frame, score=FewestParents(["x", "w", "y"])).indicators == {}
    own = dsage.learn_graph(frame, method=lambda rows: Graph(list(rows), [("x", "w")]))
    assert own.names == ("x", "w", "y")


def test_graphs_of_resamples_have_the_same_nodes():
    frame = chain(share=0.01)
    found = stability(frame, 4, random_state=0)
    assert {graph.indicators["w is missing"] for graph in found.graphs} == {("w",)}
    oracle = found.oracle("y", ["x", "w"])
    assert oracle.feature_names == ("x", "w")
    assert not oracle.separated(np.zeros((1, 2), dtype=bool)).any()
    assert set(found.to_frame()["from"]) <= set(found.graphs[0].names)


# The graph of a run


@pytest.fixture(scope="module")
def inputs():
    frame = chain()
    X, y = frame[["x", "w"]], frame["y"]
    return check_inputs(X[:1500], y[:1500], X[1500:], y[1500:])


def resolve(graph, inputs):
    return find_graph(
        graph, inputs, is_of_classes=False, n_resamples=2, n_jobs=None, seed=0, progress=False
    )


def test_a_learned_graph_is_about_the_features(inputs):
    found = resolve("learn", inputs)
    assert found.graph.indicators == {"w is missing": ("w",)}
    assert found.oracle.feature_names == ("x", "w")
    assert set(found.strength["to"]) <= set(found.graph.names)


def test_a_learned_graph_can_be_given_again(inputs, tmp_path):
    learned = resolve("learn", inputs)
    learned.graph.save(tmp_path / "graph.json")
    known = np.array(list(itertools.product([False, True], repeat=2)))
    for graph in (learned.graph, Graph.load(tmp_path / "graph.json")):
        given = resolve(graph, inputs)
        np.testing.assert_array_equal(
            given.oracle.separated(known), learned.oracle.separated(known)
        )
    resampled = stability(inputs.training_table(), 3, random_state=0)
    assert resolve(resampled, inputs).oracle.feature_names == ("x", "w")


def test_a_given_graph_needs_no_indicators(inputs):
    found = resolve(Graph(["x", "w", "y"], [("x", "w"), ("w", "y")]), inputs)
    assert found.oracle.separated(np.array([[False, True]])).tolist() == [[True, False]]


def test_a_class_that_hardly_repeats_is_never_separated():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.normal(size=400), "name": [f"n{at % 200}" for at in range(400)]})
    X["w"] = X["x"] + 0.1 * rng.normal(size=400)
    X["unused"] = pd.Categorical(rng.choice(["u", "v"], size=400), [*"uv", *map(str, range(400))])
    y = pd.Series(X["w"] + 0.1 * rng.normal(size=400), name="y")
    inputs = check_inputs(X[:300], y[:300], X[300:], y[300:])
    with pytest.warns(UserWarning, match="Column 'name' has hardly any category that occurs twice"):
        found = resolve("learn", inputs)
    assert found.graph.names == ("x", "name", "w", "unused", "y")
    separated = found.oracle.separated(np.array([[False, False, True, False]]))[0]
    assert dict(zip(X, separated.tolist(), strict=True)) == {
        "x": True, "name": False, "w": False, "unused": True,
    }  # fmt: skip
