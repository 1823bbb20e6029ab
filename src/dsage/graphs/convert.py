"""Convert graphs of other libraries."""

from __future__ import annotations

from typing import Any

import networkx as nx

from dsage._check import refusal
from dsage.data.frames import is_frame
from dsage.graphs.equivalence import CPDAG
from dsage.graphs.graph import Graph
from dsage.graphs.interchange import general_graph, has_circles
from dsage.graphs.partial import PartialGraph


def as_graph(graph: Graph | PartialGraph | Any) -> Graph | PartialGraph:  # noqa: ANN401
    """Convert a graph of any known kind to a :class:`Graph`, or to a :class:`PartialGraph`.

    Parameters
    ----------
    graph : Graph, PartialGraph, CPDAG, networkx.DiGraph, pgmpy DAG or PDAG, causal-learn graph, \
    or data frame
        A CPDAG becomes one of its DAGs, a data frame is an adjacency matrix.

    Returns
    -------
    Graph or PartialGraph
        A partial graph if an edge of a causal-learn graph has a circle, as in the results of FCI;
        partial graphs themselves are returned as they are.

    Examples
    --------
    >>> as_graph(nx.DiGraph([("a", "b")]))
    Graph(2 nodes, 1 edge: a -> b)
    """
    if isinstance(graph, (Graph, PartialGraph)):
        return graph
    if isinstance(graph, CPDAG):
        return graph.to_dag()
    if isinstance(graph, nx.Graph):
        return Graph.from_networkx(graph)
    if general_graph(graph) is not None:
        kind = PartialGraph if has_circles(graph) else Graph
        return kind.from_causal_learn(graph)
    if is_frame(graph):
        return Graph.from_adjacency(graph)
    condition = "a dsage.Graph, CPDAG, networkx.DiGraph, causal-learn graph or adjacency data frame"
    advice = "Build a dsage.Graph(names, edges)"
    raise refusal("graph", condition, type(graph).__name__, advice, TypeError)
