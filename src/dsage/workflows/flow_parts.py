"""The parts of a flow: the given or learned graph, and the values of its nodes."""

from __future__ import annotations

from typing import Any, NamedTuple

import networkx as nx
import numpy as np
import pandas as pd

from dsage._check import refusal, shown, warn
from dsage.data.inputs import Inputs
from dsage.data.kinds import Kind
from dsage.data.possible import Range
from dsage.data.targets import are_numbers
from dsage.flow import Network, fit_mechanisms
from dsage.flow.blocks import Column
from dsage.flow.mechanisms import Mechanism
from dsage.games.base import Floats
from dsage.graphs import CPDAG, Graph, PartialGraph, as_graph, cpdag, is_oracle
from dsage.graphs.interchange import general_graph, marked_edges
from dsage.structure import Stability
from dsage.structure.knowledge import Knowledge
from dsage.structure.resolve import check_target, find_graph, is_learned, refuse_knowledge

_ORDERED = (Kind.ORDERED_CLASS, Kind.CODES, Kind.BOOLEAN)
_DIRECT = "The direction of an edge decides what flows along it: direct these, or pass "


class Nodes(NamedTuple):
    """The mechanisms of the nodes of a network, and their values in the evaluation rows."""

    mechanisms: tuple[Mechanism, ...]
    values: Floats
    table: pd.DataFrame


def resolve_graph(
    graph: Any,  # noqa: ANN401
    inputs: Inputs,
    *,
    is_of_classes: bool,
    n_jobs: int | None,
    seed: int,
    progress: bool,
    knowledge: Knowledge,
) -> Graph:
    """Return the graph; if it is learned, warn of edges whose direction is undetermined."""
    if is_learned(graph):
        return _learn(
            graph,
            inputs,
            is_of_classes=is_of_classes,
            n_jobs=n_jobs,
            seed=seed,
            progress=progress,
            knowledge=knowledge,
        )
    refuse_knowledge(knowledge)
    is_other = graph is None or isinstance(graph, Stability)
    if is_other or (is_oracle(graph) and not isinstance(graph, (Graph, PartialGraph))):
        advice = "A flow needs directed edges: pass a dsage.Graph, or 'learn'"
        raise refusal("graph", "a graph", type(graph).__name__, advice, TypeError)
    if undirected := _find_undirected(graph):
        advice = f"{_DIRECT}dsage.graphs.as_graph(graph), which directs them in one possible way"
        raise refusal("graph", "one whose edges all have a direction", undirected, advice)
    found = as_graph(graph)
    if isinstance(found, PartialGraph):
        condition = "one without circles"
        advice = "Some directions of its edges are unknown: pass a dsage.Graph"
        raise refusal("graph", condition, found, advice, TypeError)
    check_target(found, inputs)
    return found


def _learn(
    method: Any,  # noqa: ANN401
    inputs: Inputs,
    *,
    is_of_classes: bool,
    n_jobs: int | None,
    seed: int,
    progress: bool,
    knowledge: Knowledge,
) -> Graph:
    found = find_graph(
        "learn" if isinstance(method, str) and method == "auto" else method,
        inputs,
        is_of_classes=is_of_classes,
        n_resamples=None,
        n_jobs=n_jobs,
        seed=seed,
        progress=progress,
        knowledge=knowledge,
    ).graph
    if found is None:
        condition = "one whose edges all have a direction"
        advice = "Some directions are unknown, or there are several targets: pass a dsage.Graph"
        raise refusal("graph", condition, "a learned graph without", advice)
    if pairs := _find_undecided(found, knowledge):
        warn(
            f"The data do not determine the direction of {len(pairs)} of the {len(found.edges)} "
            f"edges of the learned graph ({shown(pairs)}). One possible direction of each was "
            "chosen, and the flow depends on it: draw the graph from what you know, and pass it "
            "as graph=."
        )
    return found


