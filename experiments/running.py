"""Run a part from its beginning, or from where it was broken off."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import dsage
from experiments.part import Part
from experiments.store import Store

_MARK = "sizes.txt"


def run_part(part: Part, sizes: object, folder: Path, say: Callable[[str], None]) -> None:
    """Make the tables of a part anew, and put them into ``folder/tables`` when all are done.

    Until then they are in ``folder/running``: a run that was broken off goes on from there, if
    sizes and version are the same. A part that makes no table, as its data cannot be had, leaves
    those that are in place.

    Parameters
    ----------
    part : Part
        The part.
    sizes : object
        How much is run.
    folder : Path
        Where the tables go.
    say : callable
        Is told what is going on.
    """
    place, mark = folder / "running" / part.name, f"dsage {dsage.__version__}, {sizes!r}\n"
    is_same = (place / _MARK).exists() and (place / _MARK).read_text(encoding="utf-8") == mark
    if not is_same:
        if place.exists():
            say(f"{part.name}: what was broken off had other sizes, and is dropped")
            shutil.rmtree(place)
        place.mkdir(parents=True)
        (place / _MARK).write_text(mark, encoding="utf-8")
    made = Store(place, say=say)
    if made.names():
        say(f"{part.name}: goes on where it was broken off")
    part.run(made, sizes)
    tables = Store(folder / "tables")
    done = made.names()
    for name in done:
        made.path(name).replace(tables.path(name))
    for name in tables.names() if done else []:
        is_own = name == part.name or name.startswith(f"{part.name}_")
        if is_own and name not in done:
            tables.path(name).unlink()
    shutil.rmtree(place)
