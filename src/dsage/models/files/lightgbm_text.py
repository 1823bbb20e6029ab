"""Checks of LightGBM model files: LightGBM crashes the process on a damaged one."""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

from dsage._files import read_json
from dsage.models.files.damage import (
    MAX_FEATURES,
    MAX_OUTPUTS,
    DamagedModelError,
    Ints,
    check_range,
    check_tree,
)

Floats = npt.NDArray[np.float64]

_CATEGORICAL = 1  # the bit of a decision type that marks sets of categories
_HEADER = "the header"
# LightGBM reads a number up to the first other character, so it would read something else than we
# do.
_WHOLE = re.compile(r"-?\d{1,10}")
_REAL = re.compile(r"[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d{1,3})?|inf|nan)")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_FIELD = re.compile(r"[A-Za-z_]+=.*")
_OBJECTIVE = re.compile(r"[a-z0-9_]+(?: [a-z0-9_]+(?::[-+.0-9a-z]+)?)*")
_PARAMETER = re.compile(r"\[([a-z0-9_]+): ?([^\[\]]*|\[.*\])\]")
# A line of the header that is not a field.
_AVERAGE = "average_output"
_CLASSES = re.compile(r"num_class:(\d+)")
_N_WORDS = 2**32
# Fields that have one number per split, one per leaf, and others; in both kinds some must be there.
_NEEDED = (
    *("leaf_value", "leaf_weight", "leaf_count", "split_feature", "threshold", "left_child"),
    *("right_child", "split_gain", "decision_type", "internal_value", "internal_weight"),
    "internal_count",
)
_OF_LEAVES = ("leaf_value", "leaf_weight", "leaf_count", "leaf_const", "num_features")
_WHOLE_FIELDS = (
    *("split_feature", "left_child", "right_child", "decision_type", "num_features"),
    *("leaf_features", "cat_boundaries", "cat_threshold", "leaf_count", "internal_count"),
)
# Thresholds may be NaN: missing values go one way, and all others the other.
_FINITE = ("leaf_value", "leaf_const", "leaf_coeff")


def check_text(text: str) -> None:
    """Refuse a text that is not a whole LightGBM model, as ``Booster.save_model`` writes it.

    The trees must have the number and the lengths that the header states, be trees, have finite
    numbers, and refer only to features and categories that exist.
    """
    if _CONTROL.search(text):
        raise DamagedModelError("it has characters that are not text")
    if not text.startswith("tree\n"):
        raise DamagedModelError("its first line is not 'tree'")
    body, end, rest = text.partition("\nend of trees\n")
    if not end:
        raise DamagedModelError("it has no line 'end of trees'")
    starts = [found.start() for found in re.finditer(r"^Tree=", body, re.MULTILINE)]
    header = _fields(body[len("tree\n") : starts[0] if starts else None], _HEADER)
    trees = [body[start:stop] for start, stop in zip(starts, [*starts[1:], None], strict=True)]
    if trees:
        # The separator has the line end of the last tree.
        trees[-1] += "\n"
    n_features = _check_header(header, trees)
    for number, tree in enumerate(trees):
        fields = _fields(tree, f"tree {number}")
        if fields.pop("Tree") != str(number):
            raise DamagedModelError("its trees are not numbered from 0")
        _check_tree(fields, n_features, f"tree {number}")
    _check_parameters(rest)
    _check_categories_of_pandas(rest)


