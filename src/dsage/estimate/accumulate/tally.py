"""Means over units of orderings and blocks of rows, and what they vary by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dsage._files import Arrays
from dsage.games.base import Floats, Rows

# Below so many degrees of freedom a variance within blocks is not trusted.
_ENOUGH = 10


class Tally:
    """The mean of what units of orderings give on blocks of rows, with a control variate.

    A unit is evaluated on one block; each pass visits every block once. The estimate is the mean
    over blocks, weighted by their rows, of the means over their units. What varies between units
    of one block and epoch is the error of the orderings. Until there is enough of it, the
    variation between all units stands for it, which includes that of the rows: it is too large
    rather than too small.

    With a control c of known mean m, the estimate is ``mean of x - beta (mean of c - m)``, and
    beta is the slope of x on c over units, shared by all features.

    Parameters
    ----------
    blocks : sequence of int arrays
        The rows of each block.
    n_features : int
        Number of features.
    """

    def __init__(self, blocks: Sequence[Rows], n_features: int) -> None:
        sizes = np.array([len(block) for block in blocks], dtype=np.float64)
        self._shares = sizes / sizes.sum()
        n_blocks = len(blocks)
        self.counts: npt.NDArray[np.intp] = np.zeros(n_blocks, dtype=np.intp)
        # First axis: the quantity and its control.
        self._sums = np.zeros((2, n_blocks, n_features))
        self._epoch_counts = np.zeros(n_blocks, dtype=np.intp)
        self._epoch_sums = np.zeros((2, n_blocks, n_features))
        self._all_mean = np.zeros((2, n_features))
        # Centred sums of squares and products, xx, xc and cc: within blocks and epochs, and of all.
        self._within = np.zeros((3, n_features))
        self._freedom = np.zeros((), dtype=np.int64)
        self._between = np.zeros((3, n_features))

    def state(self) -> Arrays:
        """Return the sums by name, without copying."""
        return {
            "counts": self.counts,
            "sums": self._sums,
            "epoch_counts": self._epoch_counts,
            "epoch_sums": self._epoch_sums,
            "all_mean": self._all_mean,
            "within": self._within,
            "freedom": self._freedom,
            "between": self._between,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Return to the sums that `state` returned."""
        for name, own in self.state().items():
            own[...] = state[name]

    @property
    def n_units(self) -> int:
        """Number of units so far."""
        return int(self.counts.sum())

    def add(self, block: int, value: Floats, control: Floats) -> None:
        """Add the means over a block of what a unit gives: (n_features,) each."""
        pair = np.stack([value, control])
        n = int(self._epoch_counts[block])
        if n:
            off = pair - self._epoch_sums[:, block] / n
            self._within += _products(off) * (n / (n + 1))
            self._freedom += 1
        total = self.n_units
        off = pair - self._all_mean
        self._between += _products(off) * (total / (total + 1))
        self._all_mean += off / (total + 1)
        self.counts[block] += 1
        self._epoch_counts[block] += 1
        self._sums[:, block] += pair
        self._epoch_sums[:, block] += pair

    def next_epoch(self) -> None:
        """Let units from now on differ from those before by their noise."""
        self._epoch_counts[:] = 0
        self._epoch_sums[:] = 0.0

    @property
    def slope(self) -> float:
        """The slope on the control: 0 without one, or while there are too few units."""
        spread = self._within if self._is_within else self._between
        if self.n_units < 3 or not spread[2].sum() > 0:
            return 0.0
        return float(spread[1].sum() / spread[2].sum())

    def mean(self) -> tuple[Floats, Floats]:
        """Return the means of the quantity and of its control."""
        if not self.counts.all():
            value, control = self._all_mean
        else:
            value, control = np.einsum("b,qbf->qf", self._shares, self._sums / self.counts[:, None])
        return value, control

    def variance(
        self,
        slope: float = 0.0,
        gap: Floats | None = None,
        drawn: Floats | None = None,
        *,
        is_exact: bool = False,
    ) -> Floats:
        """Return the variance of ``mean of x - slope * mean of c`` over orderings.

        Parameters
        ----------
        slope : float, default=0
            The slope on the control, as estimated.
        gap : array of shape (n_features,), optional
            Mean of the control less its known mean: what an error of the slope is multiplied by.
        drawn : array of shape (n_features,), optional
            Variance that draws leave in the mean. Units on different rows differ by their draws
            too, so it is taken off where these are compared.
        is_exact : bool, default=False
            Units do not vary but by their rows: nothing is left once every block was visited.

        Returns
        -------
        array of shape (n_features,)
            inf where one unit alone tells nothing.
        """
        n_units, n_features = self.n_units, self._between.shape[1]
        if is_exact and self.counts.all():
            return np.zeros(n_features)
        if n_units < 2:
            return np.full(n_features, np.inf)
        # All features share the one degree of freedom that the slope takes.
        freedom = self.df - (slope != 0.0) / n_features
        spread = self._within if self._is_within else self._between
        residual = _combined(spread, slope) / freedom
        if self._is_within:
            variance = residual * float((self._shares**2 / self.counts).sum())
        else:
            variance = residual / n_units
            if drawn is not None:
                variance = np.maximum(variance - drawn, 0.0)
            if is_exact:
                variance *= 1.0 - n_units / len(self.counts)
        if slope and gap is not None:
            variance += gap**2 * residual.sum() / spread[2].sum()
        return variance

    @property
    def df(self) -> int:
        """Degrees of freedom of the variance."""
        return int(self._freedom) if self._is_within else max(self.n_units - 1, 1)

    @property
    def _is_within(self) -> bool:
        return bool(self.counts.all()) and int(self._freedom) >= max(_ENOUGH, len(self.counts) // 4)


def _products(off: Floats) -> Floats:
    return np.stack([off[0] * off[0], off[0] * off[1], off[1] * off[1]])


def _combined(products: Floats, slope: float) -> Floats:
    combined: Floats = products[0] - 2.0 * slope * products[1] + slope**2 * products[2]
    return np.maximum(combined, 0.0)
