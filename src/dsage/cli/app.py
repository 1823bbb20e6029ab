"""The commands of ``dsage``."""

from __future__ import annotations

from typing import Annotated

import typer

from dsage._version import __version__
from dsage.cli.demo import demo
from dsage.cli.errors import OneLineGroup, guarded
from dsage.cli.explaining import explain
from dsage.cli.graphing import graph
from dsage.cli.results import compare, report
from dsage.cli.sampling import score_samplers

app = typer.Typer(
    name="dsage",
    cls=OneLineGroup,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"dsage {__version__}")
        raise typer.Exit


@app.callback()
def about(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Tell how much each feature contributes to a model's predictive performance.

    Start with 'dsage demo', or 'dsage explain data.csv --target COLUMN'.
    """


for command in (demo, explain, graph, score_samplers, report, compare):
    app.command(command.__name__.replace("_", "-"), no_args_is_help=command is not demo)(
        guarded(command)
    )
