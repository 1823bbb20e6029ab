"""Resolve the `graph` argument for causal values: the graph, and others that data cannot rule out.

Data determine a graph only up to its Markov equivalence class. Causal values depend on the
directions that the class leaves open, so they are computed for several of its members.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dsage._check import Setting, Text, refusal, shown
from dsage._random import Streams
from dsage.data.inputs import Inputs
from dsage.graphs import CPDAG, Graph, NoSeparation, cpdag, is_oracle
from dsage.graphs.class_members import ClassMembers
from dsage.graphs.interventions import Interventions
from dsage.graphs.partial import PartialGraph
from dsage.structure.info import GraphInfo, GraphSource
from dsage.structure.knowledge import Knowledge
from dsage.structure.resolve import GraphFound, find_graph
from dsage.structure.stability import Stability

# Maximum numbers: of members of a class whose values are computed, in addition to the graph itself;
# of members that are drawn to find some that agree with prior knowledge; of graphs of resamples.
_MOST_MEMBERS, _TRIALS, _MOST_RESAMPLES = 12, 400, 12
# Classes are counted, and listed, up to this size.
_COUNTED = 10_000


@dataclass(frozen=True, eq=False)
class Alternative:
    """A graph that the data do not rule out.

    `share` is its share among graphs of the same kind. `is_resampled` is true for graphs learned
    from resamples of the rows, and false for members of the equivalence class.
    """

    graph: Graph
    share: float
    is_resampled: bool = False


@dataclass(frozen=True, eq=False)
class CausesFound(GraphFound):
    """A graph of causes: `alternatives` to it, and the number of members of its class, if any.

    The shares of the members leave the rest to the graph itself.
    """

    alternatives: tuple[Alternative, ...] = ()
    n_members: int | None = None


def find_causes(
    graph: Any,  # noqa: ANN401
    inputs: Inputs,
    *,
    is_of_classes: bool,
    knowledge: Knowledge,
    n_resamples: int | None,
    min_share: float | None,
    n_jobs: int | None,
    seed: int,
    progress: bool,
) -> CausesFound:
    """Return the graph of causes for the `graph` argument of `explain`, with its alternatives.

    A given graph is used unchanged. A :class:`~dsage.graphs.CPDAG` represents its class, and so
    does a graph that is learned here.
    """
    if isinstance(graph, CausesFound):
        return graph
    _check_kind(graph, min_share)
    rng = Streams(seed)("members-of-the-class")
    if isinstance(graph, CPDAG):
        _check_given(graph.names, inputs)
        chosen, others, n_members = _find_members(graph, None, inputs, knowledge, rng)
        info = GraphInfo(GraphSource.GIVEN, kind="CPDAG", n_edges=len(chosen.edges))
        return CausesFound(
            None, chosen, None, _used(info, chosen, inputs), True, (), others, n_members
        )
    is_searched = isinstance(graph, str)
    if is_searched and inputs.y_train.ndim != 1:
        advice = "A graph is learned for one target: pass one, or explain one target at a time"
        raise refusal("graph", "given if the target has several columns", graph, advice)
    found = find_graph(
        "learn" if is_searched and graph == "auto" else graph,
        inputs,
        is_of_classes=is_of_classes,
        n_resamples=n_resamples,
        n_jobs=n_jobs,
        seed=seed,
        progress=progress,
        knowledge=knowledge,
    )
    if found.graph is None:
        advice = "The directions of its edges are not known: pass a Graph, or a CPDAG"
        raise refusal("graph", "one with directed edges for causal values", graph, advice)
    chosen = _join_indicators(found.graph)
    alternatives: tuple[Alternative, ...] = ()
    n_members = None
    if is_searched and chosen.is_dag:
        chosen, alternatives, n_members = _find_members(
            cpdag(chosen), chosen, inputs, knowledge, rng
        )
    alternatives += _resampled(found.resampled, knowledge, rng)
    # Errors about the graph are raised before anything is estimated.
    info = _used(found.info, chosen, inputs)
    return CausesFound(
        None, chosen, found.strength, info, True, found.resampled, alternatives, n_members
    )


def _used(info: GraphInfo, graph: Graph, inputs: Inputs) -> GraphInfo:
    """Return the record of a graph whose interventions are identified; refuse others."""
    _interventions(graph, inputs)
    return replace(info, is_used=True)


def _check_kind(graph: Any, min_share: float | None) -> None:  # noqa: ANN401
    condition = "a graph for causal values"
    learn = Setting("graph", "learn")
    if graph is None or isinstance(graph, NoSeparation):
        advice = Text(["Causal effects depend on it: pass one, or learn one with ", learn])
        raise refusal("graph", condition, graph, advice)
    is_graph = isinstance(graph, (Graph, CPDAG, PartialGraph, str))
    if isinstance(graph, Stability) or (is_oracle(graph) and not is_graph):
        why = "Separations do not distinguish causes from effects"
        advice = Text([f"{why}: pass a graph, or ", learn])
        raise refusal("graph", condition, type(graph).__name__, advice)
    if isinstance(graph, PartialGraph):
        remedy = "Not all of its directions are known: pass a Graph without circles"
        raise refusal("graph", condition, type(graph).__name__, remedy)
    if min_share is not None:
        remedy = "It is about separations, which causal values do not use"
        raise refusal("min_share", "left out for causal values", min_share, remedy)


def _check_given(names: tuple[str, ...], inputs: Inputs) -> None:
    if inputs.target not in names:
        remedy = Text(["Name the target as in the graph, with ", Setting("target")])
        condition = f"one that has the target {inputs.target!r}"
        raise refusal("graph", condition, list(names), remedy)


def _interventions(graph: Graph, inputs: Inputs) -> Interventions:
    target = inputs.target if inputs.target in graph else None
    return Interventions(graph, inputs.names, target)


def needs_target(found: CausesFound, inputs: Inputs) -> bool:
    """Return whether features depend on the target, in one of the graphs."""
    graphs = [found.graph, *(each.graph for each in found.alternatives)]
    made = [_interventions(graph, inputs) for graph in graphs if graph is not None]
    return any(each.target is not None for each in made)


def _find_members(
    equivalent: CPDAG,
    chosen: Graph | None,
    inputs: Inputs,
    knowledge: Knowledge,
    rng: np.random.Generator,
) -> tuple[Graph, tuple[Alternative, ...], int | None]:
    """Return a member of a class, other members with their shares, and the number of members.

    Members that differ only in ways that do not affect the features count as one. The number is
    None if members had to be drawn to find those that agree with prior knowledge.
    """
    members = ClassMembers(equivalent)
    n_members: int | None = members.n_members
    if n_members is not None and n_members <= (_COUNTED if knowledge else _MOST_MEMBERS):
        allowed = [each for each in members if knowledge.allows(each)]
        n_members = len(allowed)
    else:
        drawn = (members.draw(rng) for _ in range(_TRIALS if knowledge else _MOST_MEMBERS))
        allowed = [each for each in drawn if knowledge.allows(each)]
        n_members = None if knowledge else n_members
    if chosen is None:
        if not allowed:
            advice = "No member of the class agrees with the tiers, forbidden and required edges"
            raise refusal("graph", "one that agrees with what is known", equivalent, advice)
        chosen = allowed[0]
    if len(allowed) > _MOST_MEMBERS:
        some = rng.choice(len(allowed), _MOST_MEMBERS, replace=False)
        allowed = [allowed[at] for at in sorted(some)]
    own = _interventions(chosen, inputs).mechanisms
    kinds: dict[Any, tuple[Graph, int]] = {}
    for each in allowed:
        key = frozenset(_interventions(each, inputs).mechanisms)
        if key != frozenset(own):
            kinds[key] = each, kinds.get(key, (each, 0))[1] + 1
    others = tuple(Alternative(graph, count / len(allowed)) for graph, count in kinds.values())
    return chosen, others, n_members


def _resampled(
    graphs: tuple[Graph, ...], knowledge: Knowledge, rng: np.random.Generator
) -> tuple[Alternative, ...]:
    """Return a member of the class of each graph that was learned from a resample."""
    found = []
    for graph in graphs[:_MOST_RESAMPLES]:
        joined = _join_indicators(graph)
        members = ClassMembers(cpdag(joined))
        drawn = (members.draw(rng) for _ in range(_TRIALS))
        member = next((each for each in drawn if knowledge.allows(each)), joined)
        found.append(Alternative(member, 1 / len(graphs[:_MOST_RESAMPLES]), is_resampled=True))
    return tuple(found)


def _join_indicators(graph: Graph) -> Graph:
    """Return the graph with indicators of missing values as parts of their features.

    A feature that can be missing is one variable under interventions. Edges of the indicator become
    edges of the features, unless they would close a cycle.
    """
    if not graph.indicators:
        return graph
    owners = {name: [each for each in of if each in graph] for name, of in graph.indicators.items()}
    names = [name for name in graph.names if name not in owners]
    edges = [edge for edge in graph.edges if not set(edge) & set(owners)]
    for tail, head in graph.edges:
        if tail not in owners and head not in owners:
            continue
        for one in owners.get(tail, [tail]):
            for other in owners.get(head, [head]):
                is_new = one != other and (one, other) not in edges
                if is_new and Graph(names, [*edges, (one, other)]).is_acyclic:
                    edges.append((one, other))
    both = [pair for pair in graph.bidirected if not set(pair) & set(owners)]
    return Graph(names, edges, both)


def describe_graph(found: CausesFound) -> str:
    """Return a sentence about undetermined directions; empty if there are none."""
    members = [each for each in found.alternatives if not each.is_resampled]
    if not members:
        return ""
    graph = found.graph
    open_ = [] if graph is None else _open_edges(graph, members)
    return f"the data do not determine the directions of {shown(open_)}"


def _open_edges(graph: Graph, members: list[Alternative]) -> list[str]:
    edges = set(graph.edges)
    differing = {edge for edge in edges for each in members if edge not in each.graph.edges}
    return [f"{one} - {other}" for one, other in sorted(differing)]
