from dataclasses import replace
from itertools import product

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tqdm import tqdm

import dsage
from dsage import Graph
from dsage.datasets import paper_graph
from dsage.graphs import compare_graphs, cpdag
from dsage.structure import Counts, Moments, SearchResult, search_graph, stability
from dsage.structure.learn import _make_constraints
from dsage.structure.searches.ordered import then

MODEL = paper_graph("dag_s(4)")


@pytest.fixture(scope="module")
def data():
    return MODEL.sample(5000, random_state=0)


@pytest.mark.parametrize("method", ["auto", "tabu", "hc", "boss"])
def test_every_method_returns_a_dag_over_the_columns(data, method):
    graph = dsage.learn_graph(data, method=method)
    assert graph.names == tuple(data.columns)
    assert graph.is_dag
    assert compare_graphs(MODEL.graph, graph, MODEL.target).f1 > 0.7


def test_auto_finds_the_true_class(data):
    assert cpdag(dsage.learn_graph(data)) == cpdag(MODEL.graph)


def test_every_kind_of_data_gives_the_same_graph(data):
    expected = dsage.learn_graph(data)
    assert dsage.learn_graph(pl.from_pandas(data)) == expected
    assert dsage.learn_graph(pa.Table.from_pandas(data)) == expected
    assert dsage.learn_graph(Moments.from_frame(data)) == expected
    assert dsage.learn_graph(data.to_numpy()) == expected  # X1, X2, ... are the default names


def test_the_rows_are_not_needed_again(data):
    halves = Moments.from_frame(data[:2000]) + Moments.from_frame(data[2000:])
    assert dsage.learn_graph(halves) == dsage.learn_graph(data)


def test_score_does_not_fall_from_one_phase_to_the_next(data):
    scores = {method: search_graph(data, method=method).score for method in ("hc", "tabu", "auto")}
    assert scores["hc"] <= scores["tabu"] <= scores["auto"]


def test_result_tells_the_score_of_its_graph_and_the_way():
    data = paper_graph("dag_m(4)").sample(1000, random_state=0)
    result = search_graph(data)
    assert isinstance(result, SearchResult)
    assert result.method == "auto"
    assert result.score == pytest.approx(dsage.score_graph(result.graph, data), rel=1e-12)
    frame = result.to_frame()
    assert frame["seconds"].is_monotonic_increasing
    assert frame["seconds"].iloc[-1] <= result.seconds
    assert {"add", "move"} <= set(frame["kind"])
    assert not result.interrupted


def test_strict_is_bic_and_has_at_least_as_many_edges():
    weak = paper_graph("dag_l(4)").sample(1000, random_state=0)
    strict = dsage.learn_graph(weak, strict=True)
    assert strict == dsage.learn_graph(weak, score="bic")
    assert len(strict.edges) > len(dsage.learn_graph(weak).edges)


def test_larger_penalties_give_fewer_edges(data):
    weak = data[:200]
    n_edges = [
        len(dsage.learn_graph(weak, score="bic", penalty=penalty).edges)
        for penalty in (0.1, 1.0, 5.0)
    ]
    assert n_edges[0] > n_edges[1] > n_edges[2]
    assert len(dsage.learn_graph(weak, score="ebic", gamma=0).edges) == n_edges[1]


@pytest.mark.parametrize("method", ["auto", "tabu", "hc", "boss"])
def test_constraints_hold_in_every_search(data, method):
    names = list(data.columns)
    # Against the truth: reverse an edge, forbid another, and cut the variables in two tiers.
    (tail, head), (other_tail, other_head) = MODEL.graph.edges[0], MODEL.graph.edges[-1]
    graph = dsage.learn_graph(
        data,
        method=method,
        required=[(head, tail)],
        forbidden=[(other_tail, other_head), (other_head, other_tail)],
        max_parents=3,
    )
    assert (head, tail) in graph.edges
    assert other_tail not in graph.parents(other_head)
    assert other_head not in graph.parents(other_tail)
    assert max(len(graph.parents(name)) for name in names) <= 3
    tiers = [names[:5], names[5:]]
    graph = dsage.learn_graph(data, method=method, tiers=tiers)
    assert not any(tail in tiers[1] and head in tiers[0] for tail, head in graph.edges)


