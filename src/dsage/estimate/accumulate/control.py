"""The first level: the mean surplus of a cheap game over all orderings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from dsage._files import Arrays
from dsage.estimate.walk import separated_steps
from dsage.games.base import Floats, Game, Mask, Orders, by_feature, prefixes
from dsage.graphs.separation import Oracle
from dsage.orderings import Orderings

FIRST_UNIT = 1 << 41
"""The first batch of this term; the other terms use batches with smaller numbers."""
# Orderings that are added at a time, as few as their matrices are large so that the clock is looked
# at; and units from which their variance is trusted.
_AT_ONCE, _CELLS_AT_ONCE, _TRUSTED = 128, 1 << 19, 16
# With many columns fewer units are enough, if what they add is little, as variances are summed. And
# the cost of the orderings that are added at a time, which are few if they are dear.
_TRUSTED_VALUES, _LEAST_TRUSTED, _COST_AT_ONCE = 128, 4, 1 << 20
MOST_COALITIONS = 1 << 16
"""Most coalitions of a cheap game that are evaluated to average over all orderings."""
# Offsets of batch numbers: from one game to the next, and for the batches that estimate slopes.
_APART, _PILOT = 1 << 36, (1 << 41) + (1 << 40)
_STATE = ("counts", "means", "spreads", "slopes", "is_by_position")
# Memory for units that are computed ahead.
_BYTES_AHEAD = 1 << 26
# Highest cost of all orderings, in orderings of the cheapest game, per unit of the main term
# (plus four units).
_MOST_TIMES = 1024
# What means over positions cost, as a multiple of surpluses; and the least number of units from
# which their variances are compared.
_POSITION_COST, _PILOT_UNITS = 5.0, 8
# Seconds of an ordering, about, for each unit of a game's `cost`.
SECONDS_A_COST = 4e-8


class CheapWalk:
    """The surpluses of features along orderings in a cheap game, without risks of single rows.

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
        """Return the surpluses along orderings, in the order of the features."""
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


class _Aim(NamedTuple):
    """How precise the first level is to be made; see :meth:`Control.refine`."""

    bound: float
    n_main_units: int
    rate: float
    wanted: Mask | None


