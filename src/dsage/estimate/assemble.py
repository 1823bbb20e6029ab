"""Assemble the estimate from the running totals: values, errors and counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from dsage.estimate.accumulate.balance import Adjustment
from dsage.estimate.accumulate.history import History
from dsage.estimate.inference import effective_df
from dsage.estimate.result import Estimate, OutputEstimate, TermEstimate, TermKind
from dsage.estimate.totals import Totals
from dsage.games.base import Floats

# Values and errors below this share of the risks are rounding errors.
_ROUNDING = 1e-12


def assemble(totals: Totals, history: History, seconds: float) -> Estimate:
    """Return the current estimate; the history has the looks before this one."""
    plan, estimated = totals.plan, totals.estimated
    adjustment = totals.adjustment()
    terms = _make_terms(totals, adjustment)
    audit = None
    if len(plan.terms) == 2:
        audit = _make_audit(totals)
        if plan.estimand == "sage":
            terms.append(audit)
    n_orderings, n_units = _count(totals)
    se_orderings = np.sqrt(sum(totals.variance(term) for term in estimated))
    se_draws = totals.draw_se()
    if adjustment is not None:
        se_orderings = np.sqrt(sum(term.se**2 for term in terms))
        se_draws = adjustment.factor * se_draws
    columns: dict[str, Any] = {
        "values": np.sum([term.values for term in terms], axis=0),
        "se_orderings": se_orderings,
        "se_draws": se_draws,
        "se_rows": np.sqrt(totals.ledger.row_variance(estimated)),
        "df": _find_df(totals, terms, se_draws),
    }
    columns |= _without_rounding(columns, plan.game.risk_scale)
    n_values = plan.n_values
    terms = [_take(term, n_values) for term in terms]
    estimate = Estimate(
        feature_names=plan.names,
        **{name: column[:n_values] for name, column in columns.items()},
        **_name_outputs(_split_outputs(columns, plan.n_outputs), plan.estimand),
        n_orderings=n_orderings,
        n_units=n_units,
        n_evaluated=plan.game.n_evaluated,
        n_shared=plan.game.n_shared,
        share_skipped=_find_share_skipped(totals)[:n_values],
        terms=tuple(terms),
        audit=None if audit is None else _take(audit, n_values),
        skipped_surpluses=_make_skipped_frame(totals),
        seconds=seconds,
        is_exact=_is_exact(totals),
        estimand=plan.estimand,
        df_rows=totals.ledger.df_rows,
        history=history,
    )
    history = history.after(estimate.values, estimate.se, n_units, estimate.n_evaluated, seconds)
    return replace(estimate, history=history)


def _without_rounding(columns: Mapping[str, Floats], risk: float) -> dict[str, Floats]:
    """Return values with their errors, exactly zero if they are only rounding errors.

    A feature that the model does not use has a value of some 1e-17, which differs from zero
    "significantly", as its error is no larger.
    """
    values = columns["values"]
    smallest = _ROUNDING * (risk + np.abs(values).sum())
    checked = {name: column for name, column in columns.items() if name != "df"}
    # An error that is not known is no reason to keep a value.
    is_nothing = np.all([~(np.abs(each) > smallest) for each in checked.values()], axis=0)
    return {
        name: np.where(is_nothing & ~np.isnan(each), 0.0, each) for name, each in checked.items()
    }


def _take(term: TermEstimate, n_values: int) -> TermEstimate:
    """Return a term without the columns of single outputs."""
    return replace(term, values=term.values[:n_values], se=term.se[:n_values])


def _split_outputs(columns: Mapping[str, Floats], n_outputs: int) -> OutputEstimate | None:
    """Return the columns of single outputs, which follow the columns of their sum."""
    if not n_outputs:
        return None
    apart = {name: each.reshape(1 + n_outputs, -1)[1:] for name, each in columns.items()}
    return OutputEstimate(**apart)


def _name_outputs(found: OutputEstimate | None, estimand: str) -> dict[str, Any]:
    """Return the further columns as what they are: outputs of the model, or parts of values."""
    return {"parts" if estimand == "causal" else "outputs": found}


def _is_exact(totals: Totals) -> bool:
    return totals.is_complete and totals.estimated == [0]


def _make_terms(totals: Totals, adjustment: Adjustment | None) -> list[TermEstimate]:
    """Return the first level, if any, and the main term, adjusted so that values add up."""
    plan, main, slope = totals.plan, totals.tallies[0], totals.slope
    value, control = main.mean()
    terms = []
    if plan.control is not None and slope:
        mean, se = slope * plan.control.mean, np.sqrt(plan.control.variance) * abs(slope)
        terms.append(TermEstimate(TermKind.FIRST_LEVEL, mean, se, plan.control.n_orderings, 0))
        value = value - slope * control
    n_orderings = main.n_units * plan.terms[0].batch_size
    if _is_exact(totals):
        n_orderings = plan.n_all_orderings
    kind, se = plan.terms[0].kind, np.sqrt(totals.own_variance(0))
    if adjustment is not None:
        value, se = value + adjustment.shift, se * adjustment.factor
    df = float(main.df)
    terms.append(TermEstimate(kind, value, se, n_orderings, int(totals.costs[0]), df=df))
    return terms


def _make_audit(totals: Totals) -> TermEstimate:
    """Return the difference of SAGE to d-SAGE; its error includes the error of the draws."""
    tally = totals.tallies[1]
    return TermEstimate(
        TermKind.CORRECTION,
        tally.mean()[0],
        np.hypot(np.sqrt(totals.own_variance(1)), totals.draw_se(1)),
        tally.n_units * totals.plan.terms[1].batch_size,
        int(totals.costs[1]),
        df=float(tally.df),
    )


def _count(totals: Totals) -> tuple[int, int]:
    """Return the numbers of orderings and of the independent pieces behind the errors."""
    plan, main = totals.plan, totals.tallies[0]
    if _is_exact(totals):
        n_rows = sum(map(len, plan.shards))
        return plan.n_all_orderings, int(main.counts.min()) * n_rows
    n_orderings, n_units = main.n_units * plan.terms[0].batch_size, main.n_units
    if totals.estimated == [0]:
        return n_orderings, n_units
    n_correction = totals.tallies[1].n_units
    n_sampled = n_correction * plan.terms[1].batch_size
    if totals.is_complete:
        # The correction is the only term that samples orderings.
        return n_sampled, min(n_correction, totals.n_pieces)
    return max(n_orderings, n_sampled), min(n_units, n_correction)


def _find_df(totals: Totals, terms: Sequence[TermEstimate], se_draws: Floats) -> Floats:
    """Return the degrees of freedom of the sum of the terms, by Satterthwaite."""
    drawn = se_draws**2
    variances = np.stack([*(term.se**2 for term in terms), drawn])
    if not np.isfinite(variances).all():
        return np.ones(totals.plan.n_columns)
    of_terms = [np.full(totals.plan.n_columns, term.df) for term in terms]
    return effective_df(variances, [*of_terms, totals.ledger.df_draws])


def _find_share_skipped(totals: Totals) -> Floats:
    if totals.plan.enumeration is not None:
        return totals.plan.enumeration.skipped
    n_orderings = totals.tallies[0].n_units * totals.plan.terms[0].batch_size
    return totals.skipped / max(n_orderings, 1)


def _make_skipped_frame(totals: Totals) -> pd.DataFrame:
    # Every look has one, and most runs skip nothing.
    return _skipped_frame(totals.noted, totals.plan.names) if totals.noted else _no_frame().copy()


@cache
def _no_frame() -> pd.DataFrame:
    return _skipped_frame([], ())


def _skipped_frame(noted: Sequence[tuple[Any, ...]], names: Sequence[str]) -> pd.DataFrame:
    frame = pd.DataFrame(noted, columns=["feature", "position", "surplus", "n_rows"])
    frame["feature"] = [names[feature] for feature in frame["feature"]]
    return frame