def _find_undecided(graph: Graph, knowledge: Knowledge) -> list[str]:
    """Return the edges whose direction neither the data nor the prior knowledge determines."""
    if not graph.is_dag:
        return []
    members = cpdag(graph)
    open_ = [edge for edge in graph.edges if frozenset(edge) in members.undirected]
    return [
        f"{tail} - {head}"
        for tail, head in open_
        if knowledge.allows(Graph([tail, head], [(head, tail)]))
    ]


def _find_undirected(graph: Any) -> list[str]:  # noqa: ANN401
    """Return the undirected edges of a graph of another kind."""
    pairs: list[tuple[str, str]] = []
    if isinstance(graph, CPDAG):
        pairs = [(min(pair), max(pair)) for pair in graph.undirected]
    elif isinstance(graph, nx.DiGraph):
        pairs = list(getattr(graph, "undirected_edges", ()))
    elif general_graph(graph) is not None:
        pairs = [pair for pair, ends in marked_edges(graph)[1] if set(ends) == {"TAIL"}]
    return sorted(f"{one} - {other}" for one, other in pairs)


def fit_nodes(network: Network, inputs: Inputs, *, is_of_classes: bool) -> Nodes:
    """Learn the mechanisms of all nodes from the training rows."""
    layout = inputs.layout
    train, test = layout.encode(inputs.X_train), layout.encode(inputs.X_test)
    _check_rows(train, test, inputs)
    columns: list[Column] = []
    has_order: list[bool] = []
    whole: list[Range | None] = []
    values = np.empty((len(test), len(network.nodes)))
    for node, at in enumerate(network.columns):
        if at < 0:
            column, values[:, node] = _target_column(inputs, is_of_classes=is_of_classes)
            limits, kind = None, Kind.CLASS
        else:
            kind, limits = layout.value_kinds[at], layout.possible.columns.get(at)
            is_class = bool(layout.n_categories[at]) or kind in _ORDERED
            column, values[:, node] = Column(train[:, at], is_class), test[:, at]
        columns.append(column)
        has_order.append(kind in _ORDERED)
        whole.append(limits if isinstance(limits, Range) else None)
    made = fit_mechanisms(columns, network.parents, has_order=has_order, whole=whole)
    named = [[network.nodes[parent] for parent in parents] for parents in network.parents]
    table = pd.DataFrame(
        {
            "node": list(network.nodes),
            "parents": [", ".join(parents) for parents in named],
            "kind": [each.kind for each in made],
            "terms": [each.n_terms for each in made],
            "explained": [each.explained for each in made],
        }
    )
    return Nodes(made, values, table)


def _check_rows(train: Floats, test: Floats, inputs: Inputs) -> None:
    """Refuse evaluation rows with categories or gaps that never occur in training."""
    for at, name in enumerate(inputs.names):
        is_class = bool(inputs.layout.n_categories[at])
        is_new = np.isnan(test[:, at]) & ~np.isnan(train[:, at]).any()
        if is_class:
            is_new = ~np.isin(test[:, at], train[:, at])
        if is_new.any():
            what = "categories" if is_class else "missing values"
            condition = f"without {what} that X_train lacks, in column {name!r}"
            advice = "No mechanism learned from X_train produces them: leave these rows out"
            raise refusal(inputs.named[0], condition, f"{int(is_new.sum())} such rows", advice)


def _target_column(inputs: Inputs, *, is_of_classes: bool) -> tuple[Column, Floats]:
    """Return the target in training, and its values in the evaluation rows."""
    y, y_test = inputs.y_train, inputs.y_test
    if y.ndim != 1:
        condition = "one column if features descend from it in the graph"
        raise refusal("y_train", condition, y.shape, "Explain one column at a time")
    if not is_of_classes and are_numbers(y):
        return Column(y.astype(np.float64), False), y_test.astype(np.float64)
    index = pd.Index(pd.unique(pd.Series(y)))
    codes = index.get_indexer(pd.Index(y_test))
    if (codes < 0).any():
        condition = "of classes that occur in y_train, if features descend from the target"
        found = pd.Series(y_test)[codes < 0].iloc[0]
        raise refusal(inputs.named[1], condition, found, "Leave these rows out")
    return Column(index.get_indexer(pd.Index(y)).astype(np.float64), True), codes.astype(float)
