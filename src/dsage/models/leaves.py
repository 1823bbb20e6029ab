"""Ensembles of trees as sums over leaves, read from the model and verified by its predictions.

A leaf is reached where every feature on its path lies in an interval. So the prediction is a sum
over leaves of a value times an indicator, which is a product over features: its mean over rows
whose unknown features come from elsewhere needs no predictions.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dsage.data.layout import Layout
from dsage.models.calling import sklearn_name

Floats = npt.NDArray[np.float64]
Bits = npt.NDArray[np.unsignedinteger[Any]]

# Bits of the widest integer: features on the path to a leaf.
_MOST_FEATURES = 64
# More leaves take longer than predictions.
_MOST_LEAVES = 200_000
# Largest distance from the model's own predictions, as a share of their size.
_TOLERANCE = 1e-6
# Rows on which the sum is compared with the model's own predictions.
_N_COMPARED = 256


class _Node(NamedTuple):
    """A split, or a leaf if there is a value; rows with ``x <= threshold`` go to the left."""

    feature: int
    threshold: float
    left: int
    right: int
    missing_left: bool
    value: Floats | None


_Tree = list[_Node]
_Box = dict[int, tuple[float, float, bool]]


@dataclass(frozen=True, eq=False)
class Leaves:
    """The leaves of all trees of a model.

    A row reaches leaf l if ``low[l, k] < x[feature[l, k]] <= high[l, k]`` for all k, or the value
    is missing and ``takes_missing[l, k]``. The prediction is the intercept plus the sum of the
    values of the leaves that are reached.

    Attributes
    ----------
    feature : int array of shape (n_leaves, n_bits)
        The features on the path to each leaf; -1 where there are fewer.
    low, high : array of shape (n_leaves, n_bits)
        Their intervals.
    takes_missing : bool array of shape (n_leaves, n_bits)
        Whether rows with a missing value get there.
    values : array of shape (n_leaves, n_outputs)
        What a leaf adds to the prediction.
    intercept : array of shape (n_outputs,)
        What is added for all rows.
    is_single : bool
        Whether the model sees numbers in single precision.
    """

    feature: npt.NDArray[np.intp]
    low: Floats
    high: Floats
    takes_missing: npt.NDArray[np.bool_]
    values: Floats
    intercept: Floats
    is_single: bool

    @property
    def n_bits(self) -> int:
        """The largest number of features on a path."""
        return int(self.feature.shape[1])

    def met(self, X: Floats) -> Bits:
        """Return the conditions that rows meet, (n_rows, n_leaves): bit k for feature k of a leaf.

        Bits of features that a leaf does not have are set.
        """
        rows = X.astype(np.float32).astype(np.float64) if self.is_single else X
        found = np.zeros((len(X), len(self.feature)), dtype=self._type)
        for k in range(self.n_bits):
            feature = self.feature[:, k]
            x = rows[:, feature]
            is_met = (x > self.low[:, k]) & (x <= self.high[:, k])
            is_met |= np.isnan(x) & self.takes_missing[:, k]
            is_met |= feature < 0
            found |= is_met.astype(self._type) << self._type(k)
        return found

    def known_bits(self, known: npt.NDArray[np.bool_]) -> Bits:
        """Return the bits of the known features of each leaf, (n_leaves,)."""
        is_known = known[self.feature] & (self.feature >= 0)
        weights = self._type(1) << np.arange(self.n_bits, dtype=self._type)
        bits: Bits = (is_known * weights).sum(axis=1, dtype=self._type)
        return bits

    @property
    def all_bits(self) -> Any:  # noqa: ANN401
        """All bits of the features of a leaf."""
        return self._type(2**self.n_bits - 1)

    @property
    def _type(self) -> Any:  # noqa: ANN401
        sizes = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}
        return next(kind for size, kind in sizes.items() if self.n_bits <= size)

    def predict(self, X: Floats) -> Floats:
        """Return the predictions (n_rows, n_outputs)."""
        is_reached = self.met(X) == self.all_bits
        predicted: Floats = self.intercept + is_reached @ self.values
        return predicted

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""
        return int(self.values.shape[1])

    def output(self, number: int) -> Leaves:
        """Return the leaves of one output."""
        return replace(self, values=self.values[:, [number]], intercept=self.intercept[[number]])


def find_leaves(
    model: Any,  # noqa: ANN401
    predict: Callable[[Any], Floats],
    layout: Layout,
    X: Floats,
) -> Leaves | None:
    """Return the leaves of a model whose predictions are their sums; None for other models.

    These are forests and single trees of scikit-learn, its gradient boosting of numbers, and
    regressors of LightGBM and XGBoost. Trees with splits of classes are left out, and so are tables
    with classes. The sums are compared with predictions for some of the rows `X`, as they are and
    with their features mixed; if they differ, there are no leaves.
    """
    if layout.n_categories.any():
        return None
    try:
        found = _read(model)
    # Another version of a library may keep its trees elsewhere.
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        return None
    if found is None:
        return None
    trees, is_single = found
    leaves = _collect(trees, is_single=is_single)
    if leaves is None:
        return None
    rng = np.random.default_rng(0)
    rows = X[rng.integers(len(X), size=_N_COMPARED)]
    mixed = X[rng.integers(len(X), size=rows.shape), np.arange(X.shape[1])]
    points = np.concatenate([rows, mixed])
    own = np.asarray(predict(layout.decode(points)), dtype=np.float64).reshape(len(points), -1)
    if own.shape[1] != leaves.n_outputs:
        return None
    # Boosting starts from a constant.
    shift = own - leaves.predict(points)
    exact = replace(leaves, intercept=leaves.intercept + np.median(shift, axis=0))
    size = np.abs(own).max() + np.ptp(own)
    return exact if np.abs(own - exact.predict(points)).max() <= _TOLERANCE * size else None


def _read(model: Any) -> tuple[list[_Tree], bool] | None:  # noqa: ANN401
    """Return the trees of a model, and whether it sees single precision."""
    name = sklearn_name(model) or ""
    if name == "HistGradientBoostingRegressor":
        return _of_hist(model)
    if name in _FORESTS:
        return [_of_sklearn(each.tree_, name, len(model.estimators_)) for each in model], True
    if name in _TREES:
        return [_of_sklearn(model.tree_, name, 1)], True
    if name == "GradientBoostingRegressor":
        rate = model.learning_rate
        trees = [_of_sklearn(each.tree_, name, 1.0 / rate) for each in model.estimators_[:, 0]]
        return trees, True
    package = type(model).__module__.partition(".")[0]
    if package == "lightgbm" and type(model).__name__ == "LGBMRegressor":
        infos = model.booster_.dump_model()["tree_info"]
        return [_of_lightgbm(each) for each in infos], False
    if package == "xgboost" and type(model).__name__ == "XGBRegressor":
        booster = model.get_booster()
        names = booster.feature_names
        at = None if names is None else {each: k for k, each in enumerate(names)}
        dumped = booster.get_dump(dump_format="json")
        return [_of_xgboost(json.loads(each), at) for each in dumped], True
    return None


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


def _of_sklearn(tree: Any, name: str, n_trees: float) -> _Tree:  # noqa: ANN401
    if tree.n_outputs != 1:
        raise ValueError("One output is read.")
    values = tree.value[:, 0, :] / n_trees
    if name.endswith("Classifier"):
        values = values / tree.value[:, 0, :].sum(axis=1, keepdims=True)
    goes_left = np.asarray(tree.missing_go_to_left, dtype=bool)
    return [
        _Node(
            int(tree.feature[at]),
            float(tree.threshold[at]),
            int(tree.children_left[at]),
            int(tree.children_right[at]),
            bool(goes_left[at]),
            values[at] if tree.children_left[at] < 0 else None,
        )
        for at in range(tree.node_count)
    ]


def _of_hist(model: Any) -> tuple[list[_Tree], bool]:  # noqa: ANN401
    if model._preprocessor is not None or model.loss != "squared_error":
        raise ValueError("Columns are transformed, or predictions are.")
    trees = []
    for (predictor,) in model._predictors:
        nodes = predictor.nodes
        if nodes["is_categorical"].any():
            raise ValueError("Splits of classes are not read.")
        trees.append(
            [
                _Node(
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
    return trees, False


def _of_lightgbm(info: dict[str, Any]) -> _Tree:
    nodes: _Tree = []

    def add(node: dict[str, Any]) -> int:
        at = len(nodes)
        if "leaf_value" in node:
            nodes.append(_Node(-1, 0.0, -1, -1, False, np.array([node["leaf_value"]])))
            return at
        if node["decision_type"] != "<=" or node["missing_type"] == "Zero":
            raise ValueError("Splits of classes are not read.")
        threshold = float(node["threshold"])
        # Without missing values in training, they count as zeros.
        is_left = node["default_left"] if node["missing_type"] == "NaN" else threshold >= 0.0
        nodes.append(_Node(node["split_feature"], threshold, -1, -1, bool(is_left), None))
        left, right = add(node["left_child"]), add(node["right_child"])
        nodes[at] = nodes[at]._replace(left=left, right=right)
        return at

    if "leaf_const" in info["tree_structure"]:
        raise ValueError("Linear trees are not read.")
    add(info["tree_structure"])
    return nodes


def _of_xgboost(root: dict[str, Any], at: dict[str, int] | None) -> _Tree:
    nodes: _Tree = []

    def add(node: dict[str, Any]) -> int:
        place = len(nodes)
        if "leaf" in node:
            nodes.append(_Node(-1, 0.0, -1, -1, False, np.array([float(node["leaf"])])))
            return place
        feature = int(node["split"][1:]) if at is None else at[node["split"]]
        # XGBoost goes to the left below the threshold, in single precision.
        threshold = float(np.nextafter(np.float32(node["split_condition"]), np.float32(-np.inf)))
        is_left = node["missing"] == node["yes"]
        nodes.append(_Node(feature, threshold, -1, -1, is_left, None))
        children = {each["nodeid"]: each for each in node["children"]}
        left, right = add(children[node["yes"]]), add(children[node["no"]])
        nodes[place] = nodes[place]._replace(left=left, right=right)
        return place

    add(root)
    return nodes


def _collect(trees: list[_Tree], *, is_single: bool) -> Leaves | None:
    """Return the leaves of trees; None if there are too many, or paths are too long."""
    if sum((len(tree) + 1) // 2 for tree in trees) > _MOST_LEAVES:
        return None
    found = [each for tree in trees for each in _boxes(tree)]
    n_bits = max(1, *(len(box) for box, _ in found))
    if n_bits > _MOST_FEATURES:
        return None
    shape = len(found), n_bits
    feature, low, high = np.full(shape, -1), np.zeros(shape), np.zeros(shape)
    takes_missing = np.zeros(shape, dtype=np.bool_)
    for at, (box, _) in enumerate(found):
        for k, (name, (least, most, is_taken)) in enumerate(box.items()):
            feature[at, k], low[at, k], high[at, k] = name, least, most
            takes_missing[at, k] = is_taken
    values = np.array([value for _, value in found], dtype=np.float64)
    intercept = np.zeros(values.shape[1])
    return Leaves(feature, low, high, takes_missing, values, intercept, is_single)


def _boxes(tree: _Tree) -> Iterator[tuple[_Box, Floats]]:
    """Yield the intervals of the features on the path to each leaf, and its value."""
    stack: list[tuple[int, _Box]] = [(0, {})]
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
