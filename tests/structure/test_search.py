"""Hill climbing and tabu search: moves, constraints, rules, traces, odd data."""

from __future__ import annotations

import math

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsage.graphs import Graph, cpdag, random_dag, random_linear_gaussian
from dsage.structure.constraints import Constraints, graph_of
from dsage.structure.moments import Moments
from dsage.structure.scores.base import Score
from dsage.structure.scores.gaussian import GaussianScore
from dsage.structure.searches.local import hill_climb, tabu
from dsage.structure.searches.moves import MoveTable

SEEDS = st.integers(0, 2**32 - 1)
KINDS = ("add", "delete", "reverse")
SEARCHES = pytest.mark.parametrize("search", [hill_climb, tabu])


def model_of(seed, n_nodes=6, degree=3.0):
    return random_linear_gaussian(random_dag(n_nodes, degree, random_state=seed), random_state=seed)


def score_of(seed, n_nodes=6, degree=3.0, n_rows=200, penalty=None):
    frame = model_of(seed, n_nodes, degree).sample(n_rows, random_state=seed)
    penalty = math.log(n_rows) / 2 if penalty is None else penalty
    return GaussianScore(Moments.from_frame(frame), penalty=penalty)


def total(score, parents):
    return math.fsum(score.family(*family) for family in enumerate(parents))


def changed(parents, change):
    """Return the parents after a move, or None if the edge is not there or already is."""
    kind, tail, head = change
    sets = [set(parent) for parent in parents]
    if tail == head or (kind == "add") == (tail in sets[head] or head in sets[tail]):
        return None
    if kind != "add" and tail not in sets[head]:
        return None
    if kind == "add":
        sets[head].add(tail)
    else:
        sets[head].remove(tail)
    if kind == "reverse":
        sets[tail].add(head)
    return [tuple(sorted(parent)) for parent in sets]


def keeps_to(parents, constraints):
    matrix = np.zeros(constraints.allowed.shape, dtype=bool)
    for head, tails in enumerate(parents):
        matrix[list(tails), head] = True
    return (
        nx.is_directed_acyclic_graph(nx.DiGraph(matrix.astype(int)))
        and not (matrix & ~constraints.allowed).any()
        and not (constraints.required & ~matrix).any()
        and matrix.sum(axis=0).max() <= constraints.max_parents
    )


def all_changes(n_nodes):
    return [(kind, i, j) for kind in KINDS for i in range(n_nodes) for j in range(n_nodes)]


def random_constraints(names, generator):
    order = generator.permutation(len(names))
    pairs = [(names[i], names[j]) for i in order for j in order if i != j]
    ahead = [(names[order[0]], names[order[2]]), (names[order[1]], names[order[2]])]
    chosen = generator.choice(len(pairs), size=5, replace=False)
    required = ahead[: generator.integers(3)]
    forbidden = [pairs[place] for place in chosen if pairs[place] not in required]
    return Constraints(
        names, required=required, forbidden=forbidden, max_parents=int(generator.integers(2, 5))
    )


def graphs_along(result, start):
    """Replay a trace: the parents of all nodes after every move, the start first."""
    place = {name: index for index, name in enumerate(result.graph.names)}
    path = [start]
    for step in result.trace:
        kind = step.kind.removeprefix("perturb: ")
        path.append(changed(path[-1], (kind, place[step.tail], place[step.head])))
        assert path[-1] is not None
    return path


# Moves


@given(SEEDS)
@settings(max_examples=25, deadline=None)
def test_deltas_and_legality_are_those_of_the_full_graphs_after_every_move(seed):
    generator = np.random.default_rng(seed)
    score = score_of(seed)
    constraints = random_constraints(score.names, generator)
    table = MoveTable(score, constraints, constraints.admit())
    for _ in range(12):
        before, worth = total(score, table.parents), {}
        for change in all_changes(6):
            after = changed(table.parents, change)
            legal = after is not None and keeps_to(after, constraints)
            assert table.is_legal(change) == legal, change
            if legal:
                worth[change] = total(score, after) - before
                # Scores around 1e3, known to some 1e-13 each.
                assert table.delta(change) == pytest.approx(worth[change], abs=1e-8)
        if not worth:
            return
        banned = {change for change in worth if generator.random() < 0.2}
        best = table.best(banned)
        free = {change: delta for change, delta in worth.items() if change not in banned}
        if free:
            assert best.change in free
            assert best.delta == pytest.approx(max(free.values()), abs=1e-7)
        else:
            assert best is None
        change = list(worth)[generator.integers(len(worth))]
        table.apply(change)
        assert table.score == pytest.approx(before + worth[change], abs=1e-8)


