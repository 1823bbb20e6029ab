"""Checks of XGBoost model files: XGBoost crashes the process on a damaged one."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import numpy.typing as npt

from dsage.models.files.damage import (
    MAX_FEATURES,
    MAX_OUTPUTS,
    DamagedModelError,
    Ints,
    check_range,
    check_tree,
)
from dsage.models.files.ubjson import read_ubjson

Floats = npt.NDArray[np.float64]

_INT = 2**31
_WHOLE = re.compile(r"\d{1,10}")
# XGBoost's own limit of categories, and one of the bits of all sets of a tree.
_MAX_CATEGORY, _MAX_BITS = 2**24, 2**30
_CATEGORICAL = 1
_OF_NODES = (
    *("split_conditions", "split_indices", "left_children", "right_children"),
    *("default_left", "parents"),
)
# Not in trees of several outputs before version 3.1.
_STATISTICS = ("loss_changes", "sum_hessian")
_COMPLETE = (3, 1)


def check_content(content: bytes) -> None:
    """Refuse bytes that are not a whole XGBoost model, as ``Booster.save_model`` writes it.

    The arrays must have the sizes that the parameters state, the trees must be trees of finite
    numbers, and refer only to features, outputs and categories that exist.
    """
    try:
        found = _read(content)
        learner = found["learner"]
        version = _check_version(found.get("version"))
        n_features, n_outputs = _check_learner(learner)
        booster = learner["gradient_booster"]
        name = booster["name"]
        if name == "gblinear":
            weights = _reals(booster["model"]["weights"], "the weights")
            if len(weights) != (n_features + 1) * n_outputs:
                raise DamagedModelError("its number of weights does not fit its features")
            return
        if name not in ("gbtree", "dart"):
            raise DamagedModelError("its kind of booster is unknown")
        model = booster["model"] if name == "gbtree" else booster["gbtree"]["model"]
        n_trees = _check_trees(model, n_features, n_outputs, version)
        if name == "dart" and len(_reals(booster["weight_drop"], "weight_drop")) != n_trees:
            raise DamagedModelError("the length of weight_drop does not fit its trees")
        if "cats" in model:
            _check_names_of_categories(model["cats"], n_features)
    except DamagedModelError:
        raise
    except (LookupError, TypeError, AttributeError, ValueError, OverflowError) as error:
        raise DamagedModelError(f"its parts are not those of a model: {error}") from error


def _read(content: bytes) -> Any:  # noqa: ANN401
    """Return the value of JSON or, by XGBoost's rule, of binary JSON."""
    if content[1:2].isalpha():
        return read_ubjson(content)
    try:
        return json.loads(content.decode(), object_pairs_hook=_once)
    except RecursionError as error:
        raise DamagedModelError("it is nested too deeply") from error


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise DamagedModelError("it has a name twice")
    return found


def _check_version(version: Any) -> tuple[int, ...]:  # noqa: ANN401
    numbers = check_range(version, 0, _INT, "its version")
    if numbers.shape != (3,):
        raise DamagedModelError("its version is not of three numbers")
    return tuple(numbers.tolist())


def _check_learner(learner: dict[str, Any]) -> tuple[int, int]:
    """Return the numbers of features and of outputs."""
    param = learner["learner_model_param"]
    n_features = _count(param, "num_feature")
    n_classes = _count(param, "num_class")
    n_targets = _count(param, "num_target") if "num_target" in param else 1
    n_outputs = max(n_classes, n_targets, 1)
    is_small = n_features <= MAX_FEATURES and n_outputs <= MAX_OUTPUTS
    if not is_small or (n_classes > 1 and n_targets > 1):
        raise DamagedModelError("its number of features or outputs is out of range")
    base = [float(text) for text in str(param["base_score"]).strip("[]").split(",")]
    if len(base) not in (1, n_outputs) or not np.isfinite(base).all():
        raise DamagedModelError("base_score is not a number for each output")
    for name in ("feature_names", "feature_types"):
        texts = learner.get(name, [])
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise DamagedModelError(f"{name} is not a list of texts")
        if len(texts) not in (0, n_features):
            raise DamagedModelError(f"the length of {name} does not match num_feature")
    objective = learner["objective"]
    if not isinstance(objective["name"], str):
        raise DamagedModelError("its objective has no name")
    classes = objective.get("softmax_multiclass_param")
    if classes is not None and _count(classes, "num_class") != n_classes:
        raise DamagedModelError("the classes of its objective do not fit num_class")
    if objective["name"].startswith("multi:") and (classes is None or n_classes < 1):
        raise DamagedModelError("its objective of classes lacks their number")
    return n_features, n_outputs


