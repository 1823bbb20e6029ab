"""The result of cross-validation: one explanation per fold, and their pooled values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from dsage.estimate.inference import effective_df, holm, intervals, p_values
from dsage.games.base import Floats
from dsage.result.explanation import Explanation
from dsage.result.plotters import FoldPlotter
from dsage.result.pooled_tables import PooledTable, as_html, as_text, name_estimand
from dsage.result.pooling import corrected_error, error_of_rows, spread
from dsage.result.saved import Saved


@dataclass(frozen=True, eq=False, repr=False)
class FoldedExplanation(Saved):
    """How much each feature contributes to the performance of a learning procedure's models.

    :func:`dsage.explain_cv` returns one. It shows as a table in a terminal and in a notebook. A
    value is the mean over all evaluated rows of all folds. It has three intervals:

    - ``lower``, ``upper``: for *these models on these rows*. Only the computation is uncertain.
    - ``lower_total``, ``upper_total``: for *these models on the population*: the mean of the values
      of the fitted models on new rows. This includes the uncertainty from the choice of the
      evaluation rows, estimated within each fold; the folds of a repeat are treated as independent
      (Bayle et al., 2020).
    - ``lower_procedure``, ``upper_procedure``: for the *learning procedure*: the expected value
      on the population if it were repeated with new training rows, as many as in a fold. This
      includes the uncertainty from the training rows. The variance between folds is enlarged,
      because models of different folds share training rows: ``(1/J + n_test/n_train) S^2`` with
      J - 1 degrees of freedom (Nadeau and Bengio, 2003). This is a heuristic; its coverage is
      simulated in the documentation. Few folds may agree by chance, so this interval is never
      narrower than the one for these models.

    All folds use the same orderings and noise, so errors from computing may be the same in all
    folds. To be conservative, they are not divided by the number of folds.

    Attributes
    ----------
    folds : tuple of Explanation
        The explanation of each fold.
    repeats : tuple of int
        The repeat of each fold, from 1; the folds of a repeat evaluate different rows.
    weights : array of shape (n_folds,)
        The weight of each fold in the values: its share of the evaluation rows, or of their
        weights.
    n_planned : int
        The number of folds of the call; larger than ``len(folds)`` if it was interrupted.
    """

    _file_kind: ClassVar[str] = "dsage folds"

    folds: tuple[Explanation, ...]
    repeats: tuple[int, ...]
    weights: Floats
    n_planned: int

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The features, or the groups, in the order of `values`."""
        return self.folds[0].feature_names

    @property
    def target(self) -> str:
        """Name of the target."""
        return self.folds[0].target

    @cached_property
    def fold_values(self) -> Floats:
        """The values of each fold, (n_folds, n_features)."""
        return np.stack([each.values for each in self.folds])

    @cached_property
    def values(self) -> Floats:
        """The values: means over the evaluated rows of all folds."""
        pooled: Floats = self.weights @ self.fold_values
        return pooled

    @cached_property
    def se(self) -> Floats:
        """Their standard errors from orderings and draws, which are common to all folds."""
        pooled: Floats = self.weights @ np.stack([each.se for each in self.folds])
        return pooled

    @cached_property
    def se_rows(self) -> Floats:
        """Their standard errors from the choice of the evaluation rows; NaN if unknown."""
        errors = np.stack([each.estimate.se_rows for each in self.folds])
        return error_of_rows(errors, self.weights, self.repeats)

    @cached_property
    def se_total(self) -> Floats:
        """Their standard errors as estimates of these models' values on the population."""
        total: Floats = np.hypot(self.se, self.se_rows)
        return total

    @cached_property
    def spread(self) -> Floats:
        """The standard deviation of the values between folds; NaN for a single fold."""
        return spread(self.fold_values)

    @cached_property
    def se_procedure(self) -> Floats:
        """Their standard errors as estimates of the learning procedure's values."""
        sizes = [each.choices.data for each in self.folds]
        n_train, n_test = (
            np.array([getattr(each, name) for each in sizes], dtype=np.float64)
            for name in ("n_rows_train", "n_rows_evaluation")
        )
        between = corrected_error(self.fold_values, self.weights, n_train, n_test)
        total: Floats = np.hypot(between, self.se)
        return total

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """The warnings of all folds, each once."""
        return tuple(dict.fromkeys(text for each in self.folds for text in each.warnings))

    @property
    def is_interrupted(self) -> bool:
        """Whether the user ended the run: folds are missing, or the last one is less precise."""
        is_last = self.folds[-1].estimate.interrupted
        return is_last or len(self.folds) < self.n_planned

    @property
    def plot(self) -> FoldPlotter:
        """The plots of this result; see :mod:`dsage.plots`."""
        return FoldPlotter(self)

    def to_frame(self, confidence: float = 0.95) -> pd.DataFrame:
        """Return one line per feature, the largest value first.

        Parameters
        ----------
        confidence : float, default=0.95
            Confidence level of the intervals.

        Returns
        -------
        pandas.DataFrame
            Columns:

            - ``feature``, ``value``, ``share``: the value, and its share of the sum of all values.
            - ``se``, ``lower``, ``upper``: the error from computing, and the interval for these
              models on these rows.
            - ``se_rows``, ``lower_total``, ``upper_total``: the error from the choice of the rows,
              and the interval for these models on the population.
            - ``spread``: the standard deviation between folds. ``se_procedure``,
              ``lower_procedure``, ``upper_procedure``: the error and the interval for the learning
              procedure.
            - ``p_value``: of the hypothesis that the value of the learning procedure is not above
              zero, adjusted for the number of features.

            Unknown numbers are NaN: the procedure's interval with a single fold, and the interval
            for the population if a fold has a single evaluation row.
        """
        total = float(self.values.sum())
        share = self.values / total if total > 0 else np.full(len(self.values), math.nan)
        columns: dict[str, Any] = {
            "feature": list(self.feature_names),
            "value": self.values,
            "share": share,
            "se": self.se,
        }
        columns |= self._ends("", self.se, self._df, confidence)
        columns["se_rows"] = self.se_rows
        columns |= self._ends("_total", self.se_total, self.df_total, confidence)
        columns |= {"spread": self.spread, "se_procedure": self.se_procedure}
        columns |= self._procedure(columns["lower_total"], columns["upper_total"], confidence)
        order = np.argsort(-self.values, kind="stable")
        return pd.DataFrame(columns).iloc[order].reset_index(drop=True)

    def fold_frame(self) -> pd.DataFrame:
        """Return one line for each fold and feature.

        Returns
        -------
        pandas.DataFrame
            Columns ``fold``, ``repeat``, ``n_train``, ``n_test``, ``sampler``, ``estimand``,
            ``feature``, ``value``, ``se`` and ``se_rows``.
        """
        frames = []
        for number, (each, repeat) in enumerate(zip(self.folds, self.repeats, strict=True), 1):
            data = each.choices.data
            columns = {
                "fold": number,
                "repeat": repeat,
                "n_train": data.n_rows_train,
                "n_test": data.n_rows_evaluation,
                "sampler": each.choices.sampler.name,
                "estimand": each.estimate.estimand,
                "feature": list(self.feature_names),
                "value": each.values,
                "se": each.se,
                "se_rows": each.estimate.se_rows,
            }
            frames.append(pd.DataFrame(columns))
        return pd.concat(frames, ignore_index=True)

    def _check(self) -> None:
        from dsage.result.saving import check_consistent  # noqa: PLC0415

        for each in self.folds:
            check_consistent(each)
        if not self.folds or {len(self.repeats), len(self.weights)} != {len(self.folds)}:
            raise ValueError("the numbers of folds differ")
        if any(each.feature_names != self.feature_names for each in self.folds):
            raise ValueError("the features of the folds differ")

    @cached_property
    def _df(self) -> Floats:
        variances = (self.weights[:, None] * np.stack([each.se for each in self.folds])) ** 2
        return effective_df(variances, np.stack([each.estimate.df for each in self.folds]))

    @cached_property
    def df_total(self) -> Floats:
        """Degrees of freedom of `se_total`."""
        errors = np.nan_to_num(np.stack([each.estimate.se_rows for each in self.folds]))
        df = np.maximum([each.estimate.df_rows for each in self.folds], 1.0)
        of_rows = effective_df((self.weights[:, None] * errors) ** 2, df)
        variances = np.stack([self.se, np.nan_to_num(self.se_rows)]) ** 2
        return effective_df(variances, np.stack([self._df, of_rows]))

    @cached_property
    def df_procedure(self) -> Floats:
        """Degrees of freedom of `se_procedure`."""
        # The variance between folds is the least certain of all.
        return np.full(len(self.values), max(len(self.folds) - 1.0, 1.0))

    @cached_property
    def p_procedure(self) -> Floats:
        """The p-values of the learning procedure, for each feature on its own.

        Few folds may agree by chance, so a p-value is never below the p-value for these models.
        """
        p = p_values(self.values, self.se_procedure, df=self.df_procedure)
        p_models = p_values(self.values, self.se_total, df=self.df_total)
        return np.where(np.isfinite(self.se_total), np.maximum(p, p_models), p)

    def _procedure(self, low: Floats, high: Floats, confidence: float) -> dict[str, Floats]:
        """Return interval and p-value of the procedure.

        The interval is widened to contain `low` and `high`, the interval for the models, if both
        are known.
        """
        own = self._ends("_procedure", self.se_procedure, self.df_procedure, confidence)
        lower, upper = own["lower_procedure"], own["upper_procedure"]
        return {
            "lower_procedure": lower - np.fmax(lower - low, 0.0),
            "upper_procedure": upper + np.fmax(high - upper, 0.0),
            "p_value": holm(self.p_procedure),
        }

    def _ends(self, kind: str, se: Floats, df: Floats, confidence: float) -> dict[str, Floats]:
        """Return the ends of an interval; NaN if its error is unknown."""
        ends = intervals(self.values, se, confidence, df=df)
        low, high = (np.where(np.isfinite(each), each, math.nan) for each in ends)
        return {f"lower{kind}": low, f"upper{kind}": high}

    def __repr__(self) -> str:
        return as_text(self._table())

    def _repr_html_(self) -> str:
        return as_html(self._table())

    def _table(self) -> PooledTable:
        first, data = self.folds[0].choices, [each.choices.data for each in self.folds]
        n_folds, n_rows = len(self.folds), sum(each.n_rows_evaluation for each in data)
        folds = "fold" if n_folds == 1 else "folds"
        title = (
            f"{name_estimand(self.folds)} values of {first.model.name}, {n_folds} {folds}: "
            f"{self.target}, {first.loss.name}, {n_rows:,} evaluated rows"
        )
        if (n_repeats := max(self.repeats)) > 1:
            title += f" in {n_repeats} repeats"
        notes = [
            "value ± its standard error from computing; spread: standard deviation between folds",
            "95 % intervals: for these models on the population, and for the learning procedure",
            "p-value: for the learning procedure, adjusted for the number of features",
        ]
        if self.is_interrupted:
            notes.append(f"interrupted: these are {n_folds} of {self.n_planned} folds")
        columns = ("lower_total", "upper_total"), ("lower_procedure", "upper_procedure")
        named = dict(zip(("models", "procedure"), columns, strict=True))
        return PooledTable(title, self.to_frame(), named, notes)
