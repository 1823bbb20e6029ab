"""Read graphs of other libraries, and write graphs for people and programs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import networkx as nx
import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse

from dsage._check import check_names, check_shape, refusal
from dsage._files import DAMAGES, check_path, read_json, write_bytes
from dsage.data.frames import is_frame, square_matrix
from dsage.graphs.orientation import orient

NamedEdge = tuple[str, str]
Marks = tuple[str, str]

_FORMAT = "dsage.graph"
_VERSION = 1
# The ends of edges as causal-learn draws them.
_STARTS = {"TAIL": "-", "ARROW": "<", "CIRCLE": "o"}
_STOPS = {"TAIL": "-", "ARROW": ">", "CIRCLE": "o"}
# The attribute of an indicator in networkx.
_INDICATES = "indicates"


class Parts(NamedTuple):
    """Nodes and edges of a graph, and its indicators of missing values."""

    names: tuple[str, ...]
    edges: Sequence[NamedEdge]
    bidirected: Sequence[NamedEdge]
    indicators: Mapping[str, Sequence[str]] = MappingProxyType({})


def from_adjacency(matrix: Any, names: Iterable[str] | None) -> Parts:  # noqa: ANN401
    """Read a square array or data frame in which a non-zero entry [i, j] means i -> j."""
    values: npt.NDArray[Any]
    given = None if names is None else tuple(names)
    if is_frame(matrix):
        values, checked = square_matrix(matrix)
        if given is not None and given != checked:
            condition = f"left out or the columns of the data frame, {checked!r}"
            raise refusal("names", condition, given, "Leave them out")
    else:
        values = matrix.toarray() if issparse(matrix) else np.asarray(matrix)
        if given is None:
            raise refusal("names", "given for an array", None, "Name the nodes in order")
        checked = check_names(given)
    shape = (len(checked), len(checked))
    check_shape(values, shape, "matrix", "Pass one row and one column per name")
    _check_entries(values, checked)
    tails, heads = np.nonzero(values)
    edges = [(checked[i], checked[j]) for i, j in zip(tails, heads, strict=True)]
    return Parts(checked, edges, ())


def _check_entries(values: npt.NDArray[Any], names: tuple[str, ...]) -> None:
    if values.dtype.kind not in "biuf":
        raise refusal("matrix", "numbers or booleans", str(values.dtype), "Use 0 for no edge")
    if not np.isfinite(values).all():
        at = tuple(names[place] for place in np.argwhere(~np.isfinite(values))[0])
        raise refusal("matrix", "finite", at, "Use 0 for no edge")
    joined = values != 0
    marks = set(np.unique(values).tolist())
    if (joined == joined.T).all() and -1 in marks and marks <= {-1, 0, 1, 2}:
        advice = "For causal-learn's marks of ends, pass its graph to Graph.from_causal_learn"
        raise refusal("matrix", "non-zero at [i, j] for i -> j", sorted(marks), advice)


def from_networkx(graph: Any) -> Parts:  # noqa: ANN401
    """Read a networkx ``DiGraph``: see :meth:`dsage.Graph.from_networkx`."""
    if not isinstance(graph, nx.DiGraph) or graph.is_multigraph():
        condition = "a networkx.DiGraph without parallel edges"
        advice = "Convert it, or build a dsage.Graph from its edges"
        raise refusal("graph", condition, type(graph).__name__, advice, TypeError)
    nodes = list(graph.nodes)
    names = dict(zip(nodes, check_names([str(node) for node in nodes], "nodes"), strict=True))
    if hasattr(graph, "undirected_edges"):  # pgmpy's PDAG keeps them as two directed edges
        edges = orient(
            names.values(),
            [(names[tail], names[head]) for tail, head in graph.directed_edges],
            [(names[one], names[other]) for one, other in graph.undirected_edges],
        )
    else:
        edges = {(names[tail], names[head]) for tail, head in graph.edges()}
    latent = {names[node] for node in getattr(graph, "latents", ())}
    latent |= {names[node] for node, mark in graph.nodes(data="latent") if mark is True}
    parts = _remove_latent(tuple(names.values()), edges, latent)
    marked = graph.nodes(data=_INDICATES)
    indicated = {names[node]: tuple(map(str, mark)) for node, mark in marked if mark is not None}
    return parts._replace(indicators=indicated)


def _remove_latent(names: tuple[str, ...], edges: set[NamedEdge], latent: set[str]) -> Parts:
    bidirected: list[NamedEdge] = []
    for name in latent:
        if any(head == name for _, head in edges):
            advice = "Make it an ordinary node and leave it out of the oracle's features"
            raise refusal("a latent node", "without parents", name, advice)
        bidirected += combinations([head for tail, head in sorted(edges) if tail == name], 2)
    observed = tuple(name for name in names if name not in latent)
    kept = sorted(edge for edge in edges if edge[0] not in latent)
    return Parts(observed, kept, bidirected)


def to_networkx(parts: Parts) -> Any:  # noqa: ANN401
    """Write a networkx ``DiGraph``; a bidirected edge becomes a node with ``latent=True``."""
    graph = nx.DiGraph()
    graph.add_nodes_from(parts.names)
    for name, nodes in parts.indicators.items():
        graph.nodes[name][_INDICATES] = tuple(nodes)
    graph.add_edges_from(parts.edges)
    for one, other in parts.bidirected:
        latent = f"{one} <-> {other}"
        while latent in graph:
            latent += "'"
        graph.add_node(latent, latent=True)
        graph.add_edges_from([(latent, one), (latent, other)])
    return graph


def general_graph(result: Any) -> Any:  # noqa: ANN401
    """Return the ``GeneralGraph`` in a result of causal-learn, or None.

    PC returns an object with the graph as ``G``, GES a dict, FCI a tuple that starts with it.
    """
    if isinstance(result, dict):
        result = result.get("G")
    elif isinstance(result, tuple) and result:
        result = result[0]
    graph = getattr(result, "G", result)
    is_one = hasattr(graph, "get_nodes") and hasattr(graph, "get_graph_edges")
    return graph if is_one else None


def marked_edges(result: Any) -> tuple[tuple[str, ...], list[tuple[NamedEdge, Marks]]]:  # noqa: ANN401
    """Return nodes and edges of a graph or a result of causal-learn, with the marks of the ends.

    The marks are causal-learn's: ``"TAIL"``, ``"ARROW"`` or ``"CIRCLE"``.
    """
    graph = general_graph(result)
    if graph is None:
        condition = "a causal-learn GeneralGraph, or a result of PC, GES or FCI"
        advice = "Pass its GeneralGraph"
        raise refusal("graph", condition, type(result).__name__, advice, TypeError)
    names = check_names([node.get_name() for node in graph.get_nodes()], "nodes")
    edges = []
    for edge in graph.get_graph_edges():
        pair = (edge.get_node1().get_name(), edge.get_node2().get_name())
        ends = (edge.get_endpoint1().name, edge.get_endpoint2().name)
        if not {*ends} <= {"TAIL", "ARROW", "CIRCLE"}:
            advice = "Draw one edge between two nodes"
            raise refusal("each end of an edge", "a tail, arrow or circle", str(edge), advice)
        edges.append((pair, ends))
    return names, edges


def has_circles(result: Any) -> bool:  # noqa: ANN401
    """Return whether a graph or a result of causal-learn has an edge with a circle."""
    return any("CIRCLE" in ends for _, ends in marked_edges(result)[1])


def from_causal_learn(result: Any) -> Parts:  # noqa: ANN401
    """Read a graph or a result of causal-learn: see :meth:`dsage.Graph.from_causal_learn`."""
    names, marked = marked_edges(result)
    known = (("TAIL", "ARROW"), ("ARROW", "ARROW"), ("TAIL", "TAIL"))
    kinds: dict[Marks, list[NamedEdge]] = {ends: [] for ends in known}
    for pair, ends in marked:
        if "CIRCLE" in ends:
            drawn = f"{pair[0]} {_STARTS[ends[0]]}-{_STOPS[ends[1]]} {pair[1]}"
            advice = (
                "A circle is an unknown end: read the graph with dsage.graphs.as_graph, and pass "
                "that as graph= to explain"
            )
            raise refusal("each edge", "-->, <-> or ---", drawn, advice)
        if ends == ("ARROW", "TAIL"):
            kinds["TAIL", "ARROW"].append(pair[::-1])
        else:
            kinds[ends].append(pair)
    both = kinds["ARROW", "ARROW"]
    edges = orient(names, kinds["TAIL", "ARROW"], kinds["TAIL", "TAIL"], both)
    return Parts(names, sorted(edges), both)


def to_dot(parts: Parts, target: str | None) -> str:
    """Write the graph in Graphviz's DOT language; the target, if given, is filled."""

    def quote(name: str) -> str:
        return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'

    lines = ["digraph {"]
    for name in parts.names:
        style = " [style=filled]" if name == target else ""
        lines.append(f"  {quote(name)}{style};")
    lines += [f"  {quote(tail)} -> {quote(head)};" for tail, head in parts.edges]
    lines += [
        f"  {quote(one)} -> {quote(other)} [dir=both, style=dashed];"
        for one, other in parts.bidirected
    ]
    return "\n".join([*lines, "}"]) + "\n"


