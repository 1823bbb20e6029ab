"""``dsage explain-rows``: read a table, fit or load a model, explain some rows."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import typer

import dsage
from dsage._check import check_member, refusal, shown
from dsage.cli import output
from dsage.cli.explain import check_choices, collect_options
from dsage.cli.row_commands import ExplainRowsCommand
from dsage.cli.rows import Split, find_kinds, note_columns, read_rows, read_test_rows, split_rows
from dsage.cli.steps import (
    check_groups,
    column_options,
    find_asked,
    find_files,
    read_model,
    ready_model,
)
from dsage.cli.target import find_said, take_target
from dsage.result.rows import RowExplanation


def run(command: ExplainRowsCommand) -> None:
    """Explain rows with a model that is loaded or fitted, and write the results."""
    outputs = [
        output.Output("--checkpoint", command.checkpoint, "The state"),
        output.Output("--out", command.out, "The result", (".dsage",)),
        output.Output("--csv", command.csv, "The table"),
        output.Output("--json", command.json, "The table"),
        output.Output("--report", command.report, "The report", output.PAGES),
        output.Output("--plot", command.plot, "The picture", output.PICTURES),
    ]
    output.check_outputs(outputs, find_files(command))
    check_choices(command)
    check_member(command.values, ("prediction", "loss"), "--values", "the kinds of values")
    options = collect_options(command)
    # Rows are not compared with those of other samplers.
    del options["sampler_check"]
    model = read_model(command)
    split = _split(command, model)
    check_groups(options["groups"], split)
    model, X_train, rows = ready_model(command, model, split, options)
    explanation = dsage.explain_rows(
        model,
        X_train,
        split.y_train,
        rows,
        split.y_test,
        values=command.values,  # type: ignore[arg-type]
        output=_parse_output(command.output, split),
        **column_options(command, split),
        **options,
    )
    frame = explanation.to_frame()
    writers: output.Writers = {
        "--out": explanation.save,
        **output.table_writers(frame, is_raw=command.raw_csv),
        "--report": explanation.report,
        "--plot": partial(_draw, explanation),
    }
    output.finish(repr(explanation), outputs, writers, quiet=command.quiet)
    if any(each.interrupted for each in explanation.estimates):
        raise typer.Exit(output.INTERRUPTED)


def _split(command: ExplainRowsCommand, model: Any) -> Split:  # noqa: ANN401
    """Read the table, and part the rows to explain from those to learn from."""
    # A model that is loaded was fitted to texts, or to dates that were read elsewhere.
    table = read_rows(command, reads_dates=model is None)
    kinds, discrete = find_kinds(command, list(map(str, table.columns)))
    taken = take_target(
        table[command.target], asked=find_asked(command, model), said=find_said(command)
    )
    output.note(taken.text, quiet=command.quiet)
    note_columns(table, command.target, {*kinds, *discrete}, quiet=command.quiet)
    source = table if command.test is None else read_test_rows(command.test, command, table)
    name = command.data.name if command.test is None else command.test.name
    positions = parse_rows(command.rows, len(source), name)
    train = table
    if command.test is None and model is None:
        train = table.drop(index=table.index[positions])
        if len(train) < 2:
            advice = "Explain fewer rows, or give a fitted model with --model"
            condition = "rows that leave others to fit a model to"
            raise refusal("--rows", condition, command.rows, advice)
    if command.values == "loss" and command.test is None and model is not None:
        # --quiet does not silence it: the result may be misread.
        output.note(
            "Warning: the losses are those on new rows only if the model in"
            f" {command.model} was not fitted to them."
        )
    split = split_rows(
        train,
        command.target,
        test=source.iloc[positions],
        test_size=0.0,
        discrete=discrete,
        is_classification=taken.is_classification,
        seed=command.seed,
    )
    # The rows are named by their positions.
    return split._replace(
        X_test=split.X_test.set_axis(positions, axis=0),
        y_test=split.y_test.set_axis(positions, axis=0),
    )


def parse_rows(text: str, n_rows: int, name: str) -> list[int]:
    """Return the positions that ``--rows`` names: numbers, ranges such as 10-19, or all."""
    if text.strip() == "all":
        return list(range(n_rows))
    found: list[int] = []
    for part in text.split(","):
        first, dash, last = (each.strip() for each in part.partition("-"))
        if not first.isdecimal() or (dash and not last.isdecimal()):
            advice = "Write positions counted from 0, such as 0,5,7 or 10-19, or all"
            raise refusal("--rows", "positions of rows", text, advice)
        start, end = int(first), int(last if dash else first)
        if max(start, end) >= n_rows:
            advice = f"{name} has {n_rows:,} rows, counted from 0 to {n_rows - 1}"
            raise refusal("--rows", f"rows of {name}", max(start, end), advice)
        found += range(start, end + 1)
    if not found:
        raise refusal("--rows", "at least one row", text, "Write the smaller number first")
    return list(dict.fromkeys(found))


def _parse_output(text: str | None, split: Split) -> Any:  # noqa: ANN401
    """Return the class that ``--output`` names, in the type of the target, or a number."""
    if text is None:
        return None
    labels: dict[str, Any] = {
        str(label): label for label in pd.concat([split.y_train, split.y_test]).unique().tolist()
    }
    if split.is_classification and text in labels:
        return labels[text]
    if text.isdecimal() and not split.is_classification:
        return int(text)
    known = shown(sorted(labels)) if split.is_classification else "numbers, counted from 0"
    raise refusal("--output", "an output of the model", text, f"They are {known}")


def _draw(explanation: RowExplanation, path: Path) -> None:
    """Draw one row as a waterfall, several as a beeswarm."""
    if len(explanation) == 1:
        output.save_figure(explanation.plot.waterfall(0), path)
        return
    first = explanation.outputs[0]
    several = len(explanation.outputs) > 1
    output.save_figure(explanation.plot.beeswarm(output=first if several else None), path)
