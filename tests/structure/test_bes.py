from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsage.graphs import Graph, LinearGaussian, cpdag, random_dag, random_linear_gaussian
from dsage.structure.constraints import Constraints, graph_of
from dsage.structure.moments import Moments
from dsage.structure.scores.base import Score
from dsage.structure.scores.bge import BGe
from dsage.structure.scores.gaussian import GaussianScore
from dsage.structure.searches.bes import _Backward, bes

seeds = st.integers(0, 10_000)


def model_of(n_nodes: int, average_degree: float, seed: int) -> LinearGaussian:
    return random_linear_gaussian(
        random_dag(n_nodes, average_degree, random_state=seed), random_state=seed
    )


def moments_of(model: LinearGaussian, n_rows: int, seed: int = 0) -> Moments:
    return Moments.from_frame(model.sample(n_rows, random_state=seed))


def population_score(model: LinearGaussian, n_rows: int = 1_000_000) -> GaussianScore:
    """Score with the exact covariance, as if `n_rows` rows had it."""
    names = model.graph.names
    moments = Moments(names, n_rows, np.zeros(len(names)), model.covariance().to_numpy())
    return GaussianScore(moments, penalty=math.log(n_rows) / 2)


def complete_dag(names) -> Graph:
    return Graph(names, itertools.combinations(names, 2))


def parents_of(graph: Graph):
    return Constraints(graph.names).admit(graph)


def total_of(score, parents) -> float:
    return math.fsum(score.family(*family) for family in enumerate(parents))


def members_of_class(parents):
    """Yield all DAGs that are equivalent to this one, by trying all directions of all edges."""
    names = [f"X{node}" for node in range(len(parents))]
    wanted = cpdag(graph_of(names, parents))
    edges = [(tail, head) for head, tails in enumerate(parents) for tail in tails]
    for flips in itertools.product((False, True), repeat=len(edges)):
        turned = [
            (names[head], names[tail]) if flip else (names[tail], names[head])
            for (tail, head), flip in zip(edges, flips, strict=True)
        ]
        graph = Graph(names, turned)
        if graph.is_acyclic and cpdag(graph) == wanted:
            yield graph


# Deletions


@settings(max_examples=25, deadline=None)
@given(seeds)
def test_delta_of_a_deletion_equals_the_difference_of_full_scores(seed):
    score = BGe(moments_of(model_of(7, 3, seed), 100))
    parents = parents_of(random_dag(7, 4, random_state=seed + 1))
    search = _Backward(score, Constraints(score.names), parents)
    before = total_of(score, parents)
    for delete in search._operators():
        after = total_of(score, search._without(delete))
        # Rounding of two sums of seven numbers.
        assert after - before == pytest.approx(delete.delta, abs=1e-9 * abs(before))


@settings(max_examples=25, deadline=None)
@given(seeds, st.floats(1, 4))
def test_deletions_lead_to_exactly_the_classes_one_edge_below(seed, degree):
    score = BGe(moments_of(model_of(5, 2, seed), 50))
    parents = parents_of(random_dag(5, degree, random_state=seed))
    search = _Backward(score, Constraints(score.names), parents)
    reached = {
        cpdag(graph_of(score.names, search._without(delete))) for delete in search._operators()
    }
    below = {
        cpdag(Graph(score.names, [other for other in named if other != edge]))
        for graph in members_of_class(parents)
        if (named := [(_one_up(tail), _one_up(head)) for tail, head in graph.edges])
        for edge in named
    }
    assert reached == below


def _one_up(name: str) -> str:
    return f"X{int(name[1:]) + 1}"


@settings(max_examples=25, deadline=None)
@given(seeds, st.booleans())
def test_score_rises_with_every_deletion(seed, is_equivalent):
    moments = moments_of(model_of(8, 2, seed), 200)
    score = BGe(moments) if is_equivalent else GaussianScore(moments, penalty=math.log(200) / 2)
    start = random_dag(8, 5, random_state=seed + 1)
    result = bes(score, start)
    scores = [total_of(score, parents_of(start)), *(step.score for step in result.trace)]
    assert all(after > before for before, after in itertools.pairwise(scores))
    assert result.score == scores[-1] == total_of(score, parents_of(result.graph))
    assert [step.delta for step in result.trace] == np.diff(scores).tolist()
    assert len(result.graph.edges) == len(start.edges) - len(result.trace)
    if not result.trace:
        assert result.graph == start


def test_class_of_the_true_graph_is_reached_from_the_complete_graph():
    for seed in range(20):
        model = model_of(6, 2.5, seed)
        result = bes(population_score(model), complete_dag(model.graph.names))
        assert cpdag(result.graph) == cpdag(model.graph)
        assert result.method == "bes"


