"""``dsage demo``: an explanation of data that come with scikit-learn."""

from __future__ import annotations

import typer
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

import dsage
from dsage.cli import output
from dsage.cli.commands import DemoCommand
from dsage.cli.explain import check_tolerance
from dsage.cli.models import make_model


def run(command: DemoCommand) -> None:
    """Explain a random forest on the diabetes data, and write the report."""
    outputs = [output.Output("--report", command.report, "The report", output.PAGES)]
    output.check_outputs(outputs, {})
    check_tolerance(command.tolerance)
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    X_train, X_test, y_train, y_test = train_test_split(
        X, y.rename("progression"), test_size=0.3, random_state=0
    )
    text = f"Fitting a random forest to {len(X_train)} of {len(X)} patients."
    output.note(text, quiet=command.quiet)
    model = make_model("rf", (), is_classification=False, seed=0).fit(X_train, y_train)
    explanation = dsage.explain(
        model,
        X_train,
        y_train,
        X_test,
        y_test,
        tolerance=command.tolerance,
        random_state=0,
        progress=output.choose_progress(output.PHASES, quiet=command.quiet),
    )
    output.finish(repr(explanation), outputs, {"--report": explanation.report}, quiet=True)
    output.show(f"\nThe report is in {command.report.resolve()}. Open it in a browser.")
    if explanation.estimate.interrupted:
        raise typer.Exit(output.INTERRUPTED)