def test_restarts_use_the_seed(data):
    options = {"method": "hc", "restarts": 3, "perturb": 5}
    one = search_graph(data, **options, random_state=1)
    assert one.to_frame()["kind"].str.startswith("perturb").any()
    again = search_graph(data, **options, random_state=1)
    assert [step[:3] for step in again.trace] == [step[:3] for step in one.trace]
    other = search_graph(data, **options, random_state=2)
    assert [step[:3] for step in other.trace] != [step[:3] for step in one.trace]


def test_discrete_and_mixed_data():
    rng = np.random.default_rng(0)
    cause = rng.integers(3, size=3000)
    copy = np.where(rng.random(3000) < 0.8, cause, rng.integers(3, size=3000))
    number = cause + rng.normal(size=3000)
    frame = pd.DataFrame(
        {"cause": cause, "copy": copy, "number": number, "noise": rng.normal(size=3000)}
    )
    classes = frame[["cause", "copy"]].astype("category")
    graph = dsage.learn_graph(classes)
    assert graph.edges in ((("cause", "copy"),), (("copy", "cause"),))
    assert dsage.learn_graph(Counts.from_frame(classes)) == dsage.learn_graph(classes, score="bic")
    mixed = dsage.learn_graph(frame, discrete=["cause", "copy"])
    assert ("cause", "number") in mixed.edges
    assert not mixed.parents("noise")
    assert not mixed.children("noise")


def test_normal_scores_help_with_skewed_data():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 400))
    frame = pd.DataFrame({"a": np.exp(3 * a), "b": np.exp(3 * (a + 3 * b))})
    assert dsage.learn_graph(frame, score="ebic").edges == ()
    assert len(dsage.learn_graph(frame, transform="rank").edges) == 1


