"""The bias from few draws per risk, which more orderings and epochs do not reduce."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dsage._check import Setting, Text, warn
from dsage.estimate.loop import Estimation
from dsage.estimate.result import Estimate, OutputEstimate
from dsage.games.base import Floats
from dsage.games.model_game import ModelGame
from dsage.models.losses import Loss

# Evaluations for the bias, as a share of the evaluations of the run.
_SHARE = 0.1
# Warn if the bias may be larger than this share of the range.
_MATTERS = 0.05


def add_draw_bias(result: Estimate, estimation: Estimation) -> Estimate:
    """Return an estimate whose error of draws includes the bias that few draws may leave.

    It is estimated with a tenth of the evaluations of the run, for losses with kinks or jumps; with
    other losses, the estimate is returned unchanged. Fresh draws do not average the bias out, so no
    stopping rule waits for it.

    If a loss jumps, the sign of the bias differs from row to row, and the spread of the draws of a
    single epoch also shows its size.
    """
    plan = estimation.plan
    game = plan.game.draw_bias()
    if game is None or result.n_units == 0 or not plan.tells_errors:
        return result
    options = vars(plan.options) | {"first_level": "none", "audit": False, "estimand": "d-sage"}
    oracle = None if plan.estimand == "sage" else plan.oracle
    options["random_state"] = int(plan.streams("draw-bias").integers(2**62))
    found: Estimate | None = None
    for found in Estimation(game, oracle=oracle, **options).steps():
        if found.n_evaluated >= _SHARE * result.n_evaluated:
            break
    if found is None:
        return result
    losses = [part.loss for part in plan.game.parts if isinstance(part, ModelGame)]
    kept = [loss for loss in losses if loss is not None]
    jumps = any(loss.curve == "jump" for loss in kept)
    n_epochs = estimation.n_epochs
    bias = _size(found, result, n_epochs, jumps=jumps)
    further = []
    for had, got in ((result.outputs, found.outputs), (result.parts, found.parts)):
        more = had
        if had is not None and got is not None:
            own = _size(got, had, n_epochs, jumps=jumps)
            more = replace(had, se_draws=np.hypot(had.se_draws, own))
        further.append(more)
    outputs, parts = further
    _warn(bias, result, kept)
    se_draws = np.hypot(result.se_draws, bias)
    return replace(result, se_draws=se_draws, outputs=outputs, parts=parts)


def _size(
    found: Estimate | OutputEstimate,
    drawn: Estimate | OutputEstimate,
    n_epochs: float,
    *,
    jumps: bool,
) -> Floats:
    """Return the size of biases, from their estimates and from the errors of the draws."""
    squares: Floats = found.values**2
    if jumps:
        # Their estimates are noisy. The sign differs from row to row, as for an error of the draws,
        # but epochs do not average it out.
        squares = np.maximum(squares - found.se**2, 0.0) + n_epochs * drawn.se_draws**2
    return np.sqrt(squares)


def _warn(bias: Floats, result: Estimate, losses: list[Loss]) -> None:
    """Warn if the bias is large compared with the values and the other errors."""
    scale = np.ptp(result.values) if len(result.values) > 1 else np.abs(result.values).max()
    largest = int(np.argmax(bias))
    if bias[largest] <= max(_MATTERS * scale, result.se[largest]) or not losses:
        return
    name, share = losses[0].name, bias[largest] / scale if scale > 0 else np.inf
    text = (
        f"With {name}, few draws may leave a bias of up to {100 * share:.3g} % of the range of the "
        "values, however many orderings there are; the standard errors include it. Use more draws, "
    )
    advice: list[str | Setting] = [Setting("n_draws"), ", or a loss that needs few of them: "]
    if losses[0].is_of_classes:
        advice += [Setting("loss", "linear"), " or ", Setting("loss", "brier"), "."]
    else:
        advice += [Setting("loss", "squared_error"), "."]
    warn(Text([text, *advice]))
