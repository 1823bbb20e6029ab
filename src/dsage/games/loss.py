"""The game of a model: draws of the unknown features, predictions, losses."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dsage._check import Setting, Text, refusal, warn
from dsage._random import Streams
from dsage.data.categories import sort_labels
from dsage.data.targets import values
from dsage.games.apart import Apart, SumOfOutputs
from dsage.games.base import Floats, Game, Mask, Rows, mean_within
from dsage.games.device_loss import MOST_SPREAD, DeviceLoss
from dsage.games.draw_bias import DrawBias
from dsage.games.draw_need import DrawNeed, bias_for, find_need, pilot_of
from dsage.games.expected import N_MEAN
from dsage.games.first_level import LinkedLoss, find_first_levels
from dsage.games.linear_causal import LinearCausal
from dsage.games.links import find_link
from dsage.games.options import GameOptions
from dsage.graphs.interventions import Interventions
from dsage.models.calling import some_rows
from dsage.models.losses import Loss, LossReason, as_loss, decide_loss
from dsage.models.model import Model, as_model
from dsage.samplers.base import Sampler

# Each changes a risk by about ten nats: from this share on, that shows in the mean.
_MANY_ZEROS = 0.002
# Factor of the number of draws of a risk if a replicate has a probability of zero: eight times
# leaves as little bias as sixty-four times.
_MORE_DRAWS = 8
# The variance of larger losses would not be finite.
_LARGEST = 1e140
# Smaller probabilities are raised to this one where noise is computed from the slope of a loss:
# below, the slope at one mean says little about the loss at another.
_STEEP = 0.1


class LossGame(SumOfOutputs):
    """The risk of a model that knows only a coalition: ``mean of l(y, E[f(X) | x_S])``.

    The expectation is a mean over draws of the unknown features. The loss of such a mean is biased;
    for squared error, by the variance of the mean. A risk is therefore estimated from independent
    replicates of the draws. With G replicates, ``f_g`` the mean over replicate g and ``f`` over
    all, ``risk = mean of p_g`` with

        p_g = G l(f) - (G - 1) l(f without f_g)        (jackknife)
        p_g = l(f) - l''(f) v / 2 + l'(f) (f_g - f)    (delta, with v the variance of f),

    depending on the loss, see :class:`dsage.models.losses.Loss`: the second for losses that have
    derivatives, such as cross entropy. The first is exactly unbiased for squared error.
    Both are free of the first-order bias for every smooth loss; what remains for losses with kinks
    or jumps is estimated by `draw_bias`. An affine model with a sampler that knows conditional
    means needs no draws.

    Parameters
    ----------
    model : estimator, callable or Model
        The fitted model, see :func:`dsage.models.as_model`.
    sampler : Sampler
        A fitted sampler.
    X : data frame or array of shape (n_rows, n_features)
        Evaluation rows.
    y : array of shape (n_rows,) or (n_rows, n_outputs), or None
        Their targets; losses of numbers are summed over several. With None, the model's own output
        is used instead.
    loss : str, callable or Loss, default="auto"
        The loss, see :func:`dsage.models.as_loss`; ``"auto"`` is cross entropy for classifiers and
        squared error for regressors; for functions see :func:`dsage.models.choose_loss`.
    **options
        `n_draws`, `n_replicates`, `noise`, `sample_weight`, `random_state`, `draw_control` and
        `max_bytes`, see :class:`~dsage.games.GameOptions`.

    Attributes
    ----------
    matrix : array of shape (n_rows, n_features)
        The evaluation rows, classes as codes.
    target : array
        The targets as the loss uses them.
    predictions : array of shape (n_rows,) or (n_rows, n_classes)
        The model's predictions, with all features known.
    """

    loss: Loss
    target: npt.NDArray[Any]
    weights: Floats

    def __init__(
        self,
        model: Any,  # noqa: ANN401
        sampler: Sampler,
        X: Any,  # noqa: ANN401
        y: Any,  # noqa: ANN401
        *,
        loss: str | Callable[..., Any] | Loss = "auto",
        **options: Any,  # noqa: ANN401
    ) -> None:
        checked = GameOptions.read(options, "loss")
        checked_model = _check_model(model, X, y, loss)
        self.loss = checked_model.loss if loss == "auto" else as_loss(loss)
        checked = checked.with_draws(self.loss.n_draws())
        super().__init__(checked_model, sampler, X, checked)
        self.target = self.loss.target_for(self.predictions, y, checked_model.classes)
        self.weights = checked.row_weights(self.n_rows)
        self._has_warned = False
        self._full: Floats = self.plain_losses(self.predictions[None], np.arange(self.n_rows))[0]
        self.risk_scale = float(np.abs(self._full).mean())
        self._redraws = self.loss.lowest is not None and self.is_drawn
        streams = Streams(int(self._streams("more-draws").integers(2**62)))
        self._more_noise = self.noise.other(streams, _MORE_DRAWS)
        self._control = self._find_control()
        self._row_control = self._find_row_control()
        if self._device is not None and DeviceLoss.can_compute(
            self.loss, self.target, self.predictions, self.n_replicates
        ):
            shape = self.predictions.shape[1:]
            self._device.loss = DeviceLoss(self.loss, self.target, self.weights, shape)

    @property
    def losses(self) -> Floats:
        """The weighted losses of the rows with all features known, (n_rows,)."""
        return self._full

    @cached_property
    def base_losses(self) -> Floats:
        """Their weighted losses with no feature known, (n_rows,); from 4,096 draws, if any."""
        mean = self._mean()
        everywhere = np.broadcast_to(mean, (1, self.n_rows, *mean.shape))
        found: Floats = self.plain_losses(everywhere, np.arange(self.n_rows))[0]
        return found

    def known_total(self) -> tuple[float, float]:
        """Return what all features together lower the risk by, and its error.

        It is the mean of `base_losses` minus `losses`; the difference between the halves of the
        draws shows its error.
        """
        total = float((self.base_losses - self.losses).mean())
        if not self.is_drawn:
            return total, 0.0
        predicted = self.draw_unknown(N_MEAN)[1]
        halves = np.stack([half.mean(axis=0) for half in np.split(predicted, 2)])
        everywhere = np.broadcast_to(halves[:, None], (2, self.n_rows, *halves.shape[1:]))
        risks = self.plain_losses(everywhere, np.arange(self.n_rows)).mean(axis=1)
        return total, float(abs(risks[1] - risks[0]) / 2)

    @property
    def corrects_means(self) -> bool:
        """Whether the loss is defined for all numbers."""
        return self.loss.is_unbounded

    def outputs_of(self, rows: Rows) -> Rows | None:
        """Return the classes of rows, whose probabilities alone count, if the loss bends."""
        is_of_classes = self.loss.output == "probability" and self.target.ndim == 1
        return self.target[rows] if is_of_classes and self._has_derivatives else None

    def _all_outputs(self, predicted: Floats) -> Floats:
        """Return predictions with the probabilities of all classes."""
        expanded: Floats = self.loss.expand(predicted[None])[0]
        return expanded.reshape(len(predicted), -1)

    def _noise_of_risks(self, noise: Floats, means: Floats, rows: Rows) -> Floats:
        """Return the effect of noise in the probability of the class on risks, to first order.

        The derivative of the loss is taken at the mean of the other replicates, which is
        independent of the noise: so the mean of the result is zero. Steep derivatives are cut off.
        """
        target, n_replicates = self.target[rows], means.shape[2]
        total = means.sum(axis=2, keepdims=True)
        others = np.moveaxis((total - means) / (n_replicates - 1), 2, 1)
        flat = self.loss.expand(others.reshape(-1, len(rows), *means.shape[3:]))
        slopes = self.loss.bend(target, np.maximum(flat, _STEEP))[0]
        slopes = slopes[:, np.arange(len(target)), target]
        slopes = np.moveaxis(slopes.reshape(len(means), n_replicates, -1), 1, 2)
        changes: Floats = slopes * noise * self.weights[rows, None]
        return changes

    def first_level(self) -> Game | None:
        """Return the game of a linear or additive predictor, see `find_first_levels`.

        For probabilities and positive numbers it is additive on the scale of a link.

        None if targets are not numeric, or, for a loss given as a function, differ in shape
        from the predictions; and for a marginal sampler. For a sampler of interventions it is
        :class:`~dsage.games.linear_causal.LinearCausal`.
        """
        output, target = self.predictions, self.target
        if self.loss.is_of_classes and output.ndim != target.ndim:
            target = np.eye(output.shape[1])[target] if output.ndim == 2 else target[:, 1]
        if target.dtype.kind not in "biuf" or target.shape != output.shape:
            return None
        if isinstance(self.interventions, Interventions):
            n_rows = self.n_rows
            pair = output.reshape(n_rows, -1), target.astype(np.float64).reshape(n_rows, -1)
            return LinearCausal(self.interventions, self.matrix, *pair, self.weights)
        link = find_link(self.loss)
        linked = None if link is None else LinkedLoss(link, self.plain_losses)
        return next(iter(find_first_levels(self, [output], [target], self.weights, linked)), None)

    def apart(self) -> Game | None:
        """Return the game with the risks of each column of the target; None if it has only one."""
        # Causal values have a direct and an indirect part instead.
        is_able = self.target.ndim == 2 and self.loss.sums_outputs and self.interventions is None
        return Apart(self) if is_able else None

    def first_levels(self) -> tuple[Game, ...]:
        """Return the game of a predictor of each output, see `first_level`."""
        if self.target.ndim == 1 or not self.loss.sums_outputs or self.interventions is not None:
            return super().first_levels()
        outputs, targets = list(self.predictions.T), list(self.target.T)
        return find_first_levels(self, outputs, targets, self.weights)

    def end_losses(self) -> tuple[Floats, Floats]:
        """Return the loss of each row with nothing known, and with everything, without weights.

        With nothing known the prediction is the same for all rows: the mean over many draws.
        """
        nothing = np.broadcast_to(self._mean(), self.predictions.shape)
        losses = self.loss.many(self.target, np.stack([nothing, self.predictions]))
        return losses[0], losses[1]

    def draw_need(self, tolerance: float | None = None, seconds: float | None = None) -> DrawNeed:
        """Return how many draws each risk needs, at least as many as there are; from a pilot.

        Losses that are smooth have a bias from few draws, which the pseudo-values remove up to a
        rest. For models with overconfident probabilities, or predictions with a long tail, this
        rest is large. The pilot takes up to 65,536 predictions with 16 draws, and twice as many for
        a tolerance below 2 %, and again if it finds a bias; none, if that would take more than a
        tenth of the time limit, `seconds`. Other losses need no pilot: see `draw_bias`.
        """
        n_draws = self.draws_per_risk
        is_plain = self.interventions is None and self.n_replicates > 1
        if not (is_plain and self.is_drawn and self.loss.curve == "smooth"):
            return DrawNeed(n_draws, 0.0)
        rng = self._streams("draw-need")
        matters = bias_for(tolerance)
        n_orderings = 1 if matters == bias_for(None) else 2
        known, rows = pilot_of(self.n_rows, len(self.feature_names), rng, n_orderings)
        rows = rows[: max(1, self._max_bytes // (len(known) * self._bytes_per_row()))]
        source = self.noise.other(Streams(int(rng.integers(2**62))))

        def draw(number: int) -> Floats:
            means = self._means(known, rows, number, source)
            return self._redraw(means, known, rows, number) if self._redraws else means

        explained = float((self.base_losses - self.losses).mean())
        risk = float(self.base_losses.mean())
        means_to_risks = partial(self._to_risks, rows=rows)
        return find_need(draw, means_to_risks, n_draws, explained, risk, matters, seconds)

    def draw_bias(self) -> Game | None:
        """Return the game of the bias from few draws; None if it is negligible."""
        is_left = self.loss.curve in ("kinked", "jump")
        return DrawBias(self) if is_left and self.n_replicates > 1 else None

    def _redraw(self, means: Floats, known: Mask, rows: Rows, epoch: int) -> Floats:
        """Return mean predictions, from more draws if the loss has a pole.

        If no draw of a replicate gives the class of a row a probability, its logarithm is not that
        of the mean, however many orderings there are. Such risks are few, and get new draws.
        """
        target, n_replicates = self.target[rows], means.shape[2]
        flat = np.moveaxis(means, 2, 1).reshape(-1, len(rows), *means.shape[3:])
        is_low = self.loss.too_low(target, flat).reshape(len(means), n_replicates, -1).any(axis=1)
        if not is_low.any():
            return means
        coalitions, at = np.nonzero(is_low)
        means = means.copy()
        again = self._means_of_pairs(known[coalitions], rows[at], epoch, self._more_noise)
        means[coalitions, at] = again
        self._warn_of_zeros(again, target[at], is_low.size)
        return means

    def _to_risks(self, means: Floats, rows: Rows) -> Floats:
        """Return the pseudo-values (n_coalitions, n_rows, n_replicates) of mean predictions."""
        if self._has_derivatives:
            return self._delta(means, rows, self.plain_losses)
        return self._jackknife(means, rows, self.plain_losses)

    def pseudo_values(self, means: Floats, rows: Rows) -> Floats:
        """Return the pseudo-values of outputs, (n_coalitions, n_rows, n_replicates, n_outputs)."""
        if self._has_derivatives:
            return self._delta(means, rows, self.losses_by_output)
        return self._jackknife(means, rows, self.losses_by_output)

    @property
    def _has_derivatives(self) -> bool:
        return self.loss.derivatives is not None and self.n_replicates > 1

    def _delta(
        self, means: Floats, rows: Rows, losses_of: Callable[[Floats, Rows], Floats]
    ) -> Floats:
        """Return the pseudo-values of a loss with derivatives, see `_jackknife`.

        They are ``l(f) - l''(f) v / 2 + c l'(f) (f_g - f)``, with v the variance of f, and c so
        that they vary as the losses ``l(f_g)`` do: slopes alone say too little about few draws.
        """
        n_coalitions, n_rows, n_replicates, *_ = means.shape
        together = mean_within(means, axis=2)
        losses = losses_of(together, rows)
        first, second = self.loss.bend(self.target[rows], together)
        flat = np.moveaxis(means, 2, 1).reshape(-1, n_rows, *means.shape[3:])
        each = self.loss.expand(flat).reshape(n_coalitions, n_replicates, *first.shape[1:])
        off = each - np.expand_dims(self.loss.expand(together), 1)
        variance = np.square(off).sum(axis=1) / (n_replicates * (n_replicates - 1))
        off, bias = np.expand_dims(first, 1) * off, np.expand_dims(second * variance / 2, 1)
        if first.ndim > losses.ndim:
            off, bias = off.sum(axis=-1), bias.sum(axis=-1)
        weights = self.weights[rows].reshape(-1, *[1] * (losses.ndim - 2))
        own = losses_of(flat, rows).reshape(n_coalitions, n_replicates, *losses.shape[1:])
        shift = weights * off
        shift *= _spread_ratio(own - own.mean(axis=1, keepdims=True), shift)
        pseudo: Floats = np.moveaxis(np.expand_dims(losses, 1) + shift - weights * bias, 1, 2)
        return pseudo

    def _jackknife(
        self, means: Floats, rows: Rows, losses_of: Callable[[Floats, Rows], Floats]
    ) -> Floats:
        """Return the pseudo-values (n_coalitions, n_rows, n_replicates, ...) of mean predictions.

        `losses_of` maps predictions (n_times, n_rows, ...) to losses (n_times, n_rows, ...).
        """
        n_coalitions, n_rows, n_replicates, *_ = means.shape
        together = mean_within(means, axis=2)
        whole = np.expand_dims(losses_of(together, rows), 2)
        if n_replicates == 1:
            return whole
        # Means from scratch, not differences from the overall mean: exact ties of classes must
        # remain ties.
        others = [
            mean_within(np.delete(means, replicate, axis=2), axis=2)
            for replicate in range(n_replicates)
        ]
        without = np.stack(others, axis=1).reshape(-1, n_rows, *means.shape[3:])
        losses = losses_of(without, rows)
        losses = losses.reshape(n_coalitions, n_replicates, *losses.shape[1:])
        losses = np.moveaxis(losses, 1, 2)
        # A loss that jumps has no bias of first order that could be removed.
        is_plain = self.loss.curve == "jump"
        centre = np.expand_dims(mean_within(losses, axis=2), 2) if is_plain else whole
        # Exactly the loss itself if all replicates agree.
        pseudo: Floats = whole + (n_replicates - 1) * (centre - losses)
        return pseudo

    def _warn_of_zeros(self, means: Floats, target: npt.NDArray[Any], n_risks: int) -> None:
        """Warn once if even many draws give a class a probability of zero in some replicates.

        `means` belong to the risks that were drawn again, (n_pairs, n_replicates, ...), out
        of `n_risks`. The loss is cut off there and not smooth.
        """
        if self._has_warned:
            return
        is_zero = self.loss.too_low(target, np.moveaxis(means, 1, 0))
        share = float((is_zero.any(axis=0) & ~is_zero.all(axis=0)).sum()) / n_risks
        if share > _MANY_ZEROS:
            self._has_warned = True
            text = (
                f"For {100 * share:.2g} % of the risks some draws, but not all, give the class of "
                f"a row a probability of zero: {self.loss.name} is then biased, however many "
                "orderings there are. Use "
            )
            ending = ", a model without probabilities of zero, or far more draws."
            warn(Text([text, Setting("loss", "brier"), ending]))

    def losses_by_output(self, predictions: Floats, rows: Rows) -> Floats:
        """Return the weighted losses (n_times, n_rows, n_outputs) of predictions of some rows."""
        with np.errstate(over="ignore", invalid="ignore"):
            losses = self.loss.by_output(self.target[rows], predictions)
            return self._check_losses(losses * self.weights[rows, None], predictions, rows)

    def plain_losses(self, predictions: Floats, rows: Rows) -> Floats:
        """Return the weighted losses of predictions (n_times, n_rows, ...) of some rows."""
        with np.errstate(over="ignore", invalid="ignore"):
            losses = self.loss.many(self.target[rows], predictions) * self.weights[rows]
            return self._check_losses(losses, predictions, rows)

    def _check_losses(self, losses: Floats, predictions: Floats, rows: Rows) -> Floats:
        """Return losses if they are finite, and not too large to be squared."""
        if not losses.size or (losses.max() <= _LARGEST and losses.min() >= -_LARGEST):
            return losses
        condition = f"finite, and at most {_LARGEST:.0e}, for {self.model.name}"
        found = f"others, from predictions up to {np.abs(predictions).max():.3g}"
        if self.target.dtype.kind == "f":
            found += f" and targets up to {np.abs(self.target[rows]).max():.3g}"
        advice = "Divide the target and the predictions by a constant"
        raise refusal(f"the losses ({self.loss.name})", condition, found, advice)


def _check_model(
    model: Any,  # noqa: ANN401
    X: Any,  # noqa: ANN401
    y: Any,  # noqa: ANN401
    loss: str | Callable[..., Any] | Loss,
) -> Model:
    """Return the model for a loss; ``"auto"`` is chosen by what it returns for some rows."""
    if isinstance(model, Model):
        return model
    if loss != "auto":
        return as_model(model, loss)
    if y is None:
        return as_model(model, decide_loss(model).loss)
    chosen = decide_loss(model, y, some_rows(X))
    # Votes need the classes.
    has_votes = chosen.reason is LossReason.LABELS
    labels = sort_labels(pd.unique(pd.Series(values(y))).tolist()) if has_votes else None
    return as_model(model, chosen.loss, classes=labels)


def _spread_ratio(own: Floats, linear: Floats) -> Floats:
    """Return how much more losses of replicates vary than slopes imply, (n, 1, n_rows, ...).

    At least 1, and at most `MOST_SPREAD` if a mean is next to a pole.
    """
    found, implied = (np.square(each).sum(axis=1, keepdims=True) for each in (own, linear))
    squares: Floats = np.divide(found, implied, out=np.ones_like(found), where=implied > 0.0)
    ratio: Floats = np.clip(np.sqrt(squares), 1.0, MOST_SPREAD)
    return ratio
