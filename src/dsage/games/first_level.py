"""Choose the first level of a model's game: a linear or an additive predictor of its output."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dsage.games.additive import KEPT_BYTES, AdditiveRows
from dsage.games.base import Floats, Game, Orders, Rows, by_feature, prefixes
from dsage.games.block_game import BlockGame
from dsage.games.expected import Expected
from dsage.games.functions import Functions
from dsage.games.linear import LinearPredictor
from dsage.games.link_game import LinkGame
from dsage.games.links import Link
from dsage.games.moment import MomentGame
from dsage.games.score_game import ScoreGame, count_rows, fit_scores
from dsage.samplers.checks import Ints

N_DRAWN = 1 << 13
"""Rows drawn for the moments."""
# Functions of a number; with more columns in total, matrices would take longer than they save.
_N_FUNCTIONS, _MOST_COLUMNS = (4, 3, 2), 240
# Functions of the predictor under that: nearly as good, at a fraction of the cost.
_FEW = 2
# The additive predictor replaces the linear one if it leaves at most this share of the variance
# that the linear one leaves: otherwise it would hardly save more than it costs.
_LEFT = 0.9
# Rows times squared columns up to which a predictor on another scale is cheap: 60 ms an ordering.
_MOST_WORK = 1 << 26
# Pairs of orderings and rows from which two first levels are compared, the draws of their risks,
# and the ratios below which a more expensive one is better, and one is better than none.
_PILOT_ORDERINGS, _PILOT_ROWS, _PILOT_EPOCH, _BETTER, _CLEARLY = 6, 16, 1 << 20, 0.9, 0.7
# A first level is worth its time if it takes less than this share of the square root of the
# variance times the time: some is spent on fitting it.
_WORTH = 0.9
# Up to so many features, a first level has balanced orderings, which are worth so many others.
_FEW_FEATURES, _BALANCED = 32, 3.0
# The root of the number of classes that are one output, and the error of the sum of probabilities.
_ROOT, _DIGITS = math.sqrt(2.0), 1e-12


@dataclass(frozen=True, eq=False)
class LinkedLoss:
    """The scale of a model's output, and the losses of expected outputs, see `LinkGame`."""

    link: Link
    losses: Callable[[Floats, Rows], Floats]


def find_first_levels(
    game: Expected,
    outputs: list[Floats],
    targets: list[Floats],
    weights: Floats,
    linked: LinkedLoss | None = None,
) -> tuple[Game, ...]:
    """Return a cheap game for each output, (n_rows,) or (n_rows, n_outputs), of a model.

    If the model has one output and `linked` gives a scale on which it is nearly additive, the game
    on that scale is added, unless there are so many rows that it would not be cheap.

    Without draws, the linear predictor is enough. With a marginal sampler only one on the scale of
    a link pays: otherwise the game of an additive predictor is quadratic, and the ordering does not
    matter once it is run in both directions.
    """
    names = game.feature_names
    if game.is_marginal and not game.is_affine:
        if linked is None or len(outputs) > 1:
            return ()
        found = _find_score_game(game, weights, linked)
        return () if found is None else (found,)
    joined = [_join_classes(*pair) for pair in zip(outputs, targets, strict=True)]
    targets = [target for _, target in joined]
    linear = tuple(
        MomentGame(game.matrix, output, target, names, sample_weight=weights)
        for output, target in joined
    )
    # Every feature has a column at least.
    if not game.is_drawn or len(names) > _MOST_COLUMNS:
        return linear
    drawn, predicted = game.draw_unknown(N_DRAWN)
    predictions = [predicted] if len(outputs) == 1 else list(predicted.T)
    if joined[0][0].ndim < outputs[0].ndim:
        predictions = [_ROOT * predicted[:, 1]]
    chain: list[tuple[Game, ...]] = [linear]
    predictors_of = _Predictors(drawn, game.layout.n_categories)
    for functions, predictors in predictors_of.find_additive(predictions):
        made = zip(predictors, targets, chain[-1], strict=True)
        chain.append(
            tuple(
                BlockGame(predictor, functions, game.matrix, target, names, weights, under)
                for predictor, target, under in made
            )
        )
    if linked is None or len(outputs) > 1:
        return chain[-1]
    # A predictor on another scale would replace the most expensive one, which costs as much.
    (under,), (plain,) = chain[min(1, len(chain) - 1)], chain[-1]
    on_link = _find_link_game(game, predictors_of, predicted, weights, under, linked)
    if on_link is None:
        return (plain,)
    on_scale, as_it_is = _shares_left(game, (on_link, plain))
    return (on_link if on_scale < _BETTER * as_it_is else plain,)


