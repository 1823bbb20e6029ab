"""The program ``dsage``: each command runs the function with its name in one of the modules."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from importlib import import_module, resources
from importlib.resources.abc import Traversable
from typing import Annotated, Any, get_type_hints

import typer

from dsage._version import __version__
from dsage.cli import commands
from dsage.cli.output import OneLineGroup, guard

# The folders of the files that register names.
_REGISTRIES = {
    "{losses}": "models/losses",
    "{orderings}": "orderings",
    "{samplers}": "samplers",
    "{scores}": "structure/scores",
    "{searches}": "structure/searches",
}
_REGISTERED = re.compile(r'^@(?:\w+\.)?register\(\s*"(\w+)"', re.MULTILINE)
_Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]

app = typer.Typer(
    name="dsage",
    cls=OneLineGroup,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class _Command(typer.core.TyperCommand):
    """A command whose help lists the names in registries."""

    def format_help(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401
        for parameter in self.params:
            text = parameter.help or ""  # type: ignore[attr-defined]
            for placeholder, folder in _REGISTRIES.items():
                if placeholder in text:
                    text = text.replace(placeholder, ", ".join(_registered_names(folder)))
            parameter.help = text  # type: ignore[attr-defined]
        super().format_help(ctx, formatter)


def _registered_names(folder: str) -> list[str]:
    """Return the names that the files in a folder register, from their text, sorted by file.

    Importing these files takes seconds, and help must be fast.
    """
    texts = _read_files(resources.files("dsage") / folder)
    return [name for text in texts for name in _REGISTERED.findall(text) if name != "auto"]


def _read_files(folder: Traversable) -> Iterator[str]:
    """Yield the texts of the Python files in a folder and its subfolders."""
    for file in sorted(folder.iterdir(), key=lambda each: each.name):
        if file.is_dir():
            yield from _read_files(file)
        elif file.name.endswith(".py"):
            yield file.read_text(encoding="utf-8")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"dsage {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Estimate how much each feature contributes to a model's predictive performance.

    Start with 'dsage demo', or 'dsage explain data.csv --target COLUMN'.
    """


def _add(name: str, kind: type[Any], module: str) -> None:
    """Add a command; its function is in `module`, which is imported when the command runs.

    A command may inherit options and leave some of them out, which then keep their defaults.
    """

    def run(*, debug: bool = False, **options: Any) -> None:  # noqa: ANN401
        with guard(debug=debug):
            found = import_module(f"dsage.cli.{module}")
            vars(found)[f"run_{name.replace('-', '_')}"](kind(**options))

    # typer reads the options from the signature.
    signature = inspect.signature(kind)
    # Commands may inherit options from another module.
    hints = get_type_hints(kind, include_extras=True)
    debug = inspect.signature(run, eval_str=True).parameters["debug"].replace(annotation=_Debug)
    without = vars(kind).get("without", ())
    own = [
        each.replace(annotation=hints[each.name])
        for each in signature.parameters.values()
        if each.name not in without
    ]
    vars(run)["__signature__"] = signature.replace(parameters=[*own, debug])
    text = inspect.getdoc(kind)
    app.command(name, cls=_Command, help=text, no_args_is_help=name != "demo")(run)


_add("demo", commands.DemoCommand, "workflows")
_add("explain", commands.ExplainCommand, "explain")
_add("explain-rows", commands.ExplainRowsCommand, "workflows")
_add("measures", commands.MeasuresCommand, "workflows")
_add("flow", commands.FlowCommand, "workflows")
_add("describe", commands.DescribeCommand, "data")
_add("graph", commands.GraphCommand, "data")
_add("score-samplers", commands.ScoreSamplersCommand, "data")
_add("report", commands.ReportCommand, "workflows")
_add("compare", commands.CompareCommand, "workflows")
