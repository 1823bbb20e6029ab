"""``dsage graph``: learn the graph of a table."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dsage.cli.errors import note
from dsage.cli.options import (
    RESULTS,
    Data,
    Decimal,
    Discrete,
    Drop,
    Encoding,
    Jobs,
    Quiet,
    Seed,
    Sep,
    Target,
)
from dsage.cli.tables import as_lines

if TYPE_CHECKING:
    import pandas as pd

    from dsage.cli.places import Writing
    from dsage.graphs import Graph

_HOW = "How to learn"


def graph(
    data: Data,
    target: Target,
    method: Annotated[
        str,
        typer.Option(
            metavar="auto|tabu|hc|boss", rich_help_panel=_HOW, help="How the graph is searched for."
        ),
    ] = "auto",
    score: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            rich_help_panel=_HOW,
            help="What a graph is judged by: bic, aic, ebic, bge for numbers; bic, aic, bdeu, k2"
            " for classes.",
        ),
    ] = "auto",
    resamples: Annotated[
        int,
        typer.Option(
            metavar="NUMBER",
            min=0,
            rich_help_panel=_HOW,
            help="Learn again from so many halves of the rows, to tell how sure each edge is.",
        ),
    ] = 20,
    drop: Drop = None,
    discrete: Discrete = None,
    sep: Sep = None,
    decimal: Decimal = ".",
    encoding: Encoding = "utf-8",
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.json",
            show_default=False,
            rich_help_panel=RESULTS,
            help="Save the graph, for 'dsage explain --graph FILE.json'.",
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.png|svg|pdf",
            show_default=False,
            rich_help_panel=RESULTS,
            help="Draw the graph.",
        ),
    ] = None,
    dot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            show_default=False,
            rich_help_panel=RESULTS,
            help="Write the graph in the language of Graphviz.",
        ),
    ] = None,
    seed: Seed = 0,
    jobs: Jobs = None,
    quiet: Quiet = False,
) -> None:
    """Learn the causal graph of a table, and show what the target depends on.

    The Markov blanket is what tells all about the target: given it, no other feature tells more.
    """
    from dsage.cli.phases import PHASES  # noqa: PLC0415
    from dsage.cli.places import PICTURES, Place, check_places, finish  # noqa: PLC0415
    from dsage.cli.rows import read_rows, tell_classes  # noqa: PLC0415
    from dsage.cli.texts import check_jobs, csv_options  # noqa: PLC0415
    from dsage.result.events import Phase  # noqa: PLC0415
    from dsage.structure import search_graph, stability  # noqa: PLC0415

    places = [Place("--out", out), Place("--plot", plot, PICTURES), Place("--dot", dot)]
    check_places(places, {"DATA": data})
    check_jobs(jobs)
    if plot is not None:
        # Whether matplotlib is there should be known before the work is done.
        from dsage import plots  # noqa: F401, PLC0415
    table = read_rows(data, target, drop or (), discrete or (), csv_options(sep, decimal, encoding))
    progress = not quiet and sys.stderr.isatty()
    if not quiet:
        tell_classes(table, None)
        if not progress:
            note(PHASES[Phase.GRAPH])
    options: dict[str, Any] = {
        "method": method,
        "score": score,
        "discrete": tuple(discrete or ()),
        "random_state": seed,
        "progress": progress,
    }
    result = search_graph(table, **options)
    strength = None
    if resamples:
        strength = stability(table, resamples, n_jobs=jobs, **options).to_frame()
    described = _described(result.graph, target, strength, resamples)
    writings = _writings(result.graph, target, strength, out=out, plot=plot, dot=dot)
    finish(described, writings, quiet=quiet)


def _described(found: Graph, target: str, strength: pd.DataFrame | None, n_resamples: int) -> str:
    """Return the graph in words: the blanket, and the edges, the surest first."""
    blanket = ", ".join(found.markov_blanket(target)) or "empty, it depends on nothing"
    lines = [
        f"{len(found)} columns, {len(found.edges)} edges",
        f"Markov blanket of {target}: {blanket}",
    ]
    if not found.edges:
        return "\n".join(lines)
    shares = (
        {}
        if strength is None
        else {
            (tail, head): (share, either)
            for tail, head, share, either in strength.itertuples(index=False)
        }
    )
    edges = sorted(found.edges, key=lambda edge: shares.get(edge, (0.0, 0.0))[::-1], reverse=True)
    if strength is None:
        return "\n".join([*lines, "", *(f"{tail} -> {head}" for tail, head in edges)])
    rows = []
    for tail, head in edges:
        share, either = shares.get((tail, head), (0.0, 0.0))
        rows.append([f"{tail} -> {head}", f"{share:.0%}", f"{either:.0%}"])
    after = f"shares of {n_resamples} graphs, each learned from half of the rows, with the edge"
    return "\n".join([*lines, "", *as_lines(["edge", "this way", "either way"], rows), "", after])


def _writings(
    found: Graph,
    target: str,
    strength: pd.DataFrame | None,
    *,
    out: Path | None,
    plot: Path | None,
    dot: Path | None,
) -> list[Writing]:
    from dsage.cli.places import Writing  # noqa: PLC0415

    def write_dot(path: Path) -> None:
        path.write_text(found.to_dot(target), encoding="utf-8")

    def draw(path: Path) -> None:
        from dsage.plots import draw_graph  # noqa: PLC0415

        save_figure(draw_graph(found, target, strength=strength), path)

    return [
        Writing("--out", out, found.save, "The graph"),
        Writing("--dot", dot, write_dot, "The graph in Graphviz's language"),
        Writing("--plot", plot, draw, "The picture"),
    ]


def save_figure(ax: Any, path: Path) -> None:  # noqa: ANN401
    """Write the figure of some axes, whole, and forget it."""
    from matplotlib import pyplot as plt  # noqa: PLC0415

    ax.figure.savefig(path, bbox_inches="tight", dpi=150)
    plt.close(ax.figure)