def _check_header(header: dict[str, str], trees: list[str]) -> int:
    """Return the number of features."""
    n_classes = _number(header, "num_class", _HEADER)
    n_features = _number(header, "max_feature_idx", _HEADER) + 1
    if not (1 <= n_classes <= MAX_OUTPUTS and 1 <= n_features <= MAX_FEATURES):
        raise DamagedModelError("its number of classes or features is out of range")
    # Predictions have a place for each class, and each tree of an iteration writes into one.
    if _number(header, "num_tree_per_iteration", _HEADER) != n_classes or len(trees) % n_classes:
        raise DamagedModelError("its number of trees does not fit its number of classes")
    if "objective" in header and not _OBJECTIVE.fullmatch(header["objective"]):
        raise DamagedModelError("its objective is malformed")
    of_objective = _CLASSES.findall(header.get("objective", ""))
    is_of_classes = header.get("objective", "").startswith("multiclass")
    if any(int(found) != n_classes for found in of_objective) or is_of_classes > len(of_objective):
        raise DamagedModelError("the classes of its objective do not fit its number of classes")
    for name in ("feature_names", "feature_infos"):
        if len(header.get(name, "").split(" ")) != n_features:
            raise DamagedModelError(f"the length of {name} does not match max_feature_idx")
    if "tree_sizes" in header:
        sizes = [len(tree.encode()) for tree in trees]
        if sizes != _wholes(header, "tree_sizes", _HEADER).tolist():
            raise DamagedModelError("the number or lengths of its trees differ from its header")
    return n_features


def _check_tree(fields: dict[str, str], n_features: int, of: str) -> None:
    n_leaves = _number(fields, "num_leaves", of)
    n_sets = _number(fields, "num_cat", of)
    n_splits = n_leaves - 1
    # Every leaf has a value, so a text is at least as long.
    if not 1 <= n_leaves <= len(fields.get("leaf_value", "")) + 1 or n_sets < 0:
        raise DamagedModelError(f"the length of leaf_value of {of} does not match num_leaves")
    read = {name: _wholes(fields, name, of) for name in _WHOLE_FIELDS if name in fields}
    others = fields.keys() - read.keys() - {"num_leaves", "num_cat", "is_linear"}
    numbers: dict[str, npt.NDArray[np.float64] | Ints] = {
        **read,
        **{name: _reals(fields, name, of) for name in others},
    }
    for name in dict.fromkeys((*_NEEDED, *_OF_LEAVES)):
        if name not in fields and name not in _NEEDED:
            continue
        length = n_leaves if name in _OF_LEAVES else n_splits
        found = len(numbers.get(name, ()))
        # A tree of one leaf has empty fields.
        if found != length and not (n_splits == 0 and found == 0 and name != "leaf_value"):
            raise DamagedModelError(f"the length of {name} of {of} does not match num_leaves")
    for name in _FINITE:
        if not np.isfinite(numbers.get(name, ())).all():
            raise DamagedModelError(f"{name} of {of} is not finite")
    check_range(read["split_feature"], 0, n_features, f"split_feature of {of}")
    _check_children(read["left_child"], read["right_child"], n_leaves, of)
    if len(numbers.get("shrinkage", (1.0,))) != 1:
        raise DamagedModelError(f"shrinkage of {of} is not one number")
    if n_sets or "cat_boundaries" in fields or "cat_threshold" in fields:
        _check_sets(numbers, n_sets, of)
    elif (read.get("decision_type", np.zeros(0, np.int64)) & _CATEGORICAL).any():
        raise DamagedModelError(f"{of} has inconsistent sets of categories")
    check_range(read.get("decision_type", ()), 0, 128, f"decision_type of {of}")
    if "is_linear" in fields and check_range(
        [_number(fields, "is_linear", of)], 0, 2, f"is_linear of {of}"
    ):
        _check_linear(read, numbers, n_leaves, n_features, of)


def _check_children(left: Ints, right: Ints, n_leaves: int, of: str) -> None:
    """Refuse children that do not form a tree in which every split and leaf occurs once."""
    n_splits = n_leaves - 1
    children = np.concatenate([left, right])
    check_range(children, -n_leaves, n_splits, f"the children of {of}")
    if n_splits == 0:
        return
    # Splits are numbered from 0, leaves down from -1: here they follow the splits.
    nodes = np.where(children < 0, n_splits - 1 - children, children)
    none = np.full(n_leaves, -1, dtype=np.int64)
    depth = check_tree(
        np.concatenate([nodes[:n_splits], none]), np.concatenate([nodes[n_splits:], none]), of
    )
    if (depth < 0).any():
        raise DamagedModelError(f"{of} has splits or leaves that are not part of the tree")


