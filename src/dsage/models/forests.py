"""Forests of scikit-learn, predicted tree by tree: the same to the bit, in less time."""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dsage.data.frames import take_rows
from dsage.models.calling import sklearn_name

# Classes of scikit-learn by name, so that none has to be imported.
_REGRESSORS = "ExtraTreesRegressor", "RandomForestRegressor"
_CLASSIFIERS = "ExtraTreesClassifier", "RandomForestClassifier"
_OF_CLASSES = "predict_proba"
# Rows for which the sum over trees is compared with the forest's own predictions.
_N_COMPARED = 64
# The smallest number of rows for a thread: with fewer, starting it takes as long as predicting.
_ROWS_A_THREAD = 1024


class TreeByTree:
    """The predictions of a forest, or of a pipeline that ends in one.

    A forest passes each of its trees to joblib, which takes 0.1 ms per tree: as long as predicting
    some ten rows with it. Here the trees are called one after the other, and summed in the same
    order as in the forest. Threads share the rows, not the trees, so their number does not change a
    sum. The first call compares the sum with the forest's own predictions; if they differ in any
    bit, the forest itself is used for all predictions.

    Parameters
    ----------
    function : callable
        The method of the model that predicts.
    model : estimator
        The forest, or the pipeline.

    Attributes
    ----------
    is_same : bool or None
        Whether both ways agree; None before the first call.

    Examples
    --------
    >>> from sklearn.ensemble import RandomForestRegressor
    >>> X = np.arange(20.0).reshape(10, 2)
    >>> forest = RandomForestRegressor(5, random_state=0).fit(X, X[:, 0])
    >>> predict = TreeByTree(forest.predict, forest)
    >>> bool((predict(X) == forest.predict(X)).all()), predict.is_same
    (True, True)
    """

    def __init__(self, function: Callable[[Any], Any], model: Any) -> None:  # noqa: ANN401
        self.is_same: bool | None = None
        self._function = function
        self._forest = _last_step(model)
        has_steps = self._forest is not model and len(model) > 1
        self._before = model[:-1] if has_steps else None

    def __call__(self, X: Any) -> Any:  # noqa: ANN401
        """Return the predictions for rows."""
        if self.is_same is None:
            self._compare(take_rows(X, np.arange(min(len(X), _N_COMPARED))))
        return self._sum(X) if self.is_same else self._function(X)

    def _compare(self, X: Any) -> None:  # noqa: ANN401
        own = self._function(X)
        try:
            self.is_same = np.array_equal(self._sum(X), own)
        # Another version of scikit-learn may have other trees.
        except (AttributeError, IndexError, TypeError, ValueError):
            self.is_same = False

    def _sum(self, X: Any) -> npt.NDArray[np.float64]:  # noqa: ANN401
        """Return the mean over trees, in the order in which a forest sums them."""
        forest = self._forest
        rows = X if self._before is None else self._before.transform(X)
        rows = _read_rows(forest, rows)
        n_threads = min(count_threads(), rows.shape[0] // _ROWS_A_THREAD)
        if n_threads <= 1:
            return _mean_of_trees(forest, rows)
        ends = np.linspace(0, rows.shape[0], n_threads + 1).astype(np.intp).tolist()
        parts = [rows[start:stop] for start, stop in pairwise(ends)]
        with ThreadPoolExecutor(n_threads) as threads:
            return np.concatenate(list(threads.map(partial(_mean_of_trees, forest), parts)))


def _read_rows(forest: Any, X: Any) -> Any:  # noqa: ANN401
    """Return rows as trees take them.

    Those that are plainly in order are not checked by the forest, which takes longer than to
    predict a hundred of them.
    """
    names = getattr(forest, "feature_names_in_", None)
    plain = None
    if isinstance(X, pd.DataFrame) and names is not None:
        is_plain = all(dtype == np.float64 for dtype in X.dtypes)
        if is_plain and X.columns.tolist() == names.tolist():
            plain = X.to_numpy()
    elif isinstance(X, np.ndarray) and X.dtype == np.float64 and names is None:
        plain = X if X.ndim == 2 and X.shape[1] == forest.n_features_in_ else None
    if plain is not None:
        with np.errstate(over="ignore"):
            rows = plain.astype(np.float32)
        if np.isfinite(rows).all():
            return rows
    return forest._validate_X_predict(X)


def _mean_of_trees(forest: Any, rows: Any) -> npt.NDArray[np.float64]:  # noqa: ANN401
    is_of_classes = sklearn_name(forest) in _CLASSIFIERS
    columns = slice(forest.n_classes_) if is_of_classes else 0
    n_rows = rows.shape[0]
    total = np.zeros((n_rows, forest.n_classes_) if is_of_classes else n_rows)
    for tree in forest.estimators_:
        total += tree.tree_.predict(rows)[:, columns]
    total /= len(forest.estimators_)
    return total


def count_threads() -> int:
    """Return the number of threads that models of scikit-learn with OpenMP use here, such as 2.

    It is 1 if parallel jobs keep the processors busy, or if the user limits it.
    """
    helpers = sys.modules.get("sklearn.utils._openmp_helpers")
    count = getattr(helpers, "_openmp_effective_n_threads", None)
    return 1 if count is None else int(count())


def ask_trees(function: Callable[[Any], Any], model: Any) -> Callable[[Any], Any]:  # noqa: ANN401
    """Return a faster function with the same predictions for a forest; other functions unchanged.

    `function` is the method of the model that predicts numbers, or the probabilities of classes.
    """
    forest = _last_step(model)
    wanted = {**dict.fromkeys(_REGRESSORS, "predict"), **dict.fromkeys(_CLASSIFIERS, _OF_CLASSES)}
    method = wanted.get(sklearn_name(forest) or "")
    if method is None or function != getattr(model, method, None):
        return function
    return TreeByTree(function, model) if getattr(forest, "n_outputs_", 0) == 1 else function


def _last_step(model: Any) -> Any:  # noqa: ANN401
    """Return the last step of a scikit-learn pipeline; any other model unchanged."""
    return model[-1] if sklearn_name(model) == "Pipeline" and len(model) else model
