"""The options that commands share.

In help texts, placeholders such as ``{samplers}`` are replaced by the names in a registry; see
`app`.
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


of_data = partial(_option, "Data")
of_model = partial(_option, "Model")
of_method = partial(_option, "Method")
of_stopping = partial(_option, "When to stop")
of_results = partial(_option, "Results")
of_running = partial(_option, "Running")
of_file = partial(of_results, "FILE.dsage")
of_picture = partial(of_results, "FILE.png|svg|pdf")

TOLERANCE = "Stop when the largest standard error is this fraction of the range of the values"
NO_TOLERANCE = "a third of the error from the rows, or 0.01"
Target = Annotated[str, of_data("COLUMN", "The column to predict.")]
Kind = Annotated[
    list[str] | None,
    of_data(
        "COLUMN=KIND",
        "The kind of a column: number, integer, codes, class or ordered class; can be repeated."
        " 'dsage describe' shows the kinds that are guessed.",
    ),
]
Csv = Annotated[Path | None, of_results("FILE", "Write the table as CSV.")]
RawCsv = Annotated[
    bool,
    of_results(
        None,
        "Write texts to CSV unchanged. By default, texts that a spreadsheet would run as formulas"
        " are written with an apostrophe in front.",
        "--raw-csv",
    ),
]
Plot = Annotated[Path | None, of_picture("Draw the result.")]
Jobs = Annotated[
    int | None,
    of_running(
        "NUMBER",
        "Number of processes, -1 for all processors; results do not depend on it.",
        show_default="1",
    ),
]
Seed = Annotated[
    int, of_running("NUMBER", "Random seed: the same seed gives the same result.", min=0)
]
Quiet = Annotated[
    bool, of_running(None, "Show no progress and no notes, only warnings.", "--quiet")
]
Run = Annotated[
    Path, typer.Argument(metavar="RUN", help="A file written by 'dsage explain --out'.")
]


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
    drop: Annotated[list[str] | None, of_data("COLUMN", "Drop this column; can be repeated.")] = (
        None
    )
    discrete: Annotated[
        list[str] | None,
        of_data("COLUMN", "Treat this numeric column as classes; can be repeated."),
    ] = None
    kind: Kind = None
    sep: Annotated[
        str | None,
        of_data(
            "CHARACTER",
            "Field separator of CSV files, such as ';'; 'tab' for tabs.",
            show_default="comma, or tab in .tsv",
        ),
    ] = None
    decimal: Annotated[
        str, of_data("CHARACTER", "Decimal separator of CSV files, such as ','.")
    ] = "."
    encoding: Annotated[
        str, of_data("NAME", "Encoding of CSV files, such as latin-1 or cp1252.")
    ] = "utf-8"

    @property
    def csv_format(self) -> dict[str, Any]:
        """The format of CSV files, as :func:`dsage.data.files.read_table` takes it."""
        sep = "\t" if self.sep in ("tab", "\\t") else self.sep
        return {"sep": sep, "decimal": self.decimal, "encoding": self.encoding}


@dataclass(frozen=True, kw_only=True)
class ModelCommand(TableCommand):
    """A command that reads a table, and loads a model or fits one to it."""

    target: Target
    test: Annotated[
        Path | None,
        of_data("FILE", "A table of evaluation rows that the model was not fitted to."),
    ] = None
    test_size: Annotated[
        float | None,
        of_data(
            "SIZE",
            "Hold out this fraction of DATA, or this number of rows, for evaluation.",
            show_default="0.25; with --model, all rows are used to learn and to evaluate",
        ),
    ] = None
    cv: Annotated[
        int | None,
        of_data(
            "FOLDS",
            "Cross-validate: fit and explain a model in this many folds, so that every row is"
            " evaluated. Limits such as --time apply to each fold, and --checkpoint is a"
            " folder.",
            min=2,
        ),
    ] = None
    repeats: Annotated[
        int,
        of_data(
            "NUMBER", "With --cv: repeat it with this many random divisions of the rows.", min=1
        ),
    ] = 1
    groups: Annotated[
        Path | None,
        of_data("FILE.json", 'Explain groups of features: {"group": ["feature", ...], ...}.'),
    ] = None
    model: Annotated[
        Path | None,
        of_model(
            "FILE",
            "A fitted model: .skops, .onnx, XGBoost (.json, .ubj), LightGBM (.txt), or a pickle.",
        ),
    ] = None
    fit: Annotated[
        str | None,
        of_model(
            "|".join(FITS),
            f"Fit {', '.join(FITS.values())}; used if no --model is given.",
            show_default="rf",
        ),
    ] = None
    classes: Annotated[
        list[str] | None,
        of_model(
            "LABEL,LABEL,...",
            "Class labels of a model that does not store them, in the order of its probability"
            " columns; can be repeated.",
        ),
    ] = None
    trust: Annotated[
        list[str] | None,
        of_model(
            "TYPE",
            "Accept this type in a skops file; can be repeated. The error for an untrusted file"
            " names its types.",
        ),
    ] = None
    trust_pickle: Annotated[
        bool,
        of_model(
            None,
            "Load a pickle or joblib file. It can run ANY program with your rights: use only files"
            " that you made yourself or whose author you trust.",
            "--trust-pickle",
        ),
    ] = False

    @property
    def labels(self) -> list[str]:
        """The labels of ``--classes``."""
        return [label for text in self.classes or () for label in text.split(",")]
