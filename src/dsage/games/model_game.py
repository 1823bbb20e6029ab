"""The common part of the games of models: mean predictions become risks."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from dsage._check import refusal
from dsage.games.base import Floats, Mask, Orders, Rows, prefixes
from dsage.games.expected import Expected
from dsage.models.losses import Loss

ToRisks = Callable[[Floats, Rows], Floats]
"""Maps the mean predictions of replicates, (n_coalitions, n_rows, n_replicates, ...), to risks."""


class ModelGame(Expected):
    """A game whose risks are functions of ``f_S(x) = E[f(X) | x_S]`` for a model f.

    Parameters
    ----------
    model : Predictor
        The model.
    sampler : Sampler
        A fitted sampler.
    X : data frame or array of shape (n_rows, n_features)
        Evaluation rows.
    options : GameOptions
        How to draw, and how much memory to use.

    Attributes
    ----------
    matrix : array of shape (n_rows, n_features)
        The evaluation rows, classes as codes.
    layout : Layout
        The columns.
    predictions : array of shape (n_rows,) or (n_rows, n_outputs)
        The model's, with all features known.
    noise : Noise
        The noise behind the draws: games with the same noise can be compared.
    loss : Loss or None
        The loss; None where the output itself is explained.
    target : array or None
        The targets as the loss uses them.
    """

    loss: Loss | None = None
    target: npt.NDArray[Any] | None = None
    # The risks of the rows with all features known, set by subclasses.
    _full: Floats
    # Whether some means are drawn again, see `_redraw`.
    _redraws: bool = False

    @abstractmethod
    def _to_risks(self, means: Floats, rows: Rows) -> Floats:
        """Return the risks (n_coalitions, n_rows, n_replicates) of the mean of each replicate."""

    def risks(self, known: Mask, rows: Rows, epoch: int = 0) -> Floats:
        """Return the risks of coalitions; see :class:`Game`."""
        full = np.broadcast_to(self._full[rows, None], (len(rows), self.n_replicates))
        return self.fill(self._to_risks, full, known, rows, epoch)

    def path_risks(self, orders: Orders, rows: Rows, epoch: int, needed: Mask) -> Floats:
        """Return the risks of the needed prefixes of orderings; see :class:`Game`."""
        full = np.broadcast_to(self._full[rows, None], (len(rows), self.n_replicates))
        return self.fill_paths(self._to_risks, full, orders, rows, epoch, needed)

    def fill(self, to_risks: ToRisks, full: Floats, known: Mask, rows: Rows, epoch: int) -> Floats:
        """Return what `to_risks` makes of mean predictions; `full` with all features known."""
        out = np.empty((len(known), *full.shape))
        out[known.all(axis=1)] = full
        for at, here, drawn, _ in self._chunks(known, rows, epoch):
            means = drawn
            if self._redraws:
                means = self._redraw(drawn, known[at], rows[here], epoch)
            out[at, here] = to_risks(means, rows[here])
        return out

    def fill_paths(
        self,
        to_risks: ToRisks,
        full: Floats,
        orders: Orders,
        rows: Rows,
        epoch: int,
        needed: Mask,
    ) -> Floats:
        """Return what `to_risks` makes of mean predictions along orderings; see `fill`."""
        out = np.zeros((*needed.shape, *full.shape))
        out[:, -1] = full
        for number, (at, here, drawn, noise) in self._paths(orders, rows, epoch, needed):
            means = drawn
            if self._redraws:
                known = prefixes(orders[number : number + 1])[0, at]
                means = self._redraw(drawn, known, rows[here], epoch)
            out[number, at, here] = to_risks(means, rows[here])
            if noise is not None:
                out[number, at, here] -= self._noise_of_risks(noise, drawn, rows[here])
        return out

    def _noise_of_risks(self, noise: Floats, means: Floats, rows: Rows) -> Floats:  # noqa: ARG002
        """Return what noise of mean predictions does to risks; asked only if `outputs_of` is."""
        raise refusal("game", "one of a loss with slopes", self, "Define outputs_of", TypeError)

    def _redraw(self, means: Floats, known: Mask, rows: Rows, epoch: int) -> Floats:  # noqa: ARG002
        """Return mean predictions, from more draws where the loss needs them."""
        return means
