"""Independent orderings, alone or each with its reverse."""

from __future__ import annotations

import numpy as np

from dsage.orderings.base import KINDS, Positions, Unbounded


@KINDS.register("uniform", summary="one ordering drawn at random")
class Uniform(Unbounded):
    """Independent orderings, all equally likely; a batch is one ordering.

    Parameters
    ----------
    n_features : int
        Number of features.
    streams : Streams
        Source of randomness.

    Examples
    --------
    >>> from dsage._random import Streams
    >>> orderings = Uniform(4, Streams(0))
    >>> orderings.batch(7).shape
    (1, 4)
    >>> bool((orderings.batch(7) == Uniform(4, Streams(0)).batch(7)).all())
    True
    """

    batch_size = 1
    """Number of orderings in a batch."""

    def batch(self, number: int) -> Positions:
        """Return batch `number`, (1, n_features)."""
        return self._first(number)[None, :]


@KINDS.register("antithetic", summary="an ordering and its reverse")
class Antithetic(Unbounded):
    """An ordering and its reverse.

    The surplus of a feature usually falls as more features are known before it. In a batch, early
    and late positions balance, which lowers the variance of the mean. If the features interact in
    pairs only, the mean over a batch is exact.

    Parameters
    ----------
    n_features : int
        Number of features.
    streams : Streams
        Source of randomness.

    Examples
    --------
    >>> from dsage._random import Streams
    >>> forth, back = Antithetic(4, Streams(0)).batch(0)
    >>> bool((forth == back[::-1]).all())
    True
    """

    batch_size = 2
    """Number of orderings in a batch."""

    def batch(self, number: int) -> Positions:
        """Return batch `number`, (2, n_features)."""
        ordering = self._first(number)
        return np.stack([ordering, ordering[::-1]])
