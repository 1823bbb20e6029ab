import numpy as np
import pandas as pd
import polars as pl
import pytest

from dsage import Graph
from dsage._random import Streams
from dsage.datasets import paper_graph
from dsage.graphs import compare
from dsage.structure import Moments, learn_graph, stability

MODEL = paper_graph("dag_s(3)")


@pytest.fixture(scope="module")
def data():
    return MODEL.sample(1000, random_state=0)


@pytest.mark.parametrize("resample", ["half", "bootstrap"])
def test_same_seed_same_graphs_whatever_the_number_of_jobs(data, resample):
    one = stability(data, 6, resample=resample, random_state=3)
    assert len(one.graphs) == 6
    assert stability(data, 6, resample=resample, random_state=3, n_jobs=2) == one
    assert stability(pl.from_pandas(data), 6, resample=resample, random_state=3) == one
    assert stability(data, 6, resample=resample, random_state=4) != one


def test_halves_come_in_complementary_pairs(data):
    numbered = pd.DataFrame({"row": np.arange(1000.0), "other": data["X1"]})
    seen = []

    def learn(frame):
        seen.append(frame)
        return Graph(frame.columns, [])

    stability(pl.from_pandas(numbered), 4, method=learn, random_state=0)
    rows = [frame["row"].to_list() for frame in seen]
    assert [len(part) for part in rows] == [500] * 4
    assert set(rows[0]) | set(rows[1]) == set(range(1000))
    assert set(rows[2]) | set(rows[3]) == set(range(1000))
    assert set(rows[0]) != set(rows[2])


def test_edge_shares_are_means_over_the_graphs(data):
    found = stability(data, 8, random_state=0)
    frame = found.to_frame()
    for row in frame.itertuples(index=False):
        tail, head, share, either = row
        count = sum((tail, head) in graph.edges for graph in found.graphs)
        opposite = sum((head, tail) in graph.edges for graph in found.graphs)
        assert share == count / 8
        assert either == (count + opposite) / 8
    assert frame["share_either"].is_monotonic_decreasing
    listed = set(zip(frame["from"], frame["to"], strict=True))
    assert listed == {edge for graph in found.graphs for edge in graph.edges}


def test_consensus_separates_less_than_its_graphs_and_rarely_falsely(data):
    found = stability(data[:120], 10, random_state=0)
    cautious = compare(MODEL.graph, found.oracle(MODEL.target, share=1.0), MODEL.target)
    bold = compare(MODEL.graph, found.oracle(MODEL.target, share=0.1), MODEL.target)
    assert cautious.tp + cautious.fp < bold.tp + bold.fp
    assert cautious.false_discovery_rate <= bold.false_discovery_rate


def test_features_may_be_given_in_the_order_of_the_data(data):
    names = [name for name in reversed(data.columns) if name != MODEL.target]
    oracle = stability(data, 2, random_state=0).oracle(MODEL.target, names)
    assert oracle.feature_names == tuple(names)


def test_options_reach_the_search(data):
    found = stability(data, 3, method="hc", score="bic", max_parents=1, random_state=0)
    for graph in found.graphs:
        assert max(len(graph.parents(name)) for name in graph.names) <= 1
    with pytest.raises(ValueError, match="each option must be one of"):
        stability(data, 3, tabu=3)


def test_bad_input_is_refused(data):
    with pytest.raises(ValueError, match="n must be at least 1; got 0"):
        stability(data, 0)
    with pytest.raises(ValueError, match=r"got 'hlaf'\. Did you mean 'half'\?"):
        stability(data, resample="hlaf")
    with pytest.raises(TypeError, match=r"data must be a data frame or an array; got Moments"):
        stability(Moments.from_frame(data))
    with pytest.raises(ValueError, match="data must be at least 4 rows; got 3"):
        stability(data[:3])


def test_learning_from_a_part_is_learning_from_those_rows(data):
    found = stability(data, 1, random_state=0)
    rows = Streams(0)("half", 0).permutation(1000)[:500]
    assert found.graphs[0] == learn_graph(data.iloc[rows])
