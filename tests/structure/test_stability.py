import importlib
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest

from dsage import Graph
from dsage._random import Streams
from dsage.data.table import Table
from dsage.datasets import paper_graph
from dsage.graphs import compare_graphs
from dsage.structure import Moments, Stability, learn_graph, search_graph, stability

MODEL = paper_graph("dag_s(3)")
module = importlib.import_module("dsage.structure.stability")


@pytest.fixture(scope="module")
def data():
    return MODEL.sample(1000, random_state=0)


@pytest.mark.parametrize("resample", ["half", "bootstrap"])
def test_same_seed_same_graphs_whatever_the_number_of_jobs(data, resample):
    one = stability(data, 4, resample=resample, random_state=3)
    assert len(one.graphs) == 4
    assert stability(data, 4, resample=resample, random_state=3, n_jobs=2) == one
    assert stability(pl.from_pandas(data), 4, resample=resample, random_state=3) == one
    assert stability(data, 4, resample=resample, random_state=4) != one


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
    cautious = compare_graphs(MODEL.graph, found.oracle(MODEL.target, share=1.0), MODEL.target)
    bold = compare_graphs(MODEL.graph, found.oracle(MODEL.target, share=0.1), MODEL.target)
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
        stability(data, 3, restarts=3)


def test_bad_input_is_refused(data):
    with pytest.raises(ValueError, match="n must be at least 1; got 0"):
        stability(data, 0)
    with pytest.raises(ValueError, match=r"got 'hlaf'\. Did you mean 'half'\?"):
        stability(data, resample="hlaf")
    with pytest.raises(TypeError, match=r"data must be a data frame or an array; got Moments"):
        stability(Moments.from_frame(data))
    with pytest.raises(ValueError, match="data must be at least 4 rows; got 3"):
        stability(data[:3])


def test_random_restarts_are_reproducible(data):
    options = {"method": "hc", "restarts": 3, "perturb": 8, "random_state": 0}
    assert stability(data[:200], 4, **options) == stability(data[:200], 4, **options)


def test_iterators_of_constraints_serve_every_resample(data):
    names = data.columns
    forbidden = ((one, other) for one in names for other in names if one != other)
    found = stability(data, 3, forbidden=forbidden, random_state=0)
    assert [graph.edges for graph in found.graphs] == [()] * 3


def test_graphs_of_a_callable_are_matched_by_name(data):
    orders = iter([list(data.columns), list(data.columns)[::-1]])

    def learn(frame):
        return Graph(next(orders), [("X1", "X2")])

    found = stability(data, 2, method=learn, random_state=0)
    assert found.to_frame()["share"].tolist() == [1.0]
    assert found.oracle(MODEL.target).feature_names[0] == "X2"


def test_categories_of_the_whole_are_kept_in_every_part():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.choice(list("xy"), 40), "b": rng.choice(list("uv"), 40)})
    frame.loc[0, "b"] = "rare"
    table = Table(frame)
    part = table.take(np.arange(1, 40))
    found = stability(table, 2, method="hc", random_state=0)
    assert len(found.graphs) == 2
    assert part.codes("b")[1] == ("rare", "u", "v")


def test_odd_columns_are_named_once(data):
    frame = data.assign(constant=1.0)
    with pytest.warns(UserWarning, match="'constant'") as caught:
        stability(frame, 5, random_state=0)
    assert len(caught) == 1


def test_nine_in_ten_must_agree_by_default(data):
    found = stability(data, 4, random_state=0)
    assert repr(found.oracle(MODEL.target)) == "Consensus(4 oracles, share=0.9)"


class TestInterrupt:
    """An interrupt comes as an exception in a callable, or as a flag from a search."""

    @pytest.mark.interrupts
    def test_the_graphs_so_far_are_returned_with_a_warning(self, data):
        calls = []

        def learn(frame):
            calls.append(1)
            if len(calls) == 3:
                raise KeyboardInterrupt
            return Graph(frame.columns, [])

        with pytest.warns(UserWarning, match="Interrupted after 2 of 10 resamples"):
            found = stability(data, 10, method=learn, random_state=0)
        assert len(found.graphs) == 2

    def test_a_search_that_was_cut_short_is_not_counted(self, data, monkeypatch):
        full = search_graph(data)
        results = iter([full, replace(full, interrupted=True)])
        monkeypatch.setattr(module, "search_graph", lambda *_, **__: next(results))
        with pytest.warns(UserWarning, match="Interrupted after 1 of 5 resamples"):
            found = stability(data, 5, random_state=0)
        assert found.graphs == (full.graph,)

    @pytest.mark.interrupts
    def test_without_any_graph_the_interrupt_goes_on(self, data):
        def learn(frame):
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            stability(data, 5, method=learn, random_state=0)


def test_learning_from_a_part_is_learning_from_those_rows(data):
    found = stability(data, 1, random_state=0)
    rows = Streams(0)("half", 0).permutation(1000)[:500]
    assert found.graphs[0] == learn_graph(data.iloc[rows])


def test_edges_are_listed_by_their_frequency_first_in_either_direction():
    graphs = [
        Graph(list("abc"), edges)
        for edges in ([("a", "b"), ("b", "c")], [("b", "a"), ("b", "c")], [("b", "a")])
    ]
    frame = Stability(tuple(graphs)).to_frame()
    listed = list(zip(frame["from"], frame["to"], strict=True))
    assert listed == [("b", "a"), ("a", "b"), ("b", "c")]
    assert frame["share"].tolist() == [2 / 3, 1 / 3, 2 / 3]
    assert frame["share_either"].tolist() == [1.0, 1.0, 2 / 3]


@pytest.mark.parametrize("score", ["auto", "basis", "bic"])
def test_every_score_of_mixed_tables_can_be_resampled(score):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 300))
    y = np.cos(2 * a) + 0.3 * rng.normal(size=300)
    kind = np.where(y + rng.logistic(size=300) > 0, "yes", "no")
    frame = pd.DataFrame({"a": a, "b": b, "y": y, "kind": kind})
    found = stability(frame, 4, score=score, random_state=0)
    assert [graph.names for graph in found.graphs] == [("a", "b", "y", "kind")] * 4
    # The conditional Gaussian score does not see waves.
    is_seen = [{"a", "y"} in map(set, graph.edges) for graph in found.graphs]
    assert is_seen == [score != "bic"] * 4
