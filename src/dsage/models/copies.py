"""Which models may be copied to other processes without the user asking for it."""

from __future__ import annotations

from typing import Any

# Packages whose estimators need nothing for predictions but what pickle copies, in main memory.
_PACKAGES = "sklearn", "lightgbm", "xgboost"
# Packages with their own threads, which keep all processors busy unless there is only one.
_WITH_THREADS = "lightgbm", "xgboost"
_METHODS = "predict", "predict_proba", "transform", "decision_function"
# Packages whose functions have no side effects.
_FUNCTIONS = *_PACKAGES, "numpy", "scipy", "pandas", "builtins"


def may_be_copied(model: Any) -> bool:  # noqa: ANN401
    """Return whether copies of a model in other processes predict the same, and gain time.

    They do for estimators of scikit-learn, and pipelines of them. The user's own functions, also as
    parameters such as ``FunctionTransformer(func)``, and other classes may have side effects, or
    hold a device. LightGBM and XGBoost have their own threads, so copies save time only with
    ``n_jobs=1``.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> may_be_copied(DecisionTreeRegressor()), may_be_copied(lambda X: X[:, 0])
    (True, False)
    """
    package = type(model).__module__.split(".")[0]
    is_patched = any(name in getattr(model, "__dict__", {}) for name in _METHODS)
    if package not in _PACKAGES or is_patched or not hasattr(model, "get_params"):
        return False
    settings = model.get_params(deep=True)
    if package in _WITH_THREADS:
        devices = (settings.get(name) for name in ("device", "device_type"))
        is_elsewhere = any(device not in (None, "cpu") for device in devices)
        return settings.get("n_jobs") == 1 and not is_elsewhere
    return all(
        may_be_copied(each) if hasattr(each, "get_params") else not _is_foreign(each)
        for each in settings.values()
    )


def _is_foreign(setting: Any) -> bool:  # noqa: ANN401
    """Return whether a parameter is the user's own function, or another callable object."""
    if not callable(setting):
        return False
    # Functions of NumPy written in C have no module.
    module = getattr(setting, "__module__", None) or type(setting).__module__
    return module.split(".")[0] not in _FUNCTIONS
