"""Tidy tables on disk, with where each line comes from; what is there is not computed again."""

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
        Where the tables are, one CSV file each.
    say : callable
        Is told what is going on.
    """

    def __init__(self, folder: Path, say: Callable[[str], None] = logger.info) -> None:
        self.folder = folder
        self._say = say
        folder.mkdir(parents=True, exist_ok=True)

    def unit(
        self, table: str, key: Line, work: Callable[[], Sequence[Line]], *, seed: int
    ) -> pd.DataFrame:
        """Return the lines of a unit of work: those on disk, or those that it makes now.

        Parameters
        ----------
        table : str
            Name of the table.
        key : mapping
            What tells the unit from others: these columns are part of each of its lines.
        work : callable
            Returns the lines; is not called where they are there.
        seed : int
            Seed of the unit, for the record.
        """
        there = self.read(table)
        if not there.empty and set(key) <= set(there.columns):
            same = pd.Series(True, index=there.index)
            for name, value in key.items():
                same &= there[name].astype(str) == str(value)
            if same.any():
                return there[same]
        shown = ", ".join(f"{name} {value}" for name, value in key.items())
        self._say(f"{table}: {shown}")
        start = time.perf_counter()
        made = pd.DataFrame([{**key, **line} for line in work()])
        made = made.assign(
            seed=seed,
            unit_seconds=time.perf_counter() - start,
            version=dsage.__version__,
            machine=machine(),
        )
        self._write(table, pd.concat([there, made], ignore_index=True))
        return made

    def read(self, table: str) -> pd.DataFrame:
        """Return a table; an empty one where there is none."""
        path = self.path(table)
        return pd.read_csv(path) if path.exists() else pd.DataFrame()

    def names(self) -> list[str]:
        """Return the names of the tables."""
        return sorted(path.stem for path in self.folder.glob("*.csv"))

    def path(self, table: str) -> Path:
        """Return where a table is, or would be."""
        return self.folder / f"{table}.csv"

    def _write(self, table: str, frame: pd.DataFrame) -> None:
        path = self.path(table)
        partial = path.with_suffix(".partial")
        frame.to_csv(partial, index=False, float_format="%.9g")
        partial.replace(path)


def machine() -> str:
    """Return what the figures were measured on."""
    return f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"


def seed_of(*names: object) -> int:
    """Return the seed of a unit: the same for the same names, another for others."""
    text = "/".join(map(str, names))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")
