"""What the target is taken for, classes or numbers, and how to change that."""

from __future__ import annotations

import shlex
from typing import Any, NamedTuple

import pandas as pd

from dsage._check import refusal, shown
from dsage.cli.commands import TableCommand
from dsage.data.columns import column_kind
from dsage.data.kinds import CLASSES

# Whole numbers are taken for classes if there are at most so many, each about ten times or more.
_FEW_CLASSES, _ROWS_PER_CLASS = 10, 10
# A target with more distinct integers than this is probably not a class.
_MAX_CLASSES = 20


class Asked(NamedTuple):
    """What an option asks the target to be: its name, its value, and whether that is classes."""

    option: str
    value: str
    is_classification: bool


class Taken(NamedTuple):
    """Whether the target is taken for classes, and why, in a sentence."""

    is_classification: bool
    text: str


def find_said(command: TableCommand) -> Asked | None:
    """Return what ``--kind`` or ``--discrete`` says that the target is."""
    target = str(command.target)
    for text in reversed(command.kind or ()):
        column, _, kind = text.rpartition("=")
        if column == target:
            return Asked("--kind", text, kind in CLASSES)
    return Asked("--discrete", target, True) if target in (command.discrete or ()) else None


def take_target(
    column: pd.Series[Any], *, asked: Asked | None = None, said: Asked | None = None
) -> Taken:
    """Decide whether the target is classes or numbers.

    What is not numeric is classes, and for numbers `said` decides, if an option names the target.
    Otherwise the model, its kind or the loss decide, if they are given; if not, the target itself:
    two different numbers are classes, and so are at most ten different whole numbers that each
    occur about ten times or more.
    """
    name = str(column.name)
    n_values = int(column.nunique())
    if column_kind(column) != "number":
        return _classes(name, f"its values are not numbers ({n_values} different ones)")
    if said is not None:
        reason = f"{said.option} {shlex.quote(said.value)} says so"
        return _classes(name, reason) if said.is_classification else _numbers(name, reason)
    if asked is not None:
        reason = f"{asked.option} {shlex.quote(asked.value)} asks for them"
        if asked.option == "--model":
            reason = f"the model in {asked.value} predicts them"
        if not asked.is_classification:
            return _numbers(name, reason)
        _check_classes(column, asked)
        return _classes(name, reason)
    values = f"({shown(sorted(column.unique().tolist()))})"
    remedy = "If they are numbers, add --loss squared_error"
    if n_values == 2:
        return _classes(name, f"it has two values {values}", remedy)
    is_few = n_values <= min(_FEW_CLASSES, len(column) / _ROWS_PER_CLASS)
    if is_few and _is_whole(column):
        found = f"it has only {n_values} different values, all whole numbers {values}"
        return _classes(name, found, remedy)
    remedy = f"If they are classes, add --discrete {shlex.quote(name)}"
    return _numbers(name, f"it has {n_values:,} different ones", remedy)


def _classes(name: str, reason: str, remedy: str = "") -> Taken:
    text = f"The target {name!r} is taken for classes: {reason}."
    return Taken(True, f"{text} {remedy}." if remedy else text)


def _numbers(name: str, reason: str, remedy: str = "") -> Taken:
    text = f"The target {name!r} is taken for numbers: {reason}."
    return Taken(False, f"{text} {remedy}." if remedy else text)


def _check_classes(column: pd.Series[Any], asked: Asked) -> None:
    """Refuse a continuous target if an option asks for a classifier."""
    n_values = column.nunique()
    if n_values <= 2:
        return
    if _is_whole(column) and n_values <= max(_MAX_CLASSES, len(column) / 10):
        return
    name = str(column.name)
    advice = (
        f"{name!r} has {n_values} distinct numbers. Fit a regression, --fit lm or --fit rf; or, if"
        f" they are classes, add --discrete {name!r}"
    )
    raise refusal(asked.option, "suited to a numeric target", asked.value, advice)


def _is_whole(column: pd.Series[Any]) -> bool:
    return bool((column == column.round()).all())
