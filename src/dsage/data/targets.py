"""The user's target as an array, class labels as codes, and checks of probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pandas as pd

from dsage._check import Setting, Text, refusal, shown
from dsage.data.categories import sort_labels
from dsage.data.frames import is_frame, open_frame
from dsage.data.missing import check_target_complete

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]

# Sums of a thousand probabilities in single precision stay within this.
_SUM_TOLERANCE = 1e-4

_NOT_LABELS = "Return the probabilities of predict_proba, not class labels, scores or logits"


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
        condition = "of shape (n_rows,), with at least one row"
        raise refusal("y", condition, array.shape, "Pass one value per row")
    check_target_complete(array)
    return array


def output_names(y: Any, n_outputs: int, target: str) -> tuple[str, ...]:  # noqa: ANN401
    """Return names of the columns of a target: those of a data frame, or numbered ones."""
    if is_frame(y):
        return tuple(map(str, open_frame(y).columns))
    return tuple(f"{target}_{number + 1}" for number in range(n_outputs))


def are_numbers(array: Array) -> bool:
    """Return whether a target consists of numbers; booleans are classes."""
    if array.dtype.kind == "O":
        kind = pd.api.types.infer_dtype(array.ravel(), skipna=True)
        return kind in ("integer", "floating", "mixed-integer-float", "decimal")
    return array.dtype.kind in "fiu"


def numbers(array: Array, name: str) -> Floats:
    """Return a target as floats; refuse targets that are not numbers, naming the loss."""
    if not (are_numbers(array) or array.dtype.kind == "b"):
        advice = "Convert them, or choose a loss of classes such as 'cross_entropy'"
        raise refusal("y", f"numbers for {name}", array.ravel().tolist()[0], advice, TypeError)
    return array.astype(np.float64)


def probabilities(soft: Floats, n_classes: int | None) -> Floats:
    """Return a soft target (n_rows, n_classes) if its rows are probabilities of the classes."""
    wrong = n_classes is not None and soft.shape[1] != n_classes
    bad = (soft < 0).any(axis=1) | (np.abs(soft.sum(axis=1) - 1) > _SUM_TOLERANCE)
    if wrong or bad.any():
        shape = f"(n_rows, {n_classes or 'n_classes'})"
        condition = f"class labels, or rows of probabilities that sum to one, of shape {shape}"
        found = soft.shape if wrong else soft[np.argmax(bad)].tolist()
        raise refusal("y", condition, found, "Pass one label per row, or normalize the rows")
    return soft


def are_probabilities(matrix: Floats) -> bool:
    """Return whether the rows of a matrix are probabilities of two or more classes."""
    is_between = (matrix >= -_SUM_TOLERANCE) & (matrix <= 1 + _SUM_TOLERANCE)
    is_sum = np.abs(matrix.sum(axis=1) - 1) <= _SUM_TOLERANCE
    return bool(matrix.shape[1] > 1 and is_between.all() and is_sum.all())


def as_classes(classes: Any) -> pd.Index[Any]:  # noqa: ANN401
    """Return classes in their order; labels of different types are not converted."""
    return pd.Index(classes if isinstance(classes, np.ndarray) else list(classes))


def codes(labels: Array, classes: Sequence[Any] | Array | None, n_classes: int | None) -> Array:
    """Return the positions of labels in `classes`, or among the sorted labels themselves."""
    if classes is None:
        index = pd.Index(sort_labels(list(pd.unique(pd.Series(labels)))))
        if n_classes is not None and len(index) != n_classes:
            condition = f"of the {n_classes} classes that the model has probabilities of"
            text = "Name the model's classes, in the order of its columns, with "
            advice = Text([text, Setting("classes")])
            raise refusal("y", condition, index.tolist()[:6], advice)
    else:
        index = as_classes(classes)
    found_at = find_codes(labels, index)
    if (found_at < 0).any():
        unknown = pd.unique(pd.Series(labels[found_at < 0])).tolist()
        condition = f"of the model's classes ({shown(index.tolist())})"
        value = unknown[0] if len(unknown) == 1 else unknown[:6]
        first = int(np.argmax(found_at < 0))
        remedy = "leave these rows out, or use the labels of training"
        raise refusal("y", condition, value, f"Row {first} is the first: {remedy}")
    return found_at


def find_codes(labels: Array, classes: Any) -> npt.NDArray[np.intp]:  # noqa: ANN401
    """Return the positions of labels in `classes`, -1 for those that are not among them."""
    index = as_classes(classes)
    # pandas' look-up does not treat True and 1 as equal.
    if index.dtype == np.bool_:
        index = index.astype(np.int64)
    if labels.dtype == np.bool_ and index.dtype.kind in "iuf":
        labels = labels.astype(np.int64)
    return np.asarray(index.get_indexer(pd.Index(labels)), np.intp)


def check_prediction(
    prediction: npt.ArrayLike, name: str, output: str, classes: Sequence[Any] | Array | None
) -> Floats:
    """Return a model's output as floats; refuse what the loss of this name cannot use."""
    raw = np.asarray(prediction)
    advice = {
        "value": "Pass y with one column per output, or a function that returns one of them; or"
        " choose a loss of classes such as 'cross_entropy', if these are probabilities",
        "probability": _NOT_LABELS,
        "score": "Return the scores of decision_function, not class labels",
        "any": "Return one number, or one row of numbers, per row",
    }[output]
    if raw.dtype.kind not in "fiub":
        if output == "value":
            advice = "Return numbers, or choose a loss of classes such as 'cross_entropy'"
        raise refusal("prediction", f"numbers for {name}", raw.dtype, advice, TypeError)
    if raw.ndim not in ((1,) if output == "value" else (1, 2)):
        second = "n_classes" if output in ("probability", "score") else "n_outputs"
        shape = "(n_rows,)" if output == "value" else f"(n_rows,) or (n_rows, {second})"
        raise refusal("prediction", f"of shape {shape} for {name}", raw.shape, advice)
    array: Floats = raw.astype(np.float64, copy=False)
    finite = np.isfinite(array.reshape(len(array), -1)).all(axis=1) if array.size else np.True_
    if not finite.all():
        found = f"{int((~finite).sum())} rows that are not"
        raise refusal("prediction", "finite", found, "Check the model at these rows")
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
        shape = f"(n_rows, {n_classes or 'n_classes'})"
        condition = f"of shape {shape}, one column per class, for {name}"
        raise refusal("prediction", condition, array.shape, _NOT_LABELS)
    if not array.size:
        return
    low, high = float(array.min()), float(array.max())
    if low < -_SUM_TOLERANCE or high > 1 + _SUM_TOLERANCE:
        odd = low if low < -_SUM_TOLERANCE else high
        raise refusal("prediction", f"probabilities, in [0, 1], for {name}", odd, _NOT_LABELS)
    if array.ndim == 2:
        sums = array.sum(axis=1)
        worst = int(np.argmax(np.abs(sums - 1)))
        if abs(sums[worst] - 1) > _SUM_TOLERANCE:
            condition = f"probabilities that sum to one in each row for {name}"
            found = f"a sum of {sums[worst]:.6g} in row {worst}"
            raise refusal("prediction", condition, found, "Normalize them")
