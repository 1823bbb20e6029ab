"""``dsage compare``: show two saved runs side by side."""

from __future__ import annotations

import numpy as np
import pandas as pd

import dsage
from dsage._check import refusal, shown
from dsage.cli import output
from dsage.cli.commands import CompareCommand
from dsage.estimate import intervals
from dsage.result.explanation import Explanation
from dsage.result.series import Series
from dsage.result.tables import format_table


def run(command: CompareCommand) -> None:
    """Show two saved runs side by side."""
    outputs = [
        output.Output("--csv", command.csv, "The table"),
        output.Output("--plot", command.plot, "The picture", output.PICTURES),
    ]
    paths = command.run, command.other
    output.check_outputs(outputs, {"the first RUN": paths[0], "the second RUN": paths[1]})
    first, second = map(dsage.load, paths)
    _check_comparable(first, second)
    is_distinct = paths[0].stem != paths[1].stem
    names = [path.stem if is_distinct else str(path) for path in paths]
    output.note(
        "The intervals assume that the two runs are independent. For two models on the same rows,"
        " dsage.compare in Python is more precise: it uses the same noise for both.",
        quiet=command.quiet,
    )
    frame = _compute_differences(first, second, command.confidence)
    writers: output.Writers = {
        **output.table_writers(frame, is_raw=command.raw_csv),
        "--plot": lambda path: output.save_figure(
            first.plot.compare(second, labels=names)[0], path
        ),
    }
    digests = [each.choices.data.digest for each in (first, second)]
    same_rows = digests[0] is not None and digests[0] == digests[1]
    table = _format(frame, names, command.confidence, same_rows=same_rows)
    output.finish(table, outputs, writers, quiet=command.quiet)


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


def _compute_differences(
    first: Explanation, second: Explanation, confidence: float
) -> pd.DataFrame:
    """Return the values of the features that both runs have, and second minus first.

    The intervals are for these evaluation rows and, ending in ``_total``, for the population.
    """
    names = [name for name in first.feature_names if name in second.feature_names]
    one, two = Series.of(first, names, "first"), Series.of(second, names, "second")
    found = two.minus(one)
    columns = {"first": one.values, "second": two.values, "difference": found.values}
    for suffix, se, df in ("", found.se, found.df), ("_total", found.se_total, found.df_total):
        columns[f"se{suffix}"] = se
        ends = intervals(found.values, se, confidence, df=df)
        columns[f"lower{suffix}"], columns[f"upper{suffix}"] = ends
    order = np.argsort(-(one.values + two.values), kind="stable")
    return pd.DataFrame({"feature": names, **columns}).iloc[order].reset_index(drop=True)


def _format(frame: pd.DataFrame, names: list[str], confidence: float, *, same_rows: bool) -> str:
    """Return the differences as a table; a star marks intervals without zero.

    The intervals are those for the evaluation rows if both runs have the same, and else those for
    the population, since different rows alone change the values.
    """
    meaning = "the evaluation rows differ: intervals for the population"
    low, high = "lower_total", "upper_total"
    if same_rows:
        meaning, low, high = "intervals for these evaluation rows", "lower", "upper"
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
    after = f"difference: {names[1]} minus {names[0]}; {meaning}; * not zero"
    return "\n".join([*format_table(heads, lines), "", after])
