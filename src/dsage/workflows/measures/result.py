"""The result of several measures: one table, one plot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from dsage._check import check_count, check_members, check_names, refusal
from dsage.estimate.inference import holm, intervals, p_values
from dsage.result.explanation import Explanation
from dsage.result.saved import Saved
from dsage.workflows.measures.averages import Average
from dsage.workflows.measures.kinds import MEASURES


@dataclass(frozen=True, eq=False)
class Measures(Saved):
    """Measures of the importance of the same features, side by side.

    Attributes
    ----------
    feature_names : tuple of str
        The features, or groups of them.
    averages : mapping of str to Average
        The values of each measure, with the errors from draws and from rows.
    target, loss, sampler : str
        The target, the loss and the sampler.
    n_rows : int
        Number of evaluation rows.
    explanation : Explanation or None
        The SAGE values, if they are among the measures.
    interactions : pandas.DataFrame or None
        The interaction of each pair of features, if requested.
    """

    _file_kind: ClassVar[str] = "dsage measures"

    feature_names: tuple[str, ...]
    averages: Mapping[str, Average]
    target: str
    loss: str
    sampler: str
    n_rows: int
    explanation: Explanation | None = field(default=None, repr=False)
    interactions: pd.DataFrame | None = field(default=None, repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        """The measures."""
        return tuple(self.averages)

    def to_frame(self, confidence: float = 0.95) -> pd.DataFrame:
        """Return one line per feature and measure.

        Parameters
        ----------
        confidence : float, default=0.95
            Confidence level of the intervals.

        Returns
        -------
        pandas.DataFrame
            ``feature``, ``measure``, ``value``; ``se``, the error from computing, with the interval
            ``lower``, ``upper`` for these rows; ``se_rows``, the error from the choice of the rows,
            with the interval ``lower_total``, ``upper_total`` for the population; and ``p_value``,
            of the hypothesis that the value in the population is not above zero, adjusted for the
            number of features.
        """
        order = self._order()
        parts = [self._lines(name, confidence).iloc[order] for name in self.names]
        return pd.concat(parts, ignore_index=True)

    def _lines(self, name: str, confidence: float) -> pd.DataFrame:
        found = self.averages[name]
        total, df = np.hypot(found.se, found.se_rows), max(self.n_rows - 1, 1)
        lower, upper = intervals(found.values, found.se, confidence=confidence)
        lowest, highest = np.full((2, len(found.values)), np.nan)
        p_value = np.full(len(found.values), np.nan)
        if self.n_rows > 1:
            lowest, highest = intervals(found.values, total, df=df, confidence=confidence)
            p_value = holm(p_values(found.values, total, df=df))
        return pd.DataFrame(
            {
                "feature": list(self.feature_names),
                "measure": name,
                "value": found.values,
                "se": found.se,
                "lower": lower,
                "upper": upper,
                "se_rows": found.se_rows,
                "lower_total": lowest,
                "upper_total": highest,
                "p_value": p_value,
            }
        )

    def table(self) -> pd.DataFrame:
        """Return the values, one line per feature and one column per measure.

        The feature with the largest value of the first measure comes first.
        """
        columns = {name: found.values for name, found in self.averages.items()}
        frame = pd.DataFrame(columns, index=pd.Index(self.feature_names, name="feature"))
        return frame.iloc[self._order()]

    def _order(self) -> list[int]:
        first = self.averages[self.names[0]].values
        order: list[int] = np.argsort(-first, kind="stable").tolist()
        return order

    def plot(self, *, top: int = 12, confidence: float = 0.95) -> Any:  # noqa: ANN401
        """Draw a panel for each measure, on a common scale, and return their axes.

        Parameters
        ----------
        top : int, default=12
            Number of features to draw, those with the largest values of the first measure.
        confidence : float, default=0.95
            Confidence level of the intervals, for these rows (thick) and for the population (thin).

        Returns
        -------
        array of matplotlib Axes
        """
        from dsage.workflows.measures.plotting import draw  # noqa: PLC0415

        return draw(self, top=check_count(top, "top"), confidence=confidence)

    def _check(self) -> None:
        shape = (len(check_names(self.feature_names, "feature_names")),)
        if any(each.shape != shape for part in self.averages.values() for each in part):
            raise ValueError("the arrays have different lengths")
        check_members(self.names, tuple(MEASURES), "measures", "the measures")
        self.to_frame()

    def __getitem__(self, measure: str) -> pd.DataFrame:
        """Return the lines of one measure, see `to_frame`."""
        if measure not in self.averages:
            advice = f"The measures are {', '.join(self.names)}"
            raise refusal("measure", "one that was estimated", measure, advice, KeyError)
        frame = self.to_frame()
        return frame[frame["measure"] == measure].reset_index(drop=True)

    def __str__(self) -> str:
        head = f"Measures of {self.target} by {self.loss}, sampler {self.sampler}:"
        return f"{head}\n{self.table().to_string(float_format=lambda x: f'{x:.4g}')}"

    def _repr_html_(self) -> str:
        return str(self.table().to_html(float_format=lambda x: f"{x:.4g}"))
