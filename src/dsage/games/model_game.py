"""The common part of the games of models: mean predictions become risks."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dsage._check import refusal
from dsage.data.portions import as_slice
from dsage.games.base import Along, Floats, Mask, Orders, Request, Rows, prefixes
from dsage.games.device_requests import Merged, can_merge
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
        The loss; None if the output itself is explained.
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
        return self.fill(self._to_risks, full, known, rows, epoch, with_loss=True)

    def path_risks(self, orders: Orders, rows: Rows, epoch: int, needed: Mask) -> Floats:
        """Return the risks of the needed prefixes of orderings; see :class:`Game`."""
        full = np.broadcast_to(self._full[rows, None], (len(rows), self.n_replicates))
        return self.fill_paths(self._to_risks, full, orders, rows, epoch, needed, with_loss=True)

    def answers(self, requests: Sequence[Request]) -> list[Floats]:
        """Return the answers to several requests; a device computes them together."""
        if self._device is None or not can_merge(requests, len(self.feature_names)):
            return super().answers(requests)
        merged = Merged(self._device, requests)
        out = [self._begin(request) for request in requests]
        given = merged.asked, requests[0].epoch, self.noise
        for found in self._device.results(*given, with_loss=True):
            for ordering, chunk in found.by_ordering(merged.asked.prefixes):
                number, at, some = merged.find(ordering, chunk)
                rows = requests[number].rows[some.here]
                risks = self._count(some).means
                if not some.is_risk:
                    if self._redraws:
                        known = merged.known(ordering, chunk.at)
                        risks = self._redraw(risks, known, rows, requests[0].epoch)
                    risks = self._to_risks(risks, rows)
                out[number][(*at, some.here)] = risks
        return out

    def _begin(self, request: Request) -> Floats:
        """Return the answer to a request with the risks of all features, and zeros otherwise."""
        full = np.broadcast_to(
            self._full[request.rows, None], (len(request.rows), self.n_replicates)
        )
        if isinstance(request, Along):
            out = np.zeros((*request.needed.shape, *full.shape))
            out[:, -1] = full
        else:
            out = np.zeros((len(request.known), *full.shape))
            out[request.known.all(axis=1)] = full
        return out

    def fill(
        self,
        to_risks: ToRisks,
        full: Floats,
        known: Mask,
        rows: Rows,
        epoch: int,
        *,
        with_loss: bool = False,
    ) -> Floats:
        """Return the results of `to_risks` for mean predictions; `full` with all features known.

        `with_loss` says that it makes the game's own risks, which a device may make instead.
        """
        out = np.empty((len(known), *full.shape))
        out[self._inputs(known).all(axis=1)] = full
        chunks = self._chunks(known, rows, epoch, with_loss=with_loss)
        for at, here, drawn, noise, is_risk in chunks:
            if is_risk:
                out[at, here] = drawn
                continue
            means = drawn
            if self._redraws:
                means = self._redraw(drawn, known[at], rows[here], epoch)
            out[at, here] = to_risks(means, rows[here])
            if noise is not None:
                out[at, here] -= self._noise_of_risks(noise, drawn, rows[here])
        return out

    def fill_paths(
        self,
        to_risks: ToRisks,
        full: Floats,
        orders: Orders,
        rows: Rows,
        epoch: int,
        needed: Mask,
        *,
        with_loss: bool = False,
    ) -> Floats:
        """Return the results of `to_risks` for mean predictions along orderings; see `fill`."""
        out = np.zeros((*needed.shape, *full.shape))
        out[:, -1] = full
        chunks = self._paths(orders, rows, epoch, needed, with_loss=with_loss)
        for number, (at, here, drawn, noise, is_risk) in chunks:
            if is_risk:
                out[number, as_slice(at), here] = drawn
                continue
            means = drawn
            if self._redraws:
                known = prefixes(orders[number : number + 1])[0, at]
                means = self._redraw(drawn, known, rows[here], epoch)
            out[number, at, here] = to_risks(means, rows[here])
            if noise is not None:
                out[number, at, here] -= self._noise_of_risks(noise, drawn, rows[here])
        return out

    def _noise_of_risks(self, noise: Floats, means: Floats, rows: Rows) -> Floats:  # noqa: ARG002
        """Return the effect of noise in mean predictions on risks; needed with `outputs_of`."""
        raise refusal("game", "one whose loss has slopes", self, "Define outputs_of", TypeError)

    def _redraw(self, means: Floats, known: Mask, rows: Rows, epoch: int) -> Floats:  # noqa: ARG002
        """Return mean predictions, from more draws if the loss needs them."""
        return means
