"""Files of arrays and JSON, written atomically; reading them executes no code."""

from __future__ import annotations

import json
import os
import tokenize
import zipfile
import zlib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dsage._check import refusal

Arrays = dict[str, npt.NDArray[Any]]

_HEADER = "header"

# The errors that reading a damaged zip file may raise; NotImplementedError is a RuntimeError.
DAMAGES = (
    OSError,
    ValueError,
    KeyError,
    EOFError,
    RuntimeError,
    zipfile.BadZipFile,
    zlib.error,
    SyntaxError,
    tokenize.TokenError,
)


def check_path(path: str | Path) -> Path:
    """Return the path of a file that can be written."""
    file = Path(path)
    if not file.parent.is_dir():
        raise refusal("path", "in an existing folder", str(path), "Create the folder first")
    if file.is_dir():
        raise refusal("path", "a file", str(path), "It is a folder: name a file in it")
    return file


def write_arrays(
    path: Path,
    header: Mapping[str, Any],
    arrays: Mapping[str, npt.NDArray[Any]],
    previous: Path | None = None,
) -> None:
    """Write a header, as JSON without NaN and infinities, and arrays into one file.

    A temporary file is written first and then moved, so a complete file exists at any time. A file
    that already exists is moved to `previous`, if given.
    """
    text = np.frombuffer(json.dumps(header, allow_nan=False).encode(), dtype=np.uint8)
    partial = path.with_name(path.name + ".partial")
    try:
        with partial.open("wb") as file:
            np.savez(file, **{_HEADER: text, **arrays})  # type: ignore[arg-type]
            file.flush()
            os.fsync(file.fileno())
        if previous is not None and path.exists():
            path.replace(previous)
        partial.replace(path)
    except OSError:
        partial.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def read_arrays(path: Path) -> tuple[dict[str, Any], Arrays]:
    """Return header and arrays of a file; raise one of `DAMAGES` for any other file."""
    with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
        # Reading an array compares it with its checksum.
        arrays = {name: file[name] for name in file.files}
    header = json.loads(arrays.pop(_HEADER).tobytes())
    if not isinstance(header, dict):
        raise ValueError("its header is not a mapping")
    return header, arrays


def nest_arrays(parts: Mapping[str, Mapping[str, Any]]) -> Arrays:
    """Return the arrays of several parts under names of the form ``part/name``."""
    return {f"{part}/{name}": value for part, own in parts.items() for name, value in own.items()}


def arrays_under(arrays: Mapping[str, Any], part: str) -> Arrays:
    """Return the arrays of one part, by the names they had before `nest_arrays`."""
    start = f"{part}/"
    return {name[len(start) :]: value for name, value in arrays.items() if name.startswith(start)}


def _sync_folder(folder: Path) -> None:
    """Flush the moves in a folder to the disk, if the system supports it."""
    with suppress(OSError):
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)
