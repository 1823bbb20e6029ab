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
from scipy.sparse import csr_matrix, issparse

from dsage.data.layout import Layout
from dsage.models.calling import sklearn_name
from dsage.models.columnwise import (
    Floats,
    Frames,
    Placed,
    dense,
    forget_names,
    read_transformer,
)
from dsage.models.forests import ask_trees
from dsage.models.losses.choose import gives_classes
from dsage.models.tree_masks import TreeMasks, find_tree_masks

# Searches whose predictions are those of the best pipeline.
_SEARCHES = frozenset(
    ("GridSearchCV", "HalvingGridSearchCV", "HalvingRandomSearchCV", "RandomizedSearchCV")
)


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
    is_sparse : bool, default=False
        Whether the last step receives a sparse matrix.
    """

    def __init__(
        self,
        parts: Sequence[Placed],
        steps: Sequence[Any],
        function: Callable[[Any], Any],
        *,
        is_sparse: bool = False,
    ) -> None:
        self._parts, self._steps, self._function = tuple(parts), tuple(steps), function
        self._is_sparse = is_sparse

    def with_function(self, function: Callable[[Any], Any]) -> EncodedPipeline:
        """Return the pipeline with a last step that receives arrays."""
        return EncodedPipeline(self._parts, self._steps, function)

    def transform(self, X: Floats) -> Any:  # noqa: ANN401
        """Return what the last step receives for encoded rows."""
        rows = np.empty((len(X), max(each.columns.stop for each in self._parts)))
        for columns, part in self._parts:
            part.write(X, rows[:, columns])
        for step in self._steps:
            rows = dense(step.transform(rows))
        return csr_matrix(rows) if self._is_sparse else rows

    def predict(self, X: Floats) -> Any:  # noqa: ANN401
        """Return what the last step predicts for encoded rows."""
        return self._function(self.transform(X))


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
    `points` is compared with what it receives in the pipeline.

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
    if sklearn_name(model) in _SEARCHES:
        model = getattr(model, "best_estimator_", None)
    *transformers, last = _flatten(model)
    if not transformers and layout.kind == "numpy":
        return None
    # A transformer may not take all codes, such as a category of none of its training rows.
    try:
        received = layout.decode(points)
        for step in transformers:
            received = step.transform(received)
        is_sparse = issparse(received)
        # Estimators of other packages are not told to forget the names of columns.
        if not (is_sparse or isinstance(received, np.ndarray) or sklearn_name(last)):
            return None
        made = _read(transformers, last, method, layout, is_sparse=is_sparse)
        if made is None:
            return None
        rows, own = dense(made.transform(points)), dense(received)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        return None
    if rows.shape != own.shape or not np.allclose(rows, own, 1e-12, 1e-12, equal_nan=True):
        return None
    masks = _find_masks(last, method, rows)
    return made if masks is None else made.with_function(masks)


def _find_masks(last: Any, method: str, rows: Floats) -> TreesOfRows | None:  # noqa: ANN401
    """Return small trees in a form that predicts faster; None if the last step has others."""
    if method != ("predict_proba" if gives_classes(last) else "predict"):
        return None
    found = find_tree_masks(last, getattr(forget_names(last), method), Layout.of(rows), rows)
    return None if found is None else TreesOfRows(found)


def _flatten(model: Any) -> list[Any]:  # noqa: ANN401
    """Return the steps of a pipeline, and of pipelines in it; another model is one step."""
    if sklearn_name(model) != "Pipeline":
        return [model]
    steps = [step for _, step in model.steps if step is not None and not isinstance(step, str)]
    return [part for step in steps for part in _flatten(step)]


def _read(
    transformers: Sequence[Any],
    last: Any,  # noqa: ANN401
    method: str,
    layout: Layout,
    *,
    is_sparse: bool,
) -> EncodedPipeline | None:
    """Return the steps of a pipeline for encoded rows; None if they gain no time."""
    first, later = (transformers[0], transformers[1:]) if transformers else ("passthrough", ())
    parts = read_transformer(first, layout)
    if parts is None or all(isinstance(part, Frames) for _, part in parts):
        return None
    if not all(sklearn_name(step) is not None for step in later):
        return None
    own, steps = forget_names(last), [forget_names(step) for step in later]
    function = ask_trees(getattr(own, method), own)
    return EncodedPipeline(parts, steps, function, is_sparse=is_sparse)