@pytest.mark.parametrize("seed", range(3))
def test_a_table_kept_up_to_date_is_the_table_made_anew(seed):
    generator = np.random.default_rng(seed)
    score = score_of(seed, n_nodes=15, penalty=1.0)
    constraints = random_constraints(score.names, generator)
    table = MoveTable(score, constraints, constraints.admit())
    changes = all_changes(15)
    for _ in range(60):
        # Mostly uphill, so that the graph is not too sparse, and one of the better moves.
        banned = {change for change in changes if generator.random() < 0.5}
        move = table.best(banned)
        fresh = MoveTable(score, constraints, table.parents)
        assert fresh.best(banned).change == move.change
        legal = [change for change in changes if table.is_legal(change)]
        assert legal == [change for change in changes if fresh.is_legal(change)]
        worth, fresh_worth = ([t.delta(change) for change in legal] for t in (table, fresh))
        np.testing.assert_allclose(worth, fresh_worth, atol=1e-8)
        table.apply(move.change)


@pytest.mark.parametrize("n_rows", [100, 10**12])
def test_ties_go_to_the_first_addition_by_tail_and_then_head(n_rows):
    # Units that leave the correlations equal but for rounding.
    units = np.array([0.1, 3.7, 1.3, 0.7])
    covariance = (np.full((4, 4), 0.5) + 0.5 * np.eye(4)) * units * units[:, None]
    score = GaussianScore(Moments(list("abcd"), n_rows, np.zeros(4), covariance), penalty=1.0)
    assert hill_climb(score).trace[0][:3] == ("add", "a", "b")
    closed = Constraints(list("abcd"), forbidden=[("a", "b"), ("a", "c"), ("a", "d")])
    assert hill_climb(score, closed).trace[0][:3] == ("add", "b", "a")


@pytest.mark.parametrize(("worse", "head"), [(2**-26, 1), (2**-25, 2)])
def test_deletions_within_the_tolerance_are_ties_that_go_to_the_first(worse, head):
    class Costly(Score):
        """Every parent costs one, and that of b less."""

        names = ("a", "b", "c")

        def family(self, node, parents):
            return -(1.0 - (node == 1) * worse) * len(parents)

    table = MoveTable(Costly(), Constraints(Costly.names), [(), (0,), (0,)])
    assert table.tolerance == 2**-26
    assert table.best().change == ("delete", 0, head)


def test_a_move_scores_no_more_than_two_nodes_anew():
    score = score_of(0, n_nodes=30, n_rows=1000)
    result = tabu(score)
    families = 2 * 30 + 1  # with one parent more or less, or as it is
    assert result.n_scored <= (30 + 2 * len(result.trace)) * families
    assert len(result.trace) > 30


# Searches


@SEARCHES
@given(seed=SEEDS)
@settings(max_examples=15, deadline=None)
def test_every_graph_on_the_way_keeps_to_the_constraints(search, seed):
    score = score_of(seed, penalty=0.5)
    constraints = random_constraints(score.names, np.random.default_rng(seed))
    result = search(score, constraints)
    path = graphs_along(result, constraints.admit())
    assert all(keeps_to(parents, constraints) for parents in path)
    scores = [total(score, parents) for parents in path]
    assert [step.score for step in result.trace] == pytest.approx(scores[1:], abs=1e-8)
    assert [step.delta for step in result.trace] == pytest.approx(np.diff(scores), abs=1e-8)
    assert result.score == pytest.approx(max(scores), abs=1e-7)
    assert result.score == pytest.approx(total(score, constraints.admit(result.graph)), abs=1e-9)


