"""The command that explains single rows: its docstring is its help, its fields are its options."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

import typer

from dsage.cli.commands import ExplainCommand


@dataclass(frozen=True, kw_only=True)
class ExplainRowsCommand(ExplainCommand):
    """Show what each feature adds to the predictions, or takes from the losses, of some rows.

    The rows are those of DATA, or of --test, at the positions --rows, counted from 0. Without
    --model, a model is fitted to the other rows of DATA. The values of a row add up to its
    prediction minus the mean prediction. Ctrl-C stops earlier: the values so far are shown.
    """

    without: ClassVar[tuple[str, ...]] = ("test_size", "cv", "repeats", "no_sampler_check")

    rows: Annotated[
        str,
        typer.Option(
            metavar="ROWS",
            rich_help_panel="Data",
            help="Positions of the rows to explain, counted from 0: 0,5,7 or 10-19 or all.",
        ),
    ]
    test: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            rich_help_panel="Data",
            help="A table of other rows, among which are those to explain.",
        ),
    ] = None
    values: Annotated[
        str,
        typer.Option(
            metavar="prediction|loss",
            rich_help_panel="Method",
            help="Explain the predictions, or how much of its loss each feature removes.",
        ),
    ] = "prediction"
    output: Annotated[
        str | None,
        typer.Option(
            metavar="LABEL",
            rich_help_panel="Method",
            help="The class, or the number of the output, to explain.",
            show_default="the second of two classes, or all",
        ),
    ] = None
    tolerance: Annotated[
        float | None,
        typer.Option(
            metavar="NUMBER",
            rich_help_panel="When to stop",
            help="Stop when the largest standard error is this fraction of the range of the"
            " values.",
            show_default="0.02",
        ),
    ] = None
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.dsage",
            rich_help_panel="Results",
            help="Save the rows for dsage.RowExplanation.load.",
        ),
    ] = None
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.png|svg|pdf",
            rich_help_panel="Results",
            help="Draw the result: a waterfall of one row, a beeswarm of several.",
        ),
    ] = None
