"""Costs of samplers, from counts, so that the amount of scoring does not depend on the clock.

The seconds here are for one core of a common machine, within a factor of two or so.
"""

from __future__ import annotations

from typing import Any

from dsage.samplers.base import Sampler
from dsage.samplers.registry import SAMPLERS

# Microseconds: of a drawn row and feature, and of a call and feature, if nothing is known about the
# sampler; of scoring a drawn row and feature; of any call; and of a row that the model predicts,
# between boosting and a large forest.
_DRAW, _CALL, _SCORE, _ANY_CALL, _PREDICT = 1.0, 20.0, 0.05, 150.0, 5.0


def traits_of(sampler: Sampler) -> dict[str, Any]:
    """Return the traits with which the class of a sampler was registered; none for others."""
    for name, kind in SAMPLERS.items():
        if type(sampler) is kind:
            return SAMPLERS.traits(name)
    return {}


def draw_seconds(sampler: Sampler, n_calls: int, n_drawn: int, n_features: int) -> float:
    """Return the seconds to draw and to score `n_drawn` rows in `n_calls` calls."""
    traits = traits_of(sampler)
    each = float(traits.get("draw_cost", _DRAW)) + _SCORE
    call = _ANY_CALL + float(traits.get("call_cost", _CALL)) * n_features
    return 1e-6 * (n_calls * call + n_drawn * n_features * each)


def predict_seconds(n_predicted: int) -> float:
    """Return the seconds in which a model predicts some rows."""
    return 1e-6 * _PREDICT * n_predicted


def fit_seconds(sampler: Sampler, n_rows: int, n_features: int) -> float | None:
    """Return the seconds to fit a sampler; None if nothing is known about it."""
    traits = traits_of(sampler)
    if "fit_cost" not in traits:
        return None
    each = 1e-6 * float(traits["fit_cost"])
    return float(traits.get("fit_seconds", 0.0)) + each * n_rows * n_features
