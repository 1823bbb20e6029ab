"""Records in files: JSON and arrays, nothing that runs when it is read."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from dataclasses import fields
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from dsage._check import refusal
from dsage._files import DAMAGES, Arrays, read_arrays, write_arrays
from dsage._version import __version__
from dsage.estimate import Estimate, History, StopKind, StopReason, TermEstimate, TermKind
from dsage.graphs import Graph
from dsage.result.choices import Choices
from dsage.result.record import Record
from dsage.result.record_checks import check_record

_FORMAT = 1
_KIND = "dsage explanation"

R = TypeVar("R", bound=Record)


def save_record(record: Record, path: str | Path) -> Path:
    """Write a record into one file.

    Parameters
    ----------
    record : Record
        The record.
    path : str or Path
        The file; its folder must exist. One that is there is written over.

    Returns
    -------
    Path
        The file.
    """
    place = Path(path)
    if not place.parent.is_dir():
        raise refusal("path", "in a folder that exists", str(path), "Make the folder")
    if place.is_dir():
        raise refusal("path", "a file", str(path), "It is a folder: name a file in it")
    arrays: Arrays = {}
    header = {
        "kind": _KIND,
        "format": _FORMAT,
        "version": __version__,
        "estimate": _packed(record.estimate, "estimate", arrays),
        "target": record.target,
        "graph": _graph_parts(record.graph),
        "edge_strength": _frame_parts(record.edge_strength, "edge_strength", arrays),
        "sampler_scores": _frame_parts(record.sampler_scores, "sampler_scores", arrays),
        "groups": record.groups,
        "choices": record.choices.to_dict(),
        "warnings": record.warnings,
    }
    write_arrays(place, header, arrays)
    return place


def load_record(path: str | Path, kind: type[R]) -> R:
    """Return the record in a file.

    Parameters
    ----------
    path : str or Path
        A file that :func:`save_record` wrote.
    kind : type
        The class of the record.
    """
    place = Path(path)
    if not place.is_file():
        advice = "It is a folder" if place.is_dir() else "Look at its name"
        raise refusal("path", "a file that is there", str(path), advice, FileNotFoundError)
    if not zipfile.is_zipfile(place):
        raise _something_else(path)
    try:
        header, arrays = read_arrays(place)
    except DAMAGES as error:
        raise _damaged(path, error) from error
    if header.get("kind") != _KIND:
        raise _something_else(path)
    if header.get("format") != _FORMAT:
        raise refusal(
            "path",
            f"the file of an explanation in format {_FORMAT}",
            header.get("format"),
            f"It was written by dsage {header.get('version')}: use that",
        )
    try:
        record = kind(
            estimate=_estimate(header["estimate"], arrays),
            target=header["target"],
            graph=_graph(header["graph"]),
            edge_strength=_frame(header["edge_strength"], "edge_strength", arrays),
            sampler_scores=_frame(header["sampler_scores"], "sampler_scores", arrays),
            groups=_groups(header["groups"]),
            choices=Choices(header["choices"]),
            warnings=tuple(header["warnings"]),
        )
        check_record(record)
    except (*DAMAGES, TypeError, AttributeError, IndexError) as error:
        raise _damaged(path, error) from error
    return record


def _something_else(path: str | Path) -> Exception:
    advice = "It is damaged or something else; an explanation is written by explanation.save(path)"
    return refusal("path", "the file of an explanation", str(path), advice)


def _damaged(path: str | Path, error: Exception) -> Exception:
    advice = f"It is damaged, or something else ({type(error).__name__}: {error}); make it anew"
    return refusal("path", "the file of an explanation", str(path), advice)


def _packed(owner: Any, place: str, arrays: Arrays) -> dict[str, Any]:  # noqa: ANN401
    """Return the fields of a dataclass for JSON; numbers that JSON cannot hold go to `arrays`."""
    return {
        field.name: _packed_value(getattr(owner, field.name), f"{place}/{field.name}", arrays)
        for field in fields(owner)
    }


def _packed_value(value: Any, place: str, arrays: Arrays) -> Any:  # noqa: ANN401
    if isinstance(value, (np.ndarray, float)):
        arrays[place] = np.asarray(value)
        return None
    if isinstance(value, pd.DataFrame):
        return _frame_parts(value, place, arrays)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, dict):
        return {
            name: _packed_value(each, f"{place}/{name}", arrays) for name, each in value.items()
        }
    if isinstance(value, (TermEstimate, History, StopReason)):
        return _packed(value, place, arrays)
    if isinstance(value, tuple):
        return [_packed_value(each, f"{place}/{at}", arrays) for at, each in enumerate(value)]
    return value


def _estimate(parts: Mapping[str, Any], arrays: Arrays) -> Estimate:
    # The first release called the terms levels.
    name = "terms" if "terms" in parts else "levels"
    own = _unpacked(Estimate, {"terms": [], **parts}, "estimate", arrays)
    own["feature_names"] = tuple(own["feature_names"])
    own["terms"] = tuple(
        _term(each, f"estimate/{name}/{at}", arrays) for at, each in enumerate(parts[name])
    )
    if parts["audit"] is not None:
        own["audit"] = _term(parts["audit"], "estimate/audit", arrays)
    own["reason"] = _reason(parts["reason"], arrays)
    # The first release wrote two fields.
    if parts.get("interrupted"):
        own["reason"] = StopReason(StopKind.INTERRUPTED)
    place = "estimate/skipped_surpluses"
    own["skipped_surpluses"] = _frame(parts["skipped_surpluses"], place, arrays)
    own["history"] = History(**_unpacked(History, parts["history"], "estimate/history", arrays))
    return Estimate(**own)


def _term(parts: Mapping[str, Any], place: str, arrays: Arrays) -> TermEstimate:
    # The first release wrote the kind as a name.
    parts = {"kind": parts.get("name"), **parts}
    own = _unpacked(TermEstimate, parts, place, arrays)
    return TermEstimate(**{**own, "kind": TermKind(own["kind"])})


def _reason(parts: Mapping[str, Any] | str | None, arrays: Arrays) -> StopReason | None:
    if parts is None:
        return None
    # The first release wrote a sentence.
    if isinstance(parts, str):
        return StopReason(StopKind.OTHER, text=parts)
    numbers = {
        name: arrays[f"estimate/reason/numbers/{name}"].item() if number is None else number
        for name, number in parts["numbers"].items()
    }
    return StopReason(StopKind(parts["kind"]), numbers, parts["text"])


def _unpacked(kind: type, parts: Mapping[str, Any], place: str, arrays: Arrays) -> dict[str, Any]:
    """Return the fields of a dataclass: from `arrays` what is there, and the rest from JSON."""
    found: dict[str, Any] = {}
    for field in fields(kind):
        array = arrays.get(f"{place}/{field.name}")
        found[field.name] = (
            parts[field.name] if array is None else array if array.ndim else array.item()
        )
    return found


def _frame_parts(frame: pd.DataFrame | None, place: str, arrays: Arrays) -> Any:  # noqa: ANN401
    """Return the columns of a frame: those of text themselves, None for those in `arrays`."""
    if frame is None:
        return None
    parts: dict[str, list[str] | None] = {}
    for name in frame.columns:
        column = frame[name]
        if pd.api.types.is_numeric_dtype(column):
            arrays[f"{place}/{name}"] = column.to_numpy()
            parts[name] = None
        else:
            parts[name] = [str(value) for value in column]
    return parts


def _frame(parts: Any, place: str, arrays: Arrays) -> pd.DataFrame | None:  # noqa: ANN401
    if parts is None:
        return None
    columns = {
        name: arrays[f"{place}/{name}"] if text is None else text for name, text in parts.items()
    }
    return pd.DataFrame(columns)


def _graph_parts(graph: Graph | None) -> dict[str, Any] | None:
    if graph is None:
        return None
    return {"names": graph.names, "edges": graph.edges, "bidirected": graph.bidirected}


def _graph(parts: Mapping[str, Any] | None) -> Graph | None:
    if parts is None:
        return None
    return Graph(
        parts["names"],
        [(tail, head) for tail, head in parts["edges"]],
        [(one, other) for one, other in parts["bidirected"]],
    )


def _groups(parts: Mapping[str, Any] | None) -> dict[str, tuple[str, ...]] | None:
    return None if parts is None else {name: tuple(held) for name, held in parts.items()}
