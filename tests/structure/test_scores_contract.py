"""What every registered score guarantees: consistency, decomposability, finiteness."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsage.graphs import Graph, cpdag, markov_equivalent, random_dag
from dsage.structure.scores.base import SCORES, Score
from dsage.structure.scores.bge import BGe
from dsage.structure.scores.cached import CachedScore
from dsage.structure.scores.choose import choose_score, graph_score

N_NODES = 6
NAMES = [f"X{node + 1}" for node in range(N_NODES)]


def continuous(seed: int, n_rows: int = 60) -> pd.DataFrame:
    generator = np.random.default_rng(seed)
    mix = np.tril(generator.normal(size=(N_NODES, N_NODES)), -1) + np.eye(N_NODES)
    return pd.DataFrame(generator.normal(size=(n_rows, N_NODES)) @ mix.T, columns=NAMES)


def discrete(seed: int, n_rows: int = 60) -> pd.DataFrame:
    generator = np.random.default_rng(seed)
    frame = continuous(seed, n_rows)
    classes = {
        name: (column.rank(pct=True) * generator.integers(2, 5)).astype(int).astype(str)
        for name, column in frame.items()
    }
    return pd.DataFrame(classes)


def mixed(seed: int, n_rows: int = 60) -> pd.DataFrame:
    frame, classes = continuous(seed, n_rows), discrete(seed, n_rows)
    return frame.assign(X2=classes["X2"], X3=classes["X3"], X6=classes["X6"])


DATA = {"continuous": continuous, "discrete": discrete, "mixed": mixed}
CASES = [(kind, name) for name in SCORES for kind in SCORES.traits(name)["fits"]]
EXACT = [
    (kind, name) for kind, name in CASES if not choose_score(DATA[kind](0), name).is_approximate
]


@pytest.mark.parametrize("name", SCORES)
def test_every_score_declares_what_it_fits_its_options_and_a_summary(name):
    traits = SCORES.traits(name)
    assert traits["fits"]
    assert set(traits["fits"]) <= set(DATA)
    assert len(SCORES.summary(name).splitlines()) == 1
    kind = traits["fits"][0]
    for option in traits["options"]:
        choose_score(DATA[kind](0), name, **{option: 0.5})


def plain(kind: str, name: str, seed: int):
    """Return a score without its cache."""
    score = choose_score(DATA[kind](seed), name)
    return score._score if isinstance(score, CachedScore) else score


@st.composite
def families(draw):
    nodes = draw(st.permutations(range(N_NODES)))
    n_parents = draw(st.integers(0, N_NODES - 1))
    return nodes[0], tuple(sorted(nodes[1 : 1 + n_parents]))


@pytest.mark.parametrize(("kind", "name"), EXACT)
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 1000), family=families())
def test_additions_and_removals_agree_with_families(kind, name, seed, family):
    node, parents = family
    score = plain(kind, name, seed)
    added, removed = np.full((2, N_NODES), -np.inf)
    for other in range(N_NODES):
        if other in parents:
            removed[other] = score.family(node, tuple(p for p in parents if p != other))
        elif other != node:
            added[other] = score.family(node, tuple(sorted((*parents, other))))
    # Sums of some 60 terms of at most some hundreds, and residuals of up to five parents.
    np.testing.assert_allclose(score.additions(node, parents), added, rtol=1e-9, atol=1e-8)
    np.testing.assert_allclose(score.removals(node, parents), removed, rtol=1e-9, atol=1e-8)


@pytest.mark.parametrize(("kind", "name"), EXACT)
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 1000), family=families())
def test_the_cache_gives_the_same_answers(kind, name, seed, family):
    node, parents = family
    score = plain(kind, name, seed)
    cached = CachedScore(score)
    for _ in range(2):
        for question in ("additions", "removals", "family"):
            expected = getattr(score, question)(node, parents)
            np.testing.assert_allclose(
                getattr(cached, question)(node, parents), expected, rtol=1e-9, atol=1e-8
            )


@pytest.mark.parametrize(("kind", "name"), EXACT)
def test_families_read_from_additions_are_the_families(kind, name):
    score = plain(kind, name, 2)
    cached = CachedScore(score)
    cached.additions(0, (1, 4))
    for other in (2, 3, 5):
        parents = tuple(sorted((1, 4, other)))
        assert cached.family(0, parents) == pytest.approx(score.family(0, parents), rel=1e-10)


def test_a_full_cache_forgets_and_still_answers():
    score = plain("continuous", "bge", 0)
    cached = CachedScore(score, max_bytes=1)
    families = [(node, (other,)) for node, other in itertools.permutations(range(N_NODES), 2)]
    for node, parents in families + families:
        assert cached.family(node, parents) == score.family(node, parents)
        np.testing.assert_array_equal(
            cached.additions(node, parents), score.additions(node, parents)
        )


class Counting(Score):
    """A score that counts how often it is called."""

    def __init__(self, score):
        self.score, self.names, self.asked = score, score.names, 0

    def family(self, node, parents):
        self.asked += 1
        return self.score.family(node, parents)

    def additions(self, node, parents):
        self.asked += 1
        return self.score.additions(node, parents)


def test_the_cache_asks_once_and_reads_families_from_additions():
    counting = Counting(plain("discrete", "bic", 0))
    cached = CachedScore(counting)
    for _ in range(3):
        cached.additions(0, (1,))
        cached.family(0, (1, 2))
        cached.removals(0, (1, 2))
    # additions(0, (1,)); then removals need family(0, (2,)) and family(0, (1,)).
    assert counting.asked == 3


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_the_score_of_a_graph_is_the_sum_of_its_families(kind, name):
    score = plain(kind, name, 1)
    graph = Graph(NAMES, [("X2", "X1"), ("X3", "X1"), ("X1", "X4"), ("X3", "X5")])
    expected = sum(
        score.family(node, parents) for node, parents in enumerate([(1, 2), (), (), (0,), (2,), ()])
    )
    assert graph_score(score, graph) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("kind", "name"), [("continuous", "bge"), ("discrete", "bdeu")])
@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**4))
def test_markov_equivalent_graphs_score_equal(kind, name, seed):
    score = plain(kind, name, seed)
    graph = random_dag(N_NODES, 3, random_state=seed)
    order = np.random.default_rng(seed).permutation(NAMES).tolist()
    equivalent = _member(graph, order)
    assert graph_score(score, equivalent) == pytest.approx(graph_score(score, graph), rel=1e-11)


def test_equivalent_members_differ_from_the_graph():
    """Guard of the test above: its other members are not always the graph itself."""
    differ = 0
    for seed in range(20):
        graph = random_dag(N_NODES, 3, random_state=seed)
        member = _member(graph, np.random.default_rng(seed).permutation(NAMES).tolist())
        assert markov_equivalent(member, graph)
        differ += member != graph
    assert differ >= 5


def _member(graph: Graph, order: list[str]) -> Graph:
    """Return a member of the graph's class, found with its nodes in another order."""
    renamed = {name: f"{place}" for place, name in enumerate(order)}
    back = {new: old for old, new in renamed.items()}
    shuffled = Graph(sorted(back), [(renamed[tail], renamed[head]) for tail, head in graph.edges])
    member = cpdag(shuffled).to_dag()
    return Graph(graph.names, [(back[tail], back[head]) for tail, head in member.edges])


