"""Checks of estimators of scikit-learn whose compiled parts crash on inconsistent arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from dsage.models.files.damage import DamagedModelError, check_range, check_tree

# The largest number of objects that are inspected.
_MOST = 10_000_000


def check_estimator(model: Any) -> None:  # noqa: ANN401
    """Refuse an estimator with a compiled part that refers to nodes or rows that do not exist.

    Trees, histogram trees, trees of neighbours and support vector machines are checked, wherever
    they are in a model.
    """
    for part in _parts(model):
        check = _CHECKS.get(f"{type(part).__module__}.{type(part).__name__}")
        if check is not None:
            check(part)


def _parts(model: Any) -> Iterator[Any]:  # noqa: ANN401
    """Yield a model and all objects in it."""
    seen: set[int] = set()
    left = [model]
    while left:
        part = left.pop()
        if id(part) in seen or isinstance(part, (str, bytes, int, float, type(None))):
            continue
        seen.add(id(part))
        if len(seen) > _MOST:
            raise DamagedModelError("it has too many parts")
        yield part
        if isinstance(part, dict):
            left += part.values()
        elif isinstance(part, (list, tuple, set, frozenset)):
            left += part
        elif isinstance(part, np.ndarray):
            left += part.ravel().tolist() if part.dtype.hasobject else []
        else:
            left += getattr(part, "__dict__", {}).values()


def _check_tree(tree: Any) -> None:  # noqa: ANN401
    left, right = (np.asarray(each, np.int64) for each in (tree.children_left, tree.children_right))
    is_leaf = left == -1
    if (right[is_leaf] != -1).any() or len(left) != tree.node_count:
        raise DamagedModelError("a tree has a leaf with a child, or another number of nodes")
    if tree.node_count:
        check_tree(left, right, "a tree")
    check_range(tree.feature[~is_leaf], 0, tree.n_features, "the features of a tree")


def _check_histogram_tree(tree: Any) -> None:  # noqa: ANN401
    nodes = tree.nodes
    is_leaf = nodes["is_leaf"] != 0
    left, right = (
        np.where(is_leaf, -1, nodes[name].astype(np.int64)) for name in ("left", "right")
    )
    check_tree(left, right, "a tree")
    is_set = (nodes["is_categorical"] != 0) & ~is_leaf
    n_sets = len(tree.raw_left_cat_bitsets)
    check_range(nodes["bitset_idx"][is_set], 0, n_sets, "the categories of a tree")
    check_range(nodes["feature_idx"][~is_leaf], 0, 2**31, "the features of a tree")


def _check_boosting(model: Any) -> None:  # noqa: ANN401
    n_features = int(model._n_features)
    for one in getattr(model, "_predictors", ()):
        for tree in one:
            used = tree.nodes["feature_idx"][tree.nodes["is_leaf"] == 0]
            check_range(used, 0, n_features, "the features of a tree")
    if any(len(one) != model.n_trees_per_iteration_ for one in model._predictors):
        raise DamagedModelError("its number of trees does not fit its outputs")


def _check_neighbors(tree: Any) -> None:  # noqa: ANN401
    data, order, nodes, bounds = map(np.asarray, tree.get_arrays())
    n_rows = len(data)
    check_range(order, 0, n_rows, "the order of the rows")
    check_range(nodes["idx_start"], 0, n_rows + 1, "the nodes of neighbours")
    check_range(nodes["idx_end"], 0, n_rows + 1, "the nodes of neighbours")
    inner = np.flatnonzero(nodes["is_leaf"] == 0)
    fits = bounds.shape[1] == len(nodes) and bounds.shape[2] == data.shape[1]
    # Node k has the children 2 k + 1 and 2 k + 2.
    if len(order) != n_rows or not fits or (2 * inner + 2 >= len(nodes)).any():
        raise DamagedModelError("the nodes of neighbours are incomplete")
    if (nodes["idx_end"] < nodes["idx_start"]).any():
        raise DamagedModelError("the nodes of neighbours are incomplete")


def _check_vectors(model: Any) -> None:  # noqa: ANN401
    n_support = np.asarray(model._n_support)
    vectors, weights = model.support_vectors_, model._dual_coef_
    n_classes = len(getattr(model, "classes_", (0, 1)))
    n_pairs = n_classes * (n_classes - 1) // 2
    kind = "number of support vectors"
    if model.kernel == "precomputed" or callable(model.kernel) or model._sparse:
        raise DamagedModelError("its kernel or its sparse vectors cannot be checked")
    check_range(n_support, 0, len(vectors) + 1, f"its {kind}")
    check_range(np.asarray(model.support_), 0, 2**31, "the indices of its support vectors")
    fits = vectors.ndim == 2 and int(n_support.sum()) == len(vectors) == len(model.support_)
    fits = fits and weights.shape == (max(n_classes - 1, 1), len(vectors))
    fits = fits and len(model._intercept_) == max(n_pairs, 1)
    lengths = {len(np.atleast_1d(each)) for each in (model._probA, model._probB)}
    fits = fits and lengths <= {0, max(n_pairs, 1)} and len(lengths) == 1
    is_regression = not hasattr(model, "classes_")
    if not fits or not (is_regression or len(n_support) == n_classes):
        raise DamagedModelError(f"its {kind} does not fit its other parts")
    if vectors.shape[1] != model.n_features_in_ or not np.isfinite(vectors).all():
        raise DamagedModelError("its support vectors do not fit its features")


_HISTOGRAM = "sklearn.ensemble._hist_gradient_boosting"
_CHECKS: dict[str, Callable[[Any], None]] = {
    "sklearn.tree._tree.Tree": _check_tree,
    f"{_HISTOGRAM}.predictor.TreePredictor": _check_histogram_tree,
    f"{_HISTOGRAM}.gradient_boosting.HistGradientBoostingClassifier": _check_boosting,
    f"{_HISTOGRAM}.gradient_boosting.HistGradientBoostingRegressor": _check_boosting,
    "sklearn.neighbors._kd_tree.KDTree": _check_neighbors,
    "sklearn.neighbors._ball_tree.BallTree": _check_neighbors,
    **{f"sklearn.svm._classes.{name}": _check_vectors for name in ("SVC", "SVR", "NuSVC", "NuSVR")},
}
