"""The user's target as an array, class labels as codes, and what probabilities have to be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pandas as pd

from dsage._check import Setting, Text, refusal
from dsage.data.categories import shown, sort_labels
from dsage.data.frames import is_frame, open_frame
from dsage.data.missing import check_target_complete

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]

# Probabilities in single precision, summed over a thousand classes, still keep within this.
_SUM_TOLERANCE = 1e-4


def values(y: Any) -> Array:  # noqa: ANN401
    """Return a target as an array (n_rows,) or (n_rows, n > 1) without missing values."""
    if is_frame(y):
        array = np.asarray(open_frame(y).to_numpy())
    elif nw.dependencies.is_into_series(y):
        array = np.asarray(nw.from_native(y, series_only=True).to_numpy())
    else:
        array = np.asarray(y)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim not in (1, 2) or array.size == 0:
        raise refusal(
            "y", "of shape (n_rows,), with one row at least", array.shape, "Give one value a row"
        )
    check_target_complete(array)
    return array


def are_numbers(array: Array) -> bool:
    """Tell whether a target is made of numbers; booleans are classes."""
    if array.dtype.kind == "O":
        kind = pd.api.types.infer_dtype(array.ravel(), skipna=True)
        return kind in ("integer", "floating", "mixed-integer-float", "decimal")
    return array.dtype.kind in "fiu"


def numbers(array: Array, name: str) -> Floats:
    """Return a target as floats, or say that the loss of this name needs numbers."""
    if not (are_numbers(array) or array.dtype.kind == "b"):
        raise refusal(
            "y",
            f"numbers for {name}",
            array.ravel().tolist()[0],
            "Convert them, or choose a loss of classes such as 'cross_entropy'",
            TypeError,
        )
    return array.astype(np.float64)


def probabilities(soft: Floats, n_classes: int | None) -> Floats:
    """Return a soft target (n_rows, n_classes) if its rows are probabilities of the classes."""
    wrong = n_classes is not None and soft.shape[1] != n_classes
    bad = (soft < 0).any(axis=1) | (np.abs(soft.sum(axis=1) - 1) > _SUM_TOLERANCE)
    if wrong or bad.any():
        raise refusal(
            "y",
            "class labels, or rows of probabilities that sum to one, of shape"
            f" (n_rows, {n_classes or 'n_classes'})",
            soft.shape if wrong else soft[np.argmax(bad)].tolist(),
            "Give one label a row, or normalise the rows",
        )
    return soft


def as_classes(classes: Any) -> pd.Index[Any]:  # noqa: ANN401
    """Return classes in their order; labels of different types stay what they are."""
    return pd.Index(classes if isinstance(classes, np.ndarray) else list(classes))


def codes(labels: Array, classes: Sequence[Any] | Array | None, n_classes: int | None) -> Array:
    """Return the positions of labels in `classes`, or among the sorted labels themselves."""
    if classes is None:
        index = pd.Index(sort_labels(list(pd.unique(pd.Series(labels)))))
        if n_classes is not None and len(index) != n_classes:
            raise refusal(
                "y",
                f"of the {n_classes} classes that the model has probabilities of",
                index.tolist()[:6],
                Text(
                    [
                        "Name the model's classes, in the order of its columns, with ",
                        Setting("classes"),
                    ]
                ),
            )
    else:
        index = as_classes(classes)
    # True equals 1 everywhere but in the look-up of pandas.
    if index.dtype == np.bool_:
        index = index.astype(np.int64)
    if labels.dtype == np.bool_ and index.dtype.kind in "iuf":
        labels = labels.astype(np.int64)
    found_at = index.get_indexer(pd.Index(labels))
    if (found_at < 0).any():
        unknown = pd.unique(pd.Series(labels[found_at < 0])).tolist()
        raise refusal(
            "y",
            f"of the model's classes ({shown(index.tolist())})",
            unknown[0] if len(unknown) == 1 else unknown[:6],
            "Leave these rows out, or give labels as in training",
        )
    return np.asarray(found_at, np.intp)


def check_prediction(
    prediction: npt.ArrayLike,
    name: str,
    output: str,
    classes: Sequence[Any] | Array | None,
) -> Floats:
    """Return a model's output as floats, or say why the loss of this name cannot use it."""
    given = np.asarray(prediction)
    advice = {
        "value": "Explain one output at a time, with a function that returns its column; or choose"
        " a loss of classes such as 'cross_entropy', if these are probabilities",
        "probability": "Give the probabilities of predict_proba, not class labels",
        "any": "Give one number a row, or one row of numbers",
    }[output]
    if given.dtype.kind not in "fiub":
        if output == "value":
            advice = "Give numbers, or choose a loss of classes such as 'cross_entropy'"
        raise refusal("prediction", f"numbers for {name}", given.dtype, advice, TypeError)
    if given.ndim not in ((1,) if output == "value" else (1, 2)):
        second = "n_classes" if output == "probability" else "n_outputs"
        shape = "(n_rows,)" if output == "value" else f"(n_rows,) or (n_rows, {second})"
        raise refusal("prediction", f"of shape {shape} for {name}", given.shape, advice)
    array: Floats = given.astype(np.float64, copy=False)
    finite = np.isfinite(array.reshape(len(array), -1)).all(axis=1) if array.size else np.True_
    if not finite.all():
        n_bad = int((~finite).sum())
        raise refusal("prediction", "finite", f"{n_bad} rows that are not", "Look at these rows")
    if output == "probability":
        _check_probabilities(array, classes, name)
    return array


def _check_probabilities(array: Floats, classes: Sequence[Any] | Array | None, name: str) -> None:
    n_classes = None if classes is None else len(as_classes(classes))
    if array.ndim == 1:
        matches = n_classes in (None, 2)
    else:
        matches = array.shape[1] > 1 and n_classes in (None, array.shape[1])
    if not matches:
        raise refusal(
            "prediction",
            f"of shape (n_rows, {n_classes or 'n_classes'}), one column a class, for {name}",
            array.shape,
            "Give the probabilities of predict_proba, not class labels",
        )
    if not array.size:
        return
    low, high = float(array.min()), float(array.max())
    if low < -_SUM_TOLERANCE or high > 1 + _SUM_TOLERANCE:
        raise refusal(
            "prediction",
            f"probabilities, in [0, 1], for {name}",
            low if low < -_SUM_TOLERANCE else high,
            "Give the probabilities of predict_proba, not class labels, scores or logits",
        )
    if array.ndim == 2:
        sums = array.sum(axis=1)
        worst = int(np.argmax(np.abs(sums - 1)))
        if abs(sums[worst] - 1) > _SUM_TOLERANCE:
            raise refusal(
                "prediction",
                f"probabilities that sum to one in each row for {name}",
                f"a sum of {sums[worst]:.6g} in row {worst}",
                "Normalise them",
            )
