"""Orderings from a list."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from dsage._check import check_count, check_names, refusal
from dsage.orderings.base import Positions
from dsage.orderings.positions import as_positions

Listed = Sequence[Sequence[str] | Sequence[int]] | npt.NDArray[np.integer]


class Given:
    """Orderings from a list; a batch is one of them.

    Parameters
    ----------
    orderings : sequence of orderings
        Each a permutation of the features, by names or by positions.
    feature_names : iterable of str
        Names of the features.

    Examples
    --------
    >>> orderings = Given([["b", "a", "c"], [0, 1, 2]], ["a", "b", "c"])
    >>> orderings.n_batches, orderings.batch(0)
    (2, array([[1, 0, 2]]))
    """

    batch_size = 1
    """Number of orderings in a batch."""

    def __init__(self, orderings: Listed, feature_names: Iterable[str]) -> None:
        names = check_names(feature_names, "feature_names")
        rows = list(orderings)
        if not rows:
            raise refusal("orderings", "at least one", [], "Name a kind instead, such as 'uniform'")
        self._orderings = np.stack([as_positions(row, names) for row in rows])

    @property
    def n_features(self) -> int:
        """Number of features in each ordering."""
        return int(self._orderings.shape[1])

    @property
    def n_batches(self) -> int:
        """Number of orderings in the list."""
        return len(self._orderings)

    def batch(self, number: int) -> Positions:
        """Return ordering `number` of the list, (1, n_features)."""
        at = check_count(number, "number", minimum=0)
        if at >= len(self._orderings):
            raise refusal("number", f"below {len(self._orderings)}", number, "List more orderings")
        return self._orderings[at : at + 1].copy()

    def __repr__(self) -> str:
        return f"Given({self.n_batches} orderings, n_features={self.n_features})"
