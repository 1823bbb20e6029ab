"""The result of explaining single rows: to read, plot, report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dsage._check import check_member, refusal, shown
from dsage.data.frames import take_rows
from dsage.data.layout import Layout
from dsage.estimate.inference import intervals
from dsage.estimate.local.result import LocalEstimate
from dsage.games.base import Floats, Mask, Rows
from dsage.graphs import Graph
from dsage.result.plotters import RowPlotter
from dsage.result.row_tables import as_html, as_text
from dsage.result.row_values import Label, Positions, show_rows
from dsage.result.run_info import RunInfo


@dataclass(frozen=True, eq=False, repr=False)
class RowExplanation:
    """What each feature adds to the prediction, or takes from the loss, of single rows.

    :func:`dsage.explain_rows` returns one. It shows as a table. ``explanation[3]`` is the fourth
    row, ``explanation[:10]`` the first ten, and a loop visits one row after the other.

    Attributes
    ----------
    estimates : tuple of LocalEstimate
        Values, errors and counts, of each output.
    outputs : tuple
        The explained outputs: classes, or numbers of columns; None for a model with one output,
        and for losses.
    target : str
        Name of the target.
    rows : data frame or array of shape (n_rows, n_features)
        The rows as passed.
    row_names : tuple
        Their labels, if the data frame has some; otherwise their numbers, starting at 0.
    layout : Layout
        Names and kinds of the columns.
    graph : Graph or None
        The graph over features and target; None if there was none.
    sampler_scores : pandas.DataFrame or None
        Held-out scores of the sampler and of alternatives.
    groups : dict or None
        The features of each group, if groups were explained.
    choices : RunInfo
        Everything that was chosen, and by whom; print it.
    warnings : tuple of str
        Warnings of the run.
    is_marginal : bool
        Whether unknown features were drawn regardless of the known ones.
    """

    estimates: tuple[LocalEstimate, ...]
    outputs: tuple[Label | None, ...]
    target: str
    rows: Any = field(metadata={"is_saved": False})
    row_names: tuple[Any, ...] = field(metadata={"is_saved": False})
    layout: Layout = field(metadata={"is_saved": False})
    graph: Graph | None
    sampler_scores: pd.DataFrame | None
    groups: dict[str, tuple[str, ...]] | None
    choices: RunInfo
    warnings: tuple[str, ...]
    is_marginal: bool = False

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The features, or the groups, in the order of the second axis of `values`."""
        return self.estimates[0].feature_names

    @property
    def is_loss(self) -> bool:
        """Whether losses are explained."""
        return self.estimates[0].is_loss

    @property
    def estimand(self) -> str:
        """``"sage"`` for plain conditional values, ``"d-sage"`` for values with a graph.

        ``"causal"`` for values of interventions on features.
        """
        return self.estimates[0].estimand

    @property
    def values(self) -> Floats:
        """The values, (n_rows, n_features), or (n_rows, n_features, n_outputs) for several."""
        return self._stack([each.values for each in self.estimates])

    @property
    def se(self) -> Floats:
        """Their standard errors from orderings and draws, in the shape of `values`."""
        return self._stack([each.se for each in self.estimates])

    @property
    def direct(self) -> Floats | None:
        """The direct parts of causal values, in the shape of `values`; None for other values.

        The effect of the value itself on the model; `direct` and `indirect` add up to `values`.
        """
        parts = [each.parts.direct for each in self.estimates if each.parts is not None]
        return self._stack(parts) if parts else None

    @property
    def indirect(self) -> Floats | None:
        """The indirect parts of causal values: the effect of changes in the other features."""
        parts = [each.parts.indirect for each in self.estimates if each.parts is not None]
        return self._stack(parts) if parts else None

    @property
    def base_values(self) -> Floats:
        """The prediction, or the loss, with no feature known: (n_rows,) or (n_rows, n_outputs)."""
        return self._stack(
            [np.broadcast_to(each.base_value, len(self)).copy() for each in self.estimates]
        )

    @property
    def predictions(self) -> Floats:
        """The predictions, or losses, with all features known; in the shape of `base_values`."""
        return self._stack([each.predictions for each in self.estimates])

    @property
    def unexplained(self) -> Floats:
        """The predictions minus base values and values; in the shape of `base_values`.

        See :attr:`dsage.estimate.LocalEstimate.unexplained`.
        """
        return self._stack([each.unexplained for each in self.estimates])

    def _stack(self, parts: Sequence[Floats]) -> Floats:
        return parts[0] if len(parts) == 1 else np.stack(parts, axis=-1)

    @cached_property
    def matrix(self) -> Floats:
        """The rows as numbers, (n_rows, n_columns): classes as codes, times as distances."""
        return self.layout.encode(self.rows)

    @cached_property
    def texts(self) -> tuple[tuple[str, ...], ...]:
        """The values of the features, or of the members of groups, as text, for each row."""
        return show_rows(self.layout, self.rows, self.matrix, self.feature_names, self.groups)

    def column_of(self, feature: str) -> int | None:
        """Return the position of the column of a feature; None for a group of several."""
        check_member(feature, self.feature_names, "feature", "the explained features")
        members = (self.groups or {}).get(feature, (feature,))
        return self.layout.names.index(members[0]) if len(members) == 1 else None

    def positions(self, feature: str) -> Positions:
        """Return the relative position of each row's value of a feature."""
        at = self.column_of(feature)
        if at is None:
            return Positions.of_group(len(self))
        is_missing = self.layout.is_missing(self.matrix)[:, at]
        if self.layout.n_categories[at]:
            place = self.feature_names.index(feature)
            return Positions.of_class([row[place] for row in self.texts], is_missing)
        return Positions.of_number(self.matrix[:, at], is_missing)

    def __len__(self) -> int:
        return len(self.estimates[0].values)

    def __iter__(self) -> Iterator[RowExplanation]:
        return (self[at] for at in range(len(self)))

    def __getitem__(self, rows: int | slice | Sequence[int] | Rows | Mask) -> RowExplanation:
        """Return some of the rows, by position or by a mask."""
        chosen = self._positions(rows)
        if not len(chosen):
            raise refusal("the index", "at least one row", rows, "Use another", IndexError)
        return replace(
            self,
            estimates=tuple(each.take(chosen) for each in self.estimates),
            rows=take_rows(self.rows, chosen),
            row_names=tuple(self.row_names[at] for at in chosen),
        )

    def _positions(self, rows: object) -> Rows:
        if isinstance(rows, slice):
            return np.arange(len(self))[rows]
        found = np.atleast_1d(np.asarray(rows))
        if found.dtype == np.bool_ and found.shape == (len(self),):
            return np.flatnonzero(found)
        if found.shape == (0,):
            found = found.astype(np.intp)
        if found.ndim != 1 or found.dtype.kind not in "iu":
            advice = "Use an int, a slice, a list of ints, or a mask"
            raise refusal("the index", "positions of rows", rows, advice, TypeError)
        bad = found[(found < -len(self)) | (found >= len(self))]
        if len(bad):
            condition = f"a position from 0 to {len(self) - 1}"
            raise refusal("the row", condition, int(bad[0]), "Use another", IndexError)
        positions: Rows = np.where(found < 0, found + len(self), found).astype(np.intp)
        return positions

    def of_output(self, output: Label | None = None) -> RowExplanation:
        """Return the explanation of one output: a class, or the number of a column.

        It may be left out if there is only one.
        """
        if len(self.outputs) == 1 and output is None:
            return self
        if output is None or output not in self.outputs:
            advice = f"They are {shown(self.outputs)}"
            raise refusal("output", "one of the explained outputs", output, advice)
        at = self.outputs.index(output)
        return replace(self, estimates=(self.estimates[at],), outputs=(output,))

    def to_frame(self, confidence: float = 0.95) -> pd.DataFrame:
        """Return one line for each row, output and feature.

        Parameters
        ----------
        confidence : float, default=0.95
            Confidence level of the interval of a *single* value.

        Returns
        -------
        pandas.DataFrame
            Columns ``row`` (its name), ``output`` (only if there are several), ``feature``,
            ``feature_value`` (as text), ``value``, ``se``, ``lower``, ``upper``; and, with an
            audit, ``audit_difference`` (with minus without the graph), ``audit_se``,
            ``audit_matters``. Causal values have ``direct``, ``indirect``, ``se_direct`` and
            ``se_indirect``.
        """
        texts = [text for row in self.texts for text in row]
        frames = []
        for output, estimate in zip(self.outputs, self.estimates, strict=True):
            frame = estimate.to_frame(confidence)
            # Labels with several levels are tuples, which would become rows of an array.
            names = [name for name in self.row_names for _ in self.feature_names]
            frame["row"] = pd.Series(names, dtype=object).infer_objects()
            frame.insert(1, "output", output)
            frame.insert(3, "feature_value", texts)
            audit = estimate.audit
            if audit is not None:
                frame["audit_difference"] = audit.differences.ravel()
                frame["audit_se"] = audit.se.ravel()
                frame["audit_matters"] = audit.matters(estimate.values, confidence).ravel()
            frames.append(frame)
        whole = pd.concat(frames, ignore_index=True)
        return whole.drop(columns="output") if len(self.outputs) == 1 else whole

    def mean_frame(self, confidence: float = 0.95) -> pd.DataFrame:
        """Return the means over the rows, of each output and feature, the largest first.

        Returns
        -------
        pandas.DataFrame
            Columns ``output`` (only if there are several), ``feature``, ``mean`` (for losses, the
            SAGE value of these rows), ``mean_absolute``, ``se`` (an upper bound of the
            standard error of the mean from draws and orderings), ``lower``, ``upper``.
        """
        frames = []
        for output, estimate in zip(self.outputs, self.estimates, strict=True):
            mean = estimate.values.mean(axis=0)
            # Rows share their orderings, so their errors may be correlated.
            se = estimate.se.mean(axis=0)
            lower, upper = intervals(mean, se, confidence, df=estimate.df.min(axis=0))
            size = np.abs(estimate.values).mean(axis=0)
            columns = {"output": output, "feature": list(self.feature_names), "mean": mean}
            columns |= {"mean_absolute": size, "se": se, "lower": lower, "upper": upper}
            order = np.argsort(-(mean if self.is_loss else size), kind="stable")
            frames.append(pd.DataFrame(columns).iloc[order])
        whole = pd.concat(frames, ignore_index=True)
        return whole.drop(columns="output") if len(self.outputs) == 1 else whole

    def to_shap(self) -> Any:  # noqa: ANN401
        """Return the values as a ``shap.Explanation``, for the plots of shap (extra ``shap``).

        Its data are the rows as numbers or objects, and the names of groups have no data.

        Returns
        -------
        shap.Explanation
            With `values`, `base_values`, `data`, `feature_names` and, for several outputs,
            `output_names`.
        """
        found = self.estimates[0].to_shap()
        found.values, found.base_values = self.values, self.base_values
        if self.groups is not None:
            found.data = np.array(self.texts, dtype=object)
        if len(self.outputs) > 1:
            found.output_names = [str(output) for output in self.outputs]
        return found

    @property
    def plot(self) -> RowPlotter:
        """The plots of this explanation; see :mod:`dsage.plots`."""
        return RowPlotter(self)

    def save(self, path: str | Path) -> Path:
        """Write everything into one file of JSON and arrays; :meth:`load` reads it.

        Numbers and times of the rows are kept unchanged, classes and labels of rows as text. The
        file does not contain the sampler and the model, and does not run any code when it is read.

        Parameters
        ----------
        path : str or Path
            The file; its folder must exist. An existing file is overwritten.

        Returns
        -------
        Path
            The file.
        """
        from dsage.result.saving import save_rows  # noqa: PLC0415

        return save_rows(self, path)

    @classmethod
    def load(cls, path: str | Path) -> RowExplanation:
        """Return what :meth:`save` wrote; its rows are a pandas data frame.

        Parameters
        ----------
        path : str or Path
            The file.
        """
        from dsage.result.saving import load_rows  # noqa: PLC0415

        return load_rows(path)

    def report(self, path: str | Path) -> Path:
        """Write a report, one self-contained HTML file, and return its path."""
        from dsage.report import write_row_report  # noqa: PLC0415

        return write_row_report(self, path)

    def __repr__(self) -> str:
        return as_text(self)

    def _repr_html_(self) -> str:
        return as_html(self)
