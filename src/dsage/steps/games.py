"""The game of a run, and the losses of its rows."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pandas as pd

from dsage.data.frames import take_rows
from dsage.data.groups import Groups
from dsage.data.inputs import Inputs
from dsage.games import Game, GameOptions, Grouped, LossGame
from dsage.games.base import Rows
from dsage.graphs import Oracle
from dsage.models.model import Model
from dsage.samplers.base import Sampler
from dsage.steps.separations import group_oracle
from dsage.steps.settings import Settings

logger = logging.getLogger("dsage")


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

    def with_enough_draws(
        self, sampler: Sampler, settings: Settings
    ) -> tuple[GameMaker, Game, GameOptions]:
        """Return the game with as many draws as the loss of its model needs.

        Also the maker of such games, and the options with this number, unless the user has chosen
        another one.
        """
        game = self(sampler)
        enough = need_draws([game], settings)
        if enough is settings.game:
            return self, game, enough
        of_game = {**self._settings, "n_draws": enough.n_draws}
        maker = GameMaker(self._model, self._inputs, of_game, self._groups)
        return maker, maker(sampler), enough

    def oracle(self, oracle: Oracle | None) -> Oracle | None:
        """Return the separations between players, from the separations between features."""
        return group_oracle(oracle, self._groups)


def need_draws(games: Sequence[Game], settings: Settings) -> GameOptions:
    """Return the options of games, with as many draws as the losses of all of them need.

    See :meth:`dsage.games.LossGame.draw_need`. The same options if these are enough, or if the user
    has chosen a number.
    """
    options = settings.game
    if not settings.may_add_draws:
        return options
    needs = {}
    for game in games:
        for part in game.parts:
            if isinstance(part, LossGame):
                needs[part] = part.draw_need(settings.tolerance, settings.seconds)
    n_draws = max((need.n_draws for need in needs.values()), default=0)
    for part, need in needs.items():
        if need.n_draws == n_draws:
            need.warn(part.loss.name, is_of_classes=part.loss.is_of_classes)
    if n_draws <= (options.n_draws or 0):
        return options
    text = "the predictions of the model need %d draws for each risk, instead of %d"
    logger.info(text, n_draws, options.n_draws)
    return replace(options, n_draws=n_draws)


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
