"""Keep tidy tables with their provenance on disk, and compute only missing rows."""

from __future__ import annotations

import hashlib
import logging
import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

import dsage

Line = Mapping[str, Any]

logger = logging.getLogger("experiments")


class Store:
    """A folder of tables that grow by units of work.

    Parameters
    ----------
    folder : Path
        Folder of the tables, one CSV file each.
    say : callable
        Called with progress messages.
    """

    def __init__(self, folder: Path, say: Callable[[str], None] = logger.info) -> None:
        self.folder = folder
        self._say = say
        folder.mkdir(parents=True, exist_ok=True)

    def unit(
        self, table: str, key: Line, work: Callable[[], Sequence[Line]], *, seed: int
    ) -> pd.DataFrame:
        """Return the lines of a unit of work, from disk if present, else computed now.

        Parameters
        ----------
        table : str
            Name of the table.
        key : mapping
            Columns that identify the unit; they are added to each of its lines.
        work : callable
            Computes the lines; not called if they are on disk.
        seed : int
            Seed of the unit, recorded in the table.
        """
        stored = self.read(table)
        if not stored.empty and set(key) <= set(stored.columns):
            same = pd.Series(True, index=stored.index)
            for name, value in key.items():
                same &= stored[name].astype(str) == str(value)
            if same.any():
                return stored[same]
        shown = ", ".join(f"{name} {value}" for name, value in key.items())
        self._say(f"{table}: {shown}")
        start = time.perf_counter()
        new = pd.DataFrame([{**key, **line} for line in work()])
        new = new.assign(
            seed=seed,
            unit_seconds=time.perf_counter() - start,
            version=dsage.__version__,
            machine=machine(),
        )
        self._write(table, pd.concat([stored, new], ignore_index=True))
        return new

    def read(self, table: str) -> pd.DataFrame:
        """Return a table, or an empty one if it does not exist."""
        path = self.path(table)
        return pd.read_csv(path) if path.exists() else pd.DataFrame()

    def names(self) -> list[str]:
        """Return the names of the tables."""
        return sorted(path.stem for path in self.folder.glob("*.csv"))

    def path(self, table: str) -> Path:
        """Return the path of a table, which need not exist."""
        return self.folder / f"{table}.csv"

    def _write(self, table: str, frame: pd.DataFrame) -> None:
        path = self.path(table)
        partial = path.with_suffix(".partial")
        frame.to_csv(partial, index=False, float_format="%.9g")
        partial.replace(path)


def machine() -> str:
    """Describe the machine."""
    return f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"


def seed_of(*names: object) -> int:
    """Return a seed derived from names."""
    text = "/".join(map(str, names))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")