def _join_classes(output: Floats, target: Floats) -> tuple[Floats, Floats]:
    """Return probabilities and targets of two classes as one output, others as they are.

    The squared error of both is twice that of one of them.
    """
    if output.shape[1:] != (2,):
        return output, target
    sums = [each.sum(axis=1) for each in (output, target)]
    if not all(np.allclose(each, 1.0, rtol=0.0, atol=_DIGITS) for each in sums):
        return output, target
    return _ROOT * output[:, 1], _ROOT * target[:, 1]


def _find_score_game(game: Expected, weights: Floats, linked: LinkedLoss) -> Game | None:
    """Return the game of additive scores for a marginal sampler; None if it does not pay off."""
    n_outputs = game.predictions.size // game.n_rows
    link = "exp" if linked.link.is_of_numbers else "softmax" if n_outputs > 2 else "logistic"
    background = game.equal_rows
    fits = ScoreGame.fits(game.n_rows, len(game.feature_names), n_outputs)
    if background is None or not fits:
        return None
    rows, predicted = game.mix_rows(background, min(N_DRAWN, count_rows(game.layout.n_categories)))
    scores = fit_scores(link, rows, predicted, game.layout.n_categories)
    if scores is None:
        return None
    given = linked.losses, game.feature_names, weights
    found = ScoreGame(scores, background, game.matrix, *given)
    (share,) = _shares_left(game, (found,), by_row=False)
    return found if share < _CLEARLY and _saves(found, share, game) else None


def _saves(level: ScoreGame, share: float, game: Expected) -> bool:
    """Return whether a first level that leaves a share of the variance is worth its time.

    The best number of its orderings makes the variance times the time of all orderings
    ``(sqrt(share * cost) + sqrt((1 - share) * own cost))^2``; without it, they are 1 and the cost.
    """
    cost = game.cost_of_means * min(game.n_rows, game.rows_of_unit)
    if cost == 0.0:
        return True
    ratio = level.cost_of_prefix / cost
    if len(level.feature_names) <= _FEW_FEATURES:
        ratio /= _BALANCED
    return math.sqrt(share) + math.sqrt((1.0 - share) * ratio) < _WORTH


def _find_link_game(
    game: Expected,
    predictors_of: _Predictors,
    predicted: Floats,
    weights: Floats,
    under: Game,
    linked: LinkedLoss,
) -> Game | None:
    """Return the game of the predictor on another scale; None if it would not be cheap."""
    scaled = linked.link.apply(predicted)
    levels = [predictors_of.fit([scaled], 1), *predictors_of.find_additive([scaled])]
    for level in reversed(levels):
        if level is None:
            continue
        (predictor,) = level.predictors
        n_entries = len(game.matrix) * predictor.basis.n_columns
        is_small = 8 * n_entries * scaled.shape[1] <= KEPT_BYTES
        if is_small and n_entries * predictor.basis.n_columns <= _MOST_WORK:
            rows = AdditiveRows(predictor, level.functions, game.matrix)
            losses, names = linked.losses, game.feature_names
            return LinkGame(rows, scaled, linked.link, losses, names, weights, under)
    return None


