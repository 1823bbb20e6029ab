"""Values beside each other, and their differences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from dsage._check import check_count, check_names, message
from dsage.estimate.inference import effective_df, intervals
from dsage.estimate.result import MATTERS
from dsage.plots.fonts import wrapped
from dsage.plots.rows import (
    Floats,
    Rows,
    as_rows,
    draw_interval,
    draw_zero,
    interval_handles,
    n_shown,
)
from dsage.plots.style import (
    FAINT,
    MARKERS,
    PALETTE,
    check_record,
    label_x,
    legend_above,
    loss_name,
    tidy,
    two_axes,
    value_label,
)
from dsage.record import Record

# Inches between the marks of two explanations of one feature.
_STEP = 0.11


@dataclass(frozen=True)
class Series:
    """Numbers of the same features, with their errors.

    Attributes
    ----------
    label : str
        What they are.
    values, se, df : arrays of shape (n_features,)
        The numbers, the errors of computing, their degrees of freedom.
    se_total, df_total : arrays of shape (n_features,)
        The errors of rows and computing; nan where they are not known.
    """

    label: str
    values: Floats
    se: Floats
    df: Floats
    se_total: Floats
    df_total: Floats

    def minus(self, other: Series) -> Series:
        """Return the differences to the numbers of an independent run."""
        variances = np.stack([self.se**2, other.se**2])
        total = np.stack([self.se_total**2, other.se_total**2])
        return Series(
            self.label,
            self.values - other.values,
            np.sqrt(variances.sum(axis=0)),
            _df(variances, self.df, other.df),
            np.sqrt(total.sum(axis=0)),
            _df(total, self.df_total, other.df_total),
        )

    def take(self, at: npt.NDArray[np.intp]) -> Series:
        """Return the numbers of some features."""
        arrays = (self.values, self.se, self.df, self.se_total, self.df_total)
        return Series(self.label, *(array[at] for array in arrays))


def compare(
    record: Record,
    *others: Record,
    labels: Sequence[str] | None = None,
    top: int = 20,
    level: float = 0.95,
    ax: Sequence[Axes] | None = None,
) -> npt.NDArray[np.object_]:
    """Draw the values of several explanations side by side, and their differences to the first.

    The features are those that all explanations have, by name. The intervals of the differences
    take the runs for independent. Runs on the same evaluation rows are not: the thin intervals, for
    the population, are then too wide. :func:`dsage.estimate.compare` is far more precise.

    Parameters
    ----------
    record, *others : Explanation or Record
        Two or more, with the same loss.
    labels : sequence of str, optional
        What they are called; by default by the names of their models.
    top : int, default=20
        So many features are drawn, those with the largest mean value.
    level : float, default=0.95
        Level of the intervals.
    ax : sequence of two matplotlib Axes, optional
        Where to draw values and differences; by default a new figure.

    Returns
    -------
    array of two matplotlib Axes
        The values, and the differences.
    """
    records = _check_records(record, others)
    named = _labels(records) if labels is None else _check_labels(labels, len(records))
    common = [name for name in record.feature_names if _all_have(name, records)]
    if not common:
        raise ValueError(
            message(
                "others",
                "explanations that share features with the first",
                list(others[0].feature_names[:6]),
                f"Those of the first are {', '.join(map(repr, record.feature_names[:6]))}",
            )
        )
    n_left_out = len(set().union(*(each.feature_names for each in records))) - len(common)
    series = [_series(each, common, label) for each, label in zip(records, named, strict=True)]
    differences = [each.minus(series[0]) for each in series[1:]]
    notes = [f"{n_left_out} features that not all have are left out"] if n_left_out else []
    mean = np.mean([each.values for each in series], axis=0)
    one = {each.estimate.estimand for each in records}
    left, right = _draw_pair(common, mean, series, differences, top, level, ax, notes)
    label_x(left, value_label(record, None if len(one) == 1 else ""))
    many = len(records) > 2
    label_x(right, f"difference: {'each' if many else named[1]} minus {named[0]}")
    return np.array([left, right], dtype=object)


def sage_and_dsage(
    record: Record,
    *,
    top: int = 20,
    level: float = 0.95,
    ax: Sequence[Axes] | None = None,
) -> npt.NDArray[np.object_]:
    """Draw d-SAGE and SAGE values of one audited run side by side, and their differences.

    The differences come from the audit. The zone is 2 % of the range of the values to both sides:
    differences that surely leave it matter.

    Parameters
    ----------
    record : Explanation or Record
        A run with an audit.
    top : int, default=20
        So many features are drawn, those with the largest values of the run.
    level : float, default=0.95
        Level of the intervals.
    ax : sequence of two matplotlib Axes, optional
        Where to draw values and differences; by default a new figure.

    Returns
    -------
    array of two matplotlib Axes
        The values, and the differences.
    """
    audit = check_record(record).estimate.audit
    if audit is None:
        raise ValueError(no_audit())
    names = list(record.feature_names)
    unknown = np.full(len(names), np.nan)
    df = np.full(len(names), audit.df)
    difference = Series("d-SAGE", -audit.values, audit.se, df, unknown, np.ones(len(names)))
    pair = _both(record, difference)
    left, right = _draw_pair(names, record.values, pair, [difference], top, level, ax, [])
    draw_zone(right, record)
    legend_above(right, zone_handles(record))
    label_x(left, value_label(record, ""))
    label_x(right, "difference: d-SAGE minus SAGE")
    return np.array([left, right], dtype=object)


def no_audit() -> str:
    """Return what is said where there is no audit to draw."""
    return message(
        "record",
        "of a run with an audit",
        "one without",
        "Only runs that skip by a graph have one: give graph='learn' and leave audit=True",
    )


def draw_zone(ax: Axes, record: Record) -> None:
    """Shade where differences to SAGE do not matter."""
    half = MATTERS * float(np.ptp(record.values))
    ax.axvspan(-half, half, color=FAINT, zorder=0)


def zone_handles(record: Record) -> list[Artist]:
    """Return what explains the zone, where there is one: one value alone has no range."""
    if not np.ptp(record.values) > 0:
        return []
    return [Patch(color=FAINT, label="2 % of the range of the values")]


def _both(record: Record, difference: Series) -> list[Series]:
    """Return SAGE and d-SAGE; the error of the one that was not estimated is made of both."""
    known = record.estimate
    own = _series(record, list(record.feature_names), "SAGE")
    if known.estimand == "sage":
        # Without the correction, whose orderings are its own.
        parts = [each.se**2 for each in known.levels if each is not known.audit]
        se = np.sqrt(np.sum([*parts, known.se_draws**2], axis=0))
        values = own.values + difference.values
        rest = Series("d-SAGE", values, se, own.df, np.hypot(se, known.se_rows), own.df_total)
        return [own, rest]
    variances = np.stack([known.se**2, difference.se**2])
    se = np.sqrt(variances.sum(axis=0))
    sage = Series(
        "SAGE",
        own.values - difference.values,
        se,
        _df(variances, own.df, difference.df),
        np.hypot(se, known.se_rows),
        own.df_total,
    )
    return [sage, Series("d-SAGE", own.values, own.se, own.df, own.se_total, own.df_total)]


def _draw_pair(
    names: list[str],
    ranked_by: Floats,
    series: list[Series],
    differences: list[Series],
    top: int,
    level: float,
    ax: Sequence[Axes] | None,
    notes: list[str],
) -> tuple[Axes, Axes]:
    """Draw values at the left and differences at the right, with the same rows."""
    order = np.argsort(-ranked_by, kind="stable")[: n_shown(len(names), check_count(top, "top"))]
    if len(order) < len(names):
        notes = [*notes, f"the top {len(order)} of {len(names)} features"]
    least = max(0.28, _STEP * len(series) + 0.1)
    rows = as_rows([names[number] for number in order], least=least)
    width, height = rows.size(2, n_notes=len(series) + 2 + len(notes))
    left, right = two_axes(ax, width, height, (1.25, 1.0))
    drawn = _draw_series(left, rows, [each.take(order) for each in series], 0, level)
    _draw_series(right, rows, [each.take(order) for each in differences], 1, level)
    rows.put(left)
    rows.put(right, with_names=False)
    handles: list[Artist] = [
        Line2D([], [], label=wrapped(each.label, 40), linestyle="none", **_mark(number))
        for number, each in enumerate(series)
    ]
    title = "; ".join(notes) or None
    legend_above(left, [*handles, *interval_handles(level, **drawn)], title=title)
    return left, right


def _draw_series(
    ax: Axes, rows: Rows, series: list[Series], first: int, level: float
) -> dict[str, bool]:
    """Draw marks with intervals, those of one feature under each other."""
    drawn = {"computing": False, "population": False}
    for number, each in enumerate(series):
        at = rows.centres + _STEP * (number - (len(series) - 1) / 2)
        style = _mark(number + first)
        colour = style["color"]
        for name, se, df in (
            ("computing", each.se, each.df),
            ("population", each.se_total, each.df_total),
        ):
            low, high = intervals(each.values, se, level, df=df)
            is_thick = name == "computing"
            drawn[name] |= draw_interval(ax, at, low, high, colour=colour, is_thick=is_thick)
        ax.plot(each.values, at, linestyle="none", zorder=5, **style)
    for end, then in pairwise(rows.centres):
        ax.axhline((end + then) / 2, color=FAINT, linewidth=0.8, zorder=0)
    draw_zero(ax)
    tidy(ax)
    return drawn


def _mark(number: int) -> dict[str, Any]:
    return {
        "marker": MARKERS[number % len(MARKERS)],
        "color": PALETTE[number % len(PALETTE)],
        "markersize": 4.0,
    }


def _series(record: Record, names: list[str], label: str) -> Series:
    known = record.estimate
    at = np.array([record.feature_names.index(name) for name in names], dtype=np.intp)
    arrays = (known.values, known.se, known.df, known.se_total, known.df_total)
    return Series(label, *(array[at] for array in arrays))


def _df(variances: Floats, *df: Floats) -> Floats:
    known = np.where(np.isfinite(variances), variances, 0.0)
    return effective_df(known, np.stack(df))


def _all_have(name: str, records: Sequence[Record]) -> bool:
    return all(name in each.feature_names for each in records)


def _check_records(record: Record, others: Sequence[Record]) -> list[Record]:
    records = [check_record(record), *(check_record(each, "others") for each in others)]
    if not others:
        raise ValueError(
            message("others", "one explanation or more", others, "Give what to compare with")
        )
    losses = [loss_name(each) for each in records]
    if len(set(losses)) > 1:
        raise ValueError(
            message("others", f"explained with the loss {losses[0]!r}", losses[1:], _ONE_LOSS)
        )
    return records


_ONE_LOSS = "Values of different losses have different units: explain all with one loss"


def _check_labels(labels: Sequence[str], n_records: int) -> tuple[str, ...]:
    checked = check_names(labels, "labels")
    if len(checked) != n_records:
        raise ValueError(
            message("labels", f"{n_records} names", list(checked), "Give one an explanation")
        )
    return checked


def _labels(records: Sequence[Record]) -> list[str]:
    """Return names that tell the explanations apart: of models, estimands, or numbers."""
    models = [str(each.choices.get("model", {}).get("name") or "model") for each in records]
    kinds = {"sage": "SAGE", "d-sage": "d-SAGE"}
    whole = [
        f"{model}, {kinds[each.estimate.estimand]}"
        for model, each in zip(models, records, strict=True)
    ]
    for labels in (models, whole):
        if len(set(labels)) == len(records):
            return labels
    return [f"{model} {number}" for number, model in enumerate(models, start=1)]
