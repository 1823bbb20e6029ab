"""``dsage explain``: from a file to a ranking of the features."""

from __future__ import annotations

import sys
from typing import Any

import typer

from dsage.cli.errors import INTERRUPTED
from dsage.cli.explain_options import (
    Checkpoint,
    Classes,
    Estimand,
    Fit,
    Graph,
    Groups,
    Json,
    Loss,
    Model,
    Out,
    Report,
    Resamples,
    Sampler,
    Test,
    TestSize,
    Time,
    Tolerance,
    Trust,
    TrustPickle,
)
from dsage.cli.options import (
    Csv,
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


def explain(
    data: Data,
    target: Target,
    model: Model = None,
    fit: Fit = None,
    classes: Classes = None,
    trust: Trust = None,
    trust_pickle: TrustPickle = False,
    test: Test = None,
    test_size: TestSize = None,
    drop: Drop = None,
    discrete: Discrete = None,
    sep: Sep = None,
    decimal: Decimal = ".",
    encoding: Encoding = "utf-8",
    groups: Groups = None,
    graph: Graph = "learn",
    resamples: Resamples = None,
    sampler: Sampler = "auto",
    loss: Loss = "auto",
    estimand: Estimand = "d-sage",
    tolerance: Tolerance = None,
    time: Time = None,
    report: Report = None,
    out: Out = None,
    csv: Csv = None,
    json: Json = None,
    checkpoint: Checkpoint = None,
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
