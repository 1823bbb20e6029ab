"""The trees of ensembles, read from models of scikit-learn, LightGBM and XGBoost."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dsage.models.calling import sklearn_name

Floats = npt.NDArray[np.float64]


class Node(NamedTuple):
    """A split, or a leaf if there is a value; rows with ``x <= threshold`` go to the left."""

    feature: int
    threshold: float
    left: int
    right: int
    missing_left: bool
    value: Floats | None


Tree = list[Node]
Box = dict[int, tuple[float, float, bool]]
"""Intervals by feature: low < x <= high, and whether missing values are in it."""


@dataclass(frozen=True, eq=False)
class Ensemble:
    """Trees whose values add up.

    Attributes
    ----------
    trees : list of Tree
        The trees.
    is_single : bool
        Whether the model sees numbers in single precision.
    link : {"identity", "logistic", "softmax", "exp"}
        The function that turns their sum into the prediction.
    n_scores : int
        The number of sums. Tree t adds to sum ``t % n_scores``, unless its leaves have a value for
        each.
    """

    trees: list[Tree]
    is_single: bool
    link: str = "identity"
    n_scores: int = 1


def read_trees(model: Any) -> Ensemble | None:  # noqa: ANN401
    """Return the trees of a fitted model; None for models that are not known.

    Whether the model really predicts their sum has to be verified.
    """
    try:
        return _read(model)
    # Another version of a library may keep its trees elsewhere.
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        return None


def count_leaves(model: Any) -> int:  # noqa: ANN401
    """Return the most leaves of a tree of a forest of scikit-learn; 0 for other models.

    This takes far less time than to read the trees.
    """
    try:
        if (sklearn_name(model) or "") in _FORESTS:
            return max(int(each.tree_.n_leaves) for each in model)
    # Another version of a library may keep its trees elsewhere.
    except (AttributeError, TypeError, ValueError):
        pass
    return 0


def boxes(tree: Tree) -> Iterator[tuple[Box, Floats]]:
    """Yield the intervals of the features on the path to each leaf, and its value."""
    stack: list[tuple[int, Box]] = [(0, {})]
    while stack:
        at, box = stack.pop()
        node = tree[at]
        if node.value is not None:
            yield box, node.value
            continue
        low, high, is_taken = box.get(node.feature, (-np.inf, np.inf, True))
        left = low, min(high, node.threshold), is_taken and node.missing_left
        right = max(low, node.threshold), high, is_taken and not node.missing_left
        stack.append((node.left, {**box, node.feature: left}))
        stack.append((node.right, {**box, node.feature: right}))


def _read(model: Any) -> Ensemble | None:  # noqa: ANN401
    name = sklearn_name(model) or ""
    if name in _FORESTS:
        trees = [_of_sklearn(each.tree_, name, len(model.estimators_)) for each in model]
        return Ensemble(trees, is_single=True)
    if name in _TREES:
        return Ensemble([_of_sklearn(model.tree_, name, 1)], is_single=True)
    if name.startswith("HistGradientBoosting"):
        return _of_hist(model)
    if name.startswith("GradientBoosting"):
        # Trees of a classifier are regressions, too.
        trees = [
            _of_sklearn(each.tree_, "", 1.0 / model.learning_rate)
            for each in model.estimators_.ravel()
        ]
        n_scores = model.estimators_.shape[1]
        return Ensemble(trees, True, _link_of(name, n_scores), n_scores)
    package, kind = type(model).__module__.partition(".")[0], type(model).__name__
    if package == "lightgbm" and kind in ("LGBMRegressor", "LGBMClassifier"):
        parameters, trees = _of_lightgbm(model.booster_.model_to_string())
        n_scores = int(parameters["num_tree_per_iteration"])
        link = _link_of(kind, n_scores, parameters.get("objective", ""))
        return Ensemble(trees, False, link, n_scores)
    if package == "xgboost" and kind in ("XGBRegressor", "XGBClassifier"):
        if model.missing is not None and not np.isnan(model.missing):
            # A number that stands for a missing value is not read.
            return None
        booster = model.get_booster()
        names = booster.feature_names
        at = None if names is None else {each: k for k, each in enumerate(names)}
        trees = [_of_xgboost(json.loads(e), at) for e in booster.get_dump(dump_format="json")]
        n_scores = model.n_classes_ if kind == "XGBClassifier" and model.n_classes_ > 2 else 1
        return Ensemble(trees, True, _link_of(kind, n_scores, str(model.objective)), n_scores)
    return None


def _link_of(name: str, n_scores: int, objective: str = "") -> str:
    """Return the link that a model of this kind has by default; the predictions verify it."""
    if name.endswith("Classifier"):
        return "logistic" if n_scores == 1 else "softmax"
    is_log = any(each in objective for each in ("poisson", "gamma", "tweedie"))
    return "exp" if is_log else "identity"


_FORESTS = frozenset(
    (
        "ExtraTreesClassifier",
        "ExtraTreesRegressor",
        "RandomForestClassifier",
        "RandomForestRegressor",
    )
)
_TREES = frozenset(
    ("DecisionTreeClassifier", "DecisionTreeRegressor", "ExtraTreeClassifier", "ExtraTreeRegressor")
)


def _of_sklearn(tree: Any, name: str, n_trees: float) -> Tree:  # noqa: ANN401
    if tree.n_outputs != 1:
        raise ValueError("One output is read.")
    values = tree.value[:, 0, :] / n_trees
    if name.endswith("Classifier"):
        values = values / tree.value[:, 0, :].sum(axis=1, keepdims=True)
    goes_left = np.asarray(tree.missing_go_to_left, dtype=bool)
    return [
        Node(
            int(tree.feature[at]),
            float(tree.threshold[at]),
            int(tree.children_left[at]),
            int(tree.children_right[at]),
            bool(goes_left[at]),
            values[at] if tree.children_left[at] < 0 else None,
        )
        for at in range(tree.node_count)
    ]


def _of_hist(model: Any) -> Ensemble:  # noqa: ANN401
    if model._preprocessor is not None:
        raise ValueError("Columns are transformed.")
    trees = []
    for predictor in (each for iteration in model._predictors for each in iteration):
        nodes = predictor.nodes
        if nodes["is_categorical"].any():
            raise ValueError("Splits of classes are not read.")
        trees.append(
            [
                Node(
                    int(each["feature_idx"]),
                    float(each["num_threshold"]),
                    int(each["left"]),
                    int(each["right"]),
                    bool(each["missing_go_to_left"]),
                    np.array([each["value"]]) if each["is_leaf"] else None,
                )
                for each in nodes
            ]
        )
    n_scores = int(model.n_trees_per_iteration_)
    link = _link_of(type(model).__name__, n_scores, str(model.loss))
    return Ensemble(trees, False, link, n_scores)


def _of_lightgbm(text: str) -> tuple[dict[str, str], list[Tree]]:
    """Return the parameters and the trees of a model as LightGBM writes it.

    As JSON it would take ten times as long.
    """
    header, *blocks = text.split("\nTree=")
    blocks[-1] = blocks[-1].partition("\nend of trees")[0]
    return _fields(header), [_of_lightgbm_tree(_fields(block)) for block in blocks]


def _fields(block: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in block.splitlines() if "=" in line)


def _of_lightgbm_tree(fields: dict[str, str]) -> Tree:
    if int(fields["num_cat"]) or int(fields.get("is_linear", 0)):
        raise ValueError("Splits of classes and linear trees are not read.")
    values = [float(value) for value in fields["leaf_value"].split()]
    leaves = [Node(-1, 0.0, -1, -1, False, np.array([value])) for value in values]
    n_splits = len(values) - 1
    if not n_splits:
        return leaves
    names = "split_feature", "threshold", "decision_type", "left_child", "right_child"
    splits = zip(*(fields[name].split() for name in names), strict=True)
    nodes: Tree = []
    for feature, end, decision, *children in splits:
        threshold, missing = float(end), int(decision) >> 2
        if missing == _AS_ZERO:
            raise ValueError("Zeros that count as missing are not read.")
        # Without missing values in training, they count as zeros.
        is_left = bool(int(decision) & _DEFAULT_LEFT) if missing else threshold >= 0.0
        # Leaves are numbered from -1 downwards.
        left, right = (at if at >= 0 else n_splits - 1 - at for at in map(int, children))
        nodes.append(Node(int(feature), threshold, left, right, is_left, None))
    return nodes + leaves


# Parts of LightGBM's decision types: missing values go to the left, and zeros are missing.
_DEFAULT_LEFT, _AS_ZERO = 2, 1


def _of_xgboost(root: dict[str, Any], at: dict[str, int] | None) -> Tree:
    nodes: Tree = []

    def add(node: dict[str, Any]) -> int:
        place = len(nodes)
        if "leaf" in node:
            nodes.append(Node(-1, 0.0, -1, -1, False, np.array([float(node["leaf"])])))
            return place
        feature = int(node["split"][1:]) if at is None else at[node["split"]]
        # XGBoost goes to the left below the threshold, in single precision.
        threshold = float(np.nextafter(np.float32(node["split_condition"]), np.float32(-np.inf)))
        is_left = node["missing"] == node["yes"]
        nodes.append(Node(feature, threshold, -1, -1, is_left, None))
        children = {each["nodeid"]: each for each in node["children"]}
        left, right = add(children[node["yes"]]), add(children[node["no"]])
        nodes[place] = nodes[place]._replace(left=left, right=right)
        return place

    add(root)
    return nodes