@given(SEEDS)
@settings(max_examples=15, deadline=None)
def test_hill_climbing_ends_where_no_move_improves(seed):
    score = score_of(seed)
    result = hill_climb(score)
    assert all(step.delta > 0 for step in result.trace)
    top = Constraints(score.names).admit(result.graph)
    for change in all_changes(6):
        after = changed(top, change)
        if after is not None and keeps_to(after, Constraints(score.names)):
            assert total(score, after) < result.score + 1e-7


@given(SEEDS, st.integers(1, 12))
@settings(max_examples=25, deadline=None)
def test_tabu_does_not_return_to_the_most_recent_graphs(seed, size):
    score = score_of(seed)
    path = graphs_along(tabu(score, tabu=size), Constraints(score.names).admit())
    for place, parents in enumerate(path):
        assert parents not in path[max(place - size, 0) : place]


def test_the_present_graph_is_one_of_those_remembered():
    # Two independent variables: every edge makes it worse, the two directions equally.
    score = GaussianScore(Moments(["a", "b"], 100, np.zeros(2), np.eye(2)), penalty=1.0)
    moves = [[step.kind for step in tabu(score, tabu=size, max_tabu=3).trace] for size in (1, 2, 3)]
    # With one graph remembered it may go back at once, with two not, with three not at all.
    assert moves == [["add", "delete", "add"], ["add", "reverse", "delete"], ["add", "reverse"]]


@given(SEEDS)
@settings(max_examples=25, deadline=None)
def test_tabu_finds_nothing_worse_than_hill_climbing(seed):
    score = score_of(seed)
    assert tabu(score).score >= hill_climb(score).score - 1e-9


def test_tabu_without_memory_and_patience_is_hill_climbing():
    score = score_of(3, n_nodes=12)
    assert [step[:3] for step in tabu(score, tabu=0).trace] == [
        step[:3] for step in hill_climb(score).trace
    ]


def test_patience_bounds_the_moves_downhill_after_the_best_graph():
    score = score_of(3, n_nodes=12)
    for patience in (0, 3, 25):
        result = tabu(score, max_tabu=patience)
        scores = [step.score for step in result.trace]
        after_best = result.trace[int(np.argmax(scores)) + 1 :]
        assert sum(step.delta <= 0 for step in after_best) <= patience


def test_max_iter_bounds_the_moves():
    score = score_of(0, n_nodes=12)
    assert len(tabu(score, max_iter=5).trace) == 5
    assert hill_climb(score, max_iter=0).graph == Graph(score.names, [])


def test_a_search_starts_where_it_is_told():
    score = score_of(0)
    top = tabu(score, tabu=30)
    again = hill_climb(score, start=top.graph)
    assert again.trace == ()
    assert again.graph == top.graph
    assert again.score == top.score


@pytest.mark.parametrize("seed", range(12))
def test_tabu_recovers_the_equivalence_class_of_a_small_graph(seed):
    model = model_of(seed, n_nodes=5, degree=2.0)
    n_rows = 100_000
    # The population's covariance: no accident of a sample hides or feigns an edge.
    moments = Moments(model.graph.names, n_rows, np.zeros(5), model.covariance().to_numpy())
    # With patience: ten moves do not always lead out of a local optimum.
    result = tabu(GaussianScore(moments, penalty=math.log(n_rows) / 2), tabu=50)
    assert cpdag(result.graph) == cpdag(model.graph)


@SEARCHES
@given(seed=SEEDS)
@settings(max_examples=10, deadline=None)
def test_without_ties_the_order_of_the_columns_does_not_matter(search, seed):
    model = model_of(seed)
    frame = model.sample(300, random_state=seed)
    # Equivalent graphs tie; an order of time leaves one direction to each edge.
    tiers = [[name] for name in model.graph.topological_order()]
    shuffled = np.random.default_rng(seed).permutation(frame.columns).tolist()
    graphs = [
        search(
            GaussianScore(Moments.from_frame(frame[names]), penalty=2.0),
            Constraints(names, tiers=tiers),
        ).graph
        for names in (list(frame.columns), shuffled)
    ]
    assert graphs[0] == graphs[1]


