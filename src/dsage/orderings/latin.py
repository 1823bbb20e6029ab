"""Latin squares of orderings: each feature once at each position."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dsage.orderings.base import Unbounded


class Stratified(Unbounded):
    """A random Latin square of orderings: each feature stands once at each position.

    With p and q independent, uniform permutations of 0..d-1, position k of ordering i holds
    ``p[q^-1[(q[k] + i) mod d]]``. For fixed k the inner index runs through all residues as i does,
    so each column holds each feature once. For fixed i it is p after a permutation that does not
    depend on p, hence uniform: the mean surplus of the square is unbiased. In it, the positions of
    a feature, which are the sizes of the coalitions before it, do not vary at all: where the risk
    depends on the size of the coalition only, the mean over a unit is exact. The second permutation
    q keeps the orderings from being plain rotations of each other, in which the coalitions before a
    feature would be nested, and the variance often larger than that of uniform orderings.

    Parameters
    ----------
    n_features : int
        Number of features.
    streams : Streams
        Where the randomness comes from.

    Examples
    --------
    >>> from dsage._random import Streams
    >>> square = Stratified(4, Streams(0)).batch(0)
    >>> [sorted(column.tolist()) for column in square.T] == [[0, 1, 2, 3]] * 4
    True
    """

    __slots__ = ()

    @property
    def batch_size(self) -> int:
        """Number of orderings in a unit: one for each position."""
        return self._n_features

    def batch(self, number: int) -> npt.NDArray[np.intp]:
        """Return unit `number` as an array (n_features, n_features)."""
        ordering, generator = self._first(number), self._generator(number)
        return _latin_square(ordering, generator.permutation(self._n_features))


class Balanced(Unbounded):
    """A random Latin square that holds the reverse of each of its orderings, too.

    It unites the advantages of antithetic and stratified orderings. For even d it is a square as in
    `Stratified`, with q uniform among the permutations with ``q[d - 1 - k] = q[k] + d / 2 mod d``:
    then ordering i + d / 2 is the reverse of ordering i. For odd d, where the position in the
    middle forbids that, it is a square of `Stratified` and the reverses of its orderings.

    Parameters
    ----------
    n_features : int
        Number of features.
    streams : Streams
        Where the randomness comes from.

    Examples
    --------
    >>> from dsage._random import Streams
    >>> Balanced(4, Streams(0)).batch_size, Balanced(5, Streams(0)).batch_size
    (4, 10)
    >>> square = Balanced(4, Streams(0)).batch(0)
    >>> bool((square[2:] == square[:2, ::-1]).all())
    True
    """

    __slots__ = ()

    @property
    def batch_size(self) -> int:
        """Number of orderings in a unit: one or two for each position."""
        return self._n_features * (1 + self._n_features % 2)

    def batch(self, number: int) -> npt.NDArray[np.intp]:
        """Return unit `number` as an array (batch_size, n_features)."""
        ordering, generator = self._first(number), self._generator(number)
        if self._n_features % 2:
            square = _latin_square(ordering, generator.permutation(self._n_features))
            return np.concatenate([square, square[:, ::-1]])
        half = self._n_features // 2
        first = generator.permutation(half) + half * generator.integers(2, size=half)
        second = (first[::-1] + half) % self._n_features
        return _latin_square(ordering, np.concatenate([first, second]))


def _latin_square(
    ordering: npt.NDArray[np.intp], relabelled: npt.NDArray[np.intp]
) -> npt.NDArray[np.intp]:
    """Return the square of `Stratified` for p and q; its first row is p."""
    n_features = len(ordering)
    shifted = (relabelled[None, :] + np.arange(n_features)[:, None]) % n_features
    square: npt.NDArray[np.intp] = ordering[np.argsort(relabelled)[shifted]]
    return square
