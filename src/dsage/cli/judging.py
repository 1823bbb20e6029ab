"""Whether a model fits the table: its target, its classes, the order of its columns, its score."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from dsage._check import refusal
from dsage.cli.errors import note
from dsage.data.columns import column_kind, shown, sorted_positions
from dsage.data.targets import codes, values
from dsage.models.boosters import as_booster
from dsage.models.losses import as_loss, choose_loss
from dsage.models.model import as_model

# More different numbers than these are hardly classes.
_TWO, _MANY = 2, 20
_WORDS = {"true": True, "false": False}


def check_target(column: pd.Series[Any], option: str, given: str) -> None:
    """Refuse a target of measured numbers where an option says that there are classes."""
    if column_kind(column) != "number":
        return
    n_values = column.nunique()
    is_whole = bool((column == column.round()).all())
    if n_values <= _TWO or (is_whole and n_values <= max(_MANY, len(column) / 10)):
        return
    advice = (
        f"{str(column.name)!r} has {n_values} different numbers. Fit a model of numbers, --fit lm"
        f" or --fit rf; or, if they are classes, say --discrete {str(column.name)!r}"
    )
    raise refusal(option, "one of numbers for such a target", given, advice)


def as_labels(
    texts: Sequence[str], y_train: pd.Series[Any], y_test: pd.Series[Any]
) -> list[str | int | float | bool]:
    """Return the labels of ``--classes`` as the target has them.

    Examples
    --------
    >>> y = pd.Series([1, 3, 2])
    >>> as_labels(["3", "1", "2"], y, y)
    [3, 1, 2]
    """
    both = pd.concat([y_train, y_test])
    try:
        labels = [_as_label(text.strip(), both.dtype) for text in texts]
    except (KeyError, ValueError):
        kind = "true or false" if both.dtype == np.bool_ else "numbers"
        advice = f"Those of the target are {shown(both.unique().tolist()[:6])}"
        raise refusal("--classes", f"{kind}, as the target is", ",".join(texts), advice) from None
    if absent := [label for label in both.unique().tolist() if label not in labels]:
        advice = "Give all classes of the model, in the order of its columns"
        raise refusal("--classes", f"with {shown(absent)}, which the target has", labels, advice)
    return labels


def _as_label(text: str, dtype: Any) -> str | int | float | bool:  # noqa: ANN401
    if dtype == np.bool_:
        return _WORDS[text.lower()]
    if pd.api.types.is_integer_dtype(dtype):
        return int(text)
    return float(text) if pd.api.types.is_numeric_dtype(dtype) else text


def tell_order(model: Any, X: pd.DataFrame) -> None:  # noqa: ANN401
    """Say in which order the columns are taken where the model has no names for them.

    It is said whatever the user said about notes: another order gives a wrong result.
    """
    if not _has_names(as_booster(model)):
        note(
            "Warning: the model has no column names; its columns are taken to be in this order:"
            f" {', '.join(map(str, X.columns))}."
        )


def _has_names(model: Any) -> bool:  # noqa: ANN401
    if hasattr(model, "feature_names_in_"):
        return True
    inner: Any = getattr(model, "booster", None)
    named = getattr(inner, "feature_names", None)
    if named is None and hasattr(inner, "feature_name"):
        # What LightGBM calls columns without names.
        named = [name for name in inner.feature_name() if not name.startswith("Column_")]
    # A model in ONNX finds columns by name where each is an input of its own.
    return bool(named) or len(getattr(model, "__dict__", {}).get("_inputs", ())) > 1


def held_out_score(
    model: Any,  # noqa: ANN401
    X: pd.DataFrame,
    y: pd.Series[Any],
    *,
    loss: str,
    labels: Sequence[Any],
    classes: Sequence[Any] | None = None,
) -> tuple[str, float]:
    """Return how well a model predicts rows: the name of the score, and the score.

    A wrong order of columns or classes shows here. The classes of a model that does not tell them
    are `classes`, and else all `labels` that the target has, sorted.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> X, y = pd.DataFrame({"a": [0.0, 1.0, 2.0]}), pd.Series([0.0, 2.0, 4.0])
    >>> held_out_score(LinearRegression().fit(X, y), X, y, loss="auto", labels=[])
    ('R2', 1.0)
    """
    target = values(y)
    chosen = as_loss("cross_entropy" if loss == "auto" else loss)
    if loss == "auto" and not classes:
        chosen = choose_loss(model, target)
    checked = as_model(model, chosen, classes=classes)
    predicted = checked.predict(X)
    if chosen.output == "probability":
        chances = predicted if predicted.ndim > 1 else np.stack([1 - predicted, predicted], axis=1)
        n_columns = chances.shape[1]
        if classes is not None and len(classes) != n_columns:
            condition = f"{n_columns}, one for each column of the model's probabilities"
            advice = "Name them in the order of the columns"
            raise refusal("--classes", condition, list(classes), advice)
        known = checked.classes
        if known is None:
            known = np.array([labels[place] for place in sorted_positions(labels)])
        wanted = codes(target, known, None)
        return "accuracy", float(np.mean(chances.argmax(axis=1) == wanted))
    numbers = target.astype(np.float64)
    spread = float(((numbers - numbers.mean()) ** 2).sum())
    error = float(((numbers - predicted) ** 2).sum())
    return "R2", 1 - error / spread if spread else float("nan")