@SEARCHES
def test_the_rows_do_not_matter_once_the_moments_are_known(search):
    model = model_of(1, n_nodes=20)
    moments = Moments.from_frame(model.sample(1000, random_state=0))
    many = Moments(moments.names, 10**9, moments.mean, moments.covariance)
    few, lots = (search(GaussianScore(m, penalty=3.0)) for m in (moments, many))
    # More rows see more edges; per move the work is the same.
    assert lots.n_scored / len(lots.trace) < 2 * few.n_scored / len(few.trace)


# Restarts


def test_restarts_never_make_it_worse_and_follow_the_seed():
    score = score_of(5, n_nodes=15, n_rows=500)
    once = hill_climb(score)
    results = [hill_climb(score, restarts=8, perturb=5, random_state=seed) for seed in (1, 1, 2)]
    paths = [[step[:3] for step in result.trace] for result in results]
    assert all(result.score >= once.score for result in results)
    assert paths[0] == paths[1] != paths[2]
    assert sum(kind.startswith("perturb: ") for kind, _, _ in paths[0]) == 8 * 5


def test_random_moves_keep_to_the_constraints():
    score = score_of(5)
    constraints = random_constraints(score.names, np.random.default_rng(0))
    table = MoveTable(score, constraints, constraints.admit())
    result = hill_climb(score, constraints, restarts=1, perturb=40, random_state=0)
    path = graphs_along(result, list(table.parents))
    assert all(keeps_to(parents, constraints) for parents in path)


def test_restarts_stop_where_no_random_move_is_legal():
    score = score_of(0)
    result = hill_climb(score, Constraints(score.names, max_parents=0), restarts=2, perturb=2)
    assert result.trace == ()


# Interrupts and progress


@pytest.mark.interrupts
@SEARCHES
def test_an_interrupt_returns_the_best_graph_so_far(search):
    score = score_of(0, n_nodes=12)
    whole = search(score)
    steps = []

    def stop(step):
        steps.append(step)
        if len(steps) == 7:
            raise KeyboardInterrupt

    part = search(score, callback=stop)
    assert part.interrupted
    assert not whole.interrupted
    assert list(part.trace) == steps
    assert [step[:3] for step in part.trace] == [step[:3] for step in whole.trace[:7]]
    path = graphs_along(part, Constraints(score.names).admit())
    assert part.score == pytest.approx(total(score, path[-2]))
    assert part.graph == graph_of(score.names, path[-2])


def test_the_trace_is_also_a_frame():
    result = tabu(score_of(0))
    frame = result.to_frame()
    assert list(frame.columns) == ["kind", "from", "to", "delta", "score", "seconds"]
    assert len(frame) == len(result.trace)
    assert frame["seconds"].is_monotonic_increasing
    assert "tabu: score" in repr(result)


# Any score, odd data, bad input


class Promises(Score):
    """Gaussian scores; one parent more or less is always said to be better than it is."""

    def __init__(self, score):
        self._score = score
        self.names = score.names

    def family(self, node, parents):
        return self._score.family(node, parents)

    def additions(self, node, parents):
        return self._score.additions(node, parents) + 1e3

    def removals(self, node, parents):
        return self._score.removals(node, parents) + 1e3


@SEARCHES
def test_improvements_that_are_errors_do_not_make_an_endless_loop(search):
    result = search(Promises(score_of(0, n_nodes=3, degree=2.0)), max_iter=1000)
    # There are 25 DAGs of three nodes, and ten moves to one seen before for each new best one.
    assert len(result.trace) <= 25 * (10 + 1)


class TableScore(Score):
    """Gaussian scores, but nothing may cause X1, and X2 at most one thing."""

    def __init__(self, score):
        self._score = score
        self.names = score.names

    def family(self, node, parents):
        return self._score.family(node, parents)

    def additions(self, node, parents):
        scores = self._score.additions(node, parents)
        if node == 0 or (node == 1 and parents):
            scores[:] = -np.inf
        return scores

    def removals(self, node, parents):
        return self._score.removals(node, parents)


