import itertools
import math
import tracemalloc

import numpy as np
import pandas as pd
import pytest

from dsage import Graph
from dsage._random import Streams
from dsage.datasets import PAPER_GRAPHS, paper_graph
from dsage.graphs import Consensus, GraphComparison, NoSeparation, compare_graphs, comparison
from given import random_graph


def by_brute_force(true, estimated, target):
    counts = dict.fromkeys(itertools.product([False, True], repeat=2), 0)
    features = [name for name in true.names if name != target]
    for feature in features:
        others = [name for name in features if name != feature]
        for mask in itertools.product([False, True], repeat=len(others)):
            given = [name for name, inside in zip(others, mask, strict=True) if inside]
            answers = (graph.is_separated(feature, target, given) for graph in (true, estimated))
            counts[tuple(answers)] += 1
    return counts


@pytest.mark.parametrize("seed", range(10))
def test_all_queries_are_asked_where_they_are_few(seed):
    rng = np.random.default_rng(seed)
    true, estimated = random_graph(rng, 6, directed=0.3), random_graph(rng, 6, directed=0.3)
    counts = by_brute_force(true, estimated, "v0")
    result = compare_graphs(true, estimated, "v0", n_queries=5 * 2**4)
    assert result.is_exhaustive
    assert result.n_queries == 5 * 2**4
    expected = GraphComparison(
        tp=counts[True, True],
        tn=counts[False, False],
        fp=counts[False, True],
        fn=counts[True, False],
        is_exhaustive=True,
    )
    assert result == expected


@pytest.mark.parametrize("seed", range(5))
def test_random_queries_estimate_the_exhaustive_rates(seed):
    rng = np.random.default_rng(seed)
    true, estimated = random_graph(rng, 10, directed=0.25), random_graph(rng, 10, directed=0.25)
    exact = compare_graphs(true, estimated, "v0")
    n_queries = 2000
    drawn = compare_graphs(true, estimated, "v0", n_queries=n_queries, random_state=seed)
    assert exact.is_exhaustive
    assert not drawn.is_exhaustive
    assert drawn.n_queries == n_queries
    for cell in ("tp", "tn", "fp", "fn"):
        share = getattr(exact, cell) / exact.n_queries
        error = math.sqrt(share * (1 - share) / n_queries)
        assert abs(getattr(drawn, cell) / n_queries - share) <= 4 * error


def test_sizes_of_the_conditioning_sets_are_binomial(monkeypatch):
    sizes = []

    class Spy(NoSeparation):
        def separated(self, known):
            sizes.append(known.sum(axis=1))
            return super().separated(known)

    d, n_queries = 20, 50_000
    names = [f"v{i}" for i in range(d)]
    compare_graphs(Spy(names), NoSeparation(names), "y", n_queries=n_queries, random_state=0)
    observed = np.bincount(np.concatenate(sizes), minlength=d) / n_queries
    expected = np.array([math.comb(d - 1, k) for k in range(d)]) / 2 ** (d - 1)
    np.testing.assert_array_less(
        np.abs(observed - expected), 4.5 * np.sqrt(expected / n_queries) + 1e-12
    )


@pytest.mark.parametrize("d", [64, 65, 130])
def test_each_of_many_features_is_known_as_often_as_the_others(d):
    known = []

    class Spy(NoSeparation):
        def separated(self, rows):
            known.append(rows.mean(axis=0))
            return super().separated(rows)

    names = [f"v{i}" for i in range(d)]
    n_queries = 10_000
    compare_graphs(Spy(names), NoSeparation(names), "y", n_queries=n_queries, random_state=0)
    (share,) = known
    # Known with probability 1/2, unless it is the feature in question.
    expected = (1 - 1 / d) / 2
    error = math.sqrt(expected * (1 - expected) / n_queries)
    assert np.abs(share - expected).max() <= 5 * error


