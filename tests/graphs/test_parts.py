"""Features that stand for several nodes, which they may share."""

import itertools

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsage import Graph
from dsage.graphs import (
    Consensus,
    GroupedOracle,
    NoSeparation,
    Oracle,
    PartsOracle,
    random_dag,
    random_linear_gaussian,
)
from dsage.graphs.parts import with_whole_values
from exact_values import LinearGaussianCase
from given import all_coalitions, dags, graphs

quickly = settings(max_examples=40, deadline=None)


@st.composite
def parted(draw, kind):
    """A graph, features that are sets of its nodes (some shared, some of none), and the oracle."""
    graph = draw(kind)
    target, *nodes = graph.names
    sets = st.lists(st.sampled_from(nodes), min_size=1, max_size=3, unique=True)
    parts = {f"f{at}": each for at, each in enumerate(draw(st.lists(sets, min_size=1, max_size=5)))}
    return graph, parts, PartsOracle(graph.oracle(target), parts)


def union(parts, known):
    """The nodes of the known features."""
    return set(itertools.chain(*itertools.compress(parts.values(), known)))


@quickly
@given(parted(graphs(min_nodes=3)))
def test_a_feature_is_separated_exactly_where_the_boundary_stays_as_it_was(case):
    *_, oracle = case
    known = all_coalitions(len(oracle.feature_names))
    boundary, separated = oracle.boundary(known), oracle.separated(known)
    for feature in range(known.shape[1]):
        larger = known.copy()
        larger[:, feature] = True
        same = (oracle.boundary(larger) == boundary).all(axis=1)
        np.testing.assert_array_equal(separated[:, feature], same & ~known[:, feature])


@quickly
@given(parted(dags(min_nodes=3)))
def test_separation_is_that_of_the_new_nodes_in_networkx(case):
    graph, parts, oracle = case
    reference, target = graph.to_networkx(), graph.names[0]
    known = all_coalitions(len(parts))
    for row, separated in zip(known, oracle.separated(known), strict=True):
        inside = union(parts, row)
        for at, nodes in enumerate(parts.values()):
            if row[at]:
                assert not separated[at]
                continue
            new = set(nodes) - inside
            expected = not new or nx.is_d_separator(reference, new, {target}, inside)
            # A shared node that is known adds nothing, but keeps the feature in the boundary.
            others = [inside - {node} for node in set(nodes) & inside]
            expected &= all(
                nx.is_d_separator(reference, inside - rest, {target}, rest) for rest in others
            )
            assert separated[at] == expected


@quickly
@given(parted(graphs(min_nodes=3)))
def test_the_boundary_separates_the_rest_of_the_coalition(case):
    graph, parts, oracle = case
    known = all_coalitions(len(parts))
    for row, boundary in zip(known, oracle.boundary(known), strict=True):
        assert (boundary <= row).all()
        chosen = union(parts, boundary)
        left = union(parts, row) - chosen
        assert not left or graph.is_separated(graph.names[0], left, chosen)


@quickly
@given(parted(dags(min_nodes=3, max_nodes=6)), st.integers(0, 2**32 - 1))
def test_an_optimal_model_has_the_same_risk_at_the_boundary(case, seed):
    graph, parts, oracle = case
    law = LinearGaussianCase.of(random_linear_gaussian(graph, random_state=seed), graph.names[0])
    nodes = list(graph.names[1:])
    known = all_coalitions(len(parts))
    for row, boundary in zip(known, oracle.boundary(known), strict=True):
        whole, part = (sorted(map(nodes.index, union(parts, each))) for each in (row, boundary))
        assert law.risk(whole) == pytest.approx(law.risk(part), rel=1e-6, abs=1e-9)


@quickly
@given(graphs(min_nodes=3), st.data())
def test_without_shared_nodes_features_are_groups(graph, data):
    target, *nodes = graph.names
    owner = data.draw(st.lists(st.integers(0, 2), min_size=len(nodes), max_size=len(nodes)))
    groups = {}
    for node, at in zip(nodes, owner, strict=True):
        groups.setdefault(f"g{at}", []).append(node)
    oracle = graph.oracle(target)
    grouped, parts = GroupedOracle(oracle, groups), PartsOracle(oracle, groups)
    known = all_coalitions(len(groups))
    np.testing.assert_array_equal(parts.separated(known), grouped.separated(known))
    np.testing.assert_array_equal(parts.boundary(known), grouped.boundary(known))


