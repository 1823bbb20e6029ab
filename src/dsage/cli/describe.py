"""``dsage describe``: what the columns of a table are taken for."""

from __future__ import annotations

from typing import Any

import pandas as pd

from dsage.cli import output
from dsage.cli.commands import DescribeCommand
from dsage.cli.rows import check_target_name, find_kinds
from dsage.cli.target import find_said, take_target
from dsage.cli.texts import find_commas, parse_dates, remark
from dsage.data import describe
from dsage.data.columns import column_kind
from dsage.data.files import read_table
from dsage.result.tables import format_table

_HOW = (
    "Say what a column is with --kind COLUMN=KIND, where KIND is number, integer, codes (numbers"
    " that are drawn among those that occur), class or ordered class."
)


def run(command: DescribeCommand) -> None:
    """Show one line per column."""
    outputs = [output.Output("--csv", command.csv, "The table")]
    output.check_outputs(outputs, {"DATA": command.data})
    table = read_table(command.data, drop=command.drop or (), **command.csv_format)
    columns = [str(column) for column in table.columns]
    check_target_name(command, columns)
    kinds, discrete = find_kinds(command, columns)
    for column in columns:
        if column not in {*kinds, *discrete, command.target}:
            table[column] = parse_dates(table[column])
    # The target is no part of the patterns among the features.
    features = table.drop(columns=[command.target] if command.target is not None else [])
    parts = [_describe(features, kinds, discrete)]
    if command.target is not None:
        parts.append(_describe(table[[command.target]], kinds, discrete))
    frame = pd.concat(parts, ignore_index=True)
    if command.target is not None:
        last = len(frame) - 1
        frame.loc[last, "remarks"] = _remark_target(table[command.target], command)
    writers = output.table_writers(frame, is_raw=command.raw_csv)
    advice = _remark_texts(features, {*kinds, *discrete})
    output.finish(_show(frame, len(table), advice), outputs, writers, quiet=command.quiet)


def _describe(table: pd.DataFrame, kinds: dict[str, Any], discrete: tuple[str, ...]) -> Any:  # noqa: ANN401
    named = {name: kind for name, kind in kinds.items() if name in table}
    return describe(table, discrete=[name for name in discrete if name in table], kinds=named)


def _remark_target(column: pd.Series[Any], command: DescribeCommand) -> str:
    """Return what 'dsage explain' takes the target for."""
    present = column.dropna()
    if column_kind(present) == "time" or not len(present):
        return "It cannot be the target: that must be numbers or classes."
    text = take_target(present, said=find_said(command)).text
    n_absent = len(column) - len(present)
    rows = "1 row without it" if n_absent == 1 else f"{n_absent:,} rows without it"
    return f"{text} Remove the {rows}." if n_absent else text


def _remark_texts(features: pd.DataFrame, said: set[str]) -> list[str]:
    """Return what 'dsage explain' would say about texts."""
    lines = []
    for name in features.columns:
        if name in said:
            continue
        column = features[name]
        if advice := find_commas(column):
            lines.append(f"Column {name!r}: {advice}.")
        elif found := remark(column):
            lines.append(f"Column {found.text}")
    return lines


def _show(frame: pd.DataFrame, n_rows: int, advice: list[str]) -> str:
    """Return the table, advice about texts, and how to change a guess."""
    heads = list(frame.columns)
    rows = [
        [str(name), kind, dtype, f"{distinct:,}", f"{missing:.1%}" if missing else "", *texts]
        for name, kind, dtype, distinct, missing, *texts in frame.itertuples(index=False)
    ]
    left = ("kind", "dtype", "values", "remarks")
    end = ["", *advice, f"{n_rows:,} rows, {len(frame)} columns. {_HOW}"]
    return "\n".join([*format_table(heads, rows, left=left), *end])
