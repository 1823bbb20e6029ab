"""Means over rows of differences of risks, with separate errors from draws and from rows."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from dsage.games.base import Floats, Game, Mask

# Epochs of noise: the fewest before the errors are checked, and the most in total.
_FEWEST, _MOST = 2, 64
# An error from draws is negligible if it is at most this share of the error from rows, or of the
# range of the values.
_OF_ROWS, _OF_RANGE = 1 / 3, 0.01
# Bytes of the risks that are computed at a time.
_BYTES = 2**27


class Average(NamedTuple):
    """A measure of all players: values, and the errors from draws and from the choice of rows.

    All have the shape (n_players,). `se` is zero if nothing is drawn, and `se_rows` is NaN for a
    single row.
    """

    values: Floats
    se: Floats
    se_rows: Floats


class Tally:
    """Sums of pseudo-values and of their squares, for each player and row."""

    def __init__(self, n_players: int, n_rows: int) -> None:
        self._sums = np.zeros((n_players, n_rows))
        self._squares = np.zeros((n_players, n_rows))
        self._count = 0

    def add(self, pseudo: Floats) -> Self:
        """Add pseudo-values (n_players, n_rows, n_replicates)."""
        self._sums += pseudo.sum(axis=2)
        self._squares += np.square(pseudo).sum(axis=2)
        self._count += pseudo.shape[2]
        return self

    def average(self, weights: Floats | None = None) -> Average:
        """Return means over rows with their errors.

        The noise of different rows is independent, and so are replicates. The variance between rows
        includes both errors: the error from rows is found by subtracting the error from draws.
        The pseudo-values have been multiplied by `weights`, which have mean one.
        """
        by_row = self._sums / self._count
        n_players, n_rows = by_row.shape
        values = by_row.mean(axis=1)
        noise = np.zeros(n_players)
        if self._count > 1:
            spread = np.maximum(self._squares / self._count - np.square(by_row), 0.0)
            noise = spread.mean(axis=1) / ((self._count - 1) * n_rows)
        if n_rows == 1:
            return Average(values, np.sqrt(noise), np.full(n_players, np.nan))
        shares = np.ones(n_rows) if weights is None else weights
        # The scaling of the weights to mean one depends on the rows as well.
        residual = by_row - values[:, None] * shares
        both = np.square(residual).sum(axis=1) / (n_rows * (n_rows - 1))
        return Average(values, np.sqrt(noise), np.sqrt(np.maximum(both - noise, 0.0)))


def average(game: Game, worse: Mask, better: Mask) -> Average:
    """Return the means over rows of ``L(worse) - L(better)``, for each pair of coalitions.

    Epochs of independent noise are added until the error from draws is negligible: at most a third
    of the error from rows, or 1 % of the range of the values. It includes the bias that few draws
    leave for losses with kinks or jumps.

    Parameters
    ----------
    game : Game
        The game.
    worse, better : bool arrays of shape (n_players, n_features)
        The coalitions.

    Examples
    --------
    >>> from dsage.games import MomentGame
    >>> X = np.random.default_rng(0).normal(size=(400, 2))
    >>> game = MomentGame(X, X[:, 1], X[:, 1], ["a", "b"])
    >>> found = average(game, ~np.eye(2, dtype=bool), np.ones((2, 2), dtype=bool))
    >>> np.abs(found.values).round(1)
    array([0., 1.])
    """
    tally = Tally(len(worse), game.n_rows)
    for epoch in range(_MOST):
        tally.add(_differences(game, worse, better, epoch))
        found = tally.average(game.weights)
        if not game.is_drawn or (epoch + 1 >= _FEWEST and is_precise(found)):
            break
    bias = game.draw_bias()
    if bias is None:
        return found
    left = np.abs(_differences(bias, worse, better, 0).mean(axis=(1, 2)))
    return found._replace(se=np.hypot(found.se, left))


def _differences(game: Game, worse: Mask, better: Mask, epoch: int) -> Floats:
    """Return pseudo-values of differences, (n_players, n_rows, n_replicates)."""
    rows = np.arange(game.n_rows)
    at_once = max(1, _BYTES // (16 * game.n_rows * game.n_replicates))
    parts = []
    for first in range(0, len(worse), at_once):
        some = slice(first, first + at_once)
        pairs = np.concatenate([worse[some], better[some]])
        distinct, members = np.unique(pairs, axis=0, return_inverse=True)
        # All coalitions of a row share their noise, so common errors cancel.
        risks = game.risks(distinct, rows, epoch)[members.ravel()]
        half = len(pairs) // 2
        parts.append(risks[:half] - risks[half:])
    return np.concatenate(parts)


def is_precise(found: Average) -> bool:
    """Return whether the error from draws is negligible compared with the error from rows."""
    spread = np.ptp(found.values) if len(found.values) > 1 else np.abs(found.values).max()
    allowed = np.maximum(_OF_ROWS * np.nan_to_num(found.se_rows), _OF_RANGE * spread)
    return bool((found.se <= allowed).all())
