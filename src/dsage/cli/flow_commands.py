"""The command of flows along edges: its docstring is its help, its fields are its options."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

import typer

from dsage.cli.commands import ExplainCommand


@dataclass(frozen=True, kw_only=True)
class FlowCommand(ExplainCommand):
    """Show along which edges of a causal graph a model's performance comes about.

    Each column is a function of its causes and of noise of its own, learned from the training rows.
    What the risk is reduced by when the noise of a row is known flows along the edges to the model.
    The graph should be yours: its directions decide the result, and data tell only some of them.
    DATA is split as by 'dsage explain'.
    """

    without: ClassVar[tuple[str, ...]] = (
        "cv", "repeats", "groups", "resamples", "min_share", "sampler", "no_sampler_check",
        "estimand", "orderings", "checkpoint",
    )  # fmt: skip

    graph: Annotated[
        str,
        typer.Option(
            metavar="FILE|learn",
            rich_help_panel="Method",
            help="A graph saved by 'dsage graph', or by dsage.Graph.save; 'learn', or a search"
            " ({searches}), to learn one.",
        ),
    ]
    sources: Annotated[
        str,
        typer.Option(
            metavar="noise|do",
            rich_help_panel="Method",
            help="What starts a flow: the noise of each column, or setting each feature to its"
            " value.",
        ),
    ] = "noise"
    model_first: Annotated[
        bool,
        typer.Option(
            "--model-first",
            rich_help_panel="Method",
            help="Let columns act on the model before they act on other columns.",
        ),
    ] = False
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.dsage",
            rich_help_panel="Results",
            help="Save the flow for dsage.FlowExplanation.load.",
        ),
    ] = None
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.png|svg|pdf",
            rich_help_panel="Results",
            help="Draw the graph with edges as wide as what flows along them.",
        ),
    ] = None
