"""Ideals of a partial order: the coalitions that orderings which keep it pass through.

An ideal holds with each feature all that come before it. A linear extension is a path through the
ideals, from the empty one to that of all features, one feature a step; so paths count extensions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

MOST_IDEALS = 200_000
"""So many ideals are listed, which takes about a second."""


class Level(NamedTuple):
    """The ideals of one size, and the steps from them to those with one feature more.

    ideals : bool array of shape (n_ideals, n_features)
    source, target, feature : int arrays of shape (n_steps,)
        From which ideal of this level, to which of the next one, by which feature. Sorted by
        source, then by feature.
    """

    ideals: npt.NDArray[np.bool_]
    source: npt.NDArray[np.intp]
    target: npt.NDArray[np.intp]
    feature: npt.NDArray[np.intp]


def levels_of(before: npt.NDArray[np.bool_], most: int = MOST_IDEALS) -> list[Level] | None:
    """List the ideals by size, or return None where there are more than `most`.

    Parameters
    ----------
    before : bool array of shape (n_features, n_features)
        Whether i comes before j, transitively closed.
    most : int
        Most ideals.

    Examples
    --------
    >>> chain = np.triu(np.ones((3, 3), dtype=bool), k=1)
    >>> [len(level.ideals) for level in levels_of(chain)]
    [1, 1, 1, 1]
    """
    n_features = len(before)
    if 2.0 ** _antichain(before) > most:
        return None
    # An ideal is known by two random words, each the exclusive or of those of its members; that
    # both are the same for different ones has a chance below 1e-27.
    words = np.random.default_rng(0).integers(1 << 63, size=(2, n_features), dtype=np.uint64)
    keys = np.zeros((2, 1), dtype=np.uint64)
    ideals = np.zeros((1, n_features), dtype=np.bool_)
    needed, counted = before.sum(axis=0), before.astype(np.float32)
    levels, n_ideals = [], 1
    for size in range(n_features):
        is_next = ~ideals & (ideals.astype(np.float32) @ counted == needed)
        source, feature = np.nonzero(is_next)
        # A larger ideal is reached from no more smaller ones than it has members.
        if n_ideals + len(source) // (size + 1) > most:
            return None
        larger = keys[:, source] ^ words[:, feature]
        _, first, target = np.unique(larger[0], return_index=True, return_inverse=True)
        n_ideals += len(first)
        if n_ideals > most or (larger[1] != larger[1, first][target]).any():
            return None
        levels.append(Level(ideals, source, target, feature))
        ideals, keys = ideals[source[first]], larger[:, first]
        ideals[np.arange(len(first)), feature[first]] = True
    none = np.zeros(0, dtype=np.intp)
    return [*levels, Level(ideals, none, none, none)]


def _antichain(before: npt.NDArray[np.bool_]) -> int:
    """Return the size of a set without any order among its members: its subsets are ideals."""
    height = np.zeros(len(before), dtype=np.intp)
    for feature in np.argsort(before.sum(axis=0)):
        height[before[feature]] = np.maximum(height[before[feature]], height[feature] + 1)
    return int(np.bincount(height).max())


def n_paths(levels: Sequence[Level]) -> int:
    """Count the linear extensions, as a Python int.

    Examples
    --------
    >>> n_paths(levels_of(np.zeros((4, 4), dtype=bool)))
    24
    """
    above = np.array([1], dtype=object)
    for level in reversed(levels[:-1]):
        total = np.zeros(len(level.ideals), dtype=object)
        np.add.at(total, level.source, above[level.target])
        above = total
    return int(above[0])


def chances(levels: Sequence[Level]) -> list[Floats]:
    """Return for each step of each level its probability, given that its source is passed.

    An extension through an ideal goes on in as many ways as the rest has extensions.
    """
    above: Floats = np.ones(1)
    found = []
    for level in reversed(levels[:-1]):
        ways = above[level.target]
        total = np.bincount(level.source, weights=ways, minlength=len(level.ideals))
        found.append(ways / total[level.source])
        above = total / total.max()  # only ratios matter, and the counts may be huge
    return found[::-1]
