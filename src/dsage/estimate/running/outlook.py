"""Forecast of a run: its current error, and the work and time that are left."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dsage.estimate.result import Estimate
from dsage.estimate.running.stopping import (
    AbsoluteTolerance,
    AnyOf,
    DataTolerance,
    NOrderings,
    Stopping,
    TimeBudget,
    Tolerance,
    allowed_se,
    value_scale,
)

# Independent pieces from which errors suffice for a forecast, though not for a decision.
_FEWEST_UNITS = 4


class Outlook(NamedTuple):
    """The current state of a run, and the work until a rule ends it.

    Attributes
    ----------
    error : float or None
        Standard error of the feature that is furthest from its goal, or the largest one if there is
        no goal, as a share of the range of the values. None while it is unknown.
    goal : float or None
        The error with which this feature would meet the rule, as a share of the range; None if the
        rule does not depend on errors.
    n_units : int
        Independent pieces that the error is based on: units of orderings, or rows if all orderings
        are enumerated.
    n_evaluated : int
        Pairs of a coalition and a row that were evaluated so far.
    n_expected : int or None
        The same at the end of the run; None if it is unknown.
    seconds : float
        Seconds so far.
    seconds_left : float or None
        Seconds until the end of the run; None if they are unknown.
    n_helpers : int
        Processes that help with the run automatically, without `n_jobs`.
    """

    error: float | None
    goal: float | None
    n_units: int
    n_evaluated: int
    n_expected: int | None
    seconds: float
    seconds_left: float | None
    n_helpers: int = 0

    @property
    def share(self) -> float | None:
        """The share of the evaluations that is done; None if it is unknown."""
        return None if self.n_expected is None else self.n_evaluated / max(self.n_expected, 1)


def look_ahead(rule: Stopping | None, estimate: Estimate, most_units: int | None = None) -> Outlook:
    """Return the outlook of a run.

    Parameters
    ----------
    rule : Stopping or None
        The rule that ends it; None if it ends with the last ordering.
    estimate : Estimate
        The current estimate.
    most_units : int, optional
        The number of units after which there is nothing left to evaluate.

    Notes
    -----
    Errors fall with the square root of the number of units: with twice the error that a rule
    allows, a quarter of the work is done. From few units, errors are only roughly known.
    """
    shares = [] if rule is None else [share_done(rule, estimate)]
    if most_units is not None:
        shares.append(min(estimate.n_units / most_units, 1.0))
    # The first of several limits ends the run.
    share = max((each for each in shares if each is not None), default=None)
    error, goal = _find_error(rule, estimate)
    n_done, pace = estimate.n_evaluated, _pace(estimate)
    # More evaluations, until either of the limits.
    left = []
    if share:
        left.append(math.ceil((math.ceil(n_done / share) - n_done) * _narrowing(estimate)))
    seconds_left = None if not left else left[0] * pace
    limit = None if rule is None else time_limit(rule)
    if limit is not None:
        until = max(limit - estimate.seconds, 0.0)
        left.append(round(until / pace) if pace > 0 else 0)
        seconds_left = until if seconds_left is None else min(seconds_left, until)
    n_expected = n_done + min(left) if left else None
    return Outlook(
        error,
        goal,
        estimate.n_units,
        estimate.n_evaluated,
        n_expected,
        estimate.seconds,
        seconds_left,
    )


def share_done(rule: Stopping, progress: Estimate) -> float | None:
    """Return the approximate share of the work that is done, or None if unknown.

    Time limits are ignored: they do not limit the work itself.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from dsage.estimate import as_stopping
    >>> progress = SimpleNamespace(values=np.array([0.0, 2.0]), se=np.array([0.01, 0.04]),
    ...                            n_units=50, seconds=3.0)
    >>> share_done(as_stopping(tolerance=0.01), progress)
    0.25
    >>> share_done(as_stopping(seconds=6.0), progress) is None
    True
    """
    if isinstance(rule, AnyOf):
        shares = [share_done(each, progress) for each in rule.rules]
        return max((share for share in shares if share is not None), default=None)
    if isinstance(rule, NOrderings):
        return min(progress.n_orderings / rule.n, 1.0)
    if not isinstance(rule, (DataTolerance, Tolerance, AbsoluteTolerance)):
        return None
    furthest = _find_furthest(rule, progress)
    if furthest is None:
        return None
    se, allowed = furthest
    excess = 0.0 if se == 0 else math.inf if allowed == 0 else se / allowed
    n_needed = max(progress.n_units * excess**2, float(rule.min_units))
    return min(progress.n_units / n_needed, 1.0)


def time_limit(rule: Stopping) -> float | None:
    """Return the time after which a rule ends a run; None if it has no limit.

    Examples
    --------
    >>> from dsage.estimate import as_stopping
    >>> time_limit(as_stopping(tolerance=0.01, seconds=6.0))
    6.0
    """
    if isinstance(rule, TimeBudget):
        return rule.seconds
    if not isinstance(rule, AnyOf):
        return None
    limits = [time_limit(each) for each in rule.rules]
    return min((limit for limit in limits if limit is not None), default=None)


def _find_error(rule: Stopping | None, estimate: Estimate) -> tuple[float | None, float | None]:
    """Return the error and the goal of an outlook."""
    scale = value_scale(estimate)
    if not scale > 0:
        return None, None
    rules = rule.rules if isinstance(rule, AnyOf) else () if rule is None else (rule,)
    for each in rules:
        if isinstance(each, (DataTolerance, Tolerance, AbsoluteTolerance)):
            found = _find_furthest(each, estimate)
            return (None, None) if found is None else (found[0] / scale, found[1] / scale)
    largest = float(np.max(estimate.se, initial=0.0))
    return (largest / scale if math.isfinite(largest) else None), None


def _find_furthest(
    rule: DataTolerance | Tolerance | AbsoluteTolerance, progress: Estimate
) -> tuple[float, float] | None:
    """Return the standard error furthest above what a rule allows, and the allowed one."""
    if progress.n_units < _FEWEST_UNITS or not np.isfinite(progress.se).all():
        return None
    allowed = np.broadcast_to(allowed_se(rule, progress), progress.se.shape)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(progress.se > 0, progress.se / allowed, 0.0)
    at = int(np.argmax(ratios))
    return float(progress.se[at]), float(allowed[at])


def _narrowing(estimate: Estimate) -> float:
    """Return the evaluations of a recent unit as a share of the mean over all units: at most 1.

    Units become smaller once some of the features need no more of them.
    """
    history = estimate.history
    if len(history) < 2:
        return 1.0
    n_units = int(history.n_units[-1] - history.n_units[-2])
    n_recent = int(history.n_evaluated[-1] - history.n_evaluated[-2])
    n_all, n_evaluated = int(history.n_units[-1]), int(history.n_evaluated[-1])
    if n_units <= 0 or n_recent <= 0 or n_evaluated <= 0:
        return 1.0
    return min(n_recent / n_units * (n_all / n_evaluated), 1.0)


def _pace(estimate: Estimate) -> float:
    """Return the seconds per evaluation: from the latest history, if it is long enough."""
    history = estimate.history
    first = (len(history) - 1) // 2
    n_between = estimate.n_evaluated - int(history.n_evaluated[first]) if len(history) > 1 else 0
    if n_between <= 0:
        return estimate.seconds / max(estimate.n_evaluated, 1)
    return (estimate.seconds - float(history.seconds[first])) / n_between
