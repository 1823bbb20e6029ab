import numpy as np
import pandas as pd
import pytest

from dsage import Graph
from dsage.datasets import paper_graph
from dsage.graphs import (
    Consensus,
    GroupedOracle,
    NoSeparation,
    Oracle,
    as_oracle,
    is_oracle,
    separation,
)
from given import all_coalitions, random_graph, subsets
from walks import sigma_connected


@pytest.fixture
def chain():
    return Graph(["a", "b", "y", "c"], [("a", "b"), ("b", "y"), ("y", "c")])


@pytest.mark.parametrize("seed", range(30))
def test_boundary_is_the_smallest_subset_that_separates_the_rest(seed):
    """By brute force: M is the only minimal subset of S with Y separated from S - M given M."""
    rng = np.random.default_rng(seed)
    graph = random_graph(
        rng,
        5,
        directed=rng.uniform(0.2, 0.6),
        bidirected=rng.choice([0.0, 0.3]),
        cyclic=seed % 3 == 0,
    )
    target = graph.names[int(rng.integers(5))]
    oracle = graph.oracle(target)
    known = all_coalitions(4)
    for row, found in zip(known, oracle.boundary(known), strict=True):
        coalition = {name for name, inside in zip(oracle.feature_names, row, strict=True) if inside}
        boundary = {
            name for name, inside in zip(oracle.feature_names, found, strict=True) if inside
        }
        sufficient = [
            part
            for part in subsets(coalition)
            if not any(sigma_connected(graph, target, other, part) for other in coalition - part)
        ]
        smallest = min(sufficient, key=len)
        assert boundary == smallest
        assert all(smallest <= part for part in sufficient)


@pytest.mark.parametrize("seed", range(20))
def test_a_feature_is_separated_where_it_leaves_the_boundary_as_it_is(seed):
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, 6, directed=0.35, bidirected=0.15, cyclic=seed % 2 == 0)
    oracle = graph.oracle("v0")
    known = all_coalitions(5)
    separated, boundary = oracle.separated(known), oracle.boundary(known)
    for feature in range(5):
        larger = known.copy()
        larger[:, feature] = True
        same = (oracle.boundary(larger) == boundary).all(axis=1)
        outside = ~known[:, feature]
        np.testing.assert_array_equal(separated[outside, feature], same[outside])


def test_answers_about_one_feature_equal_those_about_sets(chain):
    oracle = chain.oracle("y")
    known = all_coalitions(3)
    names = np.array(oracle.feature_names)
    for row, answers in zip(known, oracle.separated(known), strict=True):
        for feature in np.flatnonzero(~row):
            expected = chain.is_separated(names[feature], "y", names[row])
            assert answers[feature] == expected


@pytest.mark.parametrize("n_coalitions", [0, 1, 7, 8, 63, 64, 65, 1000])
def test_results_do_not_depend_on_the_size_of_the_batch(n_coalitions, monkeypatch):
    model = paper_graph("dag_m(3)")
    oracle = model.graph.oracle(model.target)
    known = np.random.default_rng(0).random((1000, 49)) < 0.5
    separated, boundary = oracle.separated(known), oracle.boundary(known)
    np.testing.assert_array_equal(oracle.separated(known[:n_coalitions]), separated[:n_coalitions])
    monkeypatch.setattr(separation, "_BYTES_AT_ONCE", 4 * 50 * n_coalitions)
    np.testing.assert_array_equal(oracle.separated(known), separated)
    np.testing.assert_array_equal(oracle.boundary(known), boundary)
    np.testing.assert_array_equal(oracle.separated(np.asfortranarray(known)), separated)


def test_coalitions_are_not_changed(chain):
    oracle = chain.oracle("y")
    for asked in (oracle, NoSeparation(oracle.feature_names), Consensus([oracle, oracle])):
        known = all_coalitions(3)
        known.setflags(write=False)
        asked.separated(known)
        answer = asked.boundary(known)
        assert not np.shares_memory(answer, known)
        np.testing.assert_array_equal(known, all_coalitions(3))


def test_features_may_come_in_the_order_of_the_data_and_some_may_be_unobserved(chain):
    oracle = chain.oracle("y", features=["c", "a"])
    assert oracle.feature_names == ("c", "a")
    assert oracle.target == "y"
    known = np.array([[True, False], [False, True]])
    # b is not observed, so a stays dependent on y and belongs to the boundary.
    np.testing.assert_array_equal(oracle.separated(known), [[False, False], [False, False]])
    np.testing.assert_array_equal(oracle.boundary(known), known)


def test_a_graph_of_one_node_has_no_features():
    oracle = Graph(["y"], []).oracle("y")
    assert oracle.feature_names == ()
    assert oracle.separated(np.zeros((3, 0), dtype=bool)).shape == (3, 0)


