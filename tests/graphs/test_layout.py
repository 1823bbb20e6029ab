from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsage import Graph
from dsage.datasets import paper_graph
from dsage.graphs import random_dag
from dsage.graphs.layout import layered


@given(n_nodes=st.integers(2, 30), seed=st.integers(0, 10_000))
def test_causes_stand_left_of_effects_and_nodes_keep_their_distance(n_nodes, seed):
    graph = random_dag(n_nodes, average_degree=min(2.0, (n_nodes - 1) / 2), random_state=seed)
    drawing = layered(graph)
    assert set(drawing.places) == set(graph.names)
    assert all(drawing.places[tail][0] < drawing.places[head][0] for tail, head in graph.edges)
    by_column = {}
    for x, y in drawing.places.values():
        by_column.setdefault(x, []).append(y)
    for heights in by_column.values():
        heights.sort()
        assert all(b - a >= 0.999 for a, b in pairwise(heights))


def test_an_edge_passes_one_point_in_each_column_between_its_ends():
    model = paper_graph("dag_m(3)")
    drawing = layered(model.graph)
    assert set(drawing.routes) == set(model.graph.edges)
    for (tail, head), route in drawing.routes.items():
        assert route[0] == drawing.places[tail]
        assert route[-1] == drawing.places[head]
        assert [x for x, _ in route] == list(range(int(route[0][0]), int(route[-1][0]) + 1))
        assert not set(route[1:-1]) & set(drawing.places.values())


def test_nodes_of_a_column_are_one_apart_and_a_passing_edge_takes_less_room():
    drawing = layered(Graph(["a", "b", "c", "d"], [("a", "d"), ("b", "d"), ("c", "d")]))
    heights = sorted(drawing.places[name][1] for name in "abc")
    assert heights == [-1.0, 0.0, 1.0]
    assert drawing.heights == (-1.0, 1.0)
    passed = layered(Graph(["a", "b", "c"], [("a", "b"), ("b", "c"), ("a", "c")]))
    gap = abs(passed.routes["a", "c"][1][1] - passed.places["b"][1])
    assert 0.5 < gap < 1.0


def test_a_cycle_shares_a_column():
    drawing = layered(Graph(["a", "b", "c"], [("a", "b"), ("b", "a"), ("b", "c")]))
    columns = {name: x for name, (x, _) in drawing.places.items()}
    assert columns == {"a": 0.0, "b": 0.0, "c": 1.0}
    assert drawing.n_columns == 2


def test_a_graph_without_nodes_takes_no_room():
    drawing = layered(Graph([], []))
    assert (drawing.n_columns, drawing.heights) == (0, (0.0, 0.0))


def test_something_else_than_a_graph_is_refused():
    with pytest.raises(TypeError, match=r"graph must be a dsage\.Graph; got 'str'"):
        layered("graph")
