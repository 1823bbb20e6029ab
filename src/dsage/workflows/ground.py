"""What games of a comparison have in common: the sampler, the separations, options and seed."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dsage._check import check_member, name_place, refusal
from dsage._random import RandomState, Streams
from dsage.data.groups import Groups
from dsage.data.inputs import Inputs
from dsage.estimate import PlanOptions, Stopping, as_stopping
from dsage.games import Game, GameOptions, Grouped, LossGame
from dsage.graphs import GroupedOracle, Oracle
from dsage.models.resolve import ResolvedModel, find_model
from dsage.samplers.base import Sampler
from dsage.samplers.resolve import ScoringOptions, find_sampler, parse_sampler
from dsage.structure.resolve import find_graph

# A seed that can be read and typed.
_SEED_BITS = 32
LIMITS = ("tolerance", "absolute", "top_k", "seconds", "n_orderings")
"""The limits of a run, see :func:`dsage.estimate.as_stopping`."""


@dataclass(frozen=True, eq=False)
class Ground:
    """A sampler, separations and options with which several games are made and run."""

    sampler: Sampler
    sampler_name: str
    oracle: Oracle | None
    groups: Groups | None
    for_game: GameOptions
    plan: dict[str, Any]
    stopping: Stopping | None

    def make_game(self, resolved: ResolvedModel, inputs: Inputs) -> Game:
        """Return the game of a model on the evaluation rows of some inputs."""
        settings = {"loss": resolved.loss, **vars(self.for_game)}
        game = LossGame(resolved.model, self.sampler, inputs.X_test, inputs.y_test, **settings)
        return game if self.groups is None else Grouped(game, self.groups.members)


def find_models(
    models: Mapping[str, Any],
    loss: Any,  # noqa: ANN401
    classes: Sequence[Any] | None,
    inputs: Inputs,
) -> dict[str, ResolvedModel]:
    """Return the models with one loss; errors name the model."""
    resolved: dict[str, ResolvedModel] = {}
    for label, model in models.items():
        with name_place(f"model {label!r}"):
            resolved[label] = find_model(model, loss, classes, inputs)
    losses = {label: each.loss.name for label, each in resolved.items()}
    if len(set(losses.values())) > 1:
        advice = "Values of different losses have different units: name one with loss="
        raise refusal("loss", "the same for all models", losses, advice)
    return resolved


def prepare(
    resolved: ResolvedModel,
    inputs: Inputs,
    *,
    graph: Any,  # noqa: ANN401
    sampler: Any,  # noqa: ANN401
    groups: Mapping[str, Any] | None,
    n_jobs: int | None,
    random_state: RandomState,
    progress: bool,
    options: Mapping[str, Any],
) -> Ground:
    """Check the options, and learn what all games have in common."""
    known = [*LIMITS, *GameOptions.names(), *PlanOptions.names()]
    for option in options:
        check_member(option, known, "each option", "the options of a comparison")
    limits = {name: options[name] for name in LIMITS if options.get(name) is not None}
    of_game = {name: value for name, value in options.items() if name in GameOptions.names()}
    of_plan = {name: options[name] for name in PlanOptions.names() if name in options}
    seed = secrets.randbits(_SEED_BITS)
    if random_state is not None:
        seed = Streams(random_state).entropy
    for_game = GameOptions.read({**of_game, "random_state": seed})
    for_game = for_game.with_draws(resolved.loss.n_draws(limits.get("tolerance")))
    for_plan = PlanOptions.read({**of_plan, "n_jobs": n_jobs, "random_state": seed})
    grouped = None if groups is None else Groups(groups, inputs.names)
    for_plan.check_features(inputs.names if grouped is None else grouped.names)
    request = parse_sampler(sampler, inputs, seed=seed)
    stopping = as_stopping(**limits) if limits else None
    found = find_graph(
        graph,
        inputs,
        is_of_classes=resolved.loss.output == "probability",
        is_marginal=request.is_marginal,
        n_resamples=None,
        n_jobs=n_jobs,
        seed=seed,
        progress=progress,
    )
    oracle = found.oracle
    if oracle is not None and grouped is not None:
        oracle = GroupedOracle(oracle, grouped.members)
    scoring = ScoringOptions(resolved.model.predict, grouped, is_checked=False)
    fitted = find_sampler(request, inputs, scoring, seed=seed, progress=progress)
    return Ground(
        fitted.sampler, fitted.info.name, oracle, grouped, for_game, vars(for_plan), stopping
    )
