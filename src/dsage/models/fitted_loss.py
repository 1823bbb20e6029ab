"""The loss that a model was fitted with, where that is another than squared error."""

from __future__ import annotations

from typing import Any, NamedTuple

from dsage._check import Setting, Text


class FittedLoss(NamedTuple):
    """A loss in words, and the loss of this package that it is, if there is one."""

    words: str
    name: str | None = None


# What the objective of a model contains, in the names that scikit-learn, LightGBM, XGBoost and
# CatBoost give it.
_LOSSES = {
    "poisson": FittedLoss("the Poisson deviance"),
    "tweedie": FittedLoss("the Tweedie deviance"),
    "gamma": FittedLoss("the gamma deviance"),
    "quantile": FittedLoss("the pinball loss of a quantile"),
    "absolute_error": FittedLoss("absolute error", "absolute_error"),
    "absoluteerror": FittedLoss("absolute error", "absolute_error"),
    "regression_l1": FittedLoss("absolute error", "absolute_error"),
    "mae": FittedLoss("absolute error", "absolute_error"),
}
_TYPES = {
    "PoissonRegressor": "poisson",
    "GammaRegressor": "gamma",
    "TweedieRegressor": "tweedie",
    "QuantileRegressor": "quantile",
}
# Where estimators keep it; `objective_` is what LightGBM made of the `objective`.
_ATTRIBUTES = ("objective_", "objective", "loss", "criterion", "family")
# Estimators that predict with another one.
_INNER = ("best_estimator_", "regressor_", "final_estimator_")


def find_fitted_loss(model: Any) -> FittedLoss | None:  # noqa: ANN401
    """Return the loss that a regressor was fitted with; None for squared error, or if unknown.

    Examples
    --------
    >>> from sklearn.linear_model import PoissonRegressor, Ridge
    >>> find_fitted_loss(PoissonRegressor()).words, find_fitted_loss(Ridge())
    ('the Poisson deviance', None)
    """
    model = _innermost(model)
    kind = type(model).__name__
    if kind == "TweedieRegressor" and not model.power:
        return None  # that of a normal distribution
    objective = _TYPES.get(kind) or _objective(model)
    # "Tweedie:variance_power=1.5", "reg:tweedie", "count:poisson"
    parts = set(objective.lower().replace("=", ":").split(":"))
    found = next((loss for part, loss in _LOSSES.items() if part in parts), None)
    return _with_quantile(found, model) if found is _LOSSES["quantile"] else found


def note_of(name: str, fitted: FittedLoss) -> Text:
    """Return the sentence that says by which loss a model is judged, and what to do."""
    start = (
        f"{name} was fitted with {fitted.words}, but is judged by squared error, which is chosen"
        " for all models of numbers. "
    )
    if fitted.name is None:
        end = "To judge it by another loss, pass a function (y, prediction) -> losses with "
        return Text([start, end, Setting("loss"), "."])
    return Text([start, "To judge it by its own loss, pass ", Setting("loss", fitted.name), "."])


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


def _with_quantile(loss: FittedLoss, model: Any) -> FittedLoss:  # noqa: ANN401
    """Return the pinball loss with the quantile, where the model says which one."""
    for name in ("quantile", "alpha"):
        level = getattr(model, name, None)
        if isinstance(level, float) and 0 < level < 1:
            return loss._replace(name=f"pinball({level:g})")
    return loss
