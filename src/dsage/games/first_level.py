"""Choose the first level of a model's game: a linear or an additive predictor of its output."""

from __future__ import annotations

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
    pairs = list(zip(outputs, targets, strict=True))
    if game.is_drawn:
        drawn, predicted = game.draw_unknown(N_DRAWN)
        predictions = [predicted] if len(pairs) == 1 else list(predicted.T)
        found = _find_additive(game, drawn, predictions)
        if found is not None:
            functions, predictors = found
            return tuple(
                BlockGame(predictor, functions, game.matrix, target, names, weights)
                for predictor, target in zip(predictors, targets, strict=True)
            )
    return tuple(
        MomentGame(game.matrix, output, target, names, sample_weight=weights)
        for output, target in pairs
    )


def _find_additive(
    game: Expected, drawn: Floats, outputs: list[Floats]
) -> tuple[Functions, list[LinearPredictor]] | None:
    """Return functions and predictors of outputs from drawn rows; None where linear ones do."""
    n_categories = game.layout.n_categories
    linear = Functions.fit(drawn, n_categories, 1)
    plain = [_fit(linear, drawn, output) for output in outputs]
    for n_functions in _N_FUNCTIONS:
        functions = Functions.fit(drawn, n_categories, n_functions)
        if functions(drawn[:1]).n_columns > _MOST_COLUMNS:
            continue
        predictors = [_fit(functions, drawn, output) for output in outputs]
        pairs = zip(predictors, plain, strict=True)
        left = sum(one.unexplained for one in predictors)
        is_better = left <= _LEFT * sum(other.unexplained for _, other in pairs)
        return (functions, predictors) if is_better else None
    return None


def _fit(functions: Functions, drawn: Floats, output: Floats) -> LinearPredictor:
    """Return the predictor of an output, fitted to drawn rows."""
    n_rows = len(drawn)
    basis = functions(drawn)
    return LinearPredictor(basis, output.reshape(n_rows, -1), np.ones(n_rows), ridge=2.0 / n_rows)
