"""Ideals of a partial order: the coalitions that occur in orderings which respect it.

An ideal contains, with each feature, all features that come before it. A linear extension is a path
through the ideals from the empty one to that of all features, adding one feature per step, so the
number of paths is the number of extensions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

MOST_IDEALS = 200_000
"""The largest number of ideals that are listed, which takes about a second."""


class Rank(NamedTuple):
    """The ideals of one size, and the steps, sorted, to those with one more feature."""

    ideals: npt.NDArray[np.bool_]  # (n_ideals, n_features)
    source: npt.NDArray[np.intp]  # (n_steps,): ideal of this rank
    target: npt.NDArray[np.intp]  # (n_steps,): ideal of the next rank
    feature: npt.NDArray[np.intp]  # (n_steps,): feature added


def ranks_of(before: npt.NDArray[np.bool_], most: int = MOST_IDEALS) -> list[Rank] | None:
    """List the ideals by size, or return None if there are more than `most`.

    Entry [i, j] of `before`, transitively closed, is whether i comes before j.
    """
    n_features = len(before)
    if 2.0 ** _antichain(before) > most:
        return None
    # Two random words identify an ideal, each the exclusive or of its members' words. The
    # probability that two ideals share both is below 1e-27.
    words = np.random.default_rng(0).integers(1 << 63, size=(2, n_features), dtype=np.uint64)
    keys = np.zeros((2, 1), dtype=np.uint64)
    ideals = np.zeros((1, n_features), dtype=np.bool_)
    needed, counted = before.sum(axis=0), before.astype(np.float32)
    ranks, n_ideals = [], 1
    for size in range(n_features):
        is_next = ~ideals & (ideals.astype(np.float32) @ counted == needed)
        source, feature = np.nonzero(is_next)
        # At most size + 1 smaller ideals lead to a larger one: one per member.
        if n_ideals + len(source) // (size + 1) > most:
            return None
        larger = keys[:, source] ^ words[:, feature]
        _, first, target = np.unique(larger[0], return_index=True, return_inverse=True)
        n_ideals += len(first)
        if n_ideals > most or (larger[1] != larger[1, first][target]).any():
            return None
        ranks.append(Rank(ideals, source, target, feature))
        ideals, keys = ideals[source[first]], larger[:, first]
        ideals[np.arange(len(first)), feature[first]] = True
    none = np.zeros(0, dtype=np.intp)
    return [*ranks, Rank(ideals, none, none, none)]


def _antichain(before: npt.NDArray[np.bool_]) -> int:
    """Return the size of a set of unordered features, whose subsets give distinct ideals."""
    height = np.zeros(len(before), dtype=np.intp)
    for feature in np.argsort(before.sum(axis=0)):
        height[before[feature]] = np.maximum(height[before[feature]], height[feature] + 1)
    return int(np.bincount(height).max())


def n_paths(ranks: Sequence[Rank]) -> int:
    """Count the linear extensions, as a Python int."""
    above = np.array([1], dtype=object)
    for rank in reversed(ranks[:-1]):
        total = np.zeros(len(rank.ideals), dtype=object)
        np.add.at(total, rank.source, above[rank.target])
        above = total
    return int(above[0])


def chances(ranks: Sequence[Rank]) -> list[Floats]:
    """Return, for each step of each rank, the share of extensions from its source that take it."""
    above: Floats = np.ones(1)
    found = []
    for rank in reversed(ranks[:-1]):
        ways = above[rank.target]
        total = np.bincount(rank.source, weights=ways, minlength=len(rank.ideals))
        found.append(ways / total[rank.source])
        above = total / total.max()  # only ratios matter, and counts may be huge
    return found[::-1]
