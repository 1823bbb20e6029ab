"""What setting features changes, hidden nodes, and members of equivalence classes."""

import itertools
from collections import Counter

import numpy as np
import pytest

from dsage import Graph
from dsage.data.groups import Groups
from dsage.graphs import cpdag, markov_equivalent
from dsage.graphs.class_members import ClassMembers
from dsage.graphs.interventions import GroupedInterventions, Interventions, project
from interventional_world import random_dag


def test_a_target_without_effects_is_left_out():
    graph = Graph(["a", "b", "y"], [("a", "b"), ("b", "y")])
    assert Interventions(graph, ["a", "b"], "y").names == ("a", "b")
    assert Interventions(Graph(["a", "y"], [("y", "a")]), ["a"], "y").names == ("a", "y")


def test_all_features_and_the_target_are_nodes():
    graph = Graph(["a", "b"], [("a", "b")])
    for features, target in ((["a", "c"], None), (["a"], "y")):
        with pytest.raises(ValueError, match="graph must be one with all features and the target"):
            Interventions(graph, features, target)


def test_set_features_matter_where_their_effects_are_not_set():
    chain = Interventions(Graph(list("abc"), [("a", "b"), ("b", "c")]), list("abc"))
    sets = np.array([[1, 1, 0], [1, 0, 1], [0, 1, 1], [1, 0, 0], [1, 1, 1]], bool)
    expected = [[0, 1, 0], [1, 0, 0], [0, 0, 0], [1, 0, 0], [0, 0, 0]]
    np.testing.assert_array_equal(chain.reduced(sets, sets), expected)
    # A set feature that the model does not receive from the row is one of those that are drawn.
    fork = Interventions(Graph(list("abc"), [("a", "b"), ("a", "c")]), list("abc"))
    fixed, inputs = np.array([[1, 0, 0], [1, 0, 0]], bool), np.array([[1, 1, 1], [1, 0, 1]], bool)
    np.testing.assert_array_equal(fork.reduced(fixed, inputs), [[0, 0, 0], [1, 0, 0]])


def test_hidden_nodes_become_edges_and_bidirected_edges():
    graph = Graph(list("habcd"), [("h", "a"), ("h", "b"), ("b", "c"), ("c", "d")])
    assert project(graph, ["a", "b", "d"]) == Graph(["a", "b", "d"], [("b", "d")], [("a", "b")])
    # A hidden effect hides nothing.
    assert project(Graph(list("abh"), [("a", "h"), ("b", "h")]), ["a", "b"]).bidirected == ()


@pytest.mark.parametrize("seed", range(5))
def test_projection_keeps_the_separations_of_what_remains(seed):
    rng = np.random.default_rng(seed)
    graph = random_dag(6, 0.4, rng)
    kept = ["a", "b", "c", "d"]
    left = project(graph, kept)
    for one, other in itertools.combinations(kept, 2):
        rest = [name for name in kept if name not in (one, other)]
        for size in range(3):
            for given in itertools.combinations(rest, size):
                separated = graph.is_separated(one, other, given=given)
                assert left.is_separated(one, other, given=given) == separated


def test_only_open_directed_paths_to_unknown_inputs_count():
    chain = Interventions(Graph(list("abcd"), [("a", "b"), ("b", "c"), ("c", "d")]), list("abcd"))

    def reduced(fixed, inputs):
        masks = [np.array([[name in some for name in "abcd"]]) for some in (fixed, inputs)]
        kept = chain.reduced(*masks)[0]
        return "".join(name for name, flag in zip("abcd", kept, strict=True) if flag)

    assert reduced("ac", "ac") == "ac"
    assert reduced("ab", "ab") == "b"  # b is between a and the rest
    assert reduced("d", "d") == ""
    assert reduced("a", "ab") == "a"  # b is received, but not set: a still moves c
    assert reduced("abcd", "abcd") == ""


def test_a_group_is_left_out_if_no_member_matters():
    graph = Graph(list("abc"), [("a", "b")])
    inner = Interventions(graph, list("abc"))
    groups = GroupedInterventions(inner, Groups({"ac": ["a", "c"]}, list("abc")))
    known = np.array([[True, False], [False, True]])
    np.testing.assert_array_equal(groups.reduced(known, known), [[True, False], [False, False]])


def test_a_hidden_common_cause_may_join_an_effect_through_others():
    # a <-> b <-> c and a -> c: not identified, although a and c have no common cause alone.
    graph = Graph(list("abc"), [("a", "c")], [("a", "b"), ("b", "c")])
    with pytest.raises(ValueError, match=r"got 'a -> c'.*by way of \['b'\]"):
        Interventions(graph, list("abc"))
    # The target cannot be set, so its own effects are no problem.
    assert Interventions(Graph(["a", "y"], [("y", "a")], [("a", "y")]), ["a"], "y").target == "y"


@pytest.mark.parametrize("seed", range(40))
def test_members_of_a_class_are_those_of_all_directions(seed):
    rng = np.random.default_rng(seed)
    graph = random_dag(int(rng.integers(2, 6)), 0.6, rng)
    members = ClassMembers(cpdag(graph))
    found = list(members)
    truth = set()
    for flips in itertools.product((False, True), repeat=len(graph.edges)):
        pairs = zip(graph.edges, flips, strict=True)
        other = Graph(graph.names, [edge[::-1] if flip else edge for edge, flip in pairs])
        if other.is_acyclic and markov_equivalent(graph, other):
            truth.add(other)
    assert len(members) == len(found) == len(truth)
    assert set(found) == truth
    assert members.draw(rng) in truth


def test_members_are_drawn_with_equal_probabilities():
    members = ClassMembers(
        cpdag(Graph(list("abcd"), [("a", "b"), ("b", "c"), ("a", "c"), ("c", "d")]))
    )
    rng = np.random.default_rng(0)
    counts = Counter(members.draw(rng) for _ in range(1600))
    assert len(counts) == len(members) == 8
    assert max(abs(count - 200) for count in counts.values()) < 4.5 * np.sqrt(200 * 7 / 8)
    assert len(members.some(3, rng)) == 3
    assert len(members.some(8, rng)) == 8
