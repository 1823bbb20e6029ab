"""Partial orders taken apart: what can be drawn and counted alone, and how it is put together.

Each part draws two extensions at a time, an ordering and a *mirrored* one. Both are uniform. Where
the order leaves everything open, the second is the reverse of the first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import comb, prod
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from scipy.sparse.csgraph import connected_components

from dsage.orderings.partial.chain import Chain
from dsage.orderings.partial.ideals import Level, chances, levels_of, n_paths

TOLERANCE = 1e-3
"""Total variation distance to the uniform law, where extensions are not drawn exactly."""

Positions = npt.NDArray[np.intp]


class Pair(NamedTuple):
    """An extension and its mirrored partner, features by position."""

    forth: Positions
    mirrored: Positions


class Part(Protocol):
    """A set of features with the order among them."""

    n_features: int
    is_exact: bool

    def n_extensions(self) -> int | None:
        """Count the extensions; None where there are too many ideals."""
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
        """Return the feature, twice."""
        return self._pair


class Series:
    """Parts of which each comes wholly before the next: theirs are put one after the other."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self._parts = tuple(parts)
        self.n_features = sum(part.n_features for part in parts)
        self.is_exact = all(part.is_exact for part in parts)

    def n_extensions(self) -> int | None:
        """Return the product of the parts' counts."""
        return _product(part.n_extensions() for part in self._parts)

    def draw(self, generator: np.random.Generator) -> Pair:
        """Draw each part."""
        pairs = [part.draw(generator) for part in self._parts]
        return Pair(*(np.concatenate(each) for each in zip(*pairs, strict=True)))


class Shuffle:
    """Parts with nothing between them: theirs are shuffled into each other, each shuffle alike.

    The mirrored partner takes the shuffle backwards.
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
        count = _product(part.n_extensions() for part in self._parts)
        return None if count is None else n_shuffles * count

    def draw(self, generator: np.random.Generator) -> Pair:
        """Draw the shuffle, then each part."""
        labels = self._labels[generator.permutation(self.n_features)]
        pairs = [part.draw(generator) for part in self._parts]
        forth, mirrored = (np.concatenate(each) for each in zip(*pairs, strict=True))
        return Pair(_placed(forth, labels), _placed(mirrored, labels[::-1]))


class Counted:
    """A part that cannot be taken apart, drawn step by step through its ideals.

    From an ideal, the next feature is drawn with the share of the extensions that go on with it.
    The mirrored partner takes 1 - u for each uniform number u.
    """

    is_exact = True

    def __init__(self, features: Positions, levels: Sequence[Level]) -> None:
        self._features, self._levels = features, levels
        self._chances = chances(levels)
        self._starts = [
            np.searchsorted(level.source, np.arange(len(level.ideals) + 1)) for level in levels[:-1]
        ]
        self.n_features = len(features)

    def n_extensions(self) -> int:
        """Count the paths through the ideals."""
        return n_paths(self._levels)

    def draw(self, generator: np.random.Generator) -> Pair:
        """Draw a path and its partner."""
        uniform = generator.random(self.n_features)
        return Pair(self._path(uniform), self._path(1.0 - uniform))

    def _path(self, uniform: npt.NDArray[np.float64]) -> Positions:
        at, path = 0, []
        for level, chance, starts, u in zip(
            self._levels[:-1], self._chances, self._starts, uniform, strict=True
        ):
            first, end = starts[at], starts[at + 1]
            reached = np.cumsum(chance[first : end - 1])
            step = first + int(np.searchsorted(reached, u, side="right"))
            path.append(level.feature[step])
            at = level.target[step]
        drawn: Positions = self._features[path]
        return drawn


class Mixed:
    """A part with too many ideals, drawn by a chain; the partner is a later state of it."""

    is_exact = False

    def __init__(self, features: Positions, chain: Chain) -> None:
        self._features, self._chain = features, chain
        self.n_features = len(features)

    def n_extensions(self) -> None:
        """Return None: nobody counted."""
        return

    def draw(self, generator: np.random.Generator) -> Pair:
        """Run the chain."""
        return Pair(*(self._features[each] for each in self._chain.draw(generator, 2)))


def decompose(before: npt.NDArray[np.bool_], tolerance: float = TOLERANCE) -> Part:
    """Take an order apart, as far as it goes.

    Parameters
    ----------
    before : bool array of shape (n_features, n_features)
        Whether i comes before j, transitively closed.
    tolerance : float
        Total variation distance that the parts drawn by a chain may have together.

    Examples
    --------
    >>> before = np.zeros((3, 3), dtype=bool)
    >>> before[0, 1:] = True
    >>> decompose(before).n_extensions()
    2
    """
    return _taken_apart(before, np.arange(len(before)), tolerance / len(before))


def _taken_apart(before: npt.NDArray[np.bool_], features: Positions, tolerance: float) -> Part:
    if len(features) == 1:
        return Single(int(features[0]))
    own = before[np.ix_(features, features)]
    is_ordered = own | own.T
    for kind, linked in ((Shuffle, is_ordered), (Series, ~is_ordered)):
        n_parts, labels = connected_components(linked, directed=False)
        if n_parts > 1:
            members = [features[labels == label] for label in range(n_parts)]
            if kind is Series:
                # All of an earlier part come before all of a later one.
                members.sort(key=lambda part: int(before[:, part].sum(axis=0).min()))
            return kind([_taken_apart(before, part, tolerance) for part in members])
    levels = levels_of(own)
    if levels is not None:
        return Counted(features, levels)
    return Mixed(features, Chain(own, tolerance * len(features)))


def _product(counts: Iterable[int | None]) -> int | None:
    product = 1
    for count in counts:
        if count is None:
            return None
        product *= count
    return product


def _placed(drawn: Positions, labels: npt.NDArray[np.intp]) -> Positions:
    """Put what was drawn, part after part, to the places that have its label."""
    out = np.empty_like(drawn)
    out[np.argsort(labels, kind="stable")] = drawn
    return out
