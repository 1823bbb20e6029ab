"""The arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

DATA = "Data"
RESULTS = "Results"
RUN = "How to run"

_KINDS = "CSV or Parquet, also compressed: .csv, .tsv, .csv.gz, .parquet, ..."

Data = Annotated[
    Path, typer.Argument(metavar="DATA", show_default=False, help=f"The table: {_KINDS}")
]
Target = Annotated[
    str,
    typer.Option(
        "--target",
        metavar="COLUMN",
        show_default=False,
        rich_help_panel=DATA,
        help="The column that is predicted.",
    ),
]
Drop = Annotated[
    list[str] | None,
    typer.Option(
        "--drop",
        metavar="COLUMN",
        show_default=False,
        rich_help_panel=DATA,
        help="Leave this column out; may be repeated.",
    ),
]
Discrete = Annotated[
    list[str] | None,
    typer.Option(
        "--discrete",
        metavar="COLUMN",
        show_default=False,
        rich_help_panel=DATA,
        help="A column of numbers that are classes; may be repeated.",
    ),
]
Sep = Annotated[
    str | None,
    typer.Option(
        "--sep",
        metavar="SIGN",
        show_default="a comma, or a tab in .tsv",
        rich_help_panel=DATA,
        help="What separates the fields of CSV, such as ';'; tab for a tab.",
    ),
]
Decimal = Annotated[
    str,
    typer.Option(
        "--decimal",
        metavar="SIGN",
        rich_help_panel=DATA,
        help="The decimal sign of numbers in CSV, such as ','.",
    ),
]
Encoding = Annotated[
    str,
    typer.Option(
        "--encoding",
        metavar="NAME",
        rich_help_panel=DATA,
        help="The encoding of CSV, such as latin-1 or cp1252.",
    ),
]
Csv = Annotated[
    Path | None,
    typer.Option(
        "--csv",
        metavar="FILE",
        show_default=False,
        rich_help_panel=RESULTS,
        help="Write the table as CSV.",
    ),
]
Seed = Annotated[
    int,
    typer.Option(
        "--seed",
        metavar="NUMBER",
        min=0,
        rich_help_panel=RUN,
        help="Seed of everything that is random: the same seed gives the same result.",
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs",
        metavar="NUMBER",
        show_default="1",
        rich_help_panel=RUN,
        help="Work in so many processes, -1 for all processors; results do not depend on it.",
    ),
]
Quiet = Annotated[
    bool,
    typer.Option("--quiet", rich_help_panel=RUN, help="No progress and no notes; warnings stay."),
]
