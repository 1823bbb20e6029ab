"""Risks from mean predictions, computed on a device, for the most frequent losses."""

from __future__ import annotations

from typing import Any

from dsage.games.base import Floats, Rows
from dsage.models.losses import Loss
from dsage.models.torch_tools import require_torch

MOST_SPREAD = 3.0
"""Largest ratio of the spread of losses over replicates to the spread that slopes imply."""
# Predictions up to this size have losses that can be squared; others are checked by the CPU.
_LARGEST = 1e60
# How far probabilities may be from [0, 1], and their sums from one; in 16-bit floats, whose sums
# are divided out. The CPU refuses others.
_TOLERANCE, _COARSE = 1e-4, 2e-2


class DeviceLoss:
    """Pseudo-values of squared error, or of cross entropy, as :class:`LossGame` computes them.

    Parameters
    ----------
    loss : Loss
        The loss; see `can_compute`.
    target : array of shape (n_rows,)
        Numbers, or codes of classes.
    weights : array of shape (n_rows,)
        The weights of the rows.
    outputs : tuple of int
        The shape of a prediction: empty, or the number of classes.
    """

    def __init__(
        self,
        loss: Loss,
        target: Any,  # noqa: ANN401
        weights: Floats,
        outputs: tuple[int, ...],
    ) -> None:
        self.outputs = outputs
        self._is_of_classes = loss.is_of_classes
        self._lowest = loss.lowest or 0.0
        self._target, self._weights = target, weights

    @staticmethod
    def can_compute(loss: Loss, target: Any, predictions: Floats, n_replicates: int) -> bool:  # noqa: ANN401
        """Return whether the risks of a game can be computed."""
        if n_replicates < 2 or target.ndim != 1:
            return False
        if loss.name == "cross_entropy":
            return bool(target.dtype.kind in "iu")
        return loss.name == "squared_error" and predictions.ndim == 1

    def __call__(self, means: Any, rows: Rows, *, is_coarse: bool) -> tuple[Any, Any]:  # noqa: ANN401
        """Return risks (n_prefixes, n_rows, n_replicates), and whether all of them are fine.

        The means have shape (n_prefixes, n_rows, n_replicates[, n_classes]), the numbers of rows
        (n_prefixes, n_rows), or (1, n_rows) if they are the same for all prefixes. Risks are not
        valid if means have to be refused, or drawn again; the CPU then checks the means.
        `is_coarse` says whether they are means of 16-bit floats.
        """
        torch = require_torch("DeviceLoss")

        def send(values: Any) -> Any:  # noqa: ANN401
            return torch.from_numpy(values[rows]).to(means.device, non_blocking=True)

        weights = send(self._weights).to(means.dtype)[:, :, None]
        if self._is_of_classes:
            chosen, are_fine = self._of_class(means, send(self._target), is_coarse=is_coarse)
            risks = _cross_entropies(chosen, weights)
        else:
            are_fine = (means.abs() <= _LARGEST).all()
            risks = _squared_errors(means, send(self._target).to(means.dtype)[:, :, None], weights)
        are_fine = are_fine & torch.isfinite(risks).all()
        return risks, are_fine.to(means.dtype).reshape(1)

    def _of_class(self, means: Any, target: Any, *, is_coarse: bool) -> tuple[Any, Any]:  # noqa: ANN401
        """Return the mean probabilities of the rows' classes, and whether all means are fine."""
        torch = require_torch("DeviceLoss")
        tolerance = _COARSE if is_coarse else _TOLERANCE
        are_fine = ((means - 0.5).abs() <= 0.5 + tolerance).all()
        if means.ndim == 4:
            sums = means.sum(dim=3)
            are_fine = are_fine & ((sums - 1.0).abs() <= tolerance).all()
            at = target[:, :, None, None].expand(*means.shape[:3], 1)
            chosen = torch.gather(means, 3, at)[..., 0]
            chosen = chosen / sums if is_coarse else chosen
        else:
            chosen = torch.where((target == 1)[:, :, None], means, 1.0 - means)
        return chosen, are_fine & (chosen >= self._lowest).all()


def _squared_errors(means: Any, target: Any, weights: Any) -> Any:  # noqa: ANN401
    """Return ``G l(f) - (G - 1) l(f without f_g)`` for each of G replicates."""
    n_replicates = means.shape[2]
    total = means.sum(dim=2, keepdim=True)
    off = target - total / n_replicates
    off_without = target - (total - means) / (n_replicates - 1)
    whole, without = off.square_(), off_without.square_()
    return (whole + (n_replicates - 1) * (whole - without)) * weights


def _cross_entropies(chosen: Any, weights: Any) -> Any:  # noqa: ANN401
    """Return ``l(f) - l''(f) v / 2 + c l'(f) (f_g - f)`` of probabilities of the classes.

    The factor c makes them vary as the losses of the replicates do, see `LossGame`.
    """
    n_replicates = chosen.shape[2]
    together = chosen.mean(dim=2, keepdim=True)
    share = chosen / together - 1.0
    squares = share.square().sum(dim=2, keepdim=True)
    variance = squares / (n_replicates * (n_replicates - 1))
    losses = together.clamp(max=1.0).log().neg_()
    own = chosen.clamp(max=1.0).log()
    spread = (own - own.mean(dim=2, keepdim=True)).square_().sum(dim=2, keepdim=True)
    # If all replicates agree there is no ratio, and nothing to multiply.
    ratio = (spread / squares).sqrt_().nan_to_num_(nan=1.0).clamp_(1.0, MOST_SPREAD)
    return (losses - variance / 2 - ratio * share) * weights
