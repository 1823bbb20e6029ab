"""The arguments and options of the commands.

In help texts, ``{samplers}`` and the like stand for the names in a registry; see `app`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

FITS = {
    "lm": "a linear regression",
    "rf": "a random forest",
    "hgb": "gradient boosting",
    "logistic": "a logistic regression",
}
"""The models that ``--fit`` fits."""

_DATA = "Data"
_MODEL = "Model"
_METHOD = "Method"
_STOPPING = "When to stop"
_RESULTS = "Results"
_RUN = "Running"


def _option(
    flag: str,
    metavar: str | None,
    panel: str,
    text: str,
    *,
    default: bool | str = False,
    **limits: Any,  # noqa: ANN401
) -> Any:  # noqa: ANN401
    """Return an option; `default` is False or what the help says of it, or True to show it."""
    return typer.Option(
        flag, metavar=metavar, rich_help_panel=panel, help=text, show_default=default, **limits
    )


# Data

DataArgument = Annotated[
    Path,
    typer.Argument(
        metavar="DATA",
        show_default=False,
        help="The table: CSV or Parquet (.csv, .tsv, .csv.gz, .parquet, ...).",
    ),
]
TargetOption = Annotated[str, _option("--target", "COLUMN", _DATA, "The column to predict.")]
ExcludedTargetOption = Annotated[
    str | None,
    _option("--target", "COLUMN", _DATA, "Exclude the target: samplers draw features only."),
]
TestOption = Annotated[
    Path | None,
    _option(
        "--test", "FILE", _DATA, "A table of evaluation rows that the model was not fitted to."
    ),
]
TestSizeOption = Annotated[
    float | None,
    _option(
        "--test-size",
        "SIZE",
        _DATA,
        "Hold out this fraction of DATA, or this number of rows, for evaluation.",
        default="0.25",
    ),
]
DropOption = Annotated[
    list[str] | None,
    _option("--drop", "COLUMN", _DATA, "Drop this column; can be repeated."),
]
DiscreteOption = Annotated[
    list[str] | None,
    _option(
        "--discrete", "COLUMN", _DATA, "Treat this numeric column as classes; can be repeated."
    ),
]
SepOption = Annotated[
    str | None,
    _option(
        "--sep",
        "CHARACTER",
        _DATA,
        "Field separator of CSV files, such as ';'; 'tab' for tabs.",
        default="comma, or tab in .tsv",
    ),
]
DecimalOption = Annotated[
    str,
    _option(
        "--decimal",
        "CHARACTER",
        _DATA,
        "Decimal separator of CSV files, such as ','.",
        default=True,
    ),
]
EncodingOption = Annotated[
    str,
    _option(
        "--encoding",
        "NAME",
        _DATA,
        "Encoding of CSV files, such as latin-1 or cp1252.",
        default=True,
    ),
]
GroupsOption = Annotated[
    Path | None,
    _option(
        "--groups",
        "FILE.json",
        _DATA,
        'Explain groups of features: {"group": ["feature", ...], ...}.',
    ),
]

# Model

ModelOption = Annotated[
    Path | None,
    _option(
        "--model",
        "FILE",
        _MODEL,
        "A fitted model: .skops, .onnx, XGBoost (.json, .ubj), LightGBM (.txt), or a pickle.",
    ),
]
FitOption = Annotated[
    str | None,
    _option(
        "--fit",
        "|".join(FITS),
        _MODEL,
        f"Fit {', '.join(FITS.values())}; used if no --model is given.",
        default="rf",
    ),
]
ClassesOption = Annotated[
    list[str] | None,
    _option(
        "--classes",
        "LABEL,LABEL,...",
        _MODEL,
        "Class labels of a model that does not store them, in the order of its probability"
        " columns; can be repeated.",
    ),
]
TrustOption = Annotated[
    list[str] | None,
    _option(
        "--trust",
        "TYPE",
        _MODEL,
        "Accept this type in a skops file; can be repeated. The error for an untrusted file names"
        " its types.",
    ),
]
TrustPickleOption = Annotated[
    bool,
    _option(
        "--trust-pickle",
        None,
        _MODEL,
        "Load a pickle or joblib file. It can run ANY program with your rights: use only files that"
        " you made yourself or whose author you trust.",
    ),
]

# Method

GraphOption = Annotated[
    str,
    _option(
        "--graph",
        "FILE|learn|none",
        _METHOD,
        "A graph saved by 'dsage graph'; 'learn', or a search ({searches}), to learn one; 'none'"
        " for plain SAGE.",
        default=True,
    ),
]
StabilityOption = Annotated[
    int | None,
    _option(
        "--resamples",
        "NUMBER",
        _METHOD,
        "Learn the graph again from this many halves of the rows, to see how stable it is.",
        default="20, or 0 for many columns",
        min=0,
    ),
]
SamplerOption = Annotated[
    str,
    _option(
        "--sampler",
        "NAME",
        _METHOD,
        "How to draw unknown features: {samplers}; auto selects one by its score on held-out rows.",
        default=True,
    ),
]
LossOption = Annotated[
    str,
    _option(
        "--loss",
        "NAME",
        _METHOD,
        "{losses}, where pinball takes a quantile: pinball(0.9); auto selects one by the model and"
        " the target.",
        default=True,
    ),
]
EstimandOption = Annotated[
    str,
    _option(
        "--estimand",
        "d-sage|sage",
        _METHOD,
        "sage corrects the bias that skipping by the graph can cause; it takes longer.",
        default=True,
    ),
]
OrderingsOption = Annotated[
    str,
    _option(
        "--orderings", "NAME", _METHOD, "How to draw the orderings: {orderings}.", default=True
    ),
]
SearchOption = Annotated[
    str,
    _option("--method", "NAME", _METHOD, "The search: auto, {searches}.", default=True),
]
ScoreOption = Annotated[
    str,
    _option(
        "--score",
        "NAME",
        _METHOD,
        "The score to optimize: {scores}; auto selects one by the types of the columns.",
        default=True,
    ),
]
ResamplesOption = Annotated[
    int,
    _option(
        "--resamples",
        "NUMBER",
        _METHOD,
        "Learn again from this many halves of the rows, to see how stable each edge is.",
        default=True,
        min=0,
    ),
]

# When to stop

ToleranceOption = Annotated[
    float | None,
    _option(
        "--tolerance",
        "NUMBER",
        _STOPPING,
        "Stop when the largest standard error is this fraction of the range of the values.",
        default="0.01",
    ),
]
DemoToleranceOption = Annotated[
    float,
    _option(
        "--tolerance",
        "NUMBER",
        _STOPPING,
        "Stop when the largest standard error is this fraction of the range of the values; smaller"
        " takes longer.",
        default=True,
    ),
]
TimeOption = Annotated[
    str | None,
    _option(
        "--time",
        "TIME",
        _STOPPING,
        "Stop estimating after this time: 90, 90s, 5m, 1h. With --tolerance, whichever comes first."
        " With --checkpoint, the time of earlier sessions counts.",
    ),
]

# Results

ReportOption = Annotated[
    Path | None,
    _option("--report", "FILE.html", _RESULTS, "Write a report: one page that works offline."),
]
DemoReportOption = Annotated[
    Path, _option("--report", "FILE.html", _RESULTS, "Write the report here.", default=True)
]
ReportFileOption = Annotated[
    Path | None,
    _option("--out", "FILE.html", _RESULTS, "Write the report here.", default="RUN.html"),
]
OutOption = Annotated[
    Path | None,
    _option(
        "--out",
        "FILE.dsage",
        _RESULTS,
        "Save the run for 'dsage report', 'dsage compare' and dsage.load.",
    ),
]
GraphFileOption = Annotated[
    Path | None,
    _option(
        "--out", "FILE.json", _RESULTS, "Save the graph for 'dsage explain --graph FILE.json'."
    ),
]
CsvOption = Annotated[Path | None, _option("--csv", "FILE", _RESULTS, "Write the table as CSV.")]
JsonOption = Annotated[Path | None, _option("--json", "FILE", _RESULTS, "Write the table as JSON.")]
PlotOption = Annotated[
    Path | None, _option("--plot", "FILE.png|svg|pdf", _RESULTS, "Draw the result.")
]
DotOption = Annotated[
    Path | None, _option("--dot", "FILE", _RESULTS, "Write the graph for Graphviz.")
]

# Running

CheckpointOption = Annotated[
    Path | None,
    _option("--checkpoint", "FILE", _RUN, "Keep the state here: the same command resumes the run."),
]
SeedOption = Annotated[
    int,
    _option(
        "--seed",
        "NUMBER",
        _RUN,
        "Random seed: the same seed gives the same result.",
        default=True,
        min=0,
    ),
]
JobsOption = Annotated[
    int | None,
    _option(
        "--jobs",
        "NUMBER",
        _RUN,
        "Number of processes, -1 for all processors; results do not depend on it.",
        default="1",
    ),
]
QuietOption = Annotated[
    bool, _option("--quiet", None, _RUN, "Show no progress and no notes, only warnings.")
]

# Saved runs

RunArgument = Annotated[
    Path,
    typer.Argument(
        metavar="RUN", show_default=False, help="A file written by 'dsage explain --out'."
    ),
]
OtherRunArgument = Annotated[
    Path, typer.Argument(metavar="RUN", show_default=False, help="The run to compare it with.")
]
ConfidenceOption = Annotated[
    float,
    _option(
        "--confidence",
        "NUMBER",
        _RUN,
        "Confidence level of the intervals.",
        default=True,
        min=0.5,
        max=0.9999,
    ),
]
