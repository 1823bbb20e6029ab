"""``dsage measures``: read a table, fit or load a model, and estimate several measures."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import dsage
from dsage._check import check_members, refusal
from dsage.cli import output
from dsage.cli.explain import check_choices, collect_options, split_table
from dsage.cli.measure_commands import MeasuresCommand
from dsage.cli.steps import check_groups, column_options, find_files, read_model, ready_model
from dsage.workflows.measures import Measures
from dsage.workflows.measures.kinds import MEASURES

# Options of `explain` that all measures take, and those of SAGE values alone.
_OF_ALL, _OF_SHAPLEY = ("sampler", "loss", "groups"), ("tolerance", "n_jobs")
_MOST_PAIRS = 10


def run(command: MeasuresCommand) -> None:
    """Estimate the measures of a model that is loaded or fitted, and write the results."""
    outputs = [
        output.Output("--out", command.out, "The result", (".dsage",)),
        output.Output("--csv", command.csv, "The table"),
        output.Output("--json", command.json, "The table"),
        output.Output("--plot", command.plot, "The picture", output.PICTURES),
    ]
    output.check_outputs(outputs, find_files(command))
    check_choices(command)
    asked = [name for name in MEASURES if name != "loco"]
    if command.measure:
        asked = list(check_members(command.measure, tuple(MEASURES), "--measure", "the measures"))
    if "loco" in asked and command.model is not None:
        advice = "It is fitted again without each feature, to rows that are not known: use --fit"
        raise refusal("--measure loco", "used without --model", str(command.model), advice)
    given = collect_options(command)
    options = {name: given[name] for name in _OF_ALL}
    options |= {name: given[name] for name in _OF_SHAPLEY if given[name] is not None}
    model = read_model(command)
    split = split_table(command, model)
    check_groups(options["groups"], split)
    model, X_train, X_test = ready_model(command, model, split, options)
    found = dsage.explain_measures(
        model,
        X_train,
        split.y_train,
        None if split.is_shared else X_test,
        None if split.is_shared else split.y_test,
        measures=asked,
        interactions=command.interactions,
        progress=given["progress"] is True,
        **column_options(command, split),
        **options,
    )
    frame = found.to_frame()
    writers: output.Writers = {
        "--out": found.save,
        **output.table_writers(frame, is_raw=command.raw_csv),
        "--plot": partial(_draw, found),
    }
    output.finish(_show(found), outputs, writers, quiet=command.quiet)


def _show(found: Measures) -> str:
    """Return the table, and the strongest interactions."""
    text = str(found)
    if found.interactions is None:
        return text
    pairs = found.interactions.head(_MOST_PAIRS).to_string(
        index=False, float_format=lambda x: f"{x:.4g}"
    )
    return f"{text}\n\nInteractions, the strongest first:\n{pairs}"


def _draw(found: Measures, path: Path) -> None:
    output.save_figure(found.plot().ravel()[0], path)
