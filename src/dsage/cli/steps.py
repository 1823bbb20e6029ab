"""Steps that the commands of models share: files, the model, the columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from dsage._check import check_members
from dsage.cli import models, output
from dsage.cli.commands import FITS, ExplainCommand
from dsage.cli.rows import Split, find_kinds
from dsage.cli.target import Asked
from dsage.models.files import load_model
from dsage.models.losses import as_loss, gives_classes


def find_files(command: ExplainCommand) -> dict[str, Path | None]:
    """Return the files that a command reads, which it must not overwrite."""
    return {
        "DATA": command.data,
        "--test": command.test,
        "--model": command.model,
        "--graph": Path(command.graph),
        "--groups": command.groups,
    }


def read_model(command: ExplainCommand) -> Any:  # noqa: ANN401
    """Return the model of ``--model``, or None."""
    if command.model is None:
        return None
    trusted = tuple(command.trust or ())
    return load_model(command.model, trusted=trusted, trust_pickle=command.trust_pickle)


def check_groups(groups: dict[str, list[str]] | None, split: Split) -> None:
    """Refuse groups of columns that are not there."""
    for members in (groups or {}).values():
        check_members(members, list(split.X_train.columns), "--groups", "the features")


def ready_model(
    command: ExplainCommand,
    model: Any,  # noqa: ANN401
    split: Split,
    options: dict[str, Any],
) -> tuple[Any, pd.DataFrame, pd.DataFrame]:
    """Return the fitted model with training rows and others in the form that it takes.

    The classes of a model that is loaded are added to `options`.
    """
    if model is None:
        return fit_model(command, split), split.X_train, split.X_test
    X_train, X_test = (models.align_columns(model, each) for each in (split.X_train, split.X_test))
    models.note_column_order(model, X_train)
    if command.labels:
        options["classes"] = models.parse_labels(command.labels, split.y_train, split.y_test)
    return model, X_train, X_test


def column_options(command: ExplainCommand, split: Split) -> dict[str, Any]:
    """Return what the options say about the columns, and the seed."""
    kinds, _ = find_kinds(command, [*map(str, split.X_train.columns), command.target])
    kinds.pop(command.target, None)
    return {
        "target": command.target,
        "discrete": split.discrete,
        "kinds": kinds,
        "random_state": command.seed,
    }


def find_asked(command: ExplainCommand, model: Any) -> Asked | None:  # noqa: ANN401
    """Return what the options ask the target to be; None if they leave it open."""
    if command.fit in ("lm", "logistic"):
        return Asked("--fit", command.fit, command.fit == "logistic")
    if command.loss != "auto":
        return Asked("--loss", command.loss, as_loss(command.loss).is_of_classes)
    if model is None:
        return None
    return Asked("--model", str(command.model), bool(command.labels) or gives_classes(model))


def fit_model(command: ExplainCommand, split: Split) -> Any:  # noqa: ANN401
    """Return a model that is fitted to the training rows."""
    reason = "" if command.fit else ", since neither --model nor --fit is given"
    model = make_model(command, split, f"to {len(split.y_train)} rows{reason}")
    return model.fit(split.X_train, split.y_train)


def make_model(command: ExplainCommand, split: Split, where: str) -> Any:  # noqa: ANN401
    """Return the model of ``--fit``, not fitted yet, and note `where` it is."""
    fit = command.fit or "rf"
    kind = "classes" if split.is_classification else "numbers"
    output.note(f"Fitting {FITS[fit]} of {kind} {where}.", quiet=command.quiet)
    return models.make_model(
        fit,
        split.classes,
        split.times,
        has_gaps=split.has_gaps,
        is_classification=split.is_classification,
        seed=command.seed,
    )
