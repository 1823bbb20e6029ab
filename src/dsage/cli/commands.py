"""The commands: their docstrings are their help, and their fields are their options."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

import typer

from dsage.cli.options import (
    NO_TOLERANCE,
    TOLERANCE,
    Csv,
    Jobs,
    ModelCommand,
    Plot,
    Quiet,
    RawCsv,
    Run,
    Seed,
    TableCommand,
    Target,
    of_data,
    of_file,
    of_method,
    of_picture,
    of_results,
    of_running,
    of_stopping,
)


@dataclass(frozen=True, kw_only=True)
class DemoCommand:
    """Explain a model of the body mass of penguins, and write the report.

    The Palmer penguins are a table of numbers and classes with missing values, which comes with
    dsage. The model, gradient boosting, takes missing values as they are.
    """

    report: Annotated[Path, of_results("FILE.html", "Write the report here.")] = Path(
        "dsage-report.html"
    )
    tolerance: Annotated[
        float | None, of_stopping("NUMBER", f"{TOLERANCE}; smaller takes longer.")
    ] = None
    quiet: Quiet = False


@dataclass(frozen=True, kw_only=True)
class ExplainCommand(ModelCommand):
    """Rank the features of a table by how much they contribute to a model's performance.

    DATA is split into training and evaluation rows, unless --test provides the latter, or --model a
    model that is already fitted: then all rows are used for both. dsage learns a graph, selects a
    sampler and a loss, and estimates the values until they are precise enough. Ctrl-C stops
    earlier: the values so far are shown and saved, and the exit code is 130.
    """

    graph: Annotated[
        str,
        of_method(
            "FILE|auto|learn|none",
            "A graph saved by 'dsage graph'; 'learn', or a search ({searches}), to learn one;"
            " 'none' for plain SAGE; 'auto' learns one, and uses it if that saves evaluations.",
        ),
    ] = "auto"
    resamples: Annotated[
        int | None,
        of_method(
            "NUMBER",
            "Learn the graph again from this many halves of the rows, to see how stable it is.",
            show_default="20 for a report, else 0",
            min=0,
        ),
    ] = None
    min_share: Annotated[
        float | None,
        of_method(
            "SHARE",
            "Skip only if this share of the graphs learned from halves of the rows agrees.",
            min=0.0,
            max=1.0,
        ),
    ] = None
    tiers: Annotated[
        str | None,
        of_method(
            "NAMES;NAMES;...",
            "Columns in temporal order, for a graph that is learned: no column causes one in an"
            " earlier tier. For example 'age,sex;income;bought', or a JSON file with a list of"
            " lists.",
        ),
    ] = None
    forbidden: Annotated[
        list[str] | None,
        of_method("CAUSE,EFFECT", "An edge that a learned graph must not have; can be repeated."),
    ] = None
    required: Annotated[
        list[str] | None,
        of_method("CAUSE,EFFECT", "An edge that a learned graph must have; can be repeated."),
    ] = None
    sampler: Annotated[
        str,
        of_method(
            "NAME",
            "How to draw unknown features: {samplers}; auto selects one by its scores on held-out"
            " rows.",
        ),
    ] = "auto"
    no_sampler_check: Annotated[
        bool,
        of_method(
            None,
            "Do not estimate how much another sampler that scores as well would change the values.",
            "--no-sampler-check",
        ),
    ] = False
    loss: Annotated[
        str,
        of_method(
            "NAME",
            "{losses}, or a metric of scikit-learn; auto selects one by the model and the target."
            " pinball takes a quantile, tweedie a power and huber a distance, as in pinball(0.9).",
        ),
    ] = "auto"
    estimand: Annotated[
        str,
        of_method(
            "d-sage|sage|causal",
            "sage corrects the bias that skipping by the graph can cause; it takes longer. causal"
            " values answer another question: what a feature contributes when an intervention sets"
            " its value.",
        ),
    ] = "d-sage"
    orderings: Annotated[str, of_method("NAME", "How to draw the orderings: {orderings}.")] = (
        "antithetic"
    )
    tolerance: Annotated[
        float | None,
        of_stopping(
            "NUMBER",
            f"{TOLERANCE}.",
            show_default=NO_TOLERANCE,
        ),
    ] = None
    time: Annotated[
        str | None,
        of_stopping(
            "TIME",
            "Stop estimating after this time: 90, 90s, 5m, 1h. With --tolerance, whichever comes"
            " first. With --checkpoint, the time of earlier sessions counts.",
        ),
    ] = None
    report: Annotated[
        Path | None, of_results("FILE.html", "Write a report: one page that works offline.")
    ] = None
    out: Annotated[
        Path | None,
        of_file("Save the run for 'dsage report', 'dsage compare' and dsage.load."),
    ] = None
    csv: Csv = None
    raw_csv: RawCsv = False
    json: Annotated[Path | None, of_results("FILE", "Write the table as JSON.")] = None
    checkpoint: Annotated[
        Path | None, of_running("FILE", "Keep the state here: the same command resumes the run.")
    ] = None
    seed: Seed = 0
    jobs: Jobs = None
    quiet: Quiet = False


@dataclass(frozen=True, kw_only=True)
class ExplainRowsCommand(ExplainCommand):
    """Show what each feature adds to the predictions, or takes from the losses, of some rows.

    The rows are taken from DATA, or from --test, at the positions --rows, counted from 0. Without
    --model, a model is fitted to the other rows of DATA. The values of a row add up to its
    prediction minus the mean prediction. Ctrl-C stops earlier: the values so far are shown.
    """

    without: ClassVar[tuple[str, ...]] = ("test_size", "cv", "repeats", "no_sampler_check")

    rows: Annotated[
        str,
        of_data("ROWS", "Positions of the rows to explain, counted from 0: 0,5,7 or 10-19 or all."),
    ]
    test: Annotated[
        Path | None, of_data("FILE", "Another table, which contains the rows to explain.")
    ] = None
    values: Annotated[
        str,
        of_method(
            "prediction|loss",
            "Explain the predictions, or how much of its loss each feature removes.",
        ),
    ] = "prediction"
    output: Annotated[
        str | None,
        of_method(
            "LABEL",
            "The class, or the number of the output, to explain.",
            show_default="the second of two classes, or all",
        ),
    ] = None
    tolerance: Annotated[
        float | None, of_stopping("NUMBER", f"{TOLERANCE}.", show_default="0.02")
    ] = None
    out: Annotated[Path | None, of_file("Save the rows for dsage.RowExplanation.load.")] = None
    plot: Annotated[
        Path | None, of_picture("Draw the result: a waterfall of one row, a beeswarm of several.")
    ] = None


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
        of_method(
            "NAME",
            "A measure: shapley, total, first-order, cfi, pfi or loco; can be repeated.",
            show_default="all except loco",
        ),
    ] = None
    interactions: Annotated[
        bool,
        of_method(
            None, "Show the strongest interactions of pairs, too; needs shapiq.", "--interactions"
        ),
    ] = False
    tolerance: Annotated[
        float | None,
        of_stopping(
            "NUMBER",
            f"For shapley: {TOLERANCE[0].lower()}{TOLERANCE[1:]}.",
            show_default=NO_TOLERANCE,
        ),
    ] = None
    out: Annotated[Path | None, of_file("Save the measures for dsage.Measures.load.")] = None
    plot: Annotated[Path | None, of_picture("Draw a panel for each measure.")] = None


@dataclass(frozen=True, kw_only=True)
class FlowCommand(ExplainCommand):
    """Attribute a model's performance to the edges of a causal graph.

    Each column is a function of its causes and of independent noise, learned from the training
    rows. Knowing the noise of a row reduces the risk; this reduction flows along the edges to the
    model. Provide the graph if you can: its directions decide the result, and data determine only
    some of them.

    DATA is split as by 'dsage explain'.
    """

    without: ClassVar[tuple[str, ...]] = (
        "cv", "repeats", "groups", "resamples", "min_share", "sampler", "no_sampler_check",
        "estimand", "orderings", "checkpoint",
    )  # fmt: skip

    graph: Annotated[
        str,
        of_method(
            "FILE|learn",
            "A graph saved by 'dsage graph', or by dsage.Graph.save; 'learn', or a search"
            " ({searches}), to learn one.",
        ),
    ]
    sources: Annotated[
        str,
        of_method(
            "noise|do",
            "How a flow starts: with the noise of each column, or by setting each feature.",
        ),
    ] = "noise"
    model_first: Annotated[
        bool,
        of_method(
            None, "Let columns act on the model before they act on other columns.", "--model-first"
        ),
    ] = False
    out: Annotated[Path | None, of_file("Save the flow for dsage.FlowExplanation.load.")] = None
    plot: Annotated[
        Path | None, of_picture("Draw the graph with edges as wide as what flows along them.")
    ] = None


@dataclass(frozen=True, kw_only=True)
class DescribeCommand(TableCommand):
    """Show how the columns of a table are read, and what is unusual about them.

    Missing values, dates, classes and numbers are read as 'dsage explain' reads them.
    """

    target: Annotated[str | None, of_data("COLUMN", "Also show how the target is read.")] = None
    csv: Csv = None
    raw_csv: RawCsv = False
    quiet: Quiet = False


@dataclass(frozen=True, kw_only=True)
class GraphCommand(TableCommand):
    """Learn the causal graph of a table, and show what the target depends on.

    Given its Markov blanket, the target is independent of all other features. With --resamples 0,
    Parquet files of more than a million rows are read in batches.
    """

    target: Target
    method: Annotated[str, of_method("NAME", "The search: auto, {searches}.")] = "auto"
    score: Annotated[
        str,
        of_method(
            "NAME",
            "The score to optimize: {scores}; auto selects one by the types of the columns.",
        ),
    ] = "auto"
    resamples: Annotated[
        int,
        of_method(
            "NUMBER",
            "Learn again from this many halves of the rows, to see how stable each edge is.",
            min=0,
        ),
    ] = 20
    out: Annotated[
        Path | None,
        of_results("FILE.json", "Save the graph for 'dsage explain --graph FILE.json'."),
    ] = None
    plot: Plot = None
    dot: Annotated[Path | None, of_results("FILE", "Write the graph for Graphviz.")] = None
    seed: Seed = 0
    jobs: Jobs = None
    quiet: Quiet = False


@dataclass(frozen=True, kw_only=True)
class ScoreSamplersCommand(TableCommand):
    """Score the samplers that can draw the features of a table, on held-out rows.

    The energy score measures the distance between draws and data: lower is better. Samplers that
    are clearly worse than another are dropped early, and those that would take too long are not
    tried. The marginal sampler ignores the known features, and so shows what conditioning gains.
    """

    target: Annotated[
        str | None, of_data("COLUMN", "Exclude the target: samplers draw features only.")
    ] = None
    seed: Seed = 0
    quiet: Quiet = False


@dataclass(frozen=True, kw_only=True)
class ReportCommand:
    """Write the report of a saved run: one HTML page that works offline."""

    run: Run
    out: Annotated[
        Path | None, of_results("FILE.html", "Write the report here.", show_default="RUN.html")
    ] = None
    quiet: Quiet = False


@dataclass(frozen=True, kw_only=True)
class CompareCommand:
    """Show the values of two saved runs side by side, with intervals of their differences.

    The intervals assume that the runs are independent. For two models on the same rows,
    dsage.compare in Python is more precise: it uses the same noise for both.
    """

    run: Run
    other: Annotated[Path, typer.Argument(metavar="RUN", help="The run to compare it with.")]
    confidence: Annotated[
        float, of_running("NUMBER", "Confidence level of the intervals.", min=0.5, max=0.9999)
    ] = 0.95
    plot: Plot = None
    csv: Csv = None
    raw_csv: RawCsv = False
    quiet: Quiet = False
