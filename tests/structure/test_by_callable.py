"""Graphs that users' functions learn, as results of a search."""

import math

import networkx as nx
import pandas as pd
import pytest

from dsage.graphs import Graph, PartialGraph
from dsage.structure.by_callable import learn_by_callable

FRAME = pd.DataFrame({"a": [0.0, 1.0, 3.0], "b": [1.0, 0.0, 5.0]})


def test_the_result_of_a_function_has_its_name_and_no_score():
    def mine(data):
        assert data is FRAME
        return nx.DiGraph([("b", "a")])

    learned = learn_by_callable(mine, FRAME)
    result = learned.as_result("method")
    # In the order of the columns.
    assert result.graph == Graph(["a", "b"], [("b", "a")])
    assert result.graph.names == ("a", "b")
    assert (result.method, result.n_scored, result.trace) == ("mine", 0, ())
    assert math.isnan(result.score)
    assert result.seconds == learned.seconds >= 0
    assert not result.interrupted


def test_an_object_has_the_name_of_its_class():
    class Learner:
        def __call__(self, data):
            return Graph(["b", "a"], [], [("a", "b")])

    learned = learn_by_callable(Learner(), FRAME)
    assert learned.name == "Learner"
    assert learned.graph == Graph(["a", "b"], [], [("a", "b")])


def test_circles_are_no_result_of_a_search_and_other_things_no_graph():
    learned = learn_by_callable(lambda _: PartialGraph(["a", "b"], [("a", "o-o", "b")]), FRAME)
    with pytest.raises(ValueError, match="method must be a callable whose graph has no circles"):
        learned.as_result("method")
    with pytest.raises(TypeError, match="graph must be a callable that returns a graph; got 'int'"):
        learn_by_callable(lambda _: 3, FRAME, "graph")
    with pytest.raises(ValueError, match="over the columns of the data"):
        learn_by_callable(lambda _: Graph(["a", "c"], []), FRAME)
