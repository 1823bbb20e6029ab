"""What ``dsage explain`` does: read, fit or load, explain, write."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

import dsage
from dsage._check import check_member, check_members, refusal
from dsage.cli.errors import note
from dsage.cli.fitting import FITS, aligned, make_model
from dsage.cli.judging import as_labels, check_target, held_out_score, tell_order
from dsage.cli.phases import PHASES, tell_phases
from dsage.cli.places import PAGES, Place, Writing, check_places, finish
from dsage.cli.rows import Split, read_rows, read_test_rows, split_rows, tell_classes
from dsage.cli.sessions import seconds_held
from dsage.cli.texts import check_test_size
from dsage.estimate import StopKind
from dsage.models.files import load_model
from dsage.models.losses import as_loss, gives_classes
from dsage.result.events import Phase
from dsage.result.explanation import Explanation
from dsage.samplers.registry import SAMPLERS

_TEST_SIZE = 0.25


@dataclass(frozen=True)
class Request:
    """Which model is explained, on which rows; the attributes are the options of the command."""

    data: Path
    target: str
    test: Path | None = None
    test_size: float | None = None
    drop: tuple[str, ...] = ()
    discrete: tuple[str, ...] = ()
    csv: Mapping[str, Any] = field(default_factory=dict)
    model: Path | None = None
    fit: str | None = None
    classes: tuple[str, ...] = ()
    trust: tuple[str, ...] = ()
    trust_pickle: bool = False
    seed: int = 0
    is_quiet: bool = False

    def tell(self, text: str) -> None:
        """Tell the user, unless they want it quiet."""
        if not self.is_quiet:
            note(text)


@dataclass(frozen=True)
class Outputs:
    """The files that a run leaves behind; the attributes are the options of the command."""

    report: Path | None = None
    out: Path | None = None
    csv: Path | None = None
    json: Path | None = None
    checkpoint: Path | None = None

    def check(self, request: Request, graph: str, groups: Path | None) -> None:
        """Refuse files that could not be written, or are read, before any work is done."""
        suffixes = {"report": PAGES, "out": (".dsage",)}
        places = [
            Place(f"--{name}", path, suffixes.get(name, ())) for name, path in vars(self).items()
        ]
        # The state of a run is read and written: no result may take its place.
        places.sort(key=lambda place: place.option != "--checkpoint")
        inputs = {
            "DATA": request.data,
            "--test": request.test,
            "--model": request.model,
            "--graph": Path(graph),
            "--groups": groups,
        }
        check_places(places, inputs)

    def finish(self, explanation: Explanation, *, quiet: bool) -> None:
        """Write them, and show the ranking."""
        frame = explanation.to_frame()

        def write_json(path: Path) -> None:
            frame.to_json(path, orient="records", indent=1, force_ascii=False)

        def write_csv(path: Path) -> None:
            frame.to_csv(path, index=False)

        writings = [
            Writing("--out", self.out, explanation.save, "The run"),
            Writing("--csv", self.csv, write_csv, "The table"),
            Writing("--json", self.json, write_json, "The table"),
            Writing("--report", self.report, explanation.report, "The report"),
        ]
        finish(repr(explanation), writings, quiet=quiet)


def explained(request: Request, options: Mapping[str, Any]) -> Explanation:
    """Return the explanation of a model that is loaded or fitted."""
    _check(request, options)
    model = None
    if request.model is not None:
        model = load_model(request.model, trusted=request.trust, trust_pickle=request.trust_pickle)
    split = _split(request, model, options["loss"])
    for held in (options["groups"] or {}).values():
        check_members(held, list(split.X_train.columns), "--groups", "the features")
    given: dict[str, Any] = dict(options)
    if model is None:
        model = _fitted(request, split)
        X_train, X_test = split.X_train, split.X_test
    else:
        X_train, X_test = aligned(model, split.X_train), aligned(model, split.X_test)
        tell_order(model, X_train)
        if request.classes:
            given["classes"] = as_labels(request.classes, split.y_train, split.y_test)
    name, score = held_out_score(
        model,
        X_test,
        split.y_test,
        loss=given["loss"],
        labels=pd.concat([split.y_train, split.y_test]).unique().tolist(),
        classes=given.get("classes"),
    )
    whose = "Its" if request.model is None else "The model's"
    request.tell(f"{whose} {name} on the {len(split.y_test)} rows held out is {score:.3f}.")
    held = seconds_held(given["checkpoint"])
    if not (request.is_quiet or given["progress"]):
        given["progress"] = tell_phases(_words(given))
    explanation = dsage.explain(
        model,
        X_train,
        split.y_train,
        X_test,
        split.y_test,
        target=request.target,
        discrete=split.discrete,
        random_state=request.seed,
        **given,
    )
    is_late = given["seconds"] is not None and held >= given["seconds"]
    reason = explanation.estimate.reason
    if is_late and reason is not None and reason.kind is StopKind.TIME:
        note(
            f"Warning: {given['checkpoint']} already holds {held:.3g} s of work, and --time counts"
            " them, so this run ended at once. Give a longer --time to go on."
        )
    return explanation


def _check(request: Request, options: Mapping[str, Any]) -> None:
    """Refuse what cannot be meant, before anything is read."""
    if request.model is not None and request.fit is not None:
        advice = "Leave one of them out"
        raise refusal("--model and --fit", "given one at a time", "both", advice)
    if request.fit is not None:
        check_member(request.fit, tuple(FITS), "--fit", "the models")
    if request.classes and request.model is None:
        advice = "A model that is fitted here knows its classes: leave --classes out"
        raise refusal("--classes", "given with --model", ",".join(request.classes), advice)
    check_member(options["estimand"], ("d-sage", "sage"), "--estimand", "what can be estimated")
    check_member(options["sampler"], ("auto", *SAMPLERS), "--sampler", "the samplers")
    if options["loss"] != "auto":
        as_loss(options["loss"])
    if request.test is not None and request.test_size is not None:
        advice = "Leave --test-size out: --test has the rows"
        raise refusal("--test and --test-size", "given one at a time", "both", advice)
    check_test_size(request.test_size)


def _words(options: Mapping[str, Any]) -> dict[Phase, str]:
    """Return what to say of the phases: nothing of a graph that is not learned."""
    words = dict(PHASES)
    if not isinstance(options["graph"], str):
        del words[Phase.GRAPH]
    return words


def _split(request: Request, model: Any, loss: str) -> Split:  # noqa: ANN401
    of_classes: bool | None = None
    said = ("", "")
    if request.fit in ("lm", "logistic"):
        of_classes, said = request.fit == "logistic", ("--fit", request.fit)
    elif loss != "auto":
        of_classes, said = as_loss(loss).output == "probability", ("--loss", loss)
    elif model is not None:
        of_classes = bool(request.classes) or gives_classes(model)
        said = ("--model", str(request.model))
    table = read_rows(request.data, request.target, request.drop, request.discrete, request.csv)
    if of_classes and request.target not in request.discrete:
        check_target(table[request.target], *said)
    if not request.is_quiet:
        tell_classes(table, request.target)
    test = None
    if request.test is not None:
        test = read_test_rows(request.test, table, request.csv)
    elif model is not None:
        # Loud, whatever the user said about notes.
        note(
            f"Warning: {request.data.name} is split at random, and the model in"
            f" {request.model} may have been fitted to the rows that it is evaluated on. Then the"
            " values are too good to be true: give rows that it has not seen with --test."
        )
    return split_rows(
        table,
        request.target,
        test=test,
        test_size=_TEST_SIZE if request.test_size is None else request.test_size,
        discrete=request.discrete,
        of_classes=of_classes,
        seed=request.seed,
    )


def _fitted(request: Request, split: Split) -> Any:  # noqa: ANN401
    fit = request.fit or "rf"
    model = make_model(fit, split.classes, is_of_classes=split.is_of_classes, seed=request.seed)
    kind = "classes" if split.is_of_classes else "numbers"
    chosen = "" if request.fit else ", since neither --model nor --fit is given"
    request.tell(f"Fitting {FITS[fit]} of {kind} to {len(split.y_train)} rows{chosen}.")
    return model.fit(split.X_train, split.y_train)
