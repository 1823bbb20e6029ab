"""``dsage flow``: read a table, fit or load a model, and follow its performance along edges."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import typer

import dsage
from dsage._check import check_member, refusal
from dsage.cli import output
from dsage.cli.explain import (
    check_choices,
    parse_time,
    read_graph,
    read_knowledge,
    split_table,
)
from dsage.cli.flow_commands import FlowCommand
from dsage.cli.steps import column_options, find_files, read_model, ready_model
from dsage.estimate import StopKind
from dsage.result.flow import SOURCES, FlowExplanation


def run(command: FlowCommand) -> None:
    """Estimate the flow of a model that is loaded or fitted, and write the results."""
    outputs = [
        output.Output("--out", command.out, "The result", (".dsage",)),
        output.Output("--csv", command.csv, "The table"),
        output.Output("--json", command.json, "The table"),
        output.Output("--report", command.report, "The report", output.PAGES),
        output.Output("--plot", command.plot, "The picture", output.PICTURES),
    ]
    output.check_outputs(outputs, find_files(command))
    check_choices(command)
    check_member(command.sources, SOURCES, "--sources", "the sources")
    graph = read_graph(command.graph)
    if graph is None:
        advice = "A flow needs a graph: write one with 'dsage graph', or use --graph learn"
        raise refusal("--graph", "a graph", command.graph, advice)
    model = read_model(command)
    split = split_table(command, model)
    options = {
        "graph": graph,
        "sources": command.sources,
        "model_first": command.model_first,
        "loss": command.loss,
        "tolerance": command.tolerance,
        "seconds": None if command.time is None else parse_time(command.time),
        "n_jobs": command.jobs,
        **read_knowledge(command),
    }
    model, X_train, X_test = ready_model(command, model, split, options)
    output.note(output.PHASES["estimate"], quiet=command.quiet)
    found = dsage.explain_flow(
        model,
        X_train,
        split.y_train,
        None if split.is_shared else X_test,
        None if split.is_shared else split.y_test,
        progress=False,
        **column_options(command, split),
        **options,
    )
    frame = found.to_frame()
    writers: output.Writers = {
        "--out": found.save,
        "--csv": partial(frame.to_csv, index=False),
        "--json": partial(frame.to_json, orient="records", indent=1, force_ascii=False),
        "--report": found.report,
        "--plot": partial(_draw, found),
    }
    output.finish(str(found), outputs, writers, quiet=command.quiet)
    if found.estimate.reason.kind is StopKind.INTERRUPTED:
        raise typer.Exit(output.INTERRUPTED)


def _draw(found: FlowExplanation, path: Path) -> None:
    output.save_figure(found.plot.flow(), path)
