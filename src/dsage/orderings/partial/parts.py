"""Decompose a partial order into parts that can be drawn from and counted separately.

Each part draws two extensions at a time, an ordering and a *mirrored* one. Both are uniform. In an
order without any pairs, the second is the reverse of the first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import comb, prod
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from scipy.sparse.csgraph import connected_components

from dsage.orderings.base import Positions
from dsage.orderings.partial.chain import Chain
from dsage.orderings.partial.ideals import Rank, chances, n_paths, ranks_of

TOLERANCE = 1e-3
"""Total variation distance to the uniform distribution of extensions drawn by a chain."""


class Pair(NamedTuple):
    """An extension and its mirrored partner, features by position."""

    forth: Positions
    mirrored: Positions


class Part(Protocol):
    """A set of features with the order among them."""

    n_features: int
    is_exact: bool

    def n_extensions(self) -> int | None:
        """Return the number of extensions; None if there are too many ideals to count."""
        ...

    def draw(self, generator: np.random.Generator) -> Pair:
        """Draw two extensions, each uniform."""
        ...


class Single:
    """One feature."""

    n_features, is_exact = 1, True

    def __init__(self, feature: int) -> None:
        self._pair = Pair(np.array([feature]), np.array([feature]))

    def n_extensions(self) -> int:
        """Return 1."""
        return 1

    def draw(self, generator: np.random.Generator) -> Pair:  # noqa: ARG002
        """Return the feature twice."""
        return self._pair


class Series:
    """Parts that follow each other: their extensions are concatenated."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self._parts = tuple(parts)
        self.n_features = sum(part.n_features for part in parts)
        self.is_exact = all(part.is_exact for part in parts)

    def n_extensions(self) -> int | None:
        """Return the product of the parts' counts."""
        return _product(self._parts)

    def draw(self, generator: np.random.Generator) -> Pair:
        """Draw each part."""
        pairs = [part.draw(generator) for part in self._parts]
        return Pair(*(np.concatenate(each) for each in zip(*pairs, strict=True)))


class Shuffle:
    """Parts that are unordered to each other: their extensions are shuffled together uniformly.

    The mirrored partner reverses the shuffle.
    """

    def __init__(self, parts: Sequence[Part]) -> None:
        self._parts = tuple(parts)
        sizes = [part.n_features for part in parts]
        self._labels = np.repeat(np.arange(len(sizes)), sizes)
        self.n_features = len(self._labels)
        self.is_exact = all(part.is_exact for part in parts)

    def n_extensions(self) -> int | None:
        """Return the number of shuffles times the product of the parts' counts."""
        sizes = np.cumsum([part.n_features for part in self._parts]).tolist()
        n_shuffles = prod(
            comb(size, part.n_features) for size, part in zip(sizes, self._parts, strict=True)
        )
        count = _product(self._parts)
        return None if count is None else n_shuffles * count

    def draw(self, generator: np.random.Generator) -> Pair:
        """Draw the shuffle, then each part."""
        labels = self._labels[generator.permutation(self.n_features)]
        pairs = [part.draw(generator) for part in self._parts]
        forth, mirrored = (np.concatenate(each) for each in zip(*pairs, strict=True))
        return Pair(_place(forth, labels), _place(mirrored, labels[::-1]))


class Counted:
    """A part that cannot be decomposed, drawn step by step through its ideals.

    The probability of the next feature is the share of the extensions that continue with it. The
    mirrored partner uses 1 - u for each uniform number u.
    """

    is_exact = True

    def __init__(self, features: Positions, ranks: Sequence[Rank]) -> None:
        self._features, self._ranks = features, ranks
        self._chances = chances(ranks)
        self._starts = [
            np.searchsorted(rank.source, np.arange(len(rank.ideals) + 1)) for rank in ranks[:-1]
        ]
        self.n_features = len(features)

    def n_extensions(self) -> int:
        """Count the paths through the ideals."""
        return n_paths(self._ranks)

    def draw(self, generator: np.random.Generator) -> Pair:
        """Draw a path and its partner."""
        uniform = generator.random(self.n_features)
        return Pair(self._path(uniform), self._path(1.0 - uniform))

    def _path(self, uniform: npt.NDArray[np.float64]) -> Positions:
        at, path = 0, []
        for rank, chance, starts, u in zip(
            self._ranks[:-1], self._chances, self._starts, uniform, strict=True
        ):
            first, end = starts[at], starts[at + 1]
            reached = np.cumsum(chance[first : end - 1])
            step = first + int(np.searchsorted(reached, u, side="right"))
            path.append(rank.feature[step])
            at = rank.target[step]
        drawn: Positions = self._features[path]
        return drawn


class Mixed:
    """A part with too many ideals, drawn by a chain; the partner is a later state of the chain."""

    is_exact = False

    def __init__(self, features: Positions, chain: Chain) -> None:
        self._features, self._chain = features, chain
        self.n_features = len(features)

    def n_extensions(self) -> None:
        """Return None: the extensions are not counted."""
        return

    def draw(self, generator: np.random.Generator) -> Pair:
        """Run the chain."""
        return Pair(*(self._features[each] for each in self._chain.draw(generator, 2)))


def decompose(before: npt.NDArray[np.bool_], tolerance: float = TOLERANCE) -> Part:
    """Decompose an order as far as possible; `tolerance` is that of all its chains together.

    Entry [i, j] of `before`, transitively closed, is whether i comes before j.
    """
    return _decompose(before, np.arange(len(before)), tolerance / len(before))


def _decompose(before: npt.NDArray[np.bool_], features: Positions, tolerance: float) -> Part:
    if len(features) == 1:
        return Single(int(features[0]))
    own = before[np.ix_(features, features)]
    is_ordered = own | own.T
    for kind, linked in ((Shuffle, is_ordered), (Series, ~is_ordered)):
        n_parts, labels = connected_components(linked, directed=False)
        if n_parts > 1:
            members = [features[labels == label] for label in range(n_parts)]
            if kind is Series:
                members.sort(key=lambda part: int(before[:, part].sum(axis=0).min()))
            return kind([_decompose(before, part, tolerance) for part in members])
    ranks = ranks_of(own)
    if ranks is not None:
        return Counted(features, ranks)
    return Mixed(features, Chain(own, tolerance * len(features)))


def _product(parts: Iterable[Part]) -> int | None:
    counts = [part.n_extensions() for part in parts]
    known = [count for count in counts if count is not None]
    return prod(known) if len(known) == len(counts) else None


def _place(drawn: Positions, labels: npt.NDArray[np.intp]) -> Positions:
    """Put the features of each part, given part after part, at the places with its label."""
    out = np.empty_like(drawn)
    out[np.argsort(labels, kind="stable")] = drawn
    return out
