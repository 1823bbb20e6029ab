"""What is known after some evaluations: values, errors, counts, the audit."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

import numpy as np
import pandas as pd

from dsage.estimate.accumulate.history import History
from dsage.estimate.inference import effective_df, holm, intervals, p_values, simultaneous_intervals
from dsage.estimate.reasons import StopKind, StopReason
from dsage.games.base import Floats

# A difference to SAGE matters where it is surely larger than this share of the range of values.
MATTERS = 0.02


class TermKind(Enum):
    """What a term of an estimate averages; saved files hold the values of these members."""

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
        What is averaged.
    values, se : arrays of shape (n_features,)
        The term, and its error from the choice of the orderings.
    n_orderings : int
        Orderings that it used.
    n_evaluated : int
        Distinct pairs of a coalition and a row that it needed and no term had before.
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


@dataclass(frozen=True, eq=False)
class Estimate:
    """SAGE values so far, with their errors.

    Attributes
    ----------
    feature_names : tuple of str
        The features.
    values : array of shape (n_features,)
        The estimated values.
    se_orderings, se_draws : arrays of shape (n_features,)
        Their standard errors from the choice of orderings and from draws: more computing makes
        them smaller.
    se_rows : array of shape (n_features,)
        Their standard errors from the choice of the evaluation rows: only more data makes them
        smaller. nan where fewer than two rows tell.
    df : array of shape (n_features,)
        Degrees of freedom of `se`, for the intervals.
    n_orderings : int
        Orderings of the term that has most: all there are, where all were averaged over. Where the
        main term has averaged over all, and a correction is part of the estimate, those of that.
    n_units : int
        Independent pieces that the standard errors rest on: units of orderings, or rows where
        all orderings were averaged over.
    n_evaluated, n_shared : int
        Pairs of a coalition and a row that were evaluated, and that were known already.
    share_skipped : array of shape (n_features,)
        Share of the orderings in which the surplus of the feature is zero by separation.
    levels : tuple of TermEstimate
        The terms of the estimate.
    audit : TermEstimate or None
        SAGE minus d-SAGE, where it was estimated; its `se` includes that of draws.
    skipped_surpluses : pandas.DataFrame
        The surpluses at the coalitions themselves of what separation sets to zero, from the audit.
    seconds : float
        Time taken.
    is_exact : bool
        Whether all orderings were averaged over, on all rows.
    estimand : str
        ``"sage"`` or ``"d-sage"``.
    history : History
        Values and errors at each look so far, this one included.
    reason : StopReason or None
        Why the estimation ended; None while it is under way.
    df_rows : float
        Degrees of freedom of `se_rows`, for the tests.
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

    @property
    def interrupted(self) -> bool:
        """Whether the user ended the estimation."""
        return self.reason is not None and self.reason.kind is StopKind.INTERRUPTED

    @property
    def se(self) -> Floats:
        """Standard errors that more computing makes smaller."""
        se: Floats = np.hypot(self.se_orderings, self.se_draws)
        return se

    @property
    def n_surpluses(self) -> int:
        """Orderings that the main term has averaged over: so many surpluses of each feature."""
        return next(each.n_orderings for each in self.terms if each.is_main)

    @property
    def se_total(self) -> Floats:
        """Standard errors about the values in the population: computing and rows.

        nan where that of the rows is: one row is no evidence about others.
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
        is 1 where the rows are too few to tell.
        """
        lower, upper = intervals(self.values, self.se, confidence, df=self.df)
        lower_all, upper_all = simultaneous_intervals(self.values, self.se, confidence, df=self.df)
        columns = {
            "feature": list(self.feature_names),
            "value": self.values,
            "se": self.se,
            "lower": lower,
            "upper": upper,
            "lower_all": lower_all,
            "upper_all": upper_all,
            "se_orderings": self.se_orderings,
            "se_draws": self.se_draws,
            "se_rows": self.se_rows,
            "p_value": holm(p_values(self.values, self.se_total, df=self.df_total)),
            "share_skipped": self.share_skipped,
        }
        frame = pd.DataFrame(columns)
        order = np.argsort(-self.values, kind="stable")
        return frame.iloc[order].reset_index(drop=True)

    def audit_frame(self, confidence: float = 0.95) -> pd.DataFrame:
        """Return the estimated differences d-SAGE minus SAGE with their intervals.

        ``matters`` marks the features whose difference is, for all features at once, surely
        larger than 2 % of the range of the values.
        """
        if self.audit is None:
            raise ValueError("there is no audit: nothing is skipped, or it was turned off.")
        difference, se = -self.audit.values, self.audit.se
        df = self.audit.df
        lower, upper = intervals(difference, se, confidence, df=df)
        lowest, highest = simultaneous_intervals(difference, se, confidence, df=df)
        threshold = MATTERS * np.ptp(self.values)
        return pd.DataFrame(
            {
                "feature": list(self.feature_names),
                "difference": difference,
                "se": se,
                "lower": lower,
                "upper": upper,
                "matters": (lowest > threshold) | (highest < -threshold),
            }
        )
