"""Checks of LightGBM model files: LightGBM crashes the process on a damaged one."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_CATEGORICAL = 1  # the bit of a decision type that marks sets of categories


class DamagedTextError(ValueError):
    """A text is not a whole model; the message says where."""


def check_text(text: str) -> None:
    """Refuse a text that is not a whole LightGBM model, as ``Booster.save_model`` writes it.

    The trees must have the number and the lengths that the header states, and refer only to
    features, to later splits and to leaves that exist.
    """
    if not text.startswith("tree\n"):
        raise DamagedTextError("its first line is not 'tree'")
    body, end, _ = text.partition("end of trees")
    if not end:
        raise DamagedTextError("it has no line 'end of trees'")
    starts = [found.start() for found in re.finditer(r"^Tree=\d+$", body, re.MULTILINE)]
    header = _fields(body[: starts[0]] if starts else body, "the header")
    trees = [body[start:stop] for start, stop in zip(starts, [*starts[1:], None], strict=True)]
    if "tree_sizes" in header:
        sizes = [len(tree.encode()) for tree in trees]
        if sizes != _numbers(header, "tree_sizes", "the header").tolist():
            raise DamagedTextError("the number or lengths of its trees differ from its header")
    n_features = int(_number(header, "max_feature_idx", "the header")) + 1
    for number, tree in enumerate(trees):
        _check_tree(_fields(tree, f"tree {number}"), n_features, f"tree {number}")


def _check_tree(fields: dict[str, str], n_features: int, of: str) -> None:
    n_leaves = int(_number(fields, "num_leaves", of))
    n_splits = n_leaves - 1
    arrays = {name: _numbers(fields, name, of) for name in fields}
    for name in ("leaf_value", "split_feature", "threshold", "left_child", "right_child"):
        length = n_leaves if name == "leaf_value" else n_splits
        if n_leaves < 1 or len(arrays.get(name, [])) != length:
            raise DamagedTextError(f"the length of {name} of {of} does not match num_leaves")
    features = arrays["split_feature"]
    children = np.stack((arrays["left_child"], arrays["right_child"]))
    # Splits are numbered from 0 in the order of their creation, leaves down from -1.
    onwards = (children > np.arange(n_splits)) & (children < n_splits)
    leaves = (children < 0) & (children >= -n_leaves)
    if not ((features >= 0) & (features < n_features)).all() or not (onwards | leaves).all():
        raise DamagedTextError(f"{of} refers to a feature, a split or a leaf that does not exist")
    if _number(fields, "num_cat", of):
        _check_categories(arrays, of)


def _check_categories(arrays: dict[str, Floats], of: str) -> None:
    bounds = arrays.get("cat_boundaries", np.empty(0))
    n_sets = len(bounds) - 1
    words = arrays.get("cat_threshold", np.empty(0))
    types = arrays.get("decision_type", np.empty(0)).astype(np.int64)
    chosen = arrays["threshold"][: len(types)][(types & _CATEGORICAL) > 0]
    if (
        n_sets != arrays["num_cat"][0]
        or len(types) != len(arrays["threshold"])
        or bounds[0] != 0
        or bounds[-1] != len(words)
        or (np.diff(bounds) < 0).any()
        or not ((chosen >= 0) & (chosen < n_sets)).all()
    ):
        raise DamagedTextError(f"{of} has inconsistent sets of categories")


def _fields(text: str, of: str) -> dict[str, str]:
    lines = [line.partition("=")[::2] for line in text.splitlines() if "=" in line]
    fields = dict(lines)
    if len(fields) != len(lines):
        raise DamagedTextError(f"{of} has a field twice")
    return fields


def _numbers(fields: dict[str, str], name: str, of: str) -> Floats:
    try:
        numbers: npt.NDArray[Any] = np.array(fields[name].split(), np.float64)
    except ValueError as error:
        raise DamagedTextError(f"{name} of {of} is not numeric") from error
    return numbers


def _number(fields: dict[str, str], name: str, of: str) -> float:
    numbers = _numbers(fields, name, of) if name in fields else np.empty(0)
    if len(numbers) != 1 or numbers[0] != np.floor(numbers[0]):
        raise DamagedTextError(f"{name} of {of} is not a whole number")
    return float(numbers[0])
