"""Results of comparisons: several models on the same rows, one model on two sets of rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dsage._check import visible
from dsage.estimate.comparison import two_sided
from dsage.estimate.inference import holm, intervals
from dsage.estimate.result import Estimate
from dsage.games.base import Floats
from dsage.result.plotters import ComparisonPlotter
from dsage.result.pooled_tables import html_table, p_value_cell
from dsage.result.series import Series
from dsage.result.tables import NAMES, count_digits, format_interval, format_table

_MOST_LINES = 20


class Shown:
    """A comparison that shows as a table in a terminal and in a notebook."""

    def _cells(self) -> tuple[str, list[str], list[list[str]], list[str]]:
        """Return title, heads, lines and notes."""
        raise NotImplementedError

    def to_html(self) -> str:
        """Return the table as HTML."""
        return html_table(*self._cells())

    def report(self, path: str | Path) -> Path:
        """Write a report, one self-contained HTML file, and return its path."""
        from dsage.report import write_comparison_report  # noqa: PLC0415

        return write_comparison_report(self, path)  # type: ignore[arg-type]

    def __repr__(self) -> str:
        title, heads, lines, notes = self._cells()
        return visible("\n".join([title, "", *format_table(heads, lines), "", *notes]))

    def _repr_html_(self) -> str:
        return self.to_html()


@dataclass(frozen=True, eq=False, repr=False)
class ModelComparison(Shown):
    """How much more each feature is worth in one model than in another, on the same rows.

    :func:`dsage.compare` returns one. It shows as a table in a terminal and in a notebook.

    Attributes
    ----------
    reference : str
        The model that the others are compared with.
    estimates : dict of str to Estimate
        The values of each model.
    differences : dict of str to Estimate
        For each model except the reference, its values minus the reference's values, estimated
        with common orderings, rows and noise.
    risks : dict of str to float
        The risk of each model with all features known, on the evaluation rows.
    target, loss, sampler : str
        The target, the loss, and the sampler, which all models have in common.
    n_rows : int
        Number of evaluation rows.
    """

    reference: str
    estimates: dict[str, Estimate]
    differences: dict[str, Estimate]
    risks: dict[str, float]
    target: str
    loss: str
    sampler: str
    n_rows: int

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The features, or the groups."""
        return self.estimates[self.reference].feature_names

    @property
    def kind(self) -> str:
        """What is estimated, in words."""
        return NAMES[self.estimates[self.reference].estimand]

    @property
    def plot(self) -> ComparisonPlotter:
        """The plots of this result; see :mod:`dsage.plots`."""
        return ComparisonPlotter(self, "compare_models")

    def to_frame(self, confidence: float = 0.95) -> pd.DataFrame:
        """Return one line for each feature and each model except the reference.

        Parameters
        ----------
        confidence : float, default=0.95
            Confidence level of the intervals.

        Returns
        -------
        pandas.DataFrame
            Columns, by model and from the largest difference:

            - ``model``, ``feature``, ``value``, ``value_reference``, ``difference``: the value,
              the reference's value, and their difference.
            - ``se``, ``lower``, ``upper``: the error of the difference from computing, and its
              interval for these rows; ``se_rows``, ``lower_total``, ``upper_total``: the error
              from the choice of the rows, and the interval for the population.
            - ``p_value``: two-sided, for no difference in the population; adjusted for all features
              and models (Holm).
        """
        frames = []
        reference = self.estimates[self.reference].values
        for label, found in self.differences.items():
            own = {
                "model": label,
                "feature": list(self.feature_names),
                "value": self.estimates[label].values,
                "value_reference": reference,
                "difference": found.values,
            }
            columns = difference_columns(Series.of_estimate(found, label), confidence)
            frames.append(pd.DataFrame(own | columns))
        frame = pd.concat(frames, ignore_index=True)
        frame["p_value"] = holm(frame["p_value"].to_numpy())
        place = frame["model"].map({label: at for at, label in enumerate(self.differences)})
        order = np.lexsort((-frame["difference"].abs(), place))
        return frame.iloc[order].reset_index(drop=True)

    def _cells(self) -> tuple[str, list[str], list[list[str]], list[str]]:
        frame, has_many = self.to_frame(), len(self.differences) > 1
        digits = count_digits(frame[["value", "value_reference"]].to_numpy().ravel())
        names = "models" if has_many else next(iter(self.differences))
        heads = ["feature", *["model"] * has_many, "value" if has_many else str(names)]
        heads += [self.reference, "difference", "95 % interval", "p-value"]
        lines = [
            [
                row["feature"],
                *[row["model"]] * has_many,
                f"{row['value']:,.{digits}f}",
                f"{row['value_reference']:,.{digits}f}",
                f"{row['difference']:+,.{digits}f} ± {row['se']:,.{digits}f}",
                format_interval(row["lower_total"], row["upper_total"], digits),
                p_value_cell(row["p_value"]),
            ]
            for row in _first_lines(frame, len(self.differences))
        ]
        risks = ", ".join(f"{name} {risk:,.{digits}f}" for name, risk in self.risks.items())
        notes = [
            f"risks on these rows: {risks}",
            f"difference to {self.reference} ± its standard error from computing",
            "95 % interval for the population; p-value for all lines at once (Holm)",
        ]
        title = (
            f"{self.kind} values of {len(self.estimates)} models: {self.target}, {self.loss}, "
            f"{self.n_rows:,} evaluation rows"
        )
        return title, heads, lines, notes


