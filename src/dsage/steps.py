"""The steps of a run, between the inputs and the estimate: settings, graph, sampler, game."""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd

from dsage._check import check_member
from dsage._random import RandomState, Streams
from dsage.causal import find_interventional
from dsage.data.frames import take_rows
from dsage.data.groups import Groups
from dsage.data.inputs import Inputs
from dsage.estimate import Checkpoint, PlanOptions, Stopping, as_checkpoint, as_stopping
from dsage.estimate.graph_use import measure_use
from dsage.estimate.inference import MIN_UNITS
from dsage.estimate.running.outlook import Outlook
from dsage.games import Game, GameOptions, Grouped, LossGame
from dsage.games.base import Rows
from dsage.graphs import GroupedOracle, Oracle
from dsage.models.losses import Loss
from dsage.models.model import Model
from dsage.result.events import (
    CostExpected,
    EstimateProgressed,
    Event,
    Phase,
    PhaseFinished,
    PhaseStarted,
)
from dsage.samplers.base import Sampler
from dsage.samplers.resolve import (
    SamplerFound,
    ScoringOptions,
    find_sampler,
    parse_sampler,
)
from dsage.samplers.scorer import Predict
from dsage.structure.causes import find_causes
from dsage.structure.info import GraphInfo
from dsage.structure.knowledge import Knowledge
from dsage.structure.resolve import GraphFound, find_graph

logger = logging.getLogger("dsage")

# A seed that can be read and typed.
_SEED_BITS = 32
# A graph is not learned if linear regressions leave this share of the coalitions to be evaluated.
_HARDLY_SEPARATED = 0.9
# Rows on which a batch of orderings is evaluated at least, if there are so many.
_ROWS = 64


@dataclass(frozen=True, eq=False, kw_only=True)
class Settings:
    """The checked options that the steps of a run share."""

    stopping: Stopping | None
    groups: Groups | None
    checkpoint: Checkpoint | None
    seed: int
    game: GameOptions
    plan: PlanOptions
    seconds: float | None
    sampler_check: bool
    progress: bool

    @classmethod
    def read(
        cls,
        inputs: Inputs,
        loss: Loss | None,
        *,
        limits: Mapping[str, float | None],
        groups: Mapping[str, Iterable[str]] | None,
        checkpoint: str | Path | Checkpoint | None,
        random_state: RandomState,
        of_game: Mapping[str, Any],
        of_plan: Mapping[str, Any],
        sampler_check: bool,
        progress: bool,
    ) -> Settings:
        """Check the options; `loss` is None where none is known, before there is a model."""
        given: dict[str, Any] = {name: each for name, each in limits.items() if each is not None}
        stopping = as_stopping(**given) if given else None
        grouped = None if groups is None else Groups(groups, inputs.names)
        kept = as_checkpoint(checkpoint)
        seed = make_seed(random_state, kept)
        game = GameOptions.read({**of_game, "random_state": seed})
        if loss is not None:
            game = game.with_draws(loss.n_draws(given.get("tolerance")))
        game.row_weights(len(inputs.y_test))
        plan = PlanOptions.read({**of_plan, "random_state": seed})
        plan.check_features(inputs.names if grouped is None else grouped.names)
        return cls(
            stopping=stopping,
            groups=grouped,
            checkpoint=kept,
            seed=seed,
            game=game,
            plan=plan,
            seconds=given.get("seconds"),
            sampler_check=sampler_check,
            progress=progress,
        )


