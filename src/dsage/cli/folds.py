"""``dsage explain --cv``: fit and explain a model in every fold."""

from __future__ import annotations

import sys
from typing import Any

from sklearn.model_selection import RepeatedKFold, RepeatedStratifiedKFold

import dsage
from dsage._check import refusal
from dsage.cli.commands import ExplainCommand
from dsage.cli.rows import Split
from dsage.cli.steps import column_options, make_model
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
    n_folds = (command.cv or 0) * command.repeats
    reason = "" if command.fit else ", since --fit is not given"
    model = make_model(command, split, f"in each of {n_folds} folds{reason}")
    splitter = RepeatedStratifiedKFold if split.is_classification else RepeatedKFold
    return dsage.explain_cv(
        model,
        split.X_train,
        split.y_train,
        splitter(n_splits=command.cv, n_repeats=command.repeats, random_state=command.seed),
        **column_options(command, split),
        **{**options, "progress": not command.quiet and sys.stderr.isatty()},
    )
