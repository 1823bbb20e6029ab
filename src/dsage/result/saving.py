"""Save explanations to files of JSON and arrays, which run no code when they are read."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, fields, is_dataclass, replace
from enum import Enum
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np
import pandas as pd

from dsage._check import check_member, check_names, refusal
from dsage._files import DAMAGES, Arrays, check_path, read_arrays, write_arrays
from dsage._version import __version__
from dsage.estimate.options import ESTIMANDS
from dsage.estimate.result import PARTS
from dsage.graphs import Graph
from dsage.result.explanation import Explanation
from dsage.result.first_format import upgrade
from dsage.result.row_values import Label
from dsage.result.rows import RowExplanation
from dsage.result.saved_rows import SavedColumn, load_table, save_names, save_table

_FORMAT = 6
# Files of earlier formats may lack fields that were added since.
_COMPLETE = 6
_KIND, _ROWS = "dsage explanation", "dsage rows"
# The content of each kind of file, and the function that reads it.
_READERS = {
    _KIND: ("one explanation", "dsage.load"),
    "dsage folds": ("folds", "dsage.FoldedExplanation.load"),
    _ROWS: ("explained rows", "dsage.RowExplanation.load"),
    "dsage measures": ("measures", "dsage.Measures.load"),
    "dsage flow": ("a flow", "dsage.FlowExplanation.load"),
}
_GRAPH = ("names", "edges", "bidirected", "indicators")


def save(explanation: Explanation, path: str | Path) -> Path:
    """Write an explanation into one file; see :meth:`Explanation.save`."""
    return write(explanation, path, _KIND)


def save_rows(explanation: RowExplanation, path: str | Path) -> Path:
    """Write explained rows into one file; see :meth:`RowExplanation.save`."""
    arrays: Arrays = {}
    columns = save_table(explanation.rows, explanation.layout, arrays)
    more = {"columns": _pack(columns, "", arrays), "row_names": save_names(explanation.row_names)}
    return write(explanation, path, _ROWS, more, arrays)


def write(
    content: Any,  # noqa: ANN401
    path: str | Path,
    kind: str,
    more: Mapping[str, Any] | None = None,
    arrays: Arrays | None = None,
) -> Path:
    """Write a result and `more` entries of its header; return the path."""
    file = check_path(path)
    arrays = {} if arrays is None else arrays
    header = {"kind": kind, "format": _FORMAT, "version": __version__}
    write_arrays(file, {**header, **_pack(content, "", arrays), **(more or {})}, arrays)
    return file


def load(path: str | Path) -> Explanation:
    """Return the explanation that :meth:`Explanation.save` wrote.

    Parameters
    ----------
    path : str or Path
        The file.

    Raises
    ------
    FileNotFoundError, ValueError
        If there is no such file, or if it is damaged or not an explanation.
    """
    header, arrays = _read(path, _KIND)
    with report_damage(path):
        if header["format"] == 1:
            header = upgrade(header, arrays) | {"format": 1}
        if header["format"] < _COMPLETE:
            header = _fill(Explanation, header)
        explanation: Explanation = _unpack(Explanation, header, "", arrays)
        check_consistent(explanation)
    return explanation


def load_rows(path: str | Path) -> RowExplanation:
    """Return explained rows; see :meth:`RowExplanation.load`."""
    header, arrays = _read(path, _ROWS)
    with report_damage(path):
        names = _unpack(tuple[Label, ...], header["row_names"], "", arrays)
        columns = _unpack(tuple[SavedColumn, ...], header["columns"], "", arrays)
        rows, layout = load_table(columns, names, arrays)
        if header["format"] < _COMPLETE:
            header = _fill(RowExplanation, header)
        found: RowExplanation = _unpack(RowExplanation, header, "", arrays)
        estimates = tuple(replace(each, data=rows) for each in found.estimates)
        found = replace(found, estimates=estimates, rows=rows, row_names=names, layout=layout)
        _check_rows(found)
    return found


def read_as(kind: type[Any], path: str | Path, of: str) -> Any:  # noqa: ANN401
    """Return the result of type `kind` from a file of the kind `of`."""
    header, arrays = _read(path, of)
    with report_damage(path):
        if header["format"] < _COMPLETE:
            header = _fill(kind, header)
        return _unpack(kind, header, "", arrays)


def _read(path: str | Path, kind: str) -> tuple[dict[str, Any], Arrays]:
    """Return header and arrays of a file of some kind."""
    file = Path(path)
    if not file.is_file():
        advice = "It is a folder" if file.is_dir() else "Check its name"
        raise refusal("path", "an existing file", str(path), advice, FileNotFoundError)
    if not zipfile.is_zipfile(file):
        raise _not_an_explanation(path)
    with report_damage(path):
        header, arrays = read_arrays(file)
    found = header.get("kind")
    if found != kind:
        if found in _READERS:
            what, reader = _READERS[kind][0], _READERS[found][1]
            raise refusal("path", f"the file of {what}", str(path), f"Read it with {reader}")
        raise _not_an_explanation(path)
    if header.get("format") not in range(1, _FORMAT + 1):
        condition = f"the file of an explanation in format 1 to {_FORMAT}"
        advice = f"It was written by dsage {header.get('version')}: read it with that version"
        raise refusal("path", condition, header.get("format"), advice)
    return header, arrays


@contextmanager
def report_damage(path: str | Path) -> Iterator[None]:
    """Replace errors of damaged files by one that says that the file is damaged."""
    try:
        yield
    except DAMAGES as error:
        raise _not_an_explanation(path, error) from error


def _not_an_explanation(path: str | Path, error: Exception | None = None) -> Exception:
    advice = "It may be damaged; explanation.save(path) and dsage explain --out write explanations"
    if error is not None:
        advice = f"It is damaged or was edited ({type(error).__name__}: {error}); write it again"
    return refusal("path", "the file of an explanation", str(path), advice)


def _pack(value: Any, place: str, arrays: Arrays) -> Any:  # noqa: ANN401
    """Return `value` for JSON; its arrays go to `arrays`, under the path of their attribute."""
    if isinstance(value, Graph):
        return {name: getattr(value, name) for name in _GRAPH}
    if isinstance(value, pd.DataFrame):
        return {str(name): _pack_column(value[name], f"{place}/{name}", arrays) for name in value}
    if is_dataclass(value):
        value = {name: getattr(value, name) for name in _list_saved(value)}
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, Mapping):
        return {name: _pack(each, f"{place}/{name}", arrays) for name, each in value.items()}
    if isinstance(value, (tuple, list)):
        return [_pack(each, f"{place}/{at}", arrays) for at, each in enumerate(value)]
    if isinstance(value, np.ndarray):
        arrays[place[1:]] = value
        return None
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, np.generic):
        value = value.item()
    is_special = isinstance(value, float) and not math.isfinite(value)
    return str(value) if is_special else value


def _list_saved(kind: Any) -> list[str]:  # noqa: ANN401
    """Return the names of the fields that are saved."""
    return [each.name for each in fields(kind) if each.metadata.get("is_saved", True)]


def _list_needed(kind: Any) -> set[str]:  # noqa: ANN401
    """Return the names of the fields without a default."""
    if not is_dataclass(kind):
        return set()
    lacks = (each for each in fields(kind) if each.init and each.default is MISSING)
    return {each.name for each in lacks if each.default_factory is MISSING}


def _pack_column(column: pd.Series[Any], place: str, arrays: Arrays) -> list[str] | None:
    """Return a column of text; None for numbers, which go to `arrays`."""
    if not pd.api.types.is_numeric_dtype(column):
        return [str(value) for value in column]
    arrays[place[1:]] = column.to_numpy()
    return None


def _unpack(kind: Any, parts: Any, place: str, arrays: Arrays) -> Any:  # noqa: ANN401
    """Return the value of type `kind` that was packed; TypeError if `parts` have another type."""
    if isinstance(kind, UnionType):
        kinds = get_args(kind)
        if parts is None and place[1:] in arrays:
            kinds = tuple(each for each in kinds if get_origin(each) is np.ndarray)
        elif type(parts) in kinds:
            return parts
        kind = next(each for each in kinds if each is not NoneType)
    origin, inner = get_origin(kind), get_args(kind)
    if origin is np.ndarray:
        return _check_dtype(arrays[place[1:]], get_args(inner[1])[0], place)
    if origin is tuple:
        return tuple(
            _unpack(inner[0], each, f"{place}/{at}", arrays) for at, each in enumerate(parts)
        )
    if origin in (dict, Mapping):
        return {
            name: _unpack(inner[1], each, f"{place}/{name}", arrays) for name, each in parts.items()
        }
    if kind is Graph:
        edges, bidirected = (
            [(one, other) for one, other in parts[name]] for name in ("edges", "bidirected")
        )
        # Earlier versions did not write indicators.
        return Graph(parts["names"], edges, bidirected, parts.get("indicators"))
    if kind is pd.DataFrame:
        columns = {
            name: arrays[f"{place[1:]}/{name}"] if text is None else text
            for name, text in parts.items()
        }
        return pd.DataFrame(columns)
    if is_dataclass(kind) or hasattr(kind, "_fields"):
        hints = get_type_hints(kind)
        saved = _list_saved(kind) if is_dataclass(kind) else kind._fields
        made = {
            name: _unpack(hints[name], parts[name], f"{place}/{name}", arrays) for name in saved
        }
        # The caller sets fields that are not saved.
        made |= dict.fromkeys(_list_needed(kind) - made.keys())
        return kind(**made)
    if issubclass(kind, Enum):
        return kind(parts)
    if kind is float:
        # Counts stay counts; NaN and infinities were written as text.
        return parts if isinstance(parts, (int, float)) else float(parts)
    if type(parts) is not kind:
        raise TypeError(f"{place[1:]} must be of type {kind.__name__}; got {parts!r}")
    return parts


def _fill(kind: Any, parts: Any) -> Any:  # noqa: ANN401
    """Return packed parts, with missing fields set to their defaults."""
    if get_origin(kind) is tuple and isinstance(parts, list):
        return [_fill(get_args(kind)[0], each) for each in parts]
    if isinstance(kind, UnionType):
        kind = next((each for each in get_args(kind) if is_dataclass(each)), NoneType)
    if not is_dataclass(kind) or not isinstance(parts, Mapping):
        return parts
    hints, filled = get_type_hints(kind), dict(parts)
    for field in fields(kind):
        if field.name in filled:
            filled[field.name] = _fill(hints[field.name], filled[field.name])
        elif field.default is not MISSING:
            filled[field.name] = _pack(field.default, "", {})
        elif field.default_factory is not MISSING:
            filled[field.name] = _pack(field.default_factory(), "", {})
    return filled


def _check_dtype(array: np.ndarray[Any, Any], kind: type[np.generic], place: str) -> Any:  # noqa: ANN401
    if not np.issubdtype(array.dtype, np.floating if kind is np.float64 else np.integer):
        raise TypeError(f"{place[1:]} must be an array of {kind.__name__}; got {array.dtype}")
    return array


def _check_scores(scores: pd.DataFrame | None) -> None:
    """Refuse a table of sampler scores that lacks columns, or whose scores are not numbers."""
    if scores is None:
        return
    needed = {"sampler", "energy_score", "difference", "se"}
    if "msev" in scores:
        needed |= {"msev_difference", "msev_se"}
    numbers = (needed - {"sampler"}) | ({"msev", "fit_seconds", "draw_seconds"} & {*scores.columns})
    if not needed <= {*scores.columns}:
        raise ValueError("the scores of the samplers lack columns")
    if not all(scores[name].dtype.kind in "iuf" for name in numbers):
        raise ValueError("the scores of the samplers are not numbers")


def _check_rows(explanation: RowExplanation) -> None:
    """Refuse inconsistent parts of explained rows."""
    _check_scores(explanation.sampler_scores)
    n_rows, n_outputs = len(explanation.row_names), len(explanation.outputs)
    if not n_outputs or len(explanation.estimates) != n_outputs:
        raise ValueError("the numbers of outputs differ")
    for estimate in explanation.estimates:
        shape = (n_rows, len(check_names(estimate.feature_names, "feature_names")))
        audit = () if estimate.audit is None else vars(estimate.audit).values()
        wide = (estimate.values, estimate.se_orderings, estimate.se_draws, estimate.df, *audit)
        if any(array.shape != shape for array in wide):
            raise ValueError("the arrays have different shapes")
        ends = [estimate.predictions, np.broadcast_to(estimate.base_value, n_rows)]
        if any(end.shape != (n_rows,) for end in ends):
            raise ValueError("the arrays have different lengths")
        if not np.isfinite(estimate.values).all():
            raise ValueError("a value is not finite")
        check_member(estimate.estimand, ESTIMANDS, "estimand", "the estimands")
    explanation.to_frame()


def check_consistent(explanation: Explanation) -> None:
    """Refuse inconsistent parts: the file may have been edited."""
    _check_scores(explanation.sampler_scores)
    estimate = explanation.estimate
    shape = (len(check_names(estimate.feature_names, "feature_names")),)
    check_member(estimate.estimand, ESTIMANDS, "estimand", "the estimands")
    terms = [*estimate.terms, *([] if estimate.audit is None else [estimate.audit])]
    arrays = [each for part in (estimate, *terms) for each in vars(part).values()]
    arrays.append(estimate.history.values[-1])
    if any(isinstance(array, np.ndarray) and array.shape != shape for array in arrays):
        raise ValueError("the arrays have different lengths")
    outputs = () if estimate.outputs is None else vars(estimate.outputs).values()
    wide = (len(explanation.choices.data.outputs), *shape)
    is_apart = estimate.estimand != "causal"
    if any(array.shape != wide for array in outputs) or (not outputs and wide[0] and is_apart):
        raise ValueError("the arrays of the outputs have different shapes")
    parts = () if estimate.parts is None else vars(estimate.parts).values()
    if any(array.shape != (len(PARTS), *shape) for array in parts):
        raise ValueError("the arrays of the parts have different shapes")
    if not np.isfinite(estimate.values).all():
        raise ValueError("a value is not finite")
    if explanation.graph is not None and explanation.target not in explanation.graph:
        raise ValueError("the target is not in the graph")
    if not any(term.is_main for term in estimate.terms):
        raise ValueError("the main term is missing")
    explanation.to_frame()
