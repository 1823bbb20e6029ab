"""``dsage graph``: learn the graph of a table."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from dsage.cli.explain import check_jobs
from dsage.cli.output import (
    PHASES,
    PICTURES,
    Output,
    Writing,
    check_outputs,
    finish,
    note,
    save_figure,
)
from dsage.cli.rows import Source, note_classes, read_rows
from dsage.graphs import Graph
from dsage.result.tables import format_table
from dsage.structure import search_graph, stability


@dataclass(frozen=True, kw_only=True)
class Request(Source):
    """The options of the command, by name."""

    target: str
    method: str
    score: str
    resamples: int
    out: Path | None
    plot: Path | None
    dot: Path | None
    seed: int
    jobs: int | None
    quiet: bool


def run_graph(request: Request) -> None:
    """Learn a graph, show it, and write it."""
    outputs = [
        Output("--out", request.out),
        Output("--plot", request.plot, PICTURES),
        Output("--dot", request.dot),
    ]
    check_outputs(outputs, {"DATA": request.data})
    check_jobs(request.jobs)
    if request.plot is not None:
        # A missing matplotlib is reported before the work is done.
        from dsage import plots  # noqa: F401, PLC0415
    table = read_rows(request)
    progress = not request.quiet and sys.stderr.isatty()
    if not request.quiet:
        note_classes(table, None)
        if not progress:
            note(PHASES["graph"])
    options: dict[str, Any] = {
        "method": request.method,
        "score": request.score,
        "discrete": tuple(request.discrete or ()),
        "random_state": request.seed,
        "progress": progress,
    }
    found = search_graph(table, **options).graph
    strength = None
    if request.resamples:
        strength = stability(table, request.resamples, n_jobs=request.jobs, **options).to_frame()
    finish(
        _describe(found, strength, request),
        _writings(found, strength, request),
        quiet=request.quiet,
    )


def _describe(found: Graph, strength: pd.DataFrame | None, request: Request) -> str:
    """Return the graph in words: the Markov blanket, and the edges, most stable first."""
    blanket = ", ".join(found.markov_blanket(request.target)) or "empty, it depends on nothing"
    lines = [
        f"{len(found)} columns, {len(found.edges)} edges",
        f"Markov blanket of {request.target}: {blanket}",
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
    after = (
        f"Shares of {request.resamples} graphs, each learned from half of the rows, that have the"
        " edge."
    )
    return "\n".join(
        [*lines, "", *format_table(["edge", "this way", "either way"], rows), "", after]
    )


def _writings(found: Graph, strength: pd.DataFrame | None, request: Request) -> list[Writing]:
    def write_dot(path: Path) -> None:
        path.write_text(found.to_dot(request.target), encoding="utf-8")

    def draw(path: Path) -> None:
        from dsage.plots import draw_graph  # noqa: PLC0415

        save_figure(draw_graph(found, request.target, strength=strength), path)

    return [
        Writing("--out", request.out, found.save, "The graph"),
        Writing("--dot", request.dot, write_dot, "The graph for Graphviz"),
        Writing("--plot", request.plot, draw, "The picture"),
    ]