@pytest.mark.parametrize("name", PAPER_GRAPHS)
def test_shares_of_the_papers_graphs(name):
    """Equal to the three printed digits where exhaustive, else within two Monte-Carlo errors' sum.

    The paper's own figure has the error of its million queries, ours that of ours.
    """
    model = paper_graph(name)
    n_queries = 200_000
    result = compare_graphs(model.graph, model.graph, model.target, n_queries, random_state=0)
    printed = model.printed["share_d_separated"]
    if result.is_exhaustive:
        assert round(result.share, 3) == printed
    else:
        variance = result.share * (1 - result.share)
        error = math.sqrt(variance / n_queries + variance / 1_000_000)
        assert abs(result.share - printed) <= 4 * error + 0.0005
    assert result.is_exhaustive == name.startswith("dag_s(")
    assert (result.f1, result.false_discovery_rate) == (1.0, 0.0)


def test_the_order_of_the_nodes_does_not_matter():
    true = paper_graph("dag_s(3)").graph
    other = Graph(reversed(true.names), true.edges[2:])
    again = Graph(true.names, true.edges[2:])
    assert compare_graphs(true, other, "X1") == compare_graphs(true, again, "X1")


def test_same_seed_same_result_whatever_the_size_of_the_batch(monkeypatch):
    model = paper_graph("dag_sm(3)")
    other = Graph(model.graph.names, model.graph.edges[3:])
    arguments = (model.graph, other, model.target, 10_000)
    expected = compare_graphs(*arguments, random_state=1)
    assert compare_graphs(*arguments, random_state=1) == expected
    assert compare_graphs(*arguments, random_state=2) != expected
    monkeypatch.setattr(comparison, "_QUERIES_AT_ONCE", 999)
    assert compare_graphs(*arguments, random_state=1) == expected


def test_oracles_can_be_compared_too():
    model = paper_graph("dag_s(2)")
    oracle = model.graph.oracle(model.target)
    cautious = Consensus([oracle, NoSeparation(oracle.feature_names)], share=1.0)
    result = compare_graphs(model.graph, cautious, model.target)
    assert (result.tp, result.fp) == (0, 0)
    assert compare_graphs(oracle, model.graph, model.target).f1 == 1.0


def test_rates_follow_their_definitions():
    result = GraphComparison(tp=30, tn=50, fp=10, fn=20, is_exhaustive=False)
    assert result.n_queries == 110
    assert result.share == 50 / 110
    assert result.precision == 0.75
    assert result.recall == 0.6
    assert result.f1 == pytest.approx(2 * 0.75 * 0.6 / 1.35)
    assert result.false_discovery_rate == 0.25
    frame = result.to_frame()
    assert isinstance(frame, pd.DataFrame)
    assert frame.loc[0, "f1"] == result.f1
    assert frame.loc[0, "tp"] == 30


def test_undefined_rates_are_nan_and_no_discovery_is_no_false_one():
    result = GraphComparison(tp=0, tn=5, fp=0, fn=0, is_exhaustive=True)
    assert math.isnan(result.precision)
    assert math.isnan(result.recall)
    assert math.isnan(result.f1)
    assert result.false_discovery_rate == 0.0
    assert math.isnan(GraphComparison(tp=0, tn=0, fp=0, fn=0, is_exhaustive=True).share)


def test_a_million_queries_stay_below_300_megabytes():
    model = paper_graph("dag_l(4)")
    tracemalloc.start()
    compare_graphs(model.graph, model.graph, model.target, n_queries=1_000_000, random_state=0)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 300e6


