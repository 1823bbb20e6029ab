"""Pipelines of scikit-learn, predicted from encoded rows: the same in less time.

A pipeline receives a data frame, whose columns it selects, checks, encodes and puts together
again. This takes several times as long as the prediction of a small model. Here the rows that its
last step receives are made from codes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse

from dsage.data.layout import Layout
from dsage.data.portions import row_slices
from dsage.models.affine import best_of
from dsage.models.calling import sklearn_name
from dsage.models.columnwise import (
    Floats,
    Frames,
    Numbers,
    Placed,
    dense,
    forget_names,
    has_names_inside,
    read_transformer,
)
from dsage.models.forests import ask_trees
from dsage.models.losses.choose import gives_classes
from dsage.models.tree_masks import TreeMasks, read_masks

# Modules of scikit-learn whose estimators predict the same for sparse matrices as for arrays, and
# the most columns of arrays that take no longer.
_LIKE_DENSE = frozenset(("linear_model", "neural_network", "tree", "_forest"))
_MOST_COLUMNS = 128
# Memory of the rows that the last step receives at a time.
_MOST_BYTES = 1 << 25


class EncodedPipeline:
    """The predictions of a pipeline as a function of encoded rows.

    Parameters
    ----------
    parts : sequence of Placed
        The columns that the first transformer returns.
    steps : sequence of estimators
        The transformers after it.
    function : callable
        The method of the last step that predicts.
    """

    def __init__(
        self, parts: Sequence[Placed], steps: Sequence[Any], function: Callable[[Any], Any]
    ) -> None:
        self._parts, self._steps, self._function = tuple(parts), tuple(steps), function
        self._width = max(each.columns.stop for each in parts)

    def with_function(self, function: Callable[[Any], Any]) -> EncodedPipeline:
        """Return the pipeline with another last step."""
        return EncodedPipeline(self._parts, self._steps, function)

    def transform(self, X: Floats) -> Floats:
        """Return what the last step receives for encoded rows, which may be changed."""
        part = self._parts[0].part
        if len(self._parts) == 1 and isinstance(part, Numbers):
            rows = part.transform(X[:, part.columns])
        else:
            rows = np.empty((len(X), self._width))
            for columns, part in self._parts:
                part.write(X, rows[:, columns])
        for step in self._steps:
            rows = dense(step.transform(rows))
        return rows

    def predict(self, X: Floats) -> Any:  # noqa: ANN401
        """Return what the last step predicts for encoded rows, which may be changed."""
        slices = row_slices(len(X), 8 * self._width, _MOST_BYTES)
        found = [self._function(self.transform(X[some])) for some in slices]
        return found[0] if len(found) == 1 else np.concatenate(found)


@dataclass(frozen=True)
class TreesOfRows:
    """The predictions of small trees for rows, see :class:`~dsage.models.tree_masks.TreeMasks`."""

    masks: TreeMasks

    def __call__(self, rows: Floats) -> Floats:
        """Return the predictions (n_rows, n_outputs)."""
        found: Floats = self.masks.predict(rows[None, None])[0, 0]
        return found


def find_pipeline(
    model: Any,  # noqa: ANN401
    method: str,
    layout: Layout,
    points: Floats,
) -> EncodedPipeline | None:
    """Return a pipeline that predicts encoded rows; None for models that gain no time by it.

    An estimator that takes numbers is a pipeline of one step. Otherwise the first step is a column
    transformer, or one that takes all columns. What the last step receives for the encoded rows
    `points` is compared with what it receives in the pipeline; its predictions are not compared.
    Steps of the user may raise anything.

    Parameters
    ----------
    model : estimator
        A pipeline, a search whose best estimator is one, or another estimator.
    method : str
        The method that predicts, such as ``"predict_proba"``.
    layout : Layout
        The columns.
    points : array of shape (n_rows, n_features)
        Encoded rows.
    """
    *transformers, last = _flatten(best_of(model))
    if not transformers and layout.kind == "numpy":
        return None
    received = layout.decode(points.copy())
    results = [received := step.transform(received) for step in transformers]
    # Functions of other numbers may round, or overflow.
    if not all(each == np.float64 for rows in results[:-1] for each in _dtypes(rows)):
        return None
    if np.result_type(*_dtypes(received)) != np.float64 or not _takes_arrays(last, received):
        return None
    first, later = (transformers[0], transformers[1:]) if transformers else ("passthrough", ())
    width = results[0].shape[1] if results else len(layout.names)
    parts = read_transformer(first, width, layout)
    if parts is None or all(isinstance(part, Frames) for _, part in parts):
        return None
    if not all(sklearn_name(step) is not None for step in later):
        return None
    own = forget_names(last)
    function = getattr(own, method)
    made = EncodedPipeline(parts, [forget_names(step) for step in later], ask_trees(function, own))
    rows, expected = made.transform(points.copy()), dense(received)
    if rows.shape != expected.shape:
        return None
    if not np.allclose(rows, expected, 1e-12, 1e-12, equal_nan=True):
        return None
    if method == ("predict_proba" if gives_classes(last) else "predict"):
        masks = read_masks(last, function, rows)
        made = made if masks is None else made.with_function(TreesOfRows(masks))
    return made


def _flatten(model: Any) -> list[Any]:  # noqa: ANN401
    """Return the steps of a pipeline, and of pipelines in it; another model is one step."""
    if sklearn_name(model) != "Pipeline":
        return [model]
    steps = [step for _, step in model.steps if step is not None and not isinstance(step, str)]
    return [part for step in steps for part in _flatten(step)]


def _dtypes(rows: Any) -> list[Any]:  # noqa: ANN401
    """Return the dtypes of the columns of a frame, or the one of an array or a sparse matrix."""
    return list(rows.dtypes) if hasattr(rows, "dtypes") else [rows.dtype]


def _takes_arrays(last: Any, received: Any) -> bool:  # noqa: ANN401
    """Return whether the last step predicts the same for arrays as for what it receives."""
    if isinstance(received, np.ndarray):
        return True
    # Estimators of other packages know the names of columns; to XGBoost, zeros that are not stored
    # are missing values.
    if sklearn_name(last) is None:
        return False
    if not issparse(received):
        return not has_names_inside(last)
    is_like = not _LIKE_DENSE.isdisjoint(type(last).__module__.split("."))
    return is_like and received.shape[1] <= _MOST_COLUMNS