@quickly
@given(parted(graphs(min_nodes=3)))
def test_the_target_reaches_the_boundary_and_what_is_not_separated(case):
    *_, oracle = case
    known = all_coalitions(len(oracle.feature_names))
    reached = oracle.reached(known)
    np.testing.assert_array_equal(reached & known, oracle.boundary(known))
    np.testing.assert_array_equal(~reached & ~known, oracle.separated(known))


AGE = {"no age": ["age"]}
LEAK = Graph(["age", "no age", "sex", "y"], [("no age", "y"), ("sex", "age")], indicators=AGE)


def test_a_graph_knows_an_indicator_as_soon_as_its_feature_is_known():
    oracle = LEAK.oracle("y", ["sex", "age"])
    assert oracle.feature_names == ("sex", "age")
    known = np.array([[False, False], [True, False], [False, True]])
    np.testing.assert_array_equal(
        oracle.separated(known), [[True, False], [False, False], [True, False]]
    )
    assert oracle.boundary(known[2:]).tolist() == [[False, True]]


def test_indicators_that_are_features_themselves_are_ordinary_nodes():
    oracle = LEAK.oracle("y")
    assert oracle.feature_names == ("age", "no age", "sex")
    assert oracle.separated(np.array([[False, False, False]])).tolist() == [[True, False, True]]
    assert LEAK.markov_blanket("y") == ("no age",)
    np.testing.assert_array_equal(
        LEAK.oracle("y", ["sex"]).separated(np.array([[False]])), [[True]]
    )


def test_a_shared_indicator_is_known_with_either_feature():
    graph = Graph(
        ["a", "b", "no a or b", "y"], [("no a or b", "y")], indicators={"no a or b": ["a", "b"]}
    )
    oracle = graph.oracle("y", ["a", "b"])
    known = all_coalitions(2)
    np.testing.assert_array_equal(oracle.boundary(known), known)
    assert not oracle.separated(known).any()


def test_an_oracle_of_parts_is_an_oracle():
    oracle = LEAK.oracle("y", ["age", "sex"])
    assert isinstance(oracle, Oracle)
    assert (oracle.target, oracle.is_of_graph, oracle.members) == ("y", True, None)
    assert "n_features=2" in repr(oracle)
    known = np.array([[False, True]])
    assert Consensus([oracle, oracle]).separated(known).tolist() == [[False, False]]
    assert not Consensus([oracle, oracle]).is_of_graph
    group = GroupedOracle(oracle, {"all": ["age", "sex"]})
    assert group.boundary(np.array([[True]])).tolist() == [[True]]
    assert group.is_of_graph
    nothing = PartsOracle(NoSeparation(["a", "b"]), {"f": ["a", "b"]})
    assert (nothing.target, nothing.is_of_graph) == (None, False)
    assert nothing.boundary(np.array([[True]])).tolist() == [[True]]


def test_graphs_with_other_indicators_are_others():
    plain = Graph(LEAK.names, LEAK.edges)
    assert plain != LEAK
    assert Graph(LEAK.names, LEAK.edges, indicators=AGE) == LEAK
    assert hash(Graph(LEAK.names, LEAK.edges, indicators=AGE)) == hash(LEAK)
    assert LEAK.indicators == {"no age": ("age",)}


def test_indicators_survive_files_and_networkx(tmp_path):
    LEAK.save(tmp_path / "graph.json")
    assert Graph.load(tmp_path / "graph.json") == LEAK
    assert Graph.from_networkx(LEAK.to_networkx()) == LEAK
    Graph(["a"], []).save(tmp_path / "plain.json")
    assert "indicators" not in (tmp_path / "plain.json").read_text()


def test_a_damaged_indicator_is_refused(tmp_path):
    LEAK.save(tmp_path / "graph.json")
    text = (tmp_path / "graph.json").read_text()
    broken = text.replace('"indicators": {', '"indicators": 3, "other": {')
    (tmp_path / "graph.json").write_text(broken)
    with pytest.raises(ValueError, match="It is damaged"):
        Graph.load(tmp_path / "graph.json")


@pytest.mark.parametrize(
    ("indicators", "error", "words"),
    [
        (["no age"], TypeError, "indicators must be a dict of lists of nodes"),
        ({"no sage": ["age"]}, ValueError, "Did you mean 'no age'"),
        ({"no age": ["agee"]}, ValueError, "Did you mean 'age'"),
        ({"no age": ["sex"], "sex": ["age"]}, ValueError, r"without indicators; got \['sex'\]"),
    ],
)
def test_wrong_indicators_are_refused(indicators, error, words):
    with pytest.raises(error, match=words):
        Graph(LEAK.names, [], indicators=indicators)


