"""``dsage describe``: what the columns of a table are taken for."""

from __future__ import annotations

from functools import partial
from typing import Any

import pandas as pd

from dsage.cli import output
from dsage.cli.commands import DescribeCommand
from dsage.cli.rows import advise_texts, check_target_name, find_kinds, is_class
from dsage.data import describe
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
    # The target is no part of the patterns among the features.
    features = table.drop(columns=[command.target] if command.target is not None else [])
    parts = [_describe(features, kinds, discrete)]
    if command.target is not None:
        parts.append(_describe(table[[command.target]], kinds, discrete))
    frame = pd.concat(parts, ignore_index=True)
    if command.target is not None:
        last = len(frame) - 1
        frame.loc[last, "remarks"] = _remark_target(table[command.target], discrete)
    writers: output.Writers = {"--csv": partial(frame.to_csv, index=False)}
    advice = _advise_texts(features, discrete)
    output.finish(_show(frame, len(table), advice), outputs, writers, quiet=command.quiet)


def _describe(table: pd.DataFrame, kinds: dict[str, Any], discrete: tuple[str, ...]) -> Any:  # noqa: ANN401
    named = {name: kind for name, kind in kinds.items() if name in table}
    return describe(table, discrete=[name for name in discrete if name in table], kinds=named)


def _remark_target(column: pd.Series[Any], discrete: tuple[str, ...]) -> str:
    """Return what 'dsage explain' takes the target for."""
    if is_class(column, discrete):
        return "the target, taken for a class"
    return f"the target, taken for a number; for a class: --kind {column.name}=class"


def _advise_texts(features: pd.DataFrame, discrete: tuple[str, ...]) -> list[str]:
    """Return what 'dsage explain' would say about texts."""
    found = {
        str(name): advise_texts(features[name], is_target=False, is_discrete=name in discrete)
        for name in features.columns
    }
    return [f"Column {name!r}: {advice}." for name, advice in found.items() if advice]


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
