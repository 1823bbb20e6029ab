"""Predictions of boosted trees and small forests from masks of leaves, faster than by descent."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from dsage.data.layout import Layout
from dsage.models.affine import column_precision
from dsage.models.forests import count_threads
from dsage.models.intervals import Intervals
from dsage.models.leaves import TOLERANCE, mix_rows
from dsage.models.link_scores import Floats, Mask, Rows, apply_link, invert_link
from dsage.models.trees import Ensemble, Tree, boxes, count_leaves, read_trees

Masks = npt.NDArray[np.unsignedinteger[Any]]

MOST_LEAVES = 64
"""Leaves of a tree are the bits of an integer."""
# Leaves of a tree that is put together from several with few leaves.
_MOST_TOGETHER = 32
# A row reads a mask of every tree for each feature; to find the place of its value takes as long as
# to read so many bytes, and so does a descent through a tree.
_BYTES_OF_PLACE, _BYTES_OF_DESCENT = 1000.0, 750.0
# Memory of the tables.
_MOST_BYTES = 1 << 25
# Masks that are held at a time, and the least number of rows: with fewer, calls take longer.
_MASKS_AT_ONCE, _FEWEST_ROWS = 1 << 17, 64
# Masks of so many values are combined in one call.
_FEW_PLACES = 1 << 11
# The smallest number of draws for a thread.
_DRAWS_A_THREAD = 4096
_LINKS = frozenset(("identity", "logistic", "softmax"))


class TreeMasks:
    """The predictions of an ensemble of trees with few leaves.

    The leaves of a tree are bits of an integer. Each value of a feature allows some leaves of every
    tree: the conjunction over features leaves one bit for each tree. This takes no branches, and
    the masks of features that are the same in all draws for a row are combined once.

    Trees of two or a few leaves are put together: the leaves of two trees are pairs of leaves.

    Parameters
    ----------
    ensemble : Ensemble
        The trees, of at most 64 leaves each.
    n_features : int
        The number of features.
    """

    def __init__(self, ensemble: Ensemble, n_features: int) -> None:
        self.link, self._is_single = ensemble.link, ensemble.is_single
        parts = [_Part.of(tree, n_features) for tree in ensemble.trees]
        # Trees of the same score are next to each other.
        scores = np.arange(len(parts)) % ensemble.n_scores
        joined = [
            (int(score), part)
            for score in range(ensemble.n_scores)
            for part in _join([parts[at] for at in np.flatnonzero(scores == score)])
        ]
        self._starts = np.array([len(list(own)) for _, own in groupby(joined, lambda e: e[0])])
        self._starts = np.concatenate([[0], np.cumsum(self._starts)[:-1]])
        found = [part for _, part in joined]
        n_leaves = max(part.n_leaves for part in found)
        kind = next(
            each
            for each in (np.uint8, np.uint16, np.uint32, np.uint64)
            if n_leaves <= 8 * np.dtype(each).itemsize
        )
        self._values = np.zeros((found[0].values.shape[1], len(found), n_leaves))
        for tree, part in enumerate(found):
            self._values[:, tree, : part.n_leaves] = part.values.T
        # Small integers are added in less time.
        small = np.min_scalar_type(len(found) * n_leaves)
        self._first: Masks = (np.arange(len(found)) * n_leaves).astype(small)
        every = [2**part.n_leaves - 1 for part in found]
        self._everything: Masks = np.array(every, dtype=np.uint64).astype(kind)
        self.intercept: Floats = np.zeros(max(len(self._values), ensemble.n_scores))
        features, edges, tables = [], [], []
        for feature in range(n_features):
            ends = [part.conditions[feature].ends for part in found if feature in part.conditions]
            if not ends:
                continue
            own = np.unique(np.concatenate(ends))
            edges.append(own[np.isfinite(own)])
            columns = [part.allowed(feature, edges[-1]) for part in found]
            tables.append(np.stack(columns, axis=1).astype(kind))
            features.append(feature)
        # The masks of all intervals of the features that the trees use.
        self._features: Rows = np.array(features, dtype=np.intp)
        self._intervals = Intervals(edges)
        self._table: Masks = np.concatenate([np.empty((0, len(found)), dtype=kind), *tables])
        self._output: int | None = None

    @property
    def n_outputs(self) -> int:
        """Number of outputs of the model."""
        return 2 if self.link == "logistic" else len(self.intercept)

    @property
    def n_trees(self) -> int:
        """Number of trees, of which some are several of the model's."""
        return len(self._first)

    def pick(self, output: int) -> Self:
        """Return the predictions of a single output of the model."""
        picked = copy.copy(self)
        picked._output = output
        return picked

    @staticmethod
    def pays(ensemble: Ensemble) -> bool:
        """Whether trees are small enough, and many enough for the features that they use."""
        n_leaves = max((len(tree) + 1) // 2 for tree in ensemble.trees)
        splits = {node[:2] for tree in ensemble.trees for node in tree if node.value is None}
        n_trees, n_features = len(ensemble.trees), len({feature for feature, _ in splits})
        if n_leaves > MOST_LEAVES or ensemble.link not in _LINKS:
            return False
        size = max(n_leaves, _MOST_TOGETHER) / 8
        is_cheap = n_features * (size + _BYTES_OF_PLACE / n_trees) <= _BYTES_OF_DESCENT
        return is_cheap and size * n_trees * (len(splits) + 2 * n_features) <= _MOST_BYTES

    def predict(self, draws: Floats, is_same: Mask | None = None) -> Floats:
        """Return the predictions (..., n_outputs) for draws (n_sets, n_rows, n_draws, n_features).

        Sets and rows are treated one by one: what is predicted for a draw does not depend on the
        others. `is_same` says which features are the same in all draws for a row, if it is known.
        """
        scores = np.empty((*draws.shape[:3], len(self.intercept)))
        pieces = list(self._pieces(draws.shape))
        n_threads = min(count_threads(), scores[..., 0].size // _DRAWS_A_THREAD)
        if n_threads > 1:
            with ThreadPoolExecutor(n_threads) as threads:
                found: Any = threads.map(lambda piece: self._scores(draws[piece], is_same), pieces)
                for piece, own in zip(pieces, found, strict=True):
                    scores[piece] = own
        else:
            for piece in pieces:
                scores[piece] = self._scores(draws[piece], is_same)
        scores += self.intercept
        if self.link != "identity":
            by_score = np.ascontiguousarray(scores.transpose(3, 0, 1, 2))
            scores = apply_link(self.link, by_score).transpose(1, 2, 3, 0)
        return scores if self._output is None else scores[..., [self._output]]

    def _pieces(self, shape: tuple[int, ...]) -> Iterator[tuple[int, slice, slice]]:
        """Yield places of draws that are treated together: those of some rows of one set."""
        n_sets, n_rows, n_draws, _ = shape
        most = max(_FEWEST_ROWS, _MASKS_AT_ONCE // len(self._first))
        n_now = max(1, most // max(n_draws, 1))
        for number in range(n_sets):
            for row in range(0, n_rows, n_now):
                for draw in range(0, n_draws, most):
                    yield number, slice(row, row + n_now), slice(draw, draw + most)

    def _scores(self, draws: Floats, is_same: Mask | None = None) -> Floats:
        """Return the sums over trees (n_rows, n_draws, n_outputs), without the intercept."""
        n_rows, n_draws, _ = draws.shape
        rows = draws.astype(np.float32).astype(np.float64) if self._is_single else draws
        columns = rows.transpose(2, 0, 1)
        is_fixed = (_is_same(columns) if is_same is None else is_same)[self._features]
        fixed = self._allowed(columns[..., 0], np.flatnonzero(is_fixed))
        masks = self._allowed(columns, np.flatnonzero(~is_fixed))
        if masks is None:
            masks = np.tile(self._everything, (n_rows * n_draws, 1))
        by_row = masks.reshape(n_rows, n_draws, -1)
        if fixed is not None:
            by_row &= fixed[:, None]
        by_row -= masks.dtype.type(1)
        # The number of bits below the only one.
        leaves = np.add(np.bitwise_count(by_row), self._first).astype(np.intp)
        if len(self._starts) == 1:
            # A sum of few numbers takes NumPy longer.
            sums = [np.einsum("rdt->rd", values.take(leaves)) for values in self._values]
            return np.stack(sums, axis=2)
        found: Floats = np.add.reduceat(self._values[0].take(leaves), self._starts, axis=2)
        return found

    def _allowed(self, columns: Floats, which: Rows) -> Masks | None:
        """Return the leaves that some of the used features allow, (n_points, n_trees).

        `columns` are the values of all features, (n_features, ...); None without any of them.
        """
        if not len(which):
            return None
        x = columns[self._features[which]].reshape(len(which), -1)
        every = self._intervals.find(x, which)
        found: Masks
        if every.size <= _FEW_PLACES:
            found = np.bitwise_and.reduce(self._table.take(every, axis=0), axis=0)
            return found
        first, *others = every
        found = self._table.take(first, axis=0)
        own = np.empty_like(found)
        for places in others:
            # Clipping saves a copy; there is nothing to clip.
            found &= self._table.take(places, axis=0, out=own, mode="clip")
        return found


def _is_same(columns: Floats) -> Mask:
    """Return which columns (n_columns, n_rows, n_draws) are the same in all draws for each row."""
    is_same: Mask = (columns[..., 0] == columns[..., -1]).all(axis=1)
    at = np.flatnonzero(is_same)
    some = columns[at]
    is_same[at] = (some == some[..., :1]).all(axis=(1, 2))
    return is_same


class _Condition(NamedTuple):
    """What leaves ask of a feature: intervals, and whether missing values are in them."""

    low: Floats
    high: Floats
    takes_missing: Mask

    @property
    def ends(self) -> Floats:
        return np.concatenate([self.low, self.high])


class _Part(NamedTuple):
    """A tree, or several that were put together: values of leaves, and their conditions."""

    values: Floats
    conditions: dict[int, _Condition]

    @property
    def n_leaves(self) -> int:
        return len(self.values)

    @classmethod
    def of(cls, tree: Tree, n_features: int) -> _Part:
        found = list(boxes(tree))
        shape = n_features, len(found)
        low, high = np.full(shape, -np.inf), np.full(shape, np.inf)
        takes_missing = np.ones(shape, dtype=np.bool_)
        for leaf, (box, _) in enumerate(found):
            for feature, (least, most, is_taken) in box.items():
                low[feature, leaf], high[feature, leaf] = least, most
                takes_missing[feature, leaf] = is_taken
        used = {feature for box, _ in found for feature in box}
        own = {at: _Condition(low[at], high[at], takes_missing[at]) for at in sorted(used)}
        return cls(np.array([value for _, value in found], dtype=np.float64), own)

    def with_other(self, other: _Part) -> _Part:
        """Return this and another tree as one, whose leaves are pairs of leaves."""
        n_own, n_other = self.n_leaves, other.n_leaves
        values = self.values[:, None] + other.values[None]
        conditions: dict[int, _Condition] = {}
        for feature in sorted({*self.conditions, *other.conditions}):
            own, its = self._of(feature), other._of(feature)
            conditions[feature] = _Condition(
                np.maximum(own.low[:, None], its.low).ravel(),
                np.minimum(own.high[:, None], its.high).ravel(),
                (own.takes_missing[:, None] & its.takes_missing).ravel(),
            )
        return _Part(values.reshape(n_own * n_other, -1), conditions)

    def _of(self, feature: int) -> _Condition:
        everything = np.full(self.n_leaves, np.inf)
        free = _Condition(-everything, everything, np.ones(self.n_leaves, dtype=np.bool_))
        return self.conditions.get(feature, free)

    def allowed(self, feature: int, edges: Floats) -> npt.NDArray[np.uint64]:
        """Return the leaves that values between edges allow, and at last missing values."""
        own = self._of(feature)
        # The largest number of each interval represents it.
        largest = np.append(edges, np.inf)[:, None]
        is_in = np.concatenate(
            [(own.low < largest) & (largest <= own.high), own.takes_missing[None]]
        )
        bits = np.uint64(1) << np.arange(self.n_leaves, dtype=np.uint64)
        found: npt.NDArray[np.uint64] = np.where(is_in, bits, np.uint64(0)).sum(
            axis=1, dtype=np.uint64
        )
        return found


def _join(parts: list[_Part]) -> list[_Part]:
    """Return trees, with those of few leaves put together."""
    found: list[_Part] = []
    for part in parts:
        if found and found[-1].n_leaves * part.n_leaves <= _MOST_TOGETHER:
            found[-1] = found[-1].with_other(part)
        else:
            found.append(part)
    return found


def find_tree_masks(
    model: Any,  # noqa: ANN401
    predict: Callable[[Any], Floats],
    layout: Layout,
    X: Floats,
) -> TreeMasks | None:
    """Return the masks of a model's trees, verified by its predictions; None for other models.

    The predictions that follow from the masks are compared with the model's own for some of the
    rows `X`, as they are and with their features mixed. There are none for columns of classes, of
    single precision or of integers, which the model sees rounded.
    """
    if not (column_precision(layout) == 2).all():
        return None
    return read_masks(model, lambda rows: predict(layout.decode(rows)), mix_rows(X))


def read_masks(
    model: Any,  # noqa: ANN401
    predict: Callable[[Floats], Any],
    points: Floats,
) -> TreeMasks | None:
    """Return the masks of a model's trees as for `find_tree_masks`, verified at some rows.

    `predict` takes rows as arrays.
    """
    if count_leaves(model) > MOST_LEAVES:
        return None
    ensemble = read_trees(model)
    if ensemble is None or not ensemble.trees or not TreeMasks.pays(ensemble):
        return None
    masks = TreeMasks(ensemble, points.shape[1])
    own = np.asarray(predict(points.copy()), dtype=np.float64).reshape(len(points), -1)
    if own.shape[1] != masks.n_outputs:
        return None
    raw = masks._scores(points[:, None])[:, 0]
    aims = own if masks.link == "identity" else invert_link(masks.link, own.T).T
    with np.errstate(invalid="ignore"):
        shift = aims - raw
        if masks.link == "softmax":
            shift -= shift[:, :1]
        # Boosting starts from a constant.
        masks.intercept = np.median(shift, axis=0)
    found = masks.predict(points[None, :, None])[0, :, 0]
    size = np.abs(own).max() + np.ptp(own)
    return masks if (np.abs(own - found) <= TOLERANCE * size).all() else None