def test_parts_of_no_use_are_refused():
    oracle = LEAK.oracle("y")
    with pytest.raises(TypeError, match="parts must be a dict of lists of nodes"):
        PartsOracle(oracle, ["age"])
    with pytest.raises(ValueError, match=r"parts\['f'\] must be at least one node"):
        PartsOracle(oracle, {"f": []})
    with pytest.raises(ValueError, match=r"parts\['f'\] must be one of the nodes; got 'agee'"):
        PartsOracle(oracle, {"f": ["agee"]})
    with pytest.raises(ValueError, match="known must be"):
        PartsOracle(oracle, {"f": ["age"]}).separated(np.ones((1, 2), dtype=bool))


@quickly
@given(graphs(min_nodes=3), graphs(min_nodes=3), st.sampled_from([0.5, 1.0]))
def test_a_vote_reaches_its_boundary_and_what_it_does_not_separate(one, other, share):
    names = one.names if len(one) <= len(other) else other.names
    oracles = [each.oracle(names[0], names[1:]) for each in (one, other)]
    vote, known = Consensus(oracles, share=share), all_coalitions(len(names) - 1)
    expected = vote.boundary(known) | (~vote.separated(known) & ~known)
    np.testing.assert_array_equal(vote.reached(known), expected)
    nothing = NoSeparation(names[1:])
    assert nothing.reached(known).all()
    # So a feature of several nodes may be asked about.
    pairs = PartsOracle(vote, {"all": names[1:]})
    np.testing.assert_array_equal(pairs.reached(np.array([[False]])), [[expected[0].any()]])


def test_a_feature_with_missing_values_does_not_separate_its_causes_from_its_effects():
    nodes = ["x", "w", "y", "no w"]
    edges = [("x", "w"), ("w", "y")]
    known = np.array([[False, True]])
    plain = Graph(nodes, edges).oracle("y", ["x", "w"])
    assert plain.separated(known).tolist() == [[True, False]]
    oracle = Graph(nodes, edges, indicators={"no w": ["w"]}).oracle("y", ["x", "w"])
    assert oracle.separated(known).tolist() == [[False, False]]
    assert oracle.boundary(np.array([[True, True]])).tolist() == [[True, True]]


def test_an_effect_with_missing_values_still_joins_its_causes():
    graph = Graph(["x", "w", "y", "no w"], [("x", "w"), ("y", "w")], indicators={"no w": ["w"]})
    oracle = graph.oracle("y", ["x", "w"])
    known = np.array([[False, False], [False, True]])
    assert oracle.separated(known).tolist() == [[True, False], [False, False]]


def test_a_complete_feature_separates_beside_one_with_missing_values():
    edges = [("w", "x"), ("x", "y")]
    graph = Graph(["x", "w", "y", "no w"], edges, indicators={"no w": ["w"]})
    oracle = graph.oracle("y", ["x", "w"])
    assert oracle.separated(np.array([[True, False]])).tolist() == [[False, True]]


def test_names_of_whole_values_are_free():
    names = ["w", "w*", "y", "no w"]
    made, edges, bidirected = with_whole_values(
        names, [("w", "y"), ("w*", "w")], [("w", "w*")], {"w": ("w", "no w"), "w*": ("w*",)}
    )
    assert made == ("w", "w*", "y", "no w", "w**")
    assert sorted(edges) == [("no w", "w"), ("w*", "w**"), ("w**", "w"), ("w**", "y")]
    assert bidirected == [("w**", "w*")]


def test_separations_hold_whichever_values_are_missing():
    # In rows in which a feature is missing it is as if it was not known.
    for seed in range(10):
        graph = random_dag(8, 3.0, random_state=seed)
        *features, target = np.random.default_rng(seed).permutation(graph.names).tolist()
        holes = features[:3]
        nodes = [*graph.names, *(f"no {name}" for name in holes)]
        oracle = Graph(
            nodes, graph.edges, indicators={f"no {name}": [name] for name in holes}
        ).oracle(target, features)
        plain = graph.oracle(target, features)
        known = all_coalitions(len(features))
        expected = plain.separated(known)
        for size in (1, 2, 3):
            for missing in itertools.combinations(range(3), size):
                fewer = known.copy()
                fewer[:, list(missing)] = False
                expected &= plain.separated(fewer)
        np.testing.assert_array_equal(oracle.separated(known), expected)
