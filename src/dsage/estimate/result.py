"""The result of an estimation: values, errors, counts, the audit."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
import pandas as pd

from dsage._check import refusal
from dsage.estimate.accumulate.history import History
from dsage.estimate.inference import effective_df, holm, interval_columns, p_values
from dsage.estimate.reasons import StopKind, StopReason
from dsage.games.base import Floats

# A difference to SAGE matters if it is significantly larger than this share of the range.
MATTERS = 0.02


PARTS = ("direct", "indirect")
"""The parts of causal values."""


class TermKind(Enum):
    """The quantity that a term of an estimate averages; saved files hold these values."""

    FIRST_LEVEL = "moments"
    SAMPLED = "surpluses"
    ENUMERATED = "surpluses, all orderings"
    CORRECTION = "SAGE - d-SAGE"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, eq=False)
class TermEstimate:
    """One term of an estimate.

    Attributes
    ----------
    kind : TermKind
        The quantity that is averaged.
    values, se : arrays of shape (n_features,)
        The term, and its standard error from the choice of the orderings.
    n_orderings : int
        Number of orderings used.
    n_evaluated : int
        Distinct pairs of a coalition and a row that this term was the first to need.
    df : float
        Degrees of freedom of `se`.
    """

    kind: TermKind
    values: Floats
    se: Floats
    n_orderings: int
    n_evaluated: int
    df: float = math.inf

    @property
    def is_main(self) -> bool:
        """Whether the term averages the surpluses of the model's game."""
        return self.kind in (TermKind.SAMPLED, TermKind.ENUMERATED)


class WithErrors:
    """Members common to global and local estimates."""

    se_orderings: Floats
    se_draws: Floats

    @property
    def se(self) -> Floats:
        """Standard errors from orderings and draws, which more computing reduces."""
        se: Floats = np.hypot(self.se_orderings, self.se_draws)
        return se


class Finished:
    """An estimate that ended for a reason."""

    reason: StopReason | None

    @property
    def interrupted(self) -> bool:
        """Whether the user ended the estimation."""
        return self.reason is not None and self.reason.kind is StopKind.INTERRUPTED


@dataclass(frozen=True, eq=False)
class OutputEstimate(WithErrors):
    """The values of each output of a model, if the values of an estimate are their sum.

    Orderings and draws are the same, so the values of the outputs add up to the values of the
    estimate, up to rounding.

    Attributes
    ----------
    values : array of shape (n_outputs, n_features)
        The estimated values.
    se_orderings, se_draws, se_rows, df : arrays of shape (n_outputs, n_features)
        Their errors, see :class:`Estimate`.
    """

    values: Floats
    se_orderings: Floats
    se_draws: Floats
    se_rows: Floats
    df: Floats


