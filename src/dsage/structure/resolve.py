"""Resolve the `graph` argument of `explain`: learn the graph, or take the one given."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd

from dsage._check import Setting, Text, check_count, check_member, check_real, refusal, shown, warn
from dsage.data.frames import Frame, is_frame
from dsage.data.inputs import Inputs
from dsage.data.stream import Stream
from dsage.data.table import Table
from dsage.graphs import (
    Graph,
    NoSeparation,
    Oracle,
    PartialGraph,
    as_graph,
    as_oracle,
    is_oracle,
)
from dsage.structure import Stability, search_graph, stability
from dsage.structure.info import GraphInfo, GraphSource
from dsage.structure.knowledge import Knowledge
from dsage.structure.learn import learn_by_callable
from dsage.structure.preview import preview_oracle
from dsage.structure.searches.base import METHODS

# The number of resamples that vote by default.
_RESAMPLES = 20
# Why marginal values need no graph.
_MARGINAL = (
    "marginal SAGE values do not vanish where the target is conditionally independent of a feature"
)
# Why SAGE values need none.
_PLAIN = "SAGE values are estimated fastest without one"
# With fewer columns, a graph is learned faster than it is worth to look at the table before.
_MANY_COLUMNS = 20
# With fewer rows, graphs of halves are not informative.
_MIN_RESAMPLED_ROWS = 40


@dataclass(frozen=True, eq=False)
class GraphFound:
    """The separations to use, and how they were found.

    `is_asked` is whether the user asked for a graph: others are used only where they save work.
    """

    oracle: Oracle | None  # None if nothing is separated
    graph: Graph | None  # None for oracles, votes and partial graphs
    strength: pd.DataFrame | None  # how often each edge was found in resamples
    info: GraphInfo
    is_asked: bool = True
    resampled: tuple[Graph, ...] = ()  # graphs of resamples, if there were any


def find_graph(
    graph: Any,  # noqa: ANN401
    inputs: Inputs,
    *,
    is_of_classes: bool,
    is_marginal: bool = False,
    is_plain: bool = False,
    why_spare: Callable[[Oracle], str | None] = lambda _: None,
    n_resamples: int | None,
    min_share: float | None = None,
    n_jobs: int | None,
    seed: int,
    progress: bool,
    knowledge: Knowledge | None = None,
) -> GraphFound:
    """Return what separates features from the target, for the `graph` argument of `explain`.

    `is_of_classes` is whether the target is a class, possibly written as a number; `is_marginal`
    whether the sampler ignores what is known, `is_plain` whether nothing may be skipped;
    `why_spare` tells from rough separations why no graph need be learned, if none need be. With
    `min_share`, only separations that this share of the graphs of resamples have are used. No graph
    is learned for a target of several columns. `knowledge` is what a learned graph has to agree
    with. What was found before is returned as it is.
    """
    knowledge = knowledge or Knowledge()
    if isinstance(graph, GraphFound):
        return graph
    is_asked = not (isinstance(graph, str) and graph == "auto")
    if knowledge and not isinstance(graph, str):
        advice = "They are about graphs that dsage learns: leave them out, or the graph"
        condition = "left out unless the graph is learned"
        given = [name for name, each in vars(knowledge).items() if each]
        raise refusal("tiers, forbidden and required", condition, given, advice)
    if min_share is not None:
        check_real(min_share, "min_share", low=0.0, high=1.0)
        if not (isinstance(graph, str) or callable(graph)):
            advice = "It is about graphs learned from resamples: let dsage learn the graph"
            raise refusal("min_share", "left out with a graph", min_share, advice)
    if isinstance(graph, str) and graph == "auto":
        why = _MARGINAL if is_marginal else _PLAIN
        if is_marginal or (is_plain and n_resamples is None and min_share is None):
            return GraphFound(None, None, None, GraphInfo(GraphSource.NONE, why=why))
        is_costly = len(inputs.names) >= _MANY_COLUMNS and inputs.y_train.ndim == 1
        if is_costly and n_resamples is None and min_share is None:
            reason = why_spare(preview_oracle(inputs, seed))
            if reason is not None:
                info = GraphInfo(GraphSource.NONE, is_used=False, why=reason)
                return GraphFound(None, None, None, info)
        graph = "learn"
    if isinstance(graph, str) and graph == "learn" and inputs.y_train.ndim == 2:
        text = (
            f"The target has {inputs.y_train.shape[1]} columns, and a graph is learned for one "
            "target: no graph is used, and nothing is skipped. To learn one, explain one column "
            "at a time; to silence this, pass graph=None."
        )
        warn(text)
        graph = None
    if graph is None or isinstance(graph, NoSeparation):
        return GraphFound(None, None, None, GraphInfo(GraphSource.NONE))
    if is_marginal:
        text = (
            f"A graph is combined with a marginal sampler, but {_MARGINAL}: skipping changes them."
        )
        warn(f"{text} Use no graph, or a conditional sampler.")
    if isinstance(graph, Stability):
        info = GraphInfo(GraphSource.VOTE, n_graphs=len(graph.graphs))
        oracle: Oracle = graph.oracle(inputs.target, inputs.names)
        return GraphFound(oracle, None, graph.to_frame(), info)
    is_graph = isinstance(graph, (Graph, nx.Graph)) or is_frame(graph)
    if is_oracle(graph) and not is_graph:
        info = GraphInfo(GraphSource.GIVEN, kind=type(graph).__name__)
        return GraphFound(as_oracle(graph), None, None, info)
    if isinstance(graph, str) or (callable(graph) and not is_graph):
        if isinstance(graph, str):
            check_member(
                graph,
                tuple(dict.fromkeys(("auto", "learn", *METHODS))),
                "graph",
                "the names of graphs",
            )
        learned = _learn(
            "auto" if graph == "learn" else graph,
            inputs,
            is_of_classes=is_of_classes,
            n_resamples=n_resamples,
            min_share=min_share,
            n_jobs=n_jobs,
            seed=seed,
            progress=progress,
            knowledge=knowledge,
        )
        return replace(learned, is_asked=is_asked)
    found = as_graph(graph)
    if inputs.target not in found:
        remedy = Text(["Name the target as in the graph, with ", Setting("target")])
        condition = f"one that has the target {inputs.target!r}"
        raise refusal("graph", condition, list(found.names), remedy)
    if isinstance(found, PartialGraph):
        return _partial(found, inputs, GraphInfo(GraphSource.GIVEN, kind="PartialGraph"))
    info = GraphInfo(
        GraphSource.GIVEN,
        kind="dsage.Graph" if isinstance(graph, Graph) else type(graph).__name__,
        n_edges=len(found.edges) + len(found.bidirected),
        markov_blanket=found.markov_blanket(inputs.target),
    )
    return GraphFound(found.oracle(inputs.target, inputs.names), found, None, info)


def _partial(graph: PartialGraph, inputs: Inputs, info: GraphInfo) -> GraphFound:
    """Return the separations that all members of a partial graph share."""
    info = replace(
        info, n_edges=len(graph.edges), markov_blanket=graph.markov_blanket(inputs.target)
    )
    return GraphFound(graph.oracle(inputs.target, inputs.names), None, None, info)


def _learn(
    method: str | Callable[[Any], Any],
    inputs: Inputs,
    *,
    is_of_classes: bool,
    n_resamples: int | None,
    min_share: float | None,
    n_jobs: int | None,
    seed: int,
    progress: bool,
    knowledge: Knowledge,
) -> GraphFound:
    if n_resamples is None:
        n_resamples = 0 if min_share is None else _RESAMPLES
    n_resamples = check_count(n_resamples, "n_resamples", minimum=0 if min_share is None else 1)
    n_rows = len(inputs.y_train)
    is_resampled = n_resamples > 0 and (n_rows >= _MIN_RESAMPLED_ROWS or min_share is not None)
    table, rare = inputs.training_table(), list[str]()
    options: dict[str, Any] = {}
    if callable(method):
        learned = learn_by_callable(method, table, "graph")
        if isinstance(learned.graph, PartialGraph):
            if n_resamples > 0:
                condition = "left out or 0 with a graph that has circles"
                advice = "Such graphs are not compared edge by edge; leave out min_share, too"
                raise refusal("n_resamples", condition, n_resamples, advice)
            info = GraphInfo(
                GraphSource.LEARNED,
                kind="PartialGraph",
                method=learned.name,
                seconds=learned.seconds,
                n_resamples=0,
            )
            return _partial(learned.graph, inputs, info)
        result = learned.as_result("graph")
    else:
        discrete = (*inputs.discrete, inputs.target) if is_of_classes else inputs.discrete
        rare = _rare_classes(table, inputs)
        options["discrete"] = tuple(name for name in discrete if name not in rare)
        searched = [name for name in inputs.names if name not in rare]
        table = Frame(table).select([*searched, inputs.target])
        options["target"] = inputs.target
        options |= knowledge.options([*searched, inputs.target])
        searching: dict[str, Any] = {"method": method, "random_state": seed, "progress": progress}
        if inputs.source is None:
            result = search_graph(table, **searching, **options)
        else:
            columns = [*searched, inputs.target]
            every = Stream(inputs.source, columns, discrete=options["discrete"])
            others = {name: each for name, each in options.items() if name != "discrete"}
            result = search_graph(every, **searching, **others)
    if result.interrupted:
        # An unfinished graph separates features that the finished one would not.
        raise KeyboardInterrupt
    strength, again = None, None
    start = time.perf_counter()
    if is_resampled:
        again = stability(
            table,
            n_resamples,
            method=method,
            n_jobs=n_jobs,
            random_state=seed,
            progress=progress,
            **options,
        )
        strength = again.to_frame()
    graph = _with_rare(result.graph, rare, inputs)
    oracle: Oracle = graph.oracle(inputs.target, inputs.names)
    if again is not None and min_share is not None:
        voters = [_with_rare(each, rare, inputs) for each in (*again.graphs, graph)]
        oracle = Stability(tuple(voters)).oracle(inputs.target, inputs.names, share=min_share)
    info = GraphInfo(
        GraphSource.LEARNED,
        method=result.method,
        score=result.score_name or None,
        score_value=result.score if result.score_name else None,
        n_edges=len(graph.edges) + len(graph.bidirected),
        markov_blanket=graph.markov_blanket(inputs.target),
        seconds=result.seconds,
        n_resamples=0 if again is None else len(again.graphs),
        min_share=min_share,
        curved=result.curved,
        restored=tuple(f"{edge.tail} -> {edge.head}" for edge in result.rejections),
        resampling_seconds=time.perf_counter() - start,
    )
    resampled = () if again is None else tuple(_with_rare(g, rare, inputs) for g in again.graphs)
    return GraphFound(oracle, graph, strength, info, resampled=resampled)


def _rare_classes(table: Any, inputs: Inputs) -> list[str]:  # noqa: ANN401
    """Return the classes with so few rows a category that a graph would merge some; warn of them.

    Merged categories might hide what the class tells about the target.
    """
    columns = Table(table, discrete=inputs.discrete)
    for at in np.flatnonzero(inputs.layout.n_categories):
        columns.codes(inputs.names[at])
    names = list(columns.merged)
    if names:
        start = f"Column {names[0]!r} has" if len(names) == 1 else f"Columns {shown(names)} have"
        warn(
            f"{start} hardly any category that occurs twice: the graph cannot tell what depends on"
            " them, and never takes them for separated from the target."
        )
    return names


def _with_rare(graph: Graph, rare: list[str], inputs: Inputs) -> Graph:
    """Return the graph with the classes that could not be searched as causes of the target."""
    if not rare:
        return graph
    searched = [name for name in graph.names if name not in inputs.names]
    edges = [*graph.edges, *((name, inputs.target) for name in rare)]
    return Graph([*inputs.names, *searched], edges, graph.bidirected, graph.indicators)
