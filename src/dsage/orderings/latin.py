"""Latin squares of orderings, with each feature once at each position."""

from __future__ import annotations

import numpy as np

from dsage.orderings.base import KINDS, Positions, Unbounded


@KINDS.register("stratified", summary="each feature once at each position")
class Stratified(Unbounded):
    """A random Latin square of orderings, with each feature once at each position.

    With p and q independent, uniform permutations of 0..d-1, position k of ordering i holds
    ``p[q^-1[(q[k] + i) mod d]]``. For fixed k the inner index runs through all residues as i does,
    so each column holds each feature once. For fixed i it is p after a permutation that does not
    depend on p, hence uniform, so the mean surplus of the square is unbiased. The positions of a
    feature, which are the sizes of the coalitions before it, do not vary between squares: if the
    risk depends only on the size of the coalition, the mean over a batch is exact. Without q the
    orderings would be rotations of each other, with nested coalitions before a feature, and often a
    larger variance than uniform orderings.

    Parameters
    ----------
    n_features : int
        Number of features.
    streams : Streams
        Source of randomness.

    Examples
    --------
    >>> from dsage._random import Streams
    >>> square = Stratified(4, Streams(0)).batch(0)
    >>> [sorted(column.tolist()) for column in square.T] == [[0, 1, 2, 3]] * 4
    True
    """

    @property
    def batch_size(self) -> int:
        """Number of orderings in a batch: one per position."""
        return self.n_features

    def batch(self, number: int) -> Positions:
        """Return batch `number`, (n_features, n_features)."""
        ordering, generator = self._first(number), self._generator(number)
        return _latin_square(ordering, generator.permutation(self.n_features))


@KINDS.register(
    "balanced", summary="each feature equally often at each position, with the reverses"
)
class Balanced(Unbounded):
    """A random Latin square that also holds the reverse of each of its orderings.

    It combines the advantages of antithetic and stratified orderings. For even d it is a square as
    in `Stratified`, with q uniform among the permutations with ``q[d - 1 - k] = q[k] + d / 2 mod
    d``: then ordering i + d / 2 is the reverse of ordering i. For odd d, where the middle position
    rules this out, it is a square of `Stratified` together with the reverses of its orderings.

    Parameters
    ----------
    n_features : int
        Number of features.
    streams : Streams
        Source of randomness.

    Examples
    --------
    >>> from dsage._random import Streams
    >>> Balanced(4, Streams(0)).batch_size, Balanced(5, Streams(0)).batch_size
    (4, 10)
    >>> square = Balanced(4, Streams(0)).batch(0)
    >>> bool((square[2:] == square[:2, ::-1]).all())
    True
    """

    @property
    def batch_size(self) -> int:
        """Number of orderings in a batch: one or two per position."""
        return self.n_features * (1 + self.n_features % 2)

    def batch(self, number: int) -> Positions:
        """Return batch `number`, (batch_size, n_features)."""
        ordering, generator = self._first(number), self._generator(number)
        if self.n_features % 2:
            square = _latin_square(ordering, generator.permutation(self.n_features))
            return np.concatenate([square, square[:, ::-1]])
        half = self.n_features // 2
        first = generator.permutation(half) + half * generator.integers(2, size=half)
        second = (first[::-1] + half) % self.n_features
        return _latin_square(ordering, np.concatenate([first, second]))


def _latin_square(p: Positions, q: Positions) -> Positions:
    """Return the square of `Stratified` for p and q; its first row is p."""
    shifted = (q[None, :] + np.arange(len(p))[:, None]) % len(p)
    square: Positions = p[np.argsort(q)[shifted]]
    return square
