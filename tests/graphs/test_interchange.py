import itertools
import json
import warnings
from types import MappingProxyType, SimpleNamespace

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.sparse import coo_array

from dsage import Graph
from dsage.graphs import as_graph, cpdag, markov_equivalent
from given import random_graph


@pytest.fixture(params=range(12))
def graph(request):
    rng = np.random.default_rng(request.param)
    return random_graph(rng, 6, directed=0.4, bidirected=0.3, cyclic=request.param % 2 == 1)


def test_json_gives_the_same_graph_back(graph, tmp_path):
    graph.save(tmp_path / "graph.json")
    again = Graph.load(tmp_path / "graph.json")
    assert again == graph
    assert again.names == graph.names


def test_networkx_gives_the_same_graph_back(graph):
    assert Graph.from_networkx(graph.to_networkx()) == graph


def test_adjacency_gives_the_same_graph_back(graph):
    frame = graph.to_adjacency()
    assert Graph.from_adjacency(frame, bidirected=graph.bidirected) == graph
    again = Graph.from_adjacency(frame.to_numpy(), graph.names, graph.bidirected)
    assert again == graph
    assert again.names == graph.names


def test_entry_i_j_means_from_i_to_j():
    assert Graph.from_adjacency([[0, 2.5], [0, 0]], ["a", "b"]).edges == (("a", "b"),)
    assert Graph(["a", "b"], [("a", "b")]).to_adjacency().loc["a", "b"]


def test_adjacency_frames_of_pandas_polars_and_pyarrow():
    columns = {"a": [0, 0], "b": [1, 0]}
    expected = Graph(["a", "b"], [("a", "b")])
    assert Graph.from_adjacency(pd.DataFrame(columns)) == expected
    assert Graph.from_adjacency(pl.DataFrame(columns)) == expected
    assert Graph.from_adjacency(pa.table(columns)) == expected


def test_rows_of_a_labelled_frame_are_matched_by_name():
    frame = pd.DataFrame({"a": [0, 0], "b": [0, 1]}, index=["b", "a"])
    assert Graph.from_adjacency(frame).edges == (("a", "b"),)


def test_sparse_matrices_and_generators_are_taken():
    matrix = coo_array(([1], ([0], [1])), shape=(2, 2))
    assert Graph.from_adjacency(matrix, iter("ab")) == Graph(["a", "b"], [("a", "b")])


def test_a_lazy_frame_is_refused():
    with pytest.raises(TypeError, match=r"the data frame must be eager; got 'LazyFrame'"):
        Graph.from_adjacency(pl.LazyFrame({"a": [0]}))


@pytest.mark.parametrize(
    "graph",
    [
        Graph(["a", "b", "a <-> b"], [("a", "a <-> b")], [("a", "b")]),
        Graph(["a", "b <-> c", "a <-> b", "c"], [], [("a", "b <-> c"), ("a <-> b", "c")]),
    ],
)
def test_names_of_latent_nodes_never_collide(graph):
    assert Graph.from_networkx(graph.to_networkx()) == graph


def test_a_graph_of_networkx_with_other_labels_gets_strings():
    assert Graph.from_networkx(nx.DiGraph([(0, 1)])) == Graph(["0", "1"], [("0", "1")])
    with pytest.raises(ValueError, match="nodes must be distinct; got '0'"):
        Graph.from_networkx(nx.DiGraph([(0, "0")]))


def test_latent_common_causes_become_bidirected_edges():
    source = nx.DiGraph([("u", "a"), ("u", "b"), ("u", "c"), ("a", "b")])
    source.nodes["u"]["latent"] = True
    expected = Graph(list("abc"), [("a", "b")], [("a", "b"), ("a", "c"), ("b", "c")])
    assert Graph.from_networkx(source) == expected


def test_a_latent_node_with_parents_is_refused():
    source = nx.DiGraph([("a", "u"), ("u", "b")])
    source.nodes["u"]["latent"] = True
    with pytest.raises(ValueError, match="a latent node must be without parents; got 'u'"):
        Graph.from_networkx(source)


@pytest.mark.parametrize("source", [nx.Graph([(0, 1)]), nx.MultiDiGraph([(0, 1)]), [("a", "b")]])
def test_other_kinds_of_networkx_graphs_are_refused(source):
    with pytest.raises(
        TypeError, match=r"graph must be a networkx\.DiGraph without parallel edges"
    ):
        Graph.from_networkx(source)


