"""Two runs side by side."""

from __future__ import annotations

import numpy as np
import pandas as pd

from dsage._check import refusal
from dsage.data.columns import shown
from dsage.estimate import effective_df, intervals
from dsage.result.explanation import Explanation
from dsage.result.tables import format_table


def check_comparable(first: Explanation, second: Explanation) -> None:
    """Refuse two runs whose values mean different things."""
    if first.target != second.target:
        advice = f"The other one's is {second.target!r}: compare runs of one target"
        raise refusal("the target", "the same in both runs", first.target, advice)
    losses = [each.choices.loss.name for each in (first, second)]
    if losses[0] != losses[1]:
        advice = f"The other one's is {losses[1]}: values are in units of the loss"
        raise refusal("the loss", "the same in both runs", losses[0], advice)
    if not set(first.feature_names) & set(second.feature_names):
        advice = f"The other one's are {shown(second.feature_names)}"
        raise refusal(
            "the features", "partly the same in both runs", shown(first.feature_names), advice
        )


def differences(first: Explanation, second: Explanation, confidence: float) -> pd.DataFrame:
    """Return the values of features that both runs have, and second minus first.

    Parameters
    ----------
    first, second : Explanation
        The runs, taken for independent.
    confidence : float
        Confidence level of the intervals.

    Returns
    -------
    pandas.DataFrame
        Columns ``feature``, ``first``, ``second``, ``difference``, ``se``, ``lower``, ``upper``
        (these evaluation rows), ``lower_total``, ``upper_total`` (the population); the largest
        mean first.
    """
    names = [name for name in first.feature_names if name in second.feature_names]
    a, b = (
        np.array([each.feature_names.index(name) for name in names]) for each in (first, second)
    )
    one, two = first.values[a], second.values[b]
    ends = {}
    for ending, se, df in (
        ("", (first.se[a], second.se[b]), (first.estimate.df[a], second.estimate.df[b])),
        (
            "_total",
            (first.estimate.se_total[a], second.estimate.se_total[b]),
            (first.estimate.df_total[a], second.estimate.df_total[b]),
        ),
    ):
        error = np.hypot(*se)
        freedom = effective_df(np.stack(se) ** 2, np.stack(df))
        ends[f"se{ending}"] = error
        ends[f"lower{ending}"], ends[f"upper{ending}"] = intervals(
            two - one, error, confidence, df=freedom
        )
    frame = pd.DataFrame(
        {"feature": names, "first": one, "second": two, "difference": two - one, **ends}
    )
    order = np.argsort(-(one + two), kind="stable")
    return frame.iloc[order].reset_index(drop=True)


def have_same_rows(first: Explanation, second: Explanation) -> bool:
    """Tell whether two runs were evaluated on the same rows."""
    marks = [each.choices.data.digest for each in (first, second)]
    return marks[0] is not None and marks[0] == marks[1]


def as_table(
    frame: pd.DataFrame, names: tuple[str, str], confidence: float, *, same_rows: bool
) -> str:
    """Return the differences as lines to read; a star marks those that are surely not zero.

    The intervals are those for the evaluation rows where both runs have the same, else those for
    the population: other rows alone make other values.
    """
    low, high = ("lower", "upper") if same_rows else ("lower_total", "upper_total")
    heads = ["feature", *names, "difference", f"{confidence:.0%} interval", ""]
    lines = [
        [
            str(line["feature"]),
            f"{line['first']:.4g}",
            f"{line['second']:.4g}",
            f"{line['difference']:+.4g}",
            f"[{line[low]:.4g}, {line[high]:.4g}]",
            "*" if line[low] > 0 or line[high] < 0 else "",
        ]
        for line in frame.to_dict("records")
    ]
    meant = (
        "interval for these evaluation rows"
        if same_rows
        else "the evaluation rows differ: interval for the population"
    )
    after = ["", f"difference: {names[1]} minus {names[0]}; {meant}; * not zero"]
    return "\n".join([*format_table(heads, lines), *after])