def test_many_common_neighbors_are_no_obstacle():
    n_nodes = 12
    names = [f"X{node}" for node in range(n_nodes)]
    edges = {("X3", "X7"): 1.0, ("X7", "X1"): 1.0, ("X0", "X1"): 1.0}
    model = LinearGaussian(Graph(names, edges), edges, dict.fromkeys(names, 1.0))
    result = bes(population_score(model), complete_dag(names))
    assert cpdag(result.graph) == cpdag(model.graph)


# Constraints


@settings(max_examples=40, deadline=None)
@given(seeds)
def test_constraints_hold_and_the_score_does_not_fall(seed):
    model = model_of(7, 2, seed)
    score = GaussianScore(moments_of(model, 200), penalty=math.log(200) / 2)
    start = random_dag(7, 4, random_state=seed + 1)
    generator = np.random.default_rng(seed)
    edges = list(start.edges)
    required = [edges[place] for place in generator.permutation(len(edges))[:2]]
    forbidden = [
        pair
        for pair in itertools.permutations(start.names, 2)
        if pair not in edges and generator.random() < 1 / 3
    ]
    bound = max(len(start.parents(name)) for name in start.names)
    constraints = Constraints(
        start.names, required=required, forbidden=forbidden, max_parents=bound
    )
    result = bes(score, start, constraints)
    parents = constraints.admit(result.graph)
    assert sum(map(len, parents)) == len(result.graph.edges)
    assert result.score >= total_of(score, parents_of(start))


def test_required_edge_stays_although_its_deletion_would_help():
    X = np.random.default_rng(0).normal(size=(500, 3))
    score = GaussianScore(Moments.from_array(X, list("abc")), penalty=math.log(500) / 2)
    constraints = Constraints(list("abc"), required=[("b", "a")])
    start = Graph(list("abc"), [("b", "a"), ("a", "c")])
    assert bes(score, start).graph == Graph(list("abc"), [])
    assert bes(score, start, constraints).graph == Graph(list("abc"), [("b", "a")])


def test_direction_that_constraints_demand_is_kept_in_the_new_class():
    model = LinearGaussian(
        Graph(list("abc"), [("a", "b")]), {("a", "b"): 1.0}, dict.fromkeys("abc", 1.0)
    )
    score = population_score(model)
    start = Graph(list("abc"), [("b", "a"), ("b", "c")])
    for forbidden, wanted in (([("a", "b")], ("b", "a")), ([], None)):
        graph = bes(score, start, Constraints(list("abc"), forbidden=forbidden)).graph
        assert len(graph.edges) == 1
        assert wanted in (None, graph.edges[0])


def test_deletion_without_a_legal_dag_is_refused():
    # Truth: a collider a -> c <- b. The class without the edge a - b has no other DAG.
    graph = Graph(list("abc"), [("a", "c"), ("b", "c")])
    model = LinearGaussian(graph, dict.fromkeys(graph.edges, 1.0), dict.fromkeys("abc", 1.0))
    score = population_score(model)
    start = Graph(list("abc"), [("c", "a"), ("c", "b"), ("a", "b")])
    assert bes(score, start).graph == graph
    constraints = Constraints(list("abc"), required=[("c", "a")])
    result = bes(score, start, constraints)
    assert result.graph == start
    assert result.trace == ()


def test_score_that_bars_a_parent_is_obeyed():
    class NoParentsForA(Score):
        """A Gaussian score in which the first variable can have no parents."""

        def __init__(self, score):
            self._score, self.names = score, score.names

        def family(self, node, parents):
            return -math.inf if node == 0 and parents else self._score.family(node, parents)

        def additions(self, node, parents):
            values = self._score.additions(node, parents)
            return np.full(len(self.names), -np.inf) if node == 0 else values

    for seed in range(10):
        model = model_of(6, 2, seed)
        score = NoParentsForA(population_score(model))
        result = bes(score, complete_dag(model.graph.names))
        assert result.graph.parents("X1") == ()
        assert math.isfinite(result.score)
        assert result.trace


# Interrupts and bad input


@pytest.mark.interrupts
def test_interrupt_returns_the_best_graph_so_far():
    model = model_of(8, 2, 0)
    score = population_score(model)
    seen = []

    def stop(step):
        seen.append(step)
        if len(seen) == 3:
            raise KeyboardInterrupt

    result = bes(score, complete_dag(score.names), callback=stop)
    assert result.interrupted
    assert list(result.trace) == seen
    assert result.score == seen[-1].score == total_of(score, parents_of(result.graph))


def test_start_that_breaks_the_constraints_is_refused():
    model = model_of(3, 1, 0)
    score = population_score(model)
    constraints = Constraints(score.names, forbidden=[("X1", "X2")])
    with pytest.raises(ValueError, match="of allowed edges only"):
        bes(score, complete_dag(score.names), constraints)
    with pytest.raises(ValueError, match="constraints must be over the variables"):
        bes(score, model.graph, Constraints(list("abc")))