def test_dot_quotes_names_and_marks_the_target():
    dot = Graph(['say "a"', "b\\c"], [('say "a"', "b\\c")], [('say "a"', "b\\c")]).to_dot('say "a"')
    assert '"say \\"a\\"" [style=filled];' in dot
    assert '"say \\"a\\"" -> "b\\\\c";' in dot
    assert "[dir=both, style=dashed];" in dot
    with pytest.raises(ValueError, match="target must be one of the nodes of the graph; got 'z'"):
        Graph(["a"], []).to_dot("z")


@pytest.mark.parametrize(
    ("matrix", "names", "text"),
    [
        ([[0, 1], [0, 0]], None, "names must be given for an array"),
        ([[0, 1, 0], [0, 0, 1]], ["a", "b"], r"matrix must be of shape \(2, 2\); got \(2, 3\)"),
        ([[0, np.nan], [0, 0]], ["a", "b"], r"matrix must be finite; got \('a', 'b'\)"),
        ([["", "x"], ["", ""]], ["a", "b"], "matrix must be numbers or booleans"),
        ([[0, -1], [1, 0]], ["a", "b"], "causal-learn's marks of ends, .* Graph.from_causal_learn"),
        ([[1, 0], [0, 0]], ["a", "b"], r"edges must be of two different names; got \('a', 'a'\)"),
        (pd.DataFrame({"a": [0, 0]}), None, "the adjacency data frame must be square"),
        (
            pd.DataFrame({"a": [0, 0], "b": [0, 0]}, index=["a", "c"]),
            None,
            r"the index of the adjacency data frame must be the same as its columns; got \['b', 'c'\]",
        ),
        (pd.DataFrame({"a": [0, 0], "b": [0, 0]}), ["a", "c"], "names must be left out or the columns"),
    ],
)  # fmt: skip
def test_bad_adjacencies_are_refused(matrix, names, text):
    with pytest.raises(ValueError, match=text):
        Graph.from_adjacency(matrix, names)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("{", "It is not JSON"),
        ("[]", "It contains something else"),
        ('{"format": "other"}', "It contains something else"),
        ('{"format": "dsage.graph", "version": 2}', "format version 1; got 2"),
        ('{"format": "dsage.graph", "version": 1, "names": ["a"]}', "It is damaged: 'edges'"),
        (
            '{"format": "dsage.graph", "version": 1, "names": "ab", "edges": [], "bidirected": []}',
            "It is damaged: names must be",
        ),
        (
            '{"format": "dsage.graph", "version": 1, "names": [], "edges": [["a"]], "bidirected": []}',
            "It is damaged",
        ),
    ],
)
def test_damaged_and_foreign_files_are_refused(content, text, tmp_path):
    path = tmp_path / "graph.json"
    path.write_text(content)
    with pytest.raises(ValueError, match=text):
        Graph.load(path)


def test_saved_files_are_plain_json(tmp_path):
    Graph(["ä", "b"], [("ä", "b")]).save(tmp_path / "graph.json")
    text = (tmp_path / "graph.json").read_text(encoding="utf-8")
    assert "ä" in text
    assert json.loads(text)["edges"] == [["ä", "b"]]


def test_as_graph_takes_every_kind():
    graph = Graph(["a", "b"], [("a", "b")])
    assert as_graph(graph) is graph
    assert as_graph(graph.to_networkx()) == graph
    assert as_graph(graph.to_adjacency()) == graph
    assert as_graph(cpdag(Graph(list("abc"), [("a", "c"), ("b", "c")]))).parents("c") == ("a", "b")
    with pytest.raises(TypeError, match=r"graph must be a dsage\.Graph, CPDAG, .* got 'list'"):
        as_graph([("a", "b")])