@dataclass(frozen=True, eq=False)
class Estimate(WithErrors, Finished):
    """Estimated SAGE values with their errors.

    Attributes
    ----------
    feature_names : tuple of str
        The features.
    values : array of shape (n_features,)
        The estimated values.
    se_orderings, se_draws : arrays of shape (n_features,)
        Standard errors from the choice of orderings and from draws; more computing reduces them.
    se_rows : array of shape (n_features,)
        Standard errors from the choice of the evaluation rows; only more data reduces them. NaN
        with fewer than two rows.
    df : array of shape (n_features,)
        Degrees of freedom of `se`, for the intervals.
    n_orderings : int
        Number of orderings of the term with the most; if the main term enumerates all orderings,
        the number in the correction if it is part of the estimate, and otherwise the number of
        all orderings. Features whose errors were small early have fewer.
    n_units : int
        Independent pieces that the standard errors are based on: units, or rows if all orderings
        were enumerated.
    n_evaluated, n_shared : int
        Pairs of a coalition and a row that were evaluated, and that were reused.
    share_skipped : array of shape (n_features,)
        Share of the orderings in which the surplus of the feature is zero by separation.
    terms : tuple of TermEstimate
        The terms of the estimate.
    audit : TermEstimate or None
        SAGE minus d-SAGE, if it was estimated; its `se` includes the error from draws.
    skipped_surpluses : pandas.DataFrame
        Surpluses that separation sets to zero, at the coalitions themselves; from the audit.
    seconds : float
        Time spent.
    is_exact : bool
        Whether all orderings were enumerated, on all rows.
    estimand : str
        ``"sage"``, ``"d-sage"`` or ``"causal"``.
    history : History
        Values and errors at each look, including this one.
    reason : StopReason or None
        Why the estimation ended; None while it is under way.
    df_rows : float
        Degrees of freedom of `se_rows`, for the tests.
    outputs : OutputEstimate or None
        The values of single outputs, if the target has several columns.
    parts : OutputEstimate or None
        The direct and the indirect parts of causal values, in this order, which add up to them.
    """

    feature_names: tuple[str, ...]
    values: Floats
    se_orderings: Floats
    se_draws: Floats
    se_rows: Floats
    df: Floats
    n_orderings: int
    n_units: int
    n_evaluated: int
    n_shared: int
    share_skipped: Floats
    terms: tuple[TermEstimate, ...]
    audit: TermEstimate | None
    skipped_surpluses: pd.DataFrame
    seconds: float
    is_exact: bool
    estimand: str
    history: History
    reason: StopReason | None = None
    df_rows: float = math.inf
    outputs: OutputEstimate | None = None
    parts: OutputEstimate | None = None

    def of_output(self, at: int) -> Estimate:
        """Return the estimate of one output, by its number; it has no audit, terms and history."""
        if self.outputs is None or not 0 <= at < len(self.outputs.values):
            n_outputs = 0 if self.outputs is None else len(self.outputs.values)
            condition = f"the number of one of {n_outputs} outputs"
            raise refusal("output", condition, at, "They count from 0")
        own = {name: array[at] for name, array in vars(self.outputs).items()}
        none = History.empty(len(self.feature_names))
        return replace(self, **own, terms=(), audit=None, history=none, outputs=None)

    @property
    def n_surpluses(self) -> int:
        """Number of surpluses of each feature: the orderings of the main term."""
        return next(each.n_orderings for each in self.terms if each.is_main)

    @property
    def se_total(self) -> Floats:
        """Standard errors as estimates of the population's values: from computing and rows.

        NaN if the error from rows is NaN.
        """
        se: Floats = np.hypot(self.se, self.se_rows)
        return se

    @property
    def df_total(self) -> Floats:
        """Degrees of freedom of `se_total`, by Satterthwaite."""
        variances = np.stack([self.se**2, self.se_rows**2])
        variances[~np.isfinite(variances)] = 0.0
        return effective_df(variances, np.stack([self.df, np.full_like(self.df, self.df_rows)]))

    def to_frame(self, confidence: float = 0.95) -> pd.DataFrame:
        """Return values, errors, intervals and tests, the largest value first.

        ``lower`` and ``upper`` enclose the value for these evaluation rows;
        ``lower_all`` and ``upper_all`` do so for all features at once. ``p_value`` tests that the
        value in the population is not above zero, adjusted for the number of features (Holm); it
        is 1 with fewer than two rows. Causal values have further columns: ``direct``, ``indirect``
        and their standard errors, ``se_direct`` and ``se_indirect``.
        """
        columns = {
            "feature": list(self.feature_names),
            "value": self.values,
            **interval_columns(self.values, self.se, confidence, self.df),
            "se_orderings": self.se_orderings,
            "se_draws": self.se_draws,
            "se_rows": self.se_rows,
            "p_value": holm(p_values(self.values, self.se_total, df=self.df_total)),
            "share_skipped": self.share_skipped,
        }
        if self.parts is not None:
            for name, values, se in zip(PARTS, self.parts.values, self.parts.se, strict=True):
                columns |= {name: values, f"se_{name}": se}
        frame = pd.DataFrame(columns)
        order = np.argsort(-self.values, kind="stable")
        return frame.iloc[order].reset_index(drop=True)

    def audit_frame(self, confidence: float = 0.95) -> pd.DataFrame:
        """Return the estimated differences d-SAGE minus SAGE with their intervals.

        ``matters`` marks the features whose difference is significantly larger than 2 % of the
        range of the values, for all features at once.
        """
        if self.audit is None:
            raise ValueError("There is no audit: nothing is skipped, or it was turned off.")
        difference, threshold = -self.audit.values, MATTERS * np.ptp(self.values)
        columns = interval_columns(difference, self.audit.se, confidence, self.audit.df)
        lowest, highest = columns.pop("lower_all"), columns.pop("upper_all")
        matters = (lowest > threshold) | (highest < -threshold)
        first = {"feature": list(self.feature_names), "difference": difference}
        return pd.DataFrame({**first, **columns, "matters": matters})
