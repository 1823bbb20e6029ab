import itertools

import pytest

from dsage import Graph
from dsage.datasets import paper_graph
from dsage.graphs import (
    cpdag,
    markov_equivalent,
    structural_hamming_distance,
)


def all_dags(n_nodes):
    names = "abcde"[:n_nodes]
    pairs = list(itertools.combinations(names, 2))
    for choice in itertools.product([None, False, True], repeat=len(pairs)):
        edges = [
            pair if forward else pair[::-1]
            for pair, forward in zip(pairs, choice, strict=True)
            if forward is not None
        ]
        graph = Graph(list(names), edges)
        if graph.is_acyclic:
            yield graph


def skeleton_and_v_structures(graph):
    """What Verma & Pearl (1990) show to determine the class."""
    skeleton = frozenset(frozenset(edge) for edge in graph.edges)
    v_structures = frozenset(
        (frozenset((one, other)), node)
        for node in graph.names
        for one, other in itertools.combinations(graph.parents(node), 2)
        if frozenset((one, other)) not in skeleton
    )
    return skeleton, v_structures


@pytest.fixture(scope="module")
def classes():
    found = {}
    for graph in all_dags(4):
        found.setdefault(skeleton_and_v_structures(graph), []).append(graph)
    return list(found.values())


def test_there_are_as_many_classes_as_known(classes):
    """Counted by Gillispie & Perlman (2001): 543 DAGs with four nodes in 185 classes."""
    assert sum(map(len, classes)) == 543
    assert len(classes) == 185


def test_cpdag_directs_exactly_the_edges_on_which_the_class_agrees(classes):
    for members in classes:
        common = frozenset.intersection(*(frozenset(graph.edges) for graph in members))
        for graph in members:
            found = cpdag(graph)
            assert found.directed == common
            assert found.undirected == {frozenset(e) for e in graph.edges if e not in common}


def test_members_of_a_class_are_equivalent_and_others_are_not(classes):
    for members in classes:
        assert all(markov_equivalent(members[0], graph) for graph in members)
    representatives = [cpdag(members[0]) for members in classes]
    assert len(set(representatives)) == len(classes)


def test_cpdag_gives_a_member_of_its_class_back(classes):
    for members in classes:
        assert cpdag(members[0]).to_dag() in members


@pytest.mark.parametrize("name", ["dag_m(4)", "dag_l(3)"])
def test_a_member_of_a_large_class_has_the_same_cpdag(name):
    pattern = cpdag(paper_graph(name).graph)
    assert cpdag(pattern.to_dag()) == pattern


def test_distance_counts_additions_removals_and_reversals_once():
    true = Graph(list("abcd"), [("a", "b"), ("b", "c"), ("c", "d")])
    assert structural_hamming_distance(true, true) == 0
    assert structural_hamming_distance(true, Graph(list("abcd"), [("a", "b"), ("b", "c")])) == 1
    assert structural_hamming_distance(true, Graph(list("abcd"), [*true.edges, ("a", "d")])) == 1
    reversed_ = Graph(list("abcd"), [("b", "a"), ("b", "c"), ("c", "d")])
    assert structural_hamming_distance(true, reversed_) == 1
    assert structural_hamming_distance(cpdag(true), cpdag(reversed_)) == 0


def test_distance_tells_bidirected_from_directed_edges():
    one, other = Graph(["a", "b"], [("a", "b")]), Graph(["a", "b"], [], [("a", "b")])
    assert structural_hamming_distance(one, other) == 1
    assert structural_hamming_distance(other, other) == 0


def test_equality_ignores_the_order_of_the_nodes():
    chain = [("a", "b"), ("b", "c")]
    assert cpdag(Graph(list("abc"), chain)) == cpdag(Graph(list("cab"), chain))
    assert cpdag(Graph(list("abc"), chain)) != chain


def test_bad_input_is_refused():
    cyclic = Graph(["a", "b"], [("a", "b"), ("b", "a")])
    with pytest.raises(
        ValueError, match=r"graph must be a DAG; got Graph\(2 nodes, 2 edges, cyclic"
    ):
        cpdag(cyclic)
    with pytest.raises(ValueError, match="graph must be a DAG"):
        cpdag(Graph(["a", "b"], [], [("a", "b")]))
    one, other = Graph(["a", "b"], []), Graph(["a", "c"], [])
    for function in (markov_equivalent, structural_hamming_distance):
        with pytest.raises(ValueError, match=r"over the same nodes; got \['b', 'c'\]"):
            function(one, other)
    with pytest.raises(TypeError, match=r"graph must be a dsage\.Graph; got 'DiGraph'"):
        cpdag(one.to_networkx())
    with pytest.raises(TypeError, match=r"one must be a dsage\.Graph; got 'CPDAG'"):
        markov_equivalent(cpdag(one), cpdag(one))
    with pytest.raises(TypeError, match=r"two graphs or two CPDAGs; got \('Graph', 'CPDAG'\)"):
        structural_hamming_distance(one, cpdag(one))
