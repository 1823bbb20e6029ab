"""Commands around ``dsage explain``: rows, measures, flows, saved runs, and the demo."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import typer
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

import dsage
from dsage._check import check_member, check_members, refusal, shown
from dsage.cli import models, output
from dsage.cli.commands import (
    CompareCommand,
    DemoCommand,
    ExplainRowsCommand,
    FlowCommand,
    MeasuresCommand,
    ReportCommand,
)
from dsage.cli.explain import (
    check_choices,
    check_groups,
    check_tolerance,
    collect_options,
    column_options,
    parse_time,
    plan_outputs,
    read_graph,
    read_knowledge,
    read_with_target,
    split_table,
    write_result,
)
from dsage.cli.models import Split, split_rows
from dsage.cli.tables import read_test_rows
from dsage.datasets import load_penguins
from dsage.estimate import StopKind, intervals
from dsage.result.explanation import Explanation
from dsage.result.flow import SOURCES
from dsage.result.rows import RowExplanation
from dsage.result.series import Series
from dsage.result.tables import format_table
from dsage.workflows.measures import Measures
from dsage.workflows.measures.kinds import MEASURES

# Options of `explain` that apply to all measures, and that apply to SAGE values only.
_OF_ALL, _OF_SHAPLEY = ("sampler", "loss", "groups"), ("tolerance", "n_jobs")
_MOST_PAIRS = 10
# The target of the demo.
_BODY_MASS = "body_mass_g"


def run_demo(command: DemoCommand) -> None:
    """Explain a model of the body mass of penguins, and write the report."""
    outputs = [output.Output("--report", command.report, "The report", output.PAGES)]
    output.check_outputs(outputs, {})
    check_tolerance(command.tolerance)
    penguins = load_penguins().dropna(subset=[_BODY_MASS])
    X, y = penguins.drop(columns=_BODY_MASS), penguins[_BODY_MASS]
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
    n_absent = int(X["sex"].isna().sum())
    output.note(
        f"What predicts the body mass of a penguin? Fitting gradient boosting to {len(X_train)} of"
        f" {len(X)} penguins, to be evaluated on the others. The sex of {n_absent} is missing.",
        quiet=command.quiet,
    )
    # With this few rows, more threads cost more time than they save.
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


# Single rows


def run_explain_rows(command: ExplainRowsCommand) -> None:
    """Explain rows with a model that is loaded or fitted, and write the results."""
    outputs = plan_outputs(command, "The result", plot=command.plot)
    check_choices(command)
    check_member(command.values, ("prediction", "loss"), "--values", "the kinds of values")
    options = collect_options(command)
    # Values of single rows are not compared between samplers.
    del options["sampler_check"]
    model = models.read_model(command)
    split = _split(command, model)
    check_groups(options["groups"], split)
    model, X_train, rows = models.ready_model(command, model, split, options)
    explanation = dsage.explain_rows(
        model,
        X_train,
        split.y_train,
        rows,
        split.y_test,
        values=command.values,  # type: ignore[arg-type]
        output=_parse_output(command.output, split),
        **column_options(command, split),
        **options,
    )
    further: output.Writers = {
        "--report": explanation.report,
        "--plot": partial(_draw_rows, explanation),
    }
    write_result(explanation, outputs, command, further)
    if any(each.interrupted for each in explanation.estimates):
        raise typer.Exit(output.INTERRUPTED)


def _split(command: ExplainRowsCommand, model: Any) -> Split:  # noqa: ANN401
    """Read the table, and separate the rows to explain from the rows to learn from."""
    table, discrete, target = read_with_target(command, model)
    source = table if command.test is None else read_test_rows(command.test, command, table)
    name = command.data.name if command.test is None else command.test.name
    positions = parse_rows(command.rows, len(source), name)
    train = table
    if command.test is None and model is None:
        train = table.drop(index=table.index[positions])
        if len(train) < 2:
            advice = "Explain fewer rows, or give a fitted model with --model"
            condition = "fewer rows, so that a model can be fitted to the others"
            raise refusal("--rows", condition, command.rows, advice)
    if command.values == "loss" and command.test is None and model is not None:
        # --quiet does not silence it: the result may be misread.
        output.note(
            "Warning: the losses describe performance on new rows only if the model in"
            f" {command.model} was not fitted to these rows."
        )
    split = split_rows(
        train,
        command.target,
        test=source.iloc[positions],
        test_size=0.0,
        discrete=discrete,
        is_classification=target.is_classification,
        seed=command.seed,
    )
    # The rows are named by their positions.
    return split._replace(
        X_test=split.X_test.set_axis(positions, axis=0),
        y_test=split.y_test.set_axis(positions, axis=0),
    )


def parse_rows(text: str, n_rows: int, name: str) -> list[int]:
    """Return the positions that ``--rows`` names: numbers, ranges such as 10-19, or all."""
    if text.strip() == "all":
        return list(range(n_rows))
    found: list[int] = []
    for part in text.split(","):
        first, dash, last = (each.strip() for each in part.partition("-"))
        if not first.isdecimal() or (dash and not last.isdecimal()):
            advice = "Write positions counted from 0, such as 0,5,7 or 10-19, or all"
            raise refusal("--rows", "positions of rows", text, advice)
        start, end = int(first), int(last if dash else first)
        if max(start, end) >= n_rows:
            advice = f"{name} has {n_rows:,} rows, counted from 0 to {n_rows - 1}"
            raise refusal("--rows", f"rows of {name}", max(start, end), advice)
        found += range(start, end + 1)
    if not found:
        raise refusal("--rows", "at least one row", text, "Write the smaller number first")
    return list(dict.fromkeys(found))


def _parse_output(text: str | None, split: Split) -> Any:  # noqa: ANN401
    """Return the class that ``--output`` names, in the type of the target, or a number."""
    if text is None:
        return None
    labels: dict[str, Any] = {
        str(label): label for label in pd.concat([split.y_train, split.y_test]).unique().tolist()
    }
    if split.is_classification and text in labels:
        return labels[text]
    if text.isdecimal() and not split.is_classification:
        return int(text)
    known = shown(sorted(labels)) if split.is_classification else "numbers, counted from 0"
    raise refusal("--output", "an output of the model", text, f"They are {known}")


def _draw_rows(explanation: RowExplanation, path: Path) -> None:
    """Draw one row as a waterfall, several as a beeswarm."""
    if len(explanation) == 1:
        output.save_figure(explanation.plot.waterfall(0), path)
        return
    first = explanation.outputs[0]
    several = len(explanation.outputs) > 1
    output.save_figure(explanation.plot.beeswarm(output=first if several else None), path)


# Several measures


def run_measures(command: MeasuresCommand) -> None:
    """Estimate the measures of a model that is loaded or fitted, and write the results."""
    outputs = plan_outputs(command, "The result", plot=command.plot)
    check_choices(command)
    measures = [name for name in MEASURES if name != "loco"]
    if command.measure:
        named = check_members(command.measure, tuple(MEASURES), "--measure", "the measures")
        measures = list(named)
    if "loco" in measures and command.model is not None:
        advice = (
            "It is fitted again without each feature, but its training rows are unknown: use --fit"
        )
        raise refusal("--measure loco", "used without --model", str(command.model), advice)
    given = collect_options(command)
    options = {name: given[name] for name in _OF_ALL}
    options |= {name: given[name] for name in _OF_SHAPLEY if given[name] is not None}
    model = models.read_model(command)
    split = split_table(command, model)
    check_groups(options["groups"], split)
    model, X_train, X_test = models.ready_model(command, model, split, options)
    found = dsage.explain_measures(
        model,
        X_train,
        split.y_train,
        None if split.is_shared else X_test,
        None if split.is_shared else split.y_test,
        measures=measures,
        interactions=command.interactions,
        progress=given["progress"] is True,
        **column_options(command, split),
        **options,
    )
    further: output.Writers = {
        "--plot": lambda path: output.save_figure(found.plot().ravel()[0], path)
    }
    write_result(found, outputs, command, further, text=_show_measures(found))


def _show_measures(found: Measures) -> str:
    """Return the table, and the strongest interactions."""
    text = str(found)
    if found.interactions is None:
        return text
    pairs = found.interactions.head(_MOST_PAIRS).to_string(
        index=False, float_format=lambda x: f"{x:.4g}"
    )
    return f"{text}\n\nInteractions, the strongest first:\n{pairs}"


# Flows along edges


def run_flow(command: FlowCommand) -> None:
    """Estimate the flow of a model that is loaded or fitted, and write the results."""
    outputs = plan_outputs(command, "The result", plot=command.plot)
    check_choices(command)
    check_member(command.sources, SOURCES, "--sources", "the sources")
    graph = read_graph(command.graph)
    if graph is None:
        advice = "A flow needs a graph: write one with 'dsage graph', or use --graph learn"
        raise refusal("--graph", "a graph", command.graph, advice)
    model = models.read_model(command)
    split = split_table(command, model)
    options = {
        "graph": graph,
        "sources": command.sources,
        "model_first": command.model_first,
        "loss": command.loss,
        "tolerance": command.tolerance,
        "seconds": None if command.time is None else parse_time(command.time),
        "n_jobs": command.jobs,
        **read_knowledge(command),
    }
    model, X_train, X_test = models.ready_model(command, model, split, options)
    output.note(output.PHASES["estimate"], quiet=command.quiet)
    found = dsage.explain_flow(
        model,
        X_train,
        split.y_train,
        None if split.is_shared else X_test,
        None if split.is_shared else split.y_test,
        progress=False,
        **column_options(command, split),
        **options,
    )
    further: output.Writers = {
        "--report": found.report,
        "--plot": lambda path: output.save_figure(found.plot.flow(), path),
    }
    write_result(found, outputs, command, further, text=str(found))
    if found.estimate.reason.kind is StopKind.INTERRUPTED:
        raise typer.Exit(output.INTERRUPTED)


# Saved runs


def run_report(command: ReportCommand) -> None:
    """Write the report of a saved run."""
    path = command.out or command.run.with_suffix(".html")
    output.check_outputs(
        [output.Output("--out", path, "The report", output.PAGES)], {"RUN": command.run}
    )
    dsage.load(command.run).report(path)
    output.note(f"The report is in {path}.", quiet=command.quiet)


def run_compare(command: CompareCommand) -> None:
    """Show two saved runs side by side."""
    outputs = [
        output.Output("--csv", command.csv, "The table"),
        output.Output("--plot", command.plot, "The picture", output.PICTURES),
    ]
    paths = command.run, command.other
    output.check_outputs(outputs, {"the first RUN": paths[0], "the second RUN": paths[1]})
    first, second = map(dsage.load, paths)
    _check_comparable(first, second)
    is_distinct = paths[0].stem != paths[1].stem
    names = [path.stem if is_distinct else str(path) for path in paths]
    output.note(
        "The intervals assume that the two runs are independent. For two models on the same rows,"
        " dsage.compare in Python is more precise: it uses the same noise for both.",
        quiet=command.quiet,
    )
    frame = _compute_differences(first, second, command.confidence)
    writers: output.Writers = {
        **output.table_writers(frame, is_raw=command.raw_csv),
        "--plot": lambda path: output.save_figure(
            first.plot.compare(second, labels=names)[0], path
        ),
    }
    digests = [each.choices.data.digest for each in (first, second)]
    same_rows = digests[0] is not None and digests[0] == digests[1]
    table = _format_differences(frame, names, command.confidence, same_rows=same_rows)
    output.finish(table, outputs, writers, quiet=command.quiet)


def _check_comparable(first: Explanation, second: Explanation) -> None:
    """Refuse two runs whose values mean different things."""
    if first.target != second.target:
        advice = f"The other is {second.target!r}: compare runs of one target"
        raise refusal("the target", "the same in both runs", first.target, advice)
    losses = [each.choices.loss.name for each in (first, second)]
    if losses[0] != losses[1]:
        advice = f"The other is {losses[1]!r}: values are in units of the loss"
        raise refusal("the loss", "the same in both runs", losses[0], advice)
    if not set(first.feature_names) & set(second.feature_names):
        advice = f"The other run has {shown(second.feature_names)}"
        features = shown(first.feature_names)
        raise refusal("the features", "partly the same in both runs", features, advice)


def _compute_differences(
    first: Explanation, second: Explanation, confidence: float
) -> pd.DataFrame:
    """Return the values of the features that both runs have, and second minus first.

    The intervals are for these evaluation rows and, ending in ``_total``, for the population.
    """
    names = [name for name in first.feature_names if name in second.feature_names]
    one, two = Series.of(first, names, "first"), Series.of(second, names, "second")
    found = two.minus(one)
    columns = {"first": one.values, "second": two.values, "difference": found.values}
    for suffix, se, df in ("", found.se, found.df), ("_total", found.se_total, found.df_total):
        columns[f"se{suffix}"] = se
        ends = intervals(found.values, se, confidence, df=df)
        columns[f"lower{suffix}"], columns[f"upper{suffix}"] = ends
    order = np.argsort(-(one.values + two.values), kind="stable")
    return pd.DataFrame({"feature": names, **columns}).iloc[order].reset_index(drop=True)


def _format_differences(
    frame: pd.DataFrame, names: list[str], confidence: float, *, same_rows: bool
) -> str:
    """Return the differences as a table; a star marks intervals without zero.

    The intervals are for the evaluation rows if both runs have the same rows, and otherwise for the
    population, since different rows alone change the values.
    """
    meaning = "the evaluation rows differ: intervals for the population"
    low, high = "lower_total", "upper_total"
    if same_rows:
        meaning, low, high = "intervals for these evaluation rows", "lower", "upper"
    heads = ["feature", *names, "difference", f"{confidence:.0%} interval", ""]
    lines = [
        [
            str(line["feature"]),
            f"{line['first']:.4g}",
            f"{line['second']:.4g}",
            f"{line['difference']:+.4g}",
            f"[{line[low]:.4g}, {line[high]:.4g}]",
            "*" if line[low] > 0 or line[high] < 0 else "",
        ]
        for line in frame.to_dict("records")
    ]
    after = f"difference: {names[1]} minus {names[0]}; {meaning}; * not zero"
    return "\n".join([*format_table(heads, lines), "", after])
