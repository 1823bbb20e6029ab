"""Searches in several phases: the order of the variables, then the class of equivalent DAGs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from dsage.graphs import Graph
from dsage.structure.constraints import Constraints, graph_of
from dsage.structure.result import SearchResult
from dsage.structure.scores.base import Parents, Score
from dsage.structure.searches.additions import add_edges
from dsage.structure.searches.base import METHODS, Callback
from dsage.structure.searches.bes import bes
from dsage.structure.searches.boss import boss
from dsage.structure.searches.grow_shrink import GrowShrink
from dsage.structure.searches.local import tabu

# Steps of BOSS for each variable, if they are slow. Sparse graphs need 20 to 70; only dense ones,
# in which hardly anything is separated, would need more. With a bounded reach, they need 5 to 22.
_STEPS_PER_NODE, _WITH_REACH = 80, 25


@METHODS.register(
    "auto",
    summary="tabu, then best order score search, then backward equivalence search",
    options=("tabu", "max_tabu", "max_passes"),
)
def tabu_boss_bes(
    score: Score,
    constraints: Constraints,
    *,
    max_passes: int | None = None,
    callback: Callback | None = None,
    **options: Any,  # noqa: ANN401
) -> SearchResult:
    """Improve the order of a tabu search by BOSS, then delete superfluous edges by BES.

    The tabu search uses the rough score. The number of steps of BOSS is bounded if the score is
    approximate: its steps are slow. If another edge then raises the score, BOSS and BES start
    again from there, with the steps that are left.
    """
    rough = score.rough()
    local = tabu(rough, constraints, callback=callback, **options)
    near = score if local.interrupted else score.near(_parents(local.graph, score.names))
    if near is not rough:
        # Scores of different kinds cannot be compared.
        local = replace(local, score=-math.inf)
    n_nodes = len(score.names)
    n_steps = n_nodes * (_STEPS_PER_NODE if near.reach is None else _WITH_REACH)
    trees: list[GrowShrink] = []

    def improve(start: SearchResult) -> SearchResult:
        ordered = then(
            start,
            lambda: boss(
                near,
                constraints,
                start.graph.topological_order(),
                max_passes=max_passes,
                max_steps=n_steps if near.is_approximate else None,
                trees=trees,
                callback=callback,
            ),
        )
        return then(ordered, lambda: bes(near, ordered.graph, constraints, callback=callback))

    found = improve(local)
    if near.is_approximate:
        before = found.graph
        found = then(found, lambda: add_edges(near, before, constraints, callback=callback))
        if len(found.graph.edges) > len(before.edges):
            found = improve(found)
    return found if found.interrupted else _with_overlooked(found, near, constraints)


def _with_overlooked(found: SearchResult, score: Score, constraints: Constraints) -> SearchResult:
    """Add the edges that the score overlooks; its own value is lower with them."""
    names = score.names
    place = {name: node for node, name in enumerate(names)}
    order = [place[name] for name in found.graph.topological_order()]
    before = _parents(found.graph, names)
    after = score.overlooked(before, order, constraints.allowed, constraints.max_parents)
    if after == before:
        return found
    value = math.fsum(score.family(*family) for family in enumerate(after))
    return replace(found, graph=graph_of(names, after), score=value)


def _parents(graph: Graph, names: Sequence[str]) -> list[Parents]:
    place = {name: node for node, name in enumerate(names)}
    return [tuple(sorted(place[parent] for parent in graph.parents(name))) for name in names]


@METHODS.register(
    "boss",
    summary="best order score search, then backward equivalence search",
    options=("max_passes",),
)
def boss_bes(
    score: Score,
    constraints: Constraints,
    *,
    max_passes: int | None = None,
    callback: Callback | None = None,
) -> SearchResult:
    """Search from the order of the columns by BOSS, then delete superfluous edges by BES."""
    found = boss(score, constraints, max_passes=max_passes, callback=callback)
    return then(found, lambda: bes(score, found.graph, constraints, callback=callback))


def then(first: SearchResult, search: Callable[[], SearchResult]) -> SearchResult:
    """Run another search unless the first was interrupted; join their traces."""
    if first.interrupted:
        return first
    second = search()
    shifted = (step._replace(seconds=first.seconds + step.seconds) for step in second.trace)
    return replace(
        second if second.score >= first.score else first,
        trace=(*first.trace, *shifted),
        n_scored=first.n_scored + second.n_scored,
        seconds=first.seconds + second.seconds,
        interrupted=second.interrupted,
    )
