"""Edges that are added to a graph while that raises its score."""

from __future__ import annotations

import numpy as np
import pytest

from dsage.graphs import Graph
from dsage.structure import Constraints, search_graph
from dsage.structure.moments import Moments
from dsage.structure.scores.base import Floats, Parents, Score
from dsage.structure.scores.gaussian import GaussianScore
from dsage.structure.searches import ordered
from dsage.structure.searches.additions import add_edges
from dsage.structure.searches.bes import bes


class Table(Score):
    """A score of three variables from numbers for their families; others are worth -10."""

    def __init__(self, families: dict[tuple[int, Parents], float]) -> None:
        self.names = ("a", "b", "c")
        self.families = families

    def family(self, node: int, parents: Parents) -> float:
        return 0.0 if not parents else self.families.get((node, parents), -10.0)


class Hopeful(Table):
    """The same; its approximation promises ten more for every parent."""

    is_approximate = True

    def growth(self, node: int, parents: Parents) -> tuple[Floats, float]:
        added, whole = super().growth(node, parents)
        return added + 20.0, whole


def chain() -> GaussianScore:
    X = np.random.default_rng(0).normal(size=(500, 3))
    X[:, 1] += X[:, 0]
    X[:, 2] += X[:, 1]
    return GaussianScore(Moments.from_array(X, list("abc")), penalty=np.log(500) / 2)


def test_no_single_edge_is_left_that_raises_the_score():
    score = chain()
    found = add_edges(score, Graph(list("abc"), []))
    parents = [tuple(score.names.index(p) for p in found.graph.parents(name)) for name in "abc"]
    assert {frozenset(edge) for edge in found.graph.edges} == {frozenset("ab"), frozenset("bc")}
    for node in range(3):
        gains = score.additions(node, parents[node]) - score.family(node, parents[node])
        legal = [j for j in range(3) if "abc"[j] not in found.graph.descendants("abc"[node])]
        assert not legal or gains[legal].max() <= 0


def test_the_largest_gain_comes_first_and_closes_no_cycle():
    score = Table({(1, (0,)): 3.0, (0, (1,)): 4.0, (2, (0,)): 1.0})
    found = add_edges(score, Graph(list("abc"), []))
    assert [(step.tail, step.head, step.delta) for step in found.trace] == [
        ("b", "a", 4.0),
        ("a", "c", 1.0),
    ]
    assert found.score == pytest.approx(5.0)


def test_an_approximate_gain_is_checked_before_the_edge_is_added():
    found = add_edges(Hopeful({(1, (0,)): 3.0}), Graph(list("abc"), []))
    assert list(found.graph.edges) == [("a", "b")]
    # All other edges are promising, but those that would close a cycle are not scored.
    assert found.n_scored == 5


@pytest.mark.parametrize("options", [{"forbidden": [("a", "b")]}, {"max_parents": 0}])
def test_constraints_are_respected(options):
    constraints = Constraints(list("abc"), **options)
    found = add_edges(Table({(1, (0,)): 3.0}), Graph(list("abc"), []), constraints)
    assert list(found.graph.edges) == []


def test_the_search_goes_on_from_an_edge_that_orders_miss(monkeypatch):
    def miss(score, constraints, *_, **__):
        return bes(score, Graph(score.names, []), constraints)

    for name in ("tabu", "boss"):
        monkeypatch.setattr(ordered, name, miss)
    rows = np.random.default_rng(0).normal(size=(500, 2))
    rows[:, 1] += rows[:, 0]
    assert len(search_graph(rows, score="basis").graph.edges) == 1
