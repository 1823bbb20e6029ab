"""The course of an estimation: one entry per look."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from dsage.games.base import Floats

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class History:
    """The values and errors of an estimate at each look.

    The distance between looks grows, so their number stays small however long a run is.

    Attributes
    ----------
    n_units : int array of shape (n_looks,)
        Independent pieces that the errors are based on: units, or rows if all orderings were
        enumerated.
    n_evaluated : int array of shape (n_looks,)
        Pairs of a coalition and a row that were evaluated.
    seconds : array of shape (n_looks,)
        Time spent.
    values, se : arrays of shape (n_looks, n_features)
        The values, and their standard errors from orderings and draws.
    """

    n_units: Counts
    n_evaluated: Counts
    seconds: Floats
    values: Floats
    se: Floats

    @classmethod
    def empty(cls, n_features: int) -> Self:
        """Return a history without a look."""
        none = np.zeros((0, n_features))
        counts = np.zeros(0, dtype=np.int64)
        return cls(counts, counts, np.zeros(0), none, none)

    def after(
        self, values: Floats, se: Floats, n_units: int, n_evaluated: int, seconds: float
    ) -> Self:
        """Return the history with one more look, which replaces the last one if nothing is new.

        Examples
        --------
        >>> look = {"values": np.ones(2), "se": np.zeros(2), "n_units": 8, "n_evaluated": 80}
        >>> history = History.empty(2).after(**look, seconds=0.1)
        >>> len(history), len(history.after(**look, seconds=0.2))
        (1, 1)
        """
        is_same = len(self) > 0 and (
            self.n_units[-1] == n_units and self.n_evaluated[-1] == n_evaluated
        )
        kept = slice(0, len(self) - is_same)
        return type(self)(
            np.append(self.n_units[kept], n_units),
            np.append(self.n_evaluated[kept], n_evaluated),
            np.append(self.seconds[kept], seconds),
            np.vstack([self.values[kept], values]),
            np.vstack([self.se[kept], se]),
        )

    def __len__(self) -> int:
        return len(self.seconds)
