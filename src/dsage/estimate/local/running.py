"""Local values: what every feature adds to the prediction of every row."""

from __future__ import annotations

from typing import Any

import numpy as np

from dsage._check import check_member, refusal
from dsage.data.layout import take_rows
from dsage.estimate.local.plan import LocalPlan
from dsage.estimate.local.result import LocalEstimate
from dsage.estimate.loop import Estimation
from dsage.estimate.options import PlanOptions
from dsage.estimate.result import Estimate
from dsage.estimate.running.run import refine
from dsage.estimate.running.stopping import AnyOf, Stopping, TimeBudget
from dsage.games.output import OutputGame
from dsage.graphs.separation import Oracle

_OPTIONS = tuple(option for option in PlanOptions.names() if option != "audit")


def run_local(
    game: OutputGame,
    *,
    oracle: Oracle | None = None,
    stopping: Stopping | None = None,
    progress: bool = False,
    **options: Any,  # noqa: ANN401
) -> LocalEstimate:
    """Estimate local values: for every row, what each feature adds to the prediction.

    With ``v_x(S) = f_S(x) = E[f(X) | x_S]``, the local value of feature j at row x is the mean over
    orderings of ``f_{S+j}(x) - f_S(x)``, S the features before j. Without an oracle these are
    conditional SHAP values, and those of a row sum to its prediction less the mean prediction.
    With one, each coalition stands for its Markov boundary (d-SHAP): for a model that is optimal
    for squared error or cross entropy the values are the same, and separated features add exactly
    nothing. For others they sum to what the Markov blanket tells of the prediction.

    Parameters
    ----------
    game : OutputGame
        The model, the sampler and the rows to explain.
    oracle : Oracle, optional
        Which features are separated from the target given a coalition:
        ``graph.oracle(target, features=...)``.
    stopping : Stopping, optional
        When to stop, see :func:`~dsage.estimate.as_stopping`; by default when the largest standard
        error is 1 % of the range of the values. Rows are done in parts, and the rule is asked about
        each of them; a time is divided among the parts.
    progress : bool, default=False
        Show a progress bar for each part.
    **options
        As for :class:`~dsage.estimate.Plan`, but for `audit`; `rows_per_ordering` is the number of
        rows of a part, by default as many as have some 16,000 values together.

    Returns
    -------
    LocalEstimate
        An interrupt (Ctrl-C) ends the run with the rows that were begun by then.

    Examples
    --------
    >>> from dsage import Graph
    >>> from dsage.samplers import Gaussian
    >>> from dsage.models.model import as_model
    >>> graph = Graph(["a", "b", "y"], [("a", "b"), ("b", "y")])
    >>> model = as_model(lambda rows: 2 * np.asarray(rows)[:, 1], "squared_error", affine=True)
    >>> sampler = Gaussian.from_moments(np.zeros(2), [[1.0, 0.5], [0.5, 1.0]], ["a", "b"])
    >>> game = OutputGame(model, sampler, np.array([[1.0, 2.0], [0.0, -1.0]]))
    >>> run_local(game).values  # a tells something of b, while b is not known
    array([[ 0.5,  3.5],
           [ 0. , -2. ]])
    >>> local = run_local(game, oracle=graph.oracle("y"))
    >>> bool(np.allclose(local.values, run_local(game).values)), local.is_exact
    (True, True)
    """
    _check_game(game)
    for option in options:
        check_member(option, _OPTIONS, "each option", "the options of local values")
    plan = LocalPlan(game, oracle=oracle, **options)
    parts = plan.parts()
    rule = _divided(stopping, len(parts))
    found: list[Estimate] = []
    for part in parts:
        found.append(refine(Estimation.of(part), stopping=rule, progress=progress))
        if found[-1].interrupted:
            break
    return _joined(game, plan, found)


def _check_game(game: object) -> None:
    """Refuse other games: theirs are losses, which say nothing of predictions."""
    if not isinstance(game, OutputGame):
        advice = "Make one with OutputGame(model, sampler, X)"
        raise refusal("game", "an OutputGame", type(game).__name__, advice, TypeError)


def _divided(rule: Stopping | None, n_parts: int) -> Stopping | None:
    """Return a rule for each of several parts: they share the time."""
    if isinstance(rule, TimeBudget):
        return TimeBudget(rule.seconds / n_parts)
    if isinstance(rule, AnyOf):
        return AnyOf(_divided(each, n_parts) or each for each in rule.rules)
    return rule


def _joined(game: OutputGame, plan: LocalPlan, found: list[Estimate]) -> LocalEstimate:
    """Return the estimates of parts of the rows as one."""
    n_features = len(plan.names)
    values, se_orderings, se_draws, df = (
        np.concatenate([getattr(each, name) for each in found]).reshape(-1, n_features)
        for name in ("values", "se_orderings", "se_draws", "df")
    )
    rows = np.arange(len(values))
    shares = [each.share_skipped[:n_features] for each in found]
    return LocalEstimate(
        feature_names=plan.names,
        values=values,
        se_orderings=se_orderings,
        se_draws=se_draws,
        df=df,
        base_value=game.base_value,
        predictions=game.predictions[rows],
        data=game.data if len(rows) == game.n_rows else take_rows(game.data, rows),
        n_orderings=min(each.n_orderings for each in found),
        n_evaluated=plan.game.n_evaluated,
        n_shared=plan.game.n_shared,
        share_skipped=np.mean(shares, axis=0),
        seconds=sum(each.seconds for each in found),
        is_exact=all(each.is_exact for each in found),
        reason=found[-1].reason,
    )