def save(parts: Parts, path: str | Path) -> None:
    """Write the graph as JSON."""
    content = {"format": _FORMAT, "version": _VERSION, **parts._asdict()}
    if not parts.indicators:
        del content["indicators"]
    text = json.dumps(content, indent=1, ensure_ascii=False)
    write_bytes(check_path(path), (text + "\n").encode("utf-8", errors="backslashreplace"))


def load(path: str | Path) -> Parts:
    """Read the JSON that :func:`save` wrote."""
    at = ("path", "a graph saved by dsage", str(path))
    try:
        content = read_json(Path(path).read_bytes())
    except ValueError as error:
        raise refusal(*at, f"It is not JSON: {error}") from error
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        raise refusal(*at, "It contains something else")
    if (version := content.get("version")) != _VERSION:
        advice = "Read it with the version of dsage that wrote it, or update dsage"
        raise refusal("path", f"a graph of format version {_VERSION}", version, advice)
    try:
        return Parts(
            check_names(content["names"]),
            [(tail, head) for tail, head in content["edges"]],
            [(one, other) for one, other in content["bidirected"]],
            {name: tuple(nodes) for name, nodes in content.get("indicators", {}).items()},
        )
    except DAMAGES as error:
        raise refusal(*at, f"It is damaged: {error}") from error