def _check_sets(numbers: dict[str, Floats | Ints], n_sets: int, of: str) -> None:
    bounds = numbers.get("cat_boundaries", np.zeros(0))
    words = numbers.get("cat_threshold", np.zeros(0))
    types = numbers.get("decision_type", np.zeros(0)).astype(np.int64)
    is_set = (types & _CATEGORICAL) > 0
    fits = len(bounds) == n_sets + 1 and len(types) == len(numbers["threshold"])
    is_ordered = fits and bool((np.diff(bounds) > 0).all())
    fits = is_ordered and bounds[0] == 0 and bounds[-1] == len(words)
    if fits:
        chosen = numbers["threshold"][is_set]
        is_whole = chosen == np.floor(chosen)
        fits = bool(((chosen >= 0) & (chosen < n_sets) & is_whole).all())
    if not fits or ((words < 0) | (words >= _N_WORDS)).any():
        raise DamagedModelError(f"{of} has inconsistent sets of categories")


def _check_linear(
    read: dict[str, Ints],
    numbers: dict[str, Floats | Ints],
    n_leaves: int,
    n_features: int,
    of: str,
) -> None:
    if not {"leaf_const", "num_features", "leaf_features", "leaf_coeff"} <= numbers.keys():
        raise DamagedModelError(f"{of} lacks the parts of a linear tree")
    counts = check_range(read["num_features"], 0, n_features + 1, f"num_features of {of}")
    used = check_range(read["leaf_features"], 0, n_features, f"leaf_features of {of}")
    lengths = {len(used), len(numbers["leaf_coeff"]), int(counts.sum())}
    if len(lengths) > 1 or len(counts) != n_leaves:
        raise DamagedModelError(f"the linear models of {of} have inconsistent lengths")


def _check_parameters(rest: str) -> None:
    """Check the parameters of the training, which LightGBM reads, too."""
    _, found, after = rest.partition("parameters:\n")
    if not found:
        return
    section, end, _ = after.partition("\nend of parameters\n")
    lines = [line for line in section.split("\n") if line]
    if not end or not all(map(_PARAMETER.fullmatch, lines)):
        raise DamagedModelError("its parameters are incomplete")


def _check_categories_of_pandas(rest: str) -> None:
    """Check the line that LightGBM's Python package reads as JSON."""
    _, found, line = rest.rpartition("\npandas_categorical:")
    if not found:
        return
    try:
        categories = read_json(line)
    except ValueError as error:
        raise DamagedModelError(f"its categories of pandas are not JSON: {error}") from error
    if categories is None:
        return
    is_list = isinstance(categories, list) and all(isinstance(each, list) for each in categories)
    if not is_list or any(isinstance(one, (list, dict)) for each in categories for one in each):
        raise DamagedModelError("its categories of pandas are not lists")


def _fields(text: str, of: str) -> dict[str, str]:
    """Return the fields of a part; LightGBM stops reading at any other line."""
    lines = [line for line in text.rstrip("\n").split("\n") if line != _AVERAGE]
    if not all(map(_FIELD.fullmatch, lines)):
        raise DamagedModelError(f"{of} has lines that are not fields")
    fields = dict(line.partition("=")[::2] for line in lines)
    if len(fields) != len(lines):
        raise DamagedModelError(f"{of} has a field twice")
    return fields


def _tokens(fields: dict[str, str], name: str, kind: re.Pattern[str], of: str) -> list[str]:
    found = [token for token in fields[name].split(" ") if token]
    if not all(map(kind.fullmatch, found)):
        raise DamagedModelError(f"{name} of {of} is not numeric")
    return found


def _wholes(fields: dict[str, str], name: str, of: str) -> Ints:
    return np.array(list(map(int, _tokens(fields, name, _WHOLE, of))), dtype=np.int64)


def _reals(fields: dict[str, str], name: str, of: str) -> Floats:
    return np.array(list(map(float, _tokens(fields, name, _REAL, of))), dtype=np.float64)


def _number(fields: dict[str, str], name: str, of: str) -> int:
    if name not in fields or not _WHOLE.fullmatch(fields[name]):
        raise DamagedModelError(f"{name} of {of} is not a whole number")
    return int(fields[name])
