"""Resolve the `graph` argument of `explain`: learn the graph, or take the one given."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
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
from dsage.structure.by_callable import Learned, learn_by_callable
from dsage.structure.info import GraphInfo, GraphSource
from dsage.structure.knowledge import Knowledge
from dsage.structure.preview import preview_oracle
from dsage.structure.result import SearchResult
from dsage.structure.searches.base import METHODS

# The number of resamples that vote by default.
_RESAMPLES = 20
# Why marginal values need no graph.
_MARGINAL = (
    "marginal SAGE values do not vanish where the target is conditionally independent of a feature"
)
# Why SAGE values need none.
_PLAIN = "SAGE values are estimated fastest without one"
# With fewer columns, a graph is learned so fast that a preview does not pay off.
_MANY_COLUMNS = 20
# With fewer rows, graphs of halves are not informative.
_MIN_RESAMPLED_ROWS = 40


@dataclass(frozen=True, eq=False)
class GraphFound:
    """The separations to use, and how they were found.

    `is_asked` is whether the user asked for a graph: others are used only if they save work.
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
    """Return the graph or oracle of a run, for the `graph` argument of `explain`.

    `is_of_classes` is whether the target is a class, possibly written as a number; `is_marginal`
    whether the sampler ignores the known features, `is_plain` whether nothing may be skipped;
    `why_spare` returns, from rough separations, why no graph need be learned, if so. With
    `min_share`, only separations that this share of the graphs of resamples have are used. No graph
    is learned for a target of several columns. A learned graph has to agree with `knowledge`.
    A previous result is returned unchanged.
    """
    knowledge = knowledge or Knowledge()
    if isinstance(graph, GraphFound):
        return graph
    _check_options(graph, knowledge, min_share)
    is_asked = not (isinstance(graph, str) and graph == "auto")
    if not is_asked:
        why = _MARGINAL if is_marginal else _PLAIN
        is_open = n_resamples is None and min_share is None
        if is_marginal or (is_plain and is_open):
            return GraphFound(None, None, None, GraphInfo(GraphSource.NONE, why=why))
        is_costly = len(inputs.names) >= _MANY_COLUMNS and inputs.y_train.ndim == 1
        reason = why_spare(preview_oracle(inputs, seed)) if is_costly and is_open else None
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
    if not is_learned(graph):
        return _take(graph, inputs)
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


def is_learned(graph: object) -> bool:
    """Return whether an argument requests a learned graph: a name, or a function."""
    if isinstance(graph, str):
        names = tuple(dict.fromkeys(("auto", "learn", *METHODS)))
        check_member(graph, names, "graph", "the names of graphs")
        return True
    is_given = isinstance(graph, (Graph, Stability, nx.Graph)) or is_frame(graph)
    return callable(graph) and not is_given and not is_oracle(graph)


def check_target(graph: Graph | PartialGraph, inputs: Inputs) -> None:
    """Refuse a graph without the target."""
    if inputs.target not in graph:
        remedy = Text(["Name the target as in the graph, with ", Setting("target")])
        condition = f"one that has the target {inputs.target!r}"
        raise refusal("graph", condition, list(graph.names), remedy)


def refuse_knowledge(knowledge: Knowledge) -> None:
    """Refuse knowledge about a graph that is given."""
    if knowledge:
        advice = "They are about graphs that dsage learns: leave them out, or the graph"
        condition = "left out unless the graph is learned"
        given = [name for name, each in vars(knowledge).items() if each]
        raise refusal("tiers, forbidden and required", condition, given, advice)


def _check_options(graph: object, knowledge: Knowledge, min_share: float | None) -> None:
    """Refuse options of learning a graph together with a graph."""
    if not isinstance(graph, str):
        refuse_knowledge(knowledge)
    if min_share is None:
        return
    check_real(min_share, "min_share", low=0.0, high=1.0)
    if not (isinstance(graph, str) or callable(graph)):
        advice = "It is about graphs learned from resamples: let dsage learn the graph"
        raise refusal("min_share", "left out with a graph", min_share, advice)


