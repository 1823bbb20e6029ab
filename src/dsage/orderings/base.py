"""What orderings are: independent units, each available by its number."""

from __future__ import annotations

from functools import lru_cache
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from dsage._check import check_count
from dsage._random import Streams

# Units whose first orderings come from one stream.
_CHUNK = 64


@runtime_checkable
class Orderings(Protocol):
    """Units of orderings: any object with these members will do."""

    @property
    def n_features(self) -> int:
        """Number of features that each ordering arranges."""
        ...

    @property
    def batch_size(self) -> int:
        """Number of orderings in a unit."""
        ...

    @property
    def n_batches(self) -> int | None:
        """Number of units, or None if there is no end to them."""
        ...

    def batch(self, number: int) -> npt.NDArray[np.intp]:
        """Return a unit as an array (batch_size, n_features): column k is the k-th feature."""
        ...


class Unbounded:
    """What the unbounded kinds share: the first ordering of unit u is the same in all of them."""

    __slots__ = ("_n_features", "_streams")

    def __init__(self, n_features: int, streams: Streams) -> None:
        self._n_features = check_count(n_features, "n_features")
        self._streams = streams

    @property
    def n_features(self) -> int:
        """Number of features that each ordering arranges."""
        return self._n_features

    @property
    def n_batches(self) -> None:
        """None: there is no end to the units."""
        return

    def _first(self, number: int) -> npt.NDArray[np.intp]:
        """Return the first ordering of a unit."""
        chunk, place = divmod(check_count(number, "number", minimum=0), _CHUNK)
        first: npt.NDArray[np.intp] = _chunk_of(self._streams.entropy, self._n_features, chunk)[
            place
        ]
        return first.copy()

    def _generator(self, number: int) -> np.random.Generator:
        """Return where the rest of a unit comes from."""
        return self._streams("units", check_count(number, "number", minimum=0))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(n_features={self._n_features})"


@lru_cache(maxsize=16)
def _chunk_of(entropy: int, n_features: int, chunk: int) -> npt.NDArray[np.intp]:
    """Return the first orderings of some units: to make a stream takes longer than to use it."""
    generator = Streams(entropy)("orderings", chunk)
    return generator.permuted(np.tile(np.arange(n_features), (_CHUNK, 1)), axis=1)


def relabelled(
    orderings: npt.NDArray[np.intp], first: npt.NDArray[np.intp]
) -> npt.NDArray[np.intp]:
    """Rename the features of orderings (n_orderings, n_features) so that the first is `first`.

    If `first` is uniform, and independent of the orderings, then so is the renaming: each of the
    orderings becomes uniform, and what they are to each other stays as it was.

    Examples
    --------
    >>> relabelled(np.array([[1, 0, 2], [0, 1, 2]]), np.array([2, 0, 1]))
    array([[2, 0, 1],
           [0, 2, 1]])
    """
    names = np.empty_like(first)
    names[orderings[0]] = first
    renamed: npt.NDArray[np.intp] = names[orderings]
    return renamed
