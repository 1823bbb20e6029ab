"""``dsage demo``: an explanation of the penguins, a table with classes and missing values."""

from __future__ import annotations

import typer
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

import dsage
from dsage.cli import output
from dsage.cli.commands import DemoCommand
from dsage.cli.explain import check_tolerance
from dsage.datasets import load_penguins

_TARGET = "body_mass_g"


def run(command: DemoCommand) -> None:
    """Explain a model of the body mass of penguins, and write the report."""
    outputs = [output.Output("--report", command.report, "The report", output.PAGES)]
    output.check_outputs(outputs, {})
    check_tolerance(command.tolerance)
    penguins = load_penguins().dropna(subset=[_TARGET])
    X, y = penguins.drop(columns=_TARGET), penguins[_TARGET]
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
    n_absent = int(X["sex"].isna().sum())
    output.note(
        f"What tells the body mass of a penguin? Fitting gradient boosting to {len(X_train)} of"
        f" {len(X)} penguins, to be evaluated on the others. The sex of {n_absent} is missing.",
        quiet=command.quiet,
    )
    # For so few rows, more threads cost more time than they save.
    with threadpool_limits(1, user_api="openmp"):
        model = HistGradientBoostingRegressor(random_state=0).fit(X_train, y_train)
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
    output.show("Your own table: dsage explain DATA.csv --target COLUMN --report report.html")
    if explanation.estimate.interrupted:
        raise typer.Exit(output.INTERRUPTED)
