"""The commands: their docstrings are their help, and their fields are their options.

In help texts, ``{samplers}`` and the like stand for the names in a registry; see `app`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
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


def _option(panel: str, metavar: str | None, text: str, *flags: str, **others: Any) -> Any:  # noqa: ANN401
    return typer.Option(*flags, metavar=metavar, rich_help_panel=panel, help=text, **others)


_data = partial(_option, "Data")
_model = partial(_option, "Model")
_method = partial(_option, "Method")
_stopping = partial(_option, "When to stop")
_results = partial(_option, "Results")
_running = partial(_option, "Running")

_TOLERANCE = "Stop when the largest standard error is this fraction of the range of the values"
_Target = Annotated[str, _data("COLUMN", "The column to predict.")]
_Kind = Annotated[
    list[str] | None,
    _data(
        "COLUMN=KIND",
        "What a column is: number, integer, codes, class or ordered class; can be repeated."
        " 'dsage describe' shows what it is taken for.",
    ),
]
_Csv = Annotated[Path | None, _results("FILE", "Write the table as CSV.")]
_RawCsv = Annotated[
    bool,
    typer.Option(
        "--raw-csv",
        help="Write texts to CSV as they are. By default those that a spreadsheet would run as"
        " formulas get an apostrophe in front.",
        rich_help_panel="Results",
    ),
]
_Plot = Annotated[Path | None, _results("FILE.png|svg|pdf", "Draw the result.")]
_Jobs = Annotated[
    int | None,
    _running(
        "NUMBER",
        "Number of processes, -1 for all processors; results do not depend on it.",
        show_default="1",
    ),
]
_Seed = Annotated[
    int, _running("NUMBER", "Random seed: the same seed gives the same result.", min=0)
]
_Quiet = Annotated[bool, _running(None, "Show no progress and no notes, only warnings.", "--quiet")]
_Run = Annotated[
    Path, typer.Argument(metavar="RUN", help="A file written by 'dsage explain --out'.")
]


@dataclass(frozen=True, kw_only=True)
class DemoCommand:
    """Explain a model of the body mass of penguins, and write the report.

    The Palmer penguins are a table of numbers and classes with missing values, which comes with
    dsage. The model, gradient boosting, takes missing values as they are.
    """

    report: Annotated[Path, _results("FILE.html", "Write the report here.")] = Path(
        "dsage-report.html"
    )
    tolerance: Annotated[
        float | None, _stopping("NUMBER", f"{_TOLERANCE}; smaller takes longer.")
    ] = None
    quiet: _Quiet = False


@dataclass(frozen=True, kw_only=True)
class TableCommand:
    """A command that reads a table."""

    data: Annotated[
        Path,
        typer.Argument(
            metavar="DATA", help="The table: CSV or Parquet (.csv, .tsv, .csv.gz, .parquet, ...)."
        ),
    ]
    target: str | None
    drop: Annotated[list[str] | None, _data("COLUMN", "Drop this column; can be repeated.")] = None
    discrete: Annotated[
        list[str] | None,
        _data("COLUMN", "Treat this numeric column as classes; can be repeated."),
    ] = None
    kind: _Kind = None
    sep: Annotated[
        str | None,
        _data(
            "CHARACTER",
            "Field separator of CSV files, such as ';'; 'tab' for tabs.",
            show_default="comma, or tab in .tsv",
        ),
    ] = None
    decimal: Annotated[str, _data("CHARACTER", "Decimal separator of CSV files, such as ','.")] = (
        "."
    )
    encoding: Annotated[str, _data("NAME", "Encoding of CSV files, such as latin-1 or cp1252.")] = (
        "utf-8"
    )

    @property
    def csv_format(self) -> dict[str, Any]:
        """The format of CSV files, as :func:`dsage.data.files.read_table` takes it."""
        sep = "\t" if self.sep in ("tab", "\\t") else self.sep
        return {"sep": sep, "decimal": self.decimal, "encoding": self.encoding}


@dataclass(frozen=True, kw_only=True)
class ExplainCommand(TableCommand):
    """Rank the features of a table by how much they contribute to a model's performance.

    DATA is split into training and evaluation rows, unless --test provides the latter, or --model a
    model that is already fitted: then all rows serve for both. dsage learns a graph, selects a
    sampler and a loss, and estimates the values until they are precise enough. Ctrl-C stops
    earlier: the values so far are shown and saved, and the exit code is 130.
    """

    target: _Target
    test: Annotated[
        Path | None,
        _data("FILE", "A table of evaluation rows that the model was not fitted to."),
    ] = None
    test_size: Annotated[
        float | None,
        _data(
            "SIZE",
            "Hold out this fraction of DATA, or this number of rows, for evaluation.",
            show_default="0.25; with --model, all rows are used to learn and to evaluate",
        ),
    ] = None
    cv: Annotated[
        int | None,
        _data(
            "FOLDS",
            "Cross-validate: fit and explain a model in this many folds, so that every row is"
            " evaluated. Limits such as --time are those of each fold, and --checkpoint is a"
            " folder.",
            min=2,
        ),
    ] = None
    repeats: Annotated[
        int,
        _data("NUMBER", "With --cv: repeat it with this many random divisions of the rows.", min=1),
    ] = 1
    groups: Annotated[
        Path | None,
        _data("FILE.json", 'Explain groups of features: {"group": ["feature", ...], ...}.'),
    ] = None
    model: Annotated[
        Path | None,
        _model(
            "FILE",
            "A fitted model: .skops, .onnx, XGBoost (.json, .ubj), LightGBM (.txt), or a pickle.",
        ),
    ] = None
    fit: Annotated[
        str | None,
        _model(
            "|".join(FITS),
            f"Fit {', '.join(FITS.values())}; used if no --model is given.",
            show_default="rf",
        ),
    ] = None
    classes: Annotated[
        list[str] | None,
        _model(
            "LABEL,LABEL,...",
            "Class labels of a model that does not store them, in the order of its probability"
            " columns; can be repeated.",
        ),
    ] = None
    trust: Annotated[
        list[str] | None,
        _model(
            "TYPE",
            "Accept this type in a skops file; can be repeated. The error for an untrusted file"
            " names its types.",
        ),
    ] = None
    trust_pickle: Annotated[
        bool,
        _model(
            None,
            "Load a pickle or joblib file. It can run ANY program with your rights: use only files"
            " that you made yourself or whose author you trust.",
            "--trust-pickle",
        ),
    ] = False
    graph: Annotated[
        str,
        _method(
            "FILE|auto|learn|none",
            "A graph saved by 'dsage graph'; 'learn', or a search ({searches}), to learn one;"
            " 'none' for plain SAGE; 'auto' learns one, and uses it where that saves evaluations.",
        ),
    ] = "auto"
    resamples: Annotated[
        int | None,
        _method(
            "NUMBER",
            "Learn the graph again from this many halves of the rows, to see how stable it is.",
            show_default="20 for a report, else 0",
            min=0,
        ),
    ] = None
    min_share: Annotated[
        float | None,
        _method(
            "SHARE",
            "Skip only where this share of the graphs learned from halves of the rows agrees.",
            min=0.0,
            max=1.0,
        ),
    ] = None
    tiers: Annotated[
        str | None,
        _method(
            "NAMES;NAMES;...",
            "Columns in temporal order, for a graph that is learned: none causes one of an earlier"
            " tier. Such as 'age,sex;income;bought', or a JSON file with a list of lists.",
        ),
    ] = None
    forbidden: Annotated[
        list[str] | None,
        _method("CAUSE,EFFECT", "An edge that a learned graph must not have; can be repeated."),
    ] = None
    required: Annotated[
        list[str] | None,
        _method("CAUSE,EFFECT", "An edge that a learned graph must have; can be repeated."),
    ] = None
    sampler: Annotated[
        str,
        _method(
            "NAME",
            "How to draw unknown features: {samplers}; auto selects one by its scores on held-out"
            " rows.",
        ),
    ] = "auto"
    no_sampler_check: Annotated[
        bool,
        _method(
            None,
            "Do not estimate how much another sampler that scores as well would change the values.",
            "--no-sampler-check",
        ),
    ] = False
    loss: Annotated[
        str,
        _method(
            "NAME",
            "{losses}, where pinball takes a quantile, tweedie a power and huber a distance:"
            " pinball(0.9); or a metric of scikit-learn. auto selects one by the model and the"
            " target.",
        ),
    ] = "auto"
    estimand: Annotated[
        str,
        _method(
            "d-sage|sage|causal",
            "sage corrects the bias that skipping by the graph can cause; it takes longer. causal"
            " values answer another question: what a feature contributes when it is set, not seen.",
        ),
    ] = "d-sage"
    orderings: Annotated[str, _method("NAME", "How to draw the orderings: {orderings}.")] = (
        "antithetic"
    )
    tolerance: Annotated[
        float | None,
        _stopping(
            "NUMBER",
            f"{_TOLERANCE}.",
            show_default="a third of the error from the rows, or 0.01",
        ),
    ] = None
    time: Annotated[
        str | None,
        _stopping(
            "TIME",
            "Stop estimating after this time: 90, 90s, 5m, 1h. With --tolerance, whichever comes"
            " first. With --checkpoint, the time of earlier sessions counts.",
        ),
    ] = None
    report: Annotated[
        Path | None, _results("FILE.html", "Write a report: one page that works offline.")
    ] = None
    out: Annotated[
        Path | None,
        _results("FILE.dsage", "Save the run for 'dsage report', 'dsage compare' and dsage.load."),
    ] = None
    csv: _Csv = None
    raw_csv: _RawCsv = False
    json: Annotated[Path | None, _results("FILE", "Write the table as JSON.")] = None
    checkpoint: Annotated[
        Path | None, _running("FILE", "Keep the state here: the same command resumes the run.")
    ] = None
    seed: _Seed = 0
    jobs: _Jobs = None
    quiet: _Quiet = False

    @property
    def labels(self) -> list[str]:
        """The labels of ``--classes``."""
        return [label for text in self.classes or () for label in text.split(",")]


@dataclass(frozen=True, kw_only=True)
class DescribeCommand(TableCommand):
    """Show what the columns of a table are taken for, and what is odd about them.

    Missing values, dates, classes and numbers are read as 'dsage explain' reads them.
    """

    target: Annotated[str | None, _data("COLUMN", "Also say what the target is taken for.")] = None
    csv: _Csv = None
    raw_csv: _RawCsv = False
    quiet: _Quiet = False


@dataclass(frozen=True, kw_only=True)
class GraphCommand(TableCommand):
    """Learn the causal graph of a table, and show what the target depends on.

    Given its Markov blanket, the target is independent of all other features. With --resamples 0,
    Parquet files of more than a million rows are read in batches.
    """

    target: _Target
    method: Annotated[str, _method("NAME", "The search: auto, {searches}.")] = "auto"
    score: Annotated[
        str,
        _method(
            "NAME",
            "The score to optimize: {scores}; auto selects one by the types of the columns.",
        ),
    ] = "auto"
    resamples: Annotated[
        int,
        _method(
            "NUMBER",
            "Learn again from this many halves of the rows, to see how stable each edge is.",
            min=0,
        ),
    ] = 20
    out: Annotated[
        Path | None,
        _results("FILE.json", "Save the graph for 'dsage explain --graph FILE.json'."),
    ] = None
    plot: _Plot = None
    dot: Annotated[Path | None, _results("FILE", "Write the graph for Graphviz.")] = None
    seed: _Seed = 0
    jobs: _Jobs = None
    quiet: _Quiet = False


@dataclass(frozen=True, kw_only=True)
class ScoreSamplersCommand(TableCommand):
    """Score the samplers that can draw the features of a table, on held-out rows.

    The energy score measures the distance between draws and data: lower is better. Samplers that
    are clearly worse than another are given up early, and those that would take too long are not
    tried. The marginal sampler ignores the known features, and so shows what conditioning gains.
    """

    target: Annotated[
        str | None, _data("COLUMN", "Exclude the target: samplers draw features only.")
    ] = None
    seed: _Seed = 0
    quiet: _Quiet = False


@dataclass(frozen=True, kw_only=True)
class ReportCommand:
    """Write the report of a saved run: one HTML page that works offline."""

    run: _Run
    out: Annotated[
        Path | None, _results("FILE.html", "Write the report here.", show_default="RUN.html")
    ] = None
    quiet: _Quiet = False


@dataclass(frozen=True, kw_only=True)
class CompareCommand:
    """Show the values of two saved runs side by side, with intervals of their differences.

    The intervals assume that the runs are independent. For two models on the same rows,
    dsage.compare in Python is more precise: it uses the same noise for both.
    """

    run: _Run
    other: Annotated[Path, typer.Argument(metavar="RUN", help="The run to compare it with.")]
    confidence: Annotated[
        float, _running("NUMBER", "Confidence level of the intervals.", min=0.5, max=0.9999)
    ] = 0.95
    plot: _Plot = None
    csv: _Csv = None
    raw_csv: _RawCsv = False
    quiet: _Quiet = False