class Control:
    """The mean over orderings of the surpluses of a cheap game, (n_columns,).

    Below the cheap game there may be cheaper ones that resemble it. With c_0 the surpluses of the
    game, c_1, c_2, ... the surpluses of the cheaper ones, and slopes b_1, b_2, ...,

        mean of c_0 = mean of (c_0 - b_1 c_1) + b_1 mean of (c_1 - b_2 c_2) + ...,

    each a mean over its own orderings: the cheapest game has the most of them.

    Parameters
    ----------
    walks : sequence of callables
        The surpluses along orderings, (n_orderings, n_columns), in the game and in the cheaper
        ones, the most expensive first.
    orderings : Orderings
        The orderings.
    n_columns : int
        Number of columns.
    mean : callable, optional
        Returns the exact mean over all orderings, (n_columns,): then nothing is drawn. It is called
        once, when the mean is needed, or while other processes work.
    costs : sequence of float, optional
        What an ordering costs in each of the games; by default the same.
    position_means : callable, optional
        Unbiased estimates of the values in the last game from orderings, (n_orderings, n_columns),
        see :meth:`~dsage.games.Game.position_means`. They take the place of its surpluses if they
        vary so much less that they pay off.
    """

    def __init__(
        self,
        walks: Sequence[Callable[[Orders], Floats]],
        orderings: Orderings,
        n_columns: int,
        mean: Callable[[], Floats] | None = None,
        *,
        costs: Sequence[float] | None = None,
        position_means: Callable[[Orders], Floats] | None = None,
    ) -> None:
        self._position_means = position_means
        self._walks, self._orderings = tuple(walks), orderings
        self._costs = np.ones(len(self._walks)) if costs is None else np.array(costs)
        self.is_exact = mean is not None
        self._find_mean = mean
        self._exact: Floats | None = None
        # Units that are added at a time.
        n_dear = int(_COST_AT_ONCE // max(self._costs.max(), 1.0))
        n_at_once = min(_AT_ONCE, _CELLS_AT_ONCE // n_columns**2, n_dear)
        self.at_once = max(2, n_at_once // orderings.batch_size)
        self._n_trusted = min(max(_TRUSTED_VALUES // n_columns, _LEAST_TRUSTED), _TRUSTED)
        n_levels = len(self._walks)
        self._counts: npt.NDArray[np.intp] = np.zeros(n_levels, dtype=np.intp)
        self._means: Floats = np.zeros((n_levels, n_columns))
        self._spreads: Floats = np.zeros((n_levels, n_columns))
        # The slope of each game on the next one, found with the first units.
        self._slopes: Floats = np.zeros(n_levels)
        # Whether `position_means` are used.
        self._is_by_position = np.zeros(1, dtype=np.bool_)
        # Units that were computed ahead, by game and number.
        self._ready: dict[tuple[int, int], Floats] = {}

    def state(self) -> Arrays:
        """Return the accumulated sums, by name."""
        return {name: vars(self)[f"_{name}"] for name in _STATE}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Return to what `state` returned."""
        for name, own in self.state().items():
            own[...] = state[name]
        self._ready.clear()

    @property
    def n_orderings(self) -> int:
        """Number of orderings so far, of all games."""
        return int(self._counts.sum()) * self._orderings.batch_size

    @property
    def _costs_now(self) -> Floats:
        """What an ordering costs in each of the games, as it is used."""
        costs = self._costs.copy()
        if self._is_by_position:
            costs[-1] *= _POSITION_COST
        return costs

    @property
    def _factors(self) -> Floats:
        """The factor of the mean of each game."""
        return np.concatenate([[1.0], np.cumprod(self._slopes[:-1])])

    @property
    def mean(self) -> Floats:
        """The mean so far, (n_columns,)."""
        if self._find_mean is not None:
            if self._exact is None:
                self._exact = self._find_mean()
            return self._exact
        if not self._counts.any():
            return np.zeros(self._means.shape[1])
        mean: Floats = self._factors @ self._means
        return mean

    @property
    def variance(self) -> Floats:
        """The variance of the mean."""
        if self.is_exact:
            return np.zeros(self._means.shape[1])
        if (self._counts < 2).any():
            return np.full(self._means.shape[1], np.inf)
        variance: Floats = self._factors**2 @ self._variances
        return variance

    @property
    def _variances(self) -> Floats:
        counts = self._counts[:, None]
        return self._spreads / (counts - 1) / counts

    def refine(
        self,
        bound: float,
        n_main_units: int,
        is_over: Callable[[], bool] = lambda: False,
        rate: float = 0.0,
        wanted: Mask | None = None,
    ) -> bool:
        """Add units until the variances sum to at most `bound`, or the limit is reached.

        They also end if a second of them takes less than `rate` away from the variance, as a
        second of the main term takes more. With `wanted`, (n_columns,), the sums are over these
        columns. Return False if the time `is_over` before that.
        """
        if self.is_exact or bound == np.inf:
            return True
        # Without any unit the first level has no mean.
        if not self._counts.any():
            self._begin()
        aim = _Aim(bound, n_main_units, rate, wanted)
        while (level := self._next_level(self._counts, aim)) is not None:
            if is_over():
                return False
            self._add(level)
        return True

    def prepare(
        self,
        is_over: Callable[[], bool],
        bound: float = np.inf,
        n_main_units: int = 0,
        rate: float = 0.0,
        wanted: Mask | None = None,
    ) -> None:
        """Compute the exact mean, or the units that a refinement to `bound` will probably add.

        Units until the time is over. Nothing is added: the estimates are those without it. It may
        run in a thread, while nothing else uses the first level.
        """
        if self.is_exact:
            _ = self.mean
            return
        if bound == np.inf or not self._counts.any():
            return
        aim = _Aim(bound, n_main_units, rate, wanted)
        counts = self._counts.copy()
        n_most = _BYTES_AHEAD // (8 * self.at_once * self._means.shape[1])
        while (level := self._next_level(counts, aim)) is not None and not is_over():
            number = int(counts[level])
            if (level, number) not in self._ready:
                if len(self._ready) >= n_most:
                    return
                self._ready[level, number] = self._units(level, number)
            counts[level] += self.at_once

    def _next_level(self, counts: npt.NDArray[np.intp], aim: _Aim) -> int | None:
        """Return the game of which units lower the variance most for their cost; None if enough.

        `counts` are the numbers of units, of which the last ones may be still to come.
        """
        costs, factors = self._costs_now, self._factors**2
        most = _MOST_TIMES * (aim.n_main_units + 4) * self._costs.min()
        if float(counts @ costs) * self._orderings.batch_size >= most:
            return None
        at = slice(None) if aim.wanted is None else np.flatnonzero(aim.wanted)
        variances = self._spreads[:, at].sum(axis=1) / (self._counts - 1) / counts
        if counts.min() >= self._n_trusted and float(factors @ variances) <= aim.bound:
            return None
        gains = factors * variances / counts / costs
        seconds = SECONDS_A_COST * self._orderings.batch_size
        n_trusted = min(2 * self._n_trusted, _TRUSTED)
        if counts.min() >= n_trusted and gains.max() <= aim.rate * seconds:
            return None
        return int(np.argmax(gains))

    def _begin(self) -> None:
        """Estimate the slopes, from orderings that are not used for the means."""
        self._slopes[:] = 0.0
        self._ready.clear()
        if self._position_means is not None:
            orders = self._orders(_PILOT, max(self.at_once, _PILOT_UNITS))
            pair = [
                self._unit_means(walk(orders)) for walk in (self._walks[-1], self._position_means)
            ]
            alone, means = (float(each.var(axis=0).sum()) for each in pair)
            self._is_by_position[:] = _POSITION_COST * means < alone
        if len(self._walks) > 1:
            orders = self._orders(_PILOT, self.at_once)
            values = [self._unit_means(walk(orders)) for walk in self._walks]
            centered = [value - value.mean(axis=0) for value in values]
            for level, (one, other) in enumerate(pairwise(centered)):
                square = float((other * other).sum())
                self._slopes[level] = float((one * other).sum()) / square if square > 0 else 0.0
        for level in range(len(self._walks)):
            self._add(level)

    def _orders(self, first: int, n_units: int) -> Orders:
        numbers = range(first, first + n_units)
        return np.concatenate([self._orderings.batch(number) for number in numbers])

    def _unit_means(self, values: Floats) -> Floats:
        means: Floats = values.reshape(-1, self._orderings.batch_size, values.shape[1]).mean(axis=1)
        return means

    def _add(self, level: int) -> None:
        """Add units of a game, which may have been computed ahead."""
        done = int(self._counts[level])
        units = self._ready.pop((level, done), None)
        if units is None:
            units = self._units(level, done)
        mean, total = units.mean(axis=0), done + len(units)
        shift = mean - self._means[level]
        self._spreads[level] += ((units - mean) ** 2).sum(axis=0)
        self._spreads[level] += shift**2 * (done * len(units) / total)
        self._means[level] += shift * (len(units) / total)
        self._counts[level] = total

    def _units(self, level: int, first: int) -> Floats:
        """Return units of a game, less the next one times its slope."""
        orders = self._orders(FIRST_UNIT + level * _APART + first, self.at_once)
        is_last = level + 1 == len(self._walks)
        if is_last and self._is_by_position and self._position_means is not None:
            return self._unit_means(self._position_means(orders))
        values = self._walks[level](orders)
        if level + 1 < len(self._walks) and self._slopes[level]:
            values = values - self._slopes[level] * self._walks[level + 1](orders)
        return self._unit_means(values)
