"""What a run leaves behind: the estimate, and everything that it rests on. Data, and no more."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
import pandas as pd

from dsage.estimate import Estimate, intervals
from dsage.games.base import Floats
from dsage.graphs import Graph
from dsage.result.choices import Choices


@dataclass(frozen=True, eq=False)
class Record:
    """An estimate of SAGE values with the graph, the sampler's scores and all choices behind it.

    Attributes
    ----------
    estimate : Estimate
        Values, errors, counts and the audit.
    target : str
        Name of the target.
    graph : Graph or None
        The graph over features and target; None where nothing was skipped by one.
    edge_strength : pandas.DataFrame or None
        How often each edge was found again in resamples of the rows: columns ``from``, ``to``,
        ``share``, ``share_either``. None where the graph was not learned, or not again.
    sampler_scores : pandas.DataFrame or None
        One line a sampler: its held-out energy score, the difference to the best with its standard
        error, seconds; ``Marginal`` shows what conditioning gains.
    groups : dict or None
        The features of each group, where groups were explained.
    choices : Choices
        What was chosen, and by whom.
    warnings : tuple of str
        What the run warned of.
    """

    estimate: Estimate
    target: str
    graph: Graph | None
    edge_strength: pd.DataFrame | None
    sampler_scores: pd.DataFrame | None
    groups: dict[str, tuple[str, ...]] | None
    choices: Choices
    warnings: tuple[str, ...]

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The features, or the groups, in the order of `values`."""
        return self.estimate.feature_names

    @property
    def values(self) -> Floats:
        """The SAGE values, in units of the loss."""
        return self.estimate.values

    @property
    def se(self) -> Floats:
        """Their standard errors that more computing makes smaller."""
        return self.estimate.se

    @cached_property
    def share_skipped(self) -> float:
        """Share of all surpluses that are zero by separation, and were not evaluated."""
        return float(np.mean(self.estimate.share_skipped))

    def to_frame(self, confidence: float = 0.95) -> pd.DataFrame:
        """Return one line a feature, the largest value first.

        Parameters
        ----------
        confidence : float, default=0.95
            Confidence level of the intervals.

        Returns
        -------
        pandas.DataFrame
            Columns:

            - ``feature``, ``value``, ``se``: the value, and the error that more computing makes
              smaller; ``lower``, ``upper``: the interval for these evaluation rows.
            - ``se_rows``: the error from the choice of the rows, which only more data makes
              smaller; ``lower_total``, ``upper_total``: the interval for the population. nan where
              the rows are too few to tell.
            - ``share``: of the sum of all values.
            - ``n_evaluated``, ``n_skipped``: surpluses that were evaluated, and that are zero by
              separation.
            - ``audit_difference``, ``audit_lower``, ``audit_upper``: d-SAGE minus SAGE with its
              interval, nan where there is no audit; ``audit_matters``: whether it is surely larger
              than 2 % of the range of the values, for all features at once.
            - ``p_value``: of "the value in the population is not above zero", adjusted for the
              number of features.
        """
        known = self.estimate
        base = known.to_frame(confidence).set_index("feature").loc[list(known.feature_names)]
        ends = np.stack(intervals(known.values, known.se_total, confidence, df=known.df_total))
        lower_total, upper_total = np.where(np.isfinite(ends), ends, math.nan)
        total = float(known.values.sum())
        share = known.values / total if total > 0 else np.full(len(known.values), math.nan)
        n_skipped = [round(Fraction(share) * known.n_surpluses) for share in known.share_skipped]
        frame = pd.DataFrame(
            {
                "feature": list(known.feature_names),
                "value": known.values,
                "se": known.se,
                "lower": base["lower"].to_numpy(),
                "upper": base["upper"].to_numpy(),
                "se_rows": known.se_rows,
                "lower_total": lower_total,
                "upper_total": upper_total,
                "share": share,
                "n_evaluated": [known.n_surpluses - skipped for skipped in n_skipped],
                "n_skipped": n_skipped,
                **self._audit_columns(confidence),
                "p_value": base["p_value"].to_numpy(),
            }
        )
        order = np.argsort(-known.values, kind="stable")
        return frame.iloc[order].reset_index(drop=True)

    def _audit_columns(self, confidence: float) -> dict[str, object]:
        if self.estimate.audit is None:
            unknown = np.full(len(self.values), math.nan)
            return {
                "audit_difference": unknown,
                "audit_lower": unknown,
                "audit_upper": unknown,
                "audit_matters": np.zeros(len(self.values), dtype=bool),
            }
        audit = self.estimate.audit_frame(confidence)
        return {
            "audit_difference": audit["difference"].to_numpy(),
            "audit_lower": audit["lower"].to_numpy(),
            "audit_upper": audit["upper"].to_numpy(),
            "audit_matters": audit["matters"].to_numpy(),
        }
