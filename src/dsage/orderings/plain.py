"""Independent orderings, by themselves or each with its reverse."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dsage.orderings.base import Unbounded


class Uniform(Unbounded):
    """Independent orderings, all equally likely: a unit is one ordering.

    Parameters
    ----------
    n_features : int
        Number of features.
    streams : Streams
        Where the randomness comes from.

    Examples
    --------
    >>> from dsage._random import Streams
    >>> orderings = Uniform(4, Streams(0))
    >>> orderings.batch(7).shape
    (1, 4)
    >>> bool((orderings.batch(7) == Uniform(4, Streams(0)).batch(7)).all())
    True
    """

    __slots__ = ()

    @property
    def batch_size(self) -> int:
        """Number of orderings in a unit: 1."""
        return 1

    def batch(self, number: int) -> npt.NDArray[np.intp]:
        """Return unit `number` as an array (1, n_features)."""
        return self._first(number)[None, :]


class Antithetic(Unbounded):
    """An ordering and its reverse: each feature has as many before it as it has after it.

    The surplus of a feature mostly falls as more features are known before it. In a unit early and
    late positions balance, which lowers the variance of the mean. Where the features interact in
    pairs only, the mean over a unit is exact.

    Parameters
    ----------
    n_features : int
        Number of features.
    streams : Streams
        Where the randomness comes from.

    Examples
    --------
    >>> from dsage._random import Streams
    >>> forth, back = Antithetic(4, Streams(0)).batch(0)
    >>> bool((forth == back[::-1]).all())
    True
    """

    __slots__ = ()

    @property
    def batch_size(self) -> int:
        """Number of orderings in a unit: 2."""
        return 2

    def batch(self, number: int) -> npt.NDArray[np.intp]:
        """Return unit `number` as an array (2, n_features)."""
        ordering = self._first(number)
        return np.stack([ordering, ordering[::-1]])
