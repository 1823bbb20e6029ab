"""Constraints: what they allow, and what contradicts them or itself."""

from __future__ import annotations

import numpy as np
import pytest

from dsage.graphs import Graph
from dsage.structure.constraints import Constraints, graph_of

NAMES = ("a", "b", "c", "d")


def edges(matrix):
    return {(NAMES[tail], NAMES[head]) for tail, head in np.argwhere(matrix)}


def test_nothing_is_required_and_all_but_loops_allowed_by_default():
    constraints = Constraints(NAMES)
    assert (constraints.allowed == ~np.eye(4, dtype=bool)).all()
    assert not constraints.required.any()
    assert constraints.max_parents == 3


def test_required_edges_exclude_their_opposites():
    constraints = Constraints(NAMES, required=[("a", "b")])
    assert edges(constraints.required) == {("a", "b")}
    assert edges(~constraints.allowed & ~np.eye(4, dtype=bool)) == {("b", "a")}


def test_forbidden_edges_leave_their_opposites_possible():
    constraints = Constraints(NAMES, forbidden=[("a", "b"), ("c", "d")])
    assert edges(~constraints.allowed & ~np.eye(4, dtype=bool)) == {("a", "b"), ("c", "d")}


def test_later_tiers_do_not_cause_earlier_ones_and_the_rest_is_free():
    constraints = Constraints(NAMES, tiers=[["d"], ["a", "b"]])
    assert edges(~constraints.allowed & ~np.eye(4, dtype=bool)) == {("a", "d"), ("b", "d")}


def test_the_matrices_cannot_be_written():
    constraints = Constraints(NAMES)
    with pytest.raises(ValueError, match="read-only"):
        constraints.allowed[0, 1] = False
    with pytest.raises(ValueError, match="read-only"):
        constraints.required[0, 1] = True


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"required": [("a", "e")]}, ValueError, r"\('a', 'e'\) must be one of the variables"),
        ({"forbidden": [("a", "a")]}, ValueError, r"different names; got \('a', 'a'\)"),
        ({"required": [("a", "b", "c")]}, ValueError, "pairs of names"),
        ({"required": ["ab"]}, ValueError, "pairs of names; got 'ab'"),
        ({"forbidden": "ab"}, TypeError, "forbidden must be an iterable of pairs"),
        (
            {"required": [("a", "b"), ("c", "d")], "forbidden": [("c", "d")]},
            ValueError,
            r"other than the forbidden edges; got \[\('c', 'd'\)\]",
        ),
        (
            {"required": [("a", "b")], "tiers": [["b"], ["a"]]},
            ValueError,
            r"to an earlier tier; got \[\('a', 'b'\)\]",
        ),
        (
            {"required": [("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")]},
            ValueError,
            r"without cycles; got \[\('a', 'b'\), \('b', 'c'\), \('c', 'a'\)\]",
        ),
        ({"required": [("a", "b"), ("b", "a")]}, ValueError, "required must be without cycles"),
        (
            {"required": [("a", "b"), ("c", "b")], "max_parents": 1},
            ValueError,
            r"at most 1 edges into a node.*got \[\('a', 'b'\), \('c', 'b'\)\]",
        ),
        ({"tiers": [["a"], ["b", "a"]]}, ValueError, "tiers must be disjoint; got 'a'"),
        ({"tiers": [["a"], ["f"]]}, ValueError, "tiers must be one of the variables; got 'f'"),
        ({"max_parents": -1}, ValueError, "max_parents must be at least 0"),
        ({"max_parents": 1.5}, TypeError, "max_parents must be an integer"),
    ],
)
def test_contradictions_and_unknown_names_are_named(options, error, words):
    with pytest.raises(error, match=words):
        Constraints(NAMES, **options)


def test_admit_adds_the_required_edges_and_follows_the_order_of_the_data():
    constraints = Constraints(NAMES, required=[("c", "a")])
    start = Graph(["d", "c", "b", "a"], [("a", "b"), ("d", "b")])
    assert constraints.admit(start) == [(2,), (0, 3), (), ()]
    assert constraints.admit() == [(2,), (), (), ()]


@pytest.mark.parametrize(
    ("start", "words"),
    [
        (Graph(["a", "b", "c", "x"], []), r"over the variables of the data; got \['d', 'x'\]"),
        (Graph(NAMES, [("a", "b"), ("b", "a")]), "start must be a DAG"),
        (Graph(NAMES, [], [("a", "b")]), "start must be a DAG"),
        (Graph(NAMES, [("b", "a")]), r"allowed edges only; got \[\('b', 'a'\)\]"),
        (Graph(NAMES, [("b", "d"), ("d", "a")]), "acyclic with the required edges"),
        (Graph(NAMES, [("a", "c"), ("b", "c"), ("d", "c")]), r"at most 2 parents.*got \['c'\]"),
    ],
)
def test_admit_refuses_a_start_that_breaks_the_constraints(start, words):
    with pytest.raises(ValueError, match=words):
        Constraints(NAMES, required=[("a", "b")], max_parents=2).admit(start)


def test_graph_of_undoes_admit():
    graph = Graph(NAMES, [("a", "b"), ("d", "b"), ("b", "c")])
    assert graph_of(NAMES, Constraints(NAMES).admit(graph)) == graph


def test_repr_counts():
    constraints = Constraints(NAMES, required=[("a", "b")], forbidden=[("c", "d")])
    assert repr(constraints) == "Constraints(4 nodes, 1 required, 1 forbidden, max_parents=3)"
