"""The checks of files that are about to be read."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from dsage._check import refusal


def check_file(path: str | PathLike[str], what: str) -> Path:
    """Return the path of a file that is there and is not empty; `what` says what it is for."""
    file = Path(path)
    if file.is_dir():
        raise refusal(what, "a file", str(file), "It is a folder: name a file", IsADirectoryError)
    if not file.exists():
        near = "Look at the spelling, and at the folder that you are in"
        if not file.parent.exists():
            near = f"There is no folder {str(file.parent)!r} either"
        raise refusal(what, "a file that exists", str(file), near, FileNotFoundError)
    if not file.stat().st_size:
        raise refusal(what, "of one byte at least", str(file), "It is empty")
    return file