@SEARCHES
@pytest.mark.parametrize("seed", range(4))
def test_what_the_score_does_not_allow_never_happens(search, seed):
    score = TableScore(score_of(seed, penalty=0.1))
    result = search(score)
    path = graphs_along(result, [()] * 6)
    assert all(parents[0] == () and len(parents[1]) <= 1 for parents in path)
    assert len(result.graph.edges) > 6


def test_an_edge_that_the_score_forbids_is_not_made_by_turning_another_around():
    score = TableScore(score_of(0))
    table = MoveTable(score, Constraints(score.names), [(), (), (0,), (2,), (), ()])
    assert not table.is_legal(("reverse", 0, 2))
    assert table.is_legal(("delete", 0, 2))
    assert table.is_legal(("reverse", 2, 3))


@SEARCHES
def test_copies_and_sums_end_in_a_finite_score(search):
    generator = np.random.default_rng(0)
    a, b, c = generator.normal(size=(3, 200))
    X = np.column_stack([a, a, b, a + b, c, 2 * a - 1, a + 1e-7 * c])
    score = GaussianScore(Moments.from_array(X, list("abcdefg")), penalty=math.log(200) / 2)
    result = search(score, max_iter=10_000)
    assert math.isfinite(result.score)
    assert len(result.trace) < 1000
    # The first, second and sixth are one variable: they may not look separated.
    copies = result.graph.to_networkx().subgraph(["a", "b", "f"])
    assert nx.is_weakly_connected(copies)


@SEARCHES
def test_fewer_rows_than_variables_end_in_a_finite_score(search):
    score = score_of(0, n_nodes=30, n_rows=12)
    result = search(score, max_iter=10_000)
    assert math.isfinite(result.score)
    assert len(result.trace) < 10_000
    assert max(len(result.graph.parents(name)) for name in score.names) <= 10


@SEARCHES
def test_rounding_does_not_make_an_endless_loop(search):
    # With so many rows the rounding of a score is larger than bnlearn's tolerance.
    generator = np.random.default_rng(0)
    factor = generator.normal(size=(8, 8)) * 10.0 ** -np.arange(8)
    moments = Moments([f"X{place}" for place in range(8)], 10**15, np.zeros(8), factor @ factor.T)
    result = search(GaussianScore(moments, penalty=10.0), max_iter=20_000)
    assert len(result.trace) < 20_000
    assert math.isfinite(result.score)


@SEARCHES
def test_one_variable_is_a_graph_too(search):
    moments = Moments(["a"], 10, [0.0], [[1.0]])
    result = search(GaussianScore(moments, penalty=1.0))
    assert result.graph == Graph(["a"], [])


def test_constraints_must_be_over_the_variables_of_the_score():
    score = score_of(0)
    with pytest.raises(ValueError, match="constraints must be over the variables"):
        hill_climb(score, Constraints(score.names[::-1]))


def test_a_start_that_the_score_forbids_is_an_error():
    score = score_of(0, n_rows=4)
    start = Graph(score.names, [(name, "X1") for name in score.names[1:]])
    with pytest.raises(ValueError, match=r"start must be a graph that the score allows.*'X2'"):
        tabu(score, start=start)


@pytest.mark.parametrize(
    ("search", "options", "error"),
    [
        (hill_climb, {"restarts": -1}, ValueError),
        (hill_climb, {"perturb": 0}, ValueError),
        (hill_climb, {"max_iter": 1.5}, TypeError),
        (hill_climb, {"random_state": "one"}, TypeError),
        (tabu, {"tabu": -1}, ValueError),
        (tabu, {"max_tabu": "ten"}, TypeError),
        (tabu, {"max_iter": -1}, ValueError),
    ],
)
def test_options_out_of_range_are_named(search, options, error):
    with pytest.raises(error, match=f"{next(iter(options))} must be"):
        search(score_of(0), **options)
