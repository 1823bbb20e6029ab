"""Ensembles of trees as sums over leaves, read from the model and verified by its predictions.

A row reaches a leaf if every feature on its path lies in an interval. So the prediction is a sum
over leaves of a value times an indicator, which is a product over features. Its mean over rows
whose unknown features come from other rows therefore needs no predictions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from dsage.data.layout import Layout
from dsage.models.trees import Tree, boxes, read_trees

Floats = npt.NDArray[np.float64]
Bits = npt.NDArray[np.unsignedinteger[Any]]

# Bits of the widest integer: features on the path to a leaf.
_MOST_FEATURES = 64
# More leaves take longer than predictions.
_MOST_LEAVES = 200_000
TOLERANCE = 1e-6
"""Largest distance from the model's own predictions, as a share of their size."""
# Rows on which the sum is compared with the model's own predictions.
_N_COMPARED = 256


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
        The value that a leaf adds to the prediction.
    intercept : array of shape (n_outputs,)
        The value that is added for all rows.
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
        """Return the conditions that rows meet, (n_leaves, n_rows): bit k for feature k of a leaf.

        Bits of features that a leaf does not have are set.
        """
        rows = X.astype(np.float32).astype(np.float64) if self.is_single else X
        columns = np.ascontiguousarray(rows.T)
        are_missing = np.isnan(columns)
        has_missing = bool(are_missing.any())
        found = np.full((len(self.feature), len(X)), self.all_bits)
        for k in range(self.n_bits):
            places = np.flatnonzero(self.feature[:, k] >= 0)
            feature = self.feature[places, k]
            x = columns[feature]
            is_met = x > self.low[places, k, None]
            is_met &= x <= self.high[places, k, None]
            if has_missing:
                is_met |= are_missing[feature] & self.takes_missing[places, k, None]
            found[places] ^= np.where(is_met, self._type(0), self._type(1) << self._type(k))
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
        predicted: Floats = self.intercept + is_reached.T @ self.values
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
    ensemble = read_trees(model)
    if ensemble is None or ensemble.link != "identity" or ensemble.n_scores > 1:
        return None
    leaves = _collect(ensemble.trees, is_single=ensemble.is_single)
    if leaves is None:
        return None
    points = mix_rows(X)
    own = np.asarray(predict(layout.decode(points)), dtype=np.float64).reshape(len(points), -1)
    if own.shape[1] != leaves.n_outputs:
        return None
    # Boosting starts from a constant.
    shift = own - leaves.predict(points)
    constant = np.median(shift, axis=0)
    size = np.abs(own).max() + np.ptp(own)
    if np.abs(shift - constant).max() > TOLERANCE * size:
        return None
    return replace(leaves, intercept=leaves.intercept + constant)


def mix_rows(X: Floats) -> Floats:
    """Return rows, and rows that mix features of different rows, to compare predictions."""
    rng = np.random.default_rng(0)
    rows = X[rng.integers(len(X), size=_N_COMPARED)]
    mixed = X[rng.integers(len(X), size=rows.shape), np.arange(X.shape[1])]
    return np.concatenate([rows, mixed])


def agree(found: Floats, own: Floats) -> bool:
    """Return whether predictions are those of the model, but for rounding."""
    size = np.abs(own).max() + np.ptp(own)
    return found.shape == own.shape and bool((np.abs(found - own) <= TOLERANCE * size).all())


def _collect(trees: list[Tree], *, is_single: bool) -> Leaves | None:
    """Return the leaves of trees; None if there are too many, or paths are too long."""
    if sum((len(tree) + 1) // 2 for tree in trees) > _MOST_LEAVES:
        return None
    found = [each for tree in trees for each in boxes(tree)]
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
