"""``dsage report`` and ``dsage compare``: what to do with saved runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dsage.cli.errors import note
from dsage.cli.options import RESULTS, RUN, Csv, Quiet

if TYPE_CHECKING:
    import pandas as pd

    from dsage.cli.places import Writing
    from dsage.result.explanation import Explanation

Run = Annotated[
    Path,
    typer.Argument(
        metavar="RUN", show_default=False, help="A file that 'dsage explain --out' wrote."
    ),
]
Other = Annotated[
    Path, typer.Argument(metavar="RUN", show_default=False, help="Another one, to compare with.")
]


def report(
    run: Run,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.html",
            show_default="RUN.html",
            rich_help_panel=RESULTS,
            help="Where to write it.",
        ),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Write the report of a saved run: one page of HTML that needs no network."""
    import dsage  # noqa: PLC0415
    from dsage.cli.places import PAGES, Place, check_places  # noqa: PLC0415

    place = out or run.with_suffix(".html")
    check_places([Place("--out", place, PAGES)], {"RUN": run})
    dsage.load(run).report(place)
    if not quiet:
        note(f"The report is in {place}.")


def compare(
    run: Run,
    other: Other,
    confidence: Annotated[
        float,
        typer.Option(
            metavar="NUMBER",
            min=0.5,
            max=0.9999,
            rich_help_panel=RUN,
            help="Confidence level of the intervals.",
        ),
    ] = 0.95,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.png|svg|pdf",
            show_default=False,
            rich_help_panel=RESULTS,
            help="Draw both.",
        ),
    ] = None,
    csv: Csv = None,
    quiet: Quiet = False,
) -> None:
    """Show the values of two saved runs side by side, with the interval of their difference.

    The interval takes the runs for independent. Runs of two models on the same rows are not, and
    dsage.estimate.compare, which gives both the same noise, knows their difference much better.
    """
    import dsage  # noqa: PLC0415
    from dsage.cli.comparing import (  # noqa: PLC0415
        as_table,
        check_comparable,
        differences,
        have_same_rows,
    )
    from dsage.cli.places import PICTURES, Place, check_places, finish  # noqa: PLC0415

    places = [Place("--plot", plot, PICTURES), Place("--csv", csv)]
    check_places(places, {"the first RUN": run, "the second RUN": other})
    if plot is not None:
        # Whether matplotlib is there should be known before anything is shown.
        from dsage import plots  # noqa: F401, PLC0415
    first, second = dsage.load(run), dsage.load(other)
    check_comparable(first, second)
    frame = differences(first, second, confidence)
    names = _labels(run, other)
    if not quiet:
        note(
            "The intervals take the two runs for independent. For two models on the same rows,"
            " dsage.estimate.compare_games in Python is sharper: it gives both the same noise."
        )
    table = as_table(frame, names, confidence, same_rows=have_same_rows(first, second))
    finish(table, _writings(first, second, frame, names, plot=plot, csv=csv), quiet=quiet)


def _labels(run: Path, other: Path) -> tuple[str, str]:
    """Return short names of the files that tell them apart."""
    if run.stem != other.stem:
        return run.stem, other.stem
    return str(run), str(other)


def _writings(
    first: Explanation,
    second: Explanation,
    frame: pd.DataFrame,
    names: tuple[str, str],
    *,
    plot: Path | None,
    csv: Path | None,
) -> list[Writing]:
    from dsage.cli.places import Writing  # noqa: PLC0415

    def write_csv(path: Path) -> None:
        frame.to_csv(path, index=False)

    def draw(path: Path) -> None:
        from dsage.cli.graphing import save_figure  # noqa: PLC0415

        save_figure(first.plot.compare(second, labels=names)[0], path)

    return [
        Writing("--csv", csv, write_csv, "The table"),
        Writing("--plot", plot, draw, "The picture"),
    ]
