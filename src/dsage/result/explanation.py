"""The result that a user holds: to read, plot, report, save."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dsage._check import check_member
from dsage._files import check_path, write_bytes
from dsage.estimate import Estimate, SamplerCheck
from dsage.estimate.graph_range import GraphRange
from dsage.games.base import Floats
from dsage.graphs import Graph
from dsage.result.columns import make_frame, make_output_frame
from dsage.result.pictures import picture_of
from dsage.result.plotters import Plotter
from dsage.result.run_info import RunInfo, plain
from dsage.result.tables import as_html, as_text
from dsage.samplers.base import Sampler


@dataclass(frozen=True)
class FeatureRecord:
    """The results for one feature: ``explanation["bmi"]``.

    The attributes are the columns of :meth:`Explanation.to_frame`, with a confidence of 95 %.

    Attributes
    ----------
    feature : str
        Its name.
    value, se : float
        Its value, and the standard error from orderings and draws.
    lower, upper : float
        The interval for these evaluation rows.
    se_rows, lower_total, upper_total : float
        The standard error from the choice of the rows, and the interval for the population; NaN
        with fewer than two rows.
    se_sampler : float
        The error from the sampler; NaN if it was not estimated.
    share : float
        Its share of the sum of all values.
    p_value : float
        Of the hypothesis that the value in the population is not above zero, adjusted for the
        number of features.
    """

    feature: str
    value: float
    se: float
    lower: float
    upper: float
    se_rows: float
    lower_total: float
    upper_total: float
    se_sampler: float
    share: float
    p_value: float


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """How much each feature contributes to a model's predictive performance.

    :func:`dsage.explain` returns one. It shows as a table in a terminal and in a notebook.

    Attributes
    ----------
    estimate : Estimate
        Values, errors, counts and the audit.
    target : str
        Name of the target.
    graph : Graph or None
        The graph over features and target; None if there was none.
    edge_strength : pandas.DataFrame or None
        How often each edge was found again in resamples of the rows: columns ``from``, ``to``,
        ``share``, ``share_either``. None if the graph was not learned, or not from resamples.
    sampler_scores : pandas.DataFrame or None
        One line per sampler: its held-out energy score and MSEv, their differences to the best with
        standard errors, seconds, a verdict; see :class:`dsage.samplers.Choice`. ``Marginal`` shows
        what conditioning gains.
    groups : dict or None
        The features of each group, if groups were explained.
    choices : RunInfo
        Everything that was chosen, and by whom; print it.
    warnings : tuple of str
        Warnings of the run, except warnings of the audit and of the sampler: see `estimate.audit`
        and `sampler_check`.
    sampler_check : SamplerCheck or None
        How much the values would change with other samplers that score as well; None in files of
        earlier versions.
    sampler : Sampler or None
        The fitted sampler, which can be passed to :func:`dsage.explain` for other models of the
        same features. It is not saved in files, so it is None in a loaded explanation.
    row_losses : pandas.DataFrame or None
        One line per evaluation row, if ``keep_losses=True``: ``row``, its position; ``nothing`` and
        ``everything``, the loss of the model with no feature of the row known, and with all of
        them known; ``gain``, the difference. Row weights are not multiplied in. Up to their errors,
        the values add up to the (weighted) mean of ``gain``.
    range_graph : GraphRange or None
        The range of causal values over graphs that the data do not exclude; None for other values,
        for a graph that was given, and if the values do not depend on undetermined directions.

    Notes
    -----
    It is a mapping from features to records: ``len(explanation)`` is the number of features,
    ``explanation["bmi"]`` a :class:`FeatureRecord`, ``"bmi" in explanation`` works, and iterating
    yields the names, in the order of `values`.
    """

    estimate: Estimate
    target: str
    graph: Graph | None
    edge_strength: pd.DataFrame | None
    sampler_scores: pd.DataFrame | None
    groups: dict[str, tuple[str, ...]] | None
    choices: RunInfo
    warnings: tuple[str, ...]
    sampler_check: SamplerCheck | None = None
    sampler: Sampler | None = field(default=None, metadata={"is_saved": False})
    row_losses: pd.DataFrame | None = None
    range_graph: GraphRange | None = None

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
        """Their standard errors from orderings and draws, which more computing reduces."""
        return self.estimate.se

    @property
    def se_sampler(self) -> Floats | None:
        """Their errors from the sampler: the change with another one that scores as well.

        The root mean square of the estimated differences, without the part due to their own
        errors; see :class:`dsage.estimate.SamplerCheck`. None if it was not estimated:
        ``sampler_check.reason`` says why.
        """
        return None if self.sampler_check is None else self.sampler_check.errors

    @property
    def direct(self) -> Floats | None:
        """The direct parts of causal values: the gain from the values themselves.

        None for other values. `direct` and `indirect` add up to `values`; their standard errors
        are in :meth:`to_frame`.
        """
        return None if self.estimate.parts is None else self.estimate.parts.values[0]

    @property
    def indirect(self) -> Floats | None:
        """The indirect parts of causal values: the gain from changes in the other features."""
        return None if self.estimate.parts is None else self.estimate.parts.values[1]

    @cached_property
    def per_output(self) -> pd.DataFrame | None:
        """The values of each output, which add up to `values`; None if there is only one output.

        One line for each output and feature, by output and from the largest value: ``output``,
        ``feature``, ``value``, ``se``, ``lower``, ``upper``, ``se_rows``, ``lower_total``,
        ``upper_total`` and ``p_value``, as in :meth:`to_frame` with a confidence of 95 %. The
        p-values are adjusted for the features of an output.
        """
        return make_output_frame(self)

    @cached_property
    def share_skipped(self) -> float:
        """Share of all surpluses that are zero by separation, and were not evaluated."""
        return float(np.mean(self.estimate.share_skipped))

    @property
    def plot(self) -> Plotter:
        """The plots of this explanation; see :mod:`dsage.plots`."""
        return Plotter(self)

    def report(self, path: str | Path) -> Path:
        """Write the report, one self-contained HTML file, and return its path."""
        from dsage.report import write_report  # noqa: PLC0415

        return write_report(self, path)

    def save(self, path: str | Path) -> Path:
        """Write everything but the sampler into one file of JSON and arrays.

        :func:`dsage.load` reads it. The file does not run any code when it is read, so it
        cannot contain a fitted sampler: save that with :mod:`pickle` if you need it.

        Parameters
        ----------
        path : str or Path
            The file; its folder must exist. An existing file is overwritten.

        Returns
        -------
        Path
            The file.
        """
        from dsage.result.saving import save  # noqa: PLC0415

        return save(self, path)

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

            - ``feature``, ``value``, ``se``: the value, and its error from orderings and draws;
              ``lower``, ``upper``: the interval for these evaluation rows.
            - ``se_rows``: the error from the choice of the rows, which only more data reduces;
              ``lower_total``, ``upper_total``: the interval for the population. NaN if there are
              too few rows to estimate it.
            - ``se_sampler``: the error from the sampler, how much the value would change with
              another one that scores as well; NaN if it was not estimated. ``sampler_matters``:
              whether it is significantly larger than the other errors, for all features at once.
            - ``share``: of the sum of all values.
            - ``n_evaluated``, ``n_skipped``: surpluses that were evaluated, and that are zero by
              separation.
            - ``audit_difference``, ``audit_lower``, ``audit_upper``: d-SAGE minus SAGE with its
              interval, NaN without an audit; ``audit_matters``: whether it is significantly larger
              than 2 % of the range of the values, for all features at once.
            - ``p_value``: of the hypothesis that the value in the population is not above zero,
              adjusted for the number of features.
            - ``direct``, ``se_direct``, ``indirect``, ``se_indirect``: the parts of causal values,
              and their errors from orderings and draws; ``lowest_graph``, ``highest_graph``: their
              range over graphs that the data do not exclude.
            - ``value[NAME]``, ``se[NAME]``: the value of each output, and its error from orderings
              and draws, if the target has several columns; `per_output` has more.
        """
        return make_frame(self, confidence)

    def to_dict(self, confidence: float = 0.95) -> dict[str, Any]:
        """Return the values and all choices of the run as plain dictionaries, ready for JSON.

        Parameters
        ----------
        confidence : float, default=0.95
            Confidence level of the intervals.

        Returns
        -------
        dict
            ``target``, ``estimand`` and ``confidence``; ``features``, the lines of
            :meth:`to_frame` as dictionaries, the largest value first; ``groups``; ``row_losses``,
            a list for each column, or None; ``choices``, everything that was chosen; ``warnings``.
            NaN becomes None.
        """
        losses = self.row_losses
        found = {
            "target": self.target,
            "estimand": self.estimate.estimand,
            "confidence": confidence,
            "features": self.to_frame(confidence).to_dict("records"),
            "groups": self.groups,
            "row_losses": None if losses is None else losses.to_dict("list"),
            "choices": self.choices.to_dict(),
            "warnings": self.warnings,
        }
        return {name: plain(each) for name, each in found.items()}

    def to_json(self, path: str | Path | None = None, *, confidence: float = 0.95) -> str:
        """Return :meth:`to_dict` as JSON text, and write it to a file if one is given.

        Parameters
        ----------
        path : str or Path, optional
            The file; its folder must exist. An existing file is overwritten.
        confidence : float, default=0.95
            Confidence level of the intervals.

        Returns
        -------
        str
        """
        text = json.dumps(self.to_dict(confidence), ensure_ascii=False, indent=1, allow_nan=False)
        if path is not None:
            # A name may contain an unpaired surrogate: JSON can escape it, UTF-8 cannot encode it.
            write_bytes(check_path(path), text.encode("utf-8", errors="backslashreplace"))
        return text

    def log(self, to: str, *, prefix: str = "dsage", step: int | None = None) -> None:
        """Log the explanation to the active run of MLflow or of Weights & Biases.

        Both get a metric per feature, its value and its standard error, the choices of the run as
        parameters, the ranking as a picture (with matplotlib), the table, and the file that
        :func:`dsage.load` reads. Characters of names that a tracker refuses become ``_``.

        Parameters
        ----------
        to : {"mlflow", "wandb"}
            The tracker. MLflow starts a run if none is active; Weights & Biases needs
            ``wandb.init()``.
        prefix : str, default="dsage"
            Start of all names, before a slash: use different ones for different models of a run.
        step : int, optional
            The step of the metrics.
        """
        from dsage.result.tracking import log  # noqa: PLC0415

        log(self, to, prefix=prefix, step=step)

    def __len__(self) -> int:
        return len(self.feature_names)

    def __iter__(self) -> Iterator[str]:
        return iter(self.feature_names)

    def __contains__(self, name: object) -> bool:
        return name in self.feature_names

    def __getitem__(self, name: str) -> FeatureRecord:
        if name not in self:
            try:
                check_member(name, self.feature_names, "feature", "the features of the explanation")
            except ValueError as error:
                raise KeyError(str(error)) from None
        return self._records[name]

    @cached_property
    def _records(self) -> dict[str, FeatureRecord]:
        names = [each.name for each in fields(FeatureRecord)]
        lines: list[dict[Any, Any]] = self.to_frame()[names].to_dict("records")
        return {line["feature"]: FeatureRecord(**line) for line in lines}

    def __repr__(self) -> str:
        return as_text(self)

    def _repr_html_(self) -> str:
        return as_html(self, picture_of(self))
