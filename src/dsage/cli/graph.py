"""``dsage graph``: learn the graph of a table."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from dsage.cli import output
from dsage.cli.commands import GraphCommand
from dsage.cli.explain import check_jobs
from dsage.cli.rows import find_kinds, note_classes, read_rows
from dsage.graphs import Graph
from dsage.result.tables import format_table
from dsage.structure import search_graph, stability


def run(command: GraphCommand) -> None:
    """Learn a graph, show it, and write it."""
    outputs = [
        output.Output("--out", command.out, "The graph"),
        output.Output("--dot", command.dot, "The graph for Graphviz"),
        output.Output("--plot", command.plot, "The picture", output.PICTURES),
    ]
    output.check_outputs(outputs, {"DATA": command.data})
    check_jobs(command.jobs)
    table = read_rows(command)
    progress = not command.quiet and sys.stderr.isatty()
    note_classes(table, None, quiet=command.quiet)
    output.note(output.PHASES["graph"], quiet=command.quiet or progress)
    options: dict[str, Any] = {
        "method": command.method,
        "score": command.score,
        "discrete": find_kinds(command, list(map(str, table.columns)))[1],
        "random_state": command.seed,
        "progress": progress,
    }
    found = search_graph(table, **options).graph
    strength = None
    if command.resamples:
        strength = stability(table, command.resamples, n_jobs=command.jobs, **options).to_frame()
    dot = found.to_dot(command.target)
    writers: output.Writers = {
        "--out": found.save,
        "--dot": lambda path: path.write_text(dot, encoding="utf-8"),
        "--plot": partial(_draw, found, command.target, strength),
    }
    output.finish(_describe(found, strength, command), outputs, writers, quiet=command.quiet)


def _describe(found: Graph, strength: pd.DataFrame | None, command: GraphCommand) -> str:
    """Return the graph in words: the Markov blanket, and the edges, most stable first."""
    blanket = ", ".join(found.markov_blanket(command.target)) or "empty, it depends on nothing"
    n_indicators = len(found.indicators)
    further = f", {n_indicators} indicators of missing values" * (n_indicators > 0)
    lines = [
        f"{len(found) - n_indicators} columns{further}, {len(found.edges)} edges",
        f"Markov blanket of {command.target}: {blanket}",
    ]
    if not found.edges:
        return "\n".join(lines)
    if strength is None:
        return "\n".join([*lines, "", *(f"{tail} -> {head}" for tail, head in found.edges)])
    shares = {
        (tail, head): (either, share)
        for tail, head, share, either in strength.itertuples(index=False)
    }
    rows = []
    for edge in sorted(found.edges, key=lambda edge: shares.get(edge, (0.0, 0.0)), reverse=True):
        either, share = shares.get(edge, (0.0, 0.0))
        rows.append([" -> ".join(edge), f"{share:.0%}", f"{either:.0%}"])
    n_graphs = f"{command.resamples} graphs, each learned from half of the rows,"
    lines += ["", *format_table(["edge", "this way", "either way"], rows)]
    return "\n".join([*lines, "", f"Shares of {n_graphs} that have the edge."])


def _draw(found: Graph, target: str, strength: pd.DataFrame | None, path: Path) -> None:
    from dsage.plots import draw_graph  # noqa: PLC0415

    output.save_figure(draw_graph(found, target, strength=strength), path)
