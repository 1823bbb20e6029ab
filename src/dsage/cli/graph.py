"""``dsage graph``: learn the graph of a table."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from dsage._check import check_members
from dsage._files import write_bytes
from dsage.cli import output
from dsage.cli.commands import GraphCommand
from dsage.cli.explain import check_jobs
from dsage.cli.rows import MANY_ROWS, check_target_name, find_kinds, note_columns, read_rows
from dsage.data.batches import Batches, ParquetFiles
from dsage.data.files import PARQUET, check_file
from dsage.graphs import Graph
from dsage.result.tables import format_table
from dsage.structure import Stream, search_graph, stability


def run(command: GraphCommand) -> None:
    """Learn a graph, show it, and write it."""
    outputs = [
        output.Output("--out", command.out, "The graph"),
        output.Output("--dot", command.dot, "The graph for Graphviz"),
        output.Output("--plot", command.plot, "The picture", output.PICTURES),
    ]
    output.check_outputs(outputs, {"DATA": command.data})
    check_jobs(command.jobs)
    batches = _open_large(command)
    table = read_rows(command) if batches is None else _first_rows(command, batches)
    progress = not command.quiet and sys.stderr.isatty()
    columns = list(map(str, table.columns))
    kinds, discrete = find_kinds(command, columns)
    note_columns(table, None, {*kinds, *discrete, command.target}, quiet=command.quiet)
    output.note(output.PHASES["graph"], quiet=command.quiet or progress)
    options: dict[str, Any] = {
        "method": command.method,
        "score": command.score,
        "discrete": discrete,
        "random_state": command.seed,
        "progress": progress,
    }
    if batches is None:
        found = search_graph(table, **options).graph
    else:
        del options["discrete"]
        found = search_graph(Stream(batches, columns, discrete=discrete), **options).graph
    strength = None
    if command.resamples:
        strength = stability(table, command.resamples, n_jobs=command.jobs, **options).to_frame()
    dot = found.to_dot(command.target)
    writers: output.Writers = {
        "--out": found.save,
        "--dot": lambda path: write_bytes(path, dot.encode("utf-8", errors="replace")),
        "--plot": partial(_draw, found, command.target, strength),
    }
    output.finish(_describe(found, strength, command), outputs, writers, quiet=command.quiet)


def _open_large(command: GraphCommand) -> Batches | None:
    """Return a Parquet file that is read in batches: if it is large, and nothing is resampled."""
    if command.resamples or command.data.suffix.lower() not in PARQUET:
        return None
    batches = ParquetFiles(check_file(command.data, "the data file"))
    return batches if batches.n_rows > MANY_ROWS else None


def _first_rows(command: GraphCommand, batches: Batches) -> pd.DataFrame:
    """Return the first rows of a large file, after checking the names of its columns."""
    what = f"the columns of {command.data.name}"
    left_out = check_members(command.drop or (), batches.names, "--drop", what)
    columns = [name for name in batches.names if name not in left_out]
    check_target_name(command, columns)
    first: pd.DataFrame = next(batches.read(columns)).to_pandas()
    return first


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