def test_bad_input_is_refused():
    graph = Graph(["a", "b", "y"], [("a", "y")])
    with pytest.raises(ValueError, match=r"over the nodes of the true graph; got \['b', 'z'\]"):
        compare_graphs(graph, Graph(["a", "y", "z"], []), "y")
    with pytest.raises(ValueError, match="target must be one of the nodes of the graph; got 'q'"):
        compare_graphs(graph, graph, "q")
    with pytest.raises(ValueError, match="n_queries must be at least 1; got 0"):
        compare_graphs(graph, graph, "y", n_queries=0)
    with pytest.raises(TypeError, match=r"n_queries must be an integer; got 1\.5"):
        compare_graphs(graph, graph, "y", n_queries=1.5)
    with pytest.raises(TypeError, match=r"true must be a dsage\.Graph; got 'DiGraph'"):
        compare_graphs(graph.to_networkx(), graph, "y")
    with pytest.raises(
        ValueError, match=r"true must be about 'a'; got SeparationOracle\(target='y'"
    ):
        compare_graphs(graph.oracle("y"), graph.oracle("y"), "a")
    with pytest.raises(TypeError, match="random_state must be an int"):
        compare_graphs(graph, graph, "y", random_state="0")
    with pytest.raises(ValueError, match="a node besides the target; got 'y'"):
        compare_graphs(Graph(["y"], []), Graph(["y"], []), "y")
    with pytest.raises(ValueError, match="estimated must be over the features"):
        compare_graphs(graph, NoSeparation(["b", "a"]), "y")


def test_a_single_false_discovery_is_all_of_them():
    assert GraphComparison(0, 0, 1, 0, is_exhaustive=True).false_discovery_rate == 1.0
    assert GraphComparison(0, 1, 1, 1, is_exhaustive=True).f1 == 0.0
    assert GraphComparison(1, 0, 0, 0, is_exhaustive=True).precision == 1.0


@pytest.mark.parametrize("at_once", [1, 3, 7, 8, 64])
def test_all_coalitions_are_asked_once_whatever_the_size_of_the_batch(at_once, monkeypatch):
    monkeypatch.setattr(comparison, "_QUERIES_AT_ONCE", at_once)
    asked = []

    class Spy(NoSeparation):
        def separated(self, known):
            asked.extend(map(tuple, known.tolist()))
            return super().separated(known)

    names = ["a", "b", "c"]
    result = compare_graphs(Spy(names), NoSeparation(names), "y", n_queries=12)
    assert sorted(asked) == sorted(itertools.product([False, True], repeat=3))
    assert (result.tn, result.n_queries, result.is_exhaustive) == (12, 12, True)
    assert not compare_graphs(Spy(names), NoSeparation(names), "y", n_queries=11).is_exhaustive


@pytest.mark.parametrize("d", [1, 2, 63, 64, 65, 129])
def test_random_queries_are_about_a_single_feature_that_is_not_known(d):
    queries = list(comparison._random_queries(d, 3000, Streams(0)))
    known, asked = (np.concatenate(each) for each in zip(*queries, strict=True))
    assert known.shape == asked.shape == (3000, d)
    assert (asked.sum(axis=1) == 1).all()
    assert not (known & asked).any()
    for share, expected in ((asked.mean(axis=0), 1 / d), (known.mean(axis=0), (1 - 1 / d) / 2)):
        error = math.sqrt(expected * (1 - expected) / 3000)
        assert np.abs(share - expected).max() <= 5 * error
    # Features are known independently of each other.
    if d > 2:
        both = (known[:, 0] & known[:, -1]).mean()
        assert abs(both - (1 - 2 / d) / 4) <= 5 * math.sqrt(3 / 16 / 3000)


def test_an_estimate_may_have_indicators_in_addition_and_oracles_need_the_same_features():
    true = Graph(["a", "y"], [("a", "y")])
    more = Graph(["a", "no a", "y"], [("no a", "y")], indicators={"no a": ["a"]})
    assert compare_graphs(true, more, "y").tn == 1
    with pytest.raises(ValueError, match="over the nodes of the true graph"):
        compare_graphs(true, Graph(["a", "b", "y"], [("b", "y")]), "y")
    # An oracle that does not know its target is about any.
    assert compare_graphs(NoSeparation(["a"]), true, "y").tn == 1
    with pytest.raises(ValueError, match="estimated must be about 'y'"):
        compare_graphs(true, Graph(["a", "z"], []).oracle("z"), "y")