class TestDegenerateColumns:
    @pytest.fixture
    def frame(self):
        rng = np.random.default_rng(0)
        a = rng.normal(size=500)
        b = a + rng.normal(size=500)
        c = b + rng.normal(size=500)
        return pd.DataFrame({"a": a, "b": b, "c": c})

    def test_a_constant_is_isolated_and_named(self, frame):
        frame["k"] = 3.0
        with pytest.warns(UserWarning, match="constant and stay isolated in the graph: 'k'"):
            graph = dsage.learn_graph(frame)
        assert graph.names == ("a", "b", "c", "k")
        assert graph.markov_blanket("k") == ()

    def test_copies_are_children_of_the_one_that_is_kept(self, frame):
        frame["b2"] = 5 - 2 * frame["b"]
        with pytest.warns(UserWarning, match="copies of 'b' .*: 'b2'"):
            graph = dsage.learn_graph(frame)
        assert graph.parents("b2") == ("b",)
        assert graph.children("b2") == ()
        # No separation is invented: without b its copy still tells about the others.
        assert not graph.is_separated("b2", "a")
        assert graph.is_separated("b2", "a", given="b")

    def test_the_kept_copy_respects_the_tiers(self, frame):
        frame.insert(0, "b2", 2 * frame["b"])
        with pytest.warns(UserWarning, match="copies of 'b' .*: 'b2'"):
            graph = dsage.learn_graph(frame, tiers=[["a", "b", "c"], ["b2"]])
        assert graph.parents("b2") == ("b",)

    def test_copies_between_which_no_edge_is_allowed_are_refused(self, frame):
        frame["b2"] = 2 * frame["b"]
        forbidden = [("b", "b2"), ("b2", "b")]
        with pytest.raises(
            ValueError, match=r"such that one of several copies .* got \['b', 'b2'\]"
        ):
            dsage.learn_graph(frame, forbidden=forbidden)

    def test_required_edges_of_columns_without_information_are_refused(self, frame):
        frame["k"] = 3.0
        with pytest.raises(ValueError, match=r"between columns that vary .* got \[\('a', 'k'\)\]"):
            dsage.learn_graph(frame, required=[("a", "k")])

    def test_linear_functions_of_others_are_named(self, frame):
        frame["sum"] = frame["a"] + frame["c"]
        with pytest.warns(UserWarning, match="is a linear function of"):
            graph = dsage.learn_graph(frame)
        assert graph.is_dag
        assert graph.markov_blanket("sum")

    def test_the_freest_copy_is_kept(self, frame):
        """Forbidden edges of one copy must not cut the others off."""
        frame["b2"] = 2 * frame["b"]
        forbidden = [("a", "b"), ("b", "a"), ("b", "c"), ("c", "b")]
        with pytest.warns(UserWarning, match="copies of 'b2'"):
            graph = dsage.learn_graph(frame, forbidden=forbidden)
        assert not graph.is_separated("a", "b2")
        assert not graph.is_separated("a", "b")

    def test_copies_with_different_freedom_are_refused(self, frame):
        frame["b2"] = 2 * frame["b"]
        forbidden = [("a", "b"), ("c", "b2")]
        with pytest.raises(ValueError, match=r"such that one of several copies .* \['b', 'b2'\]"):
            dsage.learn_graph(frame, forbidden=forbidden)

    def test_the_edge_to_a_copy_may_be_required(self, frame):
        frame["b2"] = 2 * frame["b"]
        with pytest.warns(UserWarning, match="copies of 'b'"):
            assert ("b", "b2") in dsage.learn_graph(frame, required=[("b", "b2")]).edges

    def test_classes_that_are_constant_or_copies(self):
        rng = np.random.default_rng(0)
        frame = pd.DataFrame({"a": rng.choice(list("xyz"), 300), "k": "same"})
        frame["a2"] = frame["a"].map({"x": "u", "y": "v", "z": "w"})
        frame["b"] = np.where(rng.random(300) < 0.8, frame["a"], "x")
        with pytest.warns(UserWarning, match="These columns") as caught:
            graph = dsage.learn_graph(frame)
        assert [str(warning.message)[:28] for warning in caught] == [
            "These columns are constant a",
            "These columns are copies of ",
        ]
        assert graph.parents("a2") == ("a",)
        assert graph.markov_blanket("k") == ()
        assert "b" in graph.markov_blanket("a")

    @pytest.mark.parametrize("is_mixed", [True, False])
    def test_identifiers_stay_isolated(self, is_mixed):
        frame = pd.DataFrame({"id": [f"row {i}" for i in range(200)], "a": list("xy") * 100})
        if is_mixed:
            frame["x"] = np.random.default_rng(0).normal(size=200)
        with pytest.warns(UserWarning, match="'id' occur too rarely .* it stays isolated") as told:
            graph = dsage.learn_graph(frame)
        assert graph.markov_blanket("id") == ()
        assert len(told) == 1

    def test_rare_categories_are_learned_from_as_one(self):
        rng = np.random.default_rng(0)
        a = rng.integers(0, 2, 400)
        often, rare = np.where(a == 0, "left", "right"), [f"odd {i}" for i in range(400)]
        b = np.where(rng.random(400) < 0.6, often, rare)
        frame = pd.DataFrame({"a": a.astype(str), "b": b})
        with pytest.warns(UserWarning, match="of 'b' .* fewer than 5 rows are merged into one"):
            assert dsage.learn_graph(frame).markov_blanket("b") == ("a",)
        with pytest.warns(UserWarning, match="merged into one"):
            found = stability(frame, 4, random_state=0)
        assert all(graph.markov_blanket("b") == ("a",) for graph in found.graphs)

    @pytest.mark.parametrize("score", ["auto", "bge"])
    def test_nothing_but_constants_is_an_empty_graph(self, score):
        with pytest.warns(UserWarning, match="constant"):
            graph = dsage.learn_graph(np.ones((10, 2)), score=score)
        assert graph == Graph(["X1", "X2"], [])

    def test_one_row_is_refused(self, frame):
        with pytest.raises(ValueError, match="data must be at least 2 rows; got 1"):
            dsage.learn_graph(frame[:1])

    @pytest.mark.filterwarnings("ignore")
    def test_two_rows_are_enough_for_a_graph(self, frame):
        assert dsage.learn_graph(frame[:2]).names == tuple(frame.columns)

    def test_collinear_columns_of_a_large_scale_bear_bge(self):
        rng = np.random.default_rng(0)
        frame = pd.DataFrame(rng.normal(size=(20_000, 3)) * 1e9, columns=list("abe"))
        frame["c"] = frame["a"] + frame["b"]
        frame["total"] = frame["c"] + frame["e"]
        with pytest.warns(UserWarning, match="linear function"):
            result = search_graph(frame, score="bge")
        assert np.isfinite(result.score)
        assert result.graph.is_dag

    def test_fewer_rows_than_columns(self):
        data = paper_graph("dag_m(3)").sample(30, random_state=0)
        with pytest.warns(UserWarning, match="There are 30 rows for 50 columns: too few"):
            graph = dsage.learn_graph(data)
        assert max(len(graph.parents(name)) for name in graph.names) <= 3

    def test_copies_in_mixed_data(self, frame):
        frame["b2"] = 2 * frame["b"]
        frame["group"] = np.where(frame["a"] > 0, "x", "y")
        with pytest.warns(UserWarning, match="copies of 'b'"):
            graph = dsage.learn_graph(frame)
        assert graph.parents("b2") == ("b",)


