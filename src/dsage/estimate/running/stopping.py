"""Stopping rules: when an estimate is good enough, and why.

Unless otherwise stated, standard errors here are from orderings and draws, which more computing
reduces, not from the choice of the rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from dsage._check import check_count, check_real, refusal
from dsage.estimate.inference import MIN_UNITS, simultaneous_intervals
from dsage.estimate.reasons import StopKind, StopReason
from dsage.estimate.result import Estimate
from dsage.games.base import Floats


@runtime_checkable
class Stopping(Protocol):
    """A stopping rule: any object with this method."""

    def reason(self, progress: Estimate) -> StopReason | str | None:
        """Return why to stop, as a `StopReason` or a sentence, or None to continue."""


@dataclass(frozen=True)
class Tolerance:
    """Stop when the largest standard error is a small share of the range of the values.

    The rule is ``max_j se_j <= relative * scale`` with ``scale = max phi - min phi``. The range of
    nearly equal values is indistinguishable from zero, so the scale is at least
    ``relative * max |phi|``; for a single feature it is ``|phi|``. If all values are zero, the rule
    is met only if the errors are zero, too, so limit the time or the orderings as well.

    Parameters
    ----------
    relative : float, default=0.01
        Share of the range.
    min_units : int, default=30
        Number of units needed before the standard errors are trusted.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> progress = SimpleNamespace(values=np.array([0.0, 2.0]), se=np.array([0.01, 0.02]),
    ...                            n_units=50)
    >>> str(Tolerance(0.01).reason(progress))
    'the largest standard error, 0.02, is 1 % of the range of the values (tolerance 1 %)'
    >>> Tolerance(0.005).reason(progress) is None
    True
    """

    relative: float = 0.01
    min_units: int = MIN_UNITS

    def __post_init__(self) -> None:
        check_real(self.relative, "tolerance", above=0.0, high=1.0)
        check_count(self.min_units, "min_units", minimum=2)

    def reason(self, progress: Estimate) -> StopReason | None:
        """Return why to stop, or None to continue."""
        worst = _largest_se(progress, self.min_units)
        if worst is None or worst > allowed_se(self, progress):
            return None
        largest, spread = _largest_and_spread(progress)
        errors = {"se": worst, "allowed": self.relative}
        scale = {"spread": spread, "largest": largest, "n_features": len(progress.values)}
        return StopReason(StopKind.TOLERANCE, errors | scale)


@dataclass(frozen=True)
class DataTolerance:
    """Stop when more computing would hardly make the values of the population more precise.

    The rule is ``se_j <= max(share * se_rows_j, relative * scale)`` for every feature, with the
    error ``se_rows`` from the choice of the evaluation rows, which only more data reduces, and the
    scale of :class:`Tolerance`. With a share of one third, an interval for the population is at
    most 5 % wider than it would be after endless computing.

    Parameters
    ----------
    relative : float, default=0.01
        Share of the range below which errors are always small enough.
    share : float, default=1/3
        Share of the error from the rows.
    min_units : int, default=30
        Number of units needed before the standard errors are trusted.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> progress = SimpleNamespace(values=np.array([0.0, 2.0]), se=np.array([0.01, 0.1]),
    ...                            se_rows=np.array([0.0, 0.4]), n_units=50)
    >>> str(DataTolerance().reason(progress))
    'more computing would hardly help: its errors are at most 33.3 % of those from the choice of
    the rows, or 1 % of the range of the values'
    """

    relative: float = 0.01
    share: float = 1 / 3
    min_units: int = MIN_UNITS

    def __post_init__(self) -> None:
        check_real(self.relative, "relative", above=0.0, high=1.0)
        check_real(self.share, "share", above=0.0, high=1.0)
        check_count(self.min_units, "min_units", minimum=2)

    def reason(self, progress: Estimate) -> StopReason | None:
        """Return why to stop, or None to continue."""
        if _largest_se(progress, self.min_units) is None:
            return None
        small = Tolerance(self.relative, self.min_units).reason(progress)
        if small is not None:
            # This is more informative, and zero errors are zero whatever the rows.
            return small
        if (progress.se > allowed_se(self, progress)).any():
            return None
        return StopReason(StopKind.DATA, {"share": self.share, "relative": self.relative})


@dataclass(frozen=True)
class AbsoluteTolerance:
    """Stop when every standard error is at most a given number, in units of the loss.

    Parameters
    ----------
    absolute : float
        The largest standard error.
    min_units : int, default=30
        Number of units needed before the standard errors are trusted.
    """

    absolute: float
    min_units: int = MIN_UNITS

    def __post_init__(self) -> None:
        check_real(self.absolute, "absolute", above=0.0, high=np.inf)
        check_count(self.min_units, "min_units", minimum=2)

    def reason(self, progress: Estimate) -> StopReason | None:
        """Return why to stop, or None to continue."""
        worst = _largest_se(progress, self.min_units)
        if worst is None or worst > self.absolute:
            return None
        return StopReason(StopKind.ABSOLUTE, {"se": worst, "allowed": self.absolute})


@dataclass(frozen=True)
class TopK:
    """Stop when it is settled which k features have the largest values.

    This is the case when the simultaneous confidence intervals of the k largest do not overlap
    the intervals of the others. Their own order may still be open. The confidence is for a single
    look; repeated looks increase the probability of an error.

    Parameters
    ----------
    k : int
        Number of features.
    confidence : float, default=0.95
        Joint confidence of the intervals.
    min_units : int, default=30
        Number of units needed before the standard errors are trusted.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> progress = SimpleNamespace(values=np.array([2.5, 0.1, 2.0]), se=np.full(3, 0.2), n_units=50)
    >>> str(TopK(2).reason(progress))
    'the 2 largest values are settled with confidence 95 %'
    >>> TopK(1).reason(progress) is None
    True
    """

    k: int
    confidence: float = 0.95
    min_units: int = MIN_UNITS

    def __post_init__(self) -> None:
        check_count(self.k, "top_k")
        check_real(self.confidence, "confidence", above=0.0, high=np.nextafter(1.0, 0.0))
        check_count(self.min_units, "min_units", minimum=2)

    def reason(self, progress: Estimate) -> StopReason | None:
        """Return why to stop, or None to continue."""
        if _largest_se(progress, self.min_units) is None:
            return None
        n_features = len(progress.values)
        numbers = {"k": self.k, "confidence": self.confidence, "n_features": n_features}
        if self.k >= n_features:
            return StopReason(StopKind.TOP_K, numbers)
        low, high = simultaneous_intervals(
            progress.values, progress.se, self.confidence, df=progress.n_units - 1
        )
        order = np.argsort(-progress.values, kind="stable")
        if low[order[: self.k]].min() < high[order[self.k :]].max():
            return None
        return StopReason(StopKind.TOP_K, numbers)


@dataclass(frozen=True)
class TimeBudget:
    """Stop after a given time.

    Parameters
    ----------
    seconds : float
        The time in seconds.
    """

    seconds: float

    def __post_init__(self) -> None:
        check_real(self.seconds, "seconds", above=0.0, high=np.inf)

    def reason(self, progress: Estimate) -> StopReason | None:
        """Return why to stop, or None to continue."""
        if progress.seconds < self.seconds:
            return None
        return StopReason(StopKind.TIME, {"seconds": self.seconds})


@dataclass(frozen=True)
class NOrderings:
    """Stop after a given number of orderings.

    Parameters
    ----------
    n : int
        The number of orderings.
    """

    n: int

    def __post_init__(self) -> None:
        check_count(self.n, "n_orderings")

    def reason(self, progress: Estimate) -> StopReason | None:
        """Return why to stop, or None to continue."""
        if progress.n_orderings < self.n and not progress.is_exact:
            return None
        numbers = {"n": progress.n_orderings, "is_all": progress.is_exact}
        return StopReason(StopKind.ORDERINGS, numbers)


@dataclass(frozen=True)
class AnyOf:
    """Stop as soon as one of several rules is met.

    Parameters
    ----------
    rules : sequence of rules
        The rules; the first that is met provides the reason.
    """

    rules: tuple[Stopping, ...]

    def __init__(self, rules: Iterable[Stopping]) -> None:
        given = tuple(rules)
        for rule in given:
            if not isinstance(rule, Stopping):
                raise refusal(
                    "rules", "objects with a method reason", rule, "Use TimeBudget(60)", TypeError
                )
        if not given:
            raise refusal("rules", "at least one", [], "Without a rule the run would not end")
        object.__setattr__(self, "rules", given)

    def reason(self, progress: Estimate) -> StopReason | str | None:
        """Return why to stop, or None to continue."""
        for rule in self.rules:
            reason = rule.reason(progress)
            if reason is not None:
                return reason
        return None


def as_stopping(
    *,
    tolerance: float | None = None,
    absolute: float | None = None,
    top_k: int | None = None,
    seconds: float | None = None,
    n_orderings: int | None = None,
    confidence: float = 0.95,
    min_units: int = MIN_UNITS,
) -> Stopping:
    """Return a rule that stops at the first of several limits.

    Parameters
    ----------
    tolerance : float, optional
        Largest standard error as a share of the range of the values; see `Tolerance`.
    absolute : float, optional
        Largest standard error; see `AbsoluteTolerance`.
    top_k : int, optional
        Number of leading features to settle; see `TopK`.
    seconds : float, optional
        Time; see `TimeBudget`.
    n_orderings : int, optional
        Number of orderings; see `NOrderings`.
    confidence : float, default=0.95
        Joint confidence for `top_k`.
    min_units : int, default=30
        Number of units needed before the standard errors are trusted.

    Examples
    --------
    >>> as_stopping(seconds=60)
    TimeBudget(seconds=60)
    >>> as_stopping(tolerance=0.01, seconds=60)
    AnyOf(rules=(Tolerance(relative=0.01, min_units=30), TimeBudget(seconds=60)))
    """
    rules: list[Stopping] = []
    if tolerance is not None:
        rules.append(Tolerance(tolerance, min_units))
    if absolute is not None:
        rules.append(AbsoluteTolerance(absolute, min_units))
    if top_k is not None:
        rules.append(TopK(top_k, confidence, min_units))
    if n_orderings is not None:
        rules.append(NOrderings(n_orderings))
    if seconds is not None:
        rules.append(TimeBudget(seconds))
    if not rules:
        limits = "one of tolerance, absolute, top_k, seconds and n_orderings"
        advice = "Without a limit the run would not end; tolerance=0.01 is usual"
        raise refusal(limits, "given", None, advice)
    return rules[0] if len(rules) == 1 else AnyOf(rules)


def needs_errors(rule: Stopping) -> bool:
    """Return whether a rule of this module needs standard errors."""
    if isinstance(rule, AnyOf):
        return all(map(needs_errors, rule.rules))
    return isinstance(rule, (DataTolerance, Tolerance, AbsoluteTolerance, TopK))


def error_rule(
    rule: Stopping | None,
) -> DataTolerance | Tolerance | AbsoluteTolerance | None:
    """Return the part of a rule that requires small standard errors of all features, if any.

    There is none if another part has other conditions on the errors.
    """
    if isinstance(rule, (DataTolerance, Tolerance, AbsoluteTolerance)):
        return rule
    if not isinstance(rule, AnyOf) or any(isinstance(each, TopK) for each in rule.rules):
        return None
    found = (error_rule(each) for each in rule.rules)
    return next((each for each in found if each is not None), None)


def allowed_se(
    rule: DataTolerance | Tolerance | AbsoluteTolerance, progress: Estimate
) -> float | Floats:
    """Return the largest standard error with which a rule is met; it may depend on the feature."""
    if isinstance(rule, AbsoluteTolerance):
        return rule.absolute
    largest, spread = _largest_and_spread(progress)
    allowed = rule.relative * max(spread, rule.relative * largest)
    if isinstance(rule, Tolerance):
        return allowed
    # Of a single row there is no error from the choice of rows.
    return np.maximum(rule.share * np.nan_to_num(progress.se_rows), allowed)


def value_scale(progress: Estimate) -> float:
    """Return the range of the values, which errors are shown relative to."""
    return _largest_and_spread(progress)[1]


def _largest_and_spread(progress: Estimate) -> tuple[float, float]:
    """Return the largest absolute value, and the range that errors are compared with."""
    largest = float(np.max(np.abs(progress.values), initial=0.0))
    single = len(progress.values) == 1
    return largest, largest if single or not largest else float(np.ptp(progress.values))


def _largest_se(progress: Estimate, min_units: int) -> float | None:
    """Return the largest standard error, or None while it is not trusted."""
    if progress.n_units < min_units or not np.isfinite(progress.se).all():
        return None
    return float(np.max(progress.se, initial=0.0))
