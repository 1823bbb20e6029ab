"""What an experiment is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.store import Store


@dataclass(frozen=True)
class Part:
    """One experiment: figures are drawn, and words written, from its tables alone.

    Attributes
    ----------
    name : str
        Its name on the command line, and that of its main table.
    title : str
        What it is, with the place in the paper.
    run : callable
        ``run(store, sizes)`` makes the tables; `sizes` is one of the two below.
    quick, full : object
        Sizes for minutes, and for hours.
    draw : callable
        ``draw(store, folder)`` writes the figures, SVG files.
    describe : callable
        ``describe(store)`` returns the section for the page, in Markdown: our figures beside the
        paper's, and where they differ and why. It is asked only where there are tables.
    missing : str
        The section where there are none.
    """

    name: str
    title: str
    run: Callable[[Store, Any], None]
    quick: Any
    full: Any
    draw: Callable[[Store, Path], None]
    describe: Callable[[Store], str]
    missing: str = "There are no tables of this part yet."

    def is_done(self, store: Store) -> bool:
        """Tell whether its table has lines."""
        return not store.read(self.name).empty
