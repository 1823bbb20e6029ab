"""The steps of a run of causal values: the interventional sampler, and the range over graphs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

from dsage._check import refusal, warn
from dsage._random import Streams
from dsage.data.frames import Frame, is_frame
from dsage.data.inputs import Inputs
from dsage.data.layout import Layout
from dsage.estimate import Estimate, PlanOptions
from dsage.estimate.graph_range import GraphRange, OtherGame, range_over_graphs, warn_of_range
from dsage.games import Game
from dsage.graphs import Graph
from dsage.samplers.base import Sampler, check_sampler
from dsage.samplers.gaussian import Gaussian
from dsage.samplers.interventional import Interventional
from dsage.samplers.resolve import (
    Rival,
    SamplerFound,
    ScoringOptions,
    find_sampler,
    parse_sampler,
)
from dsage.structure.causes import Alternative, CausesFound, describe_graph, needs_target


def find_interventional(
    sampler: Any,  # noqa: ANN401
    found: CausesFound,
    inputs: Inputs,
    scoring: ScoringOptions,
    *,
    is_of_classes: bool,
    seed: int,
    progress: bool,
) -> SamplerFound:
    """Return the interventional sampler for the `sampler` argument and a causal graph.

    The sampler that draws each variable is chosen as for conditional values, from the features and,
    if features depend on it, the target.
    """
    if found.graph is None:
        raise refusal("graph", "a graph for causal values", None, "Pass one")
    if isinstance(sampler, SamplerFound) and isinstance(sampler.sampler, Interventional):
        return sampler
    if isinstance(sampler, Interventional) and sampler.is_fitted:
        if sampler.graph != found.graph:
            advice = "Leave out graph, or pass the sampler that draws each variable"
            raise refusal("sampler", "one for the graph that is passed", sampler.graph, advice)
        given = sampler
        sampler = given.sampler
    is_with_target = needs_target(found, inputs)
    table = _with_target(inputs, is_of_classes=is_of_classes) if is_with_target else inputs
    if is_with_target:
        # The model does not take the target, so only the draws themselves are scored.
        scoring = replace(scoring, predict=None, players=None)
    base = find_sampler(
        parse_sampler(sampler, table, seed=seed), table, scoring, seed=seed, progress=progress
    )
    if check_sampler(base.sampler).is_marginal:
        advice = "Marginal draws ignore causes and effects: use 'gaussian', 'mix' or another"
        raise refusal("sampler", "a conditional one for causal values", base.info.name, advice)
    graph = found.graph

    def wrap(inner: Sampler) -> Interventional:
        return Interventional(
            sampler=inner,
            graph=graph,
            target=inputs.target if is_with_target else None,
            is_class=is_with_target and is_of_classes,
            discrete=inputs.discrete,
            kinds=inputs.kinds,
            groups=inputs.groups,
        )

    inner = check_sampler(base.sampler)
    if base.unfitted is not None and not isinstance(inner, Gaussian):
        inner = base.unfitted
    fitted = wrap(inner).fit(inputs.X_train, inputs.y_train if is_with_target else None)
    rivals = tuple(Rival(each.name, wrap(each.sampler), each.is_better) for each in base.rivals)
    unfitted = None if base.unfitted is None else wrap(base.unfitted)
    return replace(base, sampler=fitted, rivals=rivals, unfitted=unfitted)


def _with_target(inputs: Inputs, *, is_of_classes: bool) -> Inputs:
    """Return the rows with the target as one more feature."""
    if inputs.y_train.ndim != 1:
        advice = "Features depend on the target: explain one column at a time"
        raise refusal("y_train", "of one column for causal values", inputs.y_train.shape, advice)
    names = None if is_frame(inputs.X_train) else inputs.names
    train = inputs.training_table()
    test = Frame(inputs.X_test, names).with_column(inputs.target, inputs.y_test)
    discrete = (*inputs.discrete, inputs.target) if is_of_classes else inputs.discrete
    layout = Layout.of(train, discrete=discrete, kinds=inputs.kinds, groups=inputs.groups)
    return replace(
        inputs,
        X_train=train,
        X_test=test,
        layout=layout.extend(test),
        discrete=layout.numbers_as_classes,
    )


def find_range(
    found: CausesFound,
    sampler: Sampler,
    game: Game,
    make_game: Callable[[Sampler], Game],
    estimate: Estimate,
    options: PlanOptions,
    seed: int,
) -> GraphRange | None:
    """Return the range of the values over the graphs that the data do not exclude, and warn of it.

    None if no other graph is possible.
    """

    def other_game(alternative: Alternative) -> OtherGame:
        def make() -> Game:
            return make_game(cast(Interventional, sampler).with_graph(alternative.graph))

        words = _list_edges(alternative.graph)
        return OtherGame(make, words, alternative.share, alternative.is_resampled)

    others = [other_game(each) for each in found.alternatives]
    own = int(Streams(seed)("range-over-graphs").integers(2**31))
    ranges = range_over_graphs(game, others, estimate, options, seed=own, n_members=found.n_members)
    if ranges is not None:
        warn_of_range(ranges)
    return ranges


def _list_edges(graph: Graph) -> str:
    edges = [f"{tail} -> {head}" for tail, head in graph.edges]
    edges += [f"{one} <-> {other}" for one, other in graph.bidirected]
    return ", ".join(edges) or "no edges"


def warn_of_open_directions(found: CausesFound) -> None:
    """Warn that values of single rows are for only one of several possible graphs."""
    text = describe_graph(found)
    if text:
        warn(
            f"The values are for one graph, but {text}: other directions give other values. "
            "explain(..., estimand='causal') computes their range; tiers exclude graphs."
        )
