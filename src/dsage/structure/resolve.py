"""What separates features from the target: a graph by name, learned, or an object."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import networkx as nx
import pandas as pd

from dsage._check import Choice, check_count, check_member, refusal
from dsage.data.inputs import Inputs
from dsage.data.layout import is_frame
from dsage.graphs import Graph, NoSeparation, Oracle, as_graph, as_oracle, is_oracle
from dsage.structure import Stability, search_graph, stability
from dsage.structure.learn import METHODS

# Resamples of the rows that tell how sure each edge is, and for how many columns they are cheap:
# scores of mixed data read the rows again for each family.
_RESAMPLES, _CHEAP_COLUMNS, _CHEAP_MIXED = 20, 100, 12
_METHOD_WORDS = {
    "auto": "auto: tabu, then best order score search, then backward equivalence search",
    "boss": "boss: best order score search, then backward equivalence search",
}
# Halves of fewer rows tell nothing of a graph.
_RESAMPLED_ROWS = 40


@dataclass(frozen=True, eq=False)
class GraphFound:
    """What separates, and how it was found.

    Attributes
    ----------
    oracle : Oracle or None
        None where nothing is separated.
    graph : Graph or None
        Its graph, where it has one.
    strength : pandas.DataFrame or None
        How often each edge was found again.
    described : dict
        For the record.
    """

    oracle: Oracle | None
    graph: Graph | None
    strength: pd.DataFrame | None
    described: dict[str, Choice]


def find_graph(
    graph: Any,  # noqa: ANN401
    inputs: Inputs,
    *,
    is_of_classes: bool,
    n_resamples: int | None,
    n_jobs: int | None,
    seed: int,
    progress: bool,
) -> GraphFound:
    """Return what separates features from the target.

    Parameters
    ----------
    graph : str, Graph, other graph, Stability, Oracle or None
        ``"learn"``, the name of a method, an object, or None for nothing.
    inputs : Inputs
        The rows.
    is_of_classes : bool
        Whether the target is a class, also where it is written as a number.
    n_resamples : int or None
        From how many resamples to learn again; None for 20, or none where many columns make that
        slow.
    n_jobs, seed, progress
        Of learning.
    """
    if graph is None or isinstance(graph, NoSeparation):
        return GraphFound(None, None, None, {"source": "none: nothing is skipped"})
    if isinstance(graph, str):
        names = ("learn", *METHODS)
        method = check_member(graph, names, "graph", "the names of graphs")
        return _learned(
            "auto" if method == "learn" else method,
            inputs,
            is_of_classes=is_of_classes,
            n_resamples=n_resamples,
            n_jobs=n_jobs,
            seed=seed,
            progress=progress,
        )
    if isinstance(graph, Stability):
        oracle: Oracle = graph.oracle(inputs.target, inputs.names)
        described: dict[str, Choice] = {"source": f"given: a vote of {len(graph.graphs)} graphs"}
        return GraphFound(oracle, None, graph.to_frame(), described)
    if is_oracle(graph) and not _is_graph(graph):
        return GraphFound(
            as_oracle(graph), None, None, {"source": f"given: {type(graph).__name__}"}
        )
    found = as_graph(graph)
    if inputs.target not in found:
        raise refusal(
            "graph",
            f"one that has the target {inputs.target!r}",
            list(found.names),
            "Name the target as in the graph, with target=",
        )
    kind = "dsage.Graph" if isinstance(graph, Graph) else type(graph).__name__
    described = {"source": f"given: {kind}", **_blanket(found, inputs.target)}
    return GraphFound(found.oracle(inputs.target, inputs.names), found, None, described)


def _is_graph(graph: object) -> bool:
    return isinstance(graph, (Graph, nx.Graph)) or is_frame(graph)


def _learned(
    method: str,
    inputs: Inputs,
    *,
    is_of_classes: bool,
    n_resamples: int | None,
    n_jobs: int | None,
    seed: int,
    progress: bool,
) -> GraphFound:
    table = inputs.training_table()
    discrete = (*inputs.discrete, inputs.target) if is_of_classes else inputs.discrete
    result = search_graph(
        table, method=method, discrete=discrete, random_state=seed, progress=progress
    )
    if result.interrupted:
        # Half a graph separates what the whole one would not.
        raise KeyboardInterrupt
    if n_resamples is None:
        n_discrete = int((inputs.layout.n_categories > 0).sum()) + is_of_classes
        is_mixed = 0 < n_discrete <= len(inputs.names)
        n_cheap = _CHEAP_MIXED if is_mixed else _CHEAP_COLUMNS
        n_resamples = _RESAMPLES if len(inputs.names) < n_cheap else 0
    n_resamples = check_count(n_resamples, "n_resamples", minimum=0)
    strength, n_learned = None, 0
    start = time.perf_counter()
    if n_resamples and len(inputs.y_train) >= _RESAMPLED_ROWS:
        again = stability(
            table,
            n_resamples,
            method=method,
            discrete=discrete,
            n_jobs=n_jobs,
            random_state=seed,
            progress=progress,
        )
        strength, n_learned = again.to_frame(), len(again.graphs)
    described: dict[str, Choice] = {
        "source": "learned from the training rows",
        "method": _METHOD_WORDS.get(method, method),
        "score": result.score_name,
        "score_value": result.score,
        **_blanket(result.graph, inputs.target),
        "seconds": result.seconds,
        "resamples": n_learned,
        "resampling_seconds": time.perf_counter() - start,
    }
    oracle = result.graph.oracle(inputs.target, inputs.names)
    return GraphFound(oracle, result.graph, strength, described)


def _blanket(graph: Graph, target: str) -> dict[str, Choice]:
    return {
        "edges": len(graph.edges) + len(graph.bidirected),
        "markov_blanket": ", ".join(graph.markov_blanket(target)) or "empty",
    }
