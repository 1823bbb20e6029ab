"""Choose the first level of a model's game: a linear or an additive predictor of its output."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dsage.games.base import Floats, Game
from dsage.games.block_game import BlockGame
from dsage.games.expected import Expected
from dsage.games.functions import Functions
from dsage.games.linear import LinearPredictor
from dsage.games.moment import MomentGame

N_DRAWN = 1 << 13
"""Rows drawn for the moments."""
# Functions of a number: with more columns in all, matrices would take longer than a model saves.
_N_FUNCTIONS, _MOST_COLUMNS = (4, 3, 2), 240
# Functions of the predictor under that: nearly as good, at a fraction of the cost.
_FEW = 2
# The additive predictor replaces the linear one where it leaves at most this share of the variance
# that the linear one leaves: below, it would hardly save more than it costs.
_LEFT = 0.9


def find_first_levels(
    game: Expected, outputs: list[Floats], targets: list[Floats], weights: Floats
) -> tuple[Game, ...]:
    """Return a cheap game for each output, (n_rows,) or (n_rows, n_outputs), of a model.

    Without draws, the linear predictor is enough. With draws from the margins none pays: the game
    of an additive predictor is quadratic, and the ordering does not matter once it is run in both
    directions.
    """
    names = game.feature_names
    if game.is_drawn and game.is_marginal:
        return ()
    linear = tuple(
        MomentGame(game.matrix, output, target, names, sample_weight=weights)
        for output, target in zip(outputs, targets, strict=True)
    )
    # Every feature has a column at least.
    if not game.is_drawn or len(names) > _MOST_COLUMNS:
        return linear
    drawn, predicted = game.draw_unknown(N_DRAWN)
    predictions = [predicted] if len(outputs) == 1 else list(predicted.T)
    found: list[Game] = list(linear)
    for functions, predictors in _find_additive(game, drawn, predictions):
        found = [
            BlockGame(predictor, functions, game.matrix, target, names, weights, under)
            for predictor, target, under in zip(predictors, targets, found, strict=True)
        ]
    return tuple(found)


class _Level(NamedTuple):
    """Functions of the features, and the predictor of each output from them."""

    functions: Functions
    predictors: list[LinearPredictor]

    @property
    def unexplained(self) -> float:
        return sum(predictor.unexplained for predictor in self.predictors)


def _find_additive(game: Expected, drawn: Floats, outputs: list[Floats]) -> list[_Level]:
    """Return predictors of outputs from drawn rows, those of few functions first.

    There are none where linear predictors do.
    """
    linear = _fit(game, drawn, outputs, 1)
    for n_functions in _N_FUNCTIONS:
        found = _fit(game, drawn, outputs, n_functions)
        if found is None:
            continue
        if linear is None or found.unexplained > _LEFT * linear.unexplained:
            return []
        few = None if n_functions == _FEW else _fit(game, drawn, outputs, _FEW)
        return [level for level in (few, found) if level is not None]
    return []


def _fit(game: Expected, drawn: Floats, outputs: list[Floats], n_functions: int) -> _Level | None:
    """Return the predictors of outputs, fitted to drawn rows; None with too many columns."""
    functions = Functions.fit(drawn, game.layout.n_categories, n_functions)
    if functions(drawn[:1]).n_columns > _MOST_COLUMNS:
        return None
    n_rows, basis = len(drawn), functions(drawn)
    one = np.ones(n_rows)
    return _Level(
        functions,
        [
            LinearPredictor(basis, output.reshape(n_rows, -1), one, ridge=2.0 / n_rows)
            for output in outputs
        ],
    )
