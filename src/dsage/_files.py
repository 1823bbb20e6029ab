"""Files of arrays, JSON and text, written atomically; reading them executes no code.

The sizes that a file declares are compared with its own size before its content is read, so that
memory is bounded by the size of the file.
"""

from __future__ import annotations

import io
import json
import math
import os
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from dsage._check import refusal

Arrays = dict[str, npt.NDArray[Any]]

_HEADER = "header"
_ENDING = ".npy"
# Arrays are written without compression; files that someone has packed again may be smaller.
_RATIO, _SPARE = 20, 2**24
_MAX_MEMBERS = 100_000
_LONGEST_HEADER = 10_000
_KINDS = "biufmMSU"

# The errors that the content of a file may raise where it is damaged or was edited.
DAMAGES = (
    OSError,
    ValueError,
    LookupError,
    ArithmeticError,
    TypeError,
    AttributeError,
    RuntimeError,
    MemoryError,
)

_numbers = count()


def check_path(path: str | Path) -> Path:
    """Return the path of a file that can be written."""
    file = Path(path)
    if not file.parent.is_dir():
        raise refusal("path", "in an existing folder", str(path), "Create the folder first")
    if file.is_dir():
        raise refusal("path", "a file", str(path), "It is a folder: name a file in it")
    return file


def write_file(
    path: Path, write: Callable[[BinaryIO], object], previous: Path | None = None
) -> None:
    """Write a file atomically: at any time it has either its old content or all of the new one.

    `write` fills a temporary file in the same folder, which then replaces the file; on failure, the
    file is unchanged. What already exists is kept as `previous`, if given. A link stays a link. A
    pipe or a terminal is written to directly.

    With `previous`, the temporary file has a fixed name, so that runs that are repeatedly killed
    leave only one. Such a file must not be written by several runs at the same time.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        with target.open("wb") as stream:
            write(stream)
        return
    mark = "" if previous is not None else f".{os.getpid()}-{next(_numbers)}"
    partial = target.with_name(f"{target.name}{mark}.partial")
    try:
        with partial.open("wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            partial.chmod(stat.S_IMODE(target.stat().st_mode))
            if previous is not None:
                _keep(target, previous)
        partial.replace(target)
    except BaseException:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


def write_bytes(path: Path, content: bytes) -> None:
    """Write bytes into a file atomically."""
    write_file(path, lambda file: file.write(content))


def _keep(path: Path, previous: Path) -> None:
    """Make `previous` a copy of the file, which itself stays where it is."""
    fresh = previous.with_name(f"{previous.name}.partial")
    fresh.unlink(missing_ok=True)
    try:
        try:
            os.link(path, fresh)
        except OSError:
            # Some file systems have no links.
            fresh.write_bytes(path.read_bytes())
        fresh.replace(previous)
    finally:
        fresh.unlink(missing_ok=True)


def write_arrays(
    path: Path,
    header: Mapping[str, Any],
    arrays: Mapping[str, npt.NDArray[Any]],
    previous: Path | None = None,
) -> None:
    """Write a header, as JSON without NaN and infinities, and arrays into one file, atomically."""
    text = np.frombuffer(json.dumps(header, allow_nan=False).encode(), dtype=np.uint8)
    members: Any = {_HEADER: text, **arrays}
    write_file(path, lambda file: np.savez(file, **members), previous)


def read_arrays(path: Path) -> tuple[dict[str, Any], Arrays]:
    """Return header and arrays of a file; ValueError or OSError for any other file.

    The sizes and shapes that the file declares must fit its own size.
    """
    n_bytes = path.stat().st_size
    try:
        with zipfile.ZipFile(path) as file:
            members = file.infolist()
            _check_sizes(members, n_bytes)
            arrays = {
                member.filename.removesuffix(_ENDING): _read_array(file, member)
                for member in members
            }
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, struct.error) as error:
        raise ValueError(f"it is not a whole archive: {error}") from error
    except MemoryError as error:
        raise ValueError("there is not enough memory to read it") from error
    if _HEADER not in arrays:
        raise ValueError("it has no header")
    header = read_json(arrays.pop(_HEADER).tobytes())
    if not isinstance(header, dict):
        raise ValueError("its header is not a mapping")
    return header, arrays


def _check_sizes(members: list[zipfile.ZipInfo], n_bytes: int) -> None:
    names = [member.filename for member in members]
    if len(members) > _MAX_MEMBERS or len(set(names)) != len(names):
        raise ValueError("it has too many members, or two of one name")
    if any(not name.endswith(_ENDING) for name in names):
        raise ValueError("it has members that are not arrays")
    declared = sum(member.file_size for member in members)
    if declared > _RATIO * n_bytes + _SPARE:
        raise ValueError(f"it declares {declared:,} bytes, and has {n_bytes:,}")


def _read_array(file: zipfile.ZipFile, member: zipfile.ZipInfo) -> npt.NDArray[Any]:
    """Return an array whose shape fits its bytes; reading it compares it with its checksum."""
    content = file.read(member)
    if len(content) != member.file_size:
        raise ValueError(f"{member.filename} is incomplete")
    stream = io.BytesIO(content)
    version = np.lib.format.read_magic(stream)
    readers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    if version not in readers:
        raise ValueError(f"{member.filename} is of an unknown version")
    try:
        shape, is_fortran, dtype = readers[version](stream, max_header_size=_LONGEST_HEADER)
    # The header is parsed as Python, which has many errors.
    except Exception as error:
        raise ValueError(f"{member.filename} has no valid header") from error
    if dtype.kind not in _KINDS or dtype.subdtype is not None or dtype.itemsize < 1:
        raise ValueError(f"{member.filename} does not consist of numbers and texts")
    if any(length < 0 for length in shape):
        raise ValueError(f"{member.filename} has a negative length")
    start = stream.tell()
    if math.prod(shape) * dtype.itemsize != len(content) - start:
        raise ValueError(f"{member.filename} does not have the size of its shape {shape}")
    # A copy, since arrays of bytes cannot be changed.
    flat = np.frombuffer(content, dtype, offset=start).copy()
    return flat.reshape(shape, order="F" if is_fortran else "C")


def read_json(content: bytes | str) -> Any:  # noqa: ANN401
    """Return the value of a JSON text; ValueError for any other, and for NaN and infinities."""
    try:
        return json.loads(content, parse_constant=_refuse_constant)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def _refuse_constant(text: str) -> None:
    raise ValueError(f"{text} is not JSON")


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