def imported(module):
    """Import a learner's module, whose own warnings are not ours; skip where it is missing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip(module, reason=f"{module} is not installed")


class TestPgmpy:
    @pytest.fixture
    def base(self):
        return imported("pgmpy.base")

    def test_dag_with_latents(self, base):
        source = base.DAG([("a", "b"), ("u", "a"), ("u", "b")], latents={"u"})
        assert as_graph(source) == Graph(["a", "b"], [("a", "b")], [("a", "b")])

    def test_undirected_edges_of_a_pdag_are_oriented(self, base):
        source = base.PDAG(directed_ebunch=[("a", "c"), ("b", "c")], undirected_ebunch=[("c", "d")])
        # c - d alone would allow d -> c, a new v-structure.
        assert as_graph(source) == Graph(list("abcd"), [("a", "c"), ("b", "c"), ("c", "d")])

    def test_what_a_search_returns_is_read(self):
        X = np.random.default_rng(0).normal(size=(2000, 3))
        X[:, 2] += X[:, 0] + X[:, 1]
        frame = pd.DataFrame(X, columns=list("abc"))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            search = imported("pgmpy.estimators").HillClimbSearch(frame)
            found = search.estimate(scoring_method="bic-g", show_progress=False)
        assert found.edges()
        assert as_graph(found) == Graph(list("abc"), found.edges())


class TestCausalLearn:
    @pytest.fixture
    def build(self):
        Edge = imported("causallearn.graph.Edge").Edge
        Endpoint = imported("causallearn.graph.Endpoint").Endpoint
        GeneralGraph = imported("causallearn.graph.GeneralGraph").GeneralGraph
        GraphNode = imported("causallearn.graph.GraphNode").GraphNode
        ends = {"-": Endpoint.TAIL, ">": Endpoint.ARROW, "<": Endpoint.ARROW, "o": Endpoint.CIRCLE}

        def build(names, edges):
            nodes = {name: GraphNode(name) for name in names}
            graph = GeneralGraph(list(nodes.values()))
            for one, mark, other in edges:
                graph.add_edge(Edge(nodes[one], nodes[other], ends[mark[0]], ends[mark[-1]]))
            return graph

        return build

    def test_directed_and_bidirected_edges(self, build):
        source = build("abc", [("a", "-->", "b"), ("b", "<->", "c"), ("a", "<--", "c")])
        assert as_graph(source) == Graph(list("abc"), [("a", "b"), ("c", "a")], [("b", "c")])

    def test_a_cpdag_becomes_a_member_of_its_class(self, build):
        source = build("abcd", [("a", "---", "b"), ("b", "---", "c"), ("c", "---", "d")])
        chain = Graph(list("abcd"), [("a", "b"), ("b", "c"), ("c", "d")])
        assert markov_equivalent(Graph.from_causal_learn(source), chain)

    @pytest.mark.parametrize("order", ["abc", "cba", "bca"])
    def test_undirected_edges_beside_bidirected_ones_make_no_new_collider(self, build, order):
        source = build(order, [("a", "---", "b"), ("b", "<->", "c")])
        assert Graph.from_causal_learn(source) == Graph(list("abc"), [("b", "a")], [("b", "c")])

    def test_a_cycle_stays(self, build):
        source = build("abc", [("a", "-->", "b"), ("b", "-->", "c"), ("c", "-->", "a")])
        assert not Graph.from_causal_learn(source).is_acyclic

    @pytest.mark.parametrize("learner", ["PC", "GES"])
    def test_what_a_search_returns_is_read(self, learner):
        """Three variables, a collider: every learner finds it at this sample size."""
        X = np.random.default_rng(0).normal(size=(2000, 3))
        X[:, 2] += X[:, 0] + X[:, 1]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if learner == "PC":
                found = imported("causallearn.search.ConstraintBased.PC").pc(X, show_progress=False)
            else:
                found = imported("causallearn.search.ScoreBased.GES").ges(X)
        expected = Graph(["X1", "X2", "X3"], [("X1", "X3"), ("X2", "X3")])
        assert as_graph(found) == expected

    def test_a_circle_is_refused(self, build):
        with pytest.raises(ValueError, match="each edge must be -->, <-> or ---; got 'a o-> b'"):
            Graph.from_causal_learn(build("ab", [("a", "o->", "b")]))

    def test_contradictory_undirected_edges_are_refused(self, build):
        square = [("a", "---", "b"), ("b", "---", "c"), ("c", "---", "d"), ("d", "---", "a")]
        with pytest.raises(ValueError, match="graph must be extendable to a DAG"):
            Graph.from_causal_learn(build("abcd", square))

    def test_something_else_is_refused(self):
        with pytest.raises(
            TypeError, match=r"graph must be a causal-learn GeneralGraph, .* got 'dict'"
        ):
            Graph.from_causal_learn({})


@pytest.mark.parametrize(
    ("matrix", "is_read"),
    [
        ([[0, 1], [1, 0]], True),  # a cycle of two
        ([[0, -1], [0, 0]], True),  # a negative weight
        ([[0, -1], [3, 0]], True),  # weights of a cycle
        ([[0, -1], [2, 0]], False),
        ([[0, -1], [-1, 0]], False),
        ([[0, -1, 0], [1, 0, 2], [0, 1, 0]], False),  # all the marks
        ([[0, -1, 2], [1, 0, 0], [0, 0, 0]], True),
        ([[0, 0.5], [-1, 0]], True),
    ],
)
def test_marks_of_ends_are_symmetric_and_have_minus_one(matrix, is_read):
    names = list("abc")[: len(matrix)]
    if is_read:
        rows, columns = np.nonzero(matrix)
        edges = [(names[i], names[j]) for i, j in zip(rows, columns, strict=True)]
        assert Graph.from_adjacency(matrix, names) == Graph(names, edges)
    else:
        with pytest.raises(ValueError, match="causal-learn's marks"):
            Graph.from_adjacency(matrix, names)


@pytest.mark.parametrize("kind", [bool, np.uint8, np.int64, np.float32])
def test_entries_are_numbers_or_booleans_of_any_type(kind):
    matrix = np.array([[0, 1], [0, 0]]).astype(kind)
    assert Graph.from_adjacency(matrix, ["a", "b"]).edges == (("a", "b"),)


def test_infinite_entries_are_refused_too():
    with pytest.raises(ValueError, match=r"finite; got \('b', 'a'\)"):
        Graph.from_adjacency([[0, 1], [np.inf, 0]], ["a", "b"])


def test_names_of_a_frame_may_be_repeated():
    frame = Graph(["a", "b"], [("a", "b")]).to_adjacency()
    assert Graph.from_adjacency(frame, ["a", "b"]).edges == (("a", "b"),)


class Drawn:
    """The members of causal-learn's graphs that are read."""

    _ENDS = MappingProxyType({"-": "TAIL", "<": "ARROW", ">": "ARROW", "o": "CIRCLE", "*": "STAR"})

    def __init__(self, names, edges):
        self._names, self._edges = names, edges

    @staticmethod
    def _node(name):
        return SimpleNamespace(get_name=lambda: name)

    def get_nodes(self):
        return list(map(self._node, self._names))

    def get_graph_edges(self):
        return list(itertools.starmap(self._edge, self._edges))

    def _edge(self, one, drawn, other):
        nodes = self._node(one), self._node(other)
        ends = [SimpleNamespace(name=self._ENDS[mark]) for mark in (drawn[0], drawn[2])]
        return SimpleNamespace(
            get_node1=lambda: nodes[0],
            get_node2=lambda: nodes[1],
            get_endpoint1=lambda: ends[0],
            get_endpoint2=lambda: ends[1],
        )


