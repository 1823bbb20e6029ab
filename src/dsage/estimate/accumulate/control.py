"""The first level: the mean surplus of a cheap game over all orderings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np

from dsage._files import Arrays
from dsage.estimate.walk import by_feature, separated_steps
from dsage.games.base import Floats, Game, Mask, Orders, prefixes
from dsage.graphs.separation import Oracle
from dsage.orderings import Orderings

FIRST_UNIT = 1 << 41
"""The first batch of this term; the other terms use batches with smaller numbers."""
_AT_ONCE = 64
MOST_COALITIONS = 1 << 16
"""Most coalitions of a cheap game that are evaluated to average over all orderings."""
# Largest number of units, as a multiple of those of the main term plus four.
_MOST_TIMES = 256


class CheapWalk:
    """What features add along orderings in a cheap game, without risks of single rows.

    `value` maps coalitions (n, n_features) to their values (n, ...); `along` maps orderings to
    what their features add, (n_orderings, n_features, ...).
    """

    def __init__(
        self,
        value: Callable[[Mask], Floats],
        along: Callable[[Orders], Floats],
        oracle: Oracle | None,
        semantics: str,
    ) -> None:
        self._value, self._along, self._oracle = value, along, oracle
        self._is_at_boundaries = semantics == "boundary"

    @classmethod
    def of(cls, game: Game, oracle: Oracle | None, semantics: str) -> Self:
        """Return the walk of the mean surpluses of a game."""
        return cls(
            lambda known: -game.mean_risks(known),
            lambda orders: -np.diff(game.mean_path_risks(orders), axis=1),
            oracle,
            semantics,
        )

    def __call__(self, orders: Orders) -> Floats:
        """Return what features add along orderings, in the order of the features."""
        known = prefixes(orders)
        if self._oracle is not None and self._is_at_boundaries:
            boundaries, place = self._oracle.distinct_boundaries(known)
            return by_feature(np.diff(self._value(boundaries)[place], axis=1), orders)
        added = self._along(orders)
        added[separated_steps(self._oracle, known, orders)] = 0.0
        return by_feature(added, orders)


def draw_units(
    walk: Callable[[Orders], Floats], orderings: Orderings, first: int, n_units: int
) -> Floats:
    """Return the means of a walk over the batches of some units, (n_units, ...)."""
    numbers = range(FIRST_UNIT + first, FIRST_UNIT + first + n_units)
    values = walk(np.concatenate([orderings.batch(number) for number in numbers]))
    means: Floats = values.reshape(n_units, -1, *values.shape[1:]).mean(axis=1)
    return means


class Control:
    """The mean over orderings of the surpluses of a cheap game, (n_columns,).

    With a `mean`, the exact one over all orderings, nothing is drawn.
    """

    def __init__(
        self,
        walk: Callable[[Orders], Floats],
        orderings: Orderings,
        n_columns: int,
        mean: Floats | None = None,
    ) -> None:
        self._walk, self._orderings = walk, orderings
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
        units = draw_units(self._walk, self._orderings, self.n_units, n_units)
        mean, total = units.mean(axis=0), self.n_units + n_units
        shift = mean - self.mean
        self._spread += ((units - mean) ** 2).sum(axis=0)
        self._spread += shift**2 * (self.n_units * n_units / total)
        self.mean = self.mean + shift * (n_units / total)
        self.n_units = total
