"""``dsage demo``: everything once, on data that comes with scikit-learn."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from dsage.cli.errors import INTERRUPTED, note, show
from dsage.cli.options import RESULTS, RUN, Quiet

_TARGET = "progression"


def demo(
    report: Annotated[
        Path,
        typer.Option(
            metavar="FILE.html", rich_help_panel=RESULTS, help="Where to write the report."
        ),
    ] = Path("dsage-report.html"),
    tolerance: Annotated[
        float,
        typer.Option(
            metavar="NUMBER",
            rich_help_panel=RUN,
            help="Stop when the largest standard error is this share of the range of the values:"
            " the smaller, the longer.",
        ),
    ] = 0.03,
    quiet: Quiet = False,
) -> None:
    """Explain a random forest on scikit-learn's diabetes data, and write the report.

    442 patients, ten features, and how far the disease has come after a year.
    """
    from sklearn.datasets import load_diabetes  # noqa: PLC0415
    from sklearn.model_selection import train_test_split  # noqa: PLC0415

    import dsage  # noqa: PLC0415
    from dsage.cli.fitting import make_model  # noqa: PLC0415
    from dsage.cli.phases import PHASES, tell_phases  # noqa: PLC0415
    from dsage.cli.places import PAGES, Place, Writing, check_places, finish  # noqa: PLC0415
    from dsage.cli.texts import check_tolerance  # noqa: PLC0415

    check_places([Place("--report", report, PAGES)], {})
    check_tolerance(tolerance)
    progress = not quiet and sys.stderr.isatty()
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    rows = train_test_split(X, y.rename(_TARGET), test_size=0.3, random_state=0)
    X_train, X_test, y_train, y_test = rows
    if not quiet:
        note(f"Fitting a random forest to {len(X_train)} of 442 patients.")
    model = make_model("rf", (), is_of_classes=False, seed=0).fit(X_train, y_train)
    explanation = dsage.explain(
        model,
        X_train,
        y_train,
        X_test,
        y_test,
        tolerance=tolerance,
        random_state=0,
        progress=progress or (False if quiet else tell_phases(PHASES)),
    )
    writing = Writing("--report", report, explanation.report, "The report")
    finish(repr(explanation), [writing], quiet=True)
    show(f"\nThe report is in {report.resolve()}. Open it in a browser.")
    if explanation.estimate.interrupted:
        raise typer.Exit(INTERRUPTED)
