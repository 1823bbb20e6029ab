"""The game of a model: draws of the unknown features, predictions, losses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dsage._check import Setting, Text, refusal, warn
from dsage.data.categories import sort_labels
from dsage.data.targets import values
from dsage.games.apart import Apart, SumOfOutputs
from dsage.games.base import Floats, Game, Rows
from dsage.games.expected import mean_within
from dsage.games.first_level import find_first_levels
from dsage.games.options import GameOptions
from dsage.models.calling import some_rows
from dsage.models.losses import EPSILON, Loss, LossReason, as_loss, decide_loss
from dsage.models.model import Model, as_model
from dsage.samplers.base import Sampler

# Each changes a risk by about ten nats: from this share on, that shows in the mean.
_MANY_ZEROS = 0.002
# The variance of larger losses would not be finite.
_LARGEST = 1e140


class LossGame(SumOfOutputs):
    """The risk of a model that knows only a coalition: ``mean of l(y, E[f(X) | x_S])``.

    The expectation is a mean over draws of the unknown features. The loss of such a mean is biased;
    for squared error, by the variance of the mean. A risk is therefore estimated by the jackknife
    over independent replicates of the draws: with G replicates, ``f_g`` the mean over replicate g
    and ``f`` over all,

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
    y : array of shape (n_rows,) or (n_rows, n_outputs), or None
        Their targets; losses of numbers are summed over several. With None the model's own output
        takes their place.
    loss : str, callable or Loss, default="auto"
        The loss, see :func:`dsage.models.as_loss`; ``"auto"`` is cross entropy for classifiers and
        squared error for regressors; for functions see :func:`dsage.models.choose_loss`.
    **options
        `n_draws`, `n_replicates`, `noise`, `sample_weight`, `random_state` and `max_bytes`, see
        :class:`~dsage.games.GameOptions`.

    Attributes
    ----------
    matrix : array of shape (n_rows, n_features)
        The evaluation rows, classes as codes.
    target : array
        The targets as the loss uses them.
    predictions : array of shape (n_rows,) or (n_rows, n_classes)
        The model's, with all features known.
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
        super().__init__(checked_model, sampler, X, checked)
        self.target = self.loss.target_for(self.predictions, y, checked_model.classes)
        self.weights = checked.row_weights(self.n_rows)
        self._has_warned = False
        self._full: Floats = self._losses(self.predictions[None], np.arange(self.n_rows))[0]

    @property
    def corrects_means(self) -> bool:
        """Whether the loss is defined for all numbers."""
        return self.loss.is_unbounded

    def first_level(self) -> Game | None:
        """Return the game of a linear or additive predictor, see `find_first_levels`.

        None where targets are not numeric, or, for a loss given as a function, differ in shape
        from the predictions; and for a marginal sampler.
        """
        output, target = self.predictions, self.target
        if self.loss.output == "probability" and output.ndim != target.ndim:
            target = np.eye(output.shape[1])[target] if output.ndim == 2 else target[:, 1]
        if target.dtype.kind not in "biuf" or target.shape != output.shape:
            return None
        return next(iter(find_first_levels(self, [output], [target], self.weights)), None)

    def apart(self) -> Game | None:
        """Return the game with the risks of each column of the target; None if it has only one."""
        return Apart(self) if self.target.ndim == 2 and self.loss.sums_outputs else None

    def first_levels(self) -> tuple[Game, ...]:
        """Return the game of a predictor of each output, see `first_level`."""
        if self.target.ndim == 1 or not self.loss.sums_outputs:
            return super().first_levels()
        outputs, targets = list(self.predictions.T), list(self.target.T)
        return find_first_levels(self, outputs, targets, self.weights)

    def _to_risks(self, means: Floats, rows: Rows) -> Floats:
        """Return the pseudo-values (n_coalitions, n_rows, n_replicates) of mean predictions."""
        return self._jackknife(means, rows, self._losses)

    def pseudo_values(self, means: Floats, rows: Rows) -> Floats:
        """Return the pseudo-values of outputs, (n_coalitions, n_rows, n_replicates, n_outputs)."""
        return self._jackknife(means, rows, self.losses_by_output)

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
        self._warn_of_zeros(without.reshape(n_coalitions, n_replicates, *without.shape[1:]), rows)
        losses = losses_of(without, rows)
        losses = losses.reshape(n_coalitions, n_replicates, *losses.shape[1:])
        # Exactly the loss itself where all replicates agree.
        pseudo: Floats = whole + (n_replicates - 1) * (whole - np.moveaxis(losses, 1, 2))
        return pseudo

    def _warn_of_zeros(self, means: Floats, rows: Rows) -> None:
        """Warn once where only some replicates give the class of a row a probability of zero.

        The logarithm is clipped there and not smooth, and the jackknife makes it worse: a risk may
        even be negative.
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
            text = (
                f"For {100 * share:.2g} % of the risks some draws, but not all, give the class of "
                "a row a probability of zero: cross entropy is then biased, however many orderings "
                "there are. Use "
            )
            ending = ", a model without probabilities of zero, or far more draws."
            warn(Text([text, Setting("loss", "brier"), ending]))

    def losses_by_output(self, predictions: Floats, rows: Rows) -> Floats:
        """Return the weighted losses (n_times, n_rows, n_outputs) of predictions of some rows."""
        with np.errstate(over="ignore", invalid="ignore"):
            losses = self.loss.by_output(self.target[rows], predictions)
            return self._check_losses(losses * self.weights[rows, None], predictions, rows)

    def _losses(self, predictions: Floats, rows: Rows) -> Floats:
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
