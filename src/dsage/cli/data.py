"""Commands about a table, without a model: ``describe``, ``graph`` and ``score-samplers``."""

from __future__ import annotations

import math
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from dsage._check import check_members
from dsage._files import write_bytes
from dsage.cli import output
from dsage.cli.commands import DescribeCommand, GraphCommand, ScoreSamplersCommand
from dsage.cli.explain import check_jobs
from dsage.cli.tables import (
    MANY_ROWS,
    check_target_name,
    decide_target,
    find_commas,
    find_declaration,
    find_kinds,
    note_columns,
    parse_dates,
    read_rows,
    remark,
)
from dsage.data import describe
from dsage.data.batches import Batches, ParquetFiles
from dsage.data.columns import column_kind
from dsage.data.files import PARQUET, check_file, read_table
from dsage.graphs import Graph
from dsage.result.tables import format_table
from dsage.samplers import choose_sampler
from dsage.structure import Stream, search_graph, stability

_HOW = (
    "Set the kind of a column with --kind COLUMN=KIND, where KIND is number, integer, codes"
    " (numbers of which only observed values are drawn), class or ordered class."
)
_SCORES = ["energy_score", "difference", "se", "fit_seconds", "draw_seconds", "verdict"]

# How columns are read


def run_describe(command: DescribeCommand) -> None:
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
    # Patterns are looked for among the features alone, without the target.
    features = table.drop(columns=[command.target] if command.target is not None else [])
    parts = [_describe_columns(features, kinds, discrete)]
    if command.target is not None:
        parts.append(_describe_columns(table[[command.target]], kinds, discrete))
    frame = pd.concat(parts, ignore_index=True)
    if command.target is not None:
        last = len(frame) - 1
        frame.loc[last, "remarks"] = _remark_target(table[command.target], command)
    writers = output.table_writers(frame, is_raw=command.raw_csv)
    advice = _remark_texts(features, {*kinds, *discrete})
    output.finish(_show_columns(frame, len(table), advice), outputs, writers, quiet=command.quiet)


def _describe_columns(table: pd.DataFrame, kinds: dict[str, Any], discrete: tuple[str, ...]) -> Any:  # noqa: ANN401
    named = {name: kind for name, kind in kinds.items() if name in table}
    return describe(table, discrete=[name for name in discrete if name in table], kinds=named)


def _remark_target(column: pd.Series[Any], command: DescribeCommand) -> str:
    """Return how 'dsage explain' treats the target."""
    present = column.dropna()
    if column_kind(present) == "time" or not len(present):
        return "It cannot be the target, which must consist of numbers or classes."
    text = decide_target(present, declared=find_declaration(command)).text
    n_absent = len(column) - len(present)
    rows = "1 row" if n_absent == 1 else f"{n_absent:,} rows"
    return f"{text} Remove the {rows} in which it is missing." if n_absent else text


def _remark_texts(features: pd.DataFrame, declared: set[str]) -> list[str]:
    """Return what 'dsage explain' would say about texts."""
    lines = []
    for name in features.columns:
        if name in declared:
            continue
        column = features[name]
        if advice := find_commas(column):
            lines.append(f"Column {name!r}: {advice}.")
        elif found := remark(column):
            lines.append(f"Column {found.text}")
    return lines


def _show_columns(frame: pd.DataFrame, n_rows: int, advice: list[str]) -> str:
    """Return the table, advice about texts, and how to change a guess."""
    heads = list(frame.columns)
    rows = [
        [str(name), kind, dtype, f"{distinct:,}", f"{missing:.1%}" if missing else "", *texts]
        for name, kind, dtype, distinct, missing, *texts in frame.itertuples(index=False)
    ]
    left = ("kind", "dtype", "values", "remarks")
    end = ["", *advice, f"{n_rows:,} rows, {len(frame)} columns. {_HOW}"]
    return "\n".join([*format_table(heads, rows, left=left), *end])


# Graphs


def run_graph(command: GraphCommand) -> None:
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
        "--plot": partial(_draw_graph, found, command.target, strength),
    }
    output.finish(_describe_graph(found, strength, command), outputs, writers, quiet=command.quiet)


def _open_large(command: GraphCommand) -> Batches | None:
    """Return a large Parquet file to read in batches; None if it is small or rows are resampled."""
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


def _describe_graph(found: Graph, strength: pd.DataFrame | None, command: GraphCommand) -> str:
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


def _draw_graph(found: Graph, target: str, strength: pd.DataFrame | None, path: Path) -> None:
    from dsage.plots import draw_graph  # noqa: PLC0415

    output.save_figure(draw_graph(found, target, strength=strength), path)


# Samplers


def run_score_samplers(command: ScoreSamplersCommand) -> None:
    """Show the scores of all samplers on a table, and which one is chosen."""
    table = read_rows(command, needs_target=False)
    features = table if command.target is None else table.drop(columns=command.target)
    kinds, classes = find_kinds(command, list(map(str, table.columns)))
    note_columns(features, None, {*kinds, *classes}, quiet=command.quiet)
    output.note(output.PHASES["sampler"], quiet=command.quiet)
    discrete = tuple(name for name in classes if name != command.target)
    choice = choose_sampler(features, discrete=discrete, random_state=command.seed)
    if choice.scores.empty:
        output.show(choice.reason)
        return
    heads = ["sampler", "n rows", *(name.replace("_", " ") for name in _SCORES)]
    rows = [
        [
            str(name),
            f"{n_rows:,}",
            *("" if math.isnan(score) else f"{score:.4f}" for score in scores),
            verdict,
        ]
        for name, n_rows, *scores, verdict in choice.scores[["n_rows", *_SCORES]].itertuples()
    ]
    output.show("\n".join([*format_table(heads, rows), "", choice.reason]))