def _check_trees(
    model: dict[str, Any], n_features: int, n_outputs: int, version: tuple[int, ...]
) -> int:
    """Check all trees, and return their number."""
    trees = model["trees"]
    n_trees = len(trees)
    if _count(model["gbtree_model_param"], "num_trees") != n_trees:
        raise DamagedModelError("its number of trees differs from num_trees")
    if len(check_range(model["tree_info"], 0, n_outputs, "tree_info")) != n_trees:
        raise DamagedModelError("the length of tree_info differs from num_trees")
    # XGBoost puts each tree into the place of its number.
    numbers = [tree["id"] for tree in trees]
    if sorted(check_range(numbers, 0, n_trees, "the numbers of trees")) != list(range(n_trees)):
        raise DamagedModelError("its trees are not numbered from 0")
    if "iteration_indptr" in model:
        starts = check_range(model["iteration_indptr"], 0, n_trees + 1, "iteration_indptr")
        ends = starts[[0, -1]].tolist() if len(starts) else []
        if ends != [0, n_trees] or (np.diff(starts) < 0).any():
            raise DamagedModelError("iteration_indptr does not fit its trees")
    widths = {_check_tree(tree, n_features, version, f"tree {at}") for at, tree in enumerate(trees)}
    if len(widths) > 1 or (widths - {1} and widths != {n_outputs}):
        raise DamagedModelError("the leaves of its trees do not fit its outputs")
    return n_trees


def _check_tree(tree: dict[str, Any], n_features: int, version: tuple[int, ...], of: str) -> int:
    """Check a tree, and return the number of values of a leaf."""
    param = tree["tree_param"]
    n_nodes, width = _count(param, "num_nodes"), max(_count(param, "size_leaf_vector"), 1)
    if n_nodes < 1 or _count(param, "num_feature") != n_features:
        raise DamagedModelError(f"{of} has no nodes, or another number of features")
    weights = _reals(tree["base_weights"], f"base_weights of {of}")
    named = _OF_NODES if width > 1 and version < _COMPLETE else (*_OF_NODES, *_STATISTICS)
    numbers = [np.asarray(tree[name]) for name in named]
    numbers += [np.asarray(tree[name]) for name in ("split_type",) if name in tree]
    if any(array.dtype.kind not in "biuf" for array in numbers):
        raise DamagedModelError(f"{of} has arrays that do not consist of numbers")
    shapes = {array.shape for array in numbers}
    if len(weights) != n_nodes * width or shapes != {(n_nodes,)}:
        raise DamagedModelError(f"the sizes of the arrays of {of} do not match num_nodes")
    left = check_range(tree["left_children"], -1, _INT, f"left_children of {of}")
    right = check_range(tree["right_children"], -1, _INT, f"right_children of {of}")
    is_leaf = left == -1
    # Leaves of several values are numbered by their right child.
    is_reached = check_tree(left, np.where(is_leaf, -1, right), of) >= 0
    if width > 1:
        n_leaves = len(_reals(tree.get("leaf_weights", weights), f"leaf_weights of {of}")) // width
        check_range(right[is_leaf], -1, n_leaves, f"the leaves of {of}")
    elif (right[is_leaf] != -1).any():
        raise DamagedModelError(f"{of} has a leaf with a child")
    is_split = is_reached & ~is_leaf
    _check_parents(tree["parents"], left, right, np.flatnonzero(is_split), of)
    indices = check_range(tree["split_indices"], -_INT, 2 * _INT, f"split_indices of {of}")
    check_range(indices[is_split], 0, n_features, f"split_indices of {of}")
    types = check_range(tree.get("split_type", [0] * n_nodes), 0, 2, f"split_type of {of}")
    is_set = types == _CATEGORICAL
    conditions = np.asarray(tree["split_conditions"], dtype=np.float64)
    if not np.isfinite(conditions[is_reached & ~is_set]).all():
        raise DamagedModelError(f"split_conditions of {of} is not finite")
    _check_sets(tree, np.flatnonzero(is_split & is_set), n_nodes, of)
    return width