def split_options(
    options: Mapping[str, Any], caller: Callable[..., Any], *, without: Iterable[str] = ()
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the options of the game and those of the plan; refuse unknown names.

    The parameters of `caller` are suggested where a name is misspelled. It does not take the
    options `without`.
    """
    all_names = [*GameOptions.names(), *PlanOptions.names(), *(caller.__kwdefaults__ or ())]
    names = [name for name in all_names if name not in without]
    for option in options:
        check_member(option, names, "each option", f"the options of {caller.__name__}")
    of_game = {name: value for name, value in options.items() if name in GameOptions.names()}
    return of_game, {name: value for name, value in options.items() if name not in of_game}


def make_seed(random_state: RandomState, checkpoint: Checkpoint | None = None) -> int:
    """Return the given seed, that of the run to resume, or a new one."""
    if random_state is not None:
        return Streams(random_state).entropy
    entropy = None if checkpoint is None else checkpoint.entropy()
    return secrets.randbits(_SEED_BITS) if entropy is None else entropy


@dataclass(frozen=True, eq=False)
class Learned:
    """What is learned from the training rows: the separations and the sampler."""

    graph: GraphFound
    sampler: SamplerFound


def learn_parts(
    inputs: Inputs,
    settings: Settings,
    clock: Clock,
    *,
    graph: Any,  # noqa: ANN401
    sampler: Any,  # noqa: ANN401
    is_of_classes: bool,
    predict: Predict | None,
    n_resamples: int | None,
    min_share: float | None,
    knowledge: Knowledge | None = None,
    n_predicted: int | None = None,
) -> Learned:
    """Learn graph and sampler from the training rows, or take what is given.

    `is_of_classes` is whether the target is a class. `predict` is the model, in whose terms
    samplers are compared; without one the energy score alone decides. `knowledge` is what a learned
    graph has to agree with. `n_predicted` are the rows that the model will predict at least; by
    default those of a run to a tolerance.
    """
    if predict is None:
        n_predicted = 0
    elif n_predicted is None:
        n_predicted = _least_predicted(inputs, settings.groups, settings.game)
    scoring = ScoringOptions(
        predict,
        settings.groups,
        n_predicted,
        settings.seconds,
        settings.sampler_check,
    )
    if settings.plan.estimand == "causal":
        with clock(Phase.GRAPH):
            causes = find_causes(
                graph,
                inputs,
                is_of_classes=is_of_classes,
                knowledge=knowledge or Knowledge(),
                n_resamples=n_resamples,
                min_share=min_share,
                n_jobs=settings.plan.n_jobs,
                seed=settings.seed,
                progress=settings.progress,
            )
        with clock(Phase.SAMPLER):
            drawn = find_interventional(
                sampler,
                causes,
                inputs,
                scoring,
                is_of_classes=is_of_classes,
                seed=settings.seed,
                progress=settings.progress,
            )
        return Learned(causes, drawn)
    request = parse_sampler(sampler, inputs, seed=settings.seed)
    with clock(Phase.GRAPH):
        found = find_graph(
            graph,
            inputs,
            is_of_classes=is_of_classes,
            is_marginal=request.is_marginal,
            is_plain=settings.plan.estimand == "sage",
            why_spare=_GraphSaver(settings.plan, settings.groups),
            n_resamples=n_resamples,
            min_share=min_share,
            n_jobs=settings.plan.n_jobs,
            seed=settings.seed,
            progress=settings.progress,
            knowledge=knowledge,
        )
    with clock(Phase.SAMPLER):
        fitted = find_sampler(
            request, inputs, scoring, seed=settings.seed, progress=settings.progress
        )
    return Learned(found, fitted)


class Clock:
    """Measures how long each phase takes; logs its start and end, and reports them to `listen`."""

    def __init__(self, listen: Callable[[Event], None] | None = None) -> None:
        self._start = time.perf_counter()
        self._listen = listen
        self._phases: dict[str, float] = {}
        self._has_cost = False

    def follow(self, outlook: Outlook) -> None:
        """Report where the estimation stands."""
        if not self._has_cost and outlook.seconds_left is not None:
            self._has_cost = True
            self._report(CostExpected(outlook))
        self._report(EstimateProgressed(outlook))

    @contextmanager
    def __call__(self, phase: Phase) -> Iterator[None]:
        """Measure a phase."""
        start = time.perf_counter()
        self._report(PhaseStarted(phase))
        yield
        self._phases[phase] = time.perf_counter() - start
        self._report(PhaseFinished(phase, self._phases[phase]))

    def _report(self, event: Event) -> None:
        logger.info("%s", event)
        if self._listen is not None:
            self._listen(event)

    @property
    def seconds(self) -> dict[str, float]:
        """The time of each finished phase, and in total."""
        return {**self._phases, "total": time.perf_counter() - self._start}


class GameMaker:
    """Makes the game of a run with a fitted sampler, on all rows or on some of them."""

    def __init__(
        self, model: Model, inputs: Inputs, settings: Mapping[str, Any], groups: Groups | None
    ) -> None:
        self._model, self._inputs = model, inputs
        self._settings, self._groups = settings, groups

    def __call__(
        self, sampler: Sampler, rows: Rows | None = None, *, is_controlled: bool = True
    ) -> Game:
        """Return the game with a sampler."""
        X, y, settings = self._inputs.X_test, self._inputs.y_test, dict(self._settings)
        if not is_controlled:
            settings["draw_control"] = "none"
        if rows is not None:
            X, y = take_rows(X, rows), y[rows]
            if settings["sample_weight"] is not None:
                settings["sample_weight"] = np.asarray(settings["sample_weight"])[rows]
        game = LossGame(self._model, sampler, X, y, **settings)
        return game if self._groups is None else Grouped(game, self._groups.members)

    def oracle(self, oracle: Oracle | None) -> Oracle | None:
        """Return the separations of features as those of the players."""
        return group_oracle(oracle, self._groups)


def group_oracle(oracle: Oracle | None, groups: Groups | None) -> Oracle | None:
    """Return the separations of features as those of the players."""
    if groups is None or oracle is None:
        return oracle
    return GroupedOracle(oracle, groups.members)


class _GraphSaver:
    """Tells why no graph need be learned, from rough separations of the features."""

    def __init__(self, options: PlanOptions, groups: Groups | None) -> None:
        self._options, self._groups = options, groups

    def __call__(self, oracle: Oracle) -> str | None:
        """Return the reason, or None if a graph might pay."""
        if self._groups is not None:
            oracle = GroupedOracle(oracle, self._groups.members)
        share = measure_use(oracle, self._options).share_evaluated
        if share < _HARDLY_SEPARATED:
            return None
        return (
            f"not learned: even linear regressions, which miss dependences, leave {share:.0%} of "
            "the coalitions to be evaluated"
        )


def use_graph(
    oracle: Oracle | None, found: GraphFound, options: PlanOptions
) -> tuple[Oracle | None, GraphInfo]:
    """Return the separations to use, and the record of the graph.

    A graph that the user did not ask for is used where that makes the estimate cheaper. `oracle`
    has its separations of the players.
    """
    if oracle is None:
        return None, found.info
    use = measure_use(oracle, options)
    is_used = found.is_asked or (use.pays and options.estimand != "sage")
    why = None
    if not is_used:
        why = (
            f"learned, not used: {use.share_skipped:.0%} of the surpluses could be skipped, and "
            f"{use.share_evaluated:.0%} of the coalitions would have to be evaluated"
        )
    info = replace(
        found.info,
        is_used=is_used,
        share_skippable=use.share_skipped,
        share_evaluated=use.share_evaluated,
        why=why,
    )
    return oracle if is_used else None, info


def _least_predicted(inputs: Inputs, groups: Groups | None, options: GameOptions) -> int:
    """Return the number of rows that the model predicts at least in a run to a tolerance."""
    n_players = len(inputs.names if groups is None else groups.names)
    n_rows = min(len(inputs.y_test), _ROWS)
    return 2 * MIN_UNITS * n_players * n_rows * options.n_replicates * options.n_draws_each


def row_losses(game: Game) -> pd.DataFrame:
    """Return the losses of each row, see :class:`dsage.Explanation`."""
    nothing, everything = cast(LossGame, game.parts[0]).end_losses()
    return pd.DataFrame(
        {
            "row": np.arange(len(nothing)),
            "nothing": nothing,
            "everything": everything,
            "gain": nothing - everything,
        }
    )