def _shares_left(game: Expected, levels: Sequence[Game], *, by_row: bool = True) -> list[float]:
    """Return the shares of the variance over orderings that remain with each of some first levels.

    They are estimated from few orderings of few rows. What a row has on its own, including the
    noise of its draws, averages out over the rows of a unit, and what all rows have in common does
    not: both count as in a unit of the run. Not `by_row`, as in one of the few rows.
    """
    rng = np.random.default_rng(0)
    rows = np.sort(rng.choice(game.n_rows, min(_PILOT_ROWS, game.n_rows), replace=False))
    first = [rng.permutation(len(game.feature_names)) for _ in range(_PILOT_ORDERINGS)]
    orders = np.array([each for one in first for each in (one, one[::-1])], dtype=np.intp)
    own, *others = (_surpluses(each, orders, rows) for each in (game, *levels))
    n_rows = max(min(game.rows_of_unit, game.n_rows), len(rows)) if by_row else len(rows)
    total, found = _unit_variance(own, n_rows), []
    for similar in others:
        together, alike = own.mean(axis=2), similar.mean(axis=2)
        square = float((alike**2).sum())
        slope = float((together * alike).sum()) / square if square > 0.0 else 0.0
        left = _unit_variance(own - slope * similar, n_rows)
        found.append(left / total if total > 0.0 else 1.0)
    return found


def _unit_variance(surpluses: Floats, n_rows: int) -> float:
    """Return the variance of means over `n_rows` rows, from (n_pairs, n_features, n_few) centered.

    It is proportional to the sum of the variances of all features.
    """
    n_few = surpluses.shape[2]
    together = float((surpluses.mean(axis=2) ** 2).sum())
    alone = float((surpluses**2).sum()) / n_few
    # Without a common part, the variance of the mean is that of a row divided by their number.
    common = max((together - alone / n_few) * n_few / max(n_few - 1, 1), 0.0)
    return float(common + max(alone - common, 0.0) / n_rows)


def _surpluses(game: Game, orders: Orders, rows: Rows) -> Floats:
    """Return the surpluses of rows, the mean of each ordering and its reverse, centered."""
    known = prefixes(orders)
    if game.has_paths:
        risks = game.path_risks(orders, rows, _PILOT_EPOCH, np.ones(known.shape[:2], np.bool_))
    else:
        each = game.risks(known.reshape(-1, known.shape[2]), rows, _PILOT_EPOCH)
        risks = each.reshape(*known.shape[:2], *each.shape[1:])
    risks = risks.mean(axis=3)
    added = by_feature(-np.diff(risks, axis=1), orders)
    pairs = added.reshape(-1, 2, *added.shape[1:]).mean(axis=1)
    centered: Floats = pairs - pairs.mean(axis=0)
    return centered


class _Level(NamedTuple):
    """Functions of the features, and the predictor of each output from them."""

    functions: Functions
    predictors: list[LinearPredictor]

    @property
    def unexplained(self) -> float:
        return sum(predictor.unexplained for predictor in self.predictors)


class _Predictors:
    """Predictors of outputs for drawn rows from functions of the features, few or many of each.

    The functions are made once: the functions of a number are nested, so that fewer of them are the
    first ones.
    """

    def __init__(self, drawn: Floats, n_categories: Ints) -> None:
        widest = Functions.fit(drawn, n_categories, _N_FUNCTIONS[0])
        kept = {n: widest.first(n) for n in (*_N_FUNCTIONS, 1)}
        self._most = next((n for n in kept if kept[n].n_columns <= _MOST_COLUMNS), 0)
        if self._most:
            self._functions = kept[self._most]
            self._basis = self._functions(drawn)

    def fit(self, outputs: list[Floats], n_functions: int) -> _Level | None:
        """Return the predictors of outputs; None with too many columns."""
        if n_functions > self._most:
            return None
        basis = self._functions.select(self._basis, n_functions)
        n_rows = len(basis.columns)
        one = np.ones(n_rows)
        return _Level(
            self._functions.first(n_functions),
            [
                LinearPredictor(basis, output.reshape(n_rows, -1), one, ridge=2.0 / n_rows)
                for output in outputs
            ],
        )

    def find_additive(self, outputs: list[Floats]) -> list[_Level]:
        """Return predictors of outputs, with few functions first.

        There are none if linear predictors suffice.
        """
        linear = self.fit(outputs, 1)
        for n_functions in _N_FUNCTIONS:
            found = self.fit(outputs, n_functions)
            if found is None:
                continue
            if linear is None or found.unexplained > _LEFT * linear.unexplained:
                return []
            few = None if n_functions == _FEW else self.fit(outputs, _FEW)
            return [level for level in (few, found) if level is not None]
        return []