def _check_parents(parents: Any, left: Ints, right: Ints, splits: Ints, of: str) -> None:  # noqa: ANN401
    """Refuse nodes that name another parent than the split whose child they are."""
    named = check_range(parents, -1, _INT, f"parents of {of}")
    is_right = (named[left[splits]] == splits) & (named[right[splits]] == splits)
    if named[0] not in (-1, _INT - 1) or not is_right.all():
        raise DamagedModelError(f"the nodes of {of} name other parents")


def _check_sets(tree: dict[str, Any], needed: Ints, n_nodes: int, of: str) -> None:
    """Check the sets of categories of the splits that need one."""
    what = f"the categories of {of}"
    values = check_range(tree.get("categories", []), 0, _MAX_CATEGORY, what)
    nodes = check_range(tree.get("categories_nodes", []), 0, n_nodes, what)
    starts = check_range(tree.get("categories_segments", []), 0, len(values) + 1, what)
    sizes = check_range(tree.get("categories_sizes", []), 0, len(values) + 1, what)
    if not len(nodes) == len(starts) == len(sizes) or (np.diff(nodes) <= 0).any():
        raise DamagedModelError(f"{what} have different lengths, or are not in order")
    if (starts + sizes > len(values)).any() or not np.isin(needed, nodes).all():
        raise DamagedModelError(f"{what} are incomplete")
    if (sizes == 0).any():
        raise DamagedModelError(f"{what} are empty")
    parts = zip(starts.tolist(), sizes.tolist(), strict=True)
    if sum(int(values[start : start + size].max()) + 1 for start, size in parts) > _MAX_BITS:
        raise DamagedModelError(f"{what} are too many")


def _check_names_of_categories(cats: dict[str, Any], n_features: int) -> None:
    """Check the categories of the training data, which versions from 3.1 on store."""
    encoded = cats["enc"]
    bounds = check_range(cats["feature_segments"], 0, _INT, "feature_segments")
    order = check_range(cats["sorted_idx"], 0, _INT, "sorted_idx")
    if not len(encoded):
        if len(bounds) > 0 and bounds.any():
            raise DamagedModelError("its categories are incomplete")
        return
    if len(encoded) != n_features or len(bounds) != n_features + 1 or bounds[0] != 0:
        raise DamagedModelError("its categories do not fit its features")
    if bounds[-1] != len(order):
        raise DamagedModelError("its categories are incomplete")
    for each, start, stop in zip(encoded, bounds[:-1], bounds[1:], strict=True):
        n_names = len(each["values"])
        if "offsets" in each:
            offsets = check_range(each["offsets"], 0, n_names + 1, "offsets")
            check_range(each["values"], -128, 256, "the names of categories")
            ends = offsets[[0, -1]].tolist() if len(offsets) else [0, 0]
            if ends != [0, n_names] or (np.diff(offsets) < 0).any():
                raise DamagedModelError("the names of its categories are incomplete")
            n_names = max(len(offsets) - 1, 0)
        elif not np.isfinite(np.asarray(each["values"], dtype=np.float64)).all():
            raise DamagedModelError("its categories are not finite")
        if n_names != stop - start or sorted(order[start:stop].tolist()) != list(range(n_names)):
            raise DamagedModelError("the order of its categories is not a permutation")


def _reals(values: Any, what: str) -> Floats:  # noqa: ANN401
    """Return finite numbers as an array."""
    array = np.asarray(values)
    if array.size and (array.dtype.kind not in "iuf" or array.ndim != 1):
        raise DamagedModelError(f"{what} does not consist of numbers")
    if not np.isfinite(array.astype(np.float64)).all():
        raise DamagedModelError(f"{what} is not finite")
    return array.astype(np.float64)


def _count(param: dict[str, Any], name: str) -> int:
    """Return a number that XGBoost writes as text."""
    text = param[name]
    if not isinstance(text, str) or not _WHOLE.fullmatch(text):
        raise DamagedModelError(f"{name} is not a whole number")
    return int(text)
