"""The error of the sampler: how much values would change with others that score as well."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from dsage._check import record_warnings
from dsage._random import Streams
from dsage.estimate.inference import intervals, simultaneous_intervals
from dsage.estimate.options import PlanOptions
from dsage.estimate.reasons import StopKind, StopReason
from dsage.estimate.result import Estimate
from dsage.estimate.running.run import run
from dsage.games.base import Floats, Game
from dsage.games.difference import Difference
from dsage.graphs.separation import Oracle
from dsage.orderings import Order
from dsage.samplers import costs
from dsage.samplers.base import Sampler

# The share of the run's evaluations that the check may use, and the number of other samplers.
_SHARE, _MOST_OTHERS = 0.25, 2
# Estimated seconds that a check may always take, within its share of evaluations.
_SECONDS = 1.0
# Pairs of a coalition and a row if the run needs no draws, so that its evaluations are free.
_LEAST_FREE = 4096
# Minimum and target number of units, and their rows, which share the orderings of a unit: many
# units of few rows are better than the reverse, but calls cost time. Rows differ more than
# orderings: once all were visited, and some twice, differences between rows cause no error.
_FEWEST_UNITS, _UNITS = 16, 32
_MOST_ROWS = 64
_ROWS_A_CALL = 16  # to estimate times
# All orderings are enumerated if that takes at most this many times the pairs of a sample.
_FEW_TIMES = 3
# Units before errors are trusted, and units from which steps grow.
_TRUSTED, _LONG = 16, 64
# Microseconds of an evaluation without draws: per feature, and at most, as an ordering shares them.
_FREE, _MOST_FREE = 0.02, 0.4
# Seconds that a fit may always take.
_FIT_SECONDS = 1.0
# Differences below this share of the range of the values are not worth a warning.
_MATTERS = 0.01
# Differences are precise enough if their errors are this share of what matters.
_PRECISE = 0.33


@dataclass(frozen=True, eq=False)
class SamplerCheck:
    """How much each value would change with other samplers.

    Attributes
    ----------
    feature_names : tuple of str
        The features.
    others : tuple of str
        The other samplers: those that score as well as the sampler of the run, or the best of the
        candidates, if it scores clearly better. If no other scores as well, the sampler of the run
        itself, fitted to half of the rows.
    are_better : tuple of bool
        Whether each of them scores clearly better than the sampler of the run.
    differences : array of shape (n_others, n_features)
        Value with the other sampler minus value with the sampler of the run, on common orderings,
        rows and noise.
    se, df : arrays of shape (n_others, n_features)
        Standard errors of the differences, and their degrees of freedom.
    n_evaluated : int
        Pairs of a coalition and a row that were evaluated, with each of the samplers.
    is_own : bool
        Whether the other sampler is the sampler of the run, fitted to half of the rows.
    reason : str
        Why nothing was compared; empty otherwise.
    """

    feature_names: tuple[str, ...]
    others: tuple[str, ...]
    are_better: tuple[bool, ...]
    differences: Floats
    se: Floats
    df: Floats
    n_evaluated: int
    is_own: bool = False
    reason: str = ""

    @classmethod
    def none(cls, feature_names: Sequence[str], reason: str) -> SamplerCheck:
        """Return a check that was not made, and why."""
        empty = np.zeros((0, len(feature_names)))
        return cls(
            tuple(feature_names), (), (), empty, empty.copy(), empty.copy(), 0, reason=reason
        )

    @property
    def errors(self) -> Floats | None:
        """The error of each value from the sampler; None if nothing was compared.

        The root mean square over the other samplers of the differences, without the part that
        their own standard errors explain: ``sqrt(max(0, mean of (difference^2 - se^2)))``.
        """
        if not self.others:
            return None
        squares = (self.differences**2 - self.se**2).mean(axis=0)
        errors: Floats = np.sqrt(np.maximum(squares, 0.0))
        return errors

    def exceeds(self, estimate: Estimate) -> list[str]:
        """Return the features for which another sampler matters more than the other errors.

        The difference is significantly larger, for all features at once, than the standard error
        from orderings, draws and rows together, and than 1 % of the range of the values. Where one
        of these errors is not known, nothing exceeds it.
        """
        limit = _limits(estimate)
        found = np.zeros(len(self.feature_names), dtype=np.bool_)
        for difference, se, df in zip(self.differences, self.se, self.df, strict=True):
            low, high = simultaneous_intervals(difference, se, df=df)
            found |= (low > limit) | (high < -limit)
        return [name for name, is_large in zip(self.feature_names, found, strict=True) if is_large]

    def to_frame(self, confidence: float = 0.95) -> pd.DataFrame:
        """Return the differences, their standard errors and intervals, a line each."""
        frames = [
            pd.DataFrame(columns=["sampler", "feature", "difference", "se", "lower", "upper"])
        ]
        for other, difference, se, df in zip(
            self.others, self.differences, self.se, self.df, strict=True
        ):
            low, high = intervals(difference, se, confidence, df=df)
            columns = {"difference": difference, "se": se, "lower": low, "upper": high}
            frames.append(
                pd.DataFrame({"sampler": other, "feature": list(self.feature_names), **columns})
            )
        return frames[0] if len(frames) == 1 else pd.concat(frames[1:], ignore_index=True)


def _limits(estimate: Estimate) -> Floats:
    """Return the difference from which another sampler matters, for each feature."""
    errors = np.hypot(estimate.se, estimate.se_rows)
    least = _MATTERS * float(np.ptp(estimate.values))
    limits: Floats = np.where(np.isfinite(errors), np.maximum(errors, least), np.inf)
    return limits


@dataclass(frozen=True, eq=False)
class Other:
    """Another sampler: its name, an instance with its options, how to fit it, and its rows."""

    name: str
    sampler: Sampler
    fit: Callable[[], Any]
    n_rows: int
    is_better: bool = False
    is_own: bool = False


@dataclass(frozen=True, eq=False)
class _Enough:
    """Stop when the differences are precise, or the next step would use more pairs than allowed.

    `allowed` are the standard errors, by feature, that are small compared with the other errors.
    """

    n_pairs: int
    allowed: Floats

    def reason(self, progress: Estimate) -> StopReason | None:
        used = progress.history.n_evaluated
        last = int(used[-1]) - (int(used[-2]) if len(used) > 1 else 0)
        # Steps of a long comparison grow by an eighth.
        following = last if progress.n_units < _LONG else 1.2 * last
        is_precise = progress.n_units >= _TRUSTED and bool((progress.se <= self.allowed).all())
        if used[-1] + following <= self.n_pairs and not is_precise:
            return None
        return StopReason(StopKind.ORDERINGS, {"n": progress.n_orderings, "is_all": False})


def check_by_others(
    game: Game,
    make_game: Callable[[Any], Game],
    others: Sequence[Other],
    estimate: Estimate,
    *,
    sampler: Sampler,
    oracle: Oracle | None,
    n_draws: int,
    options: PlanOptions,
    seed: int,
    n_draws_of_run: int | None = None,
) -> SamplerCheck:
    """Estimate how much the values of a run would change with other samplers.

    Each other sampler is compared with the one of the run by the :class:`~dsage.games.Difference`
    of their games: the same model, orderings, rows and noise. Together the comparisons use at most
    25 % of the run's evaluations, and of its estimated time, or one second (if the run needs no
    draws, and its evaluations are free, at least 4,096 pairs of a coalition and a row).

    Parameters
    ----------
    game : Game
        The game of the run.
    make_game : callable
        Makes the game with another fitted sampler, with the same noise.
    others : sequence of Other
        Other samplers, the most important first; at most two are compared.
    estimate : Estimate
        The result of the run.
    sampler : Sampler
        The sampler of the run.
    oracle : Oracle or None
        The separations of the run.
    n_draws : int
        Draws for each row and coalition.
    options : PlanOptions
        The options of the run.
    seed : int
        Seed of the orderings and of the rows.
    n_draws_of_run : int, optional
        Draws in the run, if it needs more: a bias from few is nearly the same with both samplers.
    """
    names = estimate.feature_names
    if estimate.interrupted:
        return SamplerCheck.none(names, "the run was interrupted")
    if estimate.reason is not None and estimate.reason.kind is StopKind.TIME:
        return SamplerCheck.none(names, "the time was up: allow more seconds, or set a tolerance")
    parts = [each.feature_names for each in game.parts]
    costs_of = _Costs(
        estimate,
        sampler,
        n_draws,
        len(parts[0]),
        is_drawn=game.is_drawn,
        times=(n_draws_of_run or n_draws) / n_draws,
    )
    able = [each for each in others if costs_of.can_fit(each)][:_MOST_OTHERS]
    if not able:
        reason = "no other sampler scores as well"
        if others:
            reason = f"fitting {others[0].name} would take too long for this check"
        return SamplerCheck.none(names, reason)
    oracle = None if estimate.estimand == "sage" else oracle
    plan = _plan_options(options, seed)
    # Pairs of a unit, by row.
    n_each = (len(names) + 1) * plan.make_orderings(names, Streams(0)).batch_size
    if estimate.is_exact:
        n_all = math.ceil(estimate.n_evaluated / estimate.n_units)
        if n_all <= _FEW_TIMES * n_each:
            plan, n_each = replace(plan, exact="always"), n_all
    least = _FEWEST_UNITS * n_each
    while able and costs_of.n_pairs(able[-1], len(able)) < least:
        able.pop()
    if not able:
        return SamplerCheck.none(names, "the run has too few evaluations for a comparison")
    found = []
    for other in able:
        n_pairs = costs_of.n_pairs(other, len(able))
        n_rows = max(1, min(n_pairs // (_UNITS * n_each), _MOST_ROWS))
        settings = vars(replace(plan, rows_per_ordering=n_rows))
        # The run has shown its warnings, and warnings of other samplers would be confusing.
        with record_warnings(show=False):
            difference = run(
                Difference(make_game(other.fit()), game),
                oracle=oracle,
                stopping=_Enough(n_pairs, _PRECISE * _limits(estimate)),
                **settings,
            )
        if difference.interrupted:
            return SamplerCheck.none(names, "the comparison with other samplers was interrupted")
        found.append(difference)
    return SamplerCheck(
        names,
        tuple(other.name for other in able),
        tuple(other.is_better for other in able),
        np.stack([each.values for each in found]),
        np.stack([each.se for each in found]),
        np.stack([each.df for each in found]),
        sum(each.n_evaluated for each in found),
        is_own=any(other.is_own for other in able),
    )


def _plan_options(options: PlanOptions, seed: int) -> PlanOptions:
    """Return the options of the comparison: as for the run, but without audit and controls."""
    # Kinds of orderings differ in their errors, and have batches of many; the values are the same.
    is_kind = isinstance(options.orderings, str) and not isinstance(options.orderings, Order)
    return replace(
        options,
        estimand="d-sage",
        # Both games have the same first level, which cancels.
        first_level="none",
        exact="never",
        audit=False,
        orderings="antithetic" if is_kind else options.orderings,
        random_state=seed,
    )


class _Costs:
    """The cost of evaluations, from their counts, and the budget of the check.

    An evaluation of the run has `times` as many draws.
    """

    def __init__(
        self,
        estimate: Estimate,
        sampler: Sampler,
        n_draws: int,
        n_features: int,
        *,
        is_drawn: bool,
        times: float = 1.0,
    ) -> None:
        self._n_draws, self._n_features, self._is_drawn = n_draws, n_features, is_drawn
        self._n_players = len(estimate.feature_names)
        free = 1e-6 * min(_FREE * n_features, _MOST_FREE)
        self._own = self._pair(sampler) if is_drawn else free
        self._n_left = _SHARE * times * estimate.n_evaluated
        self._left = max(self._n_left * self._own, _SECONDS if is_drawn else 0.0)

    def _pair(self, sampler: Sampler) -> float:
        """Return the seconds of a pair of a coalition and a row."""
        n_drawn = _ROWS_A_CALL * self._n_draws
        drawn = costs.draw_seconds(sampler, 1, n_drawn, self._n_features)
        return (drawn + costs.predict_seconds(n_drawn)) / _ROWS_A_CALL

    def can_fit(self, other: Other) -> bool:
        """Return whether fitting a sampler is short enough."""
        seconds = costs.fit_seconds(other.sampler, other.n_rows, self._n_features)
        return seconds is None or seconds <= max(_FIT_SECONDS, self._left)

    def n_pairs(self, other: Other, n_others: int) -> int:
        """Return the number of pairs to evaluate with both samplers."""
        # Both samplers evaluate each pair.
        n_pairs = math.floor(self._left / (self._own + self._pair(other.sampler)) / n_others)
        if self._is_drawn:
            return min(n_pairs, math.floor(self._n_left / 2 / n_others))
        return max(n_pairs, _LEAST_FREE, 4 * _TRUSTED * (self._n_players + 1))
