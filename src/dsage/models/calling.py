"""How a model is called: with one job, on rows that it may change, with errors that name it."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import joblib
import numpy as np
import pandas as pd

from dsage._check import refusal
from dsage.data.frames import is_frame, take_rows
from dsage.models.origin import naming_file

N_ASKED = 256
"""The number of rows that a function predicts, to see what it returns."""


def call(function: Callable[[Any], Any], name: str, X: Any, file: str = "") -> Any:  # noqa: ANN401
    """Return the output of a model for rows, as it is.

    The model runs with one job: forests that sum their trees in several threads differ in the last
    digits each time. Errors of the model are passed on with a note that names it; those of a model
    from a file are errors of the package, see :func:`~dsage.models.origin.naming_file`.
    """
    try:
        with naming_file(file), joblib.parallel_config(backend="sequential"):
            return function(X)
    except Exception as error:
        error.add_note(
            f"Raised by {name} when dsage asked it for predictions of {len(X)} rows,"
            f" passed as {type(X).__module__.split('.')[0]}.{type(X).__name__}."
        )
        raise


def copy_rows(X: Any) -> Any:  # noqa: ANN401
    """Return rows that a model may change in place; frames that cannot be changed are not copied.

    Examples
    --------
    >>> X = np.zeros(2)
    >>> copy_rows(X) is X
    False
    """
    return X.copy() if isinstance(X, (np.ndarray, pd.DataFrame)) else X


def some_rows(X: Any, n_rows: int = N_ASKED) -> Any:  # noqa: ANN401
    """Return some of the rows, spread evenly, in the same container."""
    n_all = len(X) if is_frame(X) else len(np.asarray(X))
    at = np.unique(np.linspace(0, n_all - 1, min(n_rows, n_all)).astype(np.intp))
    return take_rows(X, at)


def prediction_function(model: Any) -> Callable[[Any], Any]:  # noqa: ANN401
    """Return the `predict` of a model, or the model itself if it is a function."""
    function: Callable[[Any], Any] = model.predict if hasattr(model, "predict") else model
    return function


def check_predicts(model: object) -> None:
    """Refuse objects that are neither functions nor have a method that predicts."""
    if isinstance(model, type) or not (hasattr(model, "predict") or callable(model)):
        advice = "Pass a fitted estimator, or a function from rows to predictions"
        if isinstance(model, type):
            advice = f"Fit an instance: {name_model(model)}().fit(X, y)"
        raise refusal("model", "callable, or an object with predict", model, advice, TypeError)


def name_model(model: object) -> str:
    """Return the name of a model for messages: its class, or the name of the function.

    Examples
    --------
    >>> name_model(len), name_model("text".title), name_model(lambda X: X), name_model(1.0)
    ('len', 'str.title', 'the function', 'float')
    """
    named = getattr(model, "__name__", None)
    if named == "<lambda>":
        return "the function"
    owner = getattr(model, "__self__", None)
    if isinstance(named, str) and owner is not None and not isinstance(owner, ModuleType):
        return f"{type(owner).__name__}.{named}"
    return named if isinstance(named, str) else type(model).__name__


def sklearn_name(model: object) -> str | None:
    """Return the name of a class of scikit-learn itself, None for any other object.

    An object with a replaced method does not count.
    """
    kind, methods = type(model), {"predict", "predict_proba", "transform"}
    replaced = methods & getattr(model, "__dict__", {}).keys()
    return None if replaced or kind.__module__.split(".")[0] != "sklearn" else kind.__name__
