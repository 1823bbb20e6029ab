"""Run an estimation of local values."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dsage._check import check_member
from dsage.data.frames import take_rows
from dsage.estimate.local.plan import LocalPlan
from dsage.estimate.local.result import LocalEstimate, RowAudit, RowParts
from dsage.estimate.loop import Estimation
from dsage.estimate.options import PlanOptions
from dsage.estimate.result import PARTS, Estimate
from dsage.estimate.running.bar import Listener
from dsage.estimate.running.checkpoint import Checkpoint, as_checkpoint, hold
from dsage.estimate.running.run import refine_quietly
from dsage.estimate.running.stopping import AnyOf, Stopping, TimeBudget, Tolerance
from dsage.games.base import Floats, Game
from dsage.graphs.separation import Oracle


def run_local(
    game: Game,
    *,
    oracle: Oracle | None = None,
    stopping: Stopping | None = None,
    progress: bool | Listener = False,
    checkpoint: str | Path | Checkpoint | None = None,
    **options: Any,  # noqa: ANN401
) -> LocalEstimate:
    """Estimate local values: what each feature adds to the prediction, or the loss, of each row.

    With ``v_x(S) = f_S(x) = E[f(X) | x_S]``, the local value of feature j at row x is the mean over
    orderings of ``f_{S+j}(x) - f_S(x)``, S the features before j. Without an oracle these are
    conditional SHAP values, which sum for each row to its prediction minus the mean prediction.
    With an oracle, each coalition is replaced by its Markov boundary (d-SHAP): for a model that is
    optimal for squared error or cross entropy the values are the same, and separated features
    contribute exactly zero. For other models they sum to the part of the prediction that the Markov
    blanket explains.

    For a game of losses, ``v_x(S) = -l(f_S(x), y)``: the values are reductions of the row's loss,
    and their means over rows are SAGE values.

    Parameters
    ----------
    game : OutputGame or LossGame, or Grouped of one
        The model, the sampler and the rows to explain, with their targets if losses are explained.
    oracle : Oracle, optional
        The features that are separated from the target given a coalition:
        ``graph.oracle(target, features=...)``.
    stopping : Stopping, optional
        When to stop, see :func:`~dsage.estimate.as_stopping`; by default when the largest standard
        error is 1 % of the range of the values. Rows are processed in chunks, and the rule applies
        to each of them; a time limit is divided among the chunks.
    progress : bool or callable, default=False
        Show a progress bar for each chunk, or a listener; see :func:`~dsage.estimate.run`.
    checkpoint : str, Path or Checkpoint, optional
        A file for the state of the run; see :func:`~dsage.estimate.run`. Further chunks of rows
        have their own files next to it.
    **options
        As for :class:`~dsage.estimate.Plan`, except that `audit` is False by default;
        `rows_per_ordering` is the number of rows per chunk, by default as many as have about
        16,000 values together.

    Returns
    -------
    LocalEstimate
        An interrupt (Ctrl-C) ends the run, which returns the rows that were started.

    Examples
    --------
    >>> from dsage import Graph
    >>> from dsage.games import OutputGame
    >>> from dsage.samplers import Gaussian
    >>> from dsage.models.model import as_model
    >>> graph = Graph(["a", "b", "y"], [("a", "b"), ("b", "y")])
    >>> model = as_model(lambda rows: 2 * np.asarray(rows)[:, 1], "squared_error", affine=True)
    >>> sampler = Gaussian.from_moments(np.zeros(2), [[1.0, 0.5], [0.5, 1.0]], ["a", "b"])
    >>> game = OutputGame(model, sampler, np.array([[1.0, 2.0], [0.0, -1.0]]))
    >>> run_local(game).values  # a predicts b while b is unknown
    array([[ 0.5,  3.5],
           [ 0. , -2. ]])
    >>> local = run_local(game, oracle=graph.oracle("y"))
    >>> bool(np.allclose(local.values, run_local(game).values)), local.is_exact
    (True, True)
    """
    for option in options:
        check_member(option, PlanOptions.names(), "each option", "the options of local values")
    first = as_checkpoint(checkpoint)
    with hold(first):
        return _run(game, oracle, stopping, progress, first, options)


def _run(
    game: Game,
    oracle: Oracle | None,
    stopping: Stopping | None,
    progress: bool | Listener,
    first: Checkpoint | None,
    options: dict[str, Any],
) -> LocalEstimate:
    """Estimate the chunks of rows in turn, each with its own checkpoint."""
    if first is not None and options.get("random_state") is None:
        options["random_state"] = first.entropy()
    plan = LocalPlan(game, oracle=oracle, **options)
    chunks = plan.chunks()
    if stopping is None and not plan.is_given:
        # The values are for single rows, so there is no error from the choice of rows.
        stopping = Tolerance()
    rule = split_time(stopping, len(chunks))
    found: list[Estimate] = []
    for number, chunk in enumerate(chunks, start=1):
        estimation, kept = Estimation.of(chunk), first
        if first is not None and number > 1:
            kept = first.part(f"rows{number}")
        if kept is not None:
            kept.restore(estimation)
        found.append(refine_quietly(estimation, stopping=rule, progress=progress, checkpoint=kept))
        if found[-1].interrupted:
            break
    if len(found) > 1 and found[-1].n_units == 0:
        # Interrupted before the first values of these rows.
        found = [*found[:-2], replace(found[-2], reason=found[-1].reason)]
    return _join(plan, found)


def split_time(rule: Stopping | None, n_chunks: int) -> Stopping | None:
    """Return the rule for each of several chunks, which share the time."""
    if isinstance(rule, TimeBudget):
        return TimeBudget(rule.seconds / n_chunks)
    if isinstance(rule, AnyOf):
        return AnyOf(split_time(each, n_chunks) or each for each in rule.rules)
    return rule


def _join(plan: LocalPlan, found: list[Estimate]) -> LocalEstimate:
    """Join the estimates of the chunks."""
    game, n_features = plan.row_game, len(plan.names)
    parts = [(each.values, each.se_orderings, each.se_draws, each.df) for each in found]
    values, se_orderings, se_draws, df = (
        np.concatenate(each).reshape(-1, n_features) for each in zip(*parts, strict=True)
    )
    rows = np.arange(len(values))
    is_whole = len(rows) == plan.game.n_rows
    base = game.base_value
    shares = [each.share_skipped[:n_features] for each in found]
    return LocalEstimate(
        feature_names=plan.names,
        values=values,
        se_orderings=se_orderings,
        se_draws=se_draws,
        df=df,
        base_value=base if isinstance(base, float) else base[rows],
        predictions=game.full[rows],
        data=game.data if is_whole else take_rows(game.data, rows),
        n_orderings=min(each.n_orderings for each in found),
        n_evaluated=plan.game.n_evaluated,
        n_shared=plan.game.n_shared,
        share_skipped=np.mean(shares, axis=0),
        seconds=sum(each.seconds for each in found),
        is_exact=all(each.is_exact for each in found),
        reason=found[-1].reason,
        is_loss=game.is_loss,
        estimand=plan.estimand,
        audit=_join_audits(found, n_features),
        parts=_join_parts(found, n_features),
    )


def _join_parts(found: list[Estimate], n_features: int) -> RowParts | None:
    """Return the parts of causal values of the chunks together; None for other values."""
    parts = [each.parts for each in found if each.parts is not None]
    if not parts:
        return None
    values, se = (
        np.concatenate([array.reshape(len(PARTS), -1, n_features) for array in arrays], axis=1)
        for arrays in ([each.values for each in parts], [each.se for each in parts])
    )
    return RowParts(*values, *se)


def _join_audits(found: list[Estimate], n_features: int) -> RowAudit | None:
    """Return the audits of the chunks as one; None without audits."""
    audits = [each.audit for each in found if each.audit is not None]
    if not audits:
        return None

    def join(parts: list[Floats]) -> Floats:
        return np.concatenate(parts).reshape(-1, n_features)

    return RowAudit(
        differences=join([-each.values for each in audits]),
        se=join([each.se for each in audits]),
        df=join([np.full_like(each.values, each.df) for each in audits]),
    )
