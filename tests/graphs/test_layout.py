from itertools import pairwise

import networkx as nx
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


def crossed_graphs():
    return [
        random_dag(n, min(2.5, n - 1), random_state=seed)
        for n in (3, 5, 8, 12)
        for seed in range(5)
    ]


@pytest.mark.parametrize("graph", crossed_graphs())
def test_slots_of_a_column_touch_each_other_around_zero(graph):
    """A node takes one, a passing edge 0.45, and each stands in the middle of what it takes."""
    drawing = layered(graph)
    columns = {}
    for x, y in drawing.places.values():
        columns.setdefault(x, []).append((y, 1.0))
    for route in drawing.routes.values():
        for x, y in route[1:-1]:
            columns.setdefault(x, []).append((y, 0.45))
    assert drawing.n_columns == len(columns)
    for slots in columns.values():
        slots.sort()
        edge = -sum(size for _, size in slots) / 2
        for y, size in slots:
            assert y == pytest.approx(edge + size / 2)
            edge += size
    everything = [y for slots in columns.values() for y, _ in slots]
    assert drawing.heights == (min(everything), max(everything))


@pytest.mark.parametrize("graph", crossed_graphs())
def test_a_column_is_the_longest_distance_from_a_root(graph):
    places = layered(graph).places
    for name in graph.topological_order():
        before = [places[parent][0] for parent in graph.parents(name)]
        assert places[name][0] == max(before, default=-1.0) + 1


def test_slots_are_sorted_by_the_mean_height_of_themselves_and_their_neighbors():
    n_sorted = n_columns = 0
    for graph in crossed_graphs():
        drawing = layered(graph)
        near, columns = nx.Graph(), {}
        near.add_nodes_from(drawing.places.values())
        for route in drawing.routes.values():
            near.add_edges_from(pairwise(route))
        for point in near:
            columns.setdefault(point[0], []).append(point)
        for points in columns.values():
            points.sort(key=lambda point: point[1])
            means = [
                (point[1] + sum(y for _, y in near[point])) / (1 + len(near[point]))
                for point in points
            ]
            n_columns += 1
            n_sorted += all(a <= b + 1e-9 for a, b in pairwise(means))
    # The last sweep may change a column after the one before it.
    assert n_sorted >= 0.95 * n_columns


def test_bidirected_edges_pull_their_ends_together():
    names = ["a", "b", "c", "d", "e"]
    free = layered(Graph(names, [])).places
    near = layered(Graph(names, [], [("a", "e")])).places
    assert abs(free["a"][1] - free["e"][1]) == 4
    assert abs(near["a"][1] - near["e"][1]) < 4
