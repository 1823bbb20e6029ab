"""What ``dsage explain`` does: read, fit or load, explain, write."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dsage
from dsage._check import check_member, check_members, message
from dsage.cli.errors import note
from dsage.cli.fitting import FITS, aligned, make_model
from dsage.cli.rows import Split, read_rows, read_test_rows, split_rows, tell_classes
from dsage.cli.texts import as_graph_option, as_seconds, check_out, read_groups
from dsage.explanation import Explanation
from dsage.losses import as_loss, gives_classes
from dsage.model_files import load_model
from dsage.resolve import SAMPLERS

__all__ = ["Outputs", "Request", "as_graph_option", "as_seconds", "explained", "read_groups"]

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
    model: Path | None = None
    fit: str | None = None
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

    def check(self) -> None:
        """Refuse files that could not be written, before any work is done."""
        for name, path in vars(self).items():
            check_out(path, f"--{name}", (".html", ".htm") if name == "report" else ())

    def write(self, explanation: Explanation) -> list[str]:
        """Write them, and return what was written, in words."""
        lines = []
        if self.out is not None:
            explanation.save(self.out)
            lines.append(f"The run is in {self.out}.")
        for kind, path in (("csv", self.csv), ("json", self.json)):
            if path is not None:
                write_frame(explanation, path, kind)
                lines.append(f"The table is in {path}.")
        if self.report is not None:
            explanation.report(self.report)
            lines.append(f"The report is in {self.report}.")
        return lines


def write_frame(explanation: Explanation, path: Path, kind: str) -> None:
    """Write the table of an explanation as CSV or JSON."""
    frame = explanation.to_frame()
    if kind == "csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_json(path, orient="records", indent=1, force_ascii=False)


def explained(request: Request, options: Mapping[str, Any]) -> Explanation:
    """Return the explanation of a model that is loaded or fitted."""
    if request.model is not None and request.fit is not None:
        advice = "Leave one of them out"
        raise ValueError(message("--model and --fit", "given one at a time", "both", advice))
    if request.fit is not None:
        check_member(request.fit, tuple(FITS), "--fit", "the models")
    check_member(options["estimand"], ("d-sage", "sage"), "--estimand", "what can be estimated")
    check_member(options["sampler"], ("auto", *SAMPLERS), "--sampler", "the samplers")
    if request.test is not None and request.test_size is not None:
        advice = "Leave --test-size out: --test has the rows"
        raise ValueError(message("--test and --test-size", "given one at a time", "both", advice))
    model = None
    if request.model is not None:
        model = load_model(request.model, trusted=request.trust, trust_pickle=request.trust_pickle)
    split = _split(request, model, options["loss"])
    for held in (options["groups"] or {}).values():
        check_members(held, list(split.X_train.columns), "--groups", "the features")
    if model is None:
        model = _fitted(request, split)
        X_train, X_test = split.X_train, split.X_test
    else:
        X_train, X_test = aligned(model, split.X_train), aligned(model, split.X_test)
    return dsage.explain(
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


def _split(request: Request, model: Any, loss: str) -> Split:  # noqa: ANN401
    of_classes: bool | None = None
    if request.fit in ("lm", "logistic"):
        of_classes = request.fit == "logistic"
    elif loss != "auto":
        of_classes = as_loss(loss).output == "probability"
    elif model is not None:
        of_classes = gives_classes(model)
    table = read_rows(request.data, request.target, request.drop, request.discrete)
    if not request.is_quiet:
        tell_classes(table, request.target)
    test = None
    if request.test is not None:
        test = read_test_rows(request.test, table)
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
    model.fit(split.X_train, split.y_train)
    score = model.score(split.X_test, split.y_test)
    name = "accuracy" if split.is_of_classes else "R2"
    request.tell(f"Its {name} on the {len(split.y_test)} rows held out is {score:.3f}.")
    return model
