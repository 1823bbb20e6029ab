"""``dsage explain``: read a table, fit or load a model, explain it, write the results."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import typer

import dsage
from dsage._check import check_member, check_members, refusal
from dsage._files import DAMAGES
from dsage.cli.models import (
    align_columns,
    check_target,
    make_model,
    note_column_order,
    parse_labels,
    score_held_out,
)
from dsage.cli.options import FITS
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
    rename_parameter,
)
from dsage.cli.rows import Source, Split, note_classes, read_rows, read_test_rows, split_rows
from dsage.estimate import Checkpoint, StopKind
from dsage.graphs import Graph
from dsage.models.files import load_model
from dsage.models.losses import as_loss, gives_classes
from dsage.orderings import KINDS
from dsage.result.explanation import Explanation
from dsage.samplers import SAMPLERS
from dsage.structure import METHODS

_TEST_SIZE = 0.25
_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}
_NUMBER_AND_UNIT = re.compile(r"([0-9]*\.?[0-9]+)([smh]?)")


@dataclass(frozen=True, kw_only=True)
class Request(Source):
    """The options of the command, by name."""

    target: str
    model: Path | None
    fit: str | None
    classes: list[str] | None
    trust: list[str] | None
    trust_pickle: bool
    test: Path | None
    test_size: float | None
    groups: Path | None
    graph: str
    resamples: int | None
    sampler: str
    loss: str
    estimand: str
    orderings: str
    tolerance: float | None
    time: str | None
    report: Path | None
    out: Path | None
    csv: Path | None
    json: Path | None
    checkpoint: Path | None
    seed: int
    jobs: int | None
    quiet: bool

    @property
    def labels(self) -> list[str]:
        """The labels of ``--classes``."""
        return [label for text in self.classes or () for label in text.split(",")]

    def note(self, text: str) -> None:
        """Note something, unless the user asked for quiet."""
        if not self.quiet:
            note(text)


def run_explain(request: Request) -> None:
    """Explain a model that is loaded or fitted, and write the results."""
    _check_files(request)
    _check_choices(request)
    options = _collect_options(request)
    model = None
    if request.model is not None:
        model = load_model(
            request.model, trusted=tuple(request.trust or ()), trust_pickle=request.trust_pickle
        )
    split = _split(request, model)
    for members in (options["groups"] or {}).values():
        check_members(members, list(split.X_train.columns), "--groups", "the features")
    explanation = _explain(request, model, split, options)
    _write(request, explanation)
    if explanation.estimate.interrupted:
        raise typer.Exit(INTERRUPTED)


def _explain(
    request: Request,
    model: Any,  # noqa: ANN401
    split: Split,
    options: dict[str, Any],
) -> Explanation:
    X_train, X_test = split.X_train, split.X_test
    if model is None:
        model = _fit(request, split)
    else:
        X_train, X_test = align_columns(model, X_train), align_columns(model, X_test)
        note_column_order(model, X_train)
        if request.labels:
            options["classes"] = parse_labels(request.labels, split.y_train, split.y_test)
    name, score = score_held_out(
        model,
        X_test,
        split.y_test,
        loss=request.loss,
        labels=pd.concat([split.y_train, split.y_test]).unique().tolist(),
        classes=options.get("classes"),
    )
    request.note(f"The model's {name} on the {len(X_test)} evaluation rows is {score:.3f}.")
    seconds_before = _read_seconds(request.checkpoint)
    explanation = dsage.explain(
        model,
        X_train,
        split.y_train,
        X_test,
        split.y_test,
        target=request.target,
        discrete=split.discrete,
        random_state=request.seed,
        **options,
    )
    is_late = options["seconds"] is not None and seconds_before >= options["seconds"]
    reason = explanation.estimate.reason
    if is_late and reason is not None and reason.kind is StopKind.TIME:
        note(
            f"Warning: {request.checkpoint} already holds {seconds_before:.3g} s of work, which"
            " count toward --time, so this run ended at once. Use a longer --time to continue."
        )
    return explanation


def _split(request: Request, model: Any) -> Split:  # noqa: ANN401
    """Read the table, and split it into training and evaluation rows."""
    is_classification: bool | None = None
    culprit = ("", "")
    if request.fit in ("lm", "logistic"):
        is_classification, culprit = request.fit == "logistic", ("--fit", request.fit)
    elif request.loss != "auto":
        is_classification = as_loss(request.loss).output == "probability"
        culprit = ("--loss", request.loss)
    elif model is not None:
        is_classification = bool(request.labels) or gives_classes(model)
        culprit = ("--model", str(request.model))
    table = read_rows(request)
    discrete = request.discrete or ()
    if is_classification and request.target not in discrete:
        check_target(table[request.target], *culprit)
    if not request.quiet:
        note_classes(table, request.target)
    test = None
    if request.test is not None:
        test = read_test_rows(request.test, request, table)
    elif model is not None:
        # --quiet does not silence it: the result may be wrong.
        note(
            f"Warning: {request.data.name} is split at random, and the model in {request.model}"
            " may have been fitted to some of the evaluation rows. Its performance would look too"
            " good: provide rows that it has not seen with --test."
        )
    return split_rows(
        table,
        request.target,
        test=test,
        test_size=_TEST_SIZE if request.test_size is None else request.test_size,
        discrete=discrete,
        is_classification=is_classification,
        seed=request.seed,
    )


def _fit(request: Request, split: Split) -> Any:  # noqa: ANN401
    fit = request.fit or "rf"
    model = make_model(
        fit, split.classes, is_classification=split.is_classification, seed=request.seed
    )
    kind = "classes" if split.is_classification else "numbers"
    reason = "" if request.fit else ", since neither --model nor --fit is given"
    request.note(f"Fitting {FITS[fit]} of {kind} to {len(split.y_train)} rows{reason}.")
    return model.fit(split.X_train, split.y_train)


def _write(request: Request, explanation: Explanation) -> None:
    """Write the files, and show the ranking."""
    frame = explanation.to_frame()

    def write_json(path: Path) -> None:
        frame.to_json(path, orient="records", indent=1, force_ascii=False)

    def write_csv(path: Path) -> None:
        frame.to_csv(path, index=False)

    writings = [
        Writing("--out", request.out, explanation.save, "The run"),
        Writing("--csv", request.csv, write_csv, "The table"),
        Writing("--json", request.json, write_json, "The table"),
        Writing("--report", request.report, explanation.report, "The report"),
    ]
    finish(repr(explanation), writings, quiet=request.quiet)


# What is typed on the command line


def _check_files(request: Request) -> None:
    # The checkpoint is read and written, so it comes first: no result may replace it.
    outputs = [
        Output("--checkpoint", request.checkpoint),
        Output("--report", request.report, PAGES),
        Output("--out", request.out, (".dsage",)),
        Output("--csv", request.csv),
        Output("--json", request.json),
    ]
    inputs = {
        "DATA": request.data,
        "--test": request.test,
        "--model": request.model,
        "--graph": Path(request.graph),
        "--groups": request.groups,
    }
    check_outputs(outputs, inputs)


def _check_choices(request: Request) -> None:
    """Refuse wrong options before anything is read."""
    if request.model is not None and request.fit is not None:
        raise refusal("--model and --fit", "used one at a time", "both", "Leave one of them out")
    if request.fit is not None:
        check_member(request.fit, tuple(FITS), "--fit", "the models")
    if request.labels and request.model is None:
        advice = "A model that is fitted here knows its classes: leave --classes out"
        raise refusal("--classes", "used with --model", ",".join(request.labels), advice)
    check_member(request.estimand, ("d-sage", "sage"), "--estimand", "the estimands")
    check_member(request.sampler, ("auto", *SAMPLERS), "--sampler", "the samplers")
    check_member(request.orderings, tuple(KINDS), "--orderings", "the kinds of orderings")
    if request.loss != "auto":
        as_loss(request.loss)
    if request.test is not None and request.test_size is not None:
        advice = "Leave --test-size out: --test has the rows"
        raise refusal("--test and --test-size", "used one at a time", "both", advice)
    size = request.test_size
    if size is not None and not (0 < size < 1 or (size >= 1 and size == int(min(size, 1e15)))):
        advice = "Use a fraction such as 0.25, or a number of rows such as 100"
        raise refusal("--test-size", "a fraction below 1, or a whole number", size, advice)
    check_tolerance(request.tolerance)
    check_jobs(request.jobs)


def _collect_options(request: Request) -> dict[str, Any]:
    """Return the options of :func:`dsage.explain`."""
    graph = read_graph(request.graph)
    is_learned = isinstance(graph, str)
    words = {phase: text for phase, text in PHASES.items() if is_learned or phase != "graph"}
    return {
        "graph": graph,
        "n_resamples": request.resamples,
        "sampler": request.sampler,
        "loss": request.loss,
        "estimand": request.estimand,
        "orderings": request.orderings,
        "tolerance": request.tolerance,
        "seconds": None if request.time is None else parse_time(request.time),
        "groups": None if request.groups is None else read_groups(request.groups),
        "checkpoint": request.checkpoint,
        "n_jobs": request.jobs,
        "progress": not request.quiet and (sys.stderr.isatty() or note_phases(words)),
    }


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
    """Return a time in seconds.

    Examples
    --------
    >>> parse_time("90"), parse_time("90s"), parse_time("1.5m"), parse_time("1h30m")
    (90.0, 90.0, 90.0, 5400.0)
    """
    compact = text.strip().lower()
    parts = _NUMBER_AND_UNIT.findall(compact)
    if "".join(number + unit for number, unit in parts) != compact or not parts:
        advice = "Use seconds, or add a unit: 90, 90s, 5m, 1h30m"
        raise refusal("--time", "a time", text, advice)
    if any(not unit for _, unit in parts[:-1]):
        raise refusal("--time", "a time", text, "Add a unit to each number")
    seconds = sum(float(number) * _UNITS[unit] for number, unit in parts)
    if not seconds > 0:
        raise refusal("--time", "above zero", text, "Use a longer time")
    return seconds


def read_graph(text: str) -> str | Graph | None:
    """Return the graph that ``--graph`` names: a search, a graph in a file, or None.

    Examples
    --------
    >>> read_graph("learn"), read_graph("none")
    ('learn', None)
    """
    if text == "none":
        return None
    file = Path(text)
    if file.is_file():
        try:
            return Graph.load(file)
        except ValueError as error:
            raise rename_parameter(error, "--graph") from error
    if file.suffix or len(file.parts) > 1:
        advice = "Write one with: dsage graph DATA --target COLUMN --out FILE.json"
        raise refusal("--graph", "a file that exists", text, advice, FileNotFoundError)
    return check_member(text, ("learn", "none", *METHODS), "--graph", "these names, or a file")


def read_groups(path: Path) -> Mapping[str, list[str]]:
    """Return groups of features from a JSON file that maps names to lists of features."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        advice = "Check the spelling"
        raise refusal(
            "--groups", "a file that exists", str(path), advice, FileNotFoundError
        ) from None
    except (OSError, ValueError) as error:
        raise refusal("--groups", "a JSON file", str(path), f"It is not: {error}") from error
    is_mapping = isinstance(content, dict) and all(
        isinstance(members, list) and all(isinstance(name, str) for name in members)
        for members in content.values()
    )
    if not is_mapping or not content:
        advice = 'Write it as {"group": ["feature", "another"], ...}'
        raise refusal("--groups", "groups of names", str(path), advice)
    return {str(group): list(members) for group, members in content.items()}


def _read_seconds(checkpoint: Path | None) -> float:
    """Return the time of the work in a checkpoint, 0 if there is none."""
    if checkpoint is None:
        return 0.0
    try:
        return Checkpoint(checkpoint).seconds()
    # The run itself reports what is wrong with the file.
    except DAMAGES:
        return 0.0
