"""Write the page that compares our results with the paper's, from the tables alone."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from experiments.part import Part
from experiments.store import Store
from experiments.summary import overview, summary

_TITLE = "The paper, reproduced"
_ABOUT = (
    "*Efficient SAGE Estimation via Causal Structure Learning* (Luther, König & Grosse-Wentrup, "
    "AISTATS 2023): every table and figure, reproduced with this library and compared with the "
    "paper. The data are simulated from the paper's twelve graphs with our own seeds, so at best "
    "the numbers agree up to chance. This page and its figures are generated from tables, which "
    "are computed by"
)


def write_page(
    store: Store, parts: dict[str, Part], place: Path, figures: str, *, is_quick: bool
) -> Path:
    """Write the page and return its path.

    Parameters
    ----------
    store : Store
        The tables.
    parts : dict of str to Part
        The experiments, in order.
    place : Path
        File to write.
    figures : str
        Folder of the figures, relative to that file.
    is_quick : bool
        Whether the tables come from reduced sizes.
    """
    command = "make paper-quick" if is_quick else "make paper"
    sections = [f"# {_TITLE}", f"{_ABOUT} `{command}`{_describe_runs(store)}."]
    if is_quick:
        sections.append("**Sizes are reduced**: these results are rougher than the published ones.")
    done = [name for name, part in parts.items() if part.is_done(store)]
    if done:
        sections += ["## Summary", overview(store, done)]
        sections += ["## Claim by claim", summary(store, done)]
    for part in parts.values():
        if not part.is_done(store):
            sections += [f"## {part.title}", part.missing]
        else:
            section = part.describe(store).replace("(figures/", f"({figures}/")
            sections += [f"## {part.title}", section]
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("\n\n".join(sections) + "\n", encoding="utf-8")
    return place


def _describe_runs(store: Store) -> str:
    """Return the version, the machine and the time of the runs behind the tables."""
    tables = [table for table in map(store.read, store.names()) if not table.empty]
    if not tables:
        return ""
    together = pd.concat(tables, ignore_index=True)
    machines = ", ".join(sorted(together["machine"].unique()))
    versions = ", ".join(sorted(together["version"].unique()))
    units = together.drop_duplicates(["seed", "unit_seconds"])
    hours = units["unit_seconds"].sum() / 3600
    return f" (dsage {versions}; {machines}; {hours:.1f} hours of computation)"
