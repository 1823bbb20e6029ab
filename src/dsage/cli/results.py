"""``dsage report`` and ``dsage compare``: use saved runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

import dsage
from dsage._check import refusal, shown
from dsage.cli.output import (
    PAGES,
    PICTURES,
    Output,
    Writing,
    check_outputs,
    finish,
    note,
    save_figure,
)
from dsage.estimate import effective_df, intervals
from dsage.result.explanation import Explanation
from dsage.result.tables import format_table


def run_report(run: Path, out: Path | None, *, quiet: bool) -> None:
    """Write the report of a saved run."""
    path = out or run.with_suffix(".html")
    check_outputs([Output("--out", path, PAGES)], {"RUN": run})
    dsage.load(run).report(path)
    if not quiet:
        note(f"The report is in {path}.")


def run_compare(
    run: Path, other: Path, *, confidence: float, plot: Path | None, csv: Path | None, quiet: bool
) -> None:
    """Show two saved runs side by side."""
    outputs = [Output("--plot", plot, PICTURES), Output("--csv", csv)]
    check_outputs(outputs, {"the first RUN": run, "the second RUN": other})
    if plot is not None:
        # A missing matplotlib is reported before anything is shown.
        from dsage import plots  # noqa: F401, PLC0415
    first, second = dsage.load(run), dsage.load(other)
    _check_comparable(first, second)
    frame = compute_differences(first, second, confidence)
    names = (run.stem, other.stem) if run.stem != other.stem else (str(run), str(other))
    if not quiet:
        note(
            "The intervals assume that the two runs are independent. For two models on the same"
            " rows, dsage.estimate.compare_games in Python is more precise: it uses the same noise"
            " for both."
        )

    def write_csv(path: Path) -> None:
        frame.to_csv(path, index=False)

    def draw(path: Path) -> None:
        save_figure(first.plot.compare(second, labels=names)[0], path)

    writings = [
        Writing("--csv", csv, write_csv, "The table"),
        Writing("--plot", plot, draw, "The picture"),
    ]
    table = _format(frame, names, confidence, same_rows=_have_same_rows(first, second))
    finish(table, writings, quiet=quiet)


def _check_comparable(first: Explanation, second: Explanation) -> None:
    """Refuse two runs whose values mean different things."""
    if first.target != second.target:
        advice = f"The other is {second.target!r}: compare runs of one target"
        raise refusal("the target", "the same in both runs", first.target, advice)
    losses = [each.choices.loss.name for each in (first, second)]
    if losses[0] != losses[1]:
        advice = f"The other is {losses[1]!r}: values are in units of the loss"
        raise refusal("the loss", "the same in both runs", losses[0], advice)
    if not set(first.feature_names) & set(second.feature_names):
        advice = f"The other run has {shown(second.feature_names)}"
        features = shown(first.feature_names)
        raise refusal("the features", "partly the same in both runs", features, advice)


def compute_differences(first: Explanation, second: Explanation, confidence: float) -> pd.DataFrame:
    """Return the values of the features that both runs have, and second minus first.

    Parameters
    ----------
    first, second : Explanation
        The runs, assumed to be independent.
    confidence : float
        Confidence level of the intervals.

    Returns
    -------
    pandas.DataFrame
        Columns ``feature``, ``first``, ``second``, ``difference``, ``se``, ``lower``, ``upper``
        (these evaluation rows), ``se_total``, ``lower_total``, ``upper_total`` (the population);
        the largest mean first.
    """
    names = [name for name in first.feature_names if name in second.feature_names]
    a, b = (
        np.array([each.feature_names.index(name) for name in names]) for each in (first, second)
    )
    one, two = first.values[a], second.values[b]
    columns = {}
    for suffix, se, df in (
        ("", (first.se[a], second.se[b]), (first.estimate.df[a], second.estimate.df[b])),
        (
            "_total",
            (first.estimate.se_total[a], second.estimate.se_total[b]),
            (first.estimate.df_total[a], second.estimate.df_total[b]),
        ),
    ):
        error = np.hypot(*se)
        freedom = effective_df(np.stack(se) ** 2, np.stack(df))
        columns[f"se{suffix}"] = error
        columns[f"lower{suffix}"], columns[f"upper{suffix}"] = intervals(
            two - one, error, confidence, df=freedom
        )
    frame = pd.DataFrame(
        {"feature": names, "first": one, "second": two, "difference": two - one, **columns}
    )
    order = np.argsort(-(one + two), kind="stable")
    return frame.iloc[order].reset_index(drop=True)


def _have_same_rows(first: Explanation, second: Explanation) -> bool:
    """Return whether two runs have the same evaluation rows."""
    digests = [each.choices.data.digest for each in (first, second)]
    return digests[0] is not None and digests[0] == digests[1]


def _format(
    frame: pd.DataFrame, names: tuple[str, str], confidence: float, *, same_rows: bool
) -> str:
    """Return the differences as a table; a star marks intervals without zero.

    The intervals are those for the evaluation rows if both runs have the same, and else those for
    the population, since different rows alone change the values.
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
    meaning = (
        "intervals for these evaluation rows"
        if same_rows
        else "the evaluation rows differ: intervals for the population"
    )
    after = ["", f"difference: {names[1]} minus {names[0]}; {meaning}; * not zero"]
    return "\n".join([*format_table(heads, lines), *after])
