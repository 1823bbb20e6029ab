"""The parts that the games of a comparison share: sampler, separations, options and seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dsage._check import check_member, name_place, refusal
from dsage._random import RandomState
from dsage.data.groups import Groups
from dsage.data.inputs import Inputs
from dsage.estimate import PlanOptions, Stopping
from dsage.games import Game, GameOptions, Grouped, LossGame
from dsage.graphs import Oracle
from dsage.models.resolve import ResolvedModel, find_model
from dsage.samplers.base import Sampler
from dsage.steps import Clock, Settings, group_oracle, learn_parts, need_draws, use_graph

LIMITS = ("tolerance", "absolute", "top_k", "seconds", "n_orderings")
"""The limits of a run, see :func:`dsage.estimate.as_stopping`."""


@dataclass(frozen=True, eq=False)
class Ground:
    """A sampler, separations and options that are used to make and run several games."""

    sampler: Sampler
    sampler_name: str
    oracle: Oracle | None
    groups: Groups | None
    of_run: Settings
    for_game: GameOptions
    plan: dict[str, Any]
    stopping: Stopping | None

    @property
    def settings(self) -> dict[str, Any]:
        """The options of every run."""
        return {"oracle": self.oracle, "stopping": self.stopping, **self.plan}

    def make_games(
        self, given: Mapping[str, tuple[ResolvedModel, Inputs]], kind: str
    ) -> dict[str, Game]:
        """Return the games of models on the evaluation rows of inputs, by label.

        All have as many draws as the one that needs most. Errors name the `kind` and the label.
        """
        games = self._make_all(given, kind)
        for_game = need_draws(list(games.values()), self.of_run)
        if for_game is self.for_game:
            return games
        return replace(self, for_game=for_game)._make_all(given, kind)

    def _make_all(
        self, given: Mapping[str, tuple[ResolvedModel, Inputs]], kind: str
    ) -> dict[str, Game]:
        games = {}
        for label, (resolved, inputs) in given.items():
            with name_place(f"{kind} {label!r}"):
                games[label] = self._make_game(resolved, inputs)
        return games

    def _make_game(self, resolved: ResolvedModel, inputs: Inputs) -> Game:
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
    """Check the options, and learn the parts that all games share."""
    known = [*LIMITS, *GameOptions.names(), *PlanOptions.names()]
    for option in options:
        check_member(option, known, "each option", "the options of a comparison")
    settings = Settings.read(
        inputs,
        resolved.loss,
        limits={name: options.get(name) for name in LIMITS},
        groups=groups,
        checkpoint=None,
        random_state=random_state,
        of_game={name: value for name, value in options.items() if name in GameOptions.names()},
        of_plan={name: options[name] for name in PlanOptions.names() if name in options}
        | {"n_jobs": n_jobs},
        sampler_check=False,
        progress=progress,
    )
    learned = learn_parts(
        inputs,
        settings,
        Clock(),
        graph=graph,
        sampler=sampler,
        is_of_classes=resolved.loss.is_of_classes,
        predict=resolved.model.predict,
        n_resamples=None,
        min_share=None,
    )
    oracle = group_oracle(learned.graph.oracle, settings.groups)
    oracle, _ = use_graph(oracle, learned.graph, settings.plan)
    return Ground(
        learned.sampler.sampler,
        learned.sampler.info.name,
        oracle,
        settings.groups,
        settings,
        settings.game,
        vars(settings.plan),
        settings.stopping,
    )
