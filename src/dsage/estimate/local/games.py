"""Games of single rows: the quantity explained for each row, and its start and end values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from dsage._check import refusal
from dsage.data.groups import Groups
from dsage.games.base import Floats, Game, Mask, Orders, Rows, Wrapped
from dsage.games.grouped import Grouped
from dsage.games.linear import LinearOutput
from dsage.games.loss import LossGame
from dsage.games.output import OutputGame


@dataclass(frozen=True, eq=False)
class RowGame:
    """A game with values for single rows.

    Attributes
    ----------
    game : Game
        The game that is played.
    data : data frame or array of shape (n_rows, n_features)
        The rows.
    base_value : float or array of shape (n_rows,)
        The output, or the loss of each row, with no feature known.
    full : array of shape (n_rows,)
        The output or the loss of each row with all features known.
    is_loss : bool
        Whether losses are explained, which features reduce.
    make_linear : callable or None
        Makes the cheap game that serves as the first level; None without one.
    """

    game: Game
    data: Any
    base_value: float | Floats
    full: Floats
    is_loss: bool
    make_linear: Callable[[], LinearOutput] | None

    def linear_game(self) -> LinearOutput | None:
        """Return the cheap game that serves as the first level; None without one."""
        return None if self.make_linear is None else self.make_linear()


def as_row_game(game: object) -> RowGame:
    """Return a game of outputs or losses, of features or of groups, as one of single rows.

    Losses of several outputs are summed.

    Examples
    --------
    >>> as_row_game(3)
    Traceback (most recent call last):
    TypeError: game must be an OutputGame or a LossGame; got 'int'. Use OutputGame(model, sampler,
    X), or Grouped(game, groups) of one.
    """
    inner = game.game if isinstance(game, Grouped) else game
    if isinstance(game, Game) and isinstance(inner, OutputGame):
        members = game.members
        groups = None if members is None else Groups(members, inner.feature_names)
        # A linear predictor describes observed features, not interventions on them.
        is_seen = inner.interventions is None
        cheap = partial(inner.linear_game, groups) if is_seen else None
        base, full = inner.base_value, inner.predictions
        return RowGame(game, inner.data, base, full, is_loss=False, make_linear=cheap)
    if isinstance(game, Game) and isinstance(inner, LossGame):
        if not np.all(inner.weights == 1.0):
            advice = "Each row is explained on its own: leave sample_weight out"
            raise refusal("game", "one without weights of rows", "weights", advice)
        data = inner.layout.decode(inner.matrix)
        played, base_losses = _Together(game), inner.base_losses
        return RowGame(played, data, base_losses, inner.losses, is_loss=True, make_linear=None)
    advice = "Use OutputGame(model, sampler, X), or Grouped(game, groups) of one"
    found = type(game).__name__
    raise refusal("game", "an OutputGame or a LossGame", found, advice, TypeError)


class _Together(Wrapped):
    """A game of losses without the extras of the loop of SAGE values: separate outputs, weights."""

    def __init__(self, game: Game) -> None:
        super().__init__(game)
        self.weights = None
        self.has_paths = game.has_paths

    def risks(self, known: Mask, rows: Rows, epoch: int = 0) -> Floats:
        """Return the risks of coalitions; see :class:`Game`."""
        return self.game.risks(known, rows, epoch)

    def path_risks(self, orders: Orders, rows: Rows, epoch: int, needed: Mask) -> Floats:
        """Return the risks of the needed prefixes of orderings; see :class:`Game`."""
        return self.game.path_risks(orders, rows, epoch, needed)
