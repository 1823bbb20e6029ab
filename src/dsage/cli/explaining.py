"""``dsage explain``: from a file to a ranking of the features."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from dsage.cli.errors import INTERRUPTED
from dsage.cli.options import (
    DATA,
    RESULTS,
    RUN,
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

_MODEL = "Model"
_WHAT = "What is estimated"
_STOP = "When to stop"


def explain(
    data: Data,
    target: Target,
    model: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            show_default=False,
            rich_help_panel=_MODEL,
            help="A fitted model: .skops, .onnx, XGBoost (.json, .ubj), LightGBM (.txt), or a"
            " pickle.",
        ),
    ] = None,
    fit: Annotated[
        str | None,
        typer.Option(
            metavar="lm|rf|hgb|logistic",
            show_default=False,
            rich_help_panel=_MODEL,
            help="Fit a model instead: linear regression, random forest, gradient boosting,"
            " logistic regression. Without --model it is rf.",
        ),
    ] = None,
    classes: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LABEL,LABEL,...",
            show_default=False,
            rich_help_panel=_MODEL,
            help="The classes of a model in a file that does not know them, in the order of the"
            " columns of its probabilities; may be repeated.",
        ),
    ] = None,
    trust: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TYPE",
            show_default=False,
            rich_help_panel=_MODEL,
            help="A type that a skops file may hold; may be repeated. Untrusted ones are named"
            " when they are refused.",
        ),
    ] = None,
    trust_pickle: Annotated[
        bool,
        typer.Option(
            "--trust-pickle",
            rich_help_panel=_MODEL,
            help="Load a pickle or joblib file. It can run ANY program with your rights: only for"
            " files that you made, or whose maker you trust.",
        ),
    ] = False,
    test: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            show_default=False,
            rich_help_panel=DATA,
            help="A table of rows to evaluate on, which the model was not fitted to.",
        ),
    ] = None,
    test_size: Annotated[
        float | None,
        typer.Option(
            metavar="SIZE",
            show_default="0.25",
            rich_help_panel=DATA,
            help="Hold out this share of DATA to evaluate on, or this number of rows.",
        ),
    ] = None,
    drop: Drop = None,
    discrete: Discrete = None,
    sep: Sep = None,
    decimal: Decimal = ".",
    encoding: Encoding = "utf-8",
    groups: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.json",
            show_default=False,
            rich_help_panel=DATA,
            help='Features that are known together: {"group": ["feature", ...], ...}.',
        ),
    ] = None,
    graph: Annotated[
        str,
        typer.Option(
            metavar="FILE|learn|none",
            rich_help_panel=_WHAT,
            help="A graph that 'dsage graph' saved; learn it (also by name: tabu, hc, boss); or"
            " none, for plain SAGE.",
        ),
    ] = "learn",
    resamples: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER",
            min=0,
            show_default="20, or 0 for many columns",
            rich_help_panel=_WHAT,
            help="Learn the graph again from so many halves of the rows, to tell how sure it is.",
        ),
    ] = None,
    sampler: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            rich_help_panel=_WHAT,
            help="How unknown features are drawn: gaussian, copula, mixture, categorical, forest,"
            " neighbors, sequential, marginal; auto takes the best.",
        ),
    ] = "auto",
    loss: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            rich_help_panel=_WHAT,
            help="squared_error, absolute_error, pinball(0.9), cross_entropy, brier, zero_one; auto"
            " takes what suits the model.",
        ),
    ] = "auto",
    estimand: Annotated[
        str,
        typer.Option(
            metavar="d-sage|sage",
            rich_help_panel=_WHAT,
            help="sage corrects what skipping by the graph changes: right for any model and graph,"
            " and slower.",
        ),
    ] = "d-sage",
    tolerance: Annotated[
        float | None,
        typer.Option(
            metavar="NUMBER",
            show_default="0.01",
            rich_help_panel=_STOP,
            help="Stop when the largest standard error is this share of the range of the values.",
        ),
    ] = None,
    time: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            show_default=False,
            rich_help_panel=_STOP,
            help="Stop estimating after this time: 90, 90s, 5m, 1h. With --tolerance, at whichever"
            " is first. With --checkpoint, the time of earlier sessions counts.",
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.html",
            show_default=False,
            rich_help_panel=RESULTS,
            help="Write the report, one page that needs no network.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.dsage",
            show_default=False,
            rich_help_panel=RESULTS,
            help="Save the run, for 'dsage report', 'dsage compare' and dsage.load.",
        ),
    ] = None,
    csv: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            show_default=False,
            rich_help_panel=RESULTS,
            help="Write the table as CSV.",
        ),
    ] = None,
    json: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            show_default=False,
            rich_help_panel=RESULTS,
            help="Write the table as JSON.",
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            show_default=False,
            rich_help_panel=RUN,
            help="Keep the state here: the same command goes on where it ended.",
        ),
    ] = None,
    seed: Seed = 0,
    jobs: Jobs = None,
    quiet: Quiet = False,
) -> None:
    """Rank the features of a table by what they contribute to a model's performance.

    DATA is split into rows to learn from and rows to evaluate on, unless --test gives the latter. A
    graph is learned, a sampler and a loss are chosen, and the values are estimated until they are
    sure enough. Ctrl-C ends that: what is known by then is shown and saved, with exit code 130.
    """
    from dsage.cli import running, texts  # noqa: PLC0415

    request = running.Request(
        data=data,
        target=target,
        test=test,
        test_size=test_size,
        drop=tuple(drop or ()),
        discrete=tuple(discrete or ()),
        csv=texts.csv_options(sep, decimal, encoding),
        model=model,
        fit=fit,
        classes=tuple(label for each in classes or () for label in each.split(",")),
        trust=tuple(trust or ()),
        trust_pickle=trust_pickle,
        seed=seed,
        is_quiet=quiet,
    )
    outputs = running.Outputs(report=report, out=out, csv=csv, json=json, checkpoint=checkpoint)
    outputs.check(request, graph, groups)
    texts.check_tolerance(tolerance)
    texts.check_jobs(jobs)
    options: dict[str, Any] = {
        "graph": texts.as_graph_option(graph),
        "n_resamples": resamples,
        "sampler": sampler,
        "loss": loss,
        "estimand": estimand,
        "tolerance": tolerance,
        "seconds": None if time is None else texts.as_seconds(time),
        "groups": None if groups is None else texts.read_groups(groups),
        "checkpoint": checkpoint,
        "n_jobs": jobs,
        "progress": not quiet and sys.stderr.isatty(),
    }
    explanation = running.explained(request, options)
    outputs.finish(explanation, quiet=quiet)
    if explanation.estimate.interrupted:
        raise typer.Exit(INTERRUPTED)
