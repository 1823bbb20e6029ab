"""Run an estimation until a rule, the user or the end of the orderings stops it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from dsage._check import AuditWarning, Setting, Text, refusal, warn
from dsage.data.pools import single_blas
from dsage.estimate.draw_bias import add_draw_bias
from dsage.estimate.loop import Estimation
from dsage.estimate.reasons import StopKind, StopReason, as_reason
from dsage.estimate.result import Estimate
from dsage.estimate.running.bar import Bar, Listener
from dsage.estimate.running.checkpoint import Checkpoint, as_checkpoint, hold
from dsage.estimate.running.outlook import look_ahead, time_limit
from dsage.estimate.running.stopping import (
    DataTolerance,
    Stopping,
    allowed_se,
    error_rule,
    needs_errors,
)
from dsage.games.base import Game

# Parameters of `as_stopping`, which are easily mistaken for options of a run.
_LIMITS = ("tolerance", "absolute", "top_k", "seconds", "n_orderings", "confidence", "min_units")
# Number of units to aim for if the time is too short for two of the usual size.
_ROUGH_UNITS = 8


def estimate(game: Game, **options: Any) -> Iterator[Estimate]:  # noqa: ANN401
    """Estimate the values of a game, and yield the current estimate repeatedly.

    There are no limits or stopping rules: break out of the loop when the estimate is good enough.
    Without a rule, it ends only when nothing is left to evaluate.

    Parameters
    ----------
    game : Game
        The game.
    **options
        As for :class:`~dsage.estimate.Plan`.

    Yields
    ------
    Estimate
        The estimate after some more evaluations.
    """
    return Estimation(game, **options).steps()


def run(
    game: Game,
    *,
    stopping: Stopping | None = None,
    progress: bool | Listener = False,
    checkpoint: str | Path | Checkpoint | None = None,
    **options: Any,  # noqa: ANN401
) -> Estimate:
    """Estimate the values of a game until a stopping rule is met.

    Parameters
    ----------
    game : Game
        The game.
    stopping : Stopping, optional
        When to stop, see :func:`~dsage.estimate.as_stopping`; by default when more computing
        would hardly help, see :class:`~dsage.estimate.DataTolerance`, or, for given orderings,
        after all of them.
    progress : bool or callable, default=False
        Show a progress bar. A callable receives an
        :class:`~dsage.estimate.running.outlook.Outlook` after each step instead.
    checkpoint : str, Path or Checkpoint, optional
        A file for the state of the run. If it already exists, the run resumes from it, with the
        same results as without a break; the file of a different run is an error.
    **options
        As for :class:`~dsage.estimate.Plan`.

    Returns
    -------
    Estimate
        An interrupt (Ctrl-C) ends the run, which returns the estimate so far.
    """
    for option, value in options.items():
        if option in _LIMITS:
            advice = f"Use stopping=as_stopping({option}=...)"
            raise refusal(option, "part of a stopping rule", value, advice, TypeError)
    _check_rule(stopping)
    checkpoint = as_checkpoint(checkpoint)
    with hold(checkpoint):
        if checkpoint is not None and options.get("random_state") is None:
            options["random_state"] = checkpoint.entropy()
        try:
            estimation = Estimation(game, **options)
        except KeyboardInterrupt:
            # While the first level was fitted. What is in a file stays there.
            if checkpoint is not None and checkpoint.path.exists():
                raise
            return _give_up(game, options)
        if checkpoint is not None:
            checkpoint.restore(estimation)
        return refine(estimation, stopping=stopping, progress=progress, checkpoint=checkpoint)


def refine(
    estimation: Estimation,
    *,
    stopping: Stopping | None = None,
    progress: bool | Listener = False,
    checkpoint: str | Path | Checkpoint | None = None,
) -> Estimate:
    """Continue an estimation until a stopping rule is met.

    A run to one tolerance that is refined to a tighter one has the same results as a single run to
    the tighter one.

    Parameters
    ----------
    estimation : Estimation
        The estimation.
    stopping, progress, checkpoint
        As for :func:`run`, except that the state is not restored from the file. Times count from
        the start of the estimation, its plan included, without breaks. At a time limit, the units
        that are complete count; the estimation can be continued as if it had not been ended.

    Returns
    -------
    Estimate
        The final estimate.

    Examples
    --------
    >>> import numpy as np
    >>> from dsage.estimate import as_stopping
    >>> from dsage.games import MomentGame
    >>> X = np.random.default_rng(0).normal(size=(500, 3))
    >>> game = MomentGame(X, X.sum(axis=1), X.sum(axis=1), ["a", "b", "c"])
    >>> estimation = Estimation(game, exact="never", random_state=0)
    >>> rough = refine(estimation, stopping=as_stopping(n_orderings=16))
    >>> fine = refine(estimation, stopping=as_stopping(n_orderings=64))
    >>> rough.n_orderings, fine.n_orderings
    (18, 66)
    """
    result = refine_quietly(estimation, stopping=stopping, progress=progress, checkpoint=checkpoint)
    _warn(result)
    return result


def refine_quietly(
    estimation: Estimation,
    *,
    stopping: Stopping | None = None,
    progress: bool | Listener = False,
    checkpoint: str | Path | Checkpoint | None = None,
) -> Estimate:
    """Continue an estimation as :func:`refine` does, without a warning of what its audit finds."""
    checkpoint = as_checkpoint(checkpoint)
    with hold(checkpoint):
        return _refine(estimation, _choose_rule(estimation, stopping), progress, checkpoint)


def _refine(
    estimation: Estimation,
    rule: Stopping | None,
    progress: bool | Listener,
    checkpoint: Checkpoint | None,
) -> Estimate:
    """Continue an estimation until a rule is met, and keep its state in the checkpoint."""
    estimation.on_pause = None
    if checkpoint is not None:
        checkpoint.require_same(estimation)
        estimation.on_pause = partial(checkpoint.save, estimation)
    estimation.clock.limit = None if rule is None else time_limit(rule)
    asked = error_rule(rule)
    estimation.goal = None if asked is None else partial(allowed_se, asked)
    # BLAS is limited once for the whole run: every new limit takes a thread.
    with single_blas(), Bar(is_shown=progress is True) as bar:
        follow = partial(_report, rule, [bar.show, *([progress] if callable(progress) else [])])
        estimation.on_piece = bar.tick
        try:
            result = _follow(estimation, rule, follow)
            rough = _make_rough(estimation, result)
            if rough is not None:
                rough.on_piece = bar.tick
                result = _follow(rough, rule, follow)
        except Exception as error:
            if checkpoint is not None and checkpoint.path.exists():
                error.add_note(f"The same call resumes from {checkpoint.path}.")
            raise
    if checkpoint is not None and estimation.is_whole:
        checkpoint.save(estimation, is_last=True)
    return result


def _follow(
    estimation: Estimation, rule: Stopping | None, follow: Callable[[Estimation, Estimate], None]
) -> Estimate:
    """Continue an estimation until a rule, the user, or the end of the orderings ends it."""
    current: Estimate | None = None
    reason = StopReason(StopKind.EXHAUSTED)
    try:
        for current in estimation.steps():
            follow(estimation, current)
            found = None if rule is None else rule.reason(current)
            if estimation.clock.is_cut:
                # Which units are complete when the time is up depends on the machine: no other rule
                # counts.
                found = StopReason(StopKind.TIME, {"seconds": estimation.clock.limit or 0.0})
            if found is not None:
                reason = as_reason(found)
                break
    except KeyboardInterrupt:
        reason = StopReason(StopKind.INTERRUPTED)
    # The estimate that the rule saw; after an interrupt, with all evaluations since.
    if current is None or reason.kind is StopKind.INTERRUPTED:
        current = estimation.progress()
    result = replace(current, reason=reason)
    return result if result.interrupted else add_draw_bias(result, estimation)


def _report(
    rule: Stopping | None, listeners: Sequence[Listener], estimation: Estimation, current: Estimate
) -> None:
    """Report the state of a run to listeners."""
    outlook = look_ahead(rule, current, estimation.most_pieces)
    estimation.plan.jobs.expect(outlook.seconds_left)
    outlook = outlook._replace(n_helpers=estimation.plan.jobs.n_helpers)
    for listener in listeners:
        listener(outlook)


def _make_rough(estimation: Estimation, result: Estimate) -> Estimation | None:
    """Return an estimation on fewer rows at a time, if there was no time for two units.

    Its results are not part of the given one, which can be continued.
    """
    clock, pace = estimation.clock, estimation.clock.pace(0)
    is_cut = clock.is_cut and estimation.n_units < 2 and not result.interrupted
    if not is_cut or clock.limit is None or pace is None:
        return None
    n_rows = max(map(len, estimation.plan.shards))
    seconds_a_row = pace / n_rows
    few = max(1, int((clock.limit - clock.seconds) / (_ROUGH_UNITS * seconds_a_row)))
    if few >= n_rows:
        return None
    rough = Estimation.of(estimation.plan.with_rows(few))
    rough.clock.seconds, rough.clock.limit = clock.seconds, clock.limit
    rough.clock.gives_up = False
    warn(
        f"The model is too slow for {clock.limit:g} seconds: the values are based on few rows. "
        "Allow more seconds, or use fewer draws (n_draws), to make them more precise."
    )
    return rough


def _give_up(game: Game, options: dict[str, Any]) -> Estimate:
    """Return the estimate of a run that was interrupted before its first evaluation."""
    estimation = Estimation(game, **{**options, "first_level": "none", "exact": "never"})
    return replace(estimation.progress(), reason=StopReason(StopKind.INTERRUPTED))


def _check_rule(stopping: Stopping | None) -> None:
    if stopping is not None and not isinstance(stopping, Stopping):
        raise refusal("stopping", "a stopping rule", stopping, "Use as_stopping(...)", TypeError)


def _choose_rule(estimation: Estimation, stopping: Stopping | None) -> Stopping | None:
    """Return the rule that ends a run; None if it runs to the end of the orderings."""
    _check_rule(stopping)
    rule = DataTolerance() if stopping is None and not estimation.plan.is_given else stopping
    if rule is not None and not estimation.plan.tells_errors and needs_errors(rule):
        condition = "a number of orderings or a time, as one replicate allows no standard errors"
        advice = "Use n_replicates=2 or more in the game, or as_stopping(n_orderings=...)"
        raise refusal("stopping", condition, rule, advice)
    return rule


def _warn(result: Estimate) -> None:
    """Warn of the features whose value is changed by separation."""
    if result.audit is None or result.estimand == "sage":
        return
    frame = result.audit_frame()
    names = frame.loc[frame["matters"], "feature"].tolist()
    if names:
        text = (
            f"Skipping by separation changes the values of {names} by more than 2 % of the range: "
            "the graph misses dependences, or the model is far from optimal. Look at the audit, "
            "or estimate with "
        )
        warn(Text([text, Setting("estimand", "sage"), "."]), AuditWarning)