def _take(graph: Any, inputs: Inputs) -> GraphFound:  # noqa: ANN401
    """Return the separations of a graph, a vote or an oracle that is given."""
    if isinstance(graph, Stability):
        info = GraphInfo(GraphSource.VOTE, n_graphs=len(graph.graphs))
        oracle: Oracle = graph.oracle(inputs.target, inputs.names)
        return GraphFound(oracle, None, graph.to_frame(), info)
    if is_oracle(graph) and not (isinstance(graph, (Graph, nx.Graph)) or is_frame(graph)):
        info = GraphInfo(GraphSource.GIVEN, kind=type(graph).__name__)
        return GraphFound(as_oracle(graph), None, None, info)
    found = as_graph(graph)
    check_target(found, inputs)
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
    table = inputs.training_table()
    rare: list[str] = []
    options: dict[str, Any] = {}
    if callable(method):
        learned = learn_by_callable(method, table, "graph")
        if isinstance(learned.graph, PartialGraph):
            return _partial(learned.graph, inputs, _record_partial(learned, n_resamples))
        result = learned.as_result("graph")
    else:
        rare = _rare_classes(table, inputs)
        searched = [*(name for name in inputs.names if name not in rare), inputs.target]
        discrete = (*inputs.discrete, inputs.target) if is_of_classes else inputs.discrete
        options["discrete"] = tuple(name for name in discrete if name not in rare)
        options |= {"target": inputs.target, **knowledge.options(searched)}
        table = Frame(table).select(searched)
        searching: dict[str, Any] = {"method": method, "random_state": seed, "progress": progress}
        result = _search(table, inputs, searched, options, searching)
    if result.interrupted:
        # An unfinished graph separates features that the finished one would not.
        raise KeyboardInterrupt
    again = None
    start = time.perf_counter()
    if is_resampled:
        options |= {"method": method, "random_state": seed, "progress": progress}
        again = stability(table, n_resamples, n_jobs=n_jobs, **options)
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
    strength = None if again is None else again.to_frame()
    return GraphFound(oracle, graph, strength, info, resampled=resampled)


def _record_partial(learned: Learned, n_resamples: int) -> GraphInfo:
    """Return the record of a learned graph that has circles; it is not learned again."""
    if n_resamples > 0:
        condition = "left out or 0 with a graph that has circles"
        advice = "Such graphs are not compared edge by edge; leave out min_share, too"
        raise refusal("n_resamples", condition, n_resamples, advice)
    return GraphInfo(
        GraphSource.LEARNED,
        kind="PartialGraph",
        method=learned.name,
        seconds=learned.seconds,
        n_resamples=0,
    )


def _search(
    table: Any,  # noqa: ANN401
    inputs: Inputs,
    columns: list[str],
    options: Mapping[str, Any],
    searching: Mapping[str, Any],
) -> SearchResult:
    """Search a graph in the training rows, or in all rows on disk if these are a sample of them."""
    if inputs.source is None:
        return search_graph(table, **searching, **options)
    every = Stream(inputs.source, columns, discrete=options["discrete"])
    others = {name: each for name, each in options.items() if name != "discrete"}
    return search_graph(every, **searching, **others)


def _rare_classes(table: Any, inputs: Inputs) -> list[str]:  # noqa: ANN401
    """Return the classes with so few rows per category that a graph would merge some; warn of them.

    Merging categories might hide how the target depends on the class.
    """
    columns = Table(table, discrete=inputs.discrete)
    for at in np.flatnonzero(inputs.layout.n_categories):
        columns.codes(inputs.names[at])
    names = list(columns.merged)
    if names:
        start = f"Column {names[0]!r} has" if len(names) == 1 else f"Columns {shown(names)} have"
        warn(
            f"{start} hardly any category that occurs twice: what depends on them cannot be "
            "learned, and the graph never separates them from the target."
        )
    return names


def _with_rare(graph: Graph, rare: list[str], inputs: Inputs) -> Graph:
    """Return the graph with the classes that could not be searched as causes of the target."""
    if not rare:
        return graph
    searched = [name for name in graph.names if name not in inputs.names]
    edges = [*graph.edges, *((name, inputs.target) for name in rare)]
    return Graph([*inputs.names, *searched], edges, graph.bidirected, graph.indicators)
