"""Which models other processes may get a copy of without being asked to."""

from __future__ import annotations

from typing import Any

# Packages whose estimators predict in the main memory, from nothing but what pickle copies.
_PACKAGES = "sklearn", "lightgbm", "xgboost"
# Those with threads of their own, which keep all processors busy unless there is just one.
_WITH_THREADS = "lightgbm", "xgboost"
_METHODS = "predict", "predict_proba", "transform", "decision_function"
# Packages whose functions have no effects beside what they return.
_FUNCTIONS = *_PACKAGES, "numpy", "scipy", "pandas", "builtins"


def may_be_copied(model: Any) -> bool:  # noqa: ANN401
    """Return whether copies of a model in other processes predict the same, and gain time.

    They do for estimators of scikit-learn, and pipelines of them. Functions of the user, also as
    settings such as the one of ``FunctionTransformer``, and other classes may have effects beside
    their predictions, or hold a device. LightGBM and XGBoost have threads of
    their own, so that nothing is gained unless they are told to use one, ``n_jobs=1``.

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
    """Return whether a setting is a function of the user, or another object that can be called."""
    if not callable(setting):
        return False
    # Functions of NumPy written in C have no module.
    module = getattr(setting, "__module__", None) or type(setting).__module__
    return module.split(".")[0] not in _FUNCTIONS
