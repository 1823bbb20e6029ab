"""``dsage explain --cv``: fit and explain a model in every fold."""

from __future__ import annotations

import sys
from typing import Any

from sklearn.model_selection import RepeatedKFold, RepeatedStratifiedKFold

import dsage
from dsage._check import refusal
from dsage.cli import models, output
from dsage.cli.commands import FITS, ExplainCommand
from dsage.cli.rows import Split, find_kinds
from dsage.result.folded import FoldedExplanation


def check_choices(command: ExplainCommand) -> None:
    """Refuse options that do not go together with ``--cv``, or without it."""
    if command.cv is None:
        if command.repeats != 1:
            advice = "Add --cv with a number of folds"
            raise refusal("--repeats", "used with --cv", command.repeats, advice)
        return
    others = {
        "--model": (command.model, "A model is fitted in every fold: use --fit"),
        "--test": (command.test, "Every row of DATA is evaluated: leave it out"),
        "--test-size": (command.test_size, "Every row of DATA is evaluated: leave it out"),
        "--report": (command.report, "A report is of one model: leave it or --cv out"),
    }
    for option, (value, advice) in others.items():
        if value is not None:
            raise refusal(option, "left out with --cv", str(value), advice)
    if command.checkpoint is not None and command.checkpoint.is_file():
        advice = "It keeps a file for each fold: name a folder"
        raise refusal("--checkpoint", "a folder with --cv", str(command.checkpoint), advice)


def explain_folds(
    command: ExplainCommand, split: Split, options: dict[str, Any]
) -> FoldedExplanation:
    """Return the cross-validated explanation of a model that is fitted in every fold."""
    fit = command.fit or "rf"
    model = models.make_model(
        fit,
        split.classes,
        split.times,
        has_gaps=split.has_gaps,
        is_classification=split.is_classification,
        seed=command.seed,
    )
    n_folds = (command.cv or 0) * command.repeats
    kind = "classes" if split.is_classification else "numbers"
    reason = "" if command.fit else ", since --fit is not given"
    text = f"Fitting {FITS[fit]} of {kind} in each of {n_folds} folds{reason}."
    output.note(text, quiet=command.quiet)
    kinds, _ = find_kinds(command, [*map(str, split.X_train.columns), command.target])
    kinds.pop(command.target, None)
    splitter = RepeatedStratifiedKFold if split.is_classification else RepeatedKFold
    return dsage.explain_cv(
        model,
        split.X_train,
        split.y_train,
        splitter(n_splits=command.cv, n_repeats=command.repeats, random_state=command.seed),
        target=command.target,
        discrete=split.discrete,
        kinds=kinds,
        random_state=command.seed,
        **{**options, "progress": not command.quiet and sys.stderr.isatty()},
    )