@pytest.mark.parametrize("name", ["bic", "aic"])
def test_a_continuous_variable_is_never_the_parent_of_a_discrete_one(name):
    score = plain("mixed", name, 0)
    classes, numbers = (1, 2, 5), (0, 3, 4)
    for node in classes:
        assert (score.additions(node, ())[list(numbers)] == -np.inf).all()
        assert score.family(node, (0,)) == -np.inf
        assert (score.additions(node, (0,)) == -np.inf).all()
        assert np.isfinite(score.removals(node, (0,))[0])
    for node in numbers:
        others = [other for other in range(N_NODES) if other != node]
        assert np.isfinite(score.additions(node, ())[others]).all()


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_scores_of_few_rows_are_never_nan_or_plus_infinity(kind, name):
    score = plain(kind, name, 3)
    few = choose_score(DATA[kind](3, n_rows=5), name)
    few = few._score if isinstance(few, CachedScore) else few
    for size in range(N_NODES):
        for parents in itertools.combinations(range(1, N_NODES), size):
            for answers in (few.additions(0, parents), few.removals(0, parents)):
                assert not np.isnan(answers).any()
                assert (answers < np.inf).all()
    assert np.isfinite(score.family(0, ()))


def test_bge_bears_duplicated_columns():
    frame = continuous(0).assign(X2=lambda data: data["X1"])
    score = choose_score(frame, "bge")
    assert isinstance(score._score, BGe)
    assert score.family(0, (1,)) > score.family(0, ())
    assert np.isfinite(score.additions(0, (1,))[2:]).all()
