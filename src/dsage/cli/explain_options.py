"""The options of ``dsage explain`` that no other command has."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dsage.cli.options import DATA, RESULTS, RUN

_MODEL = "Model"
_WHAT = "What is estimated"
_STOP = "When to stop"

Model = Annotated[
    Path | None,
    typer.Option(
        "--model",
        metavar="FILE",
        show_default=False,
        rich_help_panel=_MODEL,
        help="A fitted model: .skops, .onnx, XGBoost (.json, .ubj), LightGBM (.txt), or a pickle.",
    ),
]
Fit = Annotated[
    str | None,
    typer.Option(
        "--fit",
        metavar="lm|rf|hgb|logistic",
        show_default=False,
        rich_help_panel=_MODEL,
        help="Fit a model instead: linear regression, random forest, gradient boosting,"
        " logistic regression. Without --model it is rf.",
    ),
]
Classes = Annotated[
    list[str] | None,
    typer.Option(
        "--classes",
        metavar="LABEL,LABEL,...",
        show_default=False,
        rich_help_panel=_MODEL,
        help="The classes of a model in a file that does not know them, in the order of the"
        " columns of its probabilities; may be repeated.",
    ),
]
Trust = Annotated[
    list[str] | None,
    typer.Option(
        "--trust",
        metavar="TYPE",
        show_default=False,
        rich_help_panel=_MODEL,
        help="A type that a skops file may hold; may be repeated. Untrusted ones are named"
        " when they are refused.",
    ),
]
TrustPickle = Annotated[
    bool,
    typer.Option(
        "--trust-pickle",
        rich_help_panel=_MODEL,
        help="Load a pickle or joblib file. It can run ANY program with your rights: only for"
        " files that you made, or whose maker you trust.",
    ),
]
Test = Annotated[
    Path | None,
    typer.Option(
        "--test",
        metavar="FILE",
        show_default=False,
        rich_help_panel=DATA,
        help="A table of rows to evaluate on, which the model was not fitted to.",
    ),
]
TestSize = Annotated[
    float | None,
    typer.Option(
        "--test-size",
        metavar="SIZE",
        show_default="0.25",
        rich_help_panel=DATA,
        help="Hold out this share of DATA to evaluate on, or this number of rows.",
    ),
]
Groups = Annotated[
    Path | None,
    typer.Option(
        "--groups",
        metavar="FILE.json",
        show_default=False,
        rich_help_panel=DATA,
        help='Features that are known together: {"group": ["feature", ...], ...}.',
    ),
]
Graph = Annotated[
    str,
    typer.Option(
        "--graph",
        metavar="FILE|learn|none",
        rich_help_panel=_WHAT,
        help="A graph that 'dsage graph' saved; learn it (also by name: tabu, hc, boss); or"
        " none, for plain SAGE.",
    ),
]
Resamples = Annotated[
    int | None,
    typer.Option(
        "--resamples",
        metavar="NUMBER",
        min=0,
        show_default="20, or 0 for many columns",
        rich_help_panel=_WHAT,
        help="Learn the graph again from so many halves of the rows, to tell how sure it is.",
    ),
]
Sampler = Annotated[
    str,
    typer.Option(
        "--sampler",
        metavar="NAME",
        rich_help_panel=_WHAT,
        help="How unknown features are drawn: gaussian, copula, mixture, categorical, forest,"
        " neighbors, sequential, marginal; auto takes the best.",
    ),
]
Loss = Annotated[
    str,
    typer.Option(
        "--loss",
        metavar="NAME",
        rich_help_panel=_WHAT,
        help="squared_error, absolute_error, pinball(0.9), cross_entropy, brier, zero_one; auto"
        " takes what suits the model.",
    ),
]
Estimand = Annotated[
    str,
    typer.Option(
        "--estimand",
        metavar="d-sage|sage",
        rich_help_panel=_WHAT,
        help="sage corrects what skipping by the graph changes: right for any model and graph,"
        " and slower.",
    ),
]
Tolerance = Annotated[
    float | None,
    typer.Option(
        "--tolerance",
        metavar="NUMBER",
        show_default="0.01",
        rich_help_panel=_STOP,
        help="Stop when the largest standard error is this share of the range of the values.",
    ),
]
Time = Annotated[
    str | None,
    typer.Option(
        "--time",
        metavar="TIME",
        show_default=False,
        rich_help_panel=_STOP,
        help="Stop estimating after this time: 90, 90s, 5m, 1h. With --tolerance, at whichever"
        " is first. With --checkpoint, the time of earlier sessions counts.",
    ),
]
Report = Annotated[
    Path | None,
    typer.Option(
        "--report",
        metavar="FILE.html",
        show_default=False,
        rich_help_panel=RESULTS,
        help="Write the report, one page that needs no network.",
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="FILE.dsage",
        show_default=False,
        rich_help_panel=RESULTS,
        help="Save the run, for 'dsage report', 'dsage compare' and dsage.load.",
    ),
]
Json = Annotated[
    Path | None,
    typer.Option(
        "--json",
        metavar="FILE",
        show_default=False,
        rich_help_panel=RESULTS,
        help="Write the table as JSON.",
    ),
]
Checkpoint = Annotated[
    Path | None,
    typer.Option(
        "--checkpoint",
        metavar="FILE",
        show_default=False,
        rich_help_panel=RUN,
        help="Keep the state here: the same command goes on where it ended.",
    ),
]