@dataclass(frozen=True, eq=False, repr=False)
class DataComparison(Shown):
    """How much of a change in risk each feature explains, for one model on two sets of rows.

    :func:`dsage.compare_data` returns one. It shows as a table in a terminal and in a notebook.
    With ``L(S)`` the risk of the model that knows the features S,

        change of L(all) = change of L(none) - sum of the changes of the values.

    So each feature *explains* the negative change of its value: if the feature contributes less,
    the risk rises by that amount. The rest is the change of the risk without features: of how hard
    it is to predict the target by its mean.

    Attributes
    ----------
    labels : tuple of two str
        The names of the two sets, the earlier one first.
    estimates : dict of str to Estimate
        The values on each set.
    losses : dict of str to arrays of shape (n_rows,)
        The losses of the model on the rows of each set.
    target, loss, sampler, model : str
        The target, the loss, the sampler, and the model.
    """

    labels: tuple[str, str]
    estimates: dict[str, Estimate]
    losses: dict[str, Floats]
    target: str
    loss: str
    sampler: str
    model: str

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The features, or the groups."""
        return self.estimates[self.labels[0]].feature_names

    @property
    def kind(self) -> str:
        """What is estimated, in words."""
        return NAMES[self.estimates[self.labels[0]].estimand]

    @cached_property
    def difference(self) -> Series:
        """The values on the second set minus the values on the first."""
        one, two = (Series.of_estimate(self.estimates[label], label) for label in self.labels)
        return two.minus(one)

    @property
    def change(self) -> float:
        """The change of the risk of the model that knows all features."""
        one, two = (float(self.losses[label].mean()) for label in self.labels)
        return two - one

    @property
    def change_without_features(self) -> float:
        """The change of the risk of the model that knows no feature."""
        return self.change + float(self.difference.values.sum())

    @property
    def plot(self) -> ComparisonPlotter:
        """The plots of this result; see :mod:`dsage.plots`."""
        return ComparisonPlotter(self, "compare_data")

    def to_frame(self, confidence: float = 0.95) -> pd.DataFrame:
        """Return one line per feature, from the largest change.

        Parameters
        ----------
        confidence : float, default=0.95
            Confidence level of the intervals.

        Returns
        -------
        pandas.DataFrame
            Columns:

            - ``feature``, ``value[NAME]`` of each set, ``difference``: the values and their change.
            - ``explained``: the part of the change in risk that the feature explains, the negative
              of ``difference``.
            - ``se``, ``lower``, ``upper``: the error of the difference from computing, and its
              interval for these rows; ``se_rows``, ``lower_total``, ``upper_total``: the error
              from the choice of the rows, and the interval for the populations.
            - ``p_value``: two-sided, for no change between the populations; adjusted for the number
              of features (Holm).
        """
        found = self.difference
        columns: dict[str, Any] = {"feature": list(self.feature_names)}
        columns |= {f"value[{label}]": self.estimates[label].values for label in self.labels}
        columns |= {"difference": found.values, "explained": -found.values}
        frame = pd.DataFrame(columns | difference_columns(found, confidence))
        frame["p_value"] = holm(frame["p_value"].to_numpy())
        order = np.argsort(-frame["difference"].abs().to_numpy(), kind="stable")
        return frame.iloc[order].reset_index(drop=True)

    def risk_frame(self, confidence: float = 0.95) -> pd.DataFrame:
        """Return the risks of the model that knows all features, and their change.

        Parameters
        ----------
        confidence : float, default=0.95
            Confidence level of the intervals.

        Returns
        -------
        pandas.DataFrame
            One line for each set and one for the change: ``of``, ``risk``, ``se`` from the choice
            of the rows, ``lower`` and ``upper``.
        """
        means = [float(self.losses[label].mean()) for label in self.labels]
        errors = [
            float(each.std(ddof=1) / math.sqrt(len(each))) if len(each) > 1 else math.nan
            for each in (self.losses[label] for label in self.labels)
        ]
        risk, se = np.array([*means, self.change]), np.array([*errors, math.hypot(*errors)])
        lower, upper = intervals(risk, se, confidence)
        columns = {"of": [*self.labels, "change"], "risk": risk, "se": se}
        return pd.DataFrame(columns | {"lower": lower, "upper": upper})

    def _cells(self) -> tuple[str, list[str], list[list[str]], list[str]]:
        frame, (one, two) = self.to_frame(), self.labels
        names = [f"value[{label}]" for label in self.labels]
        digits = count_digits(frame[names].to_numpy().ravel())
        heads = ["feature", one, two, "explains", "95 % interval", "p-value"]
        lines = [
            [
                row["feature"],
                *[f"{row[name]:,.{digits}f}" for name in names],
                f"{row['explained']:+,.{digits}f} ± {row['se']:,.{digits}f}",
                format_interval(-row["upper_total"], -row["lower_total"], digits),
                p_value_cell(row["p_value"]),
            ]
            for row in _first_lines(frame, 1)
        ]
        means = {label: float(self.losses[label].mean()) for label in self.labels}
        explained = -float(self.difference.values.sum())
        risks = ", ".join(f"{label} {mean:,.{digits}f}" for label, mean in means.items())
        parts = self.change_without_features, explained
        without, by_features = (f"{part:+,.{digits}f}" for part in parts)
        notes = [
            f"risk: {risks}; change {self.change:+,.{digits}f}",
            f"change without features {without}; explained by the features {by_features}",
            "explains: the part of the change in risk; 95 % interval for the populations",
        ]
        n_rows = " and ".join(f"{len(self.losses[label]):,}" for label in self.labels)
        title = f"{self.kind} values of {self.model} on two sets of rows: {self.target}, "
        return f"{title}{self.loss}, {n_rows} rows", heads, lines, notes


def difference_columns(found: Series, confidence: float) -> dict[str, Floats]:
    """Return errors, intervals and unadjusted p-values of differences."""
    with np.errstate(invalid="ignore"):
        se_rows = np.sqrt(np.maximum(found.se_total**2 - found.se**2, 0.0))
    columns = {"se": found.se}
    columns["lower"], columns["upper"] = intervals(found.values, found.se, confidence, df=found.df)
    ends = intervals(found.values, found.se_total, confidence, df=found.df_total)
    columns["se_rows"] = se_rows
    columns["lower_total"], columns["upper_total"] = (
        np.where(np.isfinite(each), each, math.nan) for each in ends
    )
    columns["p_value"] = two_sided(found.values, found.se_total, found.df_total)
    return columns


def _first_lines(frame: pd.DataFrame, n_parts: int) -> list[dict[Any, Any]]:
    return frame.head(_MOST_LINES * n_parts).to_dict("records")
