"""Graphs that a user's function learns from the data."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from dsage._check import check_same_names, refusal
from dsage.graphs import Graph, PartialGraph, as_graph
from dsage.structure.result import SearchResult
from dsage.structure.source import as_data


class Learned(NamedTuple):
    """The graph that a user's function learned."""

    graph: Graph | PartialGraph
    name: str
    seconds: float

    def as_result(self, parameter: str) -> SearchResult:
        """Return the result of a search, whose graph must not be partial."""
        if isinstance(self.graph, PartialGraph):
            advice = (
                "Pass the function as graph= to explain, or call it and read its result with "
                "dsage.graphs.as_graph"
            )
            condition = "a callable whose graph has no circles"
            raise refusal(parameter, condition, self.graph, advice)
        return SearchResult(
            self.graph, math.nan, (), 0, self.seconds, interrupted=False, method=self.name
        )


def learn_by_callable(
    learner: Callable[[Any], Any],
    data: Any,  # noqa: ANN401
    parameter: str = "method",
) -> Learned:
    """Return the graph that the user's function, passed as `parameter`, learns from the data."""
    began = time.perf_counter()
    made = learner(data)
    seconds = time.perf_counter() - began
    try:
        graph = as_graph(made)
    except TypeError as error:
        advice = "Return a dsage.Graph, or any graph that dsage.graphs.as_graph reads"
        condition = "a callable that returns a graph"
        raise refusal(parameter, condition, type(made).__name__, advice, TypeError) from error
    names = as_data(data, complete=False).names
    condition = "a callable whose graph is over the columns of the data"
    check_same_names(graph.names, names, parameter, condition)
    if isinstance(graph, Graph):
        graph = Graph(names, graph.edges, graph.bidirected)
    return Learned(graph, getattr(learner, "__name__", type(learner).__name__), seconds)
