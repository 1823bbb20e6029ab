"""The table of an explanation: one line per feature, with everything known about it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dsage.estimate import Estimate, intervals
from dsage.estimate.result import PARTS
from dsage.games.base import Floats

if TYPE_CHECKING:
    from dsage.result.explanation import Explanation


def make_frame(explanation: Explanation, confidence: float) -> pd.DataFrame:
    """Return the table of an explanation; see :meth:`Explanation.to_frame`."""
    estimate = explanation.estimate
    base = estimate.to_frame(confidence).set_index("feature").loc[list(explanation.feature_names)]
    lower_total, upper_total = total_intervals(estimate, confidence)
    total = float(explanation.values.sum())
    share = explanation.values / total if total > 0 else np.full(len(explanation.values), math.nan)
    n_surpluses = estimate.n_surpluses
    n_skipped = [round(Fraction(share) * n_surpluses) for share in estimate.share_skipped]
    frame = pd.DataFrame(
        {
            "feature": list(explanation.feature_names),
            "value": explanation.values,
            "se": explanation.se,
            "lower": base["lower"].to_numpy(),
            "upper": base["upper"].to_numpy(),
            "se_rows": estimate.se_rows,
            "lower_total": lower_total,
            "upper_total": upper_total,
            **_sampler_columns(explanation),
            "share": share,
            "n_evaluated": _counts([n_surpluses - skipped for skipped in n_skipped]),
            "n_skipped": _counts(n_skipped),
            **_audit_columns(explanation.estimate, confidence),
            "p_value": base["p_value"].to_numpy(),
            **_causal_columns(explanation),
            **_output_columns(explanation),
        }
    )
    order = np.argsort(-explanation.values, kind="stable")
    return frame.iloc[order].reset_index(drop=True)


def _causal_columns(explanation: Explanation) -> dict[str, Floats]:
    """Return the parts of causal values, and their range over graphs; nothing for others."""
    found: dict[str, Floats] = {}
    parts, ranges = explanation.estimate.parts, explanation.range_graph
    if parts is not None:
        for name, values, se in zip(PARTS, parts.values, parts.se, strict=True):
            found |= {name: values, f"se_{name}": se}
    if ranges is not None:
        found |= {"lowest_graph": ranges.lowest, "highest_graph": ranges.highest}
    return found


def make_output_frame(explanation: Explanation) -> pd.DataFrame | None:
    """Return the table of all outputs; see :attr:`Explanation.per_output`."""
    if explanation.estimate.outputs is None:
        return None
    names = ["feature", "value", "se", "lower", "upper", "se_rows", "p_value"]
    frames = []
    for at, output in enumerate(explanation.choices.data.outputs):
        estimate = explanation.estimate.of_output(at)
        lower, upper = total_intervals(estimate, 0.95)
        totals = pd.DataFrame(
            {"feature": estimate.feature_names, "lower_total": lower, "upper_total": upper}
        )
        frame = estimate.to_frame()[names].merge(totals, on="feature", sort=False)
        frame.insert(0, "output", output)
        frames.append(frame[[*frame.columns.drop("p_value"), "p_value"]])
    return pd.concat(frames, ignore_index=True)


def total_intervals(estimate: Estimate, confidence: float) -> Floats:
    """Return the ends of the intervals for the population; NaN if they are unknown."""
    ends = np.stack(intervals(estimate.values, estimate.se_total, confidence, df=estimate.df_total))
    known: Floats = np.where(np.isfinite(ends), ends, math.nan)
    return known


def _sampler_columns(explanation: Explanation) -> Mapping[str, object]:
    check, errors = explanation.sampler_check, explanation.se_sampler
    if check is None or errors is None:
        return {"se_sampler": math.nan, "sampler_matters": False}
    large = set(check.exceeds(explanation.estimate))
    matters = [name in large for name in explanation.feature_names]
    return {"se_sampler": errors, "sampler_matters": matters}


def _audit_columns(estimate: Estimate, confidence: float) -> Mapping[str, object]:
    names = ("difference", "lower", "upper", "matters")
    if estimate.audit is None:
        return {f"audit_{name}": math.nan for name in names[:3]} | {"audit_matters": False}
    audit = estimate.audit_frame(confidence)
    return {f"audit_{name}": audit[name].to_numpy() for name in names}


def _output_columns(explanation: Explanation) -> Mapping[str, object]:
    outputs, names = explanation.estimate.outputs, explanation.choices.data.outputs
    if outputs is None:
        return {}
    pairs = [(f"value[{name}]", outputs.values[at]) for at, name in enumerate(names)]
    return dict(pairs + [(f"se[{name}]", outputs.se[at]) for at, name in enumerate(names)])


def _counts(counts: list[int]) -> pd.Series[Any]:
    """Return counts as a column, of dtype object if the integers are too large for NumPy.

    The counts are not passed as an array: older versions of pandas convert its integers to floats,
    which overflow.
    """
    is_large = max(counts, default=0) > np.iinfo(np.int64).max
    return pd.Series(counts, dtype=object if is_large else np.int64)
