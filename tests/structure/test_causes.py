"""The `graph` argument for causal values: the graph, members of its class, and refusals."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from dsage.data.inputs import check_inputs
from dsage.graphs import Graph, NoSeparation, cpdag
from dsage.graphs.partial import PartialGraph
from dsage.structure import GraphSource, stability
from dsage.structure.causes import describe_graph, find_causes, needs_target
from dsage.structure.knowledge import Knowledge

CHAIN = Graph(["a", "b", "y"], [("a", "b"), ("b", "y")])


def make_inputs(names="ab", n_targets=1):
    """Rows of a chain that ends in the target, or in several of them."""
    rng = np.random.default_rng(0)
    columns = [rng.normal(size=120)]
    for _ in names:
        columns.append(columns[-1] + rng.normal(size=120))
    X = pd.DataFrame(dict(zip(names, columns, strict=False)))
    y = pd.Series(columns[-1], name="y")
    if n_targets > 1:
        y = pd.DataFrame({f"y{at}": columns[-1] for at in range(n_targets)})
    return check_inputs(X[:80], y[:80], X[80:], y[80:])


def find(graph, inputs=None, **options):
    given = {"knowledge": Knowledge(), "n_resamples": 0, "min_share": None} | options
    return find_causes(
        graph,
        make_inputs() if inputs is None else inputs,
        is_of_classes=False,
        n_jobs=None,
        seed=0,
        progress=False,
        **given,
    )


def complete(names):
    return cpdag(Graph(list(names), list(combinations(names, 2))))


@pytest.mark.parametrize(
    ("graph", "options", "text"),
    [
        (None, {}, "graph must be a graph for causal values; got None.*learn"),
        (NoSeparation(["a", "b"]), {}, "graph must be a graph for causal values"),
        (CHAIN.oracle("y"), {}, "Separations do not distinguish causes from effects"),
        (PartialGraph(["a", "b", "y"], [("a", "o-o", "b")]), {}, "without circles"),
        (CHAIN, {"min_share": 0.5}, "min_share must be left out for causal values"),
        (lambda _: PartialGraph(["a", "b", "y"], []), {}, "one with directed edges"),
        (cpdag(Graph(["a", "b"], [])), {}, "one that has the target 'y'"),
        (cpdag(Graph(["a", "y"], [("a", "y")])), {}, "with all features and the target"),
    ],
)
def test_what_does_not_tell_causes_is_refused(graph, options, text):
    with pytest.raises(ValueError, match=text):
        find(graph, **options)


def test_a_vote_is_refused_too():
    vote = stability(make_inputs().training_table(), 2, random_state=0)
    with pytest.raises(ValueError, match="Separations do not distinguish causes from effects"):
        find(vote)


def test_several_targets_need_a_given_graph():
    inputs = make_inputs(n_targets=2)
    with pytest.raises(ValueError, match="given if the target has several columns"):
        find("learn", inputs)


def test_a_given_graph_has_no_alternatives():
    found = find(CHAIN)
    assert found.graph == CHAIN
    assert (found.alternatives, found.n_members) == ((), None)
    assert found.info.is_used
    assert found.info.source is GraphSource.GIVEN
    assert find(found) is found
    assert describe_graph(found) == ""


@pytest.mark.parametrize(
    ("edges", "needed"), [([("a", "b"), ("b", "y")], False), ([("y", "b"), ("b", "a")], True)]
)
def test_the_target_is_needed_where_it_has_effects(edges, needed):
    inputs = make_inputs()
    assert needs_target(find(Graph(["a", "b", "y"], edges), inputs), inputs) == needed


def test_the_target_is_needed_if_it_has_effects_in_another_member():
    inputs = make_inputs()
    known = Knowledge(forbidden=(("b", "a"),))
    # With a -> b nothing but y can be last.
    assert not needs_target(find(cpdag(CHAIN), inputs, knowledge=known), inputs)
    assert needs_target(find(cpdag(CHAIN), inputs), inputs)


def test_members_that_affect_features_in_the_same_way_count_once():
    # Of the four members of h - a - b - y, those that start at h and at a differ in h alone.
    chain = Graph(["h", "a", "b", "y"], [("h", "a"), ("a", "b"), ("b", "y")])
    found = find(cpdag(chain))
    assert found.n_members == 4
    assert (found.info.kind, found.info.n_edges, found.info.is_used) == ("CPDAG", 3, True)

    def kind(graph):
        return "y" if ("y", "b") in graph.edges else "b" if ("b", "a") in graph.edges else "h"

    shares = {kind(each.graph): each.share for each in found.alternatives}
    every = {"h": 0.5, "b": 0.25, "y": 0.25}
    assert kind(found.graph) not in shares
    assert shares | {kind(found.graph): every[kind(found.graph)]} == every
    assert not any(each.is_resampled for each in found.alternatives)


def test_knowledge_leaves_members_out():
    found = find(cpdag(CHAIN), knowledge=Knowledge(required=(("b", "a"),)))
    assert found.n_members == 2
    assert ("b", "a") in found.graph.edges
    (other,) = found.alternatives
    assert (other.share, ("b", "a") in other.graph.edges) == (0.5, True)
    assert describe_graph(found) == "the data do not determine the directions of 'b - y'"
    with pytest.raises(ValueError, match="one that agrees with what is known"):
        find(cpdag(CHAIN), knowledge=Knowledge(required=(("a", "b"), ("y", "b"))))


def test_a_dozen_members_stand_for_a_large_class():
    inputs = make_inputs("abcd")
    found = find(complete("abcdy"), inputs)
    assert found.n_members == 120
    assert 6 <= len(found.alternatives) <= 12
    assert all(
        each.share * 12 == pytest.approx(round(each.share * 12)) for each in found.alternatives
    )
    assert sum(each.share for each in found.alternatives) <= 1.0 + 1e-12
    # All members are listed to count those that agree with what is known.
    known = Knowledge(tiers=(("a",), ("b",), ("c", "d", "y")))
    some = find(complete("abcdy"), inputs, knowledge=known)
    assert some.n_members == 6
    assert all(known.allows(each.graph) for each in (some, *some.alternatives))
    few = Knowledge(tiers=(("a",), ("b", "c", "d", "y")))
    more = find(complete("abcdy"), inputs, knowledge=few)
    assert more.n_members == 24
    assert len(more.alternatives) <= 12
    assert all(few.allows(each.graph) for each in (more, *more.alternatives))
    assert all(
        each.share * 12 == pytest.approx(round(each.share * 12)) for each in more.alternatives
    )


def test_members_of_a_class_that_is_too_large_to_list_are_drawn(monkeypatch):
    monkeypatch.setattr("dsage.structure.causes._COUNTED", 100)
    monkeypatch.setattr("dsage.structure.causes._TRIALS", 100)
    inputs = make_inputs("abcd")
    known = Knowledge(tiers=(("a", "b"), ("c", "d", "y")))
    found = find(complete("abcdy"), inputs, knowledge=known)
    # Those that agree with what is known were not counted.
    assert found.n_members is None
    assert len(found.alternatives) > 1
    assert all(known.allows(each.graph) for each in (found, *found.alternatives))
    monkeypatch.setattr("dsage.structure.causes._COUNTED", 120)
    assert find(complete("abcdy"), inputs, knowledge=known).n_members == 12


def test_a_learned_graph_has_the_other_members_and_those_of_resamples():
    found = find("auto", n_resamples=3)
    assert cpdag(found.graph) == cpdag(CHAIN)
    assert found.n_members == 3
    members = [each for each in found.alternatives if not each.is_resampled]
    assert [each.share for each in members] == [1 / 3, 1 / 3]
    resampled = [each for each in found.alternatives if each.is_resampled]
    assert [each.share for each in resampled] == [1 / 3] * 3
    for drawn, learned in zip(resampled, found.resampled, strict=True):
        assert cpdag(drawn.graph) == cpdag(learned)
    assert found.info.source is GraphSource.LEARNED
    assert describe_graph(found).startswith("the data do not determine the directions of")


def test_resamples_agree_with_what_is_known():
    known = Knowledge(tiers=(("a",), ("b",), ("y",)))
    found = find("learn", knowledge=known, n_resamples=3)
    assert (found.graph, found.n_members) == (CHAIN, 1)
    resampled = [each for each in found.alternatives if each.is_resampled]
    assert len(resampled) == 3
    assert all(known.allows(each.graph) for each in found.alternatives)
    # A dozen graphs of resamples are enough.
    many = find(lambda _: CHAIN, n_resamples=14)
    assert [each.share for each in many.alternatives] == [1 / 12] * 12


def test_an_indicator_of_missing_values_is_a_part_of_its_feature():
    names = ["a", "b", "y", "m"]
    edges = [("a", "m"), ("m", "y"), ("b", "a")]
    found = find(Graph(names, edges, indicators={"m": ["b"]}))
    # a -> m would close a cycle with b -> a; the edge of b to itself is none.
    assert found.graph == Graph(["a", "b", "y"], [("b", "a"), ("b", "y")])
    plain = Graph(names, [("m", "b"), ("a", "m"), ("a", "y")], [], {"m": ["b"]})
    assert find(plain).graph == Graph(["a", "b", "y"], [("a", "b"), ("a", "y")])
    # One indicator of two columns.
    both = Graph(names, [("m", "y")], [("a", "b")], {"m": ["a", "b"]})
    assert find(both).graph == Graph(["a", "b", "y"], [("a", "y"), ("b", "y")], [("a", "b")])
