"""Whether the parts of a record fit together: a file may have been edited by hand."""

from __future__ import annotations

import numpy as np

from dsage._check import check_member, check_names
from dsage.estimate.options import ESTIMANDS
from dsage.games.base import Floats
from dsage.result.record import Record

_SECTIONS = {
    "model": ("name",),
    "data": ("rows_evaluation", "rows_train"),
    "graph": (),
    "sampler": ("name",),
    "loss": ("name",),
    "estimate": (),
    "evaluations": (),
    "seconds": ("total",),
    "versions": (),
    "run": (),
}


def check_record(record: Record) -> None:
    """Raise ValueError, TypeError or KeyError where the parts do not fit together."""
    known = record.estimate
    names = check_names(known.feature_names, "feature_names")
    _require(isinstance(record.target, str), "the target is no name")
    check_member(known.estimand, ESTIMANDS, "estimand", "the estimands")
    for name in ("n_orderings", "n_units", "n_evaluated", "n_shared"):
        _require(isinstance(getattr(known, name), int), f"{name} is no number")
    for name in ("values", "se_orderings", "se_draws", "se_rows", "df", "share_skipped"):
        _check_column(getattr(known, name), len(names), name)
    _require(bool(np.isfinite(known.values).all()), "a value is no number")
    _require(any(each.is_main for each in known.terms), "the main term is missing")
    levels = [*known.terms, *([] if known.audit is None else [known.audit])]
    for level in levels:
        _check_column(level.values, len(names), str(level.kind))
        _check_column(level.se, len(names), str(level.kind))
    _require(len(known.history) > 0, "the history is empty")
    _check_column(known.history.values[-1], len(names), "history")
    if record.graph is not None:
        _require(record.target in record.graph, "the target is not in the graph")
    for section, needed in _SECTIONS.items():
        for name in needed:
            record.choices[section][name]
        record.choices[section]
    _require(all(isinstance(text, str) for text in record.warnings), "a warning is no text")
    # What every picture and table begins with.
    record.to_frame()


def _check_column(array: Floats, n_features: int, name: str) -> None:
    is_column = isinstance(array, np.ndarray) and array.shape == (n_features,)
    _require(is_column and array.dtype.kind == "f", f"{name} is no column of numbers")


def _require(holds: bool, text: str) -> None:
    if not holds:
        raise ValueError(text)