class TestOwnAlgorithm:
    def test_a_callable_is_given_the_data(self, data):
        seen = []

        def learn(frame):
            seen.append(frame)
            return nx.DiGraph([(name, MODEL.target) for name in frame if name != MODEL.target])

        graph = dsage.learn_graph(data, method=learn)
        assert seen[0] is data
        assert len(graph.parents(MODEL.target)) == 9

    def test_its_graph_must_be_over_the_columns(self, data):
        with pytest.raises(
            ValueError, match="a callable whose graph is over the columns of the data"
        ):
            dsage.learn_graph(data, method=lambda _: Graph(["a"], []))

    def test_options_do_not_go_with_it(self, data):
        with pytest.raises(
            ValueError,
            match=r"options must be left out with a callable; got \['max_parents', 'strict'\]",
        ):
            dsage.learn_graph(data, method=lambda _: MODEL.graph, max_parents=2, strict=True)
        assert dsage.learn_graph(data, method=lambda _: MODEL.graph, strict=False) == MODEL.graph

    def test_its_result_has_no_score(self, data):
        result = search_graph(data, method=lambda _: MODEL.graph)
        assert np.isnan(result.score)
        assert result.graph == MODEL.graph


def interrupting_bar(moves):
    """A progress bar at which the user presses Ctrl-C after some moves."""

    class Bar(tqdm):
        left = moves

        def update(self, n=1):
            Bar.left -= 1
            if Bar.left == 0:
                raise KeyboardInterrupt

    return Bar


@pytest.mark.interrupts
@pytest.mark.parametrize(("method", "moves"), [("tabu", 20), ("hc", 20), ("boss", 3), ("auto", 20)])
def test_an_interrupt_returns_the_best_graph_so_far(method, moves, monkeypatch):
    """Ctrl-C is raised where the user's key would raise it: somewhere between two moves."""
    data = Moments.from_frame(paper_graph("dag_m(4)").sample(1000, random_state=0))
    full = search_graph(data, method=method)
    monkeypatch.setattr("dsage.structure.learn.make_bar", interrupting_bar(moves))
    with pytest.warns(UserWarning, match="Interrupted after"):
        result = search_graph(data, method=method)
    assert result.interrupted
    assert len(result.trace) == moves
    assert result.graph.is_dag
    assert result.score < full.score
    assert result.score == pytest.approx(dsage.score_graph(result.graph, data), rel=1e-12)


@pytest.mark.interrupts
def test_auto_interrupted_in_its_second_phase_keeps_what_the_first_found(monkeypatch):
    data = Moments.from_frame(paper_graph("dag_m(4)").sample(1000, random_state=0))
    local = search_graph(data, method="tabu")
    monkeypatch.setattr("dsage.structure.learn.make_bar", interrupting_bar(len(local.trace) + 2))
    with pytest.warns(UserWarning, match="Interrupted after"):
        result = search_graph(data)
    assert local.score <= result.score < search_graph(data).score


def test_warnings_point_to_the_users_line(data):
    frame = data.assign(constant=1.0)
    for function in (dsage.learn_graph, search_graph):
        with pytest.warns(UserWarning, match="constant") as caught:
            function(frame, method="hc")
        assert caught[0].filename == __file__


def test_required_edges_that_the_score_forbids_are_refused():
    frame = pd.DataFrame({"x": np.arange(40.0), "c": list("uv") * 20})
    for method in ("auto", "tabu", "hc", "boss"):
        with pytest.raises(ValueError, match=r"required must be edges that the score allows"):
            dsage.learn_graph(frame, method=method, score="bic", required=[("x", "c")])


def test_required_edges_raise_the_default_bound_on_parents(data):
    required = [("X2", "X1"), ("X3", "X1")]
    graph = dsage.learn_graph(data[:15], required=required)
    assert set(required) <= set(graph.edges)


