"""The game of a model: draws of the unknown features, predictions, losses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from dsage._check import warn
from dsage._random import RandomState
from dsage.data.layout import Layout
from dsage.games.base import Floats, Mask, Orders, Rows, check_weights
from dsage.games.expected import Expected, mean_within
from dsage.games.moment import MomentGame
from dsage.models.losses import EPSILON, Loss, as_loss, choose_loss
from dsage.models.model import Model, as_model
from dsage.samplers.base import Sampler
from dsage.samplers.noise import Noise

# Each makes a risk wrong by some ten nats: from this share on, that shows in the mean.
_MANY_ZEROS = 0.002


class LossGame:
    """The risk of a model that knows a coalition only: ``mean of l(y, E[f(X) | x_S])``.

    The expectation is a mean over draws of the unknown features. A loss of such a mean is biased:
    by the variance of the mean for squared error. So a risk is estimated by the jackknife over the
    groups of draws, which are independent: with G groups, ``f_g`` the mean over group g and ``f``
    over all,

        p_g = G l(f) - (G - 1) l(f without f_g)        risk = mean of p_g,

    which is exactly unbiased for squared error, and free of the first-order bias for every smooth
    loss. An affine model with a sampler that knows conditional means needs no draws.

    Parameters
    ----------
    model : estimator, callable or Model
        The fitted model, see :func:`dsage.models.as_model`.
    sampler : Sampler
        A fitted sampler.
    X : data frame or array of shape (n_rows, n_features)
        Evaluation rows.
    y : array of shape (n_rows,), or None
        Their targets. None explains the model's own output: it stands for the target.
    loss : str, callable or Loss, default="auto"
        The loss, see :func:`dsage.models.as_loss`; ``"auto"`` is cross entropy for classifiers and
        squared error for all others.
    n_draws : int, default=8
        Draws for each row and coalition; a multiple of `n_replicates`.
    n_replicates : int, default=2
        Independent groups of draws. One alone has no jackknife, and tells nothing of its error.
    noise : {"sobol", "independent"}, default="sobol"
        How the draws of a group are made, see :class:`~dsage.samplers.noise.Noise`.
    random_state : int, numpy Generator or None, default=None
        Seed of the noise.
    sample_weight : array of shape (n_rows,), optional
        Weights of the rows, not negative.
    max_bytes : int, default=2**28
        Coalitions and rows are evaluated in blocks so small that draws and predictions stay
        within this budget.

    Attributes
    ----------
    matrix : array of shape (n_rows, n_features)
        The evaluation rows, classes as codes.
    target : array
        The targets as the loss wants them.
    predictions : array of shape (n_rows,) or (n_rows, n_classes)
        The model's, with all features known.
    is_drawn : bool
        False where conditional means do.
    """

    def __init__(
        self,
        model: Any,  # noqa: ANN401
        sampler: Sampler,
        X: Any,  # noqa: ANN401
        y: Any,  # noqa: ANN401
        *,
        loss: str | Callable[..., Any] | Loss = "auto",
        n_draws: int = 8,
        n_replicates: int = 2,
        noise: Literal["sobol", "independent"] = "sobol",
        random_state: RandomState = None,
        sample_weight: npt.ArrayLike | None = None,
        max_bytes: int = 2**28,
    ) -> None:
        self.loss = choose_loss(model, y) if loss == "auto" else as_loss(loss)
        self.model = model if isinstance(model, Model) else as_model(model, self.loss)
        self._expected = Expected(
            self.model,
            sampler,
            X,
            n_draws=n_draws,
            n_replicates=n_replicates,
            noise=noise,
            random_state=random_state,
            max_bytes=max_bytes,
        )
        self.sampler = sampler
        self.layout: Layout = self._expected.layout
        self.matrix = self._expected.matrix
        self.feature_names = self._expected.feature_names
        self.n_rows = self._expected.n_rows
        self.predictions = self._expected.predictions
        self.is_drawn = self._expected.is_drawn
        self.n_replicates = self._expected.n_replicates
        self.target = self.loss.target_for(self.predictions, y, self.model.classes)
        self.weights = check_weights(sample_weight, self.n_rows)
        if self._expected.has_paths:
            self.path_risks = self._path_risks
        self._has_warned = False
        self._full = self._losses(self.predictions[None], np.arange(self.n_rows))[0]

    @property
    def noise(self) -> Noise:
        """What the draws are made of: games with the same noise can be compared."""
        return self._expected.noise

    @property
    def n_predicted(self) -> int:
        """Rows that the model was asked for."""
        return self._expected.n_predicted

    def risks(self, known: Mask, rows: Rows, epoch: int = 0) -> Floats:
        """Return the risks of coalitions; see :class:`Game`."""
        out = np.empty((len(known), len(rows), self.n_replicates))
        out[known.all(axis=1)] = self._full[rows, None]
        for at, here, groups in self._expected.parts(known, rows, epoch):
            out[at, here] = self._pseudo(groups, rows[here])
        return out

    def _path_risks(self, orders: Orders, rows: Rows, epoch: int, needed: Mask) -> Floats:
        """Return the risks of the needed prefixes of orderings; see :class:`Paths`."""
        out = np.zeros((*needed.shape, len(rows), self.n_replicates))
        out[:, -1] = self._full[rows, None]
        for number, (at, here, groups) in self._expected.paths(orders, rows, epoch, needed):
            out[number, at, here] = self._pseudo(groups, rows[here])
        return out

    def moment_game(self) -> MomentGame | None:
        """Return the cheap game that resembles this one; None where the targets are no numbers.

        Neither is there one where a function given as a loss compares things of different shapes.
        """
        output, target = self.predictions, self.target
        if self.loss.output == "probability" and output.ndim != target.ndim:
            target = np.eye(output.shape[1])[target] if output.ndim == 2 else target[:, 1]
        if target.dtype.kind not in "biuf" or target.shape != output.shape:
            return None
        return MomentGame(
            self.matrix, output, target, self.feature_names, sample_weight=self.weights
        )

    def _pseudo(self, groups: Floats, rows: Rows) -> Floats:
        """Return the pseudo-values (n_coalitions, n_rows, n_replicates) of mean predictions."""
        n_coalitions, n_rows, n_replicates, *_ = groups.shape
        together = mean_within(groups, axis=2)
        whole = self._losses(together, rows)[:, :, None]
        if n_replicates == 1:
            return whole
        # Means anew, not differences to the mean of all: exact ties of classes must stay ties.
        others = [
            mean_within(np.delete(groups, group, axis=2), axis=2) for group in range(n_replicates)
        ]
        without = np.stack(others, axis=1).reshape(-1, n_rows, *groups.shape[3:])
        self._note_zeros(without.reshape(n_coalitions, n_replicates, *without.shape[1:]), rows)
        losses = self._losses(without, rows).reshape(n_coalitions, n_replicates, n_rows)
        # Exactly the loss itself where no group changes it.
        pseudo: Floats = whole + (n_replicates - 1) * (whole - np.moveaxis(losses, 1, 2))
        return pseudo

    def _note_zeros(self, means: Floats, rows: Rows) -> None:
        """Warn once where draws of some groups alone leave the class of a row no probability.

        There the logarithm is cut off, no smooth function, and the jackknife makes it worse: a risk
        may even be negative.
        """
        target = self.target[rows]
        if self._has_warned or self.loss.name != "cross_entropy" or target.ndim == 2:
            return
        at = np.arange(len(rows))
        chosen = means[..., at, target] if means.ndim == 4 else np.abs(1 - target - means)
        is_zero = chosen < EPSILON
        share = float((is_zero.any(axis=1) & ~is_zero.all(axis=1)).mean())
        if share > _MANY_ZEROS:
            self._has_warned = True
            warn(
                f"For {100 * share:.2g} % of the risks some draws, and not others, give the class "
                "of a row no probability at all: cross entropy is biased then, however many "
                "orderings there are. Use loss='brier', a model without probabilities of zero, or "
                "far more draws."
            )

    def _losses(self, predictions: Floats, rows: Rows) -> Floats:
        """Return the weighted losses of predictions (n_times, n_rows, ...) of some rows."""
        return self.loss.many(self.target[rows], predictions) * self.weights[rows]