EDGES = [("a", "-->", "b"), ("c", "<--", "b"), ("a", "<->", "c"), ("c", "---", "d")]


@pytest.mark.parametrize(
    "wrap",
    [
        lambda graph: graph,
        lambda graph: {"G": graph, "score": 1.0},
        lambda graph: (graph, []),
        lambda graph: SimpleNamespace(G=graph),
        lambda graph: (SimpleNamespace(G=graph), []),
    ],
)
def test_results_of_learners_are_unwrapped(wrap):
    names = list("abcd")
    expected = Graph(names, [("a", "b"), ("b", "c"), ("c", "d")], [("a", "c")])
    assert as_graph(wrap(Drawn(names, EDGES))) == expected
    partial = as_graph(wrap(Drawn(names, [("a", "o->", "b"), ("c", "o-o", "d")])))
    assert partial.edges == (("a", "o->", "b"), ("c", "o-o", "d"))


@pytest.mark.parametrize("something", [(), {}, {"G": 3}, (3,), SimpleNamespace(G=None), "graph"])
def test_what_has_no_graph_is_refused(something):
    with pytest.raises(TypeError, match="causal-learn GeneralGraph"):
        Graph.from_causal_learn(something)
    with pytest.raises(TypeError, match=r"graph must be a dsage\.Graph, CPDAG"):
        as_graph(something)


def test_other_ends_are_refused():
    with pytest.raises(ValueError, match="each end of an edge must be a tail, arrow or circle"):
        Graph.from_causal_learn(Drawn(["a", "b"], [("a", "*->", "b")]))
    with pytest.raises(ValueError, match="got 'a <-o b'"):
        Graph.from_causal_learn(Drawn(["a", "b"], [("a", "<-o", "b")]))


def test_a_file_holds_names_edges_and_bidirected_edges_in_order(tmp_path):
    path = tmp_path / "graph.json"
    Graph(["b", "a"], [("b", "a")], [("a", "b")]).save(path)
    content = json.loads(path.read_text(encoding="utf-8"))
    assert content == {
        "format": "dsage.graph",
        "version": 1,
        "names": ["b", "a"],
        "edges": [["b", "a"]],
        "bidirected": [["b", "a"]],
    }


def test_names_that_are_no_unicode_are_written_too(tmp_path):
    path = tmp_path / "graph.json"
    Graph(["a\udc80", "ä"], []).save(path)
    assert Graph.load(path).names == ("a\udc80", "ä")
