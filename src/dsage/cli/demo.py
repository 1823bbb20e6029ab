"""``dsage demo``: an explanation of data that come with scikit-learn."""

from __future__ import annotations

import sys
from pathlib import Path

import typer
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

import dsage
from dsage.cli.explain import check_tolerance
from dsage.cli.models import make_model
from dsage.cli.output import (
    INTERRUPTED,
    PAGES,
    PHASES,
    Output,
    Writing,
    check_outputs,
    finish,
    note,
    note_phases,
    show,
)


def run_demo(report: Path, tolerance: float, *, quiet: bool) -> None:
    """Explain a random forest on the diabetes data, and write the report."""
    check_outputs([Output("--report", report, PAGES)], {})
    check_tolerance(tolerance)
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    X_train, X_test, y_train, y_test = train_test_split(
        X, y.rename("progression"), test_size=0.3, random_state=0
    )
    if not quiet:
        note(f"Fitting a random forest to {len(X_train)} of {len(X)} patients.")
    model = make_model("rf", (), is_classification=False, seed=0).fit(X_train, y_train)
    explanation = dsage.explain(
        model,
        X_train,
        y_train,
        X_test,
        y_test,
        tolerance=tolerance,
        random_state=0,
        progress=not quiet and (sys.stderr.isatty() or note_phases(PHASES)),
    )
    writing = Writing("--report", report, explanation.report, "The report")
    finish(repr(explanation), [writing], quiet=True)
    show(f"\nThe report is in {report.resolve()}. Open it in a browser.")
    if explanation.estimate.interrupted:
        raise typer.Exit(INTERRUPTED)
