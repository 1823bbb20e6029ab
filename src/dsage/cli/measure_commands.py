"""The command that compares measures: its docstring is its help, its fields are its options."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

import typer

from dsage.cli.commands import ExplainCommand


@dataclass(frozen=True, kw_only=True)
class MeasuresCommand(ExplainCommand):
    """Show several measures of importance of the same features side by side.

    SAGE values, total and first-order effects, conditional and permutation feature importance, and
    the loss of models fitted without a feature (LOCO): on the same rows, with the same sampler and
    loss. DATA is split as by 'dsage explain'. LOCO needs the training rows of the model, so it is
    for models that are fitted here.
    """

    without: ClassVar[tuple[str, ...]] = (
        "cv", "repeats", "graph", "resamples", "min_share", "tiers", "forbidden",
        "required", "no_sampler_check", "estimand",
        "orderings", "time", "report", "checkpoint",
    )  # fmt: skip

    graph: str = "none"
    measure: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            rich_help_panel="Method",
            help="A measure: shapley, total, first-order, cfi, pfi or loco; can be repeated.",
            show_default="all but loco",
        ),
    ] = None
    interactions: Annotated[
        bool,
        typer.Option(
            "--interactions",
            rich_help_panel="Method",
            help="Show the strongest interactions of pairs, too; needs shapiq.",
        ),
    ] = False
    tolerance: Annotated[
        float | None,
        typer.Option(
            metavar="NUMBER",
            rich_help_panel="When to stop",
            help="For shapley: stop when the largest standard error is this fraction of the range"
            " of the values.",
            show_default="a third of the error from the rows, or 0.01",
        ),
    ] = None
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.dsage",
            rich_help_panel="Results",
            help="Save the measures for dsage.Measures.load.",
        ),
    ] = None
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.png|svg|pdf",
            rich_help_panel="Results",
            help="Draw a panel for each measure.",
        ),
    ] = None
