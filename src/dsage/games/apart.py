"""A game of losses with separate risks of its outputs."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from dsage.games.base import Floats, Game, Mask, Orders, Rows, Wrapped
from dsage.games.model_game import ModelGame


class SumOfOutputs(ModelGame):
    """A game of losses that are summed over the outputs of a model; :class:`Apart` takes it apart.

    The target has shape (n_rows, n_outputs).
    """

    @abstractmethod
    def losses_by_output(self, predictions: Floats, rows: Rows) -> Floats:
        """Return the losses (n_times, n_rows, n_outputs) of predictions of some rows."""

    @abstractmethod
    def plain_losses(self, predictions: Floats, rows: Rows) -> Floats:
        """Return the losses (n_times, n_rows) of predictions of some rows."""

    @abstractmethod
    def pseudo_values(self, means: Floats, rows: Rows) -> Floats:
        """Return the pseudo-values of outputs, (n_coalitions, n_rows, n_replicates, n_outputs)."""


class Apart(Wrapped):
    """The risks of each output of a game of losses, from the same draws and predictions.

    Its risks have the pseudo-values of one output after the other in their last axis, see
    :meth:`~dsage.games.Game.apart`.

    Parameters
    ----------
    game : SumOfOutputs
        The game, whose target has several columns.
    """

    game: SumOfOutputs

    def __init__(self, game: SumOfOutputs) -> None:
        super().__init__(game)
        self.has_paths = game.has_paths
        self.n_outputs = int(game.predictions.shape[1])
        self.n_replicates = self.n_outputs * game.n_replicates
        everything = np.arange(self.n_rows)
        self._full = game.losses_by_output(game.predictions[None], everything)[0]

    def risks(self, known: Mask, rows: Rows, epoch: int = 0) -> Floats:
        """Return the risks of coalitions; see :class:`Game`."""
        return self.game.fill(self._to_risks, self._full_risks(rows), known, rows, epoch)

    def path_risks(self, orders: Orders, rows: Rows, epoch: int, needed: Mask) -> Floats:
        """Return the risks of the needed prefixes of orderings; see :class:`Game`."""
        full = self._full_risks(rows)
        return self.game.fill_paths(self._to_risks, full, orders, rows, epoch, needed)

    def first_levels(self) -> tuple[Game, ...]:
        """Return for each output a cheap game similar to its game."""
        return self.game.first_levels()

    def draw_bias(self) -> Game | None:
        """Return the game of the bias that few draws leave, whose outputs can be taken apart."""
        return self.game.draw_bias()

    def _full_risks(self, rows: Rows) -> Floats:
        scaled = self.n_outputs * self._full[rows]
        return np.repeat(scaled, self.game.n_replicates, axis=1)

    def _to_risks(self, means: Floats, rows: Rows) -> Floats:
        pseudo = self.n_outputs * self.game.pseudo_values(means, rows)
        return np.moveaxis(pseudo, 3, 2).reshape(*pseudo.shape[:2], -1)
