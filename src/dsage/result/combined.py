"""Several explanations combined: their random-effects mean, and how much they differ."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from dsage.estimate.inference import holm, intervals, p_values
from dsage.games.base import Floats
from dsage.result.explanation import Explanation
from dsage.result.plotters import CombinedPlotter
from dsage.result.pooled_tables import PooledTable, as_html, as_text, name_estimand
from dsage.result.pooling import RandomEffects, random_effects


@dataclass(frozen=True, eq=False, repr=False)
class CombinedExplanation:
    """The mean of several explanations, and how much they differ beyond their errors.

    :func:`dsage.combine` returns one. It shows as a table in a terminal and in a notebook.

    Attributes
    ----------
    labels : tuple of str
        The names of the explanations.
    explanations : tuple of Explanation
        The explanations.
    shared_rows : bool
        Whether all of them were evaluated on the same rows. Then the error from the choice of the
        rows is the same in all, and combining them does not reduce it.
    """

    labels: tuple[str, ...]
    explanations: tuple[Explanation, ...]
    shared_rows: bool

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The features, or the groups, in the order of `values`."""
        return self.explanations[0].feature_names

    @cached_property
    def all_values(self) -> Floats:
        """The values of each explanation, (n_explanations, n_features)."""
        return np.stack([each.values[at] for each, at in self._match()])

    @property
    def values(self) -> Floats:
        """The random-effects means."""
        return self._effects.values

    @property
    def spread(self) -> Floats:
        """The standard deviation of the true values, beyond the errors of the estimates."""
        return self._effects.spread

    @cached_property
    def se(self) -> Floats:
        """The standard errors of the means, as estimates for the population."""
        if not self.shared_rows:
            return self._effects.se
        rows = [each.estimate.se_rows[at] for each, at in self._match()]
        total: Floats = np.hypot(self._effects.se, np.mean(rows, axis=0))
        return total

    @property
    def plot(self) -> CombinedPlotter:
        """The plots of this result; see :mod:`dsage.plots`."""
        return CombinedPlotter(self)

    def to_frame(self, confidence: float = 0.95) -> pd.DataFrame:
        """Return one line per feature, the largest mean first.

        Parameters
        ----------
        confidence : float, default=0.95
            Confidence level of the intervals.

        Returns
        -------
        pandas.DataFrame
            Columns:

            - ``feature``, ``value``, ``se``, ``lower``, ``upper``: the mean, its error and its
              interval, for the population.
            - ``spread``, ``p_spread``: the standard deviation between the true values, and the
              p-value of the hypothesis that there is none, adjusted for the number of features.
            - ``lower_next``, ``upper_next``: the prediction interval for the value of one more
              explanation of this kind.
            - ``p_value``: of the hypothesis that the mean is not above zero, adjusted for the
              number of features.
            - ``value[NAME]``: the value of each explanation.
        """
        effects = self._effects
        next_se = np.hypot(self.se, effects.spread)
        ends = [
            np.where(np.isfinite(each), each, math.nan)
            for se in (self.se, next_se)
            for each in intervals(self.values, se, confidence, df=effects.df)
        ]
        columns: dict[str, Any] = {
            "feature": list(self.feature_names),
            "value": self.values,
            "se": self.se,
            "lower": ends[0],
            "upper": ends[1],
            "spread": effects.spread,
            "p_spread": holm(effects.p_spread),
            "lower_next": ends[2],
            "upper_next": ends[3],
            "p_value": holm(p_values(self.values, self.se, df=effects.df)),
        }
        for label, own in zip(self.labels, self.all_values, strict=True):
            columns[f"value[{label}]"] = own
        order = np.argsort(-self.values, kind="stable")
        return pd.DataFrame(columns).iloc[order].reset_index(drop=True)

    def _match(self) -> list[tuple[Explanation, list[int]]]:
        """Return each explanation with its positions of the features of the first one."""
        return [
            (each, [each.feature_names.index(name) for name in self.feature_names])
            for each in self.explanations
        ]

    @cached_property
    def _effects(self) -> RandomEffects:
        estimates = [(each.estimate, at) for each, at in self._match()]
        errors = [(each.se if self.shared_rows else each.se_total)[at] for each, at in estimates]
        return random_effects(self.all_values, np.stack(errors))

    def __repr__(self) -> str:
        return as_text(self._table())

    def _repr_html_(self) -> str:
        return as_html(self._table())

    def _table(self) -> PooledTable:
        first = self.explanations[0]
        title = (
            f"{name_estimand(self.explanations)} values, mean of {len(self.labels)} explanations: "
            f"{first.target}, {first.choices.loss.name}"
        )
        rows = "the same rows" if self.shared_rows else "different rows"
        notes = [
            f"random-effects mean ± its standard error, of explanations on {rows}",
            "spread: standard deviation beyond the errors",
            "95 % intervals: of the mean, and of the value of one more explanation of this kind",
        ]
        named = {"mean": ("lower", "upper"), "next": ("lower_next", "upper_next")}
        return PooledTable(title, self.to_frame(), named, notes)
