"""The commands of ``dsage``: their options; the work is in the module that each one imports."""

# ruff: noqa: PLC0415
# Options reach the work as locals(), and imports wait until a command runs: help must be fast.

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from dsage._version import __version__
from dsage.cli import options
from dsage.cli.output import OneLineGroup, guard

_REGISTRIES = {
    "{losses}": ("dsage.models", "LOSSES"),
    "{orderings}": ("dsage.orderings", "KINDS"),
    "{samplers}": ("dsage.samplers", "SAMPLERS"),
    "{scores}": ("dsage.structure", "SCORES"),
    "{searches}": ("dsage.structure", "METHODS"),
}

app = typer.Typer(
    name="dsage",
    cls=OneLineGroup,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class _Command(typer.core.TyperCommand):
    """A command whose help lists the names in registries, which it imports only then."""

    def format_help(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401
        for parameter in self.params:
            text = parameter.help  # type: ignore[attr-defined]
            for placeholder, (module, registry) in _REGISTRIES.items():
                if placeholder in text:
                    names = getattr(import_module(module), registry)
                    listed = ", ".join(name for name in names if name != "auto")
                    text = text.replace(placeholder, listed)
            parameter.help = text  # type: ignore[attr-defined]
        super().format_help(ctx, formatter)


def _add(command: Callable[..., None]) -> Callable[..., None]:
    """Add a command to the app under its name."""
    name = command.__name__.replace("_", "-")
    app.command(name, cls=_Command, no_args_is_help=name != "demo")(guard(command))
    return command


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


@_add
def demo(
    report: options.DemoReportOption = Path("dsage-report.html"),
    tolerance: options.DemoToleranceOption = 0.03,
    quiet: options.QuietOption = False,
) -> None:
    """Explain a random forest on scikit-learn's diabetes data, and write the report.

    The data describe 442 patients with ten features, and how far the disease has progressed after
    a year.
    """
    from dsage.cli.demo import run_demo

    run_demo(report, tolerance, quiet=quiet)


@_add
def explain(
    data: options.DataArgument,
    target: options.TargetOption,
    model: options.ModelOption = None,
    fit: options.FitOption = None,
    classes: options.ClassesOption = None,
    trust: options.TrustOption = None,
    trust_pickle: options.TrustPickleOption = False,
    test: options.TestOption = None,
    test_size: options.TestSizeOption = None,
    drop: options.DropOption = None,
    discrete: options.DiscreteOption = None,
    sep: options.SepOption = None,
    decimal: options.DecimalOption = ".",
    encoding: options.EncodingOption = "utf-8",
    groups: options.GroupsOption = None,
    graph: options.GraphOption = "learn",
    resamples: options.StabilityOption = None,
    sampler: options.SamplerOption = "auto",
    loss: options.LossOption = "auto",
    estimand: options.EstimandOption = "d-sage",
    orderings: options.OrderingsOption = "antithetic",
    tolerance: options.ToleranceOption = None,
    time: options.TimeOption = None,
    report: options.ReportOption = None,
    out: options.OutOption = None,
    csv: options.CsvOption = None,
    json: options.JsonOption = None,
    checkpoint: options.CheckpointOption = None,
    seed: options.SeedOption = 0,
    jobs: options.JobsOption = None,
    quiet: options.QuietOption = False,
) -> None:
    """Rank the features of a table by how much they contribute to a model's performance.

    DATA is split into training and evaluation rows, unless --test provides the latter. dsage learns
    a graph, selects a sampler and a loss, and estimates the values until they are precise enough.
    Ctrl-C stops earlier: the values so far are shown and saved, and the exit code is 130.
    """
    given = dict(locals())
    from dsage.cli.explain import Request, run_explain

    run_explain(Request(**given))


@_add
def graph(
    data: options.DataArgument,
    target: options.TargetOption,
    method: options.SearchOption = "auto",
    score: options.ScoreOption = "auto",
    resamples: options.ResamplesOption = 20,
    drop: options.DropOption = None,
    discrete: options.DiscreteOption = None,
    sep: options.SepOption = None,
    decimal: options.DecimalOption = ".",
    encoding: options.EncodingOption = "utf-8",
    out: options.GraphFileOption = None,
    plot: options.PlotOption = None,
    dot: options.DotOption = None,
    seed: options.SeedOption = 0,
    jobs: options.JobsOption = None,
    quiet: options.QuietOption = False,
) -> None:
    """Learn the causal graph of a table, and show what the target depends on.

    Given its Markov blanket, the target is independent of all other features.
    """
    given = dict(locals())
    from dsage.cli.graph import Request, run_graph

    run_graph(Request(**given))


@_add
def score_samplers(
    data: options.DataArgument,
    target: options.ExcludedTargetOption = None,
    drop: options.DropOption = None,
    discrete: options.DiscreteOption = None,
    sep: options.SepOption = None,
    decimal: options.DecimalOption = ".",
    encoding: options.EncodingOption = "utf-8",
    seed: options.SeedOption = 0,
    quiet: options.QuietOption = False,
) -> None:
    """Score the samplers that can draw the features of a table, on held-out rows.

    The energy score measures the distance between draws and data: lower is better. The marginal
    sampler ignores the known features, and so shows what conditioning gains.
    """
    given = dict(locals())
    from dsage.cli.samplers import Request, run_score_samplers

    run_score_samplers(Request(**given))


@_add
def report(
    run: options.RunArgument,
    out: options.ReportFileOption = None,
    quiet: options.QuietOption = False,
) -> None:
    """Write the report of a saved run: one HTML page that works offline."""
    from dsage.cli.results import run_report

    run_report(run, out, quiet=quiet)


@_add
def compare(
    run: options.RunArgument,
    other: options.OtherRunArgument,
    confidence: options.ConfidenceOption = 0.95,
    plot: options.PlotOption = None,
    csv: options.CsvOption = None,
    quiet: options.QuietOption = False,
) -> None:
    """Show the values of two saved runs side by side, with intervals of their differences.

    The intervals assume that the runs are independent. For two models on the same rows,
    dsage.estimate.compare_games in Python is more precise: it uses the same noise for both.
    """
    from dsage.cli.results import run_compare

    run_compare(run, other, confidence=confidence, plot=plot, csv=csv, quiet=quiet)
