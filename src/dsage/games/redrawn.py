"""The game in which unknown features are redrawn, and each draw has its own loss."""

from __future__ import annotations

from typing import Any

import numpy as np

from dsage.games.base import Floats, Game, Rows
from dsage.games.loss import LossGame
from dsage.models.losses import Loss
from dsage.models.model import Model, as_model
from dsage.samplers.base import Sampler


class Redrawn(LossGame):
    """The risk of a model that gets draws of the unknown features: ``mean of l(y, f(x_S, X_-S))``.

    A :class:`LossGame` takes the loss of the *mean* prediction over the draws, which is what a
    model that knows only the coalition would predict. Here, every draw is predicted and has a loss,
    and the risk is the mean of these losses: the loss of the model if it is given draws. It needs
    no correction for few draws. For squared error it is larger than the risk of the mean
    prediction, by the variance of the predictions over the draws.

    Parameters
    ----------
    model : Model
        The model, see :func:`dsage.models.as_model`.
    sampler : Sampler
        A fitted sampler.
    X : data frame or array of shape (n_rows, n_features)
        Evaluation rows.
    y : array of shape (n_rows,) or (n_rows, n_outputs)
        Their targets.
    loss : Loss
        The loss.
    n_draws : int
        Draws for each row and coalition, independent of each other.
    **options
        `sample_weight`, `random_state` and `max_bytes`, see :class:`~dsage.games.GameOptions`.

    Examples
    --------
    >>> from dsage.models import as_loss
    >>> from dsage.samplers import Gaussian
    >>> X = np.random.default_rng(0).normal(size=(500, 1))
    >>> loss = as_loss("squared_error")
    >>> model = as_model(lambda X: X[:, 0], loss)
    >>> sampler = Gaussian.from_moments([0.0], [[1.0]])
    >>> game = Redrawn(model, sampler, X, X[:, 0], loss=loss, n_draws=64, random_state=0)
    >>> game.mean_risks(np.array([[False]])).round(1)  # twice the variance, not once
    array([2.])
    """

    def __init__(
        self,
        model: Model,
        sampler: Sampler,
        X: Any,  # noqa: ANN401
        y: Any,  # noqa: ANN401
        *,
        loss: Loss,
        n_draws: int,
        **options: Any,  # noqa: ANN401
    ) -> None:
        # A function is never affine: conditional means say nothing about single draws.
        classes = model.classes if loss.is_of_classes else None
        drawn = as_model(model.predict, loss, classes=classes)
        options |= {"n_draws": n_draws, "n_replicates": n_draws, "draw_control": "none"}
        super().__init__(drawn, sampler, X, y, loss=loss, **options)
        # A single draw may well have a probability of zero.
        self._redraws = False

    def _to_risks(self, means: Floats, rows: Rows) -> Floats:
        """Return the loss of each draw: every replicate has one."""
        flat = np.moveaxis(means, 2, 1).reshape(-1, len(rows), *means.shape[3:])
        losses = self.plain_losses(flat, rows)
        return np.moveaxis(losses.reshape(len(means), means.shape[2], len(rows)), 1, 2)

    def draw_bias(self) -> Game | None:
        """Return None: a mean of losses is not biased, however few draws there are."""
        return None

    def first_level(self) -> Game | None:
        """Return None: the game of a predictor of means is a different one."""
        return None

    def first_levels(self) -> tuple[Game, ...]:
        """Return nothing, see `first_level`."""
        return ()