def test_no_separation_keeps_everything():
    oracle = NoSeparation(["a", "b"])
    known = all_coalitions(2)
    assert not oracle.separated(known).any()
    np.testing.assert_array_equal(oracle.boundary(known), known)


def test_oracles_show_what_they_are_about(chain):
    oracle = chain.oracle("y")
    assert [repr(oracle), repr(NoSeparation(["a"])), repr(Consensus([oracle]))] == [
        "SeparationOracle(target='y', n_features=3)",
        "NoSeparation(n_features=1)",
        "Consensus(1 oracles, share=0.9)",
    ]


class Useless:
    """A user's oracle with the basic members only: the last feature never matters."""

    feature_names = ("a", "b")

    def separated(self, known):
        return ~known & np.array([False, True])

    def boundary(self, known):
        return known & np.array([True, False])


def test_every_oracle_answers_all_questions_of_the_base_class(chain):
    oracle, known = chain.oracle("y"), all_coalitions(3)
    grouped = GroupedOracle(oracle, {"g": ["a", "b"]})
    facts = [
        (
            each.target,
            each.members,
            len(each.distinct_boundaries(known[:, : len(each.feature_names)])[0]),
        )
        for each in (
            oracle,
            NoSeparation(["a", "b", "c"]),
            Consensus([oracle]),
            grouped,
            as_oracle(Useless()),
        )
    ]
    assert facts == [
        ("y", None, 6),
        (None, None, 8),
        ("y", None, 6),
        ("y", {"g": ("a", "b")}, 4),
        (None, None, 2),
    ]


def test_objects_with_the_basic_members_are_adapted(chain):
    assert as_oracle(oracle := chain.oracle("y")) is oracle
    user = Useless()
    user.target, user.members = "y", {"b": ("c", "e")}
    adapted, known = as_oracle(user), all_coalitions(2)
    assert isinstance(adapted, Oracle)
    assert is_oracle(user)
    assert repr(adapted) == repr(user)
    np.testing.assert_array_equal(adapted.separated(known), user.separated(known))
    np.testing.assert_array_equal(Consensus([user]).boundary(known), user.boundary(known))
    assert (adapted.target, adapted.members) == ("y", {"b": ("c", "e")})


def test_objects_without_the_basic_members_are_refused(chain):
    assert not is_oracle(chain)
    with pytest.raises(TypeError, match=r"oracle must be an object with .*boundary; got 'Graph'"):
        as_oracle(chain)


def test_distinct_boundaries_belong_to_their_coalitions_in_any_shape(chain):
    oracle = chain.oracle("y")
    known = all_coalitions(3).reshape(2, 4, 3)
    boundaries, place = oracle.distinct_boundaries(known)
    assert place.shape == (2, 4)
    assert len(np.unique(boundaries, axis=0)) == len(boundaries)
    np.testing.assert_array_equal(
        boundaries[place].reshape(8, 3), oracle.boundary(known.reshape(8, 3))
    )


