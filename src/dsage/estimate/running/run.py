"""Run the loop to an end: a rule, the user, or nothing left to do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any

from dsage._check import refusal, warn
from dsage.estimate.loop import Estimation
from dsage.estimate.reasons import StopKind, StopReason, as_reason
from dsage.estimate.result import Estimate
from dsage.estimate.running.bar import Bar
from dsage.estimate.running.checkpoint import Checkpoint, as_checkpoint
from dsage.estimate.running.stopping import Stopping, Tolerance, as_stopping, needs_errors
from dsage.games.base import Game


def estimate(game: Game, **options: Any) -> Iterator[Estimate]:  # noqa: ANN401
    """Estimate the values of a game, and yield what is known, again and again.

    Bars, limits and rules live outside: break when it is enough. It ends by itself only where
    nothing is left to evaluate.

    Parameters
    ----------
    game : Game
        The game.
    **options
        As for :class:`~dsage.estimate.Plan`.

    Yields
    ------
    Estimate
        What is known after some more evaluations.
    """
    return Estimation(game, **options).steps()


def run(
    game: Game,
    *,
    stopping: Stopping | None = None,
    progress: bool = False,
    checkpoint: str | Path | Checkpoint | None = None,
    **options: Any,  # noqa: ANN401
) -> Estimate:
    """Estimate the values of a game until a rule says that it is enough.

    Parameters
    ----------
    game : Game
        The game.
    stopping : Stopping, optional
        When to stop, see :func:`~dsage.estimate.as_stopping`; by default when the largest standard
        error is 1 % of the range of the values, or, where orderings are given, after all of them.
    progress : bool, default=False
        Show a progress bar.
    checkpoint : str, Path or Checkpoint, optional
        A file that keeps the state of the run. Where it is there already, the run goes on from it,
        and is what it would have been without a break; the file of another run is refused.
    **options
        As for :class:`~dsage.estimate.Plan`.

    Returns
    -------
    Estimate
        An interrupt (Ctrl-C) ends the run with what is known by then.
    """
    for option, value in options.items():
        if option in signature(as_stopping).parameters:
            advice = f"Give stopping=as_stopping({option}=...)"
            raise refusal(option, "left to a rule", value, advice, TypeError)
    checkpoint = as_checkpoint(checkpoint)
    if checkpoint is not None and options.get("random_state") is None:
        options["random_state"] = checkpoint.entropy()
    estimation = Estimation(game, **options)
    if checkpoint is not None:
        checkpoint.restore(estimation)
    return refine(estimation, stopping=stopping, progress=progress, checkpoint=checkpoint)


def refine(
    estimation: Estimation,
    *,
    stopping: Stopping | None = None,
    progress: bool = False,
    checkpoint: str | Path | Checkpoint | None = None,
) -> Estimate:
    """Go on with an estimation until a rule says that it is enough.

    Nothing starts over: a run to a tolerance, refined to a tighter one, is the run to the tighter
    one.

    Parameters
    ----------
    estimation : Estimation
        Where it stands.
    stopping, progress, checkpoint
        As for :func:`run`, but that the state in a file is not gone back to. Times count from the
        start of the estimation, without breaks.

    Returns
    -------
    Estimate
        What is known at the end.

    Examples
    --------
    >>> import numpy as np
    >>> from dsage.games import MomentGame
    >>> X = np.random.default_rng(0).normal(size=(500, 3))
    >>> game = MomentGame(X, X.sum(axis=1), X.sum(axis=1), ["a", "b", "c"])
    >>> estimation = Estimation(game, exact="never", random_state=0)
    >>> rough = refine(estimation, stopping=as_stopping(n_orderings=16))
    >>> fine = refine(estimation, stopping=as_stopping(n_orderings=64))
    >>> rough.n_orderings, fine.n_orderings
    (18, 66)
    """
    rule = _rule(estimation, stopping)
    checkpoint = as_checkpoint(checkpoint)
    estimation.on_pause = None
    if checkpoint is not None:
        checkpoint.require_same(estimation)
        estimation.on_pause = partial(checkpoint.save, estimation)
    known: Estimate | None = None
    reason = StopReason(StopKind.EXHAUSTED)
    with Bar(rule, is_shown=progress) as bar:
        try:
            for known in estimation.steps():
                bar.show(known)
                found = None if rule is None else rule.reason(known)
                if found is not None:
                    reason = as_reason(found)
                    break
        except KeyboardInterrupt:
            reason = StopReason(StopKind.INTERRUPTED)
        except Exception as error:
            if checkpoint is not None and checkpoint.path.exists():
                error.add_note(f"The same call goes on from {checkpoint.path}.")
            raise
    if checkpoint is not None and estimation.is_whole:
        checkpoint.save(estimation, is_last=True)
    # What the rule saw; after an interrupt, what was learned since.
    if known is None or reason.kind is StopKind.INTERRUPTED:
        known = estimation.progress()
    result = replace(known, reason=reason)
    _warn(result)
    return result


def _rule(estimation: Estimation, stopping: Stopping | None) -> Stopping | None:
    """Return the rule that ends a run; None where only the end of the orderings does."""
    if stopping is not None and not isinstance(stopping, Stopping):
        raise refusal(
            "stopping",
            "a rule",
            stopping,
            "Make one, such as as_stopping(tolerance=0.05)",
            TypeError,
        )
    rule = Tolerance() if stopping is None and not estimation.plan.is_given else stopping
    if rule is not None and not estimation.plan.tells_errors and needs_errors(rule):
        raise refusal(
            "stopping",
            "a number of orderings or a time where one group of draws tells no errors",
            rule,
            "Give the game two groups or more, or as_stopping(n_orderings=...)",
        )
    return rule


def _warn(result: Estimate) -> None:
    """Name the features whose value separation changes, where that matters."""
    if result.audit is None or result.estimand == "sage":
        return
    frame = result.audit_frame()
    names = frame.loc[frame["matters"], "feature"].tolist()
    if names:
        warn(
            f"Skipping by separation changes the values of {names} by more than 2 % of the range: "
            "the graph misses dependences, or the model is far from optimal. Look at the audit, "
            'or estimate with estimand="sage".'
        )
