"""The loss that a model was fitted with, if it is not squared error."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from dsage._check import Setting, Text
from dsage.models.boosters import BoosterOfNumbers


class FittedLoss(NamedTuple):
    """A loss in words, and the corresponding loss of this package, if there is one."""

    words: str
    name: str | None = None


class _Known(NamedTuple):
    """A loss of other packages: `name`, or `loss(parameter)` if models store the parameter."""

    words: str
    name: str | None = None
    parameters: tuple[str, ...] = ()
    default: float | None = None


_QUANTILE = _Known(
    "the pinball loss of a quantile", "pinball", ("quantile_alpha", "quantile", "alpha")
)
_ABSOLUTE = _Known("absolute error", "absolute_error")
_POWERS = ("tweedie_variance_power", "variance_power", "power", "var_power")
# What the objective of a model contains, in the names that scikit-learn, LightGBM, XGBoost and
# CatBoost give it.
_LOSSES = {
    "poisson": _Known("the Poisson deviance", "poisson"),
    "tweedie": _Known("the Tweedie deviance", "tweedie", _POWERS, 1.5),
    "gamma": _Known("the gamma deviance", "gamma"),
    "quantile": _QUANTILE,
    "quantileerror": _QUANTILE,
    **dict.fromkeys(("absolute_error", "absoluteerror", "regression_l1", "mae"), _ABSOLUTE),
    "huber": _Known("the Huber loss", "huber", ("delta",)),
    "squaredlogerror": _Known("squared logarithmic error", "squared_log_error"),
    "pseudohubererror": _Known("the pseudo-Huber loss"),
    "expectileerror": _Known("the loss of an expectile"),
    "fair": _Known("the fair loss"),
    "mape": _Known("absolute percentage error"),
}
_TYPES = {
    "PoissonRegressor": "poisson",
    "GammaRegressor": "gamma",
    "TweedieRegressor": "tweedie",
    "QuantileRegressor": "quantile",
    "HuberRegressor": "huber",
}
# LightGBM's default of `alpha`, a quantile or the distance of a Huber loss.
_ALPHA = 0.9
# Where estimators keep it; `objective_` is what LightGBM made of the `objective`.
_ATTRIBUTES = ("objective_", "objective", "loss", "criterion", "family")
# Estimators that predict with another one.
_INNER = ("best_estimator_", "regressor_", "final_estimator_")


def find_fitted_loss(model: Any) -> FittedLoss | None:  # noqa: ANN401
    """Return the loss that a regressor was fitted with; None for squared error, or if unknown.

    Examples
    --------
    >>> from sklearn.linear_model import PoissonRegressor, Ridge
    >>> find_fitted_loss(PoissonRegressor()), find_fitted_loss(Ridge())
    (FittedLoss(words='the Poisson deviance', name='poisson'), None)
    """
    is_scaled = hasattr(model, "regressor_")
    model = _innermost(model)
    kind = type(model).__name__
    if kind == "TweedieRegressor" and not model.power:
        return None  # that of a normal distribution
    objective = _TYPES.get(kind) or _objective(model)
    # "Tweedie:variance_power=1.5", "reg:tweedie", "count:poisson"
    parts = set(objective.lower().replace("=", ":").split(":"))
    found = next((loss for part, loss in _LOSSES.items() if part in parts), None)
    if found is None:
        return None
    # With a transformed target, the model was fitted on a scale other than that of the loss.
    return FittedLoss(found.words, None if is_scaled else _name(found, model, objective))


def note_of(name: str, fitted: FittedLoss) -> Text:
    """Return the sentence that says which loss is used, and how to choose another one."""
    start = (
        f"{name} was fitted with {fitted.words}, which dsage cannot use as a"
        " loss here, so squared error is used. "
    )
    end = "To use another loss, pass its name or a function (y, prediction) -> losses with "
    return Text([start, end, Setting("loss"), "."])


def _name(loss: _Known, model: Any, objective: str) -> str | None:  # noqa: ANN401
    """Return the name of a loss, with its parameter if the model stores it."""
    if loss.name is None or not loss.parameters:
        return loss.name
    if loss.name == "huber":
        parameter = _of_huber(model)
    else:
        parameter = _parameter(model, loss.parameters)
        if parameter is None and loss is _QUANTILE and _is_lightgbm(model):
            parameter = _ALPHA
    for name in loss.parameters:
        if said := re.search(rf"{name}=([0-9.eE+-]+)", objective):
            parameter = float(said[1])
    value = loss.default if parameter is None else parameter
    return None if value is None or value <= 0 else f"{loss.name}({value:.6g})"


def _of_huber(model: Any) -> float | None:  # noqa: ANN401
    """Return the distance from which a Huber loss is linear, in units of the target."""
    if type(model).__name__ == "HuberRegressor":
        return float(model.epsilon * model.scale_) if hasattr(model, "scale_") else None
    # For scikit-learn's boosting it is a quantile of residuals, which is not stored.
    return (_parameter(model, ("alpha",)) or _ALPHA) if _is_lightgbm(model) else None


def _is_lightgbm(model: Any) -> bool:  # noqa: ANN401
    if isinstance(model, BoosterOfNumbers):
        return not model.is_xgboost
    return type(model).__module__.partition(".")[0] == "lightgbm"


def _parameter(model: Any, names: tuple[str, ...]) -> float | None:  # noqa: ANN401
    """Return the first of these parameters that a model stores."""
    tells: list[Callable[[str], Any]] = [lambda name: getattr(model, name, None)]
    # XGBoost's estimators keep parameters that they do not know in `kwargs`.
    for kept in (getattr(model, "params", None), getattr(model, "kwargs", None)):
        if isinstance(kept, dict):
            tells.append(kept.get)
    for name in names:
        for tell in tells:
            found = tell(name)
            if isinstance(found, (int, float)) and not isinstance(found, bool):
                return float(found)
    return None


def _innermost(model: Any) -> Any:  # noqa: ANN401
    """Return the estimator that predicts in the end, inside pipelines and searches."""
    while True:
        own: dict[str, Any] = getattr(model, "__dict__", {})
        inner = next((own[name] for name in _INNER if own.get(name) is not None), None)
        if isinstance(own.get("steps"), list) and own["steps"]:
            inner = own["steps"][-1][1]
        elif type(model).__name__ == "MultiOutputRegressor" and own.get("estimators_"):
            inner = own["estimators_"][0]
        if inner is None:
            return model
        model = inner


def _objective(model: Any) -> str:  # noqa: ANN401
    if type(model).__module__.partition(".")[0] == "catboost" and hasattr(model, "get_param"):
        return str(model.get_param("loss_function") or "")
    found = [getattr(model, name, None) for name in _ATTRIBUTES]
    return next((each for each in found if isinstance(each, str)), "")
