"""Where results go: checked before the work, and written before anything is shown."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import typer

from dsage._check import refusal
from dsage.cli.errors import FAILED, note, one_line, show

PAGES = (".html", ".htm")
PICTURES = (".png", ".svg", ".pdf")


class Place(NamedTuple):
    """A file that is asked for: the option, the path if any, and what its name may end in."""

    option: str
    path: Path | None
    suffixes: tuple[str, ...] = ()


class Writing(NamedTuple):
    """A file to write: its option, its path, what does it, and what to say then."""

    option: str
    path: Path | None
    write: Callable[[Path], object]
    said: str


def check_places(places: Iterable[Place], inputs: Mapping[str, Path | None]) -> None:
    """Refuse files that could not be written, or whose writing would destroy others.

    Parameters
    ----------
    places : iterable of Place
        What will be written.
    inputs : mapping of str to Path or None
        What is read: names of options or arguments, and their files.
    """
    taken = {option: path for option, path in inputs.items() if path is not None}
    for option, path, suffixes in places:
        if path is None:
            continue
        _check_name(option, path, suffixes)
        for other, used in taken.items():
            if _are_same(path, used):
                advice = "It would be written over: give another name"
                raise refusal(option, f"another file than {other}", str(path), advice)
        _check_writable(option, path)
        taken[option] = path


def finish(text: str, writings: Iterable[Writing], *, quiet: bool) -> None:
    """Write every file, then show the result, and then say what was written and what was not.

    Raises
    ------
    typer.Exit
        Where a file could not be written; all others are.
    """
    lines, failures = [], []
    for option, path, write, said in writings:
        if path is None:
            continue
        try:
            write(path)
        except Exception as error:
            failures.append(f"{option} {path} could not be written: {one_line(error)}")
        else:
            lines.append(f"{said} is in {path}.")
    show(text)
    for line in lines if not quiet else ():
        note(line)
    if failures:
        note(f"Error: {' '.join(failures)}")
        raise typer.Exit(FAILED)


def _check_name(option: str, path: Path, suffixes: tuple[str, ...]) -> None:
    if path.is_dir():
        raise refusal(option, "a file", str(path), "It is a folder: add a name", IsADirectoryError)
    if not path.parent.is_dir():
        raise refusal(
            option,
            "in a folder that exists",
            str(path),
            f"Make {str(path.parent)!r}",
            FileNotFoundError,
        )
    if suffixes and path.suffix.lower() not in suffixes:
        ends = " or ".join(suffixes)
        advice = f"Call it {path.with_suffix(suffixes[0]).name!r}"
        raise refusal(option, f"a name that ends in {ends}", path.name, advice)


def _are_same(path: Path, other: Path) -> bool:
    if path.resolve() == other.resolve():
        return True
    return path.is_file() and other.is_file() and path.samefile(other)


def _check_writable(option: str, path: Path) -> None:
    """Try to make a file beside it: rights, full disks and read-only ones are known now."""
    reason = "it may not be written to"
    # A pipe or a terminal has nothing beside it.
    is_writable = os.access(path, os.W_OK) if path.exists() else True
    if is_writable and (path.is_file() or not path.exists()):
        try:
            with tempfile.TemporaryFile(dir=path.parent):
                return
        except OSError as error:
            is_writable, reason = False, error.strerror or str(error)
    if not is_writable:
        advice = f"Give a place where you may write: {reason}"
        raise refusal(option, "a file that can be written", str(path), advice, PermissionError)
