"""Run and check a part of the experiments with sizes so small that it takes seconds."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from experiments.part import Part
from experiments.problem import Data
from experiments.store import Store

DATA = Data(n_train=200, n_test=40, n_trees=3)


def run_twice(part: Part, sizes: object, folder: Path) -> tuple[Store, list[str]]:
    """Run a part twice; return its store, and messages about work in the second run."""
    part.run(Store(folder / "tables"), sizes)
    before = {path.name: path.read_bytes() for path in (folder / "tables").iterdir()}
    said: list[str] = []
    store = Store(folder / "tables", say=said.append)
    part.run(store, sizes)
    after = {path.name: path.read_bytes() for path in (folder / "tables").iterdir()}
    assert before == after
    return store, said


def draw_and_describe(part: Part, store: Store, folder: Path) -> tuple[list[str], str]:
    """Return the names of the figures, and the section."""
    part.draw(store, folder / "figures")
    files = sorted((folder / "figures").glob("*.svg"))
    for file in files:
        assert file.stat().st_size < 60_000, f"{file.name} is {file.stat().st_size} bytes"
    text = part.describe(store)
    for word in text.split("(figures/")[1:]:
        assert (folder / "figures" / word.split(")")[0]).exists(), word
    assert "nan" not in text.replace("\n", " ").split()
    return [file.name for file in files], text


def has_provenance(table: pd.DataFrame) -> bool:
    """Return whether the table records the provenance of its lines."""
    return {"seed", "unit_seconds", "version", "machine"} <= set(table.columns)
