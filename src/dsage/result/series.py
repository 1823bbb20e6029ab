"""Estimates of several explanations for the same features, and their differences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dsage.estimate.inference import effective_df
from dsage.estimate.result import Estimate
from dsage.games.base import Floats
from dsage.result.explanation import Explanation


@dataclass(frozen=True)
class Series:
    """Estimates with errors and degrees of freedom, as arrays of shape (n_features,).

    Errors for the population, from rows and computing, end in ``_total``; NaN if unknown.
    """

    label: str
    values: Floats
    se: Floats
    df: Floats
    se_total: Floats
    df_total: Floats

    @classmethod
    def of(cls, explanation: Explanation, names: Sequence[str], label: str) -> Series:
        """Return the estimates of an explanation for some features."""
        of = explanation.estimate
        whole = cls.of_estimate(of, label)
        return whole.take(np.array([of.feature_names.index(name) for name in names], dtype=np.intp))

    @classmethod
    def of_estimate(cls, estimate: Estimate, label: str) -> Series:
        """Return an estimate with its errors, for all features."""
        total = estimate.se_total, estimate.df_total
        return cls(label, estimate.values, estimate.se, estimate.df, *total)

    def minus(self, other: Series) -> Series:
        """Return the differences to the estimates of an independent run."""
        se, se_total = (self.se, other.se), (self.se_total, other.se_total)
        return Series(
            self.label,
            self.values - other.values,
            np.hypot(*se),
            combine_df(np.stack(se) ** 2, self.df, other.df),
            np.hypot(*se_total),
            combine_df(np.stack(se_total) ** 2, self.df_total, other.df_total),
        )

    def take(self, at: npt.NDArray[np.intp]) -> Series:
        """Return the estimates for some features."""
        arrays = (self.values, self.se, self.df, self.se_total, self.df_total)
        return Series(self.label, *(array[at] for array in arrays))


def combine_df(variances: Floats, *df: Floats) -> Floats:
    """Return the degrees of freedom of a sum, ignoring parts with unknown variance."""
    return effective_df(np.where(np.isfinite(variances), variances, 0.0), np.stack(df))