class TestPhases:
    """``auto`` is tabu, then BOSS, then BES; each phase leaves its mark on the trace."""

    def test_tabu_comes_first_and_goes_downhill_too(self):
        data = paper_graph("dag_m(4)").sample(1000, random_state=0)
        trace = search_graph(data).to_frame()
        local = trace[: trace["kind"].eq("move").idxmax()]
        assert set(local["kind"]) <= {"add", "delete", "reverse"}
        assert (local["delta"] < 0).any()

    def test_boss_moves_variables_and_bes_deletes_after_it(self):
        deletions = {"auto": 0, "boss": 0}
        for method, seed in product(deletions, range(4)):
            data = paper_graph("dag_m(4)").sample(300, random_state=seed)
            kinds = search_graph(data, method=method, score="bic").to_frame()["kind"].tolist()
            after = kinds[len(kinds) - kinds[::-1].index("move") :]
            assert set(after) <= {"delete"}
            deletions[method] += len(after)
        # After BOSS alone, deletions are rare: on some machines these samples have none.
        assert deletions["auto"] > 0

    def test_the_better_of_two_results_is_kept(self, data):
        better = search_graph(data, method="tabu")
        worse = search_graph(data, method="hc", max_iter=3)
        assert worse.score < better.score
        assert then(better, lambda: worse).graph == better.graph
        assert then(worse, lambda: better).graph == better.graph
        assert then(replace(worse, interrupted=True), lambda: better).graph == worse.graph


def test_progress_is_shown_on_request(data, capsys):
    dsage.learn_graph(data)
    assert capsys.readouterr().err == ""
    dsage.learn_graph(data, progress=True)
    assert "learning the graph (auto)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"method": "tabo"}, ValueError, r"method must be one of the methods; got 'tabo'\. Did you mean 'tabu'\?"),
        ({"score": "bik"}, ValueError, r"score must be one of the scores; got 'bik'\. Did you mean 'bic'\?"),
        ({"score": "k2"}, ValueError, "score must be one for continuous data; got 'k2'"),
        ({"strict": True, "score": "aic"}, ValueError, "strict must be left out with a score; got 'aic'"),
        ({"random_state": "0"}, TypeError, "random_state must be an int"),
        ({"metod": "tabu"}, ValueError, "each option must be one of the options of the method 'auto'; got 'metod'. Did you mean 'method'?"),
        ({"restarts": 3}, ValueError, "each option must be one of the options of the method 'auto'; got 'restarts'"),
        ({"method": "hc", "restart": 3}, ValueError, r"got 'restart'\. Did you mean 'restarts'\?"),
        ({"gamma": 2.0}, ValueError, r"gamma must be in \[0, 1\]; got 2"),
        ({"required": [("X1", "Z")]}, ValueError, "must be one of the variables; got 'Z'"),
        ({"max_parents": -1}, ValueError, "max_parents must be at least 0; got -1"),
        ({"transform": "log"}, ValueError, "transform must be one of the transforms; got 'log'"),
    ],
)  # fmt: skip
def test_bad_options_are_refused(data, options, error, text):
    with pytest.raises(error, match=text):
        dsage.learn_graph(data, **options)


def test_score_graph_refuses_what_does_not_fit(data):
    with pytest.raises(ValueError, match="over the variables of the data"):
        dsage.score_graph(Graph(["a"], []), data)
    with pytest.raises(ValueError, match="graph must be a DAG"):
        dsage.score_graph(Graph(data.columns, [("X1", "X2"), ("X2", "X1")]), data)
    with pytest.raises(ValueError, match=r"got 'gama'\. Did you mean 'gamma'\?"):
        dsage.score_graph(MODEL.graph, data, "ebic", gama=1.0)


def test_moments_leave_the_claims_about_a_target_untested(data):
    moments = Moments.from_frame(data)
    result = search_graph(moments, target=MODEL.target)
    assert result.rejections == ()
    assert result.graph == dsage.learn_graph(moments)


def test_a_constant_target_has_no_claims_to_test():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(200, 2)), columns=["a", "b"]).assign(y=1.0)
    with pytest.warns(UserWarning, match="y"):
        graph = dsage.learn_graph(frame, target="y", random_state=0)
    assert graph.names == ("a", "b", "y")
    assert not any("y" in edge for edge in graph.edges)


def test_few_rows_allow_one_parent_or_those_that_are_required():
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(29, 4)), columns=list("abcd"))
    for n_rows, most in ((5, 1), (19, 1), (20, 2), (29, 2)):
        made = _make_constraints(Moments.from_frame(frame[:n_rows]), (), (), None, None)
        assert made.max_parents == most
    required = [("a", "d"), ("b", "d"), ("c", "d"), ("a", "c")]
    made = _make_constraints(Moments.from_frame(frame), required, (), None, None)
    assert made.max_parents == 3
    given = _make_constraints(Moments.from_frame(frame), (), (), None, 3)
    assert given.max_parents == 3
