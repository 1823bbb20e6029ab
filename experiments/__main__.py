"""Run experiments: ``python -m experiments [--quick] [PART ...]``.

Each part starts from scratch; an interrupted part resumes where it stopped.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from tqdm.auto import tqdm

from experiments.page import write_page
from experiments.parts import PARTS
from experiments.running import run_part
from experiments.store import Store

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "paper.md"
FIGURES = "../experiments/results/full/figures"


def main(arguments: list[str]) -> None:
    """Run the named parts, or all of them, and write the figures and the page."""
    parser = argparse.ArgumentParser(prog="python -m experiments", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--quick", action="store_true", help="reduced sizes, takes minutes")
    parser.add_argument("--draw", action="store_true", help="only redraw figures and page")
    parser.add_argument("--out", type=Path, help="folder of tables, figures and page")
    given = parser.parse_args(arguments)
    unknown = sorted(set(given.parts) - set(PARTS))
    if unknown:
        parser.error(f"no such part: {', '.join(unknown)}; the parts are {', '.join(PARTS)}")
    folder = given.out or HERE / "results" / ("quick" if given.quick else "full")
    store = Store(folder / "tables")
    start = time.perf_counter()
    for name in tqdm(given.parts or list(PARTS), desc="experiments", unit=" parts"):
        part = PARTS[name]
        if not given.draw:
            run_part(part, part.quick if given.quick else part.full, folder, tqdm.write)
        if part.is_done(store):
            part.draw(store, folder / "figures")
    if given.quick or given.out is not None:
        place, figures = folder / "paper.md", "figures"
    else:
        place, figures = PAGE, FIGURES
    page = write_page(store, PARTS, place, figures, is_quick=given.quick)
    tqdm.write(f"{page} after {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main(sys.argv[1:])
