"""Run a part from scratch, or resume an interrupted run."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import dsage
from experiments.part import Part
from experiments.store import Store

_MARK = "sizes.txt"


def run_part(part: Part, sizes: object, folder: Path, say: Callable[[str], None]) -> None:
    """Compute the tables of a part and move them to ``folder/tables`` when all are complete.

    Until then they are in ``folder/running``, from where an interrupted run resumes if sizes and
    version are the same. If a part makes no table because its data are not available, existing
    tables are kept.

    Parameters
    ----------
    part : Part
        The part.
    sizes : object
        Sizes of the run.
    folder : Path
        Folder of the results.
    say : callable
        Called with progress messages.
    """
    place, mark = folder / "running" / part.name, f"dsage {dsage.__version__}, {sizes!r}\n"
    is_same = (place / _MARK).exists() and (place / _MARK).read_text(encoding="utf-8") == mark
    if not is_same:
        if place.exists():
            say(f"{part.name}: dropping an interrupted run with other sizes or another version")
            shutil.rmtree(place)
        place.mkdir(parents=True)
        (place / _MARK).write_text(mark, encoding="utf-8")
    running = Store(place, say=say)
    if running.names():
        say(f"{part.name}: resuming an interrupted run")
    part.run(running, sizes)
    tables = Store(folder / "tables")
    done = running.names()
    for name in done:
        running.path(name).replace(tables.path(name))
    for name in tables.names() if done else []:
        is_own = name == part.name or name.startswith(f"{part.name}_")
        if is_own and name not in done:
            tables.path(name).unlink()
    shutil.rmtree(place)
