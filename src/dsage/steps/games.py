"""The game of a run, and the losses of its rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
import pandas as pd

from dsage.data.frames import take_rows
from dsage.data.groups import Groups
from dsage.data.inputs import Inputs
from dsage.games import Game, Grouped, LossGame
from dsage.games.base import Rows
from dsage.graphs import Oracle
from dsage.models.model import Model
from dsage.samplers.base import Sampler
from dsage.steps.separations import group_oracle


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
        """Return the separations between players, from the separations between features."""
        return group_oracle(oracle, self._groups)


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
