"""The checked options that the steps of a run share, and its seed."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dsage._check import check_member
from dsage._random import RandomState, Streams
from dsage.data.groups import Groups
from dsage.data.inputs import Inputs
from dsage.estimate import Checkpoint, PlanOptions, Stopping, as_checkpoint, as_stopping
from dsage.games import GameOptions
from dsage.models.losses import Loss

# Short enough to be read and typed.
_SEED_BITS = 32


@dataclass(frozen=True, eq=False, kw_only=True)
class Settings:
    """The checked options that the steps of a run share."""

    stopping: Stopping | None
    groups: Groups | None
    checkpoint: Checkpoint | None
    seed: int
    game: GameOptions
    may_add_draws: bool
    tolerance: float | None
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
        """Check the options; `loss` is None if it is unknown because there is no model yet."""
        given: dict[str, Any] = {name: each for name, each in limits.items() if each is not None}
        stopping = as_stopping(**given) if given else None
        grouped = None if groups is None else Groups(groups, inputs.names)
        kept = as_checkpoint(checkpoint)
        seed = make_seed(random_state, kept)
        game = GameOptions.read({**of_game, "random_state": seed})
        may_add_draws = game.n_draws is None
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
            may_add_draws=may_add_draws,
            tolerance=given.get("tolerance"),
            plan=plan,
            seconds=given.get("seconds"),
            sampler_check=sampler_check,
            progress=progress,
        )


def split_options(
    options: Mapping[str, Any], caller: Callable[..., Any], *, without: Iterable[str] = ()
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the options of the game and of the plan; refuse unknown names.

    For a misspelled name, parameters of `caller` are suggested, except those in `without`, which
    it does not take.
    """
    all_names = [*GameOptions.names(), *PlanOptions.names(), *(caller.__kwdefaults__ or ())]
    names = [name for name in all_names if name not in without]
    for option in options:
        check_member(option, names, "each option", f"the options of {caller.__name__}")
    of_game = {name: value for name, value in options.items() if name in GameOptions.names()}
    return of_game, {name: value for name, value in options.items() if name not in of_game}


def make_seed(random_state: RandomState, checkpoint: Checkpoint | None = None) -> int:
    """Return the given seed, the seed of the run to resume, or a new one."""
    if random_state is not None:
        return Streams(random_state).entropy
    entropy = None if checkpoint is None else checkpoint.entropy()
    return secrets.randbits(_SEED_BITS) if entropy is None else entropy
