"""Define an experiment."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.store import Store


@dataclass(frozen=True)
class Part:
    """One experiment, whose figures and text are made from its tables alone.

    Attributes
    ----------
    name : str
        Name on the command line and of the main table.
    title : str
        Heading of the section, with the place in the paper.
    run : callable
        ``run(store, sizes)`` computes the tables; `sizes` is `quick` or `full`.
    quick, full : object
        Sizes of a run that takes minutes, and of one that takes hours.
    draw : callable
        ``draw(store, folder)`` writes the figures as SVG files.
    describe : callable
        ``describe(store)`` returns the section of the page in Markdown, which compares our
        results with the paper's. Called only if the tables exist.
    missing : str
        Section to write if the tables do not exist.
    """

    name: str
    title: str
    run: Callable[[Store, Any], None]
    quick: Any
    full: Any
    draw: Callable[[Store, Path], None]
    describe: Callable[[Store], str]
    missing: str = "This part has not been run yet."

    def is_done(self, store: Store) -> bool:
        """Return whether the main table has rows."""
        return not store.read(self.name).empty
