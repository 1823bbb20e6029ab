"""The first level: the mean surplus of a cheap game over all orderings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from dsage._files import Arrays
from dsage.estimate.walk import by_feature, separated_steps
from dsage.games.base import Floats, Game, Orders, prefixes
from dsage.games.boundary import distinct_boundaries
from dsage.graphs.separation import Oracle
from dsage.orderings import Orderings

FIRST_UNIT = 1 << 41
"""The first batch of this term; the other terms use batches with smaller numbers."""
_AT_ONCE = 64
MOST_COALITIONS = 1 << 16
"""Most coalitions of a cheap game that are evaluated to average over all orderings."""
# Largest number of units, as a multiple of those of the main term plus four.
_MOST_TIMES = 256


class MeanWalk(Protocol):
    """The mean surpluses of a cheap game along orderings, without risks of single rows."""

    def __call__(self, orders: Orders) -> Floats:
        """Return the surpluses along orderings, (n_orderings, n_columns)."""
        ...


class MeanPrefixes:
    """Mean surpluses of the moment game at prefixes: see :class:`MeanWalk`."""

    def __init__(self, game: Game, oracle: Oracle | None) -> None:
        self._game, self._oracle = game, oracle

    def __call__(self, orders: Orders) -> Floats:
        """Return the mean surpluses along orderings."""
        skipped = separated_steps(self._oracle, prefixes(orders), orders)
        steps = -np.diff(self._game.mean_path_risks(orders), axis=1)
        steps[skipped] = 0.0
        return by_feature(steps, orders)


class MeanBoundaries:
    """Mean surpluses of the moment game at boundaries: see :class:`MeanWalk`."""

    def __init__(self, game: Game, oracle: Oracle) -> None:
        self._game, self._oracle = game, oracle

    def __call__(self, orders: Orders) -> Floats:
        """Return the mean surpluses along orderings."""
        boundaries, place = distinct_boundaries(self._oracle, prefixes(orders))
        risks = self._game.mean_risks(boundaries)[place]
        return by_feature(risks[:, :-1] - risks[:, 1:], orders)


class Control:
    """The mean over orderings of the surpluses of a cheap game.

    Parameters
    ----------
    walk : MeanWalk
        The walk of the game.
    orderings : Orderings
        The orderings.
    n_columns : int
        Number of surpluses per ordering.
    mean : array of shape (n_columns,), optional
        Their exact mean over all orderings.
    """

    def __init__(
        self,
        walk: MeanWalk,
        orderings: Orderings,
        n_columns: int,
        mean: Floats | None = None,
    ) -> None:
        self._orderings = orderings
        self._walk = walk
        self.n_units = 0
        self.is_exact = mean is not None
        self.mean: Floats = np.zeros(n_columns) if mean is None else mean
        self._spread: Floats = np.zeros(n_columns)

    def state(self) -> Arrays:
        """Return what has been added up, by name."""
        return {"n_units": np.array(self.n_units), "mean": self.mean, "spread": self._spread}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Return to what `state` returned."""
        self.n_units = int(state["n_units"])
        self.mean = np.array(state["mean"])
        self._spread = np.array(state["spread"])

    @property
    def n_orderings(self) -> int:
        """Number of orderings so far."""
        return self.n_units * self._orderings.batch_size

    @property
    def variance(self) -> Floats:
        """The variance of the mean."""
        if self.is_exact:
            return np.zeros_like(self.mean)
        if self.n_units < 2:
            return np.full_like(self.mean, np.inf)
        return self._spread / (self.n_units - 1) / self.n_units

    def refine(self, bound: float, n_main_units: int) -> None:
        """Add units until the variances sum to at most `bound`, or the limit is reached."""
        most = _MOST_TIMES * (n_main_units + 4)
        while not self.is_exact and self.n_units < most and not self.variance.sum() <= bound:
            self._add(_AT_ONCE)

    def _add(self, n_units: int) -> None:
        first = FIRST_UNIT + self.n_units
        orders = [self._orderings.batch(first + unit) for unit in range(n_units)]
        values = self._walk(np.concatenate(orders))
        units = values.reshape(n_units, -1, values.shape[-1]).mean(axis=1)
        mean, total = units.mean(axis=0), self.n_units + n_units
        shift = mean - self.mean
        self._spread += ((units - mean) ** 2).sum(axis=0)
        self._spread += shift**2 * (self.n_units * n_units / total)
        self.mean = self.mean + shift * (n_units / total)
        self.n_units = total
