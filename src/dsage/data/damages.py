"""Errors about files of tables that are damaged, or too large."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dsage._check import Text, refusal, visible

_CELL = 8


@contextmanager
def tell_damage(file: Path) -> Iterator[None]:
    """Turn all errors of reading a Parquet file into one that says that it is damaged."""
    try:
        yield
    # What a file says of its columns is JSON, and is read by several packages.
    except Exception as error:
        if hasattr(error, "problem"):
            raise
        first = visible((str(error).splitlines() or [type(error).__name__])[0].rstrip("."))
        raise refuse_file(file, "a whole Parquet file", "Make or fetch it again", first) from error


def check_memory(file: Path, n_cells: int) -> None:
    """Refuse a table that does not fit into the memory of the machine, as floats."""
    try:
        most = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        # Not all systems tell.
        return
    if n_cells * _CELL > most:
        advice = "Read it in batches, or fewer columns of it"
        condition = f"a table for {most / 2**30:.0f} GB of memory"
        raise refusal("the data file", condition, f"{file.name}: {n_cells:,} cells", advice)


def refuse_file(file: Path, condition: str, advice: str | Text, reason: str = "") -> Exception:
    """Return the error about a data file."""
    value = f"{file.name}: {reason}" if reason else file.name
    return refusal("the data file", condition, value, advice)
