"""The bias from few draws in the risks of losses with kinks or jumps."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from dsage.games.apart import SumOfOutputs
from dsage.games.base import Floats, Game, Mask, Orders, Rows, Wrapped, mean_within


class DrawBias(Wrapped):
    """The remaining bias of each risk from few draws, estimated from the same draws.

    The loss of the mean of one replicate has a larger bias than the loss of the mean over all G.
    The difference is known; near a kink, the bias falls with the square root of the number of
    draws. This gives the bias with all replicates, ``difference / (sqrt(G) - 1)``, and the bias
    that remains after the jackknife. With a continuous slope, the remaining bias would be smaller.

    Parameters
    ----------
    game : SumOfOutputs
        The game, with at least two replicates.
    by_output : bool, default=False
        Whether the outputs are separate, see :class:`~dsage.games.apart.Apart`.
    """

    game: SumOfOutputs

    def __init__(self, game: SumOfOutputs, *, by_output: bool = False) -> None:
        super().__init__(game)
        self.has_paths = game.has_paths
        self._by_output = by_output
        self.n_outputs = int(game.predictions.shape[1]) if by_output else 1
        self.n_replicates = self.n_outputs * game.n_replicates
        is_corrected = game.loss is None or game.loss.curve != "jump"
        self._share_left = share_left(game.n_replicates, is_corrected=is_corrected)

    def risks(self, known: Mask, rows: Rows, epoch: int = 0) -> Floats:
        """Return the biases of the risks of coalitions; see :class:`Game`."""
        return self.game.fill(self._to_biases, self._none(rows), known, rows, epoch)

    def path_risks(self, orders: Orders, rows: Rows, epoch: int, needed: Mask) -> Floats:
        """Return the biases of the risks of prefixes of orderings; see :class:`Game`."""
        none = self._none(rows)
        return self.game.fill_paths(self._to_biases, none, orders, rows, epoch, needed)

    def apart(self) -> Game | None:
        """Return the same game with its outputs apart."""
        is_one = self._by_output or self.game.apart() is None
        return None if is_one else DrawBias(self.game, by_output=True)

    def _none(self, rows: Rows) -> Floats:
        """Return the biases with all features known, where nothing is drawn."""
        return np.zeros((len(rows), self.n_replicates))

    def _to_biases(self, means: Floats, rows: Rows) -> Floats:
        """Return the biases (n_coalitions, n_rows, n_replicates) of mean predictions."""
        game = self.game
        losses_of: Callable[[Floats, Rows], Floats] = (
            game.losses_by_output if self._by_output else game.plain_losses
        )
        whole = losses_of(mean_within(means, axis=2), rows)
        each = np.moveaxis(means, 2, 0)
        biases = self._share_left * np.stack([losses_of(one, rows) - whole for one in each], axis=2)
        if not self._by_output:
            return biases
        return self.n_outputs * np.moveaxis(biases, 3, 2).reshape(*biases.shape[:2], -1)


def share_left(n_replicates: int, *, is_corrected: bool) -> float:
    """Return the remaining bias, as a multiple of the difference between one replicate and all.

    The bias with n replicates is ``n ** -0.5`` here. The remaining bias is the bias with all
    replicates or, if `is_corrected`, the bias after the jackknife.

    Examples
    --------
    >>> round(share_left(2, is_corrected=False), 2), round(share_left(2, is_corrected=True), 2)
    (2.41, 1.41)
    """
    whole = 1 / math.sqrt(n_replicates)
    removed = (n_replicates - 1) * (1 / math.sqrt(n_replicates - 1) - whole)
    return (whole - removed * is_corrected) / (1 - whole)