class TestConsensus:
    @pytest.fixture
    def oracles(self):
        rng = np.random.default_rng(1)
        graphs = [random_graph(rng, 6, directed=0.4) for _ in range(10)]
        return [graph.oracle("v0") for graph in graphs]

    @pytest.mark.parametrize("share", [0.1, 0.3, 0.55, 0.9, 1.0])
    def test_separates_where_the_share_agrees(self, oracles, share):
        known = all_coalitions(5)
        votes = sum(oracle.separated(known).astype(int) for oracle in oracles)
        dropped = sum((known & ~oracle.boundary(known)).astype(int) for oracle in oracles)
        needed = {0.1: 1, 0.3: 3, 0.55: 6, 0.9: 9, 1.0: 10}[share]
        consensus = Consensus(oracles, share)
        np.testing.assert_array_equal(consensus.separated(known), votes >= needed)
        np.testing.assert_array_equal(consensus.boundary(known), known & (dropped < needed))
        assert 0 < (votes >= 1).sum() < votes.size

    def test_a_share_whose_product_rounds_up_needs_no_extra_vote(self, oracles):
        assert 0.28 * 25 > 7
        never = NoSeparation(oracles[0].feature_names)
        always = Graph([*never.feature_names, "v0"], []).oracle("v0")
        known = all_coalitions(5)
        assert Consensus([always] * 7 + [never] * 18, 0.28).separated(known)[0].all()
        assert not Consensus([always] * 6 + [never] * 19, 0.28).separated(known).any()

    def test_names_may_come_as_a_list(self, oracles):
        listed = NoSeparation(oracles[0].feature_names)
        listed.feature_names = list(listed.feature_names)
        assert Consensus([listed, oracles[0]]).target == "v0"

    def test_agreement_of_one_is_the_oracle_itself(self, oracles):
        known = all_coalitions(5)
        np.testing.assert_array_equal(
            Consensus(oracles[:1]).boundary(known), oracles[0].boundary(known)
        )

    def test_does_not_depend_on_the_size_of_the_batch(self, oracles, monkeypatch):
        known = all_coalitions(5)
        expected = Consensus(oracles).separated(known)
        monkeypatch.setattr(separation, "_BYTES_AT_ONCE", 4 * 5 * 5)
        np.testing.assert_array_equal(Consensus(oracles).separated(known), expected)

    def test_bad_input_is_refused(self, oracles):
        with pytest.raises(ValueError, match="oracles must be at least one"):
            Consensus([])
        with pytest.raises(ValueError, match=r"share must be in \(0, 1\]; got 0"):
            Consensus(oracles, 0)
        with pytest.raises(ValueError, match=r"share must be in \(0, 1\]; got nan"):
            Consensus(oracles, float("nan"))
        with pytest.raises(TypeError, match=r"share must be a number; got '0\.9'"):
            Consensus(oracles, "0.9")
        permuted = NoSeparation(oracles[0].feature_names[::-1])
        with pytest.raises(ValueError, match="over the same features in the same order"):
            Consensus([oracles[0], permuted])
        graph = Graph(["a", "b", "y"], [("a", "y")])
        with pytest.raises(ValueError, match="about the same target, 'y'; got 'b'"):
            Consensus([graph.oracle("y", ["a"]), graph.oracle("b", ["a"])])
        with pytest.raises(TypeError, match="each of oracles must be an object with feature_names"):
            Consensus([graph])
        with pytest.raises(TypeError, match="oracles must be a list"):
            Consensus(oracles[0])
        with pytest.raises(ValueError, match=r"known must be of shape \(n_coalitions, 5\)"):
            Consensus(oracles).boundary(np.zeros((2, 4), dtype=bool))


@pytest.mark.parametrize(
    ("known", "error", "text"),
    [
        (np.zeros((2, 3)), TypeError, r"known must be a boolean array; got dtype\('float64'\)"),
        (pd.DataFrame(np.zeros((2, 3), dtype=bool)), TypeError, "known must be a boolean array; got 'DataFrame'"),
        (np.zeros((2, 3), dtype=int), TypeError, r"known must be a boolean array; got dtype"),
        (np.zeros((2, 4), dtype=bool), ValueError, r"known must be of shape \(n_coalitions, 3\); got \(2, 4\)"),
        (np.zeros(3, dtype=bool), ValueError, r"got \(3,\)\. .* known\[None, :\] makes one row"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("method", ["separated", "boundary"])
def test_bad_coalitions_are_refused(chain, known, error, text, method):
    for oracle in (chain.oracle("y"), NoSeparation(["a", "b", "c"])):
        with pytest.raises(error, match=text):
            getattr(oracle, method)(known)


@pytest.mark.parametrize(
    ("features", "text"),
    [
        (["a", "y"], "features must be without the target; got 'y'"),
        (["a", "z"], "features must be one of the nodes of the graph; got 'z'"),
        (["a", "a"], "features must be distinct; got 'a'"),
    ],
)
def test_bad_features_are_refused(chain, features, text):
    with pytest.raises(ValueError, match=text):
        chain.oracle("y", features)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("a", "a"), r"x and y must be disjoint; got \['a'\]"),
        ((["a", "b"], "c", "b"), r"x and given must be disjoint; got \['b'\]"),
        (("a", ["b", "c"], ["c"]), r"y and given must be disjoint; got \['c'\]"),
        (("z", "a"), "x must be one of the nodes of the graph; got 'z'"),
        (("a", "z"), "y must be one of the nodes of the graph; got 'z'"),
        (("a", "b", ["z"]), "given must be one of the nodes of the graph; got 'z'"),
    ],
)
def test_bad_questions_are_refused(chain, arguments, text):
    with pytest.raises(ValueError, match=text):
        chain.is_separated(*arguments)


def test_empty_sets_are_separated(chain):
    assert chain.is_separated([], "y")
    assert chain.is_separated("a", [])


def test_a_long_alternating_path_is_followed_to_its_end():
    """Each step turns around, so a sweep gets one step further: the answer takes many sweeps."""
    labels = [f"v{i}" for i in range(201)]
    edges = [(labels[i], labels[i + 1] if i + 1 < 201 else labels[i - 1]) for i in range(0, 201, 2)]
    edges += [(labels[i], labels[i - 1]) for i in range(2, 201, 2)]
    graph = Graph(labels, edges)
    colliders = labels[1::2]
    assert not graph.is_separated("v0", "v200", given=colliders)
    assert graph.is_separated("v0", "v200", given=colliders[:50] + colliders[51:])
