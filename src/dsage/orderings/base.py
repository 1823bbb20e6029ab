"""The members of orderings, the registry of their kinds, and what unbounded kinds share."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from dsage._check import check_count
from dsage._random import Streams
from dsage.data.registry import Registry

# The number of batches whose first orderings come from the same stream.
_CHUNK = 64


Positions = npt.NDArray[np.intp]
"""Orderings as the positions of features, the last axis along the ordering."""


@runtime_checkable
class Orderings(Protocol):
    """Batches of orderings: any object with these members is accepted."""

    @property
    def n_features(self) -> int:
        """Number of features in each ordering."""
        ...

    @property
    def batch_size(self) -> int:
        """Number of orderings in a batch."""
        ...

    @property
    def n_batches(self) -> int | None:
        """Number of batches; None if it is unbounded."""
        ...

    def batch(self, number: int) -> Positions:
        """Return a batch, (batch_size, n_features): column k has the k-th features."""
        ...


KINDS: Registry[Callable[[int, Streams], Orderings]] = Registry(
    "orderings", "the kinds of orderings", package="dsage.orderings"
)
"""The kinds of orderings by name, each called with the number of features and the streams."""


class Unbounded:
    """Base class of the unbounded kinds, which all start batch u with the same ordering."""

    n_batches = None

    def __init__(self, n_features: int, streams: Streams) -> None:
        self.n_features = check_count(n_features, "n_features")
        self._streams = streams

    def _first(self, number: int) -> Positions:
        """Return the first ordering of a batch."""
        chunk, place = divmod(check_count(number, "number", minimum=0), _CHUNK)
        first: Positions = _draw_chunk(self._streams.entropy, self.n_features, chunk)[place]
        return first.copy()

    def _generator(self, number: int) -> np.random.Generator:
        """Return the generator for the rest of a batch."""
        return self._streams("units", check_count(number, "number", minimum=0))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(n_features={self.n_features})"


@lru_cache(maxsize=16)
def _draw_chunk(entropy: int, n_features: int, chunk: int) -> Positions:
    """Draw the first orderings of many batches at once, as making a stream is slow."""
    generator = Streams(entropy)("orderings", chunk)
    return generator.permuted(np.tile(np.arange(n_features), (_CHUNK, 1)), axis=1)


def relabel(orderings: Positions, first: Positions) -> Positions:
    """Rename the features of orderings (n_orderings, n_features) so that the first is `first`.

    If `first` is uniform and independent of the orderings, each of them becomes uniform, and their
    relations to each other stay the same.
    """
    names = np.empty_like(first)
    names[orderings[0]] = first
    renamed: Positions = names[orderings]
    return renamed
