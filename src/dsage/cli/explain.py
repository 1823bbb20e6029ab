"""``dsage explain``: read a table, fit or load a model, explain it, write the results.

Other commands that explain a model share its options and its steps.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import typer
from sklearn.model_selection import RepeatedKFold, RepeatedStratifiedKFold

import dsage
from dsage._check import check_member, check_members, refusal
from dsage._files import DAMAGES, read_json
from dsage.cli import models, output
from dsage.cli.commands import ExplainCommand
from dsage.cli.models import Split, split_rows
from dsage.cli.options import FITS
from dsage.cli.tables import (
    TargetKind,
    decide_target,
    find_declaration,
    find_kinds,
    note_columns,
    read_rows,
    read_test_rows,
)
from dsage.estimate import Checkpoint, StopKind
from dsage.estimate.options import ESTIMANDS
from dsage.graphs import Graph
from dsage.models.losses import as_loss
from dsage.orderings import KINDS
from dsage.result.explanation import Explanation
from dsage.result.folded import FoldedExplanation
from dsage.samplers import SAMPLERS
from dsage.structure import METHODS

_TEST_SIZE = 0.25
_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}
_NUMBER_AND_UNIT = re.compile(r"([0-9]*\.?[0-9]+)([smh]?)")


def run_explain(command: ExplainCommand) -> None:
    """Explain a model that is loaded or fitted, and write the results."""
    outputs = plan_outputs(command, "The run")
    check_choices(command)
    options = collect_options(command)
    model = models.read_model(command)
    split = split_table(command, model)
    check_groups(options["groups"], split)
    if command.cv is not None:
        folded = _explain_folds(command, split, options)
        write_result(folded, outputs, command)
        is_interrupted = folded.is_interrupted
    else:
        explanation = _explain(command, model, split, options)
        write_result(explanation, outputs, command, {"--report": explanation.report})
        is_interrupted = explanation.estimate.interrupted
    if is_interrupted:
        raise typer.Exit(output.INTERRUPTED)


def _explain(
    command: ExplainCommand,
    model: Any,  # noqa: ANN401
    split: Split,
    options: dict[str, Any],
) -> Explanation:
    model, X_train, X_test = models.ready_model(command, model, split, options)
    name, score = models.score_held_out(
        model,
        X_test,
        split.y_test,
        loss=command.loss,
        labels=pd.concat([split.y_train, split.y_test]).unique().tolist(),
        classes=options.get("classes"),
    )
    text = f"The model's {name} on the {len(X_test)} evaluation rows is {score:.3f}."
    output.note(text, quiet=command.quiet)
    seconds_before = _read_seconds(command.checkpoint)
    explanation = dsage.explain(
        model,
        X_train,
        split.y_train,
        None if split.is_shared else X_test,
        None if split.is_shared else split.y_test,
        **column_options(command, split),
        **options,
    )
    is_late = options["seconds"] is not None and seconds_before >= options["seconds"]
    reason = explanation.estimate.reason
    if is_late and reason is not None and reason.kind is StopKind.TIME:
        output.note(
            f"Warning: {command.checkpoint} already holds {seconds_before:.3g} s of work, which"
            " count toward --time, so this run ended at once. Use a longer --time to continue."
        )
    return explanation


def _explain_folds(
    command: ExplainCommand, split: Split, options: dict[str, Any]
) -> FoldedExplanation:
    """Return the cross-validated explanation of a model that is fitted in every fold."""
    n_folds = (command.cv or 0) * command.repeats
    reason = "" if command.fit else ", since --fit is not given"
    model = models.new_model(command, split, f"in each of {n_folds} folds{reason}")
    splitter = RepeatedStratifiedKFold if split.is_classification else RepeatedKFold
    return dsage.explain_cv(
        model,
        split.X_train,
        split.y_train,
        splitter(n_splits=command.cv, n_repeats=command.repeats, random_state=command.seed),
        **column_options(command, split),
        **{**options, "progress": not command.quiet and sys.stderr.isatty()},
    )


# Steps that all commands that explain a model share


def plan_outputs(
    command: ExplainCommand, content: str, *, plot: Path | None = None
) -> list[output.Output]:
    """Return the files to write, after checking them; `content` is what ``--out`` gets."""
    # The checkpoint is read and written, so it comes first: no result may replace it.
    state = None if command.cv is not None else command.checkpoint
    outputs = [
        output.Output("--checkpoint", state, "The state"),
        output.Output("--out", command.out, content, (".dsage",)),
        output.Output("--csv", command.csv, "The table"),
        output.Output("--json", command.json, "The table"),
        output.Output("--report", command.report, "The report", output.PAGES),
        output.Output("--plot", plot, "The picture", output.PICTURES),
    ]
    inputs = {
        "DATA": command.data,
        "--test": command.test,
        "--model": command.model,
        "--graph": Path(command.graph),
        "--groups": command.groups,
    }
    output.check_outputs(outputs, inputs)
    return outputs


def write_result(
    result: Any,  # noqa: ANN401
    outputs: list[output.Output],
    command: ExplainCommand,
    further: output.Writers | None = None,
    *,
    text: str | None = None,
) -> None:
    """Write the requested files, and show the result."""
    writers: output.Writers = {
        "--out": result.save,
        **output.table_writers(result.to_frame(), is_raw=command.raw_csv),
        **(further or {}),
    }
    shown = repr(result) if text is None else text
    output.finish(shown, outputs, writers, quiet=command.quiet)


def read_with_target(
    command: ExplainCommand,
    model: Any,  # noqa: ANN401
) -> tuple[pd.DataFrame, tuple[str, ...], TargetKind]:
    """Return the table, its numeric columns that are classes, and the kind of the target."""
    # A loaded model was fitted to texts, or to dates that were parsed elsewhere.
    table = read_rows(command, reads_dates=model is None)
    kinds, discrete = find_kinds(command, list(map(str, table.columns)))
    target = decide_target(
        table[command.target],
        request=models.find_request(command, model),
        declared=find_declaration(command),
    )
    output.note(target.text, quiet=command.quiet)
    note_columns(table, command.target, {*kinds, *discrete}, quiet=command.quiet)
    return table, discrete, target


def split_table(command: ExplainCommand, model: Any) -> Split:  # noqa: ANN401
    """Read the table, and split it into training and evaluation rows."""
    table, discrete, target = read_with_target(command, model)
    test = None
    test_size = _TEST_SIZE if command.test_size is None else command.test_size
    if command.test is not None:
        test = read_test_rows(command.test, command, table)
    elif command.cv is not None:
        test = table
    elif model is not None:
        # --quiet does not silence it: the result may be wrong.
        output.note(_warn_of_seen_rows(command))
        if command.test_size is None:
            test = table
    return split_rows(
        table,
        command.target,
        test=test,
        test_size=test_size,
        discrete=discrete,
        is_classification=target.is_classification,
        seed=command.seed,
    )


def _warn_of_seen_rows(command: ExplainCommand) -> str:
    """Return the warning that the loaded model may have been fitted to the evaluation rows."""
    name = command.data.name
    which = (
        f"all rows of {name} are used both to learn graph and sampler and to evaluate"
        if command.test_size is None
        else f"{name} is split at random into rows to learn from and rows to evaluate"
    )
    return (
        f"Warning: {which} the model: the values describe performance on new rows only if the"
        f" model in {command.model} was not fitted to these. Otherwise, provide rows that it has"
        " not seen with --test."
    )


def check_groups(groups: dict[str, list[str]] | None, split: Split) -> None:
    """Refuse groups with unknown columns."""
    for members in (groups or {}).values():
        check_members(members, list(split.X_train.columns), "--groups", "the features")


def column_options(command: ExplainCommand, split: Split) -> dict[str, Any]:
    """Return the target, the kinds of the columns and the seed, as the options set them."""
    kinds, _ = find_kinds(command, [*map(str, split.X_train.columns), command.target])
    kinds.pop(command.target, None)
    return {
        "target": command.target,
        "discrete": split.discrete,
        "kinds": kinds,
        "random_state": command.seed,
    }


# Options of the command line


def check_choices(command: ExplainCommand) -> None:
    """Refuse wrong options before anything is read."""
    if command.model is not None and command.fit is not None:
        raise refusal("--model and --fit", "used one at a time", "both", "Leave one of them out")
    if command.fit is not None:
        check_member(command.fit, tuple(FITS), "--fit", "the models")
    if command.labels and command.model is None:
        advice = "A model that is fitted here knows its classes: leave --classes out"
        raise refusal("--classes", "used with --model", ",".join(command.labels), advice)
    check_member(command.estimand, ESTIMANDS, "--estimand", "the estimands")
    check_member(command.sampler, ("auto", *SAMPLERS), "--sampler", "the samplers")
    check_member(command.orderings, tuple(KINDS), "--orderings", "the kinds of orderings")
    if command.loss != "auto":
        as_loss(command.loss)
    if command.test is not None and command.test_size is not None:
        advice = "Leave --test-size out: --test has the rows"
        raise refusal("--test and --test-size", "used one at a time", "both", advice)
    size = command.test_size
    if size is not None and not (0 < size < 1 or (size >= 1 and size == int(min(size, 1e15)))):
        advice = "Use a fraction such as 0.25, or a number of rows such as 100"
        raise refusal("--test-size", "a fraction below 1, or a whole number", size, advice)
    _check_folds(command)
    check_tolerance(command.tolerance)
    check_jobs(command.jobs)


def _check_folds(command: ExplainCommand) -> None:
    """Refuse options that cannot be combined with ``--cv``, or that need it."""
    if command.cv is None:
        if command.repeats != 1:
            advice = "Add --cv with a number of folds"
            raise refusal("--repeats", "used with --cv", command.repeats, advice)
        return
    others = {
        "--model": (command.model, "A model is fitted in every fold: use --fit"),
        "--test": (command.test, "Every row of DATA is evaluated: leave it out"),
        "--test-size": (command.test_size, "Every row of DATA is evaluated: leave it out"),
        "--report": (command.report, "A report describes one model: leave out --report or --cv"),
    }
    for option, (value, advice) in others.items():
        if value is not None:
            raise refusal(option, "left out with --cv", str(value), advice)
    if command.checkpoint is not None and command.checkpoint.is_file():
        advice = "It contains one file per fold: name a folder"
        raise refusal("--checkpoint", "a folder with --cv", str(command.checkpoint), advice)


def collect_options(command: ExplainCommand) -> dict[str, Any]:
    """Return the options of :func:`dsage.explain`."""
    graph = read_graph(command.graph)
    phases = dict(output.PHASES)
    is_marginal = SAMPLERS[command.sampler].is_marginal if command.sampler != "auto" else False
    resamples = _choose_resamples(command)
    is_plain = command.estimand == "sage" and resamples is None and command.min_share is None
    if not isinstance(graph, str) or (graph == "auto" and (is_marginal or is_plain)):
        del phases["graph"]
    if command.no_sampler_check:
        del phases["check"]
    return {
        "graph": graph,
        "n_resamples": resamples,
        "min_share": command.min_share,
        **read_knowledge(command),
        "sampler": command.sampler,
        "sampler_check": not command.no_sampler_check,
        "loss": command.loss,
        "estimand": command.estimand,
        "orderings": command.orderings,
        "tolerance": command.tolerance,
        "seconds": None if command.time is None else parse_time(command.time),
        "groups": None if command.groups is None else read_groups(command.groups),
        "checkpoint": command.checkpoint,
        "n_jobs": command.jobs,
        "progress": output.choose_progress(phases, quiet=command.quiet),
    }


def _choose_resamples(command: ExplainCommand) -> int | None:
    """Return how often to learn the graph again: a report shows how stable its edges are."""
    is_shown = command.report is not None and command.resamples is None
    return 20 if is_shown else command.resamples


def check_tolerance(tolerance: float | None) -> None:
    """Refuse a tolerance outside (0, 1]."""
    if tolerance is not None and not 0 < tolerance <= 1:
        advice = "Use a fraction of the range of the values, such as 0.05"
        raise refusal("--tolerance", "above 0 and at most 1", tolerance, advice)


def check_jobs(jobs: int | None) -> None:
    """Refuse a number of processes that is neither positive nor -1."""
    if jobs is not None and jobs != -1 and jobs < 1:
        raise refusal("--jobs", "1 or more, or -1", jobs, "Use -1 for all processors")


def parse_time(text: str) -> float:
    """Return a time, such as "90", "90s", "1.5m" or "1h30m", in seconds."""
    compact = text.strip().lower()
    parts = _NUMBER_AND_UNIT.findall(compact)
    is_whole = "".join(number + unit for number, unit in parts) == compact
    if not (parts and is_whole and all(unit for _, unit in parts[:-1])):
        advice = "Use seconds, or add a unit to each number: 90, 90s, 5m, 1h30m"
        raise refusal("--time", "a time", text, advice)
    seconds = sum(float(number) * _UNITS[unit] for number, unit in parts)
    if not seconds > 0:
        raise refusal("--time", "above zero", text, "Use a longer time")
    return seconds


def read_graph(text: str) -> str | Graph | None:
    """Return the graph that ``--graph`` names: a search, a graph in a file, or None."""
    if text == "none":
        return None
    file = Path(text)
    if file.is_file():
        try:
            return Graph.load(file)
        except ValueError as error:
            raise output.rename_parameter(error, "--graph") from error
    if file.suffix or len(file.parts) > 1:
        advice = "Write one with: dsage graph DATA --target COLUMN --out FILE.json"
        raise refusal("--graph", "a file that exists", text, advice, FileNotFoundError)
    return check_member(
        text, ("auto", "learn", "none", *METHODS), "--graph", "these names, or a file"
    )


def read_knowledge(command: ExplainCommand) -> dict[str, Any]:
    """Return the tiers and edges of ``--tiers``, ``--forbidden`` and ``--required``."""
    found: dict[str, Any] = {}
    if command.tiers is not None:
        found["tiers"] = _read_tiers(command.tiers)
    for name, edges in (("forbidden", command.forbidden), ("required", command.required)):
        if edges:
            found[name] = [_read_edge(edge, f"--{name}") for edge in edges]
    return found


def _read_tiers(text: str) -> list[list[str]]:
    if Path(text).suffix == ".json":
        try:
            content = read_json(Path(text).read_bytes())
        except (OSError, ValueError) as error:
            raise refusal("--tiers", "a JSON file", text, str(error)) from error
        is_lists = isinstance(content, list) and all(isinstance(tier, list) for tier in content)
        if not is_lists or not all(isinstance(name, str) for tier in content for name in tier):
            advice = 'Write it as [["age", "sex"], ["income"]]'
            raise refusal("--tiers", "a list of lists of names", text, advice)
        return content  # type: ignore[no-any-return]
    return [[name.strip() for name in tier.split(",") if name.strip()] for tier in text.split(";")]


def _read_edge(text: str, option: str) -> tuple[str, str]:
    names = [name.strip() for name in text.split(",")]
    if len(names) != 2 or not all(names):
        advice = "Name the cause and the effect: age,income"
        raise refusal(option, "two names", text, advice)
    return names[0], names[1]


def read_groups(path: Path) -> dict[str, list[str]]:
    """Return groups of features from a JSON file that maps names to lists of features."""
    try:
        content = read_json(path.read_bytes())
    except (OSError, ValueError) as error:
        raise refusal("--groups", "a JSON file", str(path), str(error)) from error
    is_mapping = isinstance(content, dict) and all(
        isinstance(members, list) and all(isinstance(name, str) for name in members)
        for members in content.values()
    )
    if not is_mapping or not content:
        advice = 'Write it as {"group": ["feature", "another"], ...}'
        raise refusal("--groups", "groups of names", str(path), advice)
    return content  # type: ignore[no-any-return]


def _read_seconds(checkpoint: Path | None) -> float:
    """Return the seconds of work that a checkpoint holds; 0 without a checkpoint."""
    if checkpoint is None:
        return 0.0
    try:
        return Checkpoint(checkpoint).seconds()
    # The run itself reports what is wrong with the file.
    except DAMAGES:
        return 0.0
